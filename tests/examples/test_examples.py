"""Every example runs to its end and writes its pictures: tiny in the quick tier, with ``--quick`` in the full one."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.forked import program

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: These two print, and take no arguments.
PRINTING = ("own_model.py", "bring_your_own.py")
#: With ``--quick`` these would take minutes of compilation: in the full tier they run at their smallest.
LONG = ("unbiased_subsampling", "variable_selection")
#: At their smallest these take long: in the full tier they run with ``--quick`` only.
HEAVY = ("cluster_cost", "super_efficiency")
#: One or two minutes each, mostly of compilation.
FOR_RELEASES = ("bring_your_own", "cluster_cost", "own_model", "super_efficiency")


def arguments(path):
    return [] if path.name in PRINTING else ["--quick"]


def assert_ended(done, path, folder):
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert done.stdout.strip()
    if path.name not in PRINTING:
        pictures = list(folder.glob("*.png"))
        assert pictures and all(picture.stat().st_size > 1_000 for picture in pictures)


@pytest.mark.exact
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.stem in LONG else ()) for p in EXAMPLES if p.stem not in HEAVY],
    ids=lambda path: path.stem,
)
def test_at_its_smallest(path, tmp_path):
    assert_ended(program("tests.examples.small", path, *arguments(path), folder=tmp_path), path, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=pytest.mark.release if p.stem in FOR_RELEASES else ())
        for p in EXAMPLES
        if p.stem not in LONG
    ],
    ids=lambda path: path.stem,
)
def test_quick(path, tmp_path):
    """With its criteria: its exit code says whether they are met."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path), *arguments(path)],
        cwd=tmp_path,
        env=os.environ
        | {
            "NUMBA_DISABLE_JIT": "0",
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=1_800,
    )
    assert_ended(done, path, tmp_path)
