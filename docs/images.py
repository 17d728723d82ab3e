"""The images of the built pages: wide enough for a phone, described in words, and at rest for who wants no motion.

A picture is shown at `NORMAL` pixels an inch where there is room, and at `LEAST` at least: one that is wider than the
page then scrolls in a box of its own, and a click opens it alone. Text of 7.5 points has 9 pixels at `LEAST`.
"""

import pathlib
import re
import shutil
from html import escape

from PIL import Image

NORMAL, LEAST = 110, 86  #: pixels an inch
PHONE = 362  #: pixels of a line of text on the narrowest screen that is thought of
DPI = 110  #: of files that do not say theirs: those of examples/papers
#: What the pictures of the gallery show; other pages say it where they have a picture.
GALLERY = {
    "01_overview": (
        "Four panels for each of two coefficients: its path in time, its marginal, ranks of four chains in a grey"
        " band, and an autocorrelation that falls to zero."
    ),
    "02_trajectory": (
        "A path of straight segments in the plane, dots where it bounces and squares where the velocity is drawn "
        "anew; beside it both coordinates against time."
    ),
    "03_elliptic_path": (
        "Two coordinates against time: waves between the events, with corners where the path bounces."
    ),
    "04_thinning": (
        "The shaded rate rises along each piece of path below a line, the bound; marks on the line are proposals,"
        " most of them accepted."
    ),
    "05_predicted_bound": (
        "A low shaded rate, and far above it the pieces of the predicted bound with proposals on them, most of "
        "them thinned."
    ),
    "06_marginals": "Two bell-shaped histograms of two chains, which lie on the black curve of the exact density.",
    "07_pairs": (
        "Histograms of three coefficients on the diagonal, clouds of draws with level sets below it, and "
        "correlations above it."
    ),
    "08_ranks_001": (
        "For each of two coordinates the ranks of three chains, step lines that stay within a grey band around 1."
    ),
    "08_ranks_002": (
        "For the first coordinate the ranks of two chains are all low and those of the third all high, far outside the "
        "grey band; for the second they are within it."
    ),
    "09_autocorrelation": (
        "Autocorrelations of two coordinates against the lag: both fall from 1, become negative, and end near 0."
    ),
    "10_event_rates": "Rates of bounces and of refreshments in four chains, with error bars around the mean of all.",
    "11_inclusion": "A bar for each of six coefficients: two are certainly in, two hardly ever, two near 0.4.",
    "12_comparison_001": (
        "Errors of the means against data passes on logarithmic axes: that of Zig-Zag falls to the end, those of "
        "SGLD and SGBD level off."
    ),
    "12_comparison_002": (
        "Paths of three samplers over level sets of the posterior, their marginals over a grey reference, and "
        "their errors against data passes."
    ),
    "13_tuning": (
        "Stein discrepancies against data passes spent: nine settings start, three go on, and one line is blue, "
        "the setting that was chosen."
    ),
    "14_reliability": (
        "Shares of right predictions by confidence, close to the dashed diagonal, over a histogram of the predictions."
    ),
    "15_rungs": (
        "Rejected swaps of the pairs of rungs in four chains, near one grey line; and a line that falls from the "
        "reference to the target, with bars for what nine tenths of the scans have."
    ),
}


def described(source: str) -> str:
    """What a picture of the gallery shows, or nothing."""
    found = re.search(r"sphx_glr_plot_(\w+?)(_\d{3})?\.png$", source)
    return (
        found and (GALLERY.get(found[1] + (found[2] or "")) or GALLERY.get(found[1])) or ""
    )


def width(path: pathlib.Path) -> float:
    """In inches."""
    with Image.open(path) as image:
        return image.width / image.info.get("dpi", (DPI, DPI))[0]


def improved(tag: str, path: pathlib.Path | None) -> str:
    """An `img` of HTML, with what it lacks."""
    source = re.search(r'\bsrc="([^"]*)"', tag)[1]
    if path is None or "thumb" in source:
        return tag
    if described(source):
        tag = re.sub(r'\balt="[^"]*"', lambda _: f'alt="{escape(described(source))}"', tag)
    if path.suffix == ".gif":  # its last frame is beside it, at rest
        still = re.sub(r"\.gif$", ".png", source)
        rest = f'<source media="(prefers-reduced-motion: reduce)" srcset="{still}" />'
        return f"<picture>{rest}{tag}</picture>"
    if path.suffix != ".png":
        return tag
    inches = width(path)
    style = f"width: min(100%, {NORMAL * inches:.0f}px)"
    if LEAST * inches <= PHONE:
        return tag.replace("<img ", f'<img style="{style}" ', 1)
    style += f"; min-width: {LEAST * inches:.0f}px; max-width: none"
    tag = tag.replace("<img ", f'<img style="{style}" ', 1)
    return f'<a class="scrolls" href="{source}">{tag}</a>'


def _page(app, pagename, templatename, context, doctree):
    """Every image of a page, and beside a film its last frame."""
    if "body" not in context:
        return
    folder = pathlib.Path(app.srcdir)
    paths = {name: folder / path for path, name in app.builder.images.items()}
    paths |= {path.name: path for path in (folder / "pictures" / "images").glob("*.png")}

    def one(match):
        source = re.search(r'\bsrc="([^"]*)"', match[0])
        path = paths.get(source[1].rpartition("/")[2]) if source else None
        if path is not None and path.suffix == ".gif":
            place = pathlib.Path(app.outdir, "_images")
            place.mkdir(exist_ok=True)
            shutil.copy(path.with_suffix(".png"), place)
        return improved(match[0], path) if source else match[0]

    context["body"] = re.sub(r"<img\b[^>]*>", one, context["body"])


def _thumbnails(app):
    """Of the gallery: wide pictures show their left part, large enough to be told apart, instead of a thin strip."""
    folder = pathlib.Path(app.srcdir, "pictures", "images")
    for path in folder.glob("thumb/*_thumb.png"):
        picture = folder / path.name.replace("_thumb", "_001")
        if picture.exists():
            with Image.open(picture) as image:
                across = min(image.width, round(1.25 * image.height))
                whole = image.convert("RGB").crop((0, 0, across, image.height))
            high = 320
            whole.resize(
                (round(high * across / image.height), high), Image.Resampling.LANCZOS
            ).save(path)


def setup(app):
    app.connect("html-page-context", _page)
    app.connect(
        "builder-inited", _thumbnails, priority=900
    )  # after the gallery has been drawn
    return {"parallel_read_safe": True, "parallel_write_safe": True}
