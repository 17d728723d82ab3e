r"""Regressions whose groups have intercepts of their own, wᵍ ~ N(β₀, τ²): the fixed intercept is their mean.

`MixedRegression` has the same law with the effects uᵍ = wᵍ - β₀. Data that say what each wᵍ is say little of β₀ beside
them, so that wᵍ and β₀ are nearly independent, and uᵍ and β₀ are not (hierarchical centring).

References
----------
Gelfand, Sahu & Carlin (1995), Efficient parametrisations for normal linear mixed models, Biometrika 82.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.priors import derivative, potential
from pdmp.models.regressions.design import read_design
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp


class GroupIntercepts(MixedRegression):
    """`MixedRegression` with the state x = (β, log τ, w, a, c): effects of one grouping are intercepts.

    Parameters
    ----------
    *args, **options
        Of `MixedRegression`, with one group column ``"1|g"`` and an intercept.

    Raises
    ------
    ValueError
        For other groups, or no intercept.
    """

    constant: int  #: place of β₀

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        ones = len(self.groups) == 1 and (self.coded is not None or bool(np.all(self.groups[0].value == 1.0)))
        if self.intercept is None or not ones:
            raise ValueError("intercepts of groups are for a fixed intercept and one grouping (1 | g).")
        self.constant = self.intercept
        self.centred[:] = 1
        if self.coded is None:  # in files it is so already
            self.X[:, self.constant] = 0.0  # β₀ acts through the w alone
            self.X, self.design = read_design(self.X)
        self.initial[self.first[0] : self.first[1]] = self.initial[self.constant]

    @compiled
    def prior_potential(self, x):
        total, s = 0.0, x[self.n_fixed]
        for q in range(self.kinds.shape[0]):
            n = self.numbers
            total += potential(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x[self.place(q)])
        precision = exp(-2.0 * s)
        for j in range(self.first[0], self.first[1]):
            u = x[j] - x[self.constant]
            total += 0.5 * precision * (u * u) + s
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        for q in range(self.kinds.shape[0]):
            j, n = self.place(q), self.numbers
            out[j] += derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x[j])
        precision = exp(-2.0 * x[self.n_fixed])
        for j in range(self.first[0], self.first[1]):
            u = x[j] - x[self.constant]
            out[j] += precision * u
            out[self.constant] -= precision * u
            out[self.n_fixed] += 1.0 - precision * (u * u)

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), as of `MixedRegression`: effects are wᵍ - β₀."""
        draws = np.array(draws, dtype=float)
        if draws.shape[-1:] == (self.dim,):
            draws[..., self.first[0] : self.first[1]] -= draws[..., self.constant, None]
        return super().constrain(draws)
