"""The Bayesian counterparts of fitted scikit-learn estimators: penalties are priors, coefficients are modes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.models.regressions.by_law import PoissonRegression
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.models.regressions.normal_inverse_gamma import NormalInverseGammaRegression
from pdmp.native.arguments import real, same_rows

if TYPE_CHECKING:
    from pdmp.models.base import Model

#: Distance of an estimator's coefficients from the mode, in posterior standard deviations, that is taken for an error.
FAR = 1.0
#: The same, from which it is said: sample weights move coefficients by more, and converged solvers stop nearer.
NEAR = 0.1


def from_sklearn(estimator: Any, X: ArrayLike, y: ArrayLike) -> Model:
    r"""The posterior whose mode are the coefficients of a fitted scikit-learn estimator.

    ========================  =======================================  =================================================
    estimator                 model                                    prior of the coefficients
    ========================  =======================================  =================================================
    ``LogisticRegression``    `LogisticRegression`                     N(0, C)
    ``Ridge``                 `NormalInverseGammaRegression`           N(0, σ² / alpha); the noise σ² is unknown, with a
                                                                       flat prior of log σ²
    ``PoissonRegressor``      `PoissonRegression`                      N(0, 1 / (N alpha)): its loss is a mean over data
    ========================  =======================================  =================================================

    Without a penalty the prior is flat. An intercept is the last coefficient, and its prior is flat, as scikit-learn
    does not penalise it; of ``solver="liblinear"``, which does, it is N(0, C intercept_scaling²).

    Parameters
    ----------
    estimator : sklearn.linear_model.LogisticRegression, Ridge or PoissonRegressor
        Fitted to `X` and `y`, without sample weights.
    X : array_like or scipy.sparse matrix, shape (N, d)
        The features that it was fitted to, without a column for the intercept.
    y : array_like, shape (N,)
        The targets; of a classifier its two classes, of which the second is the label 1.

    Returns
    -------
    LogisticRegression, NormalInverseGammaRegression or PoissonRegression
        Runs start at its mode. ``model.predict(x, X)`` takes features as the estimator does.

    Raises
    ------
    TypeError
        For another estimator, or one that is not fitted.
    ValueError
        For what has no counterpart: other penalties, class weights, more than two classes, several targets, positive
        coefficients; and when the estimator's coefficients are a posterior standard deviation from the mode, because
        it was fitted to other data, with sample weights, or did not converge. From a tenth on a warning says so.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from sklearn.linear_model import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = rng.poisson(np.exp(X @ [0.5, -0.5]))
    >>> model = pdmp.models.from_sklearn(PoissonRegressor(alpha=0.1).fit(X, y), X, y)
    >>> model.variables
    {'coefficients': (2,), 'intercept': ()}
    """
    from sklearn import linear_model

    makers = {
        linear_model.LogisticRegression: _logistic,
        linear_model.Ridge: _ridge,
        linear_model.PoissonRegressor: _poisson,
    }
    make = makers.get(type(estimator))
    if make is None:
        allowed = ", ".join(cls.__name__ for cls in makers)
        raise TypeError(f"`estimator` must be one of sklearn.linear_model's {allowed}; got {type(estimator).__name__}.")
    if not hasattr(estimator, "coef_"):
        raise TypeError(f"`estimator` must be fitted: call {type(estimator).__name__}.fit(X, y) before.")
    coefficients = np.asarray(estimator.coef_, dtype=float)
    if coefficients.ndim == 2 and len(coefficients) > 1:
        what = "classes" if make is _logistic else "targets"
        raise ValueError(f"`estimator` has more than {'two' if make is _logistic else 'one'} {what}: no counterpart.")
    columns = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else np.shape(X)[-1]
    if columns != coefficients.size:
        raise ValueError(
            f"`X` must have the {coefficients.size} columns that the estimator was fitted to, got {columns}."
        )
    same_rows(X=X, y=y)
    model = make(estimator, X, y)
    x = coefficients.ravel()
    if estimator.fit_intercept:
        x = np.append(x, estimator.intercept_)
    at = x
    if make is _ridge:
        at = model.mode()  # far from it the Hessian, which has that of log σ², is indefinite
        x = np.append(x, at[-1])
    gradient = model.gradient(x)
    away = math.sqrt(max(gradient @ np.linalg.solve(model.hessian(at), gradient), 0.0))
    if not away < FAR:
        raise ValueError(
            f"the coefficients of `estimator` are {away:.3g} posterior standard deviations from the mode: it was not "
            "fitted to these data, or with sample weights, or it did not converge."
        )
    if away > NEAR:
        warn(
            f"the coefficients of `estimator` are {away:.2g} posterior standard deviations from the mode: if it was "
            "fitted with sample_weight, or to other data, the posterior, which is of these data without weights, is "
            "another than the estimator's. If its solver stopped early, the posterior is right: lower its tol."
        )
    model.initial = x
    return model


def _scales(estimator, coefficient, intercept, d):
    """Standard deviations of the prior (d,) or, with an intercept, (d + 1,)."""
    scale = np.full(d + bool(estimator.fit_intercept), coefficient)
    if estimator.fit_intercept:
        scale[-1] = intercept
    return scale


def _logistic(estimator, X, y):
    if len(estimator.classes_) != 2 or getattr(estimator, "multi_class", None) == "multinomial":
        raise ValueError(f"`estimator` must be of two classes, got {len(estimator.classes_)}, or a multinomial one.")
    penalty = getattr(estimator, "penalty", "l2")
    ratio = getattr(estimator, "l1_ratio", 0.0) or 0.0
    if penalty not in ("l2", "deprecated", None, "none") or ratio != 0.0:
        raise ValueError(
            f"`estimator` must have an L2 penalty or none, got penalty={penalty!r}, l1_ratio={ratio}: another is no "
            "Gaussian prior. For selection see pdmp.models.SpikeAndSlabLogisticRegression."
        )
    if estimator.class_weight is not None:
        raise ValueError("`estimator` must have class_weight=None: weighted data have no counterpart.")
    scale = math.inf if penalty in (None, "none") else math.sqrt(estimator.C)
    intercept = math.inf
    if estimator.solver == "liblinear":
        intercept = scale * estimator.intercept_scaling
    labels = np.asarray(y)
    if labels.ndim == 1 and not np.all(np.isin(labels, estimator.classes_)):
        raise ValueError(f"`y` must hold the classes {estimator.classes_.tolist()} of the estimator.")
    labels = (labels == estimator.classes_[1]).astype(float)
    prior = _scales(estimator, scale, intercept, estimator.coef_.shape[1])
    return LogisticRegression(X, labels, prior_scale=prior, intercept=bool(estimator.fit_intercept))


def _ridge(estimator, X, y):
    if estimator.positive:
        raise ValueError("`estimator` must have positive=False: constraints have no counterpart.")
    alpha = np.ravel(estimator.alpha)
    if alpha.size != 1:
        raise ValueError(f"`estimator` must have one alpha, got {alpha.size}.")
    covariance = 1.0 / float(alpha[0]) if alpha[0] > 0.0 else math.inf
    y = real("y", y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    intercept = bool(estimator.fit_intercept)
    return NormalInverseGammaRegression(X, y, 0.0, covariance, shape=0.0, scale=0.0, intercept=intercept)


def _poisson(estimator, X, y):
    n = len(y)
    scale = 1.0 / math.sqrt(n * estimator.alpha) if estimator.alpha > 0.0 else math.inf
    prior = _scales(estimator, scale, math.inf, estimator.coef_.size)
    return PoissonRegression(X, y, prior_scale=prior, intercept=bool(estimator.fit_intercept))
