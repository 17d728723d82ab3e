"""Modes that no chain is in, compiled: said where there are any, and not where there are none."""

import warnings

import numpy as np
import pytest

import pdmp
from tests.benchmarks.modes import HIDDEN, labelled, mixture
from tests.checks import in_ci
from tests.targets import Schools


def cautions(model, seed):
    """What the preparation warns of, and the starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = pdmp.auto(model, seed=seed)
    return process.prepared.cautions, process.prepared.starts


@pytest.mark.parametrize("seed", in_ci(range(1, 5), 1))
def test_two_modes_of_different_widths(seed):
    model, which = HIDDEN["at ±10, sds 0.3 and 1, d = 1"]()
    said, starts = cautions(model, seed)
    assert len({which(x) for x in starts}) > 1 or "a mode that no chain is in" in "".join(said)


def test_labels_that_can_be_exchanged():
    """At each seed chains are in both mirrored modes, or the other one is said; both occur."""
    model, which = mixture(labelled(300, [-2.0, 3.0], [0.3, 0.7]), 2)
    found = []
    for seed in range(1, 7):
        said, starts = cautions(model, seed)
        found.append(("no chain is in" in "".join(said), len({which(x) for x in starts}) > 1))
    assert all(warned != seen for warned, seen in found) and len(set(found)) == 2


@pytest.mark.parametrize("seed", in_ci(range(1, 4), 1))
def test_a_hierarchy_has_one_mode(seed):
    y, sd = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    assert cautions(Schools(y, sd), seed)[0] == ()
