"""Installs torch if the running environment has none that streamsan can use."""

from __future__ import annotations

import json
import subprocess
import sys

TORCH = "torch==2.11.0"
CUDA_MAJOR = "13"

# Reads torch/version.py without importing torch, which would take seconds.
PROBE = """
import importlib.util, json, runpy, pathlib
spec = importlib.util.find_spec("torch")
found = None
if spec and spec.origin:
    version = runpy.run_path(str(pathlib.Path(spec.origin).with_name("version.py")))
    found = [version.get("cuda"), str(pathlib.Path(spec.origin).parent.parent)]
print(json.dumps(found))
"""


def suitable_torch(python: str) -> str | None:
    """Returns the folder that holds the CUDA 13 build of torch which `python` sees, or None."""
    done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else None
    if found and found[0] and found[0].split(".")[0] == CUDA_MAJOR:
        return str(found[1])
    return None


def main() -> None:
    if suitable_torch(sys.executable) is None:
        print(f"installing {TORCH}: 2.6 GB to download, 4.6 GB on disk", flush=True)
        # torch says so on every start if there is no numpy.
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", TORCH, "numpy"], check=True)
    if suitable_torch(sys.executable) is None:
        sys.exit(
            "the torch that was installed is not a CUDA 13 build; streamsan needs that one (Linux x86-64)"
        )


if __name__ == "__main__":
    main()
