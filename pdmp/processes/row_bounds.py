r"""Bounds on what single rows have beyond their expansion at an anchor, from enclosures of third derivatives.

With A_i (m, d) the functionals of row i, S_i = A_i Σ A_iᵀ and T the third derivatives of its loss, the remainder of its
gradient at x̂ + y is A_iᵀρ, ρ_k = ∫₀¹ (1 - s) Σ T_kpq(η̂ + sζ) ζ_p ζ_q ds with ζ = A_i y. In the norm |y|² = yᵀΣ⁻¹y

    |v·R_i| <= Λᵢ |w| |y|² / 2 where |y| <= r,      Λᵢ = 2 ∫₀¹ (1 - s) |T(box of size s r)| ds,
    |ρ_k| <= M_ik |y|² / 2,                         M_ik = 2 ∫₀¹ (1 - s) |T_k(box of size s r)| ds,

|T| being a bound on the norm of T with a root of S_i applied to each index: the largest singular value of its middle's
unfolding plus that of its half-widths; |T_k| the Frobenius norm of T_k, so applied to the two others. Radii are a few,
*shells*; a row's weight is Λᵢ of the first one, and the factor of a shell the largest of its Λᵢ over the weights. So
rows are drawn by one table, however far the path is.

The enclosures are rounded outward (`pdmp.expressions.tape`), so no rate is ever above its bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pdmp.expressions.tape import LANES, Rows, Tape, enclose
from pdmp.native.classes import by_name, entry, inlined, internal
from pdmp.native.threads import each

OVERALL, BY_FUNCTIONAL, BY_LEVEL = range(3)  #: norms: |T|; |T_k| of each k; |T| with the first S times each ρ
PIECE = 2**14  #: rows of which all norms are in memory at once

#: Up to so many rows: radii within the first shell, at which the third derivatives are enclosed besides; those of the
#: shells, in units of the square root of the dimension; and whether fourth derivatives tighten the enclosures.
PLANS = (
    (5_000, (0.3, 0.6, 0.9), 1.25 * 1.3 ** np.arange(20), True),
    (50_000, (0.6,), 1.25 * np.array([1.0, 1.3, 1.7, 2.5, 4.0, 10.0]), True),
    (math.inf, (), 1.4 * np.array([1.0, 2.0, 3.0, 4.5, 8.0]), False),
)
FLOOR = 1e-6  #: a weight is at least this share of those of the farther shells
HOPELESS = 1e9  #: a shell of which the bounds are above those of the first by this factor is of no use
MOST = 1.1  #: shells for which that would raise the sum of the weights by more than this factor are left out


class Boxes(NamedTuple):
    """What enclosing a block of rows needs, a lane for each."""

    eta: np.ndarray  #: (m, lanes) functionals at the anchor
    low_eta: np.ndarray
    high_eta: np.ndarray
    data: np.ndarray  #: (q, lanes)
    square: np.ndarray  #: (m, m, lanes) S
    low: np.ndarray  #: (registers, lanes)
    high: np.ndarray
    low_fourth: np.ndarray
    high_fourth: np.ndarray
    first_end: np.ndarray  #: (triples, lanes) of the enclosures that were cut
    last_end: np.ndarray


class Small(NamedTuple):
    """And their norms."""

    root: np.ndarray  #: (m, m, lanes)
    gram: np.ndarray
    product: np.ndarray
    centre: np.ndarray  #: (m, m, m, lanes)
    width: np.ndarray
    turned: np.ndarray
    norm: np.ndarray  #: (lanes,)
    total: np.ndarray  #: (K, lanes)
    parts: np.ndarray  #: (4, lanes) of |T|², by how many of the indices are the first


class Plan:
    """`radii` at which third derivatives of n rows are enclosed, `unit` being a typical distance from the anchor."""

    def __init__(self, n: int, unit: float) -> None:
        _, inner, radii, self.cuts = next(plan for plan in PLANS if n <= plan[0])
        self.radii = unit * radii
        self.steps = np.concatenate([unit * np.array(inner), self.radii])
        self.shares = _shares(self.steps, len(radii))

    def norms(self, tapes: tuple[Tape, Tape | None], rows: Rows, which: int = OVERALL, levels=None) -> np.ndarray:
        """2 ∫ (1 - s) |T| ds of each shell and row, (shells, K, n); K is 1, m or the number of levels."""
        third, fourth = tapes[0], tapes[1] if self.cuts else None
        m, n = rows.eta.shape
        levels = np.ones(1) if levels is None else levels
        found = np.empty((len(self.radii), m if which == BY_FUNCTIONAL else len(levels), n))
        triples = np.array([(a, b, c) for a in range(m) for b in range(a, m) for c in range(b, m)], np.int64)
        height = max(third.registers, (fourth or third).registers)
        sizes = [(m,)] * 3 + [(len(rows.data),), (m, m)] + [(height,)] * 4 + [(len(triples),)] * 2
        boxes = Boxes(*(np.zeros((*size, LANES)) for size in sizes))
        shapes = [(m, m, LANES)] * 3 + [(m, m, m, LANES)] * 3 + [(LANES,), (found.shape[1], LANES), (4, LANES)]
        small = Small(*map(np.zeros, shapes))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no bound
            _weigh(
                third.native, (fourth or third).native, fourth is not None, triples, by_name(rows), self.steps,
                self.shares, which, levels, by_name(boxes), by_name(small), found,
            )  # fmt: skip
        if rows.weight.size:
            with np.errstate(invalid="ignore"):
                found = np.where(rows.weight > 0.0, found * rows.weight, 0.0)
        return found


class RowBounds(NamedTuple):
    """Bounds on the remainders of rows."""

    weights: np.ndarray  #: (K, n) Λᵢ or M_ik of the first shell, or a little more
    factors: np.ndarray  #: (groups, shells) at least 1, not decreasing; of shells up to the last that is of use


def in_shells(found: np.ndarray, share=1.0, group: np.ndarray | None = None, groups: int = 1) -> RowBounds:
    """Weights of the first shell and factors of all, of norms `found` (shells, K, n), the first of which they become.

    In proportion to what `share` (K, n) of the weights the chance of a row is: shells for which weights would have to
    be raised too much are left out. Factors are those of each of `groups` groups of rows; `group` (n,) or (k, n) says
    in which of them a row is.
    """
    finite = np.isfinite(found).all(axis=(1, 2))
    last = len(finite) if finite.all() else int(np.argmin(finite))
    weights, share = found[0], np.broadcast_to(share, found.shape[1:])
    rows = [slice(*where) for where in in_pieces(weights.shape[1])]
    most = MOST * sum(np.sum(share[:, k] * weights[:, k]) for k in rows)
    for s in range(1, last):
        if sum(np.sum(share[:, k] * np.maximum(weights[:, k], FLOOR * found[s][:, k])) for k in rows) > most:
            last = s
            break
        for k in rows:
            np.maximum(weights[:, k], FLOOR * found[s][:, k], out=weights[:, k])
    factors = np.ones((groups, max(last, 1)))
    for s in range(1, last):
        for k in rows:
            w = weights[:, k]
            ratio = np.divide(found[s][:, k], w, out=np.zeros_like(w), where=w > 0.0).max(axis=0, initial=0.0)
            for places in [np.zeros(len(ratio), np.int64)] if group is None else np.atleast_2d(group)[:, k]:
                np.maximum.at(factors, (places, s), ratio)
    return RowBounds(weights, np.maximum.accumulate(factors, axis=1))


def together(plan: Plan, factors: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Radii and factors (groups, shells) of rows in several parts, each of which may know fewer shells."""
    shells = min(part.shape[1] for part in factors)
    return plan.radii[:shells], np.max([part[:, :shells] for part in factors], axis=0)


def row_bounds(model, anchor: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Λᵢ (N,), radii and factors (shells,) for the norm of covariance LLᵀ, `root` being L, or its diagonal (d,).

    A `ValueError` names a row if no bound is finite in the first shell.
    """
    plan = Plan(model.n_data, math.sqrt(model.dim))

    def part(k, first, stop):
        return plan.norms(model.enclosures[k], model.row_block(k, first, stop, anchor, root))

    found = np.concatenate(list(each(part, model.pieces())), axis=2)
    if not np.isfinite(found[0]).all():
        i = int(np.flatnonzero(~np.isfinite(found[0, 0]))[0])
        raise ValueError(
            f"no finite bound for {model.name_of_row(i)} within {plan.radii[0]:.3g} standard deviations of the anchor: "
            "the data say too little for this expansion, or the loss has a kink or a pole there."
        )
    bounds = in_shells(found)
    return bounds.weights[0], plan.radii[: bounds.factors.shape[1]], bounds.factors[0]


def in_pieces(n: int) -> list[tuple[int, int]]:
    """First and stop of pieces of n rows."""
    return [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]


def _shares(steps, shells):
    """2 ∫ (1 - s) ds over the part of (0, 1) in which s r lies between two radii, r being those of the shells."""
    ends = np.minimum(steps / steps[-shells:, None], 1.0)
    whole = ends * (2.0 - ends)
    return np.diff(whole, axis=1, prepend=0.0) * (1.0 + 1e-12)


@entry
def _weigh(third, fourth, cuts, triples, rows, steps, shares, which, levels, boxes, small, found):
    """Write what `Plan.norms` returns into `found` (shells, K, rows)."""
    m, done = boxes.eta.shape[0], 0
    while done < found.shape[2]:
        n = min(LANES, found.shape[2] - done)
        for lane in range(n):
            for q in range(boxes.data.shape[0]):
                boxes.data[q, lane] = rows.data[q, done + lane]
            for f in range(m):
                boxes.eta[f, lane] = rows.eta[f, done + lane]
                for g in range(m):
                    boxes.square[f, g, lane] = rows.square[f, g, done + lane]
            for s in range(found.shape[0]):
                for k in range(found.shape[1]):
                    found[s, k, done + lane] = 0.0
        begun, inner = 0.0, steps.shape[0] - found.shape[0]
        for p in range(steps.shape[0]):
            third_derivatives(third, fourth, cuts, n, steps[p] * (1.0 + 1e-9), triples.shape[0], boxes)
            if which == OVERALL:
                norms(third, triples, n, boxes, small)
            else:
                diagonal_norms(third, triples, n, which, levels, boxes, small)
            for s in range(found.shape[0]):
                if shares[s, p] > 0.0:
                    for k in range(found.shape[1]):
                        for lane in range(n):
                            found[s, k, done + lane] += shares[s, p] * small.total[k, lane]
            total = 0.0
            for lane in range(n):
                total += small.total[0, lane]
            if p == inner:
                begun = total
            if begun > 0.0 and not total <= HOPELESS * begun:
                for s in range(p - inner, found.shape[0]):
                    for k in range(found.shape[1]):
                        for lane in range(n):
                            found[s, k, done + lane] = math.inf
                break
        for s in range(found.shape[0]):  # NaN is no bound
            for k in range(found.shape[1]):
                for lane in range(n):
                    if not found[s, k, done + lane] < math.inf:
                        found[s, k, done + lane] = math.inf
        done += n


@internal
def third_derivatives(third, fourth, cuts, n, r, count, boxes):
    """Enclose them over boxes of radius r, into the registers of `third`'s results in `low` and `high`.

    If `cuts`, by the mean-value theorem too: T(box) is in T(centre) ± Σ |∂T| times the half-widths.
    """
    m, eta, data = boxes.eta.shape[0], boxes.eta, boxes.data
    for f in range(m):
        for lane in range(n):
            width = r * math.sqrt(boxes.square[f, f, lane]) * (1.0 + 1e-9) + 1e-14 * abs(eta[f, lane])
            boxes.low_eta[f, lane], boxes.high_eta[f, lane] = eta[f, lane] - width, eta[f, lane] + width
    if not cuts:
        enclose(
            third.code, third.number, third.fixed, n, data, boxes.low_eta, boxes.high_eta, eta, boxes.square, r,
            boxes.low, boxes.high,
        )  # fmt: skip
        return
    enclose(
        fourth.code, fourth.number, fourth.fixed, n, data, boxes.low_eta, boxes.high_eta, eta, boxes.square, r,
        boxes.low_fourth, boxes.high_fourth,
    )  # fmt: skip
    enclose(third.code, third.number, third.fixed, n, data, eta, eta, eta, boxes.square, 0.0, boxes.low, boxes.high)
    for q in range(count):
        t, place = third.results[q], fourth.results[q]
        for lane in range(n):
            rise = 0.0
            for f in range(m):
                slope = fourth.results[count + q * m + f]
                width = max(boxes.high_eta[f, lane] - eta[f, lane], eta[f, lane] - boxes.low_eta[f, lane])
                rise += max(-boxes.low_fourth[slope, lane], boxes.high_fourth[slope, lane]) * width * (1.0 + 1e-9)
            low, high = boxes.low_fourth[place, lane], boxes.high_fourth[place, lane]
            if boxes.low[t, lane] - rise > low:
                low = boxes.low[t, lane] - rise
            if boxes.high[t, lane] + rise < high:
                high = boxes.high[t, lane] + rise
            boxes.first_end[q, lane], boxes.last_end[q, lane] = low, high
    for q in range(count):  # not before: results may share registers
        for lane in range(n):
            boxes.low[third.results[q], lane] = boxes.first_end[q, lane]
            boxes.high[third.results[q], lane] = boxes.last_end[q, lane]


@internal
def norms(third, triples, n, boxes, small):
    """Bounds on the norms of T with a root of S applied to each index, of all lanes, into ``small.total[0]``."""
    if boxes.eta.shape[0] == 1:
        t = third.results[0]
        for lane in range(n):
            size, s = max(-boxes.low[t, lane], boxes.high[t, lane]), boxes.square[0, 0, lane]
            small.total[0, lane] = size * (s * math.sqrt(s)) * (1.0 + 1e-12)
        return
    for q in range(triples.shape[0]):
        t, a, b, c = third.results[q], triples[q, 0], triples[q, 1], triples[q, 2]
        for lane in range(n):
            low, high = boxes.low[t, lane], boxes.high[t, lane]
            centre = 0.5 * (low + high)
            half = 0.5 * (high - low) * (1.0 + 1e-12) + 1e-15 * abs(centre)
            small.centre[a, b, c, lane], small.width[a, b, c, lane] = centre, half
        _mirror(small.centre, a, b, c, n)
        _mirror(small.width, a, b, c, n)
    _cholesky(boxes.square, n, small.root)
    _norm(small.centre, n, small)
    for lane in range(n):
        small.total[0, lane] = small.norm[lane]
    m = small.root.shape[0]
    for f in range(m):
        for g in range(m):
            for lane in range(n):
                small.root[f, g, lane] = abs(small.root[f, g, lane])
    _norm(small.width, n, small)
    for lane in range(n):
        small.total[0, lane] = (small.total[0, lane] + small.norm[lane]) * (1.0 + 1e-9)


@internal
def diagonal_norms(third, triples, n, which, levels, boxes, small):
    """The other norms, of diagonal S and T with the largest absolute values of its entries, into ``small.total``."""
    m, cube = boxes.eta.shape[0], small.centre
    for q in range(triples.shape[0]):
        t, a, b, c = third.results[q], triples[q, 0], triples[q, 1], triples[q, 2]
        for lane in range(n):
            cube[a, b, c, lane] = max(-boxes.low[t, lane], boxes.high[t, lane])
        _mirror(cube, a, b, c, n)
    for k in range(4):
        for lane in range(n):
            small.parts[k, lane] = 0.0
    for k in range(m):
        for lane in range(n):
            total = 0.0
            for a in range(m):
                for b in range(m):
                    part = (
                        cube[k, a, b, lane] * cube[k, a, b, lane] * boxes.square[a, a, lane] * boxes.square[b, b, lane]
                    )
                    total += part
                    if which == BY_LEVEL:
                        first = (1 if k == 0 else 0) + (1 if a == 0 else 0) + (1 if b == 0 else 0)
                        small.parts[first, lane] += part * boxes.square[k, k, lane]
            if which == BY_FUNCTIONAL:
                small.total[k, lane] = math.sqrt(total) * (1.0 + 1e-12)
    if which == BY_LEVEL:
        for k in range(levels.shape[0]):
            for lane in range(n):
                parts, r = small.parts, levels[k]
                total = parts[0, lane] + r * (parts[1, lane] + r * (parts[2, lane] + r * parts[3, lane]))
                small.total[k, lane] = math.sqrt(total) * (1.0 + 1e-12)


@inlined
def _mirror(cube, a, b, c, n):
    """All entries of a symmetric array with these indices."""
    for lane in range(n):
        value = cube[a, b, c, lane]
        cube[a, c, b, lane] = cube[b, a, c, lane] = value
        cube[b, c, a, lane] = cube[c, a, b, lane] = cube[c, b, a, lane] = value


@internal
def _cholesky(square, n, root):
    """A lower triangular root of S of each lane, or of a little more where that is singular."""
    m = root.shape[0]
    for k in range(m):
        for q in range(k + 1):
            for lane in range(n):
                root[q, k, lane] = 0.0
                root[k, q, lane] = square[k, q, lane]
            for j in range(q):
                for lane in range(n):
                    root[k, q, lane] -= root[k, j, lane] * root[q, j, lane]
            for lane in range(n):
                total, own = root[k, q, lane], square[k, k, lane]
                if k == q:
                    root[k, k, lane] = math.sqrt(max(total, 0.0) + 1e-10 * own)
                else:
                    root[k, q, lane] = total / root[q, q, lane] if root[q, q, lane] > 0.0 else 0.0


@internal
def _norm(cube, n, small):
    """At least |T[p, q, r]| over unit vectors, the root applied to each index, of each lane into ``small.norm``.

    The largest singular value of the unfolding, from tr(G⁸)^(1/8) of its Gram matrix G. `cube` is overwritten.
    """
    m, root, other, gram, product = small.root.shape[0], small.root, small.turned, small.gram, small.product
    for turn in range(3):  # one index, and turn
        one, two = (cube, other) if turn % 2 == 0 else (other, cube)
        for j in range(m):
            for q in range(m):
                for a in range(m):
                    for lane in range(n):
                        two[j, q, a, lane] = 0.0
                    for i in range(a, m):  # the root is lower triangular
                        for lane in range(n):
                            two[j, q, a, lane] += one[i, j, q, lane] * root[i, a, lane]
    for lane in range(n):
        small.norm[lane] = 0.0
    for a in range(m):
        for b in range(m):
            for lane in range(n):
                gram[a, b, lane] = 0.0
            for j in range(m):
                for q in range(m):
                    for lane in range(n):
                        gram[a, b, lane] += other[a, j, q, lane] * other[b, j, q, lane]
        for lane in range(n):
            small.norm[lane] += gram[a, a, lane]
    for a in range(m):
        for b in range(m):
            for lane in range(n):
                trace = small.norm[lane]
                gram[a, b, lane] = gram[a, b, lane] / trace if trace > 0.0 else 0.0
    for turn in range(3):
        one, two = (gram, product) if turn % 2 == 0 else (product, gram)
        for a in range(m):
            for b in range(m):
                for lane in range(n):
                    two[a, b, lane] = 0.0
                for j in range(m):
                    for lane in range(n):
                        two[a, b, lane] += one[a, j, lane] * one[j, b, lane]
    for lane in range(n):
        power = 0.0
        for a in range(m):
            power += product[a, a, lane]
        small.norm[lane] = math.sqrt(small.norm[lane] * math.sqrt(math.sqrt(math.sqrt(power)))) * (1.0 + 1e-12)
