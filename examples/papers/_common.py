"""What the scripts of this folder share: presets, resuming, the table of the numbers drawn, criteria, and provenance.

A script defines a `Study`: pieces of work that add points to a `Table`, criteria that are computed from that table and
the settings alone, and pictures that are drawn from them alone. `main` runs the pieces that are not yet done, writes
NAME.csv, its pictures and NAME.json (settings, commit, machine, date, and each criterion with its outcome), prints the
criteria, and returns 1 if one of them fails, else 0.

An interrupted run is resumed by the same command: finished pieces are kept in NAME.partial.json, and within a piece
`Work.sample` is `pdmp.sample` with a checkpoint.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import math
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
COLUMNS = ("figure", "series", "x", "y", "error")
#: One colour for a family of samplers in every picture, dark and light for its variants.
RED, DARK_RED, BLUE, DARK_BLUE, GREEN, ORANGE, GREY = (
    "#e08a78", "#a32814", "#7fb0dd", "#12508f", "#2e8b57", "#d98b1f", "#666666",
)  # fmt: skip


class Row(NamedTuple):
    """A criterion with what was measured; `passed` is None where there is nothing to pass.

    `evidence` says in a sentence why a published claim does not hold: it is printed if the criterion fails.
    """

    what: str
    measured: str
    criterion: str = ""
    passed: bool | None = None
    evidence: str = ""

    @property
    def verdict(self) -> str:
        if self.passed is None:
            return ""
        return "pass" if self.passed else "not reproduced" if self.evidence else "FAIL"


class Table:
    """Points (x, y) with a standard error, by figure and series, in the order in which they were added.

    Numbers are rounded to seven digits at once, so that criteria computed during a run, and from the file, agree.
    """

    def __init__(self, points: Iterable = ()) -> None:
        self.points: list[tuple] = []
        self._found: dict[tuple[str, str], list[tuple]] = {}  #: the numbers by figure and series
        for figure, series, *rest in points:
            self._append(str(figure), str(series), tuple(float(v) for v in rest))

    def _append(self, figure, series, numbers) -> None:
        self.points.append((figure, series, *numbers))
        self._found.setdefault((figure, series), []).append(numbers)

    def add(self, figure, series, x, y, error=math.nan) -> None:
        """One point, or arrays of them."""
        for numbers in np.broadcast(*(np.atleast_1d(np.asarray(v, float)) for v in (x, y, error))):
            self._append(figure, series, tuple(float(f"{v:.7g}") for v in numbers))

    def series(self, figure) -> list[str]:
        """Names of the series of a figure."""
        return [series for name, series in self._found if name == figure]

    def get(self, figure, series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, y and error of a series, each (n,)."""
        found = self._found.get((figure, series))
        if not found:
            raise KeyError(f"no points of {series!r} in {figure!r}; there are {self.series(figure)}")
        return tuple(np.array(found).T)

    def y(self, figure, series) -> np.ndarray:
        return self.get(figure, series)[1]

    def value(self, figure, series, x=None) -> float:
        """The only y of a series, or the one at `x`."""
        places, values, _ = self.get(figure, series)
        if x is not None:
            values = values[np.isclose(places, x, rtol=1e-6)]
        if len(values) != 1:
            raise KeyError(f"{len(values)} points of {series!r} in {figure!r} at x = {x}, not one")
        return float(values[0])

    def write(self, path) -> None:
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            for figure, series, *numbers in self.points:
                rows.writerow([figure, series, *("" if math.isnan(v) else f"{v:.7g}" for v in numbers)])

    @classmethod
    def read(cls, path) -> Table:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            if tuple(next(rows)) != COLUMNS:
                raise ValueError(f"{path} is not a table of these scripts")
            return cls((figure, series, *(float(v or "nan") for v in rest)) for figure, series, *rest in rows)


@dataclass(frozen=True)
class Study:
    """A group of figures.

    Parameters
    ----------
    name : str
        Of the files.
    quick, full : dict
        The settings of the two presets; both have a seed. ``--set steps=1000`` changes one of them.
    pieces : callable
        From settings to a dict of pieces: each takes the table so far, to which it adds, and a `Work`.
    criteria : callable
        From table and settings to a list of `Row`.
    pictures : dict
        Functions of table and settings that return a figure, by what is added to the file's name ("" for none).
    """

    name: str
    quick: dict[str, Any]
    full: dict[str, Any]
    pieces: Callable[[dict], dict[str, Callable]]
    criteria: Callable[[Table, dict], list[Row]]
    pictures: dict[str, Callable]


@dataclass
class Work:
    """Where a piece keeps what it needs to be resumed."""

    folder: pathlib.Path
    name: str
    files: list[pathlib.Path] = field(default_factory=list)

    def checkpoint(self, key="") -> pathlib.Path:
        """A file for ``pdmp.sample(checkpoint=...)``, deleted when the piece has ended."""
        stem = re.sub(r"[^\w.]+", "-", f"{self.name}-{key}" if key else self.name)
        self.files.append(self.folder / f"{stem}.npz")
        return self.files[-1]

    def sample(self, process, key="", keep=True, **options):
        """`pdmp.sample` with such a file; an interruption ends the script, and the same command resumes there.

        Without `keep` there is no file: for short runs of models with so many coordinates that writing takes longer.
        """
        import pdmp

        run = pdmp.sample(process, checkpoint=self.checkpoint(key) if keep else None, **options)
        if run.stopped == "interrupted":  # a part of a run must not be taken for the whole
            raise KeyboardInterrupt
        return run

    def done(self) -> None:
        for file in self.files:
            for left in file.parent.glob(f"{file.name}*"):  # with what locks it
                left.unlink()


def criteria(study, table, settings) -> list[Row]:
    """The criteria in plain types, as NAME.json has them."""
    rows = []
    for row in study.criteria(table, settings):
        rows.append(row._replace(passed=None if row.passed is None else bool(row.passed)))
    return rows


def report(rows) -> int:
    """Print the criteria; the exit code."""
    for row in rows:
        print(f"{row.what:72} {row.measured:>24}  {row.criterion:30} {row.verdict}")
        if row.verdict == "not reproduced":
            print(f"    {row.evidence}")
    return int(any(row.passed is False for row in rows))


def save(figure, path, dpi=110) -> None:
    """A picture with a palette of 256 colours, a third of the size."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
    plt.close(figure)
    Image.open(buffer).convert("RGB").quantize(256).save(path, optimize=True)


def draw(study, table, settings, folder) -> list[pathlib.Path]:
    """All pictures of a study."""
    paths = []
    for suffix, picture in study.pictures.items():
        paths.append(folder / f"{study.name}{'_' if suffix else ''}{suffix}.png")
        with plt.rc_context({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}):
            save(picture(table, settings), paths[-1])
    return paths


def provenance() -> dict[str, str]:
    """Commit, machine, date and versions."""
    import numba
    import scipy

    import pdmp

    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD") or "unknown"
    if git("status", "--porcelain", "--untracked-files=no", "--", *(f":/{p}" for p in ("pdmp", "discrete"))):
        commit += " with changes"
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        cpu = re.search(r"model name\s*:\s*(.*)", info)[1].strip()
    except (OSError, TypeError):
        cpu = platform.processor() or platform.machine()
    versions = {"python": platform.python_version(), "pdmp": pdmp.__version__}
    versions |= {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {
        "commit": commit,
        "machine": f"{cpu}, {os.cpu_count()} cores, {platform.system()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def run_pieces(study, settings, folder) -> tuple[Table, float]:
    """The table and the seconds that it took, all pieces together, including those done before an interruption."""
    from tqdm import tqdm

    partial = folder / f"{study.name}.partial.json"
    kept = {"settings": json.loads(json.dumps(settings)), "pieces": {}}

    def keep():
        written = partial.with_suffix(".tmp")
        written.write_text(json.dumps(kept), encoding="utf-8")
        written.replace(partial)

    found = json.loads(partial.read_text(encoding="utf-8")) if partial.exists() else {}
    if found.get("settings") == kept["settings"]:
        kept = found
        print(f"resumed from {partial}: {len(found['pieces'])} pieces are done")
    else:
        for left in folder.glob(f"{study.name}-*.npz*"):  # of other settings
            left.unlink()
        keep()
    table = Table(point for piece in kept["pieces"].values() for point in piece["points"])
    pieces = study.pieces(settings)
    for name in tqdm(pieces, desc=study.name, disable=None, unit="piece"):
        if name in kept["pieces"]:
            continue
        began, before, work = time.perf_counter(), len(table.points), Work(folder, f"{study.name}-{name}")
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "the run was interrupted")  # where a piece calls `pdmp.sample` itself
            pieces[name](table, work)
        seconds = time.perf_counter() - began
        kept["pieces"][name] = {"seconds": seconds, "points": table.points[before:]}
        keep()
        work.done()
        tqdm.write(f"{name}: {seconds:.0f} s")
        sys.stdout.flush()
    return table, sum(piece["seconds"] for piece in kept["pieces"].values())


def parse(study, description, argv=None):
    """The arguments, with the settings and the name of the preset."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less data, fewer and shorter runs: under a minute")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for what is written")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="change a setting of the preset")
    parser.add_argument("--redraw", action="store_true", help="no run: criteria and pictures from OUTPUT/NAME.csv")
    args = parser.parse_args(argv)
    settings = dict(study.quick if args.quick else study.full)
    preset = "quick" if args.quick else "full"
    for item in args.set:
        name, _, value = item.partition("=")
        if name not in settings:
            parser.error(f"`--set` must name one of {', '.join(settings)}, got {name!r}")
        try:
            settings[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            settings[name] = value
        if settings[name] != (study.quick if args.quick else study.full)[name]:
            preset = "reduced"
    return args, settings, preset


def main(study: Study, description: str, argv=None) -> int:
    """Run a study from the command line; the exit code."""
    args, settings, preset = parse(study, description, argv)
    folder = args.output
    folder.mkdir(parents=True, exist_ok=True)
    csv_path, json_path = folder / f"{study.name}.csv", folder / f"{study.name}.json"
    if args.redraw:
        about = json.loads(json_path.read_text(encoding="utf-8"))
        settings = about["settings"]
    else:
        about = {"script": f"{study.name}.py", "preset": preset, "settings": settings} | provenance()
        try:
            table, seconds = run_pieces(study, settings, folder)
        except KeyboardInterrupt:
            print("interrupted; the same command resumes")
            return 130
        about["minutes"] = round(seconds / 60.0, 1)
        table.write(csv_path)
    table = Table.read(csv_path)
    rows = criteria(study, table, settings)
    about["criteria"] = [row._asdict() for row in rows]
    json_path.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(study, table, settings, folder)
    (folder / f"{study.name}.partial.json").unlink(missing_ok=True)
    code = report(rows)
    print(
        f"{study.name}, {about['preset']} preset: {about['minutes']:g} minutes, {about['date']}, {about['commit'][:10]}"
    )
    return code
