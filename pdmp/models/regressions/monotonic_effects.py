r"""Posteriors with monotonic effects, whose steps are no linear functions of what has a simple law.

The rows of a model are linear in D steps a, which a state x has w in the place of, with b on average [1]_,

    aᵢ = b D eᵢ / Σ e,     eᵢ = -log Φ(-wᵢ),

and independent priors: U(x) = prior(x) + rows(a(x)), without a Jacobian. With w ~ N(0, 1), e are exponential variables,
and the shares of the steps uniform on their simplex.

References
----------
.. [1] Bürkner & Charpentier (2020), Modelling monotonic effects of ordinal predictors in Bayesian regression models,
   Br. J. Math. Stat. Psychol. 73, eq. 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pdmp.expressions.special import log_ndtr, mills
from pdmp.models.regressions.moved_coordinates import MovedRows
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.native.arguments import real
from pdmp.native.classes import compiled

TINY = 1e-300  #: sum of exponential variables, at least


class Steps(NamedTuple):
    """A monotonic effect: coordinates of the model."""

    steps: np.ndarray  #: (D,) of a, in x of w
    size: int  #: of b


class MonotonicEffects(MovedRows):
    """A posterior whose state has w in the place of the steps of monotonic effects; the priors in `base` are of w."""

    first: np.ndarray  #: (sets + 1,) where the entries of a set begin
    coordinate: np.ndarray
    size: np.ndarray  #: (sets,)

    def __init__(self, base: SumOfTerms, sets: Sequence[Steps]) -> None:
        self.base, self.sets = base, list(sets)
        self.first = np.cumsum([0, *(len(one.steps) for one in sets)]).astype(np.int64)
        self.coordinate = np.concatenate([one.steps for one in sets]).astype(np.int64)
        self.size = np.array([one.size for one in sets], np.int64)
        super().__init__(
            dim=base.dim,
            n_data=base.n_data,
            variables=base.variables,
            initial=np.array(base.initial),
            transforms=base.transforms,
        )

    @compiled
    def room(self):
        return ()

    @compiled(inline=False)
    def natural(self, x, y, room):
        """Write x with steps into y."""
        for j in range(self.dim):
            y[j] = x[j]
        for k in range(self.size.shape[0]):
            begin, stop, total = self.first[k], self.first[k + 1], 0.0
            for i in range(begin, stop):
                y[self.coordinate[i]] = -log_ndtr(-x[self.coordinate[i]])
                total += y[self.coordinate[i]]
            for i in range(begin, stop):
                y[self.coordinate[i]] *= x[self.size[k]] * (stop - begin) / max(total, TINY)
        return 0.0

    @compiled(inline=False, allocates=True)
    def pull_back(self, x, y, room, by_natural, of_effects, out):
        """Add the derivatives by x of what has the derivatives `by_natural`, which change, by y(x)."""
        for k in range(self.size.shape[0]):
            begin, stop, along, total, slope = self.first[k], self.first[k + 1], 0.0, 0.0, 0.0
            for i in range(begin, stop):
                along += by_natural[self.coordinate[i]] * y[self.coordinate[i]]
                total += -log_ndtr(-x[self.coordinate[i]])
            total = max(total, TINY)
            for i in range(begin, stop):
                j = self.coordinate[i]
                slope += by_natural[j] * -log_ndtr(-x[j]) / total
                by_natural[j] = (by_natural[j] * x[self.size[k]] * (stop - begin) - along) * mills(-x[j]) / total
            by_natural[self.size[k]] += slope * (stop - begin)
        for j in range(self.dim):
            out[j] += by_natural[j]

    @compiled
    def prior_at(self, x, y):
        return self.base.prior_potential(x)

    @compiled
    def add_prior_slopes(self, x, y, by_natural, out):
        self.base.add_prior_gradient(x, out)

    def natural_draws(self, draws: ArrayLike) -> np.ndarray:
        """Draws with steps, (..., dim), from draws of x."""
        draws = real("draws", draws, self.dim)
        y = draws.copy()
        for one in self.sets:
            parts = -special.log_ndtr(-draws[..., one.steps])
            sums = np.maximum(parts.sum(axis=-1, keepdims=True), TINY)
            y[..., one.steps] = parts * (draws[..., [one.size]] * len(one.steps) / sums)
        return y

    def coordinates(self, natural: ArrayLike) -> np.ndarray:
        """x (..., dim) of what `natural_draws` gives, with a mean of -log Φ(-w) of 1."""
        x = np.array(real("natural", natural))
        for one in self.sets:
            size = x[..., [one.size]]
            parts = np.maximum(x[..., one.steps] / np.where(size == 0.0, 1.0, size), TINY)
            x[..., one.steps] = -special.ndtri_exp(-parts)
        return x

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the sum of all terms, and its Hessian as of steps that are linear in x."""
        y = self.natural_draws(x)
        gradient, hessian = self.base.data_sums(y)
        jacobian = np.zeros((self.dim, self.dim))
        for j in range(self.dim):  # of a row of the derivatives of y by x
            self.pull_back(x, y, (), np.eye(self.dim)[j], 0.0, jacobian[j])
        return gradient @ jacobian, jacobian.T @ hessian @ jacobian

    @property
    def kinds(self) -> np.ndarray:
        """Of the priors, see `SumOfTerms`."""
        return self.base.kinds

    @property
    def numbers(self) -> np.ndarray:
        """Of the priors."""
        return self.base.numbers
