"""What functions answer to small inputs is what it was: `tests.answers` records it."""

from __future__ import annotations

import json
import os

import pytest

from tests import answers, seeds
from tests.checks import in_quick
from tests.recorded import difference, read

CASES = answers.cases()
#: By ``pytest --full``: runs of some length, beside which the answers to another target or another choice are quick.
LATER = (
    *("automatic.tempered two modes, unequal starts", "automatic.tempered Gaussian"),
    *("automatic.ladder_learnt", "plots.overview of many"),
    *("formulas_after.inclusion all", "formulas_after.inclusion names", "formulas_after.before sampling gaussian"),
    *("plots.rate and bound with defaults", "runs.arviz of a grid"),
)


@pytest.mark.exact
def test_the_figures_are_of_the_cases_that_there_are():
    kept = [name for file in {answers.file_of(name) for name in CASES} for name in read(file)]
    assert sorted(kept) == sorted(CASES) and set(LATER) <= set(CASES)


@pytest.mark.exact
@pytest.mark.skipif(os.environ.get(seeds.VARIABLE, "0") != "0", reason="figures of the seeds as they are")
@pytest.mark.parametrize("name", in_quick(CASES, *(name for name in CASES if name not in LATER)))
def test_an_answer_is_what_was_recorded(name):
    kept, found = read(answers.file_of(name)), json.loads(json.dumps(CASES[name]()))
    record = f"NUMBA_DISABLE_JIT=1 python -m tests.answers --record '{name}'"
    said = difference(kept.get(name), found)
    assert said is None, f"{name}: {said}. If the change is meant: {record}"
