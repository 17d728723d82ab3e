r"""Posteriors with effects of groups in coordinates that are about standard normal, whatever the law of the effects is.

The effects of a group in d columns are uⱼ ~ N(0, A Aᵀ), A = D L, with their standard deviations D = diag(e^t) and the
Cholesky factor L of their correlations. Of L each row i has the canonical partial correlations z_ik = tanh w_ik [1]_,

    L_ik = z_ik Πₗ (1 - z_il²)^½ over l < k,     L_ii = Πₗ (1 - z_il²)^½ over l < i.

Centred effects u are hard to sample where the data say less of them than their prior does, those that are not, A⁻¹u,
where they say more [2]_, and with few groups either may be so at some t and w. Here a block of coordinates y, effects
with A and further ones with a constant diagonal in its place, has a likelihood of about exp(b·y - ½ y·Λy). Then

    y = A s,     s = R⁻ᵀ (x + R⁻¹Aᵀb),     R Rᵀ = I + AᵀΛA,

with x standard normal given t and w as far as that likelihood is right: R⁻ᵀ is A⁻¹ times a root of the covariance of y,
and the second term of s is A⁻¹ times its mean. Where the data say nothing, x is A⁻¹y. The law of t, w and y is the same
whatever Λ and b are. As minus the log prior of y is ½ |s|² + log det A, and the Jacobian of y is det A / det R, both
together are ½ |s|² + log det R, in which A as such does not occur: nothing cancels, however small it is.

Of the effects of a Gaussian process of d columns in functions of a Hilbert space [3]_, A has besides their widths for a
length scale e^r, ((2π)^¼ e^(r/2))^d exp(-¼ λ e^2r), λ being eigenvalues, or the product of those of d = 1 with a length
scale for each column.

Few groups are in one block with the fixed coefficients, which are then where the data put them given t and w. Of many
groups each is a block, and what is known of it is known given the fixed coefficients β: b falls by C β, where C has the
mixed derivatives of minus the log-likelihood. With normal responses that is their exact law given β, t, w and σ. In the
place of t stands θ, see `pdmp.models.regressions.spread_coordinate`.

References
----------
.. [1] Lewandowski, Kurowicka & Joe (2009), Generating random correlation matrices based on vines and extended onion
   method, J. Multivariate Anal. 100, section 2.
.. [2] Papaspiliopoulos, Roberts & Sköld (2007), A general framework for the parametrization of hierarchical models,
   Statist. Sci. 22, section 4.
.. [3] Riutort-Mayol, Bürkner, Andersen, Solin & Vehtari (2023), Practical Hilbert space approximate Bayesian Gaussian
   processes for probabilistic programming, Stat. Comput. 33, eq. 1 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.regressions.moved_coordinates import MovedRows
from pdmp.models.regressions.spread_coordinate import coordinate_of, log_rise_derivative, log_spread, log_spreads, rise
from pdmp.native.arguments import real
from pdmp.native.classes import compiled

LARGEST_LOG = 300.0  #: of standard deviations, so that their squares are numbers
QUARTER = 0.25 * math.log(2.0 * math.pi)
AT_ONCE = 5_000_000  #: numbers of draws that are moved together


class EffectSet(NamedTuple):
    """Effects of one grouping that are jointly normal: coordinates of the model."""

    spreads: np.ndarray  #: (d,) t
    partials: np.ndarray  #: (d (d - 1) / 2,) w, of the pairs (1, 0), (2, 0), (2, 1), …
    effects: np.ndarray  #: (groups, d)
    lengths: np.ndarray = np.zeros(0, np.int64)  #: (m,) coordinates r of the logarithms of length scales, of one column
    eigenvalues: np.ndarray = np.zeros((0, 0))  #: (groups, m) λ
    dimension: int = 1  #: of what each length scale is of

    def widths(self, y: np.ndarray) -> np.ndarray:
        """What standard deviations are multiplied by, (..., groups) at y (..., dim): 1 without a length scale."""
        if not len(self.lengths):
            return np.ones((*y.shape[:-1], len(self.effects)))
        return spectral_widths(y[..., self.lengths], self.eigenvalues, self.dimension)

    @property
    def width(self) -> int:
        """d."""
        return len(self.spreads)


def spectral_widths(r: np.ndarray, eigenvalues: np.ndarray, dimension: int) -> np.ndarray:
    """Roots of the spectral density of a squared exponential kernel of variance 1, (..., K).

    Of logarithms of length scales (..., m), each of so many columns, and eigenvalues (K, m).
    """
    r = np.minimum(r, LARGEST_LOG)[..., None, :]
    exponents = np.sum(dimension * (QUARTER + 0.5 * r) - 0.25 * eigenvalues * np.exp(2.0 * r), axis=-1)
    return np.exp(np.maximum(exponents, -LARGEST_LOG))


class Blocks(NamedTuple):
    """Blocks of as many coordinates each, which are moved together; those of a group are side by side."""

    coordinates: np.ndarray  #: (blocks, n)
    which: np.ndarray  #: (n,) the set of an effect; -1 of another coordinate
    column: np.ndarray  #: (n,) of an effect in its set
    scale: np.ndarray  #: (n,) what others have in the place of A
    centre: np.ndarray  #: (n,) what is added; 0 of effects
    information: np.ndarray  #: Λ, (blocks, n, n)
    score: np.ndarray  #: b, (blocks, n)

    @classmethod
    def of_set(cls, k: int, one: EffectSet, information: np.ndarray, score: np.ndarray) -> Blocks:
        """A block for each group of the k-th set."""
        d = one.width
        return cls(one.effects, np.full(d, k), np.arange(d), np.ones(d), np.zeros(d), information, score)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """What each block has, for all of them one after the other."""
        return np.tile(values, len(self.coordinates))


class Coupling(NamedTuple):
    """How b of effects depends on other coordinates z of `base`: it is less by C (z - z₀)."""

    others: np.ndarray  #: (p,) coordinates
    at: np.ndarray  #: z₀, (p,)
    effects: np.ndarray  #: (e,) coordinates
    by: np.ndarray  #: C, (e, p)


def cholesky_factors(spreads: np.ndarray, partials: np.ndarray) -> np.ndarray:
    """A = D L of a set, (..., d, d), of t (..., d) and w (..., d (d - 1) / 2)."""
    d, z = spreads.shape[-1], np.tanh(partials)
    found, place = np.zeros((*spreads.shape, d)), 0
    for i in range(d):
        rest = np.exp(np.minimum(spreads[..., i], LARGEST_LOG))
        for k in range(i):
            found[..., i, k] = rest * z[..., place]
            rest = rest / np.cosh(np.minimum(np.abs(partials[..., place]), LARGEST_LOG))
            place += 1
        found[..., i, i] = rest
    return found


def partial_correlations(correlation: np.ndarray) -> np.ndarray:
    """w (..., d (d - 1) / 2) of correlation matrices (..., d, d); where they are as good as ±1, a little nearer 0."""
    root, found = np.zeros(correlation.shape), []
    for i in range(correlation.shape[-1]):
        rest = np.ones(correlation.shape[:-2])
        for k in range(i):
            known = np.sum(root[..., i, :k] * root[..., k, :k], axis=-1)
            z = (correlation[..., i, k] - known) / (root[..., k, k] * np.sqrt(rest))
            z = np.clip(z, -1.0 + 1e-9, 1.0 - 1e-9)
            found.append(np.arctanh(z))
            root[..., i, k] = z * np.sqrt(rest)
            rest = rest * (1.0 - z * z)
        root[..., i, i] = np.sqrt(rest)
    return np.stack(found, axis=-1)


class Room(NamedTuple):
    """What has been computed of all entries."""

    root: np.ndarray  #: R of each block
    mean: np.ndarray  #: R⁻¹Aᵀb
    s: np.ndarray
    score: np.ndarray  #: b
    widths: np.ndarray  #: what the column of A of each entry is multiplied by
    factors: np.ndarray  #: A of each set, (sets, d, d)


class StandardisedEffects(MovedRows):
    """A posterior with effects of groups, whose state has x in the place of the coordinates of its blocks, and θ of t.

    `base` is of (β, t, w, u, …), without the law of the effects u, each of which is in one of the blocks. A block with
    other coordinates than effects is the first. The coordinates in no block start at `start` (dim,); `middle` is t -
    g(θ) of each set (d,), about the logarithms of the least standard deviations that the data tell from 0, and
    `centring` tells of each set in words.
    """

    widest: int  #: largest d
    largest: int  #: entries of a block, at most
    width: np.ndarray  #: (sets,) d
    spread: np.ndarray  #: coordinates t of the sets, one after the other
    spread_first: np.ndarray
    middle: np.ndarray  #: t - g(θ)
    partial: np.ndarray  #: coordinates w
    partial_first: np.ndarray
    several: int  #: blocks of more than one coordinate, the first ones
    block_first: np.ndarray  #: (blocks + 1,) where the entries of a block begin
    matrix_first: np.ndarray  #: (blocks + 1,) where Λ begins
    coordinate: np.ndarray
    which: np.ndarray
    column: np.ndarray
    scale: np.ndarray
    centre: np.ndarray
    length: np.ndarray  #: of an entry, (entries, m) coordinates r; -1 without
    eigenvalue: np.ndarray  #: (entries, m)
    dimension: np.ndarray
    information: np.ndarray
    score: np.ndarray
    is_free: np.ndarray  #: (dim,) 1.0 of coordinates that are those of `base`
    others: np.ndarray  #: (p,) on which b depends
    by: np.ndarray  #: C, (entries, p)

    def __init__(
        self,
        base: Model,
        sets: Sequence[EffectSet],
        blocks: Sequence[Blocks],
        coupling: Coupling | None,
        start: np.ndarray,
        middle: Sequence[np.ndarray],
        centring: Sequence[str] = (),
    ) -> None:
        self.base, self.sets, self.blocks, self._centring = base, list(sets), list(blocks), list(centring)
        self.width = np.array([one.width for one in sets], np.int64)
        self.widest = int(self.width.max())
        self.spread, self.spread_first = _laid([one.spreads for one in sets], np.int64)
        self.middle = _laid(middle, float)[0]
        self.partial, self.partial_first = _laid([one.partials for one in sets], np.int64)
        blocks = sorted(blocks, key=lambda one: one.coordinates.shape[1] == 1)
        sizes = np.concatenate([np.full(len(one.coordinates), one.coordinates.shape[1]) for one in blocks])
        self.several, self.largest = int(np.sum(sizes > 1)), int(sizes.max())
        self.block_first, self.matrix_first = (np.cumsum([0, *s]).astype(np.int64) for s in (sizes, sizes**2))
        self.coordinate = _laid([one.coordinates.reshape(-1) for one in blocks], np.int64)[0]
        self.which, self.column = (_laid([b.spread(b[k]) for b in blocks], np.int64)[0] for k in (1, 2))
        self.scale, self.centre = (_laid([b.spread(b[k]) for b in blocks], float)[0] for k in (3, 4))
        self.score = _laid([one.score.reshape(-1) for one in blocks], float)[0]
        self.information = _laid([one.information.reshape(-1) for one in blocks], float)[0]
        shape = base.dim, max(len(one.lengths) for one in self.sets)
        length, eigenvalue, dimension = np.full(shape, -1), np.zeros(shape), np.ones(base.dim)
        for one in self.sets:
            if m := len(one.lengths):
                own = one.effects[:, 0]
                length[own, :m], eigenvalue[own, :m], dimension[own] = one.lengths, one.eigenvalues, one.dimension
        self.length, self.eigenvalue = length[self.coordinate], eigenvalue[self.coordinate]
        self.dimension = dimension[self.coordinate]
        self.is_free = np.ones(base.dim)
        self.is_free[self.coordinate] = 0.0
        initial = np.where(self.is_free > 0.0, start, 0.0)
        initial[self.spread] = [coordinate_of(t) for t in start[self.spread] - self.middle]
        self.is_free[self.spread] = 0.0
        self.others, of_coordinates = np.zeros(0, np.int64), np.zeros((base.dim, 0))
        if coupling is not None:
            used = np.any(coupling.by != 0.0, axis=0)
            self.others, of_coordinates = coupling.others[used], np.zeros((base.dim, int(used.sum())))
            of_coordinates[coupling.effects] = coupling.by[:, used]
            self.score = self.score + (of_coordinates @ coupling.at[used])[self.coordinate]
        self.by = of_coordinates[self.coordinate]
        own = self._names(base)
        super().__init__(
            dim=base.dim,
            n_data=base.n_data,
            variables={
                name.replace("log ", "standardised ", 1) if name in own else name: shape
                for name, shape in base.variables.items()
            },
            initial=initial,
            transforms={name: law for name, law in base.transforms.items() if name not in own},
        )
        self.dims, self.coords = base.dims, base.coords

    # -- compiled: there and back -----------------------------------------------------------------------------------

    @compiled
    def write_spreads(self, x, y):
        """Write x into y, with t in the place of θ; less the logarithm of the derivatives."""
        total = 0.0
        for j in range(self.dim):
            y[j] = x[j]
        for k in range(self.spread.shape[0]):
            theta = x[self.spread[k]]
            y[self.spread[k]] = self.middle[k] + log_spread(theta)
            total -= math.log(rise(theta))
        return total

    @compiled(allocates=True)
    def room(self):
        """What `natural` writes for `pull_back`."""
        e, d = self.score.shape[0], self.widest
        root, factors = np.empty(self.information.shape[0]), np.zeros((self.width.shape[0], d, d))
        return Room(root, np.empty(e), np.empty(e), np.empty(e), np.empty(e), factors)

    @compiled
    def write_factors(self, y, factors):
        """A of each set, (sets, d, d)."""
        for k in range(self.width.shape[0]):
            place = self.partial_first[k]
            for i in range(self.width[k]):
                rest = math.exp(min(y[self.spread[self.spread_first[k] + i]], LARGEST_LOG))
                for j in range(i):
                    w = y[self.partial[place]]
                    factors[k, i, j] = rest * math.tanh(w)
                    rest /= math.cosh(min(abs(w), LARGEST_LOG))
                    place += 1
                factors[k, i, i] = rest

    @compiled
    def write_widths(self, y, widths):
        """What the column of A of each entry is multiplied by."""
        for e in range(widths.shape[0]):
            log_width = 0.0
            for j in range(self.length.shape[1]):
                if self.length[e, j] >= 0:
                    r = min(y[self.length[e, j]], LARGEST_LOG)
                    bend = self.eigenvalue[e, j] * math.exp(2.0 * r)
                    log_width += self.dimension[e] * (QUARTER + 0.5 * r) - 0.25 * bend
            widths[e] = math.exp(max(log_width, -LARGEST_LOG))

    @compiled
    def factor(self, factors, widths, i, e):
        """A of the entries i and e."""
        if self.which[e] < 0:
            return self.scale[e]
        return factors[self.which[e], self.column[i], self.column[e]] * widths[e]

    @compiled
    def score_at(self, e, y):
        """b of entry e."""
        value = self.score[e]
        for j in range(self.others.shape[0]):
            value -= self.by[e, j] * y[self.others[j]]
        return value

    @compiled
    def last_row(self, e, stop):
        """Up to which entry A has rows below entry e in its column."""
        return e + 1 if self.which[e] < 0 else min(e + self.width[self.which[e]] - self.column[e], stop)

    @compiled
    def write_block(self, begin, stop, m, factors, widths, a, across, last):
        """A of a block, ΛA, and where the columns of A end."""
        n = stop - begin
        for q in range(n):
            last[q] = self.last_row(begin + q, stop) - begin
            for i in range(q, last[q]):
                a[i, q] = self.factor(factors, widths, begin + i, begin + q)
            for i in range(n):
                across[i, q] = 0.0
                for j in range(q, last[q]):
                    across[i, q] += self.information[m + i * n + j] * a[j, q]

    @compiled(inline=False)
    def move_single(self, x, y, room):
        """As `move`, of blocks of one effect each, written out, as it is quicker."""
        root, mean, s, score, widths, factors = room
        total, begin, m = 0.0, self.block_first[self.several], self.matrix_first[self.several]
        for e in range(begin, self.score.shape[0]):
            a, j, i = self.factor(factors, widths, e, e), self.coordinate[e], m + e - begin
            r = math.sqrt(1.0 + a * self.information[i] * a)
            score[e] = self.score_at(e, y)
            mean[e] = a * score[e] / r
            s[e] = (x[j] + mean[e]) / r
            y[j], root[i] = self.centre[e] + a * s[e], r
            total += math.log(r) + 0.5 * s[e] * s[e]
        return total

    @compiled(inline=False, allocates=True)
    def move(self, x, y, room):
        """Write the blocks into y, and of all of them R, R⁻¹Aᵀb, s and b; log det R + ½ |s|² of effects."""
        root, mean, s, score, widths, factors = room
        a, across = np.empty((self.largest, self.largest)), np.empty((self.largest, self.largest))
        last, total = np.empty(self.largest, np.int64), 0.0
        for block in range(self.several):
            begin, stop, m = self.block_first[block], self.block_first[block + 1], self.matrix_first[block]
            n = stop - begin
            self.write_block(begin, stop, m, factors, widths, a, across, last)
            for p in range(n):
                score[begin + p] = self.score_at(begin + p, y)
            for p in range(n):
                for q in range(p + 1):
                    value = 1.0 if p == q else 0.0
                    for i in range(p, last[p]):
                        value += a[i, p] * across[i, q]
                    for j in range(q):
                        value -= root[m + p * n + j] * root[m + q * n + j]
                    root[m + p * n + q] = math.sqrt(value) if p == q else value / root[m + q * n + q]
                value = 0.0
                for i in range(p, last[p]):
                    value += a[i, p] * score[begin + i]
                for j in range(p):
                    value -= root[m + p * n + j] * mean[begin + j]
                mean[begin + p] = value / root[m + p * n + p]
                total += math.log(root[m + p * n + p])
            for p in range(n - 1, -1, -1):
                value = x[self.coordinate[begin + p]] + mean[begin + p]
                for i in range(p + 1, n):
                    value -= root[m + i * n + p] * s[begin + i]
                s[begin + p] = value / root[m + p * n + p]
                if self.which[begin + p] >= 0:
                    total += 0.5 * s[begin + p] * s[begin + p]
            for p in range(n):
                value = self.centre[begin + p]
                for q in range(p - self.column[begin + p], p + 1):
                    value += a[p, q] * s[begin + q]
                y[self.coordinate[begin + p]] = value
        return total + self.move_single(x, y, room)

    @compiled(inline=False, allocates=True)
    def natural(self, x, y, room):
        """Write (β, t, w, u, …) into y; the potential of the effects, less the log determinant of dy/dx."""
        total = self.write_spreads(x, y)
        self.write_factors(y, room.factors)
        self.write_widths(y, room.widths)
        return total + self.move(x, y, room)

    @compiled(inline=False, allocates=True)
    def pull_back(self, x, y, room, by_natural, of_effects, out):
        """Add the derivatives by x of what has the derivatives `by_natural`, which change, by y(x).

        And, `of_effects` times, those of what `natural` returns.
        """
        n = self.largest
        slopes = np.zeros((self.width.shape[0], self.widest, self.widest))
        a, across, by_root, last = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n, np.int64)
        by_r, by_c = np.empty(n), np.empty(n)
        self.pull_single(y, room, by_natural, of_effects, slopes, out)
        for block in range(self.several - 1, -1, -1):  # that with other coordinates, on which b depends, is the last
            begin, stop, m = self.block_first[block], self.block_first[block + 1], self.matrix_first[block]
            self.write_block(begin, stop, m, room.factors, room.widths, a, across, last)
            self.pull_block(begin, stop, m, room, a, last, by_natural, of_effects, by_r, by_c)
            for p in range(stop - begin):
                out[self.coordinate[begin + p]] += by_r[p]
            self.pull_root(begin, stop, m, room, of_effects, by_r, by_c, by_root)
            self.pull_factors(begin, stop, room, a, across, last, by_root, by_c, y, by_natural, slopes, out)
        for j in range(self.dim):
            out[j] += self.is_free[j] * by_natural[j]
        self.pull_spreads(x, room.factors, slopes, by_natural, of_effects, out)

    @compiled
    def pull_score(self, e, by_score, by_natural):
        """Add to the derivatives by natural coordinates what those by b of entry e are."""
        for j in range(self.others.shape[0]):
            by_natural[self.others[j]] -= self.by[e, j] * by_score

    @compiled(inline=False)
    def pull_single(self, y, room, by_natural, of_effects, slopes, out):
        """What the three below do, of blocks of one effect each."""
        root, mean, s, score, widths, factors = room
        begin, m = self.block_first[self.several], self.matrix_first[self.several]
        for e in range(begin, self.score.shape[0]):
            a, j, i = self.factor(factors, widths, e, e), self.coordinate[e], m + e - begin
            pull, inverse = by_natural[j], 1.0 / root[i]
            by_r = (a * pull + of_effects * s[e]) * inverse
            by_c = by_r * inverse
            by_matrix = 0.5 * (of_effects * inverse - s[e] * by_r - by_c * mean[e]) * inverse
            out[j] += by_r
            value = pull * s[e] + score[e] * by_c + 2.0 * self.information[i] * a * by_matrix
            self.pull_score(e, a * by_c, by_natural)
            slopes[self.which[e], self.column[e], self.column[e]] += value * widths[e]
            self.pull_length(e, value * a, y, out)

    @compiled
    def pull_length(self, e, along, y, out):
        """Add the derivatives by length scales of what has this by the logarithm of a width."""
        for j in range(self.length.shape[1]):
            r = self.length[e, j]
            if r >= 0:
                bend = self.eigenvalue[e, j] * math.exp(2.0 * min(y[r], LARGEST_LOG))
                out[r] += along * (0.5 * (self.dimension[e] - bend))

    @compiled
    def pull_block(self, begin, stop, m, room, a, last, by_natural, of_effects, by_r, by_c):
        """Derivatives by R s = x + R⁻¹Aᵀb, and by Aᵀb."""
        root, s = room.root, room.s
        n = stop - begin
        for p in range(n):
            value = 0.0
            for i in range(p, last[p]):
                value += a[i, p] * by_natural[self.coordinate[begin + i]]
            if self.which[begin + p] >= 0:
                value += of_effects * s[begin + p]
            for j in range(p):
                value -= root[m + p * n + j] * by_r[j]
            by_r[p] = value / root[m + p * n + p]
        for p in range(n - 1, -1, -1):
            value = by_r[p]
            for i in range(p + 1, n):
                value -= root[m + i * n + p] * by_c[i]
            by_c[p] = value / root[m + p * n + p]

    @compiled
    def pull_root(self, begin, stop, m, room, of_effects, by_r, by_c, by_root):
        """Derivatives by I + AᵀΛA, both triangles: R⁻ᵀ Φ(Rᵀ R̄) R⁻¹, made symmetric, Φ the lower triangle of half."""
        root, mean, s = room.root, room.mean, room.s
        n = stop - begin
        for p in range(n):  # R̄
            for q in range(p + 1):
                by_root[p, q] = -s[begin + p] * by_r[q] - by_c[p] * mean[begin + q]
            by_root[p, p] += of_effects / root[m + p * n + p]
        for p in range(n):  # Φ(Rᵀ R̄): row p of it needs rows p and below of R̄
            for q in range(p + 1):
                value = 0.0
                for i in range(p, n):
                    value += root[m + i * n + p] * by_root[i, q]
                by_root[p, q] = value if p > q else 0.5 * value
        for p in range(n):
            for q in range(p):
                by_root[p, q] *= 0.5
                by_root[q, p] = by_root[p, q]
        for q in range(n):  # R⁻ᵀ from the left
            for p in range(n - 1, -1, -1):
                value = by_root[p, q]
                for i in range(p + 1, n):
                    value -= root[m + i * n + p] * by_root[i, q]
                by_root[p, q] = value / root[m + p * n + p]
        for p in range(n):  # R⁻¹ from the right
            for q in range(n - 1, -1, -1):
                value = by_root[p, q]
                for i in range(q + 1, n):
                    value -= root[m + i * n + q] * by_root[p, i]
                by_root[p, q] = value / root[m + q * n + q]

    @compiled
    def pull_factors(self, begin, stop, room, a, across, last, by_matrix, by_c, y, by_natural, slopes, out):
        """Add the derivatives by A, by length scales and by b: of A s, of Aᵀb, and of AᵀΛA."""
        s, score, widths = room.s, room.score, room.widths
        n = stop - begin
        for p in range(n):
            k = self.which[begin + p]
            if k < 0:
                self.pull_score(begin + p, a[p, p] * by_c[p], by_natural)
                continue
            for i in range(p, last[p]):
                value = by_natural[self.coordinate[begin + i]] * s[begin + p] + score[begin + i] * by_c[p]
                self.pull_score(begin + i, a[i, p] * by_c[p], by_natural)
                for q in range(n):
                    value += 2.0 * across[i, q] * by_matrix[q, p]
                slopes[k, self.column[begin + i], self.column[begin + p]] += value * widths[begin + p]
                self.pull_length(begin + p, value * a[i, p], y, out)

    @compiled
    def pull_spreads(self, x, factors, slopes, by_natural, of_effects, out):
        """Add the derivatives by θ and w of what has these by A, and by t itself."""
        for k in range(self.width.shape[0]):
            place = self.partial_first[k]
            for i in range(self.width[k]):
                place_of_t = self.spread_first[k] + i
                t, along = self.spread[place_of_t], 0.0
                rest = math.exp(min(self.middle[place_of_t] + log_spread(x[t]), LARGEST_LOG))
                for j in range(i + 1):
                    along += slopes[k, i, j] * factors[k, i, j]
                out[t] += (along + by_natural[t]) * rise(x[t]) - of_effects * log_rise_derivative(x[t])
                for j in range(i):
                    along -= slopes[k, i, j] * factors[k, i, j]
                    w = x[self.partial[place]]
                    z, root = math.tanh(w), 1.0 / math.cosh(min(abs(w), LARGEST_LOG))
                    out[self.partial[place]] += slopes[k, i, j] * rest * root * root - z * along
                    rest *= root
                    place += 1

    # -- compiled: the rest of the prior ------------------------------------------------------------------------------

    @compiled
    def prior_at(self, x, y):
        return self.base.prior_potential(y)

    @compiled
    def add_prior_slopes(self, x, y, by_natural, out):
        self.base.add_prior_gradient(y, by_natural)

    # -- Python -----------------------------------------------------------------------------------------------------

    def _names(self, base):
        """Blocks of standard deviations, whose coordinates are θ."""
        ends = np.cumsum([math.prod(shape) for shape in base.variables.values()])
        blocks = np.searchsorted(ends, self.spread, "right")
        return {list(base.variables)[k] for k in blocks}

    def omitted(self) -> float:
        """See `Derived.omitted`: of coordinates that are no effects `natural` leaves out the Jacobian's scale."""
        return super().omitted() + float(np.log(self.scale[self.which < 0]).sum())

    def natural_draws(self, draws: ArrayLike) -> np.ndarray:
        """Draws of (β, t, w, u, …), (..., dim), from draws of x."""
        draws = real("draws", draws, self.dim)
        x = draws.reshape(-1, self.dim)
        size = max(AT_ONCE // len(self.information), 1)
        found = [self._moved(x[k : k + size]) for k in range(0, len(x), size)]
        return np.concatenate([np.zeros((0, self.dim)), *found]).reshape(draws.shape)

    def coordinates(self, natural: ArrayLike) -> np.ndarray:
        """x (..., dim) of (β, t, w, u, …): the inverse of `natural_draws`."""
        natural = real("natural", natural)
        y = natural.reshape(-1, self.dim)
        x = y.copy()
        x[:, self.spread] = np.vectorize(coordinate_of)(y[:, self.spread] - self.middle)
        for entries, a, root, mean in self._factored(y):
            s = np.linalg.solve(a, (x[:, self.coordinate[entries]] - self.centre[entries])[..., None])
            x[:, self.coordinate[entries]] = (np.swapaxes(root, -1, -2) @ s - mean)[..., 0]
        return x.reshape(natural.shape)

    def _moved(self, x):
        y = x.copy()
        y[:, self.spread] = self.middle + log_spreads(x[:, self.spread])
        for entries, a, root, mean in self._factored(y):
            s = np.linalg.solve(np.swapaxes(root, -1, -2), x[:, self.coordinate[entries]][..., None] + mean)
            y[:, self.coordinate[entries]] = self.centre[entries] + (a @ s)[..., 0]
        return y

    def centring(self) -> list[str]:
        return self._centring

    def as_effects(self) -> Model:
        return self.base.as_effects()

    def _factored(self, y):
        """Of the blocks of each size their entries (blocks, n), and A, R and R⁻¹Aᵀb at each y, as it then is.

        That with other coordinates, on which b depends, is the first.
        """
        sizes = np.diff(self.block_first)
        factors = [cholesky_factors(y[:, one.spreads], y[:, one.partials]) for one in self.sets]
        widths = np.ones(y.shape)
        for one in self.sets:
            widths[:, one.effects] = one.widths(y)[..., None]
        kinds = [np.flatnonzero(sizes == n) for n in np.unique(sizes)]
        if np.any(self.which[: sizes[0]] < 0):
            kinds = [np.zeros(1, np.int64), *(blocks[blocks > 0] for blocks in kinds if np.any(blocks > 0))]
        for blocks in kinds:
            n = int(sizes[blocks[0]])
            entries = self.block_first[blocks][:, None] + np.arange(n)  # (blocks, n)
            which, column = self.which[entries], self.column[entries]
            a = np.zeros((len(y), len(blocks), n, n))
            for p in range(n):
                for q in range(p + 1):
                    if p == q:
                        a[:, :, p, p] = np.where(which[:, p] < 0, self.scale[entries[:, p]], 0.0)
                    for k in np.unique(which[which[:, p] >= 0, p]):
                        same = np.flatnonzero((which[:, p] == k) & (p - column[:, p] <= q))
                        a[:, same, p, q] = factors[k][:, column[same, p], column[same, q]]
                        a[:, same, p, q] *= widths[:, self.coordinate[entries[same, q]]]
            matrix = self.information[self.matrix_first[blocks][:, None] + np.arange(n * n)].reshape(-1, n, n)
            across = np.swapaxes(a, -1, -2)
            root = np.linalg.cholesky(np.eye(n) + across @ matrix @ a)
            score = self.score[entries] - np.einsum("nj,bej->nbe", y[:, self.others], self.by[entries])
            mean = np.linalg.solve(root, across @ score[..., None])
            yield entries, a, root, mean


def _laid(arrays, kind):
    """Arrays one after the other, and where each begins, with the end of the last."""
    return (
        np.ascontiguousarray(np.concatenate([np.zeros(0), *arrays]), kind),
        np.cumsum([0, *map(len, arrays)]).astype(np.int64),
    )
