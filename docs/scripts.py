"""A page for each script in ``examples/``: what it says of itself, its pictures, and its text. Written in the build."""

from __future__ import annotations

import ast
import pathlib
import re
import tomllib

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
PAPERS = "../../examples/papers/"  #: from docs/evidence
INDEX = """# Examples

The scripts of `examples/`, which run by themselves: `python examples/NAME.py`. Those of `examples/papers` repeat the
figures of five papers; [what was found](../evidence/papers.md) is on a page of its own.

| script | what it shows |
|---|---|
{lines}

```{{toctree}}
:hidden:
{names}
```
"""
PAGE = """# {title}

{text}

{pictures}

```{{literalinclude}} {path}
:language: python
:lines: {first}-
```
"""


def scripts() -> list[pathlib.Path]:
    """All that run by themselves; the others are what they share."""
    found = [*sorted(EXAMPLES.glob("*.py")), *sorted(EXAMPLES.glob("papers/*.py"))]
    return [path for path in found if not path.name.startswith("_")]


def linked(text: str) -> str:
    """The page of the papers as one of docs/evidence: a script's link leads to its page, which has its pictures."""
    text = re.sub(r"\]\((\w+)\.py\)", r"](../scripts/\1.md)", text)
    return re.sub(r"\]\((?!\w+:|#|\.\./scripts/)", f"]({PAPERS}", text)


def pictures(path: pathlib.Path) -> list[pathlib.Path]:
    """Those that are committed for a script: `name.png`, `name_part.png`."""
    places = path.parent, path.parent / "results"
    return [
        picture for place in places for picture in sorted(place.glob(f"{path.stem}*.png"))
    ]


def descriptions() -> dict[str, str]:
    """What each of those pictures shows, in words."""
    return tomllib.loads(
        (EXAMPLES / "papers" / "pictures.toml").read_text(encoding="utf-8")
    )


def summary(path: pathlib.Path) -> str:
    """The first paragraph of what a script says of itself."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def page(path: pathlib.Path) -> str:
    """In Markdown."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Four spaces after a list are no block of code in Markdown.
    text = re.sub(
        r"^    (python .*)$", r"```sh\n\1\n```", ast.get_docstring(tree), flags=re.MULTILINE
    )
    told = descriptions()
    shown = "\n\n".join(
        f"![{told[p.stem]}](../../{p.relative_to(EXAMPLES.parent).as_posix()})"
        for p in pictures(path)
    )
    where = path.relative_to(EXAMPLES.parent).as_posix()
    title = path.stem.replace("_", " ")
    return PAGE.format(
        title=title[0].upper() + title[1:],
        text=text,
        pictures=shown,
        path=f"../../{where}",
        first=tree.body[0].end_lineno + 2,
    )


def write_all(folder: pathlib.Path) -> None:
    """The index and the pages; what has not changed is left alone, so that a second build is fast."""
    folder.mkdir(exist_ok=True)
    wanted = {f"{path.stem}.md": page(path) for path in scripts()}
    lines = "\n".join(
        f"| [{path.stem}]({path.stem}.md) | {summary(path)} |" for path in scripts()
    )
    wanted["index.md"] = INDEX.format(
        lines=lines, names="\n".join(path.stem for path in scripts())
    )
    for name, text in wanted.items():
        place = folder / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
    for place in folder.glob("*.md"):
        if place.name not in wanted:
            place.unlink()
