"""The log-Gaussian Cox process on a grid: counts whose log intensity is a Gaussian field."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.targets.gaussian import DENSE, Gaussian
from pdmp.native.arguments import positive, real
from pdmp.native.classes import compiled


class LogGaussianCox(Model):
    r"""yᵢ ~ Poisson(area · exp(xᵢ)) for the cells i of a grid, x ~ N(mean, precision⁻¹) [1]_.

    U(x) = ½ (x - mean)ᵀ Q (x - mean) + Σᵢ [area eˣⁱ - yᵢ xᵢ]. Along a straight line a cell's rate vᵢ (area eˣⁱ - yᵢ) is
    convex where vᵢ > 0 and concave where vᵢ < 0: `pdmp.thinning.ConcaveConvex` bounds it exactly.

    Parameters
    ----------
    counts : array_like of int, any shape
        By cells, in rows as the coordinates are.
    precision : array_like or scipy.sparse matrix
        Q, of the cells one after the other, as `Gaussian` takes it; a sparse one makes local samplers cheap.
    mean : float or array_like, shape (cells,), default 0.0
        Of the log intensity.
    area : float, default 1.0
        Of a cell.

    Raises
    ------
    ValueError
        If a count is negative or not a whole number, shapes do not fit, or what `Gaussian` refuses.

    References
    ----------
    .. [1] Møller, Syversveen & Waagepetersen (1998), Log Gaussian Cox processes, Scand. J. Statist. 25.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogGaussianCox([3, 1, 4], precision=[1.0, 1.0, 1.0])
    >>> model.dim
    3
    """

    knows_constants = False

    counts: np.ndarray  #: (cells,)
    field: Gaussian
    area: float
    pair: np.ndarray  #: (pairs, 2) cells i < j that are neighbours in the field
    coupling: np.ndarray  #: (pairs,) Qᵢⱼ
    rest: np.ndarray  #: (cells,) Qᵢᵢ - Σⱼ |Qᵢⱼ|

    def __init__(
        self, counts: ArrayLike, precision: ArrayLike, mean: ArrayLike | None = 0.0, area: float = 1.0
    ) -> None:
        counts = np.array(real("counts", counts))
        if counts.size == 0 or not np.all(counts >= 0.0) or not np.all(counts == np.floor(counts)):
            raise ValueError("`counts` must be whole numbers that are not negative, at least one of them.")
        self.shape, self.area = counts.shape, positive("area", area)
        self.counts = counts.ravel()
        self.field = Gaussian(mean, precision)
        d = counts.size
        if self.field.dim != d:
            raise ValueError(f"`precision` must have a row for each of the {d} cells, got {self.field.dim}.")
        start = np.maximum(np.log((self.counts + 0.5) / self.area), self.field.mean)
        super().__init__(dim=d, n_data=d, variables={"x": counts.shape}, initial=start)
        rows = np.repeat(np.arange(d), np.diff(self.field.indptr))
        upper = rows < self.field.indices
        self.pair = np.stack([rows[upper], self.field.indices[upper]], axis=1)
        self.coupling = self.field.data[upper]
        beside = np.bincount(self.pair.ravel(), np.repeat(np.abs(self.coupling), 2), minlength=d)
        self.rest = self.field.curvatures() - beside

    @classmethod
    def generated(
        cls, n: int = 16, variance: float = 1.91, scale: float = 1.0 / 33.0, points: float = 126.0, seed: int = 0
    ) -> Self:
        """Counts drawn from a field with covariance variance · exp(-distance / (n · scale)) on an n × n grid.

        The distance is in cells, and `points` the mean number of points in the unit square that the grid divides, of
        area 1/n² a cell. By default the numbers of [1]_, where n = 64; the precision matrix is dense, so n <= 70.

        Returns
        -------
        model : LogGaussianCox
        x : ndarray, shape (n, n)
            The field that the counts were drawn with.
        """
        if n * n > DENSE:
            raise ValueError(f"`n` must be at most {math.isqrt(DENSE)}: the covariance matrix is dense; got {n}.")
        rng = np.random.default_rng(seed)
        cells = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), axis=-1).reshape(-1, 2)
        distance = np.linalg.norm(cells[:, None] - cells, axis=-1)
        covariance = variance * np.exp(-distance / (n * scale))
        mean = math.log(points) - 0.5 * variance
        x = mean + np.linalg.cholesky(covariance) @ rng.standard_normal(n * n)
        counts = rng.poisson(np.exp(x) / n**2).reshape(n, n)
        inverse = np.linalg.inv(covariance)
        return cls(counts, 0.5 * (inverse + inverse.T), mean, 1.0 / n**2), x.reshape(n, n)

    @compiled
    def prior_potential(self, x):
        return self.field.potential(x)

    @compiled
    def add_prior_gradient(self, x, out):
        self.field.add_gradient(x, out)

    @compiled
    def term_potential(self, x, i):
        return self.area * math.exp(x[i]) - self.counts[i] * x[i]

    @compiled
    def add_term_gradient(self, x, i, out):
        out[i] += self.area * math.exp(x[i]) - self.counts[i]

    @compiled
    def term_partial(self, x, i, j, scratch):
        return self.area * math.exp(x[i]) - self.counts[i] if i == j else 0.0

    @compiled
    def prior_curvature_bound(self, v):
        """vᵀQv, exactly."""
        return self.field.curvature_bound(v)

    @compiled
    def add_prior_parts(self, x, v, out):
        """The field's rates are affine: convex, whatever their slope."""
        for i in range(self.dim):
            value = 0.0
            for k in range(self.field.indptr[i], self.field.indptr[i + 1]):
                j = self.field.indices[k]
                value += self.field.data[k] * (x[j] - self.field.mean[j])
            out[i if out.shape[0] > 1 else 0, 0] += v[i] * value

    @compiled
    def add_term_parts(self, x, v, i, out):
        row = i if out.shape[0] > 1 else 0
        rate = v[i] * self.area * math.exp(x[i])
        out[row, 0] -= v[i] * self.counts[i]
        if v[i] > 0.0:
            out[row, 0] += rate
        else:
            out[row, 1] += rate
            out[row, 2] += v[i] * rate

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of the cell f with what it has of the field alone, or of a pair of neighbours."""
        if f < self.n_data:
            out[f] += self.area * math.exp(x[f]) - self.counts[f] + self.rest[f] * (x[f] - self.field.mean[f])
        else:
            i, j, q = self.pair[f - self.n_data, 0], self.pair[f - self.n_data, 1], self.coupling[f - self.n_data]
            a, b = x[i] - self.field.mean[i], x[j] - self.field.mean[j]
            out[i] += abs(q) * a + q * b
            out[j] += abs(q) * b + q * a

    def factors(self) -> list | tuple | None:
        """A factor for each cell, then one for each pair of neighbours in the field."""
        indptr = np.concatenate([np.arange(self.dim), self.dim + 2 * np.arange(len(self.pair) + 1)])
        return indptr, np.concatenate([np.arange(self.dim), self.pair.ravel()])

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Q + diag(area eˣ), (cells, cells)."""
        return self.field.hessian() + np.diag(self.area * np.exp(self.check(x)))

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        return self.field.curvatures() + self.area * np.exp(self.check(x))

    def prior_hessian_bounds(self) -> np.ndarray | None:
        """Q, twice; None above 5000 cells."""
        return self.field.hessian_bounds()

    def predict(self, x: ArrayLike) -> np.ndarray:
        """Expected counts at fields `x` (..., cells): (..., *shape)."""
        x = real("x", x)
        return self.area * np.exp(x).reshape(*x.shape[:-1], *self.shape)

    def observed_data(self) -> dict[str, np.ndarray]:
        return {"counts": np.asarray(self.counts, dtype=float).ravel()}

    def log_likelihood(self, x: ArrayLike, counts: ArrayLike | None = None) -> np.ndarray:
        """log p(counts | x), summed over the cells, for `x` of shape (cells,); the model's counts by default."""
        from scipy.special import gammaln

        y = self.counts if counts is None else real("counts", counts).ravel()
        x = self.check(x)
        return float(np.sum(y * (x + math.log(self.area)) - self.area * np.exp(x) - gammaln(y + 1.0)))
