"""What the command prints and writes: tables, JSON and files, with small budgets."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import shlex
import tempfile

import numpy as np

import pdmp
from pdmp import cli, comparison
from pdmp.comparison import Reference
from tests.answers import case
from tests.recorded import moved
from tests.registry import declared

TIMES = re.compile(r"\d[\d.]* s$")


def table(file):
    rng = np.random.default_rng(6)
    X = moved(rng.standard_normal((60, 2)))
    y = X[:, 0] + rng.standard_normal(60) > 0.1
    lines = [
        f"{a:.15g},{b:.15g},{int(t)},{k % 3},{a + 0.5 * b:.4f}" for k, ((a, b), t) in enumerate(zip(X, y, strict=True))
    ]
    file.write_text("\n".join(["a,b,label,count,z", *lines]) + "\n")


def short(model, ess, seed, chains, mode, executor, say, *_):
    """A reference that is written down, from what was asked."""
    say(f"ess {ess} executor {executor} seed {seed}")
    sd = np.sqrt(np.diag(np.linalg.inv(model.hessian(mode))))
    draws = mode + sd * np.random.default_rng(2).standard_normal((40, model.dim))
    return Reference(mode, sd, np.diag(sd**2), draws, 1.002, 700.0, 1.1, "written down")


def without_times(text):
    """Words of each line; seconds, and the columns of a table that have them, are those of a clock."""
    lines = []
    for line in text.splitlines():
        if "seconds" not in line and "wall" not in line:
            words = [word.rstrip(",") for word in TIMES.sub("s", line).split()]
            lines.append([float(word) if is_number(word) else word for word in words])
    return lines


def command(text):
    before, columns = os.getcwd(), comparison.Comparison.COLUMNS
    replaced = comparison.registered, comparison._reference, comparison._seconds
    out, err, code = io.StringIO(), io.StringIO(), None
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            table(pathlib.Path("t.csv"))
            comparison.registered, comparison._reference, comparison._seconds = declared, short, lambda value: "0.00"
            comparison.Comparison.COLUMNS = columns | {"seconds": ("time", "s", lambda value: "0.00")}
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pdmp.errors.short_runs():
                cli.main(shlex.split(text))
        except SystemExit as stop:
            code = stop.code
        finally:
            os.chdir(before)
            comparison.registered, comparison._reference, comparison._seconds = replaced
            comparison.Comparison.COLUMNS = columns
        files = sorted(path.name for path in pathlib.Path(folder).rglob("*"))
        written = {}
        for path in pathlib.Path(folder).rglob("*.csv"):
            lines = path.read_text(encoding="utf-8").splitlines()
            if path.name != "t.csv":
                written[path.name] = [[cell for k, cell in enumerate(line.split(",")) if k != 2] for line in lines[:4]]
    numbers = {
        name: [[float(cell) if is_number(cell) else cell for cell in line] for line in lines]
        for name, lines in written.items()
    }
    return [code, without_times(out.getvalue()), without_times(err.getvalue()), files, numbers]


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", text) is not None


DATA = "--data t.csv --target label --drop z"
for text in (
    f"sample ZigZag {DATA} --data-passes 4 --chains 2",
    "sample ZigZag t.csv --target count --above 0.5 --no-intercept --as-is --data-passes 20 --save r.npz",
    f"compare {DATA} --samplers BPS --data-passes 15 --quick --json --html page.html",
    f"sample NoSuch {DATA}",
    f"sample BPS {DATA} --rhat 0.9",
    f"compare {DATA} --samplers BPS --data-passes 0",
    f"tune BPS {DATA}",
):
    case(lambda t=text: command(t), text.replace(DATA, "DATA"))


@case
def default_passes():
    return [cli.default_passes(n) for n in (50, 455, 4_100, 16_152, 88_163, 10**7)]
