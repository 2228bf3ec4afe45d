"""Installs the torch layer as soon as torch has been imported."""

from __future__ import annotations

import atexit
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _TorchFinder(MetaPathFinder):
    """Finds torch as the finders after it do, and adds the installation to its loading."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answers for torch alone."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        loader = spec.loader
        load = loader.exec_module

        def load_and_install(module: ModuleType) -> None:
            del loader.exec_module
            try:
                load(module)
            except BaseException:
                sys.meta_path.insert(0, self)
                raise
            from streamsan.torch.install import install

            install()

        loader.exec_module = load_and_install  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Starts to watch, if the device library is preloaded in this process."""
    from streamsan import _core

    if not _core.attach():
        return
    # Registered before the program runs anything, so it is called after all that the program registers.
    atexit.register(_core.close)
    sys.meta_path.insert(0, _TorchFinder())
