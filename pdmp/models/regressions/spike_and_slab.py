"""Linear and logistic regression with a spike-and-slab prior: coefficients that are exactly 0 with some probability.

The potential is that of the slab alone: with all coefficients in the model. `pdmp.Sticky` knows what to make of it:
it takes the prior inclusion probabilities from the model. Any other process samples the posterior without spikes.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from pdmp.models.regressions.design import name_coefficients
from pdmp.models.regressions.glm import read_vector
from pdmp.models.regressions.linear_gaussian import LinearGaussian
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.native.arguments import coordinates, positive, real, same_rows

ENUMERATED = 16  #: models are enumerated up to so many coefficients that may be 0


class Enumeration(NamedTuple):
    """The posterior of a spike-and-slab regression, summed over all its models."""

    models: np.ndarray  #: (2^m, d) of bool: which coefficients are not 0
    probabilities: np.ndarray  #: (2^m,) of the models
    inclusion: np.ndarray  #: (d,) posterior inclusion probabilities
    mean: np.ndarray  #: (d,) posterior mean of the coefficients
    covariance: np.ndarray  #: (d, d)
    log_evidence: float  #: log p(y), up to a constant of the data and the noise


class _SpikeAndSlab:
    """What both regressions say of their spikes."""

    def set_spikes(self, inclusion: ArrayLike, always: ArrayLike) -> None:
        """Check and keep the prior inclusion probabilities, 1 for those in `always`."""
        values = np.array(real("inclusion", inclusion))
        if values.shape not in ((), (self.dim,)):
            raise ValueError(f"`inclusion` must be a number or of shape ({self.dim},), got shape {values.shape}.")
        values = np.broadcast_to(values, (self.dim,)).copy()
        values[coordinates("always", always, self.dim)] = 1.0
        if not np.all((values > 0.0) & (values <= 1.0)):
            raise ValueError(
                f"`inclusion` must be above 0 and at most 1, got {values[~((values > 0) & (values <= 1))][0]}."
            )
        if np.all(values == 1.0):
            raise ValueError("no coefficient is left that may be 0: every one has `inclusion` 1 or is in `always`.")
        self._inclusion = values

    def prior_inclusion(self) -> np.ndarray | None:
        """Prior probabilities, (dim,), that a coefficient is not 0; 1 for those that are always in the model."""
        return self._inclusion.copy()


class SpikeAndSlabLinearRegression(_SpikeAndSlab, LinearGaussian):
    r"""Linear regression with a spike-and-slab prior: xⱼ ~ N(0, slab_scale²) with the probability inclusionⱼ, else 0.

    yᵢ ~ N(aᵢ·x, noise_scale²). With few coefficients `enumerate` sums over all models.

    Parameters
    ----------
    X : array_like, shape (N, d)
        Features.
    y : array_like, shape (N,)
        Targets.
    noise_scale, slab_scale : float, default 1.0
        Standard deviations of one observation, and of one coefficient that is not 0.
    inclusion : float or array_like, shape (d,), default 0.5
        Prior probabilities that a coefficient is not 0, above 0; 1 for one that never is.
    always : sequence of int, or mask of shape (d,)
        Coefficients whose inclusion is 1, an intercept for example.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, a scale is not positive, or `inclusion` is out of range.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = pdmp.models.SpikeAndSlabLinearRegression(X, X @ [1.0, 0.0, 0.0], inclusion=0.2)
    >>> model.enumerate().inclusion.round(1)
    array([1., 0., 0.])
    >>> run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), time=1_000.0, seed=1)
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise_scale: float = 1.0,
        slab_scale: ArrayLike = 1.0,
        inclusion: ArrayLike | None = 0.5,
        always: ArrayLike = (),
    ) -> None:
        if sparse.issparse(X):
            raise ValueError(
                f"`X` must be dense for {type(self).__name__}; pdmp.models.LinearGaussian takes it sparse."
            )
        if np.ndim(X) != 2 or 0 in np.shape(X):
            raise ValueError(f"`X` must have shape (N, d), N and d at least 1; got {np.shape(X)}.")
        same_rows(X=X, y=y)
        y = read_vector("y", y, len(X))
        super().__init__(np.array(real("X", X)), y, noise_scale, positive("slab_scale", slab_scale))
        self.variables = name_coefficients({"coefficients": (self.dim,)}, X)
        self.set_spikes(inclusion, always)

    def enumerate(self) -> Enumeration:
        """The exact posterior, model by model.

        Returns
        -------
        Enumeration
            With S the posterior covariance of the k coefficients in a model and b = Xᵀy / σ² of them, log p(y | model)
            = ½ bᵀSb + ½ log det S - k log slab_scale up to a constant.

        Raises
        ------
        ValueError
            With more than 16 coefficients that may be 0.
        """
        free = np.flatnonzero(self._inclusion < 1.0)
        if len(free) > ENUMERATED:
            raise ValueError(
                f"models are enumerated up to {ENUMERATED} coefficients that may be 0, and {len(free)} may: use "
                "pdmp.Sticky, and pdmp.diagnostics.inclusion(run)."
            )
        models = np.ones((2 ** len(free), self.dim), bool)
        models[:, free] = list(itertools.product([False, True], repeat=len(free)))
        precision, log_scale = self.hessian(), -0.5 * math.log(self.prior_precision)
        pull = precision @ self.law.mode()
        logs = models[:, free] @ np.log(self._inclusion[free]) + ~models[:, free] @ np.log1p(-self._inclusion[free])
        means, seconds = np.zeros((len(models), self.dim)), np.zeros((self.dim, self.dim))
        covariances = []
        for k, model in enumerate(models):
            inverse = np.linalg.inv(precision[np.ix_(model, model)])
            mean = inverse @ pull[model]
            logs[k] += 0.5 * (pull[model] @ mean + np.linalg.slogdet(inverse)[1]) - model.sum() * log_scale
            means[k, model] = mean
            covariances.append(inverse)
        largest = logs.max()
        probabilities = np.exp(logs - largest)
        total = probabilities.sum()
        probabilities /= total
        mean = probabilities @ means
        for p, model, here, spread in zip(probabilities, models, means, covariances, strict=True):
            seconds[np.ix_(model, model)] += p * spread
            seconds += p * np.outer(here - mean, here - mean)
        inclusion = probabilities @ models
        return Enumeration(models, probabilities, inclusion, mean, seconds, float(largest + math.log(total)))

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (d,), and covariance, shape (d, d), of the posterior with its spikes, by `enumerate`."""
        found = self.enumerate()
        return found.mean, found.covariance


class SpikeAndSlabLogisticRegression(_SpikeAndSlab, LogisticRegression):
    r"""Logistic regression with a spike-and-slab prior: xⱼ ~ N(0, slab_scaleⱼ²) with probability inclusionⱼ, else 0.

    Parameters
    ----------
    X, y, dtype
        As in `LogisticRegression`.
    slab_scale : float or array_like of shape (d,), default 1.0
        Standard deviations of coefficients that are not 0. A number is not for the intercept, whose prior is flat.
    inclusion : float or array_like, shape (d,), default 0.5
        Prior probabilities that a coefficient is not 0, above 0; 1 for one that never is, as the intercept.
    always : sequence of int, or mask of shape (d,)
        Coefficients whose inclusion is 1.
    intercept : bool, default False
        Whether to append a column of ones to `X`; its coefficient comes last, and is always in the model.

    Raises
    ------
    ValueError
        As `LogisticRegression`, and if `inclusion` is out of range.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 2))
    >>> model = pdmp.models.SpikeAndSlabLogisticRegression(X, rng.integers(0, 2, 20), inclusion=0.2)
    >>> model.prior_inclusion()
    array([0.2, 0.2])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        slab_scale: ArrayLike = 1.0,
        inclusion: ArrayLike | None = 0.5,
        always: ArrayLike = (),
        dtype: DTypeLike | None = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(X, y, slab_scale, dtype, intercept)
        if intercept:
            always = np.append(coordinates("always", always, self.dim), self.dim - 1)
        self.set_spikes(inclusion, always)
