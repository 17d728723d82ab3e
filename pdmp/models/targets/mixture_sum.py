"""A target with 2^D modes whose gradient is a sum over data."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import matrix, one_of, positive, real
from pdmp.native.classes import compiled, inlined


@inlined
def _share(a, b, precision):
    """Weight of the first component, exp(-a²τ/2) / (exp(-a²τ/2) + exp(-b²τ/2)), τ the precision; no overflow."""
    z = 0.5 * precision * (b * b - a * a)
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


class MixtureSum(Model):
    r"""U(w) = -f Σᵢ Σₖ log[exp(-(wₖ - 1 - μᵢₖ)² / 2s²) + exp(-(wₖ + 1 - μ'ᵢₖ)² / 2s²)], modes near each of {-1, 1}^D.

    Coordinates are independent. With ``scale="mean"``, f = 1/N, the density is a geometric mean of mixtures, and the
    barrier between neighbouring modes is 1/(2s²) - log 2, which is 7.3 for s = 0.25. With ``scale="sum"``, f = 1, as
    printed in [1]_, it is N times that, some 7,300 for N = 1,000: nothing that moves by this density crosses it.

    Parameters
    ----------
    centres : array_like of shape (N, 2 D)
        μᵢ₁ … μᵢ_D, then μ'ᵢ₁ … μ'ᵢ_D: how far datum i shifts the component near 1, and that near -1.
    width : float, default 0.25
        s, the standard deviation of a component.
    scale : {"mean", "sum"}, default "mean"
        The factor f.

    Raises
    ------
    ValueError
        If `centres` is not a finite matrix with an even number of columns, `width` is not positive, or `scale` is
        another.

    References
    ----------
    .. [1] Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler. ICML, supplement, section E.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.MixtureSum.generated(n_data=100, dim=2, seed=1)
    >>> model.dim, model.n_data
    (2, 100)
    """

    centres: np.ndarray
    precision: float
    factor: float

    def __init__(self, centres: ArrayLike, width: float = 0.25, scale: float | str = "mean") -> None:
        centres = matrix("centres", centres, columns="2 D")
        if centres.shape[1] % 2:
            raise ValueError(f"`centres` must have shape (N, 2 D), got {centres.shape}.")
        width = positive("width", width)
        one_of("scale", scale, ("mean", "sum"))
        n_data, dim = len(centres), centres.shape[1] // 2
        super().__init__(dim=dim, n_data=n_data, variables={"w": (dim,)}, initial=np.ones(dim))
        self.centres, self.width, self.scale = centres, width, scale
        self.precision = 1.0 / self.width**2
        self.factor = 1.0 / n_data if scale == "mean" else 1.0

    @classmethod
    def generated(cls, n_data: int = 1_000, dim: int = 2, spread: float = 0.01, seed: int = 0, **options: Any) -> Self:
        """The model with centres drawn from N(0, spread²); those of [1]_ by default."""
        return cls(spread * np.random.default_rng(seed).standard_normal((n_data, 2 * dim)), **options)

    @compiled
    def term_potential(self, x, i):
        total = 0.0
        for k in range(self.dim):
            a, b = x[k] - 1.0 - self.centres[i, k], x[k] + 1.0 - self.centres[i, self.dim + k]
            u, w = 0.5 * self.precision * (a * a), 0.5 * self.precision * (b * b)
            total += min(u, w) - math.log1p(math.exp(-abs(u - w)))
        return self.factor * total

    @compiled
    def add_term_gradient(self, x, i, out):
        for k in range(self.dim):
            a, b = x[k] - 1.0 - self.centres[i, k], x[k] + 1.0 - self.centres[i, self.dim + k]
            share = _share(a, b, self.precision)
            out[k] += self.factor * self.precision * (share * a + (1.0 - share) * b)

    @compiled
    def curvature_bound(self, v):
        """A bound on v·H(x)v for every x: f N |v|² / s², the curvature of one component."""
        square = 0.0
        for k in range(self.dim):
            square += v[k] * v[k]
        return self.factor * self.n_data * self.precision * square

    @compiled
    def partial_curvature_bounds(self, v, out):
        """Bounds on vᵢ Σⱼ Hᵢⱼ(x) vⱼ for every x: f N vᵢ² / s²; H is diagonal."""
        for k in range(self.dim):
            out[k] = self.factor * self.n_data * self.precision * v[k] * v[k]

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Diagonal, shape (D, D): f Σᵢ [1/s² - p(1 - p)(a - b)²/s⁴], a and b the distances to the two components."""
        x, d = self.check(x), self.dim
        a, b = x - 1.0 - self.centres[:, :d], x + 1.0 - self.centres[:, d:]
        z = 0.5 * self.precision * (b * b - a * a)
        e = np.exp(-np.abs(z))
        both = e / (1.0 + e) ** 2  # p (1 - p)
        return np.diag(self.factor * (self.precision - self.precision**2 * both * (a - b) ** 2).sum(axis=0))

    def marginal(self, k: int, w: ArrayLike) -> np.ndarray:
        """Density of coordinate k, normalised by quadrature, at the points `w` of any shape."""
        w = real("w", w)
        grid = np.linspace(-1.0 - 12.0 * self.width, 1.0 + 12.0 * self.width, 8_001)
        u = self._marginal_potential(k, np.concatenate([grid, w.ravel()]))
        least = u[: len(grid)].min()
        density = np.exp(least - u)
        mass = np.trapezoid(density[: len(grid)], grid)
        return (density[len(grid) :] / mass).reshape(w.shape)

    def crossing_rate(self, k: int, speed: float) -> float:
        """Crossings of 0 by coordinate k per unit of time, in equilibrium: speed · p(0), `speed` the mean of |vₖ|."""
        return speed * float(self.marginal(k, 0.0))

    def _marginal_potential(self, k, w):
        total = np.zeros(len(w))
        for first in range(0, self.n_data, 100):  # not all data times all points at once
            part = self.centres[first : first + 100]
            a = w[:, None] - 1.0 - part[:, k]
            b = w[:, None] + 1.0 - part[:, self.dim + k]
            total -= np.logaddexp(-0.5 * self.precision * a * a, -0.5 * self.precision * b * b).sum(axis=1)
        return self.factor * total
