r"""Mass matrices of the processes whose velocities have a rotation-invariant law: what "isotropic" means to them.

A metric M, positive definite, gives the velocity v = L u, where u is uniform on the unit sphere or N(0, I), and
L Lᵀ = M⁻¹. So v is uniform on the ellipsoid vᵀMv = 1, or N(0, M⁻¹), as in Hamiltonian Monte Carlo; a good M is near the
target's precision. Jumps act on u and on the pulled-back gradient a = Lᵀ∇U: there every metric is the identity, and the
reflection of u in a is that of v in ∇U under the metric M (Pakman et al. 2017, section 4, for a diagonal M).

In compiled code each class has two methods, which carry out an event of a process by means of the process's own words
``bounce(u, a, scratch, rng)`` and ``refresh(u, scratch, rng)``, which change u in place; `scratch` is of shape (2, d):

- ``bounce(process, state, now, rng)``: pulls the gradient in ``state.memory.gradient`` back to a, and bounces;
- ``refresh(process, state, now, rng)``.

A third, ``square(state)``, returns |u|².

Both then set v = L u. In the warm-up an adaptive metric first adds the path since the last event to its moments, and
adapts L to them from time to time. Where
a wall has changed v, ``velocity_changed(state)`` brings u along.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML. Bertazzi & Bierkens (2022),
Adaptive schemes for piecewise deterministic Monte Carlo algorithms, Bernoulli 28.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.arguments import refuse_unreal
from pdmp.native.classes import Compiled, compiled, helper
from pdmp.native.definite import ROUNDING, definite, factor_of, factorised, symmetric
from pdmp.native.records import Number, Vector, zeros
from pdmp.native.representation import short
from pdmp.native.velocities import dot
from pdmp.process import ADAPTING

#: Largest dimension for which a start from the Hessian, or a dense adaptive metric, is made.
LARGEST = 200
#: A new covariance counts as many events less than it has seen, and is mixed with the old one in that proportion.
PRIOR_EVENTS = 20.0
FIRST_WINDOW = 100  #: events before the first adaptation; each next window is twice as long
#: Those of the argument `metric`.
WORDS = "auto", "diagonal", "dense"
#: Least curvature at which a kink is looked for: differences over 1e-5 make that of a jump of 0.02 in a derivative.
KINK = 1e3
#: Steps in which the width of the differences over a kink is found, and random directions of each.
WIDENINGS, PROBES = 30, 4


class Window(NamedTuple):
    """The part of the path that the next adaptation is made from."""

    last: Number  #: the time up to which the path has been integrated
    time: Number  #: how long the window is so far
    events: Number  #: number of events in it
    length: Number  #: number of events at which it is full
    adaptations: Number  #: number of adaptations so far


class Memory(NamedTuple):
    """What a metric keeps: the velocity in its own coordinates, its root, and the moments that it is adapted to."""

    u: Vector
    pulled: Vector  #: a = Lᵀ∇U
    scratch: np.ndarray  #: (2, d)
    root: np.ndarray  #: (d,) or (d, d): L, lower triangular
    columns: np.ndarray  #: Lᵀ, so that products with either run along memory; (0, 0) for a diagonal
    centre: np.ndarray  #: (d,) what the moments are about
    first: Vector  #: integral of x - centre over the window
    second: np.ndarray  #: (d,) or (d, d), of the products
    window: Window


class NoMemory(NamedTuple):
    """That of the identity, and of a process without a metric."""

    scratch: np.ndarray  #: (2, d)


class Identity(Compiled):
    """v = u."""

    adaptive = False

    @compiled
    def bounce(self, process, state, now, rng):
        process.bounce(state.v, state.memory.gradient, state.memory.metric.scratch, rng)

    @compiled
    def refresh(self, process, state, now, rng):
        process.refresh(state.v, state.memory.metric.scratch, rng)

    @compiled
    def square(self, state):
        return dot(state.v, state.v)

    @compiled
    def velocity_changed(self, state):
        pass

    def memory(self, x):
        return NoMemory(np.zeros((2, len(x))))

    def transform(self, z):
        """L z, in Python."""
        return z

    def inverse(self, v):
        """L⁻¹ v, in Python."""
        return v

    def transposed(self, g):
        """Lᵀ g, in Python."""
        return g

    def trace(self, model, x):
        """tr(M⁻¹H) / d, the mean curvature at x as the velocities see it."""
        return model.curvature(x)

    def identity(self):
        return ()


class _Scaled(Compiled):
    """What all metrics but the identity share."""

    learns: bool

    def __init__(self, root, adaptive=False):
        self.root = root
        self.adaptive = adaptive
        self.learns = adaptive

    @compiled
    def bounce(self, process, state, now, rng):
        metric = state.memory.metric
        self.pull(metric, state.memory.gradient)
        process.bounce(metric.u, metric.pulled, metric.scratch, rng)
        if self.learns and state.counts[ADAPTING] == 1:
            self.learn(metric, state.x, state.v, now)
        self.push(metric, state.v)

    @compiled
    def refresh(self, process, state, now, rng):
        metric = state.memory.metric
        process.refresh(metric.u, metric.scratch, rng)
        if self.learns and state.counts[ADAPTING] == 1:
            self.learn(metric, state.x, state.v, now)
        self.push(metric, state.v)

    @compiled
    def square(self, state):
        return dot(state.memory.metric.u, state.memory.metric.u)

    @compiled
    def learn_from(self, metric, x, v, now):
        """Add the path up to x at the time `now`, its velocity v, to the moments; the number of adaptations so far."""
        self.learn(metric, x, v, now)
        return metric.window.adaptations[0]

    def memory(self, x):
        d = len(self.root)
        return zeros(
            Memory,
            d,
            scratch=np.zeros((2, d)),
            root=self.root.copy(),
            columns=np.array(self.root.T, order="C") if self.root.ndim == 2 else np.zeros((0, 0)),
            centre=np.array(x, dtype=float),
            second=np.zeros(self.root.shape),
            window=zeros(Window, d, length=np.full(1, float(self.window()))),
        )

    def identity(self):
        return (self.root, self.adaptive)


class Diagonal(_Scaled):
    """M diagonal: L = diag(M)^(-1/2)."""

    def window(self):
        return FIRST_WINDOW

    @compiled
    def pull(self, metric, gradient):
        for j in range(gradient.shape[0]):
            metric.pulled[j] = metric.root[j] * gradient[j]

    @compiled
    def push(self, metric, v):
        for j in range(metric.u.shape[0]):
            v[j] = metric.root[j] * metric.u[j]

    @compiled
    def velocity_changed(self, state):
        metric = state.memory.metric
        for j in range(metric.u.shape[0]):
            metric.u[j] = state.v[j] / metric.root[j]

    @compiled(inline=False)
    def learn(self, metric, x, v, now):
        s = now - metric.window.last[0]
        for j in range(metric.u.shape[0]):  # straight from x - v s to x
            middle = x[j] - 0.5 * s * v[j] - metric.centre[j]
            metric.first[j] += s * middle
            metric.second[j] += s * (middle * middle + s * s * v[j] * v[j] / 12.0)
        if _window_is_over(metric.window, now, s):
            share, time = _share(metric.window), metric.window.time[0]
            for j in range(metric.u.shape[0]):
                mean = metric.first[j] / time
                variance = max(metric.second[j] / time - mean * mean, 0.0)
                metric.root[j] = math.sqrt(share * variance + (1.0 - share) * metric.root[j] * metric.root[j])
                metric.first[j] = 0.0
                metric.second[j] = 0.0
            metric.window.adaptations[0] += 1.0
            _next_window(metric.window)

    def transform(self, z):
        return self.root * z

    def inverse(self, v):
        return v / self.root

    def transposed(self, g):
        return self.root * g

    def trace(self, model, x):
        if len(self.root) <= LARGEST:
            return float(np.mean(np.diag(model.hessian(x)) * self.root**2))
        return _probed_trace(self, model, x)


class Dense(_Scaled):
    """M dense: L is lower triangular."""

    def window(self):
        return FIRST_WINDOW + 10 * len(self.root)

    @compiled
    def pull(self, metric, gradient):
        for j in range(gradient.shape[0]):
            metric.pulled[j] = 0.0
        for i in range(gradient.shape[0]):
            for j in range(i + 1):
                metric.pulled[j] += metric.root[i, j] * gradient[i]

    @compiled
    def push(self, metric, v):
        d = metric.u.shape[0]
        for i in range(d):
            v[i] = 0.0
        for j in range(d):
            for i in range(j, d):
                v[i] += metric.columns[j, i] * metric.u[j]

    @compiled
    def velocity_changed(self, state):
        metric = state.memory.metric
        for i in range(metric.u.shape[0]):
            rest = state.v[i]
            for j in range(i):
                rest -= metric.root[i, j] * metric.u[j]
            metric.u[i] = rest / metric.root[i, i]

    @compiled(inline=False)
    def learn(self, metric, x, v, now):
        d, s = metric.u.shape[0], now - metric.window.last[0]
        for j in range(d):
            middle = x[j] - 0.5 * s * v[j] - metric.centre[j]
            metric.pulled[j] = middle
            metric.first[j] += s * middle
            for k in range(j + 1):
                metric.second[j, k] += s * (middle * metric.pulled[k] + s * s * v[j] * v[k] / 12.0)
        if _window_is_over(metric.window, now, s):
            share, time = _share(metric.window), metric.window.time[0]
            for j in range(d):
                for k in range(j + 1):
                    old = 0.0
                    for i in range(k + 1):
                        old += metric.root[j, i] * metric.root[k, i]
                    new = metric.second[j, k] / time - metric.first[j] * metric.first[k] / (time * time)
                    metric.columns[j, k] = share * new + (1.0 - share) * old
            if cholesky(metric.columns):
                for j in range(d):
                    for k in range(j + 1):
                        metric.root[j, k] = metric.columns[j, k]
                metric.window.adaptations[0] += 1.0
            for j in range(d):
                metric.first[j] = 0.0
                for k in range(d):
                    metric.second[j, k] = 0.0
                    metric.columns[j, k] = metric.root[k, j]
            _next_window(metric.window)

    def transform(self, z):
        return self.root @ z

    def inverse(self, v):
        return np.linalg.solve(self.root, v)

    def transposed(self, g):
        return self.root.T @ g

    def trace(self, model, x):
        if len(self.root) <= LARGEST:
            return float(np.sum((self.root.T @ model.hessian(x)) * self.root.T)) / len(self.root)
        return _probed_trace(self, model, x)


class _Given(_Scaled):
    """A metric that is never adapted."""

    def __init__(self):
        self.adaptive = self.learns = False

    @compiled
    def learn(self, metric, x, v, now):
        """Nothing: it is given."""

    @compiled
    def learn_from(self, metric, x, v, now):
        return 0.0

    def trace(self, model, x):
        return _probed_trace(self, model, x)


class LowRankMemory(NamedTuple):
    """What `LowRank` keeps."""

    u: np.ndarray  #: (d,)
    pulled: np.ndarray  #: (d,) a = Lᵀ∇U
    scratch: np.ndarray  #: (2, d)
    products: np.ndarray  #: (r,)


class LowRank(_Given):
    """L = S (I + V C Vᵀ): S and C are diagonal, and the columns of V (d, r) are orthonormal.

    M⁻¹ = S (I + V ((I + C)² - I) Vᵀ) S. Products cost 2 d r operations. It is given, and never adapted.
    """

    scale: np.ndarray  #: (d,) the diagonal of S
    vectors: np.ndarray  #: (r, d) Vᵀ
    gains: np.ndarray  #: (r,) the diagonal of C

    def __init__(self, scale, vectors, gains):
        super().__init__()
        self.scale, self.vectors = np.ascontiguousarray(scale), np.ascontiguousarray(vectors)
        self.gains = np.ascontiguousarray(gains)

    @compiled
    def pull(self, metric, gradient):
        for j in range(gradient.shape[0]):
            metric.pulled[j] = self.scale[j] * gradient[j]
        self.stretch(metric.pulled, metric.products)

    @compiled
    def push(self, metric, v):
        for j in range(v.shape[0]):
            v[j] = metric.u[j]
        self.stretch(v, metric.products)
        for j in range(v.shape[0]):
            v[j] *= self.scale[j]

    @compiled
    def stretch(self, y, products):
        """y ← (I + V C Vᵀ) y."""
        for k in range(self.gains.shape[0]):
            total = 0.0
            for j in range(y.shape[0]):
                total += self.vectors[k, j] * y[j]
            products[k] = self.gains[k] * total
        for k in range(self.gains.shape[0]):
            for j in range(y.shape[0]):
                y[j] += products[k] * self.vectors[k, j]

    @compiled
    def velocity_changed(self, state):
        """u = (I + V C Vᵀ)⁻¹ S⁻¹ v."""
        metric = state.memory.metric
        for j in range(metric.u.shape[0]):
            metric.u[j] = state.v[j] / self.scale[j]
        for k in range(self.gains.shape[0]):
            total = 0.0
            for j in range(metric.u.shape[0]):
                total += self.vectors[k, j] * metric.u[j]
            metric.products[k] = self.gains[k] / (1.0 + self.gains[k]) * total
        for k in range(self.gains.shape[0]):
            for j in range(metric.u.shape[0]):
                metric.u[j] -= metric.products[k] * self.vectors[k, j]

    def memory(self, x):
        d = len(self.scale)
        return LowRankMemory(np.zeros(d), np.zeros(d), np.zeros((2, d)), np.zeros(len(self.gains)))

    def transform(self, z):
        return self.scale * (z + (self.gains * (z @ self.vectors.T)) @ self.vectors)

    def inverse(self, v):
        z = v / self.scale
        return z - (self.gains / (1.0 + self.gains) * (z @ self.vectors.T)) @ self.vectors

    def transposed(self, g):
        z = self.scale * g
        return z + (self.gains * (z @ self.vectors.T)) @ self.vectors

    def identity(self):
        return (self.scale, self.vectors, self.gains)


class SparseMemory(NamedTuple):
    """What `Sparse` keeps."""

    u: np.ndarray  #: (d,)
    pulled: np.ndarray  #: (d,) a = Lᵀ∇U
    scratch: np.ndarray  #: (2, d)
    solved: np.ndarray  #: (d,) R⁻ᵀu


class Sparse(_Given):
    """L = Pᵀ R⁻ᵀ, where P M Pᵀ = R Rᵀ, R is lower triangular and sparse, and P is an order of the coordinates.

    Products with L and Lᵀ solve with R, in two operations for each of its entries. It is given, and never adapted.
    """

    order: np.ndarray  #: (d,) row k of R is that of the coordinate order[k]
    start: np.ndarray  #: (d + 1,) R in compressed rows: where each begins
    columns: np.ndarray  #: ascending, the diagonal last
    values: np.ndarray

    def __init__(self, order, start, columns, values):
        super().__init__()
        self.order, self.start, self.columns, self.values = order, start, columns, values

    @classmethod
    def of(cls, precision):
        """The metric M of a sparse matrix, or None where it is not positive definite."""
        found = factorised(precision)
        return None if found is None else cls(*found)

    @compiled
    def pull(self, metric, gradient):
        pulled = metric.pulled
        for k in range(gradient.shape[0]):
            last, total = self.start[k + 1] - 1, gradient[self.order[k]]
            for e in range(self.start[k], last):
                total -= self.values[e] * pulled[self.columns[e]]
            pulled[k] = total / self.values[last]

    @compiled
    def push(self, metric, v):
        solved = metric.solved
        for k in range(v.shape[0]):
            solved[k] = metric.u[k]
        for k in range(v.shape[0] - 1, -1, -1):
            last = self.start[k + 1] - 1
            solved[k] /= self.values[last]
            for e in range(self.start[k], last):
                solved[self.columns[e]] -= self.values[e] * solved[k]
            v[self.order[k]] = solved[k]

    @compiled
    def velocity_changed(self, state):
        """u = Rᵀ P v."""
        u = state.memory.metric.u
        for k in range(u.shape[0]):
            u[k] = 0.0
            for e in range(self.start[k], self.start[k + 1]):
                u[self.columns[e]] += self.values[e] * state.v[self.order[k]]

    def memory(self, x):
        d = len(self.order)
        return SparseMemory(np.zeros(d), np.zeros(d), np.zeros((2, d)), np.zeros(d))

    def factor(self):
        """R, in compressed rows."""
        from scipy import sparse

        return sparse.csr_array((self.values, self.columns, self.start), shape=(len(self.order),) * 2)

    def transform(self, z):
        from scipy.sparse import linalg

        out = np.empty_like(z)
        out[..., self.order] = linalg.spsolve_triangular(self.factor().T.tocsr(), z.T, lower=False).T
        return out

    def inverse(self, v):
        return (self.factor().T @ v[..., self.order].T).T

    def transposed(self, g):
        from scipy.sparse import linalg

        return linalg.spsolve_triangular(self.factor(), g[..., self.order].T, lower=True).T

    def product(self, v):
        """M v, in Python."""
        out, root = np.empty_like(v), self.factor()
        out[..., self.order] = (root @ (root.T @ v[..., self.order].T)).T
        return out

    def identity(self):
        return (self.order, self.start, self.columns, self.values)


@helper
def cholesky(matrix):
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor; whether it is positive definite."""
    for j in range(matrix.shape[0]):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return False
        pivot = math.sqrt(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, matrix.shape[0]):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = entry / pivot
    return True


@helper
def _window_is_over(window, now, s):
    window.last[0] = now
    window.time[0] += s
    window.events[0] += 1.0
    return window.events[0] >= window.length[0] and window.time[0] > 0.0


@helper
def _share(window):
    """The new covariance's share in the mixture with the old one; events of one path are far from independent."""
    return window.events[0] / (window.events[0] + PRIOR_EVENTS)


@helper
def _next_window(window):
    window.time[0] = 0.0
    window.events[0] = 0.0
    window.length[0] *= 2.0


# ---------------------------------------------------------------------------------------------------------------
# In Python


class Metric:
    """A metric M for a sampler's argument `metric`, given by its inverse, by scales, or as scales and a few directions.

    A good M is near the target's precision, and M⁻¹ near the target's covariance: velocities, momenta and noise are
    then as wide as the target is. A number, a vector or a matrix that is given as `metric` is M itself, as is
    ``Metric(precision)``; for the inverse of M write ``Metric(covariance=...)``.

    Parameters
    ----------
    precision : float, array_like of shape (d,) or (d, d), or scipy.sparse array of shape (d, d), optional
        M, in units of 1 / θ²; a vector is its diagonal, and a number a multiple of the identity. Products with a sparse
        M, such as that of a Gaussian field, cost two operations for each entry of its Cholesky factor.
    covariance : float or array_like of shape (d,) or (d, d), optional
        M⁻¹, in units of θ².
    scales : float or array_like of shape (d,), optional
        S = diag(scales), in units of θ, such as standard deviations: M⁻¹ = S². They are the speeds of `pdmp.ZigZag`.
    directions : array_like of shape (d, r), optional
        Orthonormal columns V, beside `scales`: M⁻¹ = S (I + V (diag(λ) - I) Vᵀ) S. Products cost 2dr operations.
    variances : array_like of shape (r,), optional
        λ, the variances along `directions` in units of the scales.

    Raises
    ------
    TypeError
        If not exactly one of precision, covariance and scales is given, or directions without variances.
    ValueError
        For an array of another shape, or one that is not finite, symmetric and positive definite.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> pdmp.BPS(model, metric=pdmp.Metric(covariance=[1.0, 0.25])).metric.root
    array([1. , 0.5])
    """

    def __init__(
        self,
        precision: ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
        scales: ArrayLike | None = None,
        directions: ArrayLike | None = None,
        variances: ArrayLike | None = None,
    ) -> None:
        given = {"precision": precision, "covariance": covariance, "scales": scales}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise TypeError(f"pdmp.Metric takes one of `precision`, `covariance` and `scales`, got {len(given)}.")
        ((self.form, value),) = given.items()
        self.array = _checked(self.form, value, matrix=self.form != "scales")
        if (directions is None) != (variances is None) or directions is not None and self.form != "scales":
            raise TypeError("`directions` of pdmp.Metric go with `scales` and `variances`.")
        self.directions, self.variances = np.zeros((0, 0)), np.zeros(0)
        if directions is not None:
            self.directions, self.variances = _orthonormal(directions), np.atleast_1d(_checked("variances", variances))
            if self.variances.shape != self.directions.shape[1:]:
                raise ValueError(
                    f"`variances` must be one for each of the {self.directions.shape[1]} `directions`, got "
                    f"{len(self.variances)}."
                )

    def __repr__(self) -> str:
        low = f", directions={short(self.directions)}, variances={short(self.variances)}" * bool(len(self.variances))
        return f"Metric({self.form}={short(self.array)}{low})"

    def root(self, d: int) -> np.ndarray:
        """L with L Lᵀ = M⁻¹, in d dimensions: (d,), or lower triangular (d, d); without `directions`."""
        array = self._in(d)
        if self.form == "scales":
            return array
        if self.form == "precision":
            return root_of(array.toarray() if hasattr(array, "toarray") else array)
        return np.sqrt(array) if array.ndim == 1 else np.linalg.cholesky(array)

    def covariance(self, d: int) -> np.ndarray:
        """M⁻¹ in d dimensions, (d,) or (d, d)."""
        if self.form == "covariance":
            return self._in(d)
        return covariance_of(self.made(d))

    def made(self, d: int) -> Compiled:
        """The metric as processes use it, in d dimensions."""
        if len(self.variances):
            return LowRank(self._in(d), self.directions.T, np.sqrt(self.variances) - 1.0)
        if hasattr(self.array, "toarray"):
            return Sparse.of(self._in(d))
        root = self.root(d)
        return (Diagonal if root.ndim == 1 else Dense)(root)

    def _in(self, d):
        shapes = ((d,),) if self.form == "scales" else ((d,), (d, d))
        if self.array.ndim and self.array.shape not in shapes or len(self.variances) and len(self.directions) != d:
            allowed = " or ".join(map(str, shapes))
            found = self.directions.shape if self.array.shape in ((), *shapes) else self.array.shape
            raise ValueError(f"`metric` must be a number or have shape {allowed}, got {found}.")
        return np.full(d, float(self.array)) if self.array.ndim == 0 else self.array


def _checked(name, value, matrix=False):
    """A number, a vector or, where allowed, a matrix, finite and positive definite, or a `ValueError`."""
    if matrix and hasattr(value, "tocsr"):
        return _checked_sparse(name, value)
    refuse_unreal(name, value)
    try:
        if np.asarray(value).dtype.kind in "bSU":  # which become numbers in silence
            raise TypeError
        array = np.array(value, dtype=float)
    except OverflowError:  # of an integer
        raise ValueError(f"`{name}` must be finite, as floats are, got {short(value)}.") from None
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number or an array, got {short(value)}.") from None
    if array.ndim > 1 + matrix or array.size == 0 or array.ndim == 2 and len(set(array.shape)) > 1:
        allowed = "a number, a vector or a square matrix" if matrix else "a number or a vector"
        raise ValueError(f"`{name}` must be {allowed}, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` must be finite.")
    if array.ndim < 2:
        if not np.all(array > 0.0):
            where = f"entry {np.argmin(array)} is" if array.ndim else "got"
            raise ValueError(f"`{name}` must be positive definite; {where} {array.min():g}.")
        return array
    # What is left of each coordinate, those before it given, is about rounding's size of a singular matrix.
    return definite(name, array, len(array) * ROUNDING)


def _checked_sparse(name, value):
    """A sparse matrix, finite, symmetric and positive definite, or a `ValueError`."""
    from scipy import sparse

    if name != "precision":
        raise TypeError(f"`{name}` must not be sparse: the inverse of a sparse matrix is dense. Give `precision`.")
    if value.ndim != 2 or value.shape[0] != value.shape[1] or value.shape[0] == 0:
        raise ValueError(f"`{name}` must be a square matrix where it is sparse, got shape {value.shape}.")
    array = sparse.csc_array(value, dtype=float)
    if not np.all(np.isfinite(array.data)):
        raise ValueError(f"`{name}` must be finite.")
    array = sparse.csc_array(symmetric(name, array))
    factor_of(name, array)
    return array


def _orthonormal(directions):
    array = np.array(directions, dtype=float)
    if array.ndim != 2 or not np.allclose(array.T @ array, np.eye(array.shape[1]), atol=1e-8):
        raise ValueError(f"`directions` must be orthonormal columns, (d, r); their shape is {array.shape}.")
    return array


def check_metric(metric, d, name, words=(), diagonal=False):
    """What a user gave as `metric` of the sampler `name`: None, one of its `words`, or the metric in d dimensions.

    A `TypeError` or `ValueError` for anything else says what is allowed. `diagonal`: whether it must be.
    """
    if metric is None or isinstance(metric, str) and metric in words:
        return metric
    if isinstance(metric, str):
        allowed = ", ".join(["None, a number, an array", *(f'"{word}"' for word in words)])
        learnt = "" if words else f" pdmp.auto(model, sampler={name}) learns a metric."
        raise ValueError(f"`metric` of {name} must be {allowed} or a pdmp.Metric, got {metric!r}.{learnt}")
    if isinstance(metric, _Scaled):
        made = metric
    elif isinstance(metric, Compiled):
        raise TypeError(
            f"`metric` of {name} must be constant, a number, an array or a pdmp.Metric, got a {type(metric).__name__}."
        )
    else:
        made = as_metric(metric).made(d)
    if diagonal and not isinstance(made, Diagonal):
        raise ValueError(f"`metric` of {name} must be diagonal: a number, a vector or pdmp.Metric(scales=...).")
    return made


def as_metric(value):
    """The `Metric` that a number or an array, which is M itself, stands for."""
    if isinstance(value, Metric):
        return value
    try:
        return Metric(value)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("`precision`", "`metric`")) from None


def root_of(precision):
    """L with L Lᵀ = M⁻¹: (d,), or lower triangular (d, d); a `LinAlgError` where M is not positive definite."""
    if precision.ndim == 1:
        return 1.0 / np.sqrt(precision)
    upper = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]  # M = upper upperᵀ
    return np.tril(np.linalg.inv(upper).T)


def from_root(root: np.ndarray) -> Compiled:
    """The metric with the root L, L Lᵀ = M⁻¹, of shape (d, d) or (d,)."""
    return Diagonal(root) if root.ndim == 1 else Dense(lower(root))


def dense(metric: Compiled) -> Compiled:
    """The same metric with a root (d,) or lower triangular (d, d), where it is of low rank or sparse."""
    if not isinstance(metric, (LowRank, Sparse)):
        return metric
    d = len(metric.scale if isinstance(metric, LowRank) else metric.order)
    return from_root(np.array([metric.transform(z) for z in np.eye(d)]).T)


def covariance_of(metric: Compiled) -> np.ndarray:
    """M⁻¹, (d,) or (d, d)."""
    root = dense(metric).root
    return root**2 if root.ndim == 1 else root @ root.T


def lower(root: np.ndarray) -> np.ndarray:
    """The lower triangular root of the same covariance."""
    return np.ascontiguousarray(np.tril(np.linalg.qr(root.T, mode="r").T))


def make_metric(word, model, x):
    """The metric that one of the words "auto", "diagonal" and "dense" stands for, in runs that start around `x` (d,).

    "auto": the Hessian at the model's mode, or at `x` if there is none; a `ValueError` where it is not positive
    definite. The others are adaptive: they start from the Hessian at `x` (from its diagonal, and above 200 dimensions
    from the mean curvature) and follow the path in the warm-up.
    """
    if word == "auto":
        mode = None if model.searches_by_batches else model.mode()
        try:
            return Dense(root_of(model.hessian(x if mode is None else mode)))
        except np.linalg.LinAlgError:
            raise ValueError(
                '`metric="auto"` needs a positive definite Hessian, and it is not where the target has its mode. '
                'Give a matrix, or metric="dense".'
            ) from None
    d = model.dim
    hessian = model.hessian(x) if d <= LARGEST else None
    if word == "dense":
        if hessian is not None:
            try:
                return Dense(root_of(0.5 * (hessian + hessian.T)), adaptive=True)
            except np.linalg.LinAlgError:  # between modes: the path will tell
                pass
        return Dense(np.eye(d) / math.sqrt(mean_curvature(model, x)), adaptive=True)
    if hessian is not None and np.all(np.diag(hessian) > 0.0):
        return Diagonal(1.0 / np.sqrt(np.diag(hessian)), adaptive=True)
    return Diagonal(np.full(d, 1.0 / math.sqrt(mean_curvature(model, x))), adaptive=True)


def adapting(metric):
    """The word of a metric that adapts in the warm-up, made or not; None of others."""
    if isinstance(metric, str):
        return metric if metric in ("diagonal", "dense") else None
    return ("dense" if isinstance(metric, Dense) else "diagonal") if getattr(metric, "adaptive", False) else None


def mean_curvature(model, x):
    """The model's mean curvature at x, over a kink there; 1 where that is not positive."""
    curvature = model.curvature(x)
    return over_kink(model, x, curvature) if 0.0 < curvature < math.inf else 1.0


def over_kink(model, x, curvature):
    """The mean curvature at x, unless x is on a kink, where it is as large as differences are small.

    Of a kink the differences are taken over the width 1 / √c of a Gaussian with the curvature c that results.
    """
    if curvature < KINK or not differences(model, x, 1e-4) < 0.3 * differences(model, x, 1e-5):
        return curvature
    for _ in range(WIDENINGS):
        try:
            wider = differences(model, x, 1.0 / math.sqrt(curvature))
        except Exception:  # noqa: BLE001 - a function of the user's, beyond its support
            break
        if not 0.0 < wider < 0.8 * curvature:
            break
        curvature = wider
    return curvature


def differences(model, x, width):
    """tr H / d by differences of the gradient at x ± `width` in random directions."""
    rng, total, x = np.random.default_rng(0), 0.0, np.asarray(x, dtype=float)
    for _ in range(PROBES):
        v = rng.choice([-1.0, 1.0], model.dim) * width
        total += v @ (model.gradient(x + v) - model.gradient(x - v)) / (2.0 * width**2)
    return total / PROBES / model.dim


def _probed_trace(metric, model, x, probes=32):
    rng, total, x = np.random.default_rng(0), 0.0, np.asarray(x, dtype=float)
    for _ in range(probes):
        z = 1e-5 * metric.transform(rng.choice([-1.0, 1.0], model.dim))
        total += z @ (model.gradient(x + z) - model.gradient(x - z)) / 2e-10
    return total / probes / model.dim
