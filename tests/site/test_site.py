"""The site as it is built: its links lead somewhere, its pages load without an error, and its search finds.

Built into a folder of its own, or taken from ``PDMP_SITE``. In Chromium, if there is one, over a local server.
"""

import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from tests.site.pages import blocks

pytest.importorskip("sphinx")
pytest.importorskip("pydata_sphinx_theme")

pytestmark = [pytest.mark.exact, pytest.mark.slow]
ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --dump-dom"
)
#: What the theme itself tells the console on every page.
THEME = ("[PST]", "Got invalid theme mode", "Changed to", "active link")
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    if "PDMP_SITE" in os.environ:
        return pathlib.Path(os.environ["PDMP_SITE"])
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(folder)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder


class Links(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.images = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.images += [found] if tag == "img" else []
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [found[name] for name in ("href", "src") if found.get(name)]


def test_every_link_leads_somewhere(site):
    files = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    pages = {page.relative_to(site).as_posix(): Links(page.read_text(encoding="utf-8")) for page in files}
    assert len(pages) > 100
    broken = []
    for name, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or link.startswith(("//", "data:")):
                continue
            target, anchor = urldefrag(urljoin(name, link))
            target = unquote(target.partition("?")[0]) or name
            if not (site / target).exists():
                broken.append(f"{name}: {link}")
            elif name.startswith("_modules/"):
                continue  # back from the source: to the page, if not to the name on it
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                broken.append(f"{name}: {link}")
    assert not broken, "\n".join(broken[:20])


def test_nothing_is_fetched_from_elsewhere(site):
    """Neither a script, nor a style sheet, nor a picture."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(
            r'(?:<script[^>]*src|<img[^>]*src|<link[^>]*stylesheet[^>]*href)="https?://[^"]*"', text
        ), page


def test_every_image_is_described(site):
    """In words of its own, no name of a file; but small ones of the gallery, whose title stands below."""
    seen = 0
    for page in site.rglob("*.html"):
        if {"_static", "_modules"} & set(page.relative_to(site).parts):
            continue
        for image in Links(page.read_text(encoding="utf-8")).images:
            if "_static/" in image["src"]:
                continue  # of the theme
            words = (image.get("alt") or "").split()
            seen += len(words) > 0
            assert "thumb" in image["src"] or len(words) >= 6, (page, image)
            if image["src"].endswith(".png") and "thumb" not in image["src"]:
                assert "width: min(100%" in image["style"], (page, image)
    assert seen > 50


def test_a_page_of_start_can_be_downloaded_as_a_notebook(site):
    """Its cells have the code of the page, in its order, and nothing that leads nowhere."""
    for page in ("index", "gradient", "table", "teaching", "pymc", "jax", "stan", "paper", "scikit_learn"):
        (link,) = re.findall(r'href="([^"]+\.ipynb)"', (site / "start" / f"{page}.html").read_text(encoding="utf-8"))
        cells = json.loads((site / "start" / link).read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        wanted = [
            ("%%sh\n" if block.language == "sh" else "") + block.text.strip()
            for block in blocks(ROOT / "docs" / "start" / f"{page}.md")
            if block.language in ("python", "sh")
        ]
        assert code == wanted and any("pdmp" in text for text in code)
        text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        assert text.startswith("# ") and len(text) > 200 and not re.search(r"\]\((?!https?:)|<!--|\{toctree\}", text)


def test_every_page_of_the_reference_leads_to_others(site):
    pages = list((site / "reference" / "generated").glob("*.html"))
    missing = [
        page.name for page in pages if ">See also<" not in page.read_text(encoding="utf-8").replace("Also", "also")
    ]
    assert len(pages) > 240 and not missing, missing


def test_films_are_still_where_no_motion_is_wanted(site):
    for name, films in (("index", 4), ("ideas/index", 4), ("ideas/thinning", 1)):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        stills = re.findall(r'<source media="\(prefers-reduced-motion: reduce\)" srcset="([^"]*\.png)" /><img', text)
        assert len(stills) == text.count('.gif"') == films
        assert all((site / name).parent.joinpath(still).resolve().is_file() for still in stills)


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def loaded(url, folder, milliseconds=8_000):
    """The page's DOM after its scripts, which have this time of the browser's clock, and what its console has said."""
    options = [*OPTIONS.split(), f"--virtual-time-budget={milliseconds}", f"--user-data-dir={folder}"]
    done = subprocess.run([CHROMIUM, *options, url], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1_000:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, [line for line in said if not any(text in line for text in THEME)]


@browser
@pytest.mark.parametrize(
    "page", ["index", "start/index", "ideas/index", "choose/index", "reference/index", "evidence/papers"]
)
def test_a_page_loads_without_an_error(page, address, tmp_path):
    dom, console = loaded(f"{address}/{page}.html", tmp_path)
    assert "<h1>" in dom and not console, console


@browser
def test_the_search_finds(address, tmp_path):
    dom, console = loaded(f"{address}/search.html?q=boomerang", tmp_path)
    assert "pdmp.Boomerang" in re.sub("<[^>]*>", "", dom.partition('id="search-results"')[2]) and not console


#: Asks each page in turn, in a frame as wide as a phone, whether it can be scrolled sideways.
PHONE = """<!DOCTYPE html><title>phone</title><pre id="found"></pre><script>
const pages = {pages}, frame = document.createElement("iframe");
frame.width = 390; frame.height = 800; document.body.append(frame);
let k = 0;
frame.onload = () => setTimeout(() => {{
  const root = frame.contentDocument.documentElement;
  found.textContent += `${{pages[k]}} ${{root.scrollWidth}} ${{root.clientWidth}}\n`;
  if (++k < pages.length) frame.src = pages[k];
}}, 50);
frame.src = pages[0];
</script>"""


@browser
def test_no_page_scrolls_sideways_on_a_phone(site, address, tmp_path):
    """Wide tables, pictures and code scroll in boxes of their own; and no page says an error."""
    names = sorted(p.relative_to(site).as_posix() for p in site.rglob("*.html"))
    names = [n for n in names if not n.startswith(("_", "reference/generated", "phone", "search", "genindex", "py-"))]
    page = site / "phone.html"
    page.write_text(PHONE.format(pages=json.dumps(names)), encoding="utf-8")
    try:
        dom, console = loaded(f"{address}/phone.html", tmp_path, 60_000)
    finally:
        page.unlink()
    found = re.findall(r"^(?:<.*>)?(\S+\.html) (\d+) (\d+)$", dom, re.MULTILINE)
    assert [name for name, _, _ in found] == names and len(names) > 70
    wide = [line for line in found if int(line[1]) > int(line[2]) + 1 or int(line[2]) > 390]
    assert not wide, wide
    assert not console, console[:10]
