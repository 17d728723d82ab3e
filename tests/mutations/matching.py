"""Where a planted bug goes: found by its text or, where code was moved or laid out anew, by its tokens."""

from __future__ import annotations

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("pdmp", "discrete")

TOKEN = re.compile(
    r"""
    (?P<space>\s+|\\\n|\#[^\n]*)
    | [rbfuRBFU]{0,2}(?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    | \w+ | (?s:.)
    """,
    re.VERBOSE,
)


def tokens(text):
    """Tokens of Python code or of a part of it, each with where it begins and ends.

    White space, line breaks, comments and commas before a closing bracket are left out.
    """
    found = [(m[0], *m.span()) for m in TOKEN.finditer(text) if m["space"] is None]
    after = [word for word, _, _ in found[1:]] + [""]
    return [token for token, then in zip(found, after, strict=True) if token[0] != "," or then not in (")", "]", "}")]


@functools.cache
def _source(path):
    text = path.read_text(encoding="utf-8")
    found = tokens(text)
    return text, found, "\0".join(word for word, _, _ in found)


def _spans(path, old):
    """Where the tokens of `old` stand in a file."""
    text, found, joined = _source(path)
    words = [word for word, _, _ in tokens(old)]
    if not words or "\0".join(words) not in joined:
        return []
    all_words = [word for word, _, _ in found]
    starts = [k for k, word in enumerate(all_words) if word == words[0]]
    return [(found[k][1], found[k + len(words) - 1][2]) for k in starts if all_words[k : k + len(words)] == words]


def _indentation(text, place):
    line = text[text.rfind("\n", 0, place) + 1 :]
    return len(line) - len(line.lstrip(" "))


def planted(bug, root=ROOT):
    """The file that a bug is planted in, relative to `root`, and what is then in it.

    The text `bug.old` must stand once in `bug.file`, or its tokens once there, or once in all of the packages.
    """
    hint = root / bug.file
    if hint.exists() and (text := _source(hint)[0]).count(bug.old) == 1:
        return bug.file, text.replace(bug.old, bug.new)
    places = [(hint, span) for span in _spans(hint, bug.old)] if hint.exists() else []
    if not places:
        files = [path for name in PACKAGES for path in sorted((root / name).rglob("*.py"))]
        places = [(path, span) for path in files for span in _spans(path, bug.old)]
    if len(places) != 1:
        where = ", ".join(str(path.relative_to(root)) for path, _ in places) or bug.file
        raise ValueError(f"{bug.name}: its code stands {len(places)} times, not once ({where}): {bug.old!r}")
    ((path, (begin, end)),) = places
    text, new = _source(path)[0], bug.new.strip()
    if "\n" in bug.old.strip():  # the lines of `new` are indented as deep as the code is now
        deeper = _indentation(text, end) - _indentation(bug.old.rstrip(), len(bug.old.rstrip()))
        first, *rest = new.split("\n")
        new = "\n".join([first, *(" " * max(deeper, 0) + line[max(-deeper, 0) :] for line in rest)])
    return str(path.relative_to(root)), text[:begin] + new + text[end:]
