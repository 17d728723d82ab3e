"""What `test_bounds.py` and other test modules share."""

import numpy as np

import pdmp
from pdmp.thinning import (
    Affine,
    ConcaveConvex,
    Constant,
    Hessian,
    Lipschitz,
    LocalHessian,
    ModelConstant,
    Polynomial,
)
from tests.targets import Cone, Quartic

RNG = np.random.default_rng(8)
X = RNG.normal(size=(5, 2))
LOGISTIC = pdmp.models.LogisticRegression(X, (np.arange(5) % 2 == 0).astype(float), prior_scale=2.0)
CONE, QUARTIC = Cone(2), Quartic(2)
#: Every bound with a target that it is exact for.
EXACT = {
    "constant": (CONE, Constant(2.0)),
    "the model's constant": (CONE, ModelConstant()),
    "affine": (CONE, Affine()),
    "Lipschitz": (CONE, Lipschitz(1.0)),
    "Hessian": (CONE, Hessian(np.eye(2))),
    "local Hessian": (QUARTIC, LocalHessian()),
    "concave-convex, quartic": (QUARTIC, ConcaveConvex()),
    "concave-convex, logistic": (LOGISTIC, ConcaveConvex()),
    "polynomial": (QUARTIC, Polynomial(3)),
}
SAMPLERS = {"BPS": pdmp.BPS, "ZigZag": pdmp.ZigZag}
