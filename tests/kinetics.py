"""The kinetic integrators written a second time, from the papers' formulas: as affine maps, whose laws are exact.

A step is a list of operations on s = (1, θ, p, g), g the last gradient, for U quadratic: gradients are A θ - b, of the
whole target or of one mini-batch, with additive noise of variance `tau`² or without. What a sequence of such steps
does to E[s sᵀ] is linear, and so is what random sequences do: independent batches, an epoch's orders, or the steps
between two refreshments of the momentum.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import linalg


class Affine(NamedTuple):
    """s ← M s + N(0, Q)."""

    M: np.ndarray
    Q: np.ndarray

    def then(self, other):
        return Affine(other.M @ self.M, other.M @ self.Q @ other.M.T + other.Q)


def chained(operations):
    """One map of several, the first first."""
    total = operations[0]
    for operation in operations[1:]:
        total = total.then(operation)
    return total


class Operations:
    """The elementary operations in d dimensions."""

    def __init__(self, d):
        self.d, self.size = d, 1 + 3 * d
        self.theta, self.p, self.g = (slice(1 + k * d, 1 + (k + 1) * d) for k in range(3))

    def nothing(self):
        return Affine(np.eye(self.size), np.zeros((self.size, self.size)))

    def drift(self, t):
        """θ += t p."""
        map_ = self.nothing()
        map_.M[self.theta, self.p] = t * np.eye(self.d)
        return map_

    def kick(self, t):
        """p -= t g."""
        map_ = self.nothing()
        map_.M[self.p, self.g] = -t * np.eye(self.d)
        return map_

    def shrink(self, factor, variance=0.0):
        """p = factor p + N(0, variance)."""
        map_ = self.nothing()
        map_.M[self.p, self.p] = factor * np.eye(self.d)
        map_.Q[self.p, self.p] = variance * np.eye(self.d)
        return map_

    def evaluate(self, A, b, tau=0.0):
        """g = A θ - b + N(0, τ²)."""
        map_ = self.nothing()
        map_.M[self.g] = 0.0
        map_.M[self.g, self.theta] = A
        map_.M[self.g, 0] = -np.asarray(b)
        map_.Q[self.g, self.g] = tau**2 * np.eye(self.d)
        return map_

    def free(self, t, friction):
        """dθ = p dt, dp = -D p dt + √(2D) dB for a time t, by matrix exponentials (Van Loan, 1978)."""
        flow, noise = free_motion(t, friction)
        map_ = self.nothing()
        for i, a in enumerate((self.theta, self.p)):
            for j, b in enumerate((self.theta, self.p)):
                map_.M[a, b] = flow[i, j] * np.eye(self.d)
                map_.Q[a, b] = noise[i, j] * np.eye(self.d)
        return map_


def free_motion(t, friction):
    """Transition and covariance (2, 2) of (θ, p) after a time t without a force."""
    drift = np.array([[0.0, 1.0], [0.0, -friction]])
    block = np.zeros((4, 4))
    block[:2, :2], block[:2, 2:], block[2:, 2:] = -drift, np.diag([0.0, 2.0 * friction]), drift.T
    flow = linalg.expm(drift * t)
    return flow, flow @ linalg.expm(block * t)[:2, 2:]


SCHEMES = ("splitting", "semi_implicit", "explicit", "BAOAB", "UBU")


def step_map(scheme, eps, friction, A, b=None, tau=0.0, noise_estimate=0.0):
    """One step with the gradient A θ - b."""
    A = np.atleast_2d(A)
    d = len(A)
    ops = Operations(d)
    look = ops.evaluate(A, np.zeros(d) if b is None else b, tau)
    D, half = friction, 0.5 * eps
    injected = 2.0 * (D - noise_estimate) * eps
    decay = math.exp(-D * half)
    return chained(
        {
            "explicit": lambda: [look, ops.drift(eps), ops.shrink(1.0 - eps * D, injected), ops.kick(eps)],
            "semi_implicit": lambda: [ops.drift(eps), look, ops.shrink(1.0 - eps * D, injected), ops.kick(eps)],
            "splitting": lambda: [
                ops.drift(half),
                look,
                ops.shrink(decay),
                ops.kick(eps),
                ops.shrink(1.0, injected),
                ops.shrink(decay),
                ops.drift(half),
            ],
            "BAOAB": lambda: [
                ops.kick(half),
                ops.drift(half),
                ops.shrink(math.exp(-D * eps), 1.0 - math.exp(-2.0 * D * eps)),
                ops.drift(half),
                look,
                ops.kick(half),
            ],
            "UBU": lambda: [ops.free(half, D), look, ops.kick(eps), ops.free(half, D)],
        }[scheme]()
    )


class Law(NamedTuple):
    """Stationary averages over the states after each step."""

    mean: np.ndarray  #: (d,) of θ
    cov: np.ndarray  #: (d, d) of θ
    temperature: float  #: E |p|² / d


def stationary(sequences, d=1):
    """The law of the chain that takes one of `sequences` (lists of maps, equally long) at random, again and again."""
    ops = Operations(d)
    n = ops.size
    whole, places = np.zeros((n * n + 1, n * n + 1)), np.zeros((n * n + 1, n * n + 1))
    for sequence in sequences:
        so_far = Affine(np.eye(n), np.zeros((n, n)))
        for one in sequence:
            so_far = so_far.then(one)
            places += _on_squares(so_far) / (len(sequences) * len(sequence))
        whole += _on_squares(so_far) / len(sequences)
    # E[s sᵀ] and a 1 for what is added; the entry of E[1 · 1] is fixed.
    fixed = np.vstack([whole - np.eye(len(whole)), np.eye(len(whole))[[0, -1]]])
    right = np.zeros(len(fixed))
    right[-2:] = 1.0
    start, *_ = np.linalg.lstsq(fixed, right, rcond=None)
    assert np.abs(fixed @ start - right).max() < 1e-6 * np.abs(start).max()
    squares = (places @ start)[:-1].reshape(n, n)
    mean = squares[0, ops.theta]
    return Law(mean, squares[ops.theta, ops.theta] - np.outer(mean, mean), np.trace(squares[ops.p, ops.p]) / d)


def _on_squares(one):
    n = len(one.M)
    full = np.zeros((n * n + 1, n * n + 1))
    full[:-1, :-1], full[:-1, -1], full[-1, -1] = np.kron(one.M, one.M), one.Q.ravel(), 1.0
    return full


def additive(scheme, eps, friction, A, b=None, tau=0.0, noise_estimate=0.0, refresh_every=None):
    """The law with a gradient that is exact but for additive noise."""
    A = np.atleast_2d(A)
    one = step_map(scheme, eps, friction, A, b, tau, noise_estimate)
    sequence = [one] * (refresh_every or 1)
    if refresh_every:
        sequence = [Operations(len(A)).shrink(0.0, 1.0).then(one), *sequence[1:]]
    return stationary([sequence], len(A))


def spectral_radius(scheme, eps, friction, curvature, refresh_every=None):
    """Of (θ, p), or of θ over the steps between two refreshments."""
    ops = Operations(1)
    M = step_map(scheme, eps, friction, curvature).M
    if scheme == "BAOAB":  # g is a function of θ
        M = M @ ops.evaluate([[curvature]], [0.0]).M
    keep = [1, 2]
    if refresh_every:
        M, keep = np.linalg.matrix_power(M, refresh_every), [1]
    return np.abs(np.linalg.eigvals(M[np.ix_(keep, keep)])).max()


def batches(model, size, kind):
    """Sequences of the gradients (A, b) of a `LinearGaussian` in one dimension that its mini-batches may have.

    `kind` is "iid", "distinct" or "blocks": consecutive rows, all in an epoch, in each order.
    """
    a, y = model.A[:, 0], model.y
    n_data = len(y)

    def gradient(rows):
        rows, weight = list(rows), model.noise_precision * n_data / size
        return [[model.prior_precision + weight * a[rows] @ a[rows]]], [weight * a[rows] @ y[rows]]

    if kind == "blocks":
        blocks = [gradient(range(k, k + size)) for k in range(0, n_data, size)]
        return list(itertools.permutations(blocks))
    if kind == "iid":
        return [(gradient(rows),) for rows in itertools.product(range(n_data), repeat=size)]
    return [(gradient(rows),) for rows in itertools.combinations(range(n_data), size)]


def with_batches(scheme, eps, friction, sequences):
    """The law with the gradients of `batches`."""
    return stationary([[step_map(scheme, eps, friction, A, b) for A, b in sequence] for sequence in sequences])


def lattice_law(scheme, eps, friction, gradient, reach=(8.0, 9.0), points=(128, 108), rtol=1e-8):
    """The law in one dimension for any exact `gradient`, by iterating the transition kernel on a lattice of (θ, p).

    Drifts and kicks shift the density along one coordinate by an amount that depends on the other; on a lattice, with
    a smooth density that vanishes at its ends, Fourier's shift is exact to rounding, and so is a Gaussian smoothing.
    Not for the explicit scheme, which kicks from where θ was.
    """
    x, dx = np.linspace(-reach[0], reach[0], points[0], endpoint=False, retstep=True)
    p, dp = np.linspace(-reach[1], reach[1], points[1], endpoint=False, retstep=True)
    of_x, of_p = 2.0 * np.pi * np.fft.rfftfreq(points[0], dx), 2.0 * np.pi * np.fft.rfftfreq(points[1], dp)
    force = -gradient(x)

    def shift(density, axis, by):
        """Along `axis` by `by`, one for each point of the other axis."""
        if axis == 0:
            return np.fft.irfft(np.fft.rfft(density, axis=0) * np.exp(-1j * np.outer(of_x, by)), points[0], axis=0)
        return np.fft.irfft(np.fft.rfft(density, axis=1) * np.exp(-1j * np.outer(by, of_p)), points[1], axis=1)

    def scale_matrix(factor, variance):
        """p ← factor p + N(0, variance), on the lattice; the noise is wider than its width."""
        assert variance > dp**2
        kernel = np.exp(-0.5 * (p[None, :] - factor * p[:, None]) ** 2 / variance)
        return dp * kernel / math.sqrt(2.0 * np.pi * variance)

    half, decay, D = 0.5 * eps, math.exp(-0.5 * friction * eps), friction
    if scheme == "BAOAB":
        smooth = scale_matrix(decay**2, 1.0 - decay**4)
    elif scheme == "splitting":  # what comes after the kick: its noise, and a decay; the decay before it goes with it
        smooth = scale_matrix(decay**2, decay**2 * 2.0 * D * eps)
    elif scheme == "UBU":
        flow, noise = free_motion(half, D)
        along = noise[0, 1] / noise[1, 1]
        smooth = scale_matrix(flow[1, 1], noise[1, 1])
        spread = np.exp(-0.5 * of_x**2 * (noise[0, 0] - along * noise[0, 1]))
    else:
        smooth = scale_matrix(1.0 - eps * D, 2.0 * D * eps)

    def free(density):
        """θ += (1 - e)/D p + A, p = e p + C: A = along C + rest, so that θ moves by a p₀ + along (p₁ - e p₀) + rest."""
        density = shift(density, 0, (flow[0, 1] - along * flow[1, 1]) * p) @ smooth
        density = shift(density, 0, along * p)
        return np.fft.irfft(np.fft.rfft(density, axis=0) * spread[:, None], points[0], axis=0)

    def step(density):
        if scheme == "BAOAB":
            density = shift(shift(density, 1, half * force), 0, half * p)
            return shift(shift(density @ smooth, 0, half * p), 1, half * force)
        if scheme == "UBU":
            return free(shift(free(density), 1, eps * force))
        if scheme == "splitting":
            density = shift(density, 0, half * p) @ smooth
            return shift(shift(density, 1, decay * eps * force), 0, half * p)
        return shift(shift(density, 0, eps * p) @ smooth, 1, eps * force)  # semi-implicit

    density = np.exp(-np.add.outer(x**2, 0.5 * p**2))
    density /= density.sum()
    for _ in range(4_000):
        new = step(density)
        new /= new.sum()
        change, density = np.abs(new - density).sum(), new
        if change < rtol:
            break
    assert change < rtol and np.abs(density[[0, -1]]).sum() + np.abs(density[:, [0, -1]]).sum() < 1e-6
    on_x, on_p = density.sum(axis=1), density.sum(axis=0)
    return Law(np.array([on_x @ x]), np.array([[on_x @ x**2 - (on_x @ x) ** 2]]), float(on_p @ p**2))
