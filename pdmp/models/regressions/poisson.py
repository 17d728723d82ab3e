"""Bayesian Poisson regression with a Gaussian prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.regressions.glm import GeneralisedLinear, read_counts
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp


class PoissonRegression(GeneralisedLinear):
    r"""Poisson regression: yᵢ ~ Poisson(exp zᵢ), zᵢ = aᵢ·x + oᵢ.

    U(x) = Σᵢ [exp zᵢ - yᵢ zᵢ] + Σⱼ xⱼ² / (2 prior_scaleⱼ²). The potential is convex, but its Hessian has no bound.
    Every clock still has an exact bound: along a straight path the rate of a term is a multiple of exp(z + wt) and a
    constant, hence convex or concave (``thinning=pdmp.thinning.ConcaveConvex()``), and its slope is largest at an end
    of each piece of the path (``thinning=pdmp.thinning.LocalHessian()``).

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `pdmp.models.regressions.glm.GeneralisedLinear`: features may be sparse or memory-mapped. The offset is
        the logarithm of an exposure.
    y : array_like of shape (N,)
        Counts.

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, targets that are no counts, and a scale that is not positive.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1, 2, 5]
    >>> model = pdmp.models.PoissonRegression(X, y, prior_scale=2.0)
    >>> model.gradient([0.0, 0.0])
    array([-5., -9.])
    """

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        return read_counts(y, n)

    @compiled
    def loss(self, z, y):
        return exp(z) - y * z

    @compiled
    def first_derivative(self, z, y):
        return exp(z) - y

    @compiled
    def second_derivative(self, z, y):
        return exp(z)

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is k (exp(z) - y), k = vⱼ aᵢⱼ or aᵢ·v: exp is convex, so the sign of k tells."""
        along, z = self.design.product(v, i), self.margin(x, i)
        e = exp(z)
        if out.shape[0] == 1:
            self._convex_or_concave(along, along, e, self.target[i], 0, out)
            return
        first, last = self.design.row_range(i)
        for k in range(first, last):
            j = self.design.column(k)
            self._convex_or_concave(v[j] * self.design.entry(i, k), along, e, self.target[i], j, out)

    @compiled
    def _convex_or_concave(self, k, along, e, y, row, out):
        out[row, 1] -= k * y
        if k > 0.0:
            out[row, 0] += k * e
        else:
            out[row, 1] += k * e
            out[row, 2] += k * along * e

    @compiled
    def curvature_bound_within(self, x, v, s):
        """Σᵢ (aᵢ·v)² exp(zᵢ), each at the end where it is larger, and the prior's; v·H(x + uv)v <= that for u <= s."""
        total = self.prior_curvature_bound(v)
        for i in range(self.n_data):
            along = self.design.product(v, i)
            total += along * along * exp(self.margin(x, i) + max(0.0, s * along))
        return total

    @compiled
    def partial_curvature_bounds_within(self, x, v, s, out):
        """The same for vⱼ Σₖ Hⱼₖ vₖ: a term that is negative is largest where exp(zᵢ) is smallest."""
        for j in range(self.dim):
            out[j] = self.precision[j] * v[j] * v[j]
        for i in range(self.n_data):
            along, z = self.design.product(v, i), self.margin(x, i)
            most, least = exp(z + max(0.0, s * along)), exp(z + min(0.0, s * along))
            first, last = self.design.row_range(i)
            for k in range(first, last):
                j = self.design.column(k)
                q = v[j] * self.design.entry(i, k) * along
                out[j] += q * (most if q > 0.0 else least)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """exp(z)."""
        return np.exp(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        from scipy import special

        return y * z - np.exp(z) - special.gammaln(y + 1.0)
