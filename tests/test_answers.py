"""What functions answer to small inputs is what it was: `tests.answers` records it."""

from __future__ import annotations

import json
import os

import pytest

from tests import answers, seeds
from tests.recorded import difference, read

CASES = answers.cases()


@pytest.mark.exact
def test_the_figures_are_of_the_cases_that_there_are():
    kept = [name for file in {answers.file_of(name) for name in CASES} for name in read(file)]
    assert sorted(kept) == sorted(CASES)


@pytest.mark.exact
@pytest.mark.skipif(os.environ.get(seeds.VARIABLE, "0") != "0", reason="figures of the seeds as they are")
@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_what_was_recorded(name):
    kept, found = read(answers.file_of(name)), json.loads(json.dumps(CASES[name]()))
    record = f"NUMBA_DISABLE_JIT=1 python -m tests.answers --record '{name}'"
    said = difference(kept.get(name), found)
    assert said is None, f"{name}: {said}. If the change is meant: {record}"
