"""The first events of every sampler, and numbers of its run, are what they were: `tests.digests` records them.

Eight digits are kept and six compared, of figures that no rounding of the data moves, so that any processor gives them.
"""

from __future__ import annotations

import json
import os

import pytest

from tests import digests, seeds

KEPT = json.loads(digests.FILE.read_text(encoding="utf-8"))
CASES = digests.cases()


@pytest.mark.exact
def test_the_figures_are_of_the_cases_that_there_are():
    assert sorted(KEPT) == sorted(CASES)


@pytest.mark.exact
@pytest.mark.skipif(os.environ.get(seeds.VARIABLE, "0") != "0", reason="figures of the seeds as they are")
@pytest.mark.parametrize("name", CASES)
def test_the_figures_of_a_case_are_those_that_were_recorded(name):
    found = json.loads(json.dumps(digests.figures(name, CASES[name])))
    said = digests.difference(KEPT[name], found)
    assert said is None, (
        f"{name}: {said}. If the change is meant: NUMBA_DISABLE_JIT=1 python -m tests.digests --record '{name}'"
    )
