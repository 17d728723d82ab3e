"""Tier 3: samplers on targets in the plane, against moments from quadrature, with no bound given.

One class of targets with a switch, so that each sampler compiles once. Means are compared in standard deviations,
variances as ratios; each test states the smallest bias that it promises to see.
"""

import numpy as np
import pytest

import pdmp
from tests.checks import assert_unbiased, replicate
from tests.targets import KINDS, Plane

#: For each sampler and target a process; references of the Boomerang are near the target.
SAMPLERS = {
    "BPS": lambda model: pdmp.BPS(model, refresh_rate=0.6),
    "ZigZag": pdmp.ZigZag,
    "CoordinateSampler": lambda model: pdmp.CoordinateSampler(model, refresh_rate=0.3),
    "Boomerang": lambda model: pdmp.Boomerang(model, *reference(model), refresh_rate=0.6),
}
#: Smallest bias of the mean in standard deviations, and of the variance as a part of it.
RESOLUTION = {"heavy": (0.15, 0.9), "mixture": (0.25, 0.2), "banana": (0.3, 0.9), "funnel": (0.12, 0.25)}
EVENTS = 40_000


def reference(model):
    """Mean and variances: those of the target, rounded."""
    mean, var = model.moments(401)
    return np.round(mean, 1), np.round(var, 1) + 0.1


#: The ellipses of a Gaussian reference lead out of a bounded support.
LEFT_OUT = {
    "Boomerang": ("barrier", "funnel", "banana"),
    "CoordinateSampler": ("barrier", "banana"),
}
CASES = [
    (sampler, which)
    for sampler in SAMPLERS
    for which in range(len(KINDS))
    if KINDS[which] not in LEFT_OUT.get(sampler, ())
]


@pytest.mark.parametrize("sampler, which", CASES, ids=[f"{s}-{KINDS[w]}" for s, w in CASES])
def test_moments(sampler, which):
    model = Plane(which)
    truth_mean, truth_var = model.moments()
    process = SAMPLERS[sampler](model)
    mean, var, _ = replicate(process, model.initial, 16, seed=31, warmup=0.02, events=EVENTS)
    of_mean, of_var = RESOLUTION.get(KINDS[which], (0.15, 0.2))
    assert_unbiased((mean - truth_mean) / np.sqrt(truth_var), 0.0, resolution=of_mean)
    assert_unbiased(var / truth_var, 1.0, resolution=of_var)
