"""The mode of a potential with many data: stochastic gradient descent, then a quasi-Newton search with all the data.

The distance to the mode is measured without knowing the mode. The Newton step of a coordinate is ∂ⱼU / Hⱼⱼ, H the
Hessian, and ∂ⱼU / Hⱼⱼ^½ in units of its conditional standard deviation Hⱼⱼ^-½. The error is the root mean square of
these, each coordinate weighted by its curvature Hⱼⱼ:

    error = (Σⱼ (∂ⱼU)² / Σⱼ Hⱼⱼ)^½.

An anchor of control variates with the error ε adds about ε² to 1, the mean square distance of a draw to the mode in the
same units. It biases nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.arguments import count, positive
from pdmp.native.classes import entry, readable

DESCENT = 0.1  #: share of the data passes for the descent
PROBES = 4  #: random directions in which the trace of the Hessian is measured, above 200 dimensions


@dataclass(frozen=True)
class Mode:
    """Where a search for the mode ended.

    Attributes
    ----------
    x : ndarray, shape (dim,)
    potential : float
        U(x).
    error : float
        Distance to the mode as the gradient of all the data shows it, (Σⱼ (∂ⱼU)² / Σⱼ Hⱼⱼ)^½: a root mean square over
        the coordinates in units of their conditional standard deviations. It is infinite where U is not finite.
    tolerance : float
        The error that was asked for.
    data_passes : float
        What was spent, in gradients of all the data.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> found = pdmp.models.find_mode(model, tolerance=0.01)
    >>> found.reached, found.error < 0.01
    (True, True)
    """

    x: np.ndarray = field(repr=False)
    potential: float
    error: float
    tolerance: float
    data_passes: float

    @property
    def reached(self) -> bool:
        """Whether the error is at most the tolerance."""
        return self.error <= self.tolerance

    def __str__(self):
        what = "the mode" if self.reached else "no mode"
        return (
            f"{what} within {self.tolerance:g} standard deviations: the error is {self.error:.2g} after "
            f"{self.data_passes:.0f} data passes"
        )


@entry
def _estimate_gradient(model, x, rows, out):
    """∇U(x) estimated from these rows."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    model.add_batch_gradient(x, rows, rows.shape[0], out)
    for j in range(out.shape[0]):
        out[j] *= model.n_data / rows.shape[0]
    model.add_prior_gradient(x, out)


class _Reached(Exception):
    """The tolerance is reached."""


class _Search:
    """One search: the best point so far, and what was spent."""

    def __init__(self, model, tolerance, data_passes):
        self.model, self.tolerance, self.budget = model, tolerance, data_passes
        self.x, self.potential, self.square, self.curvature, self.spent = None, math.inf, math.inf, math.nan, 0.0

    @property
    def error(self):
        error = math.sqrt(self.square / self.curvature) if self.square < math.inf else math.inf
        return error if error == error else math.inf

    def measure(self):
        """The mean curvature at the best point."""
        curvature = abs(float(self.model.curvature(self.x, PROBES)))
        self.curvature = curvature if 0.0 < curvature < math.inf else math.nan
        self.spent += 2 * PROBES if self.model.dim > 200 else 1

    def evaluate(self, x):
        """U and ∇U; the best point is the one with the least U."""
        potential, gradient = self.model.potential(x), self.model.gradient(x)
        self.spent += 1
        if potential < self.potential and np.all(np.isfinite(gradient)):
            self.x, self.potential, self.square = x.copy(), potential, float(np.mean(gradient**2))
            if self.error <= self.tolerance:
                raise _Reached
        return potential, gradient

    def descend(self, x, size, step, seed):
        """Adam with steps that decrease to zero linearly; where the numbers overflow it ends."""
        model, rng = self.model, np.random.default_rng(seed)
        steps = math.ceil(DESCENT * self.budget * model.n_data / size)
        gradient, first, second = np.zeros(model.dim), np.zeros(model.dim), np.zeros(model.dim)
        for k in range(1, steps + 1):
            rows = rng.integers(0, model.n_data, size)
            with readable(type(model).__name__):
                _estimate_gradient(model.native, x, rows, gradient)
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            rate = step * (1.0 - (k - 1) / steps) * math.sqrt(1.0 - 0.999**k) / (1.0 - 0.9**k)
            x -= rate * first / (np.sqrt(second) + 1e-300)
        self.spent += steps * size / model.n_data
        return x

    def polish(self):
        """A quasi-Newton search from the best point, with all the data."""
        from scipy import optimize

        while self.spent < self.budget and not self.error <= self.tolerance:
            before, left = self.potential, math.ceil(self.budget - self.spent)
            try:
                optimize.minimize(
                    self.evaluate, self.x, jac=True, method="L-BFGS-B",
                    options={"maxfun": left, "maxiter": left, "ftol": 0.0, "gtol": 0.0},
                )  # fmt: skip
            except _Reached:
                pass
            self.measure()  # the curvature has changed on the way
            if not self.potential < before:
                break


def find_mode(
    model: Any,
    initial: ArrayLike | None = None,
    tolerance: float = 0.1,
    data_passes: float = 1_000.0,
    size: int | None = None,
    step: float = 0.02,
    seed: int = 0,
) -> Mode:
    """A minimum of U for many data: stochastic gradient descent, then a quasi-Newton search with all the data.

    The descent is Adam [1]_, whose steps decrease to zero, over a tenth of the data passes. What was reached is
    said, not assumed. Of a posterior with several modes this finds one.

    Parameters
    ----------
    model : Model
    initial : array_like of shape (dim,), optional
        Where the search begins; `initial` of the model when omitted.
    tolerance : float, default 0.1
        Largest error at which the search ends: the distance to the mode in standard deviations of the posterior,
        as the gradient shows it.
    data_passes : float, default 1,000
        Budget, in gradients of all the data.
    size : int, optional
        Terms in a batch of the descent; N / 100 when omitted, and at least 32.
    step : float, default 0.02
        The first step of the descent, in units of x.
    seed : int, default 0
        Of the batches.

    Returns
    -------
    pdmp.models.Mode
        `x`, the `error` there, and whether the tolerance was `reached`.

    Raises
    ------
    ValueError
        For an `initial` of another shape, or another argument that is not positive.

    References
    ----------
    .. [1] Kingma & Ba (2015), Adam: a method for stochastic optimization, ICLR, algorithm 1.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> bool(abs(pdmp.models.find_mode(model, tolerance=1e-3).x - model.mode())[0] < 1e-3)
    True
    """
    start = model.initial if initial is None else model.check(initial, "initial")
    size = max(32, model.n_data // 100) if size is None else count("size", size)
    tolerance, step = positive("tolerance", tolerance), positive("step", step)
    found, seed = _Search(model, tolerance, positive("data_passes", data_passes)), count("seed", seed, least=0)
    x = start.copy()
    if model.n_data and model.divisible:
        with np.errstate(all="ignore"):
            x = found.descend(x, min(size, model.n_data), step, seed)
    for point in (start, x):  # the start too: a step that is too long leads away from it
        if np.all(np.isfinite(point)):
            found.evaluate(point)
    if found.x is None:
        return Mode(start, math.inf, math.inf, tolerance, found.spent)
    found.measure()
    found.polish()
    return Mode(found.x, found.potential, found.error, tolerance, found.spent)
