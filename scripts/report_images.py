"""Makes the pictures of the HTML report in docs/images: `.venv/bin/python scripts/report_images.py`.

Needs streamsan and torch in the environment, Chromium, and Playwright (`scripts/ensure_browser.py`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"


def page_of(program: str, folder: Path) -> Path:
    trace, page = folder / "run.sstrace", folder / "report.html"
    streamsan = [sys.executable, "-m", "streamsan"]
    run = [*streamsan, "run", "--device", "virtual", "--no-check", "-o", str(trace), program]
    subprocess.run(run, cwd=ROOT, check=True)
    check = [*streamsan, "check", "--exit-zero", "-o", str(page), str(trace)]
    subprocess.run(check, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return page


def take(browser: Browser, page: Path, name: str, part: str = "", **settings: object) -> None:
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 940}, **settings})
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_function("Number(document.querySelector('canvas').dataset.drawn) > 0")
    target = IMAGES / f"{name}.png"
    if part:
        tab.locator(part).first.screenshot(path=target)
    else:
        tab.screenshot(path=target)
    context.close()
    print(target.relative_to(ROOT), target.stat().st_size, "bytes")


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        page = page_of("examples/cast/bad.py", folder)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        take(browser, page, "report-light", color_scheme="light")
        take(browser, page, "report-dark", color_scheme="dark")
        take(browser, page, "report-narrow", viewport={"width": 400, "height": 1100})
        take(browser, page, "report-timeline", "#timeline")
        browser.close()


if __name__ == "__main__":
    main()
