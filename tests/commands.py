"""The command as tests call it, a small table for it, and spies instead of what runs samplers."""

import csv
import shlex
import types

import numpy as np
import pytest

from pdmp import cli, comparison, tuning
from tests.registry import installed  # noqa: F401


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(capsys):
    """Runs ``pdmp …``; returns (exit code, stdout, stderr)."""

    def run(text):
        with pytest.raises(SystemExit) as stop:
            cli.main(shlex.split(text))
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


def write_table(path, X, y, names):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*x, int(t)] for x, t in zip(X, y, strict=True))


@pytest.fixture
def small(here):
    """A small table of two columns, small.csv."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    write_table(here / "small.csv", X, X[:, 0] + rng.standard_normal(120) > 0, ["a", "b"])
    return here


class Spy:
    """Keeps the arguments of its calls; returns `result`, or raises it."""

    def __init__(self, result=None):
        self.calls, self.result = [], result

    def __call__(self, *args, **options):
        self.calls.append((args, options))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    @property
    def only(self):
        (call,) = self.calls
        return call

    @property
    def last(self):
        return self.calls[-1]


@pytest.fixture
def spies(monkeypatch, installed):  # noqa: F811
    """Spies instead of what runs samplers, by name."""
    made = {
        "configured": Spy({"BPS": types.SimpleNamespace()}),
        "compare": Spy(cli.UserError("seen")),
    }
    for name, spy in made.items():
        monkeypatch.setattr(comparison, name, spy)
    made["sample"], made["mamba"] = Spy(cli.UserError("seen")), Spy(cli.UserError("seen"))
    monkeypatch.setattr(cli, "run_sample", made["sample"])
    monkeypatch.setattr(tuning, "mamba", made["mamba"])
    monkeypatch.setattr(comparison, "_prepare", Spy())
    return made
