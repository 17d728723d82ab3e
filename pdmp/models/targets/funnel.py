"""Neal's funnel: a scale and what it scales."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import count, positive
from pdmp.native.classes import compiled


class Funnel(Model):
    r"""Neal's funnel [1]_: v ~ N(0, scale²) and, given v, z₁, …, zₙ ~ N(0, eᵛ) independently; x = (v, z), n = dim - 1.

    U(x) = v²/(2 scale²) + n v/2 + e⁻ᵛ |z|²/2. Deep in the neck curvatures grow as e⁻ᵛ: no single step or scale serves
    everywhere, which is what the target is for.

    Parameters
    ----------
    dim : int, default 10
        Of v and z together.
    scale : float, default 3.0
        Standard deviation of v.

    Raises
    ------
    ValueError
        If `dim` is less than 2 or `scale` is not positive.

    References
    ----------
    .. [1] Neal (2003), Slice sampling, Annals of Statistics 31, section 8.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.Funnel(dim=3).exact_draws(100, seed=1).shape
    (100, 3)
    """

    scale: float

    def __init__(self, dim: int = 10, scale: float = 3.0) -> None:
        dim, self.scale = count("dim", dim, least=2), positive("scale", scale)
        super().__init__(dim=dim, variables={"v": (), "z": (dim - 1,)})

    @compiled
    def potential(self, x):
        square, w = 0.0, x[0] / self.scale
        for j in range(1, self.dim):
            square += x[j] * x[j]
        if square > 0.0:
            square *= math.exp(-x[0])
        return 0.5 * (w * w + (self.dim - 1) * x[0] + square)

    @compiled
    def add_gradient(self, x, out):
        square, precision = 0.0, math.exp(-x[0])
        for j in range(1, self.dim):
            square += x[j] * x[j]
            out[j] += precision * x[j]
        out[0] += x[0] / (self.scale * self.scale) + 0.5 * ((self.dim - 1) - precision * square)

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of v alone, or of x[f] given v."""
        if f == 0:
            out[0] += x[0] / (self.scale * self.scale)
        else:
            pull = math.exp(-x[0]) * x[f]
            out[0] += 0.5 * (1.0 - pull * x[f])
            out[f] += pull

    def factors(self) -> list | tuple | None:
        """A factor for v, and one for each coordinate of z given v."""
        return [[0], *([0, j] for j in range(1, self.dim))]

    def hessian(self, x: ArrayLike) -> np.ndarray:
        x = self.check(x)
        precision = math.exp(-x[0])
        hessian = precision * np.eye(self.dim)
        hessian[0, 0] = 1.0 / self.scale**2 + 0.5 * precision * float(x[1:] @ x[1:])
        hessian[0, 1:] = hessian[1:, 0] = -precision * x[1:]
        return hessian

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """v = -n scale²/2, z = 0: far down the neck, where hardly any of the mass is."""
        mode = np.zeros(self.dim)
        mode[0] = -0.5 * (self.dim - 1) * self.scale**2
        return mode

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (dim,) and covariance (dim, dim), in closed form: the variance of a zⱼ is E eᵛ = exp(scale²/2)."""
        variance = np.full(self.dim, math.exp(0.5 * self.scale**2))
        variance[0] = self.scale**2
        return np.zeros(self.dim), np.diag(variance)

    def exact_draws(self, n: int, seed: int | None = None) -> np.ndarray:
        """Independent draws from the distribution, (n, dim)."""
        x = np.random.default_rng(seed).standard_normal((n, self.dim))
        x[:, 0] *= self.scale
        x[:, 1:] *= np.exp(0.5 * x[:, :1])
        return x
