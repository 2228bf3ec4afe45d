import importlib.util
import platform
import runpy
import sys


def say(key, value):
    print(key + "=" + str(value if value is not None else "").replace("\n", " "))


# The folder that `-c` puts in front is not where the program is.
sys.path = [folder for folder in sys.path if folder]
say("python", platform.python_version())
say("executable", sys.executable)
say("system", sys.platform)
say("machine", platform.machine())
say("libc", " ".join(platform.libc_ver()).strip())


def folder(name):
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    places = list(found.submodule_search_locations or []) if found else []
    return places[0] if places else ""


say("package", folder("streamsan"))
torch = folder("torch")
try:
    version = runpy.run_path(torch + "/version.py") if torch else {}
except (OSError, SyntaxError, ImportError):
    # A folder called torch without it is no torch.
    version, torch = {}, ""
say("torch_folder", torch)
say("torch", version.get("__version__", ""))
say("torch_cuda", version.get("cuda"))
say("torch_hip", version.get("hip"))
