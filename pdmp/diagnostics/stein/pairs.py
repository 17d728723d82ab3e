"""Sums of the Stein kernel over pairs of draws.

Draws are stored in an array (tiles, d, TILE), TILE draws in a tile. Every inner loop then runs over TILE numbers that
are neighbours in memory, and TILE is known when the loop is compiled.
"""

from __future__ import annotations

import numba
import numpy as np

from pdmp.diagnostics.stein.inputs import cholesky
from pdmp.diagnostics.stein.kernels import as_kernel
from pdmp.native.classes import entry, vectorised
from pdmp.native.threads import thread_pool

#: Draws handled together, an even number: their sums stay in the fastest cache. In plain Python a small one is faster.
TILE = 4 if numba.config.DISABLE_JIT else 256


def tiled(a):
    """(d, n) as tiles, (tiles, d, TILE), zeros at the end."""
    d, n = a.shape
    tiles = -(-n // TILE)
    out = np.zeros((d, tiles * TILE))
    out[:, :n] = a
    return np.ascontiguousarray(out.reshape(d, tiles, TILE).transpose(1, 0, 2))


@vectorised
def _two_rows(kernel, y, t, weights, trace, q, i, p, after, buffer):
    """Σⱼ wⱼ k_π(xᵢ, xⱼ) for the draws i and i + 1 of tile q, over the draws j of tile p; Γ = I.

    The sum of draw i is over the places j > `after`, that of draw i + 1 over j > `after` + 1. The number of coordinates
    is even. Two draws at a time, because both use the same draws j.
    """
    for k in range(0, y.shape[1], 2):
        a, b, c, e = y[q, k, i], y[q, k + 1, i], y[q, k, i + 1], y[q, k + 1, i + 1]
        ta, tb, tc, te = t[q, k, i], t[q, k + 1, i], t[q, k, i + 1], t[q, k + 1, i + 1]
        for j in range(TILE):
            y0, y1, t0, t1 = y[p, k, j], y[p, k + 1, j], t[p, k, j], t[p, k + 1, j]
            d0, d1, d2, d3 = a - y0, b - y1, c - y0, e - y1
            buffer[0, j] = (buffer[0, j] if k > 0 else 0.0) + (d0 * d0 + d1 * d1)
            buffer[1, j] = (buffer[1, j] if k > 0 else 0.0) + (d0 * (ta - t0) + d1 * (tb - t1))
            buffer[2, j] = (buffer[2, j] if k > 0 else 0.0) + (ta * t0 + tb * t1)
            buffer[3, j] = (buffer[3, j] if k > 0 else 0.0) + (d2 * d2 + d3 * d3)
            buffer[4, j] = (buffer[4, j] if k > 0 else 0.0) + (d2 * (tc - t0) + d3 * (te - t1))
            buffer[5, j] = (buffer[5, j] if k > 0 else 0.0) + (tc * t0 + te * t1)
    one, two = 0.0, 0.0
    for j in range(TILE):
        p0, p1, p2 = kernel.profile(buffer[0, j])
        value = buffer[2, j] * p0 - 2.0 * p1 * (buffer[1, j] + trace) - 4.0 * p2 * buffer[0, j]
        one += (weights[p, j] if j > after else 0.0) * value
        p0, p1, p2 = kernel.profile(buffer[3, j])
        value = buffer[5, j] * p0 - 2.0 * p1 * (buffer[4, j] + trace) - 4.0 * p2 * buffer[3, j]
        two += (weights[p, j] if j > after + 1 else 0.0) * value
    return one, two


@vectorised
def _row(kernel, y, t, s, w, trace, q, i, p, buffer):
    """buffer[0, j] = k_π of draw i of tile q and draw j of tile p, for any Γ."""
    for r in range(4):
        for j in range(TILE):
            buffer[r, j] = 0.0
    for k in range(y.shape[1]):
        yi, ti, si, wi = y[q, k, i], t[q, k, i], s[q, k, i], w[q, k, i]
        for j in range(TILE):
            difference, other = yi - y[p, k, j], wi - w[p, k, j]
            buffer[0, j] += difference * difference
            buffer[1, j] += difference * (ti - t[p, k, j])
            buffer[2, j] += si * s[p, k, j]
            buffer[3, j] += other * other
    for j in range(TILE):
        p0, p1, p2 = kernel.profile(buffer[0, j])
        buffer[0, j] = buffer[2, j] * p0 - 2.0 * p1 * (buffer[1, j] + trace) - 4.0 * p2 * buffer[3, j]


@vectorised
def _weighted(weights, p, after, buffer):
    """Σⱼ wⱼ buffer[0, j] over the draws of tile p after place `after`."""
    total = 0.0
    for j in range(TILE):
        total += (weights[p, j] if j > after else 0.0) * buffer[0, j]
    return total


@entry
def _row_sums(kernel, y, t, weights, trace, q, out, buffer):
    """out[q, i] = Σ_{j > i} wⱼ k_π(xᵢ, xⱼ) for the draws of tile q, with Γ = I; the number of coordinates is even."""
    for p in range(q, y.shape[0]):
        for i in range(0, TILE, 2):
            one, two = _two_rows(kernel, y, t, weights, trace, q, i, p, i if p == q else -2, buffer)
            out[q, i] += one
            out[q, i + 1] += two


@entry
def row_sums_preconditioned(kernel, y, t, s, w, weights, trace, q, out, buffer):
    """As `_row_sums`, for any Γ and any number of coordinates."""
    for p in range(q, y.shape[0]):
        for i in range(TILE):
            _row(kernel, y, t, s, w, trace, q, i, p, buffer)
            out[q, i] += _weighted(weights, p, i if p == q else -1, buffer)


@entry
def _add_row(kernel, y, t, s, w, trace, i, factor, out, buffer):
    """out[j] += factor k_π(xᵢ, xⱼ) for all j."""
    for p in range(y.shape[0]):
        _row(kernel, y, t, s, w, trace, i // TILE, i % TILE, p, buffer)
        begin = p * TILE
        for j in range(min(TILE, out.shape[0] - begin)):
            out[begin + j] += factor * buffer[0, j]


class Pairs:
    """Draws and scores in tiles, for sums of the Stein kernel over their pairs."""

    def __init__(self, x, scores, kernel, preconditioner):
        from scipy.linalg import solve_triangular

        self.n, d = x.shape
        factor = cholesky(preconditioner, x)
        self.identity = factor is None
        x = x - x.mean(axis=0)  # centred, because differences of large numbers lose digits
        if factor is None:
            self.trace = float(d)
            y, t, w = x, scores, x
        else:
            inverse = solve_triangular(factor, np.eye(d), lower=True)
            self.trace = float(np.sum(inverse**2))
            y, t = x @ inverse.T, scores @ inverse.T
            w = y @ inverse
        self.kernel = as_kernel(kernel, y)
        phi, first, _ = self.kernel.native.profile(0.0)
        self.diagonal = phi * np.einsum("ij,ij->i", scores, scores) - 2.0 * first * self.trace
        even = self.identity and d % 2 == 1  # two coordinates at a time
        self.y, self.t = (tiled(np.pad(a.T, ((0, int(even)), (0, 0)))) for a in (y, t))
        self.s, self.w = (self.t, self.y) if self.identity else (tiled(scores.T), tiled(w.T))

    def row_sums(self, weights, threads):
        """Σ_{j > i} wⱼ k_π(xᵢ, xⱼ) for each i. One thread makes each sum: it does not depend on their number."""
        kernel, weights = self.kernel.native, tiled(weights[None])[:, 0]
        out = np.zeros(weights.shape)

        def work(q):
            if self.identity:
                _row_sums(kernel, self.y, self.t, weights, self.trace, q, out, np.empty((6, TILE)))
            else:
                arrays = self.y, self.t, self.s, self.w, weights
                row_sums_preconditioned(kernel, *arrays, self.trace, q, out, np.empty((4, TILE)))

        if threads == 1:
            list(map(work, range(len(out))))
        else:
            with thread_pool(threads, "pdmp-pairs") as executor:
                list(executor.map(work, range(len(out))))
        return out.ravel()[: self.n]

    def add_row(self, i, out, factor=1.0):
        """out[j] += factor k_π(xᵢ, xⱼ)."""
        arrays = self.y, self.t, self.s, self.w
        _add_row(self.kernel.native, *arrays, self.trace, i, factor, out, np.empty((4, TILE)))
