"""Installs what the tests of the HTML report drive.

Without an argument: Playwright in this environment, if there is a Chromium to be driven.
`--chromium`: Debian's Chromium, if there is none. That takes root and is for CI.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys

PLAYWRIGHT = "1.65.2"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def has_browser() -> bool:
    return any(map(shutil.which, BROWSERS))


def has_playwright() -> bool:
    try:
        return importlib.metadata.version("playwright") == PLAYWRIGHT
    except importlib.metadata.PackageNotFoundError:
        return False


def install_chromium() -> None:
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    # Fonts are only recommended by it; without any, text has no width.
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    if "--chromium" in sys.argv[1:]:
        if has_browser():
            return
        if os.geteuid() == 0 and shutil.which("apt-get"):
            install_chromium()
        else:
            print("no Chromium here, and only root can install it with apt-get: its tests will be skipped")
    elif not has_browser():
        print("no Chromium here: the tests of the HTML report will be skipped")
    elif not has_playwright():
        # It brings no browser: that is a command of its own, which is not needed.
        command = [sys.executable, "-m", "pip", "install", "--quiet", f"playwright=={PLAYWRIGHT}"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
