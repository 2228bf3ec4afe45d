"""Installs what the tests of the HTML report drive: Playwright, if there is a Chromium to be driven.

With `--chromium` Debian's Chromium is installed first, if it is missing; that takes root and is for CI.
"""

from __future__ import annotations

import importlib.metadata
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


def main() -> None:
    if "--chromium" in sys.argv[1:] and not has_browser():
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        # Fonts are only recommended by it; without any, text has no width.
        packages = ["chromium", "fonts-dejavu-core"]
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    if not has_browser():
        print("no Chromium here: the tests of the HTML report will be skipped")
    elif not has_playwright():
        # It brings no browser: that is a command of its own, which is not needed.
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", f"playwright=={PLAYWRIGHT}"], check=True
        )


if __name__ == "__main__":
    main()
