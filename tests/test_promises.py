"""docs/promises.md: every promise names its tests, and what no other test says."""

import pathlib
import re

import numpy as np
import pytest

import pdmp
from tests.toys import Telegraph

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(__file__).parents[1]
TABLES = [
    line for line in (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")
]
PROMISES = [line for line in TABLES if "held by" not in line]


def test_every_promise_is_held_by_a_test():
    assert len(PROMISES) > 30
    for line in PROMISES:
        _, promise, held, _ = line.split(" | ") if line.count(" | ") == 3 else ("", *line.strip("| ").split(" | "), "")
        assert promise.endswith(".") and re.fullmatch(r"(`[\w/]+\.py::test_\w+`(, )?)+", held), line


class Trap:
    """Whoever unpickles it has run it."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_nothing_is_unpickled(tmp_path):
    """An array of objects among those of a saved run, of a checkpoint, or of a table of data."""
    pdmp.sample(Telegraph(), events=20, seed=1).save(tmp_path / "run.npz")
    call = {"events": 20, "seed": 1, "checkpoint": tmp_path / "run.checkpoint"}
    pdmp.sample(Telegraph(), **call)
    np.savez(tmp_path / "table.npz", X=np.eye(4), y=np.array([0.0, 1.0, 0.0, 1.0]))
    reads = {
        "run.npz": lambda path: pdmp.load(path),
        "run.checkpoint": lambda path: pdmp.sample(Telegraph(), **call),
        "table.npz": lambda path: pdmp.data.read(path),
    }
    for name, read in reads.items():
        path = tmp_path / name
        with np.load(path) as file:
            arrays = dict(file)
        arrays[next(iter(set(arrays) - {"header"}))] = np.array([Trap()], dtype=object)
        with open(path, "wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(ValueError) as caught:
            read(path)
        assert "\n" not in str(caught.value) and not Trap.sprung, name
