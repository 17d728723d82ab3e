"""Notebooks of the Start pages, to be downloaded: their text and code as cells. Written in the build."""

from __future__ import annotations

import pathlib
import re

import jupytext

START = pathlib.Path(__file__).parent / "start"


def pages() -> list[pathlib.Path]:
    """Those with code in Python."""
    return [
        page
        for page in sorted(START.glob("*.md"))
        if "\n```python\n" in page.read_text(encoding="utf-8")
    ]


def notebook(text: str) -> str:
    """A page's Markdown as JSON: pictures and links within the site are left out, as they lead nowhere from there."""
    text = re.sub(r"<!--.*?-->\n*", "", text, flags=re.DOTALL)
    text = re.sub(r"^```\{.*?^```\n*", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^!\[[^]]*\]\([^)]*\)\n*", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<!!)\[([^]]*)\]\((?!\w+:)[^)]*\)", r"\1", text)
    made = jupytext.reads(text, fmt="md")
    made.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"
    return jupytext.writes(made, fmt="ipynb")


def write_all(folder: pathlib.Path) -> None:
    """One for each page."""
    folder.mkdir(exist_ok=True)
    for page in pages():
        (folder / f"{page.stem}.ipynb").write_text(
            notebook(page.read_text(encoding="utf-8")), encoding="utf-8"
        )


def offered(text: str, name: str) -> str:
    """The page with a link to its notebook below its title."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{{download}}`As a notebook <../_generated/{name}.ipynb>`\n{rest}"
