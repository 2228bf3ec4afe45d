"""The HTML report in a real browser: headless Chromium, driven through Playwright.

The traces are those of real programs on the virtual device. Without Chromium, Playwright or torch the tests
are skipped; `scripts/ensure_browser.py` installs the first two.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import ready_torch

EXAMPLES = Path(__file__).parents[2] / "examples"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium here: scripts/ensure_browser.py", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: scripts/ensure_browser.py")
pytest.importorskip("torch")

# Two streams that take turns, and in each turn an unordered read: many operations, one finding.
LONG = """
import torch
side = torch.cuda.Stream()
x = torch.zeros(8, device="cuda")
torch.cuda.synchronize()
for turn in range(4000):
    x.add_(1)
    if turn != 2500:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.mul_(2)
    torch.cuda.current_stream().wait_stream(side)
"""

# Names that would be markup if they were not escaped.
HOSTILE = """
import torch, streamsan
side = torch.cuda.Stream()
streamsan.name(side, '</script><img src=x onerror=alert(1)>')
x = torch.zeros(8, device="cuda")
streamsan.name(x, '"><svg onload=alert(2)>\u202e\x1b[31m')
with torch.cuda.stream(side):
    x.add_(1)  # </pre><script>alert(3)</script> \u202e and "quotes" '%s'
""" % ("long " * 2000)


def streamsan(*arguments, statuses=(0,), command=ready_torch.PLAIN):
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode in statuses, done.stderr
    return done.stdout


def recorded(program, folder):
    trace = folder / f"{program.parent.name}-{program.stem}.sstrace"
    run = ("run", "--device", "virtual", "--no-check", "--force", "-o", trace, program)
    streamsan(*run, command=ready_torch.command())
    return trace


def written(traces, page):
    streamsan("check", *traces, "-o", page, "--force", statuses=(0, 1))
    return page


def program(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def report(folder):
    """Four programs with different findings on one page."""
    names = ("cast", "checkpoint_staging", "activation_offload", "offloaded_weights")
    return written([recorded(EXAMPLES / name / "bad.py", folder) for name in names], folder / "report.html")


@pytest.fixture(scope="module")
def long_report(folder):
    return written([recorded(program(folder, "long/run.py", LONG), folder)], folder / "long.html")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a page; at the end there must have been no message, no error, no dialog and no request."""
    contexts, complaints = [], []

    def open_page(path, anchor="", **settings):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda request: request.url.startswith(path.as_uri()) or complaints.append(request.url)
        )
        page.goto(path.as_uri() + anchor)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def ids(page):
    return page.eval_on_selector_all(".finding", "all => all.map(one => one.id)")


def shown(page):
    return page.eval_on_selector_all(".finding", "all => all.filter(one => !one.hidden).map(one => one.id)")


def view(page, canvas=0):
    text = page.eval_on_selector_all("canvas", f"all => all[{canvas}].dataset.view || ''")
    return tuple(map(float, text.split())) if text else None


def test_the_first_finding_is_open_and_says_what_to_do(report, visit):
    page = visit(report)
    first = page.locator("#F1")
    assert first.get_attribute("open") is not None
    assert page.locator(".finding[open]").count() == 1
    text = first.inner_text()
    for words in (
        "unordered read-after-write",
        "(1) wrote",
        "(2) reads",
        "missing edge",
        "What to do",
        "bad.py:34",
    ):
        assert words in text
    assert first.locator("svg .missing").count() == 1
    # What is wrong and what to do are on the first screen.
    for part in ("h1", "#F1 .head", "#F1 .codes", "#F1 .fix .new"):
        assert page.locator(part).first.bounding_box()["y"] < 900, part


def test_every_finding_is_reached_by_its_anchor_and_by_key(report, visit):
    page = visit(report)
    every = ids(page)
    assert every == [f"F{number}" for number in range(1, len(every) + 1)] and len(every) >= 6
    for name in every:
        page.keyboard.press("j")
        assert page.locator(".finding.current").get_attribute("id") == name
        page.keyboard.press("o")
    page.keyboard.press("k")
    assert page.locator(".finding.current").get_attribute("id") == every[-2]
    for name in reversed(every):
        page.evaluate(
            "name => { document.querySelectorAll('.finding').forEach(one => { one.open = false; }); location.hash = name; }",
            name,
        )
        page.wait_for_function("name => document.getElementById(name).open", arg=name)
        page.wait_for_function(
            "name => { const { top } = document.getElementById(name).getBoundingClientRect(); return top >= 0 && top < innerHeight; }",
            arg=name,
        )
    there = visit(report, "#F3")
    assert there.locator(".finding.current[open]").get_attribute("id") == "F3"


def test_filters_and_order(report, visit):
    page = visit(report)
    every = ids(page)
    page.select_option("#code", "SS301")
    assert 0 < len(shown(page)) < len(every)
    assert all("SS301" in page.locator(f"#{name} .level").inner_text() for name in shown(page))
    assert page.locator("#shown").inner_text() == f"{len(shown(page))} of {len(every)}"
    page.select_option("#code", "")
    page.select_option(
        "#file", label=next(o for o in page.locator("#file option").all_inner_texts() if "activation" in o)
    )
    assert all("activation_offload" in page.locator(f"#{name} .where").inner_text() for name in shown(page))
    page.select_option("#file", "")
    page.keyboard.press("/")
    page.keyboard.type("Write-After-read cast")
    assert shown(page) == ["F2"]
    page.keyboard.press("Control+a")
    page.keyboard.type("nothing like this")
    assert shown(page) == []
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") != "filter"
    # A link to a finding that is filtered away shows it all the same.
    page.evaluate("location.hash = '#F3'")
    page.wait_for_function("!document.getElementById('F3').hidden")
    assert shown(page) == every
    page.select_option("#sort", "count")
    counts = page.eval_on_selector_all(".finding", "all => all.map(one => Number(one.dataset.count))")
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 1
    page.select_option("#sort", "first")
    firsts = page.eval_on_selector_all(".finding", "all => all.map(one => Number(one.dataset.first))")
    assert firsts == sorted(firsts)
    page.select_option("#sort", "given")
    assert ids(page) == every


def test_help_theme_and_copying(report, visit):
    page = visit(report, color_scheme="light")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    dark = page.evaluate(background)
    assert light == "rgb(255, 255, 255)" and dark != light
    page.click("#theme")
    assert page.evaluate(background) == light
    code = page.locator("#F1 .copier").get_attribute("data-copy")
    assert ".wait_stream(" in code
    page.click("#F1 .copier")
    page.wait_for_function("document.querySelector('#F1 .copier').textContent === 'Copied'")
    page.focus("#filter")
    page.keyboard.press("Control+v")
    assert page.input_value("#filter") == code


def test_the_timeline_zooms_and_moves(report, visit):
    page = visit(report)
    canvas = page.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    page.wait_for_function("Number(document.querySelector('canvas').dataset.drawn) > 0")
    tools = page.locator(".tools").first
    tools.get_by_role("button", name="All").click()
    whole = view(page)
    tools.get_by_label("zoom in").click()
    closer = view(page)
    assert closer[1] - closer[0] == pytest.approx((whole[1] - whole[0]) / 2, abs=0.1)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 70)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function(
        "before => document.querySelector('canvas').dataset.view !== before",
        arg=f"{closer[0]:.2f} {closer[1]:.2f}",
    )
    by_wheel = view(page)
    assert by_wheel[1] - by_wheel[0] < closer[1] - closer[0]
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7 - 200, box["y"] + 70, steps=4)
    page.mouse.up()
    assert view(page)[0] > by_wheel[0]
    canvas.focus()
    page.keyboard.press("0")
    assert view(page) == whole
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert view(page)[0] > closer[0]
    # The pointer over an operation says what it is.
    page.keyboard.press("0")
    page.locator("#F1 [data-show]").click()
    page.wait_for_timeout(100)
    low, high = view(page)
    assert high - low < whole[1] - whole[0]
    pin = page.evaluate("JSON.parse(document.querySelector('.timeline script').textContent).pins[0].marks[1]")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x = 150 + (pin[1] + 0.5 - low) / (high - low) * (box["width"] - 2 - 150)
    page.mouse.move(box["x"] + x, box["y"] + 40 + 26 * pin[2] + 13)
    assert "aten::mm" in page.locator(".detail").first.inner_text()


def test_tens_of_thousands_of_operations_stay_fluid(long_report, visit):
    assert long_report.stat().st_size < 2_000_000
    page = visit(long_report)
    page.wait_for_function("Number(document.querySelector('canvas').dataset.drawn) > 0")
    data = page.evaluate(
        "(() => { const d = JSON.parse(document.querySelector('.timeline script').textContent); return [d.total, d.complete]; })()"
    )
    assert data[0] >= 20_000 and data[1]
    page.locator("canvas").scroll_into_view_if_needed()
    # From all to a few operations and back, each step in a frame of its own.
    milliseconds = page.evaluate(
        """async () => {
          const canvas = document.querySelector("canvas");
          canvas.focus();
          const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          const times = [];
          for (const key of [..."++++++++++++", ..."------------"]) {
            for (const each of [key, "ArrowRight", "ArrowLeft"]) {
              press(each);
              await new Promise(requestAnimationFrame);
              const begin = performance.now();
              await new Promise(requestAnimationFrame);
              times.push(performance.now() - begin);
            }
          }
          return times.sort((a, b) => a - b);
        }"""
    )
    # 17 ms on an idle machine; a loaded one may take a few frames for one.
    assert milliseconds[len(milliseconds) // 2] < 60, milliseconds


def test_it_reads_without_scripts(report, visit):
    page = visit(report, java_script_enabled=False)
    assert page.locator("#F1").inner_text().count("(1)") >= 1
    assert page.locator("#F1 svg.drawing").is_visible()
    assert page.locator("noscript svg").first.is_visible()
    assert page.locator(".filters, canvas, #theme, .copier").locator("visible=true").count() == 0
    page.locator("#F2 > summary").click()
    assert page.locator("#F2 .codes").is_visible()


def test_it_prints_with_everything_unfolded(report, visit, tmp_path):
    page = visit(report)
    page.evaluate(
        "addEventListener('beforeprint', () => { window.folded = document.querySelectorAll('details:not([open])').length; })"
    )
    paper = page.pdf(format="A4", path=tmp_path / "report.pdf")
    assert paper.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", paper)) >= 4
    assert page.evaluate("window.folded") == 0
    assert page.locator(".finding[open]").count() == 1, "afterwards it is as it was"


@pytest.mark.parametrize("width", [360, 400, 768])
def test_narrow_windows_do_not_scroll_sideways(report, visit, width):
    page = visit(report, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(report, visit, scheme):
    page = visit(report, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    weak = page.evaluate(
        """() => {
          const parts = (text) => text.match(/[\\d.]+/g).map(Number);
          const light = ([r, g, b]) => {
            const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * x + 0.7152 * y + 0.0722 * z;
          };
          const behind = (element) => {
            for (let at = element; at; at = at.parentElement) {
              const color = parts(getComputedStyle(at).backgroundColor);
              if (color.length < 4 || color[3] > 0) return color;
            }
          };
          const weak = [];
          for (const element of document.querySelectorAll("body *")) {
            const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
            if (!own || !element.checkVisibility() || /^(SCRIPT|NOSCRIPT|OPTION|TITLE)$/i.test(element.tagName)) continue;
            const style = getComputedStyle(element);
            const svg = element.closest("svg");
            const shape = svg && element.classList.contains("in") && element.parentElement.querySelector("rect");
            const front = parts(svg ? style.fill : style.color);
            const back = shape ? parts(getComputedStyle(shape).fill) : behind(svg ? svg.parentElement : element);
            const [one, other] = [light(front), light(back)].sort((a, b) => b - a);
            const ratio = (one + 0.05) / (other + 0.05);
            if (ratio < 4.5) weak.push([element.className.baseVal ?? element.className, element.textContent.slice(0, 30), ratio]);
          }
          return weak;
        }"""
    )
    assert weak == []


def test_hostile_names_stay_text(folder, visit):
    trace = recorded(program(folder, 'hostile/it\'s <b>"bad".py', HOSTILE), folder)
    page = visit(written([trace], folder / "hostile.html"))
    text = page.locator("#F1").inner_text()
    assert "</script><img src=x onerror=alert(1)>" in text
    assert "<script>alert(3)</script>" in text
    assert 'it\'s <b>"bad".py' in text
    assert "\u202e" not in text and "\x1b" not in text
    assert page.locator("img, b b, [onload], [onerror]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
