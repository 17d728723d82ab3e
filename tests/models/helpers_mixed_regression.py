"""What `test_mixed_regression.py` and other test modules share."""

import numpy as np

from pdmp.models.priors import (
    Gamma,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    Normal,
    StudentT,
)
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression

ROWS = 14
DISPERSIONS = {"sigma": HalfStudentT(4.0, 2.0), "nu": Gamma(2.0, 10.0), "alpha": HalfCauchy(1.0)}
LAWS = {law.__name__: law for law in (NormalLaw, StudentTLaw, LogitLaw, ProbitLaw, PoissonLaw, NegativeBinomialLaw)}


def responses(law, rng):
    if law in (LogitLaw, ProbitLaw):
        return np.arange(ROWS) % 2
    if law in (PoissonLaw, NegativeBinomialLaw):
        return rng.poisson(3.0, ROWS)
    return 10.0 + 5.0 * rng.standard_normal(ROWS)


def columns(rng):
    return np.column_stack([np.ones(ROWS), rng.normal(3.0, 2.0, ROWS), rng.normal(0.0, 100.0, ROWS)])


def mixed(law, centred=False, order=None, **options):
    """A model with every part: three columns, (1 + x | g), offset and weights."""
    rng = np.random.default_rng(4)
    X, y, g = columns(rng), responses(law, rng), np.arange(ROWS) % 3
    offset, weights = rng.standard_normal(ROWS), rng.uniform(0.5, 1.5, ROWS)
    order = np.arange(ROWS) if order is None else order
    X, y, g, offset, weights = X[order], y[order], g[order], offset[order], weights[order]
    groups = [
        GroupColumn("1|g", "g", ("a", "b", "c"), g, np.ones(len(g)), HalfNormal(1.5)),
        GroupColumn("x|g", "g", ("a", "b", "c"), g, X[:, 1], HalfStudentT(3.0, 1.0)),
    ]
    likelihood = law()
    model = MixedRegression(
        X,
        y,
        likelihood,
        ["Intercept", "x", "w"],
        [Normal(1.0, 2.0), StudentT(3.0, 0.5, 1.0), Normal(0.0, 0.1)],
        groups,
        [DISPERSIONS[name] for name in likelihood.dispersions],
        intercept=0,
        **{"offset": offset, "weights": weights, "scale_response": "sigma" in likelihood.dispersions} | options,
    )
    if centred:
        model.centred[:] = 1
    return model, X, y, g, offset, weights
