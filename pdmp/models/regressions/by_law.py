"""Regressions by a likelihood of the table of `pdmp.models.regressions.likelihoods`, with known dispersions.

Loss, derivatives and bounds are compiled from the law's expression (`pdmp.expressions.straight`); a class adds how its
targets are read, and the names of its dispersions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.expressions.nodes import DATA, VARIABLE, exp
from pdmp.expressions.straight import methods, numbers
from pdmp.models.regressions.design import add_parts, gram
from pdmp.models.regressions.glm import BoundedGradient, BoundedHessian, GeneralisedLinear, read_counts, read_labels
from pdmp.models.regressions.likelihoods import Law, NegativeBinomialLaw, PoissonLaw, ProbitLaw, StudentTLaw
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled


class ByLaw(GeneralisedLinear):
    """Base of regressions whose terms are the expression of a `Law`, given where the class is defined."""

    law: ClassVar[Law]
    constants: ClassVar[list]

    def __init_subclass__(
        cls, law: Law | None = None, read: Callable | None = None, bounds: Callable | None = None, **kwargs
    ) -> None:
        if law is not None:
            expression = law.derived.expression
            functionals = [expression.graph.make(VARIABLE, 1 + k) for k in range(len(law.dispersions))]
            stated = None if bounds is None else bounds(expression.graph.make(DATA, 0), *functionals)
            bounded = issubclass(cls, BoundedHessian) + issubclass(cls, BoundedGradient)
            made, cls.constants = methods(expression, cls.__module__, cls.__qualname__, bounded, stated)
            for name, method in made.items():
                setattr(cls, name, method)
            cls.__annotations__ = {f"constant_{k}": "float" for k in range(len(cls.constants))}
            cls.law = law
        if read is not None:
            cls._read = staticmethod(read)
        super().__init_subclass__(**kwargs)

    def settle(self) -> None:
        self.target = self.law.stored(self.y)
        self.__dict__.update(numbers(self.constants, self.log_dispersions()))
        super().settle()

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        return self._read(y, n) if hasattr(self, "_read") else super().read_target(y, n)

    def log_dispersions(self) -> tuple[float, ...]:
        """Logarithms of the law's dispersions."""
        return ()

    def mean(self, z: np.ndarray) -> np.ndarray:
        """Expected targets."""
        return self.law.mean(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        return self.law.log_density(z, y, *self.log_dispersions(), *(2 - len(self.law.dispersions)) * (0.0,))


class PoissonRegression(ByLaw, law=PoissonLaw, read=read_counts):
    r"""Poisson regression: yᵢ ~ Poisson(exp zᵢ), zᵢ = aᵢ·x + oᵢ.

    U(x) = Σᵢ [exp zᵢ - yᵢ zᵢ] + Σⱼ xⱼ² / (2 prior_scaleⱼ²). The potential is convex, but its Hessian has no bound.
    Every clock still has an exact bound: along a straight path the rate of a term is a multiple of exp(z + wt) and a
    constant, hence convex or concave (``thinning=pdmp.thinning.ConcaveConvex()``), and its slope is largest at an end
    of each piece of the path (``thinning=pdmp.thinning.LocalHessian()``).

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `LogisticRegression`: features may be sparse or memory-mapped. The offset is the logarithm of an exposure.
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

    # Bounds within a piece of path: exp is monotone and convex.

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is k (exp(z) - y), k = vⱼ aᵢⱼ or aᵢ·v: ℓ'' = exp is convex."""
        along, e = self.design.product(v, i), self.second_derivative(self.margin(x, i), self.target[i])
        add_parts(self.design, i, v, 1.0, along, e, e, -self.target[i], 0.0, out)

    @compiled
    def curvature_bound_within(self, x, v, s):
        """Σᵢ (aᵢ·v)² exp(zᵢ), each at the end where it is larger, and the prior's; v·H(x + uv)v <= that for u <= s."""
        total = self.prior_curvature_bound(v)
        for i in range(self.n_data):
            along = self.design.product(v, i)
            total += along * along * self.second_derivative(self.margin(x, i) + max(0.0, s * along), self.target[i])
        return total

    @compiled
    def partial_curvature_bounds_within(self, x, v, s, out):
        """The same for vⱼ Σₖ Hⱼₖ vₖ: a term that is negative is largest where exp(zᵢ) is smallest."""
        for j in range(self.dim):
            out[j] = self.precision[j] * v[j] * v[j]
        for i in range(self.n_data):
            along, z = self.design.product(v, i), self.margin(x, i)
            most = self.second_derivative(z + max(0.0, s * along), self.target[i])
            least = self.second_derivative(z + min(0.0, s * along), self.target[i])
            first, last = self.design.row_range(i)
            for k in range(first, last):
                j = self.design.column(k)
                q = v[j] * self.design.entry(i, k) * along
                out[j] += q * (most if q > 0.0 else least)


class NegativeBinomialRegression(ByLaw, BoundedGradient, law=NegativeBinomialLaw, read=read_counts):
    r"""Negative-binomial regression: counts with mean μᵢ = exp zᵢ and variance μᵢ + μᵢ² / r, zᵢ = aᵢ·x + oᵢ.

    U(x) = Σᵢ [(yᵢ + r) log(r + exp zᵢ) - yᵢ zᵢ] + Σⱼ xⱼ² / (2 prior_scaleⱼ²). A term's first derivative by z lies
    between -yᵢ and r, its second between 0 and (yᵢ + r) / 4: unlike Poisson regression, all bounds are global.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `LogisticRegression`: features may be sparse or memory-mapped. The offset is the logarithm of an exposure.
    y : array_like of shape (N,)
        Counts.
    size : float, default 1.0
        r, the number of successes, known; infinity would be Poisson regression.

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, targets that are no counts, and a `size` or a scale that is not
        positive.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1, 2, 5]
    >>> model = pdmp.models.NegativeBinomialRegression(X, y, size=3.0)
    >>> model.gradient([0.0, 0.0])
    array([-3.75, -6.75])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        size: float = 1.0,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.successes = positive("size", size)
        super().__init__(X, y, prior_scale, intercept, offset, dtype)

    def log_dispersions(self) -> tuple[float, ...]:
        return (math.log(self.successes),)


class ProbitRegression(ByLaw, BoundedHessian, law=ProbitLaw, read=read_labels):
    r"""Probit regression: P(yᵢ = 1) = Φ(zᵢ), U(x) = -Σᵢ log Φ(sᵢ zᵢ) + Σⱼ xⱼ² / (2 prior_scaleⱼ²), zᵢ = aᵢ·x + oᵢ.

    sᵢ = ±1 is the label. The second derivative of -log Φ lies between 0 and 1, so the Hessian is at most XᵀX plus the
    prior's; its first is not bounded.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `LogisticRegression`: features may be sparse or memory-mapped.
    y : array_like of shape (N,)
        Labels, in {0, 1} or in {-1, +1}, both present.

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, and a scale that is not positive.

    References
    ----------
    Albert & Chib (1993), Bayesian analysis of binary and polychotomous response data, JASA 88.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0]
    >>> model = pdmp.models.ProbitRegression(X, y)
    >>> model.mode().round(3)
    array([0.679])
    """


def _student_t_bounds(y, a, b):
    """Of both derivatives: products of functions that have no bounds by themselves are not enclosed."""
    first, second = 0.5 * (exp(b) + 1.0) * exp(-a - 0.5 * b), (exp(b) + 1.0) * exp(-2.0 * a - b)
    return -first, first, -0.125 * second, second


class StudentTRegression(ByLaw, BoundedGradient, law=StudentTLaw, bounds=_student_t_bounds):
    r"""Linear regression with noise of Student's t law: yᵢ = zᵢ + noise_scale · t_ν, zᵢ = aᵢ·x + oᵢ.

    U(x) = ½(ν + 1) Σᵢ log(1 + eᵢ² / (ν s²)) + Σⱼ xⱼ² / (2 prior_scaleⱼ²), eᵢ = yᵢ - zᵢ, s = noise_scale. A term's first
    derivative by z is at most (ν + 1) / (2 s √ν) in absolute value, its second lies between -(ν + 1) / (8 ν s²) and
    (ν + 1) / (ν s²). The potential is not convex: outliers may leave several modes.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `LogisticRegression`: features may be sparse or memory-mapped.
    y : array_like of shape (N,)
        Real targets.
    degrees : float, default 4.0
        ν, the degrees of freedom.
    noise_scale : float, default 1.0
        s, the scale of the noise; its standard deviation is s √(ν / (ν - 2)).

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, and `degrees` or a scale that is not positive.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0], [2.0], [3.0]], [1.0, 2.0, 30.0]
    >>> model = pdmp.models.StudentTRegression(X, y, degrees=2.0)
    >>> model.gradient([1.0]).round(3)
    array([0.668])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        degrees: float = 4.0,
        noise_scale: float = 1.0,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.degrees, self.noise_scale = positive("degrees", degrees), positive("noise_scale", noise_scale)
        super().__init__(X, y, prior_scale, intercept, offset, dtype)

    def log_dispersions(self) -> tuple[float, ...]:
        return math.log(self.noise_scale), math.log(self.degrees)

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """A minimum of U, shape (dim,): without `initial` that which is found from the least-squares fit."""
        if initial is None:
            y = self.y - self.offset if self.offset.size else self.y
            weight = (self.degrees + 1.0) / (self.degrees * self.noise_scale**2)
            normal = weight * gram(self.X) + np.diag(np.maximum(self.precision, 1e-12 * weight * self.n_data))
            initial = np.linalg.solve(normal, weight * (self.X.T @ y))
        return super().mode(initial)
