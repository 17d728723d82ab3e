"""Bounds from the size of the Hessian H of the potential: along a straight path v·∇U has the derivative v·Hv.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling, Ann.
Statist. 47, section 3.3 (matrices that dominate the Hessian, and Lipschitz constants); Bouchard-Côté, Vollmer & Doucet
(2018), The Bouncy Particle Sampler, JASA 113, section 2.3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import Compiled, compiled, inlined
from pdmp.process import HORIZON
from pdmp.thinning.affine import affine_proposal
from pdmp.thinning.bound import Bound


class _Dominated(Bound):
    """Base of bounds on rates v·∇U or vᵢ ∂ᵢU, whose derivatives in time are v·Hv and vᵢ (Hv)ᵢ; refuses others."""

    straight = True

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        super().check(model, form, flow, components)
        if form is None:
            raise ValueError(
                f'pdmp.thinning.{type(self).__name__} does not know the rates of this process; use thinning="grid".'
            )


class Lipschitz(_Dominated):
    """A Lipschitz constant L of the gradient: |∇U(x) - ∇U(y)| <= L |x - y| for all x and y.

    The derivative in time of v·∇U is at most L|v|², that of vᵢ ∂ᵢU at most L|vᵢ||v|.

    Parameters
    ----------
    constant : float
        L, in the Euclidean norm: the largest absolute eigenvalue of any Hessian.

    Raises
    ------
    ValueError
        Unless `constant` is a positive finite number.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.BPS(target, thinning=pdmp.thinning.Lipschitz(4.0)), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    constant: float

    name = "the Lipschitz bound"

    def __init__(self, constant: float) -> None:
        self.constant = positive("constant", constant)

    @compiled
    def propose(self, process, state, i, now, rng):
        a, b, v = state.memory.bound.rates, state.memory.bound.slope_bounds, state.v
        process.signed_rates(state, now, rng, a)
        square = 0.0
        for j in range(v.shape[0]):
            square += v[j] * v[j]
        if b.shape[0] == 1:
            b[0] = self.constant * square
        else:
            for j in range(b.shape[0]):
                b[j] = self.constant * abs(v[j]) * math.sqrt(square)
        return affine_proposal(a, b, now, rng)


class Hessian(_Dominated):
    """A matrix M that dominates the Hessian entry by entry: |Hᵢⱼ(x)| <= Mᵢⱼ for every x.

    The derivative in time of vᵢ ∂ᵢU is at most |vᵢ| Σⱼ Mᵢⱼ |vⱼ|, that of v·∇U at most the sum of these.

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        M >= 0, in units of the Hessian.

    Raises
    ------
    ValueError
        If M is not square, or not finite and >= 0, or does not fit the model.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> bound = pdmp.thinning.Hessian([[1.0, 0.0], [0.0, 4.0]])
    >>> run = pdmp.sample(pdmp.BPS(target, thinning=bound), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    matrix: np.ndarray

    name = "the Hessian bound"

    def __init__(self, matrix: ArrayLike) -> None:
        matrix = np.ascontiguousarray(matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"`matrix` must have shape (d, d), got {matrix.shape}.")
        if not np.all(np.isfinite(matrix)) or np.any(matrix < 0.0):
            raise ValueError("`matrix` must be finite and >= 0: it bounds absolute values of the Hessian's entries.")
        self.matrix = matrix

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        super().check(model, form, flow, components)
        if len(self.matrix) != model.dim:
            raise ValueError(f"`matrix` must have shape ({model.dim}, {model.dim}), got {self.matrix.shape}.")

    @compiled
    def propose(self, process, state, i, now, rng):
        a, b, v = state.memory.bound.rates, state.memory.bound.slope_bounds, state.v
        process.signed_rates(state, now, rng, a)
        m = b.shape[0]
        b[0] = 0.0
        for j in range(v.shape[0]):
            row = 0.0
            for k in range(v.shape[0]):
                row += self.matrix[j, k] * abs(v[k])
            if m == 1:
                b[0] += abs(v[j]) * row
            else:
                b[j] = abs(v[j]) * row
        return affine_proposal(a, b, now, rng)


class Expiring(NamedTuple):
    """Memory of a bound that holds up to a horizon only."""

    rates: np.ndarray  #: (m,) signed rates
    slope_bounds: np.ndarray  #: (m,) bounds on their derivatives in time, up to the horizon
    horizon: np.ndarray  #: (1,) the time for which the bound holds
    horizons: np.ndarray  #: (1,) how often it was adapted


@inlined
def adapt_horizon(memory, wait, width):
    """Change the horizon, on a logarithmic scale, towards the one that 30 % of the proposals reach without an arrival.

    `memory` has the arrays ``horizon`` and ``horizons``, (1,) each; `wait` is the time to the arrival under a bound
    that held for `width`, infinite when there was none.
    """
    memory.horizons[0] += 1.0
    gain = max(0.05, 1.0 / (1.0 + 0.1 * memory.horizons[0]))
    memory.horizon[0] *= math.exp(gain * ((1.0 if wait >= width else 0.0) - 0.3))
    if wait < 0.01 * width:  # the horizon was much too far
        memory.horizon[0] *= 0.5


class LocalHessian(Bound):
    """The model's bounds on the derivatives of the rates over the next piece of the path; they expire at its end.

    It is for Hessians without a global bound. ``curvature_bound_within(x, v, s)`` of the model bounds v·H(x + uv)v over
    0 <= u <= s, and ``partial_curvature_bounds_within(x, v, s, out)`` bounds each vᵢ Σⱼ Hᵢⱼ(x + uv) vⱼ. The length s of
    the piece adapts.

    Examples
    --------
    >>> import pdmp
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((10, 2))
    >>> model = pdmp.models.PoissonRegression(X, np.arange(10))
    >>> run = pdmp.sample(pdmp.BPS(model, thinning=pdmp.thinning.LocalHessian()), events=50, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "the model's local slope bound"
    wants = ("curvature_bound_within", "partial_curvature_bounds_within")
    straight = True
    adapts = True

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        a, b = memory.rates, memory.slope_bounds
        process.signed_rates(state, now, rng, a)
        width = memory.horizon[0]
        process.rate_slope_bounds_within(state, now, width, b)
        time, bound = affine_proposal(a, b, now, rng)
        adapt_horizon(memory, time - now, width)
        return (now + width, HORIZON) if time - now >= width else (time, bound)

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return Expiring(np.zeros(m), np.zeros(m), np.full(1, width), np.zeros(1))
