"""Diagnostics of draws and distances of laws."""

from __future__ import annotations

import numpy as np

import pdmp
from pdmp import diagnostics
from tests.answers import case
from tests.recorded import moved

RNG = np.random.default_rng(5)
A, B = moved(RNG.standard_normal((40, 3))), moved(RNG.standard_normal((30, 3)))
CHAINS = moved(np.cumsum(RNG.standard_normal((3, 61, 2)), axis=1) * 0.3 + RNG.standard_normal((3, 61, 2)))
LABELS = (RNG.random(30) < 0.4).astype(int)


@case
def distances():
    model = pdmp.models.LogisticRegression(B, LABELS)
    return {
        "wasserstein": diagnostics.wasserstein(A[:, :1], B[:, :1]),
        "sliced": diagnostics.sliced_wasserstein(A, B, seed=1),
        "mmd": diagnostics.mmd(A, B),
        "ksd": diagnostics.ksd(A, [model.gradient(x) for x in A]),
    }


@case
def chains():
    return {
        "ess": {method: diagnostics.ess(CHAINS, method) for method in ("mean", "bulk", "tail", "sd")},
        "rhat": {method: diagnostics.rhat(CHAINS, method) for method in ("rank", "split")},
    }


@case
def log_loss():
    return diagnostics.log_loss(LABELS, 1.0 / (1.0 + np.exp(-B @ A.T)).T)
