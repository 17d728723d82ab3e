"""A comparison as a web page: one file, with its table, its pictures and how it was made."""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pdmp.plots.comparisons import compare, error_by_cost
from pdmp.plots.style import closing, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdmp.comparison import Comparison

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }}
td, th {{ padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }}
th {{ vertical-align: bottom; border-bottom: 1px solid #888 }}
th small {{ font-weight: normal; color: #666 }}
td:first-child, td.text, th:first-child, th.text {{ text-align: left }}
img {{ max-width: 100% }}
figure {{ margin: 2rem 0 }}
figcaption {{ color: #666; font-size: 13px }}
.wide {{ overflow-x: auto }}
</style>
</head>
<body>
<h1>{title}</h1>
<div class="wide">{table}</div>
<h2>Verdicts</h2>
{verdicts}
{pictures}
<h2>Notes</h2>
<ul>{notes}</ul>
<h2>Settings</h2>
<div class="wide">{settings}</div>
</body>
</html>
"""


@styled
def report(table: Comparison, path: str | os.PathLike, settings: Mapping[str, object] | None = None) -> None:
    """Write a comparison as one HTML file that needs no other: table, verdicts, pictures, notes and settings.

    Parameters
    ----------
    table : Comparison
        What ``pdmp.compare`` returned.
    path : path
        Where to write.
    settings : dict, optional
        Names and values to list under the settings, such as the options of a command.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.plots.report(table, 'compare.html', settings={'seed': 1})  # doctest: +SKIP
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"`path` must be the path of a file, got {type(path).__name__}.")
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"`settings` must be a dict of names and values, got {type(settings).__name__}.")
    pictures = []
    with closing():
        if table.errors_by_pass:
            caption = "Paths, marginals, and the error of the means against data passes"
            pictures.append(_picture(caption, compare(table)))
        for cost, name in (("data_passes", "data passes"), ("seconds", "seconds of computing")):
            if table.rms_by_pass:
                caption = (
                    f"Root mean square error of one chain's means against {name}; dotted: as Monte Carlo errors fall"
                )
                pictures.append(_picture(caption, error_by_cost(table, cost=cost).figure))
    heading, units, *rows = table.cells()
    text = [k for k, name in enumerate(heading) if name in ("sampler", "verdict", "setting")]

    def line(tag, values):
        return "".join(
            f'<{tag} class="text">{v}</{tag}>' if k in text else f"<{tag}>{v}</{tag}>" for k, v in enumerate(values)
        )

    top = [f"{html.escape(a)}<br><small>{html.escape(b)}</small>" for a, b in zip(heading, units, strict=True)]
    body = "".join(f"<tr>{line('td', map(html.escape, row))}</tr>\n" for row in rows)
    listed = "".join(
        f"<tr><td>{html.escape(str(name))}</td><td class='text'>{html.escape(str(value))}</td></tr>\n"
        for name, value in (settings or {}).items()
    )
    page = PAGE.format(
        title=html.escape(table.title or "Comparison of samplers"),
        table=f"<table>\n<tr>{line('th', top)}</tr>\n{body}</table>",
        verdicts="".join(f"<p>{html.escape(said)}</p>\n" for said in table.verdict_lines()),
        pictures="".join(pictures),
        notes="".join(f"<li>{html.escape(note)}</li>\n" for note in table.notes),
        settings=f"<table>\n{listed}</table>",
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def _picture(caption: str, figure: Figure) -> str:
    """The figure as an element that contains its PNG."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    code = base64.b64encode(data.getvalue()).decode("ascii")
    text = html.escape(caption, quote=True)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{code}"><figcaption>{text}</figcaption></figure>\n'
