"""Runs at the start of each Python process under `streamsan run`, before the program.

It waits for torch to be imported and then installs the torch layer. It stays out of sight: the folder it
lies in leaves `sys.path`, and the `sitecustomize` that it hides, if there is one, runs as usual.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _leave_path() -> None:
    """Takes this folder out of the import path."""
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _HERE]
    sys.path_importer_cache.pop(str(_HERE), None)


def _run_hidden() -> None:
    """Runs the `sitecustomize` that this one hides, if there is one."""
    own = sys.modules.pop("sitecustomize", None)
    if importlib.util.find_spec("sitecustomize") is not None:
        importlib.import_module("sitecustomize")
    elif own is not None:
        # The import that runs this file expects to find the module when it is done.
        sys.modules["sitecustomize"] = own


def _load_package() -> bool:
    """Makes the package importable, from where this file lies if the environment does not have it."""
    if importlib.util.find_spec("streamsan") is not None:
        return True
    package = _HERE.parent
    location = package / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        "streamsan", location, submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        return False
    module = importlib.util.module_from_spec(spec)
    sys.modules["streamsan"] = module
    spec.loader.exec_module(module)
    return True


def _start() -> None:
    """Watches for torch."""
    if _load_package():
        from streamsan._watch import watch

        watch()


_leave_path()
_start()
_run_hidden()
