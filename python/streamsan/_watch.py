"""Installs the torch layer as soon as torch has been imported."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder(MetaPathFinder):
    """Finds a module as the finders after it do, and has something done when it has been loaded."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answers for its module alone."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        loader = spec.loader
        load = loader.exec_module

        def load_and_act(module: ModuleType) -> None:
            del loader.exec_module
            try:
                load(module)
            except BaseException:
                sys.meta_path.insert(0, self)
                raise
            self._action()

        loader.exec_module = load_and_act  # type: ignore[method-assign]
        return spec


def after_import(name: str, action: Callable[[], None]) -> None:
    """Calls `action` once the module of that name has been imported: now, if it has been."""
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))


def _install() -> None:
    # First of all: the modules of the layer use at once what may be missing.
    from streamsan.torch.versions import require

    require(sys.modules["torch"])
    from streamsan.torch.install import install

    install()
    if "STREAMSAN_CONFIRM" in os.environ:
        # One of the further runs of `streamsan run --confirm`.
        from streamsan.torch import confirm

        confirm.install()


def _is_main_interpreter() -> bool:
    """Whether this is the process's first interpreter. torch cannot be imported in others."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters: Any = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


def watch() -> None:
    """Starts to watch, if the device library is preloaded in this process."""
    # The end of another interpreter must not be taken for that of the process.
    if not _is_main_interpreter():
        return
    from streamsan import _core

    if not _core.attach():
        return
    # Registered before the program runs anything, so it is called after all that the program registers.
    atexit.register(_core.close)
    after_import("torch", _install)
