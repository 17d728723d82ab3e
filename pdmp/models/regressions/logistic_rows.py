"""Loops over the data of logistic regression: in rows of whole cache lines, and in tiles of 64 data.

A row of `data` is one datum: its features times its label ±1, so that no label has to be fetched. In a tile, (d, 64),
feature j of 64 data is contiguous.
"""

from __future__ import annotations

import math

from pdmp.models.regressions.logistic_terms import expit_of_minus
from pdmp.native.classes import inlined, vectorised, vectorised_inlined
from pdmp.native.prefetch import prefetch
from pdmp.native.vectors import BLOCK, add8, buffer, columns, dot, exp


@inlined
def _ahead(start, n):
    """Half the number of rows in the block after the one at `start`: so many are fetched in each half of the work."""
    return min(BLOCK, max(n - start - BLOCK, 0)) // 2


@vectorised_inlined
def _weights(data, x, rows, start, n, weights, wide):
    """weights[k] = -expit(-z) of row rows[start + k], its factor in the gradient, for one block; its length.

    The first of the rows of the next block are fetched meanwhile: spread over the work, so that memory and arithmetic
    overlap.
    """
    d, m, ahead = x.shape[0], min(BLOCK, n - start), _ahead(start, n)
    for k in range(m):
        weights[k] = 0.0
    for c in range(0, d, BLOCK):
        eights = columns(x, c, wide)
        for k in range(ahead):
            prefetch(data, rows[start + BLOCK + k])
            weights[2 * k] += dot(data, rows[start + 2 * k], c, wide, eights)
            weights[2 * k + 1] += dot(data, rows[start + 2 * k + 1], c, wide, eights)
        for k in range(2 * ahead, m):
            weights[k] += dot(data, rows[start + k], c, wide, eights)
        ahead = 0
    for k in range(m):
        weights[k] = -expit_of_minus(weights[k])
    return m


@vectorised_inlined
def _add_weighted_rows(data, rows, start, n, weights, eight, out):
    """out += Σ weights[k] row k of the block; fetches the other rows of the next block."""
    d, m, ahead = out.shape[0], min(BLOCK, n - start), _ahead(start, n)
    next_row = start + BLOCK + ahead
    for c in range(0, d, 8):
        for j in range(8):
            eight[j] = 0.0
        for k in range(ahead):
            prefetch(data, rows[next_row + k])
            add8(eight, weights[2 * k], data, rows[start + 2 * k], c)
            add8(eight, weights[2 * k + 1], data, rows[start + 2 * k + 1], c)
        for k in range(2 * ahead, m):
            add8(eight, weights[k], data, rows[start + k], c)
        ahead = 0
        for j in range(min(8, d - c)):
            out[c + j] += eight[j]


@vectorised
def add_batch_gradient(data, x, rows, n, out):
    """Add the gradient at x of the terms `rows` to `out`."""
    weights, wide = buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        _weights(data, x, rows, start, n, weights, wide)
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def add_batch_difference(data, x, y, rows, n, out):
    """Add the gradient at x less that at y; each row is fetched once."""
    weights, others, wide = buffer(), buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _weights(data, y, rows, start, min(n, start + BLOCK), others, wide)  # nothing to fetch
        for k in range(m):
            weights[k] -= others[k]
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def add_weighted_difference(data, x, y, rows, factors, n, out):
    """`add_batch_difference` with a factor for each row."""
    weights, others, wide = buffer(), buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _weights(data, y, rows, start, min(n, start + BLOCK), others, wide)  # nothing to fetch
        for k in range(m):
            weights[k] = factors[start + k] * (weights[k] - others[k])
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def add_batch_projection(data, x, v, rows, n, out):
    """Add the gradient of the terms `rows` to `out`; the sum of their projections on v, and of the squares of these."""
    weights, projections, wide = buffer(), buffer(), buffer()
    first, second = 0.0, 0.0
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _add_weighted_rows(data, rows, start, n, weights, wide, out)
        for k in range(m):
            projections[k] = 0.0
        for c in range(0, v.shape[0], BLOCK):
            eights = columns(v, c, wide)
            for k in range(m):
                projections[k] += dot(data, rows[start + k], c, wide, eights)
        for k in range(m):
            p = weights[k] * projections[k]
            first += p
            second += p * p
    return first, second


@vectorised
def add_batch_squares(data, x, rows, n, out, squares):
    """Add the gradient of the terms `rows` to `out`, and the squares of its parts to `squares`."""
    weights, wide = buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        for k in range(start + BLOCK + _ahead(start, n), min(start + 2 * BLOCK, n)):
            prefetch(data, rows[k])
        for k in range(m):
            i, w = rows[start + k], weights[k]
            for j in range(out.shape[0]):
                g = w * data[i, j]
                out[j] += g
                squares[j] += g * g


@vectorised
def add_rows_gradient(data, x, first, last, out):
    """Add the gradient of the terms first <= i < last to `out`."""
    weights = buffer()
    d = x.shape[0]
    for start in range(first, last, BLOCK):
        m = min(BLOCK, last - start)
        for k in range(m):
            z = 0.0
            for j in range(d):
                z += data[start + k, j] * x[j]
            weights[k] = z
        for k in range(m):
            weights[k] = -expit_of_minus(weights[k])
        for k in range(m):
            for j in range(d):
                out[j] += weights[k] * data[start + k, j]


@vectorised
def rows_potential(data, x, first, last):
    """Σ log(1 + exp(-z)) = Σ max(-z, 0) + log Π (1 + exp(-|z|)), one logarithm for the product of a block of rows.

    A term below 1e-16 rounds to zero; the sum's absolute error is of that order for each term.
    """
    margins, wide = buffer(), buffer()
    d, total = x.shape[0], 0.0
    for start in range(first, last, BLOCK):
        m = min(BLOCK, last - start)
        for k in range(m):
            margins[k] = 0.0
        for c in range(0, d, BLOCK):
            eights = columns(x, c, wide)
            for k in range(m):
                margins[k] += dot(data, start + k, c, wide, eights)
        product = 1.0  # at most 2^64
        for k in range(m):
            z = margins[k]
            product *= 1.0 + exp(-abs(z))
            total += 0.0 if z > 0.0 else -z
        total += math.log(product)
    return total


@vectorised
def add_tiles_gradient(tiles, x, first, last, out):
    """The same for data in tiles."""
    weights = buffer()
    for t in range(first // BLOCK, (last + BLOCK - 1) // BLOCK):
        for k in range(BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            for k in range(BLOCK):
                weights[k] += x[j] * tiles[t, j, k]
        for k in range(BLOCK):
            weights[k] = -expit_of_minus(weights[k])
        for k in range(first - t * BLOCK):  # what is in the tile but not in the block
            weights[k] = 0.0
        for k in range(last - t * BLOCK, BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            total = 0.0
            for k in range(BLOCK):
                total += weights[k] * tiles[t, j, k]
            out[j] += total


@vectorised
def copy_rows(data, rows, n, tiles):
    """Copy the data `rows` into tiles."""
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m, ahead = min(BLOCK, n - start), min(BLOCK, max(n - start - BLOCK, 0))
        for k in range(m):
            if k < ahead:
                prefetch(data, rows[start + BLOCK + k])
            for j in range(tiles.shape[1]):
                tiles[start // BLOCK, j, k] = data[rows[start + k], j]


@vectorised
def rows_curvature(data, v):
    """Σ (aᵢ·v)² over all data."""
    total = 0.0
    for i in range(data.shape[0]):
        p = 0.0
        for j in range(v.shape[0]):
            p += data[i, j] * v[j]
        total += p * p
    return total


@vectorised
def add_rows_partial_curvatures(data, v, out):
    """Add Σ max(0, vⱼ aᵢⱼ aᵢ·v) over all data to out[j]."""
    for i in range(data.shape[0]):
        p = 0.0
        for j in range(v.shape[0]):
            p += data[i, j] * v[j]
        for j in range(v.shape[0]):
            q = v[j] * data[i, j] * p
            out[j] += q if q > 0.0 else 0.0
