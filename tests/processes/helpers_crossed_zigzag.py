"""What `test_crossed_zigzag.py` and other test modules share."""

import numpy as np
from scipy import special

from pdmp.models.priors import Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import GroupColumn

DISPERSIONS = {"sigma": HalfStudentT(4.0, 2.0), "nu": Gamma(2.0, 10.0), "alpha": HalfCauchy(1.0)}
SIZES = 3, 4, 2  #: groups of the groupings


def regression(law, groupings=2, n=36, columns=2, sort=None, kind=GroupIntercepts, intercept=2.0):
    """A model with weights and an offset; groups of several sizes, not every pair of which has a row."""
    rng = np.random.default_rng(12)
    X = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, n)])[:, :columns]
    level = [np.minimum(rng.integers(0, size + 1, n), size - 1) for size in SIZES[:groupings]]
    for g, size in zip(level, SIZES[:groupings], strict=True):
        g[:size] = np.arange(size)
    z = 0.4 + 0.1 * (X[:, -1] - X[:, -1].mean()) + sum(0.5 * np.cos((3.0 + k) * g) for k, g in enumerate(level))
    if law in (LogitLaw, ProbitLaw):
        y = (rng.random(n) < special.expit(z)).astype(float)
    elif law is PoissonLaw:
        y = rng.poisson(np.exp(z))
    elif law is NegativeBinomialLaw:
        y = rng.poisson(np.exp(z) * rng.gamma(1.5, 1.0 / 1.5, n))
    else:
        y = z + (rng.standard_t(4.0, n) if law is StudentTLaw else rng.standard_normal(n))
    offset, weights = rng.normal(0.0, 0.1, n), rng.uniform(0.5, 1.5, n)
    order = {None: np.arange(n), "y": np.argsort(y), "g": np.argsort(level[0]), "h": np.argsort(level[1])}[sort]
    groups = [
        GroupColumn(f"1|{name}", name, tuple(range(size)), g[order], np.ones(n), HalfNormal(1.5 + 0.1 * size))
        for name, size, g in zip("ghk", SIZES, level, strict=False)
    ]
    likelihood = law()
    return kind(
        X[order],
        y[order],
        likelihood,
        ["Intercept", "x"][:columns],
        [Normal(0.0, intercept), StudentT(3.0, 0.0, 1.0)][:columns],
        groups=groups,
        dispersion_priors=[DISPERSIONS[name] for name in likelihood.dispersions],
        intercept=0,
        offset=offset[order],
        weights=weights[order],
    )
