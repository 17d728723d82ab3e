"""The first events of every sampler, and numbers of its run, are what they were: `tests.digests` records them.

Eight digits are kept and six compared, of figures that no rounding of the data moves, so that any processor gives them.
"""

from __future__ import annotations

import json
import os

import pytest
from numba.core import config

from tests import digests, seeds

KEPT = json.loads(digests.FILE.read_text(encoding="utf-8"))
CASES = digests.cases()


@pytest.mark.exact
def test_the_figures_are_of_the_cases_that_there_are():
    assert sorted(KEPT) == sorted(CASES)


unmoved = pytest.mark.skipif(os.environ.get(seeds.VARIABLE, "0") != "0", reason="figures of the seeds as they are")


def compare(name):
    said = digests.difference(KEPT[name], json.loads(json.dumps(digests.figures(name, CASES[name]))))
    record = f"NUMBA_DISABLE_JIT=1 python -m tests.digests --record '{name}'"
    assert said is None, f"{name}: {said}. If the change is meant: {record}"


@pytest.mark.exact
@unmoved
@pytest.mark.parametrize("name", CASES)
def test_the_figures_of_a_case_are_those_that_were_recorded(name):
    compare(name)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
@unmoved
@pytest.mark.parametrize(
    "name",
    [
        "LocalBPS",
        "ZigZag local",
        "CoordinateSampler sparse",
        "Bounded BPS",
        "Bounded ZigZag",
        "Sticky BPS",
        "Sticky ZigZag",
    ],
)
def test_compiled_paths_are_those_of_plain_python(name):
    compare(name)
