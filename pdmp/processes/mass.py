r"""Mass matrices of the processes whose velocities have a rotation-invariant law: what "isotropic" means to them.

A mass M, positive definite, gives the velocity v = L u, where u is uniform on the unit sphere or N(0, I), and
L Lᵀ = M⁻¹. So v is uniform on the ellipsoid vᵀMv = 1, or N(0, M⁻¹), as in Hamiltonian Monte Carlo; a good M is near the
target's precision. Jumps act on u and on the pulled-back gradient a = Lᵀ∇U: there every mass is the identity, and the
reflection of u in a is that of v in ∇U under the metric M (Pakman et al. 2017, section 4, for a diagonal M).

In compiled code each class has two methods, which carry out an event of a process by means of the process's own words
``bounce(u, a, scratch, rng)`` and ``refresh(u, scratch, rng)``, which change u in place; `scratch` is of shape (2, d):

- ``bounce(process, state, now, rng)``: pulls the gradient in ``state.memory.gradient`` back to a, and bounces;
- ``refresh(process, state, now, rng)``.

A third, ``square(state)``, returns |u|².

Both then set v = L u. In the warm-up an adaptive mass first adds the path since the last event to its moments, and
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

from pdmp.native.classes import Compiled, compiled, helper
from pdmp.native.velocities import dot
from pdmp.process import ADAPTING

#: Largest dimension for which a start from the Hessian, or a dense adaptive mass, is made.
LARGEST = 200
#: A new covariance counts as many events less than it has seen, and is mixed with the old one in that proportion.
PRIOR_EVENTS = 20.0
FIRST_WINDOW = 100  #: events before the first adaptation; each next window is twice as long
#: Least curvature at which a kink is looked for: differences over 1e-5 make that of a jump of 0.02 in a derivative.
KINK = 1e3
#: Steps in which the width of the differences over a kink is found, and random directions of each.
WIDENINGS, PROBES = 30, 4


class Window(NamedTuple):
    """The part of the path that the next adaptation is made from."""

    last: np.ndarray  #: (1,) the time up to which the path has been integrated
    time: np.ndarray  #: (1,) how long the window is so far
    events: np.ndarray  #: (1,) number of events in it
    length: np.ndarray  #: (1,) number of events at which it is full
    adaptations: np.ndarray  #: (1,) number of adaptations so far


class Memory(NamedTuple):
    """What a mass keeps: the velocity in its own coordinates, its root, and the moments that it is adapted to."""

    u: np.ndarray  #: (d,)
    pulled: np.ndarray  #: (d,) a = Lᵀ∇U
    scratch: np.ndarray  #: (2, d)
    root: np.ndarray  #: (d,) or (d, d): L, lower triangular
    columns: np.ndarray  #: Lᵀ, so that products with either run along memory; (0, 0) for a diagonal
    centre: np.ndarray  #: (d,) what the moments are about
    first: np.ndarray  #: (d,) integral of x - centre over the window
    second: np.ndarray  #: (d,) or (d, d), of the products
    window: Window


class NoMemory(NamedTuple):
    """That of the identity, and of a process without a mass."""

    scratch: np.ndarray  #: (2, d)


class Identity(Compiled):
    """v = u."""

    adaptive = False

    @compiled
    def bounce(self, process, state, now, rng):
        process.bounce(state.v, state.memory.gradient, state.memory.mass.scratch, rng)

    @compiled
    def refresh(self, process, state, now, rng):
        process.refresh(state.v, state.memory.mass.scratch, rng)

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
    """What both other masses share."""

    learns: bool

    def __init__(self, root, adaptive=False):
        self.root = root
        self.adaptive = adaptive
        self.learns = adaptive

    @compiled
    def bounce(self, process, state, now, rng):
        mass = state.memory.mass
        self.pull(mass, state.memory.gradient)
        process.bounce(mass.u, mass.pulled, mass.scratch, rng)
        if self.learns and state.counts[ADAPTING] == 1:
            self.learn(mass, state.x, state.v, now)
        self.push(mass, state.v)

    @compiled
    def refresh(self, process, state, now, rng):
        mass = state.memory.mass
        process.refresh(mass.u, mass.scratch, rng)
        if self.learns and state.counts[ADAPTING] == 1:
            self.learn(mass, state.x, state.v, now)
        self.push(mass, state.v)

    @compiled
    def square(self, state):
        return dot(state.memory.mass.u, state.memory.mass.u)

    @compiled
    def learn_from(self, mass, x, v, now):
        """Add the path up to x at the time `now`, its velocity v, to the moments; the number of adaptations so far."""
        self.learn(mass, x, v, now)
        return mass.window.adaptations[0]

    def memory(self, x):
        d = len(self.root)
        return Memory(
            u=np.zeros(d),
            pulled=np.zeros(d),
            scratch=np.zeros((2, d)),
            root=self.root.copy(),
            columns=np.ascontiguousarray(self.root.T) if self.root.ndim == 2 else np.zeros((0, 0)),
            centre=np.array(x, dtype=float),
            first=np.zeros(d),
            second=np.zeros(self.root.shape),
            window=Window(np.zeros(1), np.zeros(1), np.zeros(1), np.full(1, float(self.window())), np.zeros(1)),
        )

    def identity(self):
        return (self.root, self.adaptive)


class Diagonal(_Scaled):
    """M diagonal: L = diag(M)^(-1/2)."""

    def window(self):
        return FIRST_WINDOW

    @compiled
    def pull(self, mass, gradient):
        for j in range(gradient.shape[0]):
            mass.pulled[j] = mass.root[j] * gradient[j]

    @compiled
    def push(self, mass, v):
        for j in range(mass.u.shape[0]):
            v[j] = mass.root[j] * mass.u[j]

    @compiled
    def velocity_changed(self, state):
        mass = state.memory.mass
        for j in range(mass.u.shape[0]):
            mass.u[j] = state.v[j] / mass.root[j]

    @compiled(inline=False)
    def learn(self, mass, x, v, now):
        s = now - mass.window.last[0]
        for j in range(mass.u.shape[0]):  # straight from x - v s to x
            middle = x[j] - 0.5 * s * v[j] - mass.centre[j]
            mass.first[j] += s * middle
            mass.second[j] += s * (middle * middle + s * s * v[j] * v[j] / 12.0)
        if _window_is_over(mass.window, now, s):
            share, time = _share(mass.window), mass.window.time[0]
            for j in range(mass.u.shape[0]):
                mean = mass.first[j] / time
                variance = max(mass.second[j] / time - mean * mean, 0.0)
                mass.root[j] = math.sqrt(share * variance + (1.0 - share) * mass.root[j] * mass.root[j])
                mass.first[j] = 0.0
                mass.second[j] = 0.0
            mass.window.adaptations[0] += 1.0
            _next_window(mass.window)

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
    def pull(self, mass, gradient):
        for j in range(gradient.shape[0]):
            mass.pulled[j] = 0.0
        for i in range(gradient.shape[0]):
            for j in range(i + 1):
                mass.pulled[j] += mass.root[i, j] * gradient[i]

    @compiled
    def push(self, mass, v):
        d = mass.u.shape[0]
        for i in range(d):
            v[i] = 0.0
        for j in range(d):
            for i in range(j, d):
                v[i] += mass.columns[j, i] * mass.u[j]

    @compiled
    def velocity_changed(self, state):
        mass = state.memory.mass
        for i in range(mass.u.shape[0]):
            rest = state.v[i]
            for j in range(i):
                rest -= mass.root[i, j] * mass.u[j]
            mass.u[i] = rest / mass.root[i, i]

    @compiled(inline=False)
    def learn(self, mass, x, v, now):
        d, s = mass.u.shape[0], now - mass.window.last[0]
        for j in range(d):
            middle = x[j] - 0.5 * s * v[j] - mass.centre[j]
            mass.pulled[j] = middle
            mass.first[j] += s * middle
            for k in range(j + 1):
                mass.second[j, k] += s * (middle * mass.pulled[k] + s * s * v[j] * v[k] / 12.0)
        if _window_is_over(mass.window, now, s):
            share, time = _share(mass.window), mass.window.time[0]
            for j in range(d):
                for k in range(j + 1):
                    old = 0.0
                    for i in range(k + 1):
                        old += mass.root[j, i] * mass.root[k, i]
                    new = mass.second[j, k] / time - mass.first[j] * mass.first[k] / (time * time)
                    mass.columns[j, k] = share * new + (1.0 - share) * old
            if cholesky(mass.columns):
                for j in range(d):
                    for k in range(j + 1):
                        mass.root[j, k] = mass.columns[j, k]
                mass.window.adaptations[0] += 1.0
            for j in range(d):
                mass.first[j] = 0.0
                for k in range(d):
                    mass.second[j, k] = 0.0
                    mass.columns[j, k] = mass.root[k, j]
            _next_window(mass.window)

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


class LowRankMemory(NamedTuple):
    """What `LowRank` keeps."""

    u: np.ndarray  #: (d,)
    pulled: np.ndarray  #: (d,) a = Lᵀ∇U
    scratch: np.ndarray  #: (2, d)
    products: np.ndarray  #: (r,)


class LowRank(_Scaled):
    """L = S (I + V C Vᵀ): S and C are diagonal, and the columns of V (d, r) are orthonormal.

    M⁻¹ = S (I + V ((I + C)² - I) Vᵀ) S. Products cost 2 d r operations. It is given, and never adapted.
    """

    scale: np.ndarray  #: (d,) the diagonal of S
    vectors: np.ndarray  #: (r, d) Vᵀ
    gains: np.ndarray  #: (r,) the diagonal of C
    adaptive = False

    def __init__(self, scale, vectors, gains):
        self.scale, self.vectors = np.ascontiguousarray(scale), np.ascontiguousarray(vectors)
        self.gains, self.learns = np.ascontiguousarray(gains), False

    @compiled
    def pull(self, mass, gradient):
        for j in range(gradient.shape[0]):
            mass.pulled[j] = self.scale[j] * gradient[j]
        self.stretch(mass.pulled, mass.products)

    @compiled
    def push(self, mass, v):
        for j in range(v.shape[0]):
            v[j] = mass.u[j]
        self.stretch(v, mass.products)
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
        mass = state.memory.mass
        for j in range(mass.u.shape[0]):
            mass.u[j] = state.v[j] / self.scale[j]
        for k in range(self.gains.shape[0]):
            total = 0.0
            for j in range(mass.u.shape[0]):
                total += self.vectors[k, j] * mass.u[j]
            mass.products[k] = self.gains[k] / (1.0 + self.gains[k]) * total
        for k in range(self.gains.shape[0]):
            for j in range(mass.u.shape[0]):
                mass.u[j] -= mass.products[k] * self.vectors[k, j]

    @compiled
    def learn(self, mass, x, v, now):
        """Nothing: it is given."""

    @compiled
    def learn_from(self, mass, x, v, now):
        return 0.0

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

    def trace(self, model, x):
        return _probed_trace(self, model, x)

    def identity(self):
        return (self.scale, self.vectors, self.gains)


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


def check_mass(mass, d):
    """`mass` as None, an option or a checked array, or a `ValueError` that says what is allowed.

    Raises
    ------
    ValueError
        For another option or shape, and for a matrix that is not finite, symmetric or positive definite.
    """
    if mass is None:
        return None
    if isinstance(mass, str):
        if mass in ("adaptive", "adaptive dense", "hessian"):
            return mass
        raise ValueError(
            f'`mass` must be None, an array, "hessian", "adaptive" (diagonal) or "adaptive dense", got {mass!r}.'
        )
    array = np.array(mass, dtype=float)
    if array.shape not in ((d,), (d, d)):
        raise ValueError(f"`mass` must have shape ({d},) or ({d}, {d}), got {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError("`mass` must be finite.")
    if array.ndim == 1:
        if not np.all(array > 0.0):
            j = int(np.argmin(array))
            raise ValueError(f"`mass` must be positive definite; entry {j} of its diagonal is {array[j]:g}.")
        return array
    difference = np.abs(array - array.T).max()
    if difference > 1e-8 * np.abs(array).max():
        raise ValueError(f"`mass` must be symmetric; it differs from its transpose by up to {difference:.3g}.")
    root_of(0.5 * (array + array.T))
    return 0.5 * (array + array.T)


def root_of(mass):
    """L with L Lᵀ = mass⁻¹: (d,), or lower triangular (d, d); a `ValueError` where `mass` is not positive definite."""
    if mass.ndim == 1:
        return 1.0 / np.sqrt(mass)
    try:
        upper = np.linalg.cholesky(mass[::-1, ::-1])[::-1, ::-1]  # mass = upper upperᵀ
    except np.linalg.LinAlgError:
        low = np.linalg.eigvalsh(mass)[0]
        raise ValueError(f"`mass` must be positive definite; its smallest eigenvalue is {low:.3g}.") from None
    return np.tril(np.linalg.inv(upper).T)


def mass_of(root: np.ndarray) -> Compiled:
    """The mass with the root L, L Lᵀ = M⁻¹, of shape (d, d) or (d,)."""
    return Diagonal(root) if root.ndim == 1 else Dense(lower(root))


def lower(root: np.ndarray) -> np.ndarray:
    """The lower triangular root of the same covariance."""
    return np.ascontiguousarray(np.tril(np.linalg.qr(root.T, mode="r").T))


def make_mass(mass, model, x):
    """The mass that a checked option stands for, in runs that start around `x` (d,).

    Parameters
    ----------
    mass : None, ndarray, "hessian", "adaptive" or "adaptive dense"
        "hessian": the Hessian at the model's mode, or at `x` if there is none. The adaptive ones start from that at `x`
        (from its diagonal, and above 200 dimensions from the mean curvature) and follow the path in the warm-up.
    model : Model
    x : ndarray, shape (d,)

    Raises
    ------
    ValueError
        When "hessian" is asked for where the Hessian is not positive definite.
    """
    if mass is None:
        return Identity()
    if isinstance(mass, np.ndarray):
        return (Diagonal if mass.ndim == 1 else Dense)(root_of(mass))
    if mass == "hessian":
        mode = model.quick_mode()
        try:
            return Dense(root_of(model.hessian(x if mode is None else mode)))
        except ValueError:
            raise ValueError(
                '`mass="hessian"` needs a positive definite Hessian, and it is not where the target has its mode. '
                'Give a matrix, or mass="adaptive dense".'
            ) from None
    d = model.dim
    hessian = model.hessian(x) if d <= LARGEST else None
    if mass == "adaptive dense":
        if hessian is not None:
            try:
                return Dense(root_of(0.5 * (hessian + hessian.T)), adaptive=True)
            except ValueError:  # between modes: the path will tell
                pass
        return Dense(np.eye(d) / math.sqrt(mean_curvature(model, x)), adaptive=True)
    if hessian is not None and np.all(np.diag(hessian) > 0.0):
        return Diagonal(1.0 / np.sqrt(np.diag(hessian)), adaptive=True)
    return Diagonal(np.full(d, 1.0 / math.sqrt(mean_curvature(model, x))), adaptive=True)


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


def _probed_trace(mass, model, x, probes=32):
    rng, total, x = np.random.default_rng(0), 0.0, np.asarray(x, dtype=float)
    for _ in range(probes):
        z = 1e-5 * mass.transform(rng.choice([-1.0, 1.0], model.dim))
        total += z @ (model.gradient(x + z) - model.gradient(x - z)) / 2e-10
    return total / probes / model.dim
