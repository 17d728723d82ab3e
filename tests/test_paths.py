"""The first events of every sampler, and numbers of its run, are what they were: `tests.digests` records them.

Eight digits are kept and six compared, of figures that no rounding of the data moves, so that any processor gives them.
"""

from __future__ import annotations

import json
import os
import warnings

import numpy as np
import pytest
from numba.core import config

from pdmp.engine.chain import statistics
from pdmp.engine.preflight import contents
from tests import digests, seeds
from tests.checks import in_ci
from tests.recorded import difference

KEPT = json.loads(digests.FILE.read_text(encoding="utf-8"))
CASES = digests.cases()


@pytest.mark.exact
def test_the_figures_are_of_the_cases_that_there_are():
    assert sorted(KEPT) == sorted(CASES)


unmoved = pytest.mark.skipif(os.environ.get(seeds.VARIABLE, "0") != "0", reason="figures of the seeds as they are")


def compare(name):
    """Figures, and that neither a run nor what is made of a process has changed it."""
    made = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = made()
        before = contents(process, of_ours=True)
        said = difference(KEPT[name], json.loads(json.dumps(digests.figures(name, lambda: process))))
        record = f"NUMBA_DISABLE_JIT=1 python -m tests.digests --record '{name}'"
        assert said is None, f"{name}: {said}. If the change is meant: {record}"
        assert contents(process, of_ours=True) == before, f"{name}: a run has changed its process"
        leaves_as_it_was(process)


def leaves_as_it_was(process):
    """For another step, or from what a run has adapted, a copy is made."""
    x = np.asarray(process.model.initial if process.anchor is None else process.anchor, dtype=float)
    ready = process.resolve(x)
    before, state = contents(ready, of_ours=True), ready.begin(x, np.random.default_rng(0))
    ready.adapted([statistics(ready, state)] * 2)
    if hasattr(ready, "halved") and not ready.schedule.exploring:
        ready.halved()
    assert contents(ready, of_ours=True) == before, f"{type(ready).__name__}: it was changed"


@pytest.mark.exact
@unmoved
@pytest.mark.parametrize("name", CASES)
def test_the_figures_of_a_case_are_those_that_were_recorded(name):
    compare(name)


#: Those that share the machine code of no law of `tests/statistics/test_each_sampler.py`, which compares its paths too.
COMPILED = ("LocalBPS", "ZigZag local", "CoordinateSampler sparse", "Bounded BPS", "ZigZag importance")
#: Another bound, metric, provider or form of a sampler.
FURTHER = (
    *("BPS adaptive", "BPS adaptive dense", "BPS grid", "BPS Hessian bound", "GeneralisedBPS", "ForwardEventChain"),
    *("DirectionalBPS", "DirectionalBPS function", "ZigZag", "ZigZag logistic", "ZigZag minibatch", "Sticky BPS"),
    *("Boomerang quadratic", "SBPS likelihood", "SBPS noisy", "Bounded ZigZag", "Sticky ZigZag", "HMC", "SGBD"),
    *("SGBD corrected", "SGBD extreme", "SGLD corrected", "SGHMC", "MALA", "ZigZagSplitting adjusted"),
)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
@unmoved
@pytest.mark.parametrize("name", in_ci(COMPILED + FURTHER, *COMPILED))
def test_compiled_paths_are_those_of_plain_python(name):
    compare(name)
