"""Says what an interpreter is, as `key=value` lines. Does not import torch: that takes seconds."""

import importlib.util
import platform
import runpy
import sys
import sysconfig


def say(key: str, value: object) -> None:
    """Prints one fact; `None` is an empty one."""
    print(key + "=" + str("" if value is None else value).replace("\n", " "))


def folder(name: str) -> str:
    """The folder of a package, or the empty string."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    places = list(found.submodule_search_locations or []) if found else []
    return places[0] if places else ""


# The folder that `-c` puts in front is not where the program is.
sys.path = [entry for entry in sys.path if entry]
say("python", platform.python_version())
say("executable", sys.executable)
say("free_threaded", sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
say("system", sys.platform)
say("machine", platform.machine())
say("libc", " ".join(platform.libc_ver()).strip())
say("package", folder("streamsan"))
torch = folder("torch")
try:
    version = runpy.run_path(torch + "/version.py") if torch else {}
except (OSError, SyntaxError, ImportError):
    # A folder called torch without it is no torch.
    version, torch = {}, ""
say("torch_folder", torch)
say("torch", version.get("__version__"))
say("torch_cuda", version.get("cuda"))
say("torch_hip", version.get("hip"))
