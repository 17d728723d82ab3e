"""What `test_boomerang_laws.py` and other test modules share."""

import numpy as np
from scipy import special

import pdmp


def regression():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 2))
    y = (rng.random(20) < special.expit(X @ [1.0, -0.5])).astype(float)
    return pdmp.models.LogisticRegression(X, y, prior_scale=2.0)


LOGISTIC = regression()


def moments(model, widths=9.0, points=301):
    """Mean and variance of a posterior in two dimensions, by the trapezoid rule on a grid; its own error is 1e-8."""
    mode, sd = model.mode(), np.sqrt(np.diag(np.linalg.inv(model.hessian(model.mode()))))
    axes = [np.linspace(m - widths * s, m + widths * s, points) for m, s in zip(mode, sd, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    signs = 2.0 * model.y - 1.0
    potential = np.logaddexp(0.0, -signs * (grid @ model.X.T)).sum(axis=1) + 0.125 * (grid**2).sum(axis=1)
    weights = np.exp(potential.min() - potential)
    weights /= weights.sum()
    mean = weights @ grid
    return mean, weights @ (grid - mean) ** 2
