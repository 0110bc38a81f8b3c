"""The site in a real browser, headless Chromium driven by its ChromeDriver, opened from file:// as a reader would.

Usage: browser_test.py TOOL [FOLDER_FOR_SCREENSHOTS]. Exit 77, with the reason, where there is no Chromium.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any
from urllib.parse import unquote, urlsplit

import synthetic
import webdriver

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
SHAPES = [(1280, 900, False), (390, 844, False), (1280, 900, True), (390, 844, True)]
MARKUP = "</script><script>document.title='hurt'</script><img src=x onerror=\"document.title='hurt'\">&'\u0001"

# For every text on the page: its contrast to the first background behind it, by WCAG's formula.
CONTRAST = """
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const channels = (color) => color.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const color = channels(getComputedStyle(e).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest('script, title, desc')) continue;
  const style = getComputedStyle(element);
  const color = channels(element.closest('svg') ? style.fill : style.color);
  const [a, b] = [luminance(color), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) poor.push(`${contrast.toFixed(2)}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
}
return poor.slice(0, 5);
"""

# What a reader without sight, or with a keyboard alone, stumbles over.
ACCESSIBILITY = """
const bad = [];
const say = (what, element) => bad.push(`${what}: ${element.outerHTML.slice(0, 90)}`);
const named = (e) => e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.title;
if (!document.documentElement.lang) bad.push('no language');
if (!document.title) bad.push('no title');
if (document.querySelectorAll('h1').length !== 1) bad.push('not one h1');
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) say('a level of headings is left out', heading);
  level = own;
}
for (const e of document.querySelectorAll('a[href], button, input, select')) if (!named(e)) say('no name', e);
for (const table of document.querySelectorAll('table')) {
  if (!table.caption) say('no caption', table);
  for (const th of table.querySelectorAll('th')) if (!th.scope) say('no scope', th);
  if (!table.closest('.scroll, section, details')) say('cannot be scrolled', table);
}
for (const e of document.querySelectorAll('.scroll, pre')) if (e.tabIndex !== 0) say('cannot be scrolled by keyboard', e);
for (const svg of document.querySelectorAll('svg')) {
  const ids = (svg.getAttribute('aria-labelledby') || '').split(' ');
  if (svg.getAttribute('role') !== 'img' || ids.length !== 2 || !ids.every((id) => document.getElementById(id)?.textContent))
    say('no title and description', svg);
}
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) bad.push(`id twice: ${id}`);
for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) say('changes the order of the keyboard', e);
for (const a of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(a.hash.slice(1))) say('leads nowhere', a);
if (document.documentElement.scrollWidth > innerWidth) bad.push(`wider than the window: ${document.documentElement.scrollWidth}`);
return bad.slice(0, 8);
"""


class Check:
    def __init__(self, browser: webdriver.Browser, site: pathlib.Path) -> None:
        self.browser = browser
        self.site = site
        self.failures: list[str] = []

    def that(self, holds: Any, what: str) -> None:
        if not holds:
            self.failures.append(what)
            print("FAILED:", what, flush=True)

    def equal(self, got: Any, expected: Any, what: str) -> None:
        self.that(got == expected, f"{what}: {got!r}, not {expected!r}")

    def open(self, page: str) -> None:
        self.browser.open((self.site / page).as_uri() if "#" not in page else self.site.as_uri() + "/" + page)

    def quiet(self, what: str) -> None:
        """No message on the console, and no request but for files."""
        for entry in self.browser.log("browser"):
            self.that(False, f"{what}: console: {entry['message']}")
        for entry in self.browser.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            self.that(url.startswith(("file:", "data:")), f"{what}: asks the network for {url}")


def make_site(tool: str, folder: pathlib.Path) -> pathlib.Path:
    records, site = folder / "records", folder / "site"
    for number in range(3):
        synthetic.save(records / f"h200-{number}.json",
                       synthetic.record(number, gpu="NVIDIA H200", day=40 + number, ratio=1.1 - 0.01 * number, calls=6))  # fmt: skip
        synthetic.save(records / f"epyc-{number}.json", synthetic.record(10 + number, day=30 + number, calls=6))
    synthetic.save(records / "in-place.json",
                   synthetic.record(20, gpu="NVIDIA H200", calls=6, in_place_of="kv_cache_update"))  # fmt: skip
    dirty = synthetic.record(21, calls=6, day=50)
    dirty["environment"]["dirty"] = True
    synthetic.save(records / "dirty.json", dirty)
    for number, gpu in enumerate((None, "NVIDIA H200", "NVIDIA H100")):
        synthetic.save(records / f"models-{number}.json",
                       synthetic.record(25 + number, gpu=gpu, calls=6, suite_file=ROOT / "suites/models.json",
                                        ops=synthetic.operators() - {"rope_2d_forward"}))  # fmt: skip
    # Two forward passes have a record of the main suite, and rope_2d's has none at all.
    synthetic.save(records / "forward.json",
                   synthetic.record(31, gpu="NVIDIA H200", calls=6, suite_file=synthetic.FORWARD_SUITE_FILE,
                                    ops={"rope_apply_forward", "kv_cache_update_forward"}))  # fmt: skip
    own = folder / "own.json"
    own.write_text(json.dumps({"suite": "own", "cases": [{"op": "rope_apply", "name": "mine", "dims": {
        "batch_size": 1, "num_heads": 40, "num_kv_heads": 10, "seq_len": 1536, "head_dim": 128}}]}))  # fmt: skip
    synthetic.save(records / "own.json", synthetic.record(30, gpu="NVIDIA H200", calls=6, suite_file=own))
    hostile = synthetic.record(22, gpu="NVIDIA H100 " + MARKUP, calls=6, day=51)
    hostile["cases"][0]["name"] = MARKUP
    hostile["summary"] = synthetic.summary(hostile["cases"])
    hostile["environment"]["compiler"] = MARKUP
    synthetic.save(records / "hostile.json", hostile)
    command = [tool, "report", "--records", str(records), "--records", str(ROOT / "records/reported"), "--out", str(site)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return site


def check_pages(check: Check, screenshots: pathlib.Path | None) -> None:
    pages = sorted(str(path.relative_to(check.site)) for path in check.site.rglob("*.html"))
    check.that(len(pages) >= 18, f"only {len(pages)} pages")
    for page in pages:
        for width, height, dark in SHAPES:
            shape = f"{page} at {width}{' dark' if dark else ''}"
            check.browser.shape(width, height, dark)
            check.open(page)
            check.browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
            for what in check.browser.run(ACCESSIBILITY):
                check.that(False, f"{shape}: {what}")
            for what in check.browser.run(CONTRAST):
                check.that(False, f"{shape}: contrast {what}")
            check.that("hurt" not in check.browser.run("return document.title"), f"{shape}: markup of a record ran")
            if screenshots is not None and ("records/" not in page or "hostile" in page):
                name = f"{page.removesuffix('.html').replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png"
                check.browser.picture(str(screenshots / name))
        check.quiet(page)
        check.browser.run("return JSON.parse(document.getElementById('data')?.textContent ?? '{}')")


def check_links(check: Check) -> None:
    for page in sorted(check.site.rglob("*.html")):
        check.open(str(page.relative_to(check.site)))
        links = check.browser.run("return [...document.links].map((a) => a.href)")
        for link in links:
            path = pathlib.Path(unquote(urlsplit(link).path))
            check.that(path.exists(), f"{page.name}: leads nowhere: {link}")


def check_search(check: Check) -> None:
    browser = check.browser
    found = "return [...document.querySelectorAll('#found li')].map((e) => e.textContent)"
    browser.shape(1280, 900)
    check.open("index.html")
    browser.press("/")
    check.equal(browser.run("return document.activeElement.id"), "search", "the slash goes to the search")
    browser.press(*"64 heads S = 2048")
    results = browser.run(found)
    check.that(results and all("Hq=64" in r and "S=2048" in r for r in results), f"64 heads, S=2048: {results[:3]}")
    check.that(any("NVIDIA H200" in r and " us" in r for r in results), f"no time and hardware in {results[:3]}")
    check.equal(browser.run("return document.getElementById('search').getAttribute('aria-expanded')"), "true", "expanded")
    browser.press("ArrowDown")
    browser.press("ArrowUp")
    browser.press("Enter")
    address = browser.run("return location.href")
    check.that("operators/" in address and "#b" in address, f"Enter leads to {address}")
    check.that(browser.run("return document.querySelector('tr.target')?.textContent.includes('2048')"), "the case is marked")
    check.that(browser.run("return document.querySelector('tr.target').closest('details').open"), "its details are open")
    browser.press("k", held="Control")
    check.equal(browser.run("return document.activeElement.id"), "search", "Control K goes to the search")
    browser.press(*"23 heads S=2048")
    results = browser.run(found)
    check.that(results and "Hq=24" in results[0] and "S=2048" in results[0], f"nearest to 23 heads, S=2048: {results[:3]}")
    check.that("nearest" in browser.run("return document.getElementById('found-count').textContent"), "it says nearest")
    browser.press("Escape")
    check.equal(browser.run("return document.querySelector('.results').hidden"), True, "Escape closes the results")
    browser.run("document.getElementById('search').value = ''")
    browser.press(*"zzzz")
    check.equal(browser.run(found), [], "zzzz")
    check.quiet("search")


def check_questions(check: Check) -> None:
    """What people type, what they must see first, and where Enter leads them."""
    first = "return document.querySelector('#found li')?.textContent ?? ''"
    for question, part, address, row in (
        ("which is the fastest for 24 heads, S = 2048?", "Hq=24", "operators/rope_apply.html#b", "starcoder2-3b"),
        ("24 heads 2,048 positions", "NVIDIA H", "operators/rope_apply.html#b", "starcoder2-3b"),
        ("starcoder2 h200", "NVIDIA H200", "operators/rope_apply.html#b", "starcoder2-3b"),
        ("40 heads S=1536", "NVIDIA H200", "records/own.html#e0c0", "mine"),
        ("B200", "NVIDIA B200", "", ""),
        ("reported b200 rope_2d", "not reproduced", "operators/rope_2d.html#reported", ""),
        ("make", "make bench", "index.html#run-title", ""),
        ("contribute a record", "Make a record", "challenges.html#make-title", ""),
        ("trust", "Tiers of trust", "rules.html#tiers", ""),
    ):
        check.open("index.html")
        check.browser.press("/")
        check.browser.press(*question)
        result = check.browser.run(first)
        check.that(part in result, f"{question}: first is '{result}'")
        check.browser.press("Enter")
        check.that(address in check.browser.run("return location.href"), f"{question}: leads to another page")
        if row:
            target = check.browser.run("return document.querySelector('tr.target')?.innerText ?? ''")
            check.that(row in target, f"{question}: leads to '{target}'")
    check.open("operators/rope_apply.html")
    fastest = json.loads((check.site / "operators/rope_apply.json").read_text())["boards"]
    models = next(board for board in fastest if board["suite"] == "models")
    times = [next(c["latency_us"] for c in d["cases"] if c["name"] == "starcoder2-3b") for d in models["details"]]
    check.that(len(times) == 3 and times[0] < times[-1], f"the fastest hardware is not first: {times}")
    check.quiet("questions")


def check_narrow(check: Check) -> None:
    """A telephone shows each operator's ratio and hardware, or that it has no record, and each case's sizes and ratio,
    without being moved."""
    check.browser.shape(390, 844)
    visible = """
        return [...document.querySelectorAll(arguments[0])].map((row) => {
          const told = row.querySelector(row.dataset.hardware === '' ? '.open' : '.strong').getBoundingClientRect();
          return [told.width > 0 && told.left >= 0 && told.right <= innerWidth,
                  row.innerText.includes(row.dataset.hardware === '' ? 'no record yet'
                                         : row.dataset.hardware?.slice(0, 11) ?? 'S=')];
        })"""
    for page, rows in (("index.html", "table.best tbody tr"), ("operators/rope_apply.html", "table.cases tbody tr")):
        check.open(page)
        check.browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
        seen = check.browser.run(visible, rows)
        check.that(seen and all(shown and named for shown, named in seen), f"{page} at 390: {seen}")
    check.browser.shape(1280, 900)


def check_filter(check: Check) -> None:
    rows = "return [...document.querySelectorAll('table.best tbody tr')].filter((r) => !r.hidden).map((r) => r.innerText)"
    choose = """const s = document.getElementById(arguments[0]); s.value = arguments[1];
                s.dispatchEvent(new Event('change', {bubbles: true}))"""
    check.open("index.html")
    everything = len(check.browser.run(rows))
    check.browser.run(choose, "filter-row", "rope_apply")
    shown = check.browser.run(rows)
    check.that(0 < len(shown) < everything and all("rope_apply" in r for r in shown), f"filter by operator: {shown}")
    check.that(any("rope_apply_forward" in r for r in shown), f"the filter keeps both passes: {shown}")
    check.browser.run(choose, "filter-hardware", "NVIDIA H200")
    shown = check.browser.run(rows)
    check.that(len(shown) == 2 and all("H200" in r for r in shown), f"filter by hardware: {shown}")
    check.browser.run(choose, "filter-pass", "forward")
    shown = check.browser.run(rows)
    check.that(len(shown) == 1 and "rope_apply_forward" in shown[0], f"filter by pass: {shown}")
    check.browser.run(choose, "filter-row", "")
    check.browser.run(choose, "filter-pass", "")
    check.browser.run(choose, "filter-hardware", "")
    check.equal(len(check.browser.run(rows)), everything, "all rows again")
    check.quiet("filter")


def check_passes(check: Check) -> None:
    """Both passes of an operator: side by side wherever operators are listed, each named on the other's page, and a page
    that reads well whether or not there is a record."""
    check.browser.shape(1280, 900)
    check.open("index.html")
    for cells in ("table.best tbody tr", "ul.passes li"):
        order = check.browser.run(f"return [...document.querySelectorAll('{cells}')].map((e) => [e.dataset.row, e.dataset.pass])")
        places = {row: [pair[1] for pair in order if pair[0] == row] for row, _ in order}
        check.equal(order, [[row, one] for row, passes in places.items() for one in sorted(passes)], f"order of {cells}")
        check.that(len(places) == 5 and all(set(p) == {"backward", "forward"} for p in places.values()), f"{cells}: {places}")
    tops = check.browser.run("return [...document.querySelectorAll('ul.passes li')].map((e) => e.getBoundingClientRect().top)")
    check.equal(tops[0::2], tops[1::2], "a backward pass and its forward pass share a line")
    for page, direction, other in (("rope_2d", "backward", "rope_2d_forward"), ("rope_2d_forward", "forward", "rope_2d"),
                                   ("rope_apply_forward", "forward", "rope_apply")):  # fmt: skip
        check.open(f"operators/{page}.html")
        check.equal(check.browser.run("return document.querySelector('h1').innerText"), f"{page} {direction} pass", "heading")
        check.that(f"{page}, {direction} pass" in check.browser.run("return document.title"), f"title of {page}")
        check.that(check.browser.run(f"return document.querySelector('main a[href=\"{other}.html\"]') !== null"),
                   f"{page} leads to {other}")  # fmt: skip
        empty = page == "rope_2d_forward"
        says = check.browser.run("return document.querySelector('main').innerText")
        check.equal("No complete record yet" in says, empty, f"{page} says that it has no record")
        check.equal(check.browser.run("return document.querySelector('#cases') === null"), empty, f"{page} without cases")
        suite = "sol-execbench-rope" + ("-forward" if direction == "forward" else "")
        check.that(f"bench --suite {suite} --op {page} " in says, f"{page}: the command that times it")
    check.open("challenges.html")
    heads = check.browser.run("return [...document.querySelectorAll('thead tr:last-child th')].map((e) => e.innerText)")
    check.equal(heads[:4] + heads[-4:], ["backward", "forward"] * 2 + ["backward", "backward\nin place", "forward",
                                                                      "forward\nin place"], "challenges")  # fmt: skip
    check.quiet("passes")


def check_sort(check: Check) -> None:
    values = """return [...document.querySelectorAll('#b0h0 tbody tr')].map((r) => Number(r.cells[3].dataset.value))"""
    header = "#b0h0 thead th:nth-child(4) button"
    check.open("operators/rotary_embedding.html")
    check.browser.click(header)
    up = check.browser.run(values)
    check.that(up == sorted(up) and len(up) == 16, f"ascending: {up}")
    check.browser.run(f"document.querySelector('{header}').focus()")
    check.browser.press("Enter")
    check.equal(check.browser.run(values), sorted(up, reverse=True), "descending, by the keyboard")
    sort = f"return document.querySelector('{header}').parentElement.getAttribute('aria-sort')"
    check.equal(check.browser.run(sort), "descending", "aria-sort")
    check.quiet("sort")


def check_selection(check: Check) -> None:
    check.open("operators/rotary_embedding.html")
    total = "return [...document.querySelector('#b0h0 tfoot tr').cells].map((c) => c.textContent)"
    whole = check.browser.run(total)
    check.browser.click("#b0h0 thead .pick input")
    check.equal(check.browser.run("return document.querySelectorAll('#b0h0 tbody .pick input:checked').length"), 0, "none")
    for row in (2, 5):
        check.browser.run(f"document.querySelector('#b0h0 tbody tr:nth-child({row}) .pick input').focus()")
        check.browser.press("Space")
    picked = check.browser.run(total)
    data = json.loads((check.site / "operators/rotary_embedding.json").read_text())
    cases = data["boards"][0]["details"][0]["cases"]
    expected = synthetic.geomean([cases[1]["latency_us"], cases[4]["latency_us"]])
    check.that(abs(float(picked[1]) - expected) < 0.002 * expected, f"aggregate of two cases: {picked[1]}, not {expected}")
    check.that("2 picked" in picked[0], f"the aggregate says {picked[0]}")
    check.browser.click("#b0h0 thead .pick input")
    check.equal(check.browser.run(total), whole, "the aggregate of all cases again")
    check.quiet("selection")


def check_keyboard(check: Check) -> None:
    """The tabulator reaches everything in the order of the page, beginning with the way past the navigation."""
    check.browser.shape(1280, 900)
    check.open("operators/rope_apply.html")
    check.browser.press("Tab")
    check.equal(check.browser.run("return document.activeElement.className"), "skip", "the first stop")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    check.that(check.browser.run(outline) != "none", "the stop is not seen")
    places = []
    for _ in range(25):
        check.browser.press("Tab")
        places.append(check.browser.run(
            "const all = [...document.querySelectorAll('*')]; return all.indexOf(document.activeElement)"))  # fmt: skip
    check.that(places == sorted(places) and len(set(places)) == len(places), f"the order of the stops: {places}")


def check_answers(check: Check) -> None:
    """What a newcomer asks: the fastest and on what, how to run it, how far from the limit."""
    check.browser.shape(1280, 900)
    check.open("index.html")
    page = check.browser.run("return document.body.innerText")
    for part in ("make bench", "NVIDIA H200", "reproducible", "limit"):
        check.that(part in page, f"the first page does not say {part}")
    check.browser.shape(1280, 900, media="print")
    check.that(check.browser.run("return getComputedStyle(document.querySelector('.search')).display") == "none", "printed")


def check_without_scripts(check: Check) -> None:
    check.browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    check.open("operators/rope_apply.html")
    check.browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    counts = check.browser.run("return ['#b3h0 tbody tr, table.cases tbody tr', 'svg', '.pick'].map((s) => document.querySelectorAll(s).length)")
    check.that(counts[0] >= 16 and counts[1] >= 4 and counts[2] == 0, f"without scripts: {counts}")


def main() -> int:
    reason = webdriver.missing()
    if reason:
        print("skipped:", reason)
        return SKIPPED
    screenshots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if screenshots is not None:
        screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        site = make_site(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))
        with webdriver.Browser(folder + "/profile") as browser:
            check = Check(browser, site)
            check_pages(check, screenshots)
            for one in (check_links, check_search, check_questions, check_narrow, check_filter, check_passes, check_sort, check_selection, check_keyboard,
                        check_answers, check_without_scripts):  # fmt: skip
                one(check)
    if not check.failures:
        print("every page opens without a message or a request; search, filters, sorting and picking work")
    return bool(check.failures)


if __name__ == "__main__":
    sys.exit(main())
