"""Stationary laws of the discretised piecewise-deterministic samplers, from their transition kernels on lattices.

Written from the descriptions of the algorithms; nothing of the package is used. The splitting schemes move by multiples
of the step in each coordinate, so that their kernels are exact on a lattice. Where events fall between its points their
probabilities are shared by the two neighbours, an error of second order in the lattice's width.

A gradient in one dimension is a list of (probability, function): Gaussian noise by quadrature, mini-batches one by one.
"""

import itertools

import numpy as np
from scipy import sparse, special
from scipy.sparse.linalg import spsolve


def noisy(gradient, tau, nodes=161):
    """``gradient`` with Gaussian noise of sd `tau`, integrated on a uniform grid of 8 sd to each side."""
    if tau == 0.0:
        return [(1.0, gradient)]
    z = np.linspace(-8.0, 8.0, nodes)
    weights = np.exp(-0.5 * z**2)
    return [(w, lambda x, e=tau * e: gradient(x) + e) for w, e in zip(weights / weights.sum(), z, strict=True)]


def batches(u, w, prior, size, distinct):
    """Every mini-batch of terms with gradients uᵢ θ - wᵢ, scaled up, beside the gradient `prior` θ of the prior."""
    n = len(u)
    drawn = itertools.combinations(range(n), size) if distinct else itertools.product(range(n), repeat=size)
    drawn = [list(rows) for rows in drawn]
    sums = [(u[rows].sum() * n / size, w[rows].sum() * n / size) for rows in drawn]
    return [(1.0 / len(drawn), lambda x, a=a, b=b: (prior + a) * x - b) for a, b in sums]


def stationary(kernel):
    """The law p of a chain with the sparse transition matrix `kernel`, p = p `kernel`."""
    n = kernel.shape[0]
    system = sparse.lil_matrix(kernel.T - sparse.identity(n))
    system[0] = 1.0
    return spsolve(system.tocsc(), np.eye(1, n)[0])


def diag(values):
    return sparse.diags(values, format="csr")


class Line:
    """Positions on a lattice of width h, first all with the velocity 1, then all with the velocity -1."""

    def __init__(self, middle, reach, h):
        half = round(reach / h)
        self.n = 2 * half + 1
        self.x = np.tile(middle + h * np.arange(-half, half + 1), 2)
        self.v = np.repeat([1.0, -1.0], self.n)
        self.turn = sparse.kron([[0.0, 1.0], [1.0, 0.0]], sparse.identity(self.n), format="csr")
        self.one = sparse.identity(2 * self.n, format="csr")

    def ahead(self, k):
        """Transition matrix of k lattice widths along the velocity; the ends are walls."""
        i, n = np.arange(self.n), self.n
        to = np.concatenate([np.minimum(i + k, n - 1), n + np.maximum(i - k, 0)])
        return sparse.csr_matrix((np.ones(2 * n), (np.arange(2 * n), to)), shape=(2 * n, 2 * n))

    def moments(self, law):
        """Mean and variance of the positions."""
        mean = law @ self.x
        return mean, law @ (self.x - mean) ** 2


def splitting_kernel(line, gradients, eps, refresh_rate=0.0):
    """D B D, or R D B D R, on a lattice of width `eps`."""
    middle = line.x + 0.5 * eps * line.v
    flips = sum(p * -np.expm1(-eps * np.maximum(line.v * g(middle), 0.0)) for p, g in gradients)
    fresh = -0.5 * np.expm1(-0.5 * refresh_rate * eps)  # a velocity drawn anew is the old one half of the time
    refresh = (1.0 - fresh) * line.one + fresh * line.turn
    return refresh @ (diag(1.0 - flips) @ line.ahead(1) + diag(flips) @ line.turn) @ refresh


def splitting_law(gradients, eps, refresh_rate=0.0, middle=0.0, reach=8.0):
    """Mean and variance of the splitting schemes in one dimension that start at `middle`."""
    line = Line(middle, reach, eps)
    return line.moments(stationary(splitting_kernel(line, gradients, eps, refresh_rate)))


def epoch_splitting_law(blocks, eps, middle, reach):
    """The same where each epoch visits the blocks, functions, in a new random order; averaged over the epoch."""
    line = Line(middle, reach, eps)
    kernels = [splitting_kernel(line, [(1.0, g)], eps) for g in blocks]
    orders = list(itertools.permutations(range(len(blocks))))
    places = [0.0 * line.one for _ in range(len(blocks) + 1)]
    for order in orders:
        so_far = line.one
        for place, block in enumerate((*order, None)):
            places[place] += so_far / len(orders)
            so_far = so_far if block is None else so_far @ kernels[block]
    start = stationary(places[-1])
    return line.moments(np.mean([start @ place for place in places[:-1]], axis=0))


def frozen_events(line, gradients, h, refresh_rate, cells):
    """Of the path after a look at the gradient, at each point: no event until k lattice widths, events in each cell.

    The events are those that change the velocity's sign, and those that do not.
    """
    rates = [(p, np.maximum(line.v * g(line.x), 0.0) + refresh_rate) for p, g in gradients]
    none_until = [sum(p * np.exp(-k * h * r) for p, r in rates) for k in range(cells + 1)]
    # Of the events in a cell, the refreshments: ∫ ρ exp(-r s) ds. Half of these change the sign, and all others do.
    kept = [
        0.5 * sum(p * refresh_rate * np.exp(-k * h * r) * h * special.exprel(-h * r) for p, r in rates)
        for k in range(cells)
    ]
    turned = [none_until[k] - none_until[k + 1] - kept[k] for k in range(cells)]
    return none_until, turned, kept


def frozen_law(gradients, eps, refresh_rate=0.0, middle=0.0, reach=8.0, cells=8):
    """Mean and variance along the path of SG-ZZ or SG-BPS in one dimension, on a lattice of width eps / cells.

    By induction over i: what follows a look at the gradient with i lattice widths of the interval to go, that is the
    state at its end and the integrals of 1, x and x² until then.
    """
    h = eps / cells
    line = Line(middle, reach, h)
    x, v = line.x, line.v
    none_until, turned, kept = frozen_events(line, gradients, h, refresh_rate, cells)
    ahead = [line.ahead(k) for k in range(cells + 1)]
    times = h * np.arange(cells + 1)
    paths = [np.stack([s + 0.0 * x, x * s + v * s**2 / 2, x**2 * s + x * v * s**2 + s**3 / 3], axis=1) for s in times]
    ends, integrals = [line.one], [0.0 * paths[0]]
    for i in range(1, cells + 1):
        end, integral = diag(none_until[i]) @ ahead[i], none_until[i][:, None] * paths[i]
        for k in range(i + 1):  # half of the events in the cell before this point, half of those in the one behind it
            a, b = (
                0.5 * ((each[k - 1] if k > 0 else 0.0 * x) + (each[k] if k < i else 0.0 * x)) for each in (turned, kept)
            )
            integral = integral + (a + b)[:, None] * paths[k]
            if k == 0:
                at_once = line.one - diag(a) @ line.turn - diag(b)
            else:
                after = diag(a) @ ahead[k] @ line.turn + diag(b) @ ahead[k]
                end, integral = end + after @ ends[i - k], integral + after @ integrals[i - k]
        ends.append(_solve(line, at_once, end))
        integrals.append(_solve(line, at_once, integral))
    time, first, second = stationary(ends[cells]) @ integrals[cells]
    mean = first / time
    return mean, second / time - mean**2


def epoch_frozen_law(blocks, eps, refresh_rate, middle, reach, cells=4):
    """The same where the looks of an epoch visit the blocks, functions, in a new random order.

    A look is at each start of an interval and after each event, so the chain from look to look is that of position,
    velocity and lattice widths to go. An event in the last cell half the time has none to go: it is looked at all the
    same, and a new interval begins.
    """
    h = eps / cells
    line = Line(middle, reach, h)
    x, v, none = line.x, line.v, sparse.csr_matrix((2 * line.n, 2 * line.n))
    ahead = [line.ahead(k) for k in range(cells + 1)]
    times = h * np.arange(cells + 1)
    paths = [np.stack([s + 0.0 * x, x * s + v * s**2 / 2, x**2 * s + x * v * s**2 + s**3 / 3], axis=1) for s in times]
    kernels, integrals = [], []
    for block in blocks:
        none_until, turned, kept = frozen_events(line, [(1.0, block)], h, refresh_rate, cells)
        rows, sums = [], []
        for i in range(cells + 1):
            row = [none] * (cells + 1)
            row[cells] = diag(none_until[i]) @ ahead[i]
            total = none_until[i][:, None] * paths[i]
            for k in range(i + 1):
                a, b = (
                    0.5 * ((each[k - 1] if k > 0 else 0.0 * x) + (each[k] if k < i else 0.0 * x))
                    for each in (turned, kept)
                )
                row[i - k] = row[i - k] + diag(a) @ ahead[k] @ line.turn + diag(b) @ ahead[k]
                total = total + (a + b)[:, None] * paths[k]
            rows.append(row)
            sums.append(total)
        kernels.append(sparse.bmat(rows, format="csr"))
        integrals.append(np.concatenate(sums))
    orders, found, whole = list(itertools.permutations(range(len(blocks)))), 0.0, 0.0
    for order in orders:
        so_far = sparse.identity(kernels[0].shape[0], format="csr")
        for block in order:
            found = found + so_far @ integrals[block]
            so_far = so_far @ kernels[block]
        whole = whole + so_far / len(orders)
    time, first, second = stationary(whole) @ found
    mean = first / time
    return mean, second / time - mean**2


def _solve(line, matrix, right):
    """``matrix``⁻¹ ``right`` for a matrix that only mixes the two velocities at each point."""
    own, other = matrix.diagonal(), (matrix @ line.turn).diagonal()
    determinant = own * (line.turn @ own) - other * (line.turn @ other)
    return (diag((line.turn @ own) / determinant) - diag(other / determinant) @ line.turn) @ right


def plane_law(precision, tau, eps, reach):
    """Covariance (2, 2) of D B D of the Zig-Zag process on N(0, precision⁻¹) in two dimensions, from the origin.

    `tau` is the sd of independent Gaussian noise in the coordinates of the gradient.
    """
    half = round(reach / eps)
    n = 2 * half + 1
    grid = np.array(np.meshgrid(*[np.arange(n)] * 2, indexing="ij")).reshape(2, -1)
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    kernel = [[0.0] * 4 for _ in range(4)]
    for i, v in enumerate(signs):
        gradient = precision @ (eps * (grid - half) + 0.5 * eps * v[:, None])
        flips = [
            sum(p * -np.expm1(-eps * np.maximum(s * g(row), 0.0)) for p, g in noisy(lambda y: y, tau))
            for s, row in zip(v, gradient, strict=True)
        ]
        for j, w in enumerate(signs):
            chance = np.prod([f if s != t else 1.0 - f for f, s, t in zip(flips, v, w, strict=True)], axis=0)
            to = np.clip(grid + ((v + w) // 2)[:, None], 0, n - 1)
            kernel[i][j] = sparse.csr_matrix((chance, (np.arange(n * n), to[0] * n + to[1])), shape=(n * n, n * n))
    law = stationary(sparse.bmat(kernel, format="csr")).reshape(4, -1).sum(axis=0)
    x = eps * (grid - half)
    return (x * law) @ x.T
