"""Puts the torch layer in place, once torch has been imported."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import torch

from streamsan import _core
from streamsan.torch.autograd import watch_backward
from streamsan.torch.callbacks import register_callbacks
from streamsan.torch.compiler import generated_code, keep_compiler_out
from streamsan.torch.engine import wait_at_exit
from streamsan.torch.graph_pools import watch_graph_pools
from streamsan.torch.graphs import watch_drawing, watch_launches
from streamsan.torch.kernels import keep_to_plain_kernels
from streamsan.torch.launches import watch_triton, watch_wrappers
from streamsan.torch.native import read_natively
from streamsan.torch.page_locked import watch_pointers
from streamsan.torch.places import describe_place
from streamsan.torch.printing import keep_mode_on
from streamsan.torch.streams import watch_streams
from streamsan.torch.threads import enter_thread, watch_threads
from streamsan.torch.works import watch_works

_installed = False


def install() -> None:
    """Installs the layer; does nothing the second time. Whether this torch can be watched was asked before.

    Raises:
        CaptureError: if this torch is built in a way that is not known.
    """
    global _installed
    if _installed or not _core.attach():
        return
    _installed = True
    _core.configure(
        _library_folders(), str(Path(__file__).resolve().parent.parent), os.getcwd(), describe_place
    )
    _tell_header()
    if _core.is_virtual():
        keep_to_plain_kernels()
        watch_launches()
        watch_drawing()
    register_callbacks()
    watch_streams()
    watch_works()
    watch_graph_pools()
    watch_pointers()
    watch_backward()
    wait_at_exit()
    watch_threads()
    keep_compiler_out()
    watch_triton()
    if not _core.is_virtual():
        watch_wrappers()
    keep_mode_on()
    read_natively()
    enter_thread()


def _library_folders() -> list[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(sysconfig.get_path(name)) for name in names}
    folders |= {sysconfig.get_path(name) for name in names}
    return sorted(folders | {generated_code()})


def _tell_header() -> None:
    _core.set_header_text(0, " ".join(sys.orig_argv[1:]) or "python")
    _core.set_header_text(1, os.getcwd())
    version = ".".join(str(part) for part in sys.version_info[:3])
    _core.set_header_text(2, f"torch {torch.__version__}, CUDA {torch.version.cuda}, Python {version}")
