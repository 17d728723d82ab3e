r"""Groups of coordinates that enter and leave together, for spike-and-slab selection of whole terms.

The path of a Zig-Zag process hits {x_g = 0} with probability 0 where the group g has two coordinates or more, so that
such a group cannot stick as one coordinate does (`pdmp.processes.sticky`). It enters and leaves by reversible jumps:

=====  ================================================================================================
flow   that of the process within; coordinates of a group that is out stay at 0
clock  those of `Sticky`; and one that proposes a change of a random group, at the constant rate λ G
rate   λ G α(x, x'), the probability α of accepting the proposed change, 0 where it is rejected early
jump   birth: x_g is put at what was drawn, and goes on with the velocity that it had; death: x_g is
       put at 0, and v_g remembered
=====  ================================================================================================

With a prior that gives the density w s(x_g) with probability w, and x_g = 0 with 1 - w, s a product, the odds of x_g
being in are, per density at x_g, ω Πⱼ sⱼ(0) exp(U(x with 0) - U(x)), ω = w / (1 - w), or p(γ ∪ g) / p(γ) with a prior
on the models. The proposal q of x_g is the conditional law of an approximation exp(-Ũ), Ũ the expansion of U to second
order at an anchor:

    S = ∫ exp(Ũ(x with 0) - Ũ(x)) dx_g,     D = [U - Ũ](x with x_g) - [U - Ũ](x with 0),
    α = min(1, A) min(1, e^-D) of a birth and min(1, 1/A) min(1, e^D) of a death,     A = ω Πⱼ sⱼ(0) S,

so that α q balances: A e^-D is the odds over q (delayed acceptance [2]_). The first factor costs no data. Only where a
uniform number is below it does the second one look at all rows, twice; of a quadratic U it is 1. A reversible kernel at
a constant rate, beside a process that leaves the same law invariant, does so too [1]_; v_g, of one law whether the
group is in or out, is kept. On all other events positions are continuous; here they jump, so all clocks are drawn anew.

References
----------
.. [1] Chevallier, Fearnhead & Sutton (2023), Reversible jump PDMP samplers for variable selection, JASA 118. Green
   (1995), Reversible jump Markov chain Monte Carlo computation and Bayesian model determination, Biometrika 82.
.. [2] Christen & Fox (2005), Markov chain Monte Carlo using an approximation, J. Comput. Graph. Statist. 14, eq. 2.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.priors import BetaBernoulli, potential
from pdmp.native.arguments import coordinates, positive
from pdmp.native.classes import compiled
from pdmp.process import Process, count_data, positions
from pdmp.processes import sticky
from pdmp.processes.regression_boomerang import RowFactors
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.sticky import (
    FROZEN_SINCE,
    KEPT_VELOCITY,
    LISTED,
    TIME_FROZEN,
    Sticky,
    spikes_and_slab,
)
from pdmp.processes.zigzag import ZigZag
from pdmp.thinning.affine import Affine, Inversion

SMALLEST_CURVATURE = 1e-8  #: eigenvalues of a group's curvature are at least this share of the largest one


#: That of `Sticky`, and of the groups: that of the proposal (1,); its coordinates, and the mean of q, (largest group,)
#: each; and two positions (d,).
Memory = namedtuple("Memory", (*sticky.Memory._fields, "chosen", "drawn", "centre", "here", "there"))


class StickyGroups(Sticky):
    """A sticky Zig-Zag process of which groups of coordinates are 0 together, for a part of the time.

    Parameters
    ----------
    inner : ZigZag or RegressionZigZag
        Without a metric, and with rates that need nothing but the present position: exact inversion, affine bounds, or
        bounds on single rows.
    groups : sequence of sequences of int
        Coordinates that enter and leave together; each in one group at most. A group of one need not wait until its
        path crosses 0, as a coordinate that sticks, which is rare where data say much of each coefficient.
    inclusion, always, slab_density
        As in `Sticky`; the prior inclusion probability of a group is that of all its coordinates. Of a
        `BetaBernoulli` law a group counts as one. Coordinates in no group stick one by one.
    rate : float, default 1.0
        λ, at which changes of each group are proposed. One that is not rejected early evaluates the potential twice.
    anchor : array_like, shape (d,), optional
        Where the potential is expanded; that of `inner`, or the mode, when omitted.

    Raises
    ------
    TypeError
        For another process within.
    ValueError
        For groups that overlap or have several probabilities, or if the mode is not found; and as `Sticky`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.processes.sticky_groups import StickyGroups
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> model = pdmp.models.LinearGaussian(X, X @ [1.0, 0.0, 0.0, 0.0], noise_scale=1.0)
    >>> process = StickyGroups(pdmp.ZigZag(model), [[0, 1], [2, 3]], inclusion=0.2)
    >>> run = pdmp.sample(process, time=500.0, seed=1)
    >>> bool(pdmp.diagnostics.inclusion(run)[1] > 0.9 > 0.5 > pdmp.diagnostics.inclusion(run)[2])
    True
    """

    model: object
    grouped: np.ndarray  #: (K,) coordinates of the groups, one group after the other
    begin_group: np.ndarray  #: (G + 1,) where those of each group begin
    unit_of_group: np.ndarray  #: (G,) place among the units, those that stick first
    log_odds: np.ndarray  #: (G,) log ω Πⱼ sⱼ(0), of a prior on the models without ω
    constant: np.ndarray  #: (K,) mean of q at the anchor of all others
    slopes: np.ndarray  #: (K, d) what it loses for each unit of another coordinate's distance from the anchor
    root: np.ndarray  #: (K, k) its covariance is C Cᵀ
    precision: np.ndarray  #: (K, k) and the inverse of that
    log_volume: np.ndarray  #: (G,) log of the integral of exp(-δᵀPδ/2)
    expanded_at: np.ndarray  #: (d,)
    total_rate: float
    is_quadratic: bool  #: whether U is its own expansion, so that D = 0
    data_pull: np.ndarray  #: (K,) where the data's part is, but for e^{-2a}, a the last coordinate: gradient there
    data_rows: np.ndarray  #: (K, d) and rows of the Hessian, 0 in the column of a
    prior_kinds: np.ndarray  #: (K,) and priors
    prior_numbers: np.ndarray  #: (K, 3)

    has_groups = True

    def __init__(
        self,
        inner: Process,
        groups: Sequence[Sequence[int]],
        inclusion: ArrayLike | BetaBernoulli | None = None,
        always: ArrayLike = (),
        slab_density: ArrayLike | None = None,
        rate: float = 1.0,
        anchor: ArrayLike | None = None,
    ) -> None:
        _check_inner(inner)
        d, name = inner.dim, type(self).__name__
        parts = [coordinates("groups", g, d) for g in groups]
        self.grouped = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
        if not parts or min(map(len, parts)) == 0 or len(np.unique(self.grouped)) < len(self.grouped):
            raise ValueError("`groups` must be one or more sets of coordinates without one in common, none empty.")
        always = coordinates("always", always, d)
        if np.intersect1d(always, self.grouped).size:
            raise ValueError("`always` names a coordinate that is in one of the `groups`.")
        sizes = np.array([len(g) for g in parts])
        larger = self.grouped[np.repeat(sizes > 1, sizes)]
        super().__init__(inner, inclusion, np.union1d(always, larger), slab_density, None)
        self.model = inner.model
        probabilities, density = spikes_and_slab(inner.model, d, inclusion, slab_density, name)
        self.begin_group = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.log_odds = np.zeros(len(parts))
        for k, g in enumerate(parts):
            w = probabilities[g]
            if np.any(w != w[0]) or np.any(density[g] == 0.0):
                raise ValueError(
                    f"the coordinates {g.tolist()} of a group need one `inclusion` below 1, got {w.tolist()}."
                )
            odds = 0.0 if self.shape > 0.0 else math.log(w[0] / (1.0 - w[0]))
            self.log_odds[k] = odds + np.log(density[g]).sum()
        self.total_rate = positive("rate", rate) * len(parts)

        single = len(self.sticking)
        self.unit_of_group = single + np.cumsum(sizes > 1) - 1
        self.unit_of_group[sizes == 1] = np.searchsorted(self.sticking, [g[0] for g in parts if len(g) == 1])
        self.members = np.concatenate([self.sticking, larger])
        of_larger = np.repeat(self.unit_of_group[sizes > 1], sizes[sizes > 1])
        self.unit = np.concatenate([np.arange(single), of_larger])
        self.units = single + int(np.sum(sizes > 1))
        self._expand(inner, anchor)

        self.birth, self.death = len(self.events), len(self.events) + 1
        self.events = (*self.events, "birth", "death")
        # One more clock: an event of it redraws all clocks, and so does the start of a run.
        last, n = self.start[-1], self.clocks
        every = np.concatenate([[n], self.order[last:]])
        self.order = np.concatenate([self.order[:last], every, every])
        self.start = np.append(self.start, last + len(every))
        self.clocks = n + 1
        if self.local:
            shift = len(self.scope)
            self.first_in_scope = shift
            self.scope = np.concatenate([self.scope, self.grouped])
            self.scope_start = np.append(self.scope_start, self.scope_start[-1] + sizes.max())

    birth: int  #: kinds of event
    death: int
    first_in_scope: int  #: place of the groups' coordinates in `scope`

    def _expand(self, inner, anchor):
        """The conditional laws of each group under the expansion at the anchor."""
        anchor = inner.anchor if anchor is None else anchor
        anchor = self.model.mode() if anchor is None else self.model.check(anchor, "anchor")
        if anchor is None:
            raise ValueError("`anchor` must be given: the posterior's mode was not found.")
        d, sizes = inner.dim, np.diff(self.begin_group)
        self.first_in_scope, self.expanded_at = 0, np.array(anchor, dtype=float)
        found = _known_rows(inner, self.grouped) if np.array_equal(self.expanded_at, inner.anchor) else None
        self.data_pull, self.data_rows = np.zeros(0), np.zeros((0, 0))
        self.prior_kinds, self.prior_numbers = np.zeros(0, np.int64), np.zeros((0, 3))
        if found is None:
            gradient = self.model.gradient(self.expanded_at)[self.grouped]
            hessian = _hessian_rows(self.model, self.expanded_at, self.grouped)
        else:
            gradient, hessian = found[0].copy(), found[1].copy()
            slopes, bends, _ = self.model.prior_derivatives(self.grouped, self.expanded_at[self.grouped])
            gradient += slopes
            hessian[np.arange(len(self.grouped)), self.grouped] += bends
            law = getattr(self.model, "likelihood", None)
            if law is not None and law.is_quadratic:
                self.data_pull, self.data_rows = found
                self.data_rows[:, -1] = 0.0
                self.prior_kinds, self.prior_numbers = self.model.kinds[self.grouped], self.model.numbers[self.grouped]
        self.constant, self.slopes = np.zeros(len(self.grouped)), np.zeros((len(self.grouped), d))
        self.root, self.precision = np.zeros((2, len(self.grouped), sizes.max()))
        self.log_volume, self.is_quadratic = np.zeros(len(sizes)), self.model.has("affine_partial")
        for k, size in enumerate(sizes):
            rows = slice(self.begin_group[k], self.begin_group[k + 1])
            g = self.grouped[rows]
            block = 0.5 * (hessian[rows][:, g] + hessian[rows][:, g].T)
            values, vectors = np.linalg.eigh(block)
            self.is_quadratic &= bool(values.min() > SMALLEST_CURVATURE * values.max())
            values = np.maximum(np.abs(values), max(SMALLEST_CURVATURE * np.abs(values).max(), 1e-300))
            precision, covariance = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
            across = hessian[rows].copy()
            across[:, g] = 0.0
            self.constant[rows] = self.expanded_at[g] - covariance @ gradient[rows]
            self.slopes[rows] = covariance @ across
            self.root[rows, :size] = np.linalg.cholesky(covariance)
            self.precision[rows, :size] = precision
            self.log_volume[k] = 0.5 * size * math.log(math.tau) - 0.5 * np.log(values).sum()

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == self.clocks - 1:
            return now + rng.standard_exponential() / self.total_rate, self.total_rate
        return self.clock_of_one(state, i, now, rng)

    @compiled
    def rate(self, state, i, now, rng):
        if i < self.clocks - 1:
            return self.inner.rate(self.inside(state), i, now, rng)
        memory = state.memory
        g = min(int(rng.random() * self.log_odds.shape[0]), self.log_odds.shape[0] - 1)
        memory.chosen[0] = g
        positions(self.flow, state, now, memory.here)
        log_a, birth = self.approximate_odds(state, g), not self.is_in(state, g)
        sign = 1.0 if birth else -1.0
        if rng.random() >= math.exp(min(sign * log_a, 0.0)):
            return 0.0
        self.propose_group(state, g, birth, rng)
        if self.is_quadratic:
            return self.total_rate
        if self.data_pull.shape[0] == 0:
            count_data(state.counts, 2 * self.model.n_data)
        return self.total_rate * math.exp(min(-sign * self.excess(state, g), 0.0))

    @compiled
    def is_in(self, state, g):
        """Whether a group is in."""
        return not self.frozen(state, self.grouped[self.begin_group[g]])

    @compiled(inline=False)
    def approximate_odds(self, state, g):
        """log A, at the position in the memory; the mean of q is written there."""
        memory, begin = state.memory, self.begin_group[g]
        size = self.begin_group[g + 1] - begin
        for q in range(size):
            total = self.constant[begin + q]
            for j in range(memory.here.shape[0]):
                total -= self.slopes[begin + q, j] * (memory.here[j] - self.expanded_at[j])
            memory.centre[q] = total
        log_a = self.log_odds[g] + self.log_volume[g]
        for q in range(size):
            for r in range(size):
                log_a += 0.5 * memory.centre[q] * self.precision[begin + q, r] * memory.centre[r]
        if self.shape > 0.0:
            k = memory.included[0] - (1 if self.is_in(state, g) else 0)
            log_a += math.log((self.shape + k) / (self.other_shape + self.units - 1 - k))
        return log_a

    @compiled(inline=False)
    def propose_group(self, state, g, birth, rng):
        """What the group has if it is in: drawn from q, or where it is."""
        memory, begin = state.memory, self.begin_group[g]
        size = self.begin_group[g + 1] - begin
        if not birth:
            for q in range(size):
                memory.drawn[q] = memory.here[self.grouped[begin + q]]
            return
        for q in range(size):
            memory.drawn[q] = memory.centre[q]
        for r in range(size):
            z = rng.standard_normal()
            for q in range(r, size):
                memory.drawn[q] += self.root[begin + q, r] * z

    @compiled(inline=False)
    def excess(self, state, g):
        """D: by how much the potential rises more than its expansion, from 0 to what was proposed."""
        memory, begin = state.memory, self.begin_group[g]
        size = self.begin_group[g + 1] - begin
        rise = 0.0
        for q in range(size):
            for r in range(size):
                p = self.precision[begin + q, r]
                rise += (
                    0.5
                    * p
                    * (
                        (memory.drawn[q] - memory.centre[q]) * (memory.drawn[r] - memory.centre[r])
                        - memory.centre[q] * memory.centre[r]
                    )
                )
        return self.rise(memory, g) - rise

    @compiled(inline=False)
    def rise(self, memory, g):
        """By how much the potential rises."""
        begin, end = self.begin_group[g], self.begin_group[g + 1]
        if self.data_pull.shape[0] > 0:
            return self.rise_of_squares(memory, begin, end)
        for k in range(begin, end):
            memory.here[self.grouped[k]] = 0.0
        for j in range(memory.here.shape[0]):
            memory.there[j] = memory.here[j]
        for k in range(begin, end):
            memory.there[self.grouped[k]] = memory.drawn[k - begin]
        return self.model.total_rise(memory.here, memory.there)

    @compiled(inline=False)
    def rise_of_squares(self, memory, begin, end):
        """The same of a normal law: the data's expansion, which is exact but for the noise's precision, and priors."""
        here, drawn, n, data, total = memory.here, memory.drawn, self.prior_numbers, 0.0, 0.0
        last = here.shape[0] - 1  # log of the noise's scale
        for k in range(begin, end):
            here[self.grouped[k]] = 0.0
        for k in range(begin, end):
            step = drawn[k - begin]
            level = self.data_pull[k]
            for q in range(here.shape[0]):
                level += self.data_rows[k, q] * (here[q] - self.expanded_at[q])
            for q in range(begin, end):
                level += 0.5 * self.data_rows[k, self.grouped[q]] * drawn[q - begin]
            data += step * level
            kind = self.prior_kinds[k]
            total += potential(kind, n[k, 0], n[k, 1], n[k, 2], step) - potential(kind, n[k, 0], n[k, 1], n[k, 2], 0.0)
        return total + data * math.exp(2.0 * (self.expanded_at[last] - here[last]))

    @compiled
    def span(self, state, k):
        if k + self.first < self.clocks - 1:
            k = state.memory.next[0] if self.one_clock else k
            return k, k + 1
        g = state.memory.chosen[0]
        return self.first_in_scope + self.begin_group[g], self.first_in_scope + self.begin_group[g + 1]

    @compiled
    def jump(self, state, i, now, rng):
        if i < self.clocks - 1:
            return self.jump_of_one(state, i, now, rng)
        memory, g = state.memory, state.memory.chosen[0]
        if memory.model[0] >= 0:
            memory.occupied[memory.model[0]] += now - memory.changed[0]
            memory.changed[0] = now
            memory.model[0] ^= 1 << self.unit_of_group[g]
        birth = not self.is_in(state, g)
        begin = self.begin_group[g]
        for q in range(begin, self.begin_group[g + 1]):
            j, row = self.grouped[q], memory.coordinates
            if birth:
                state.x[j], state.v[j] = memory.drawn[q - begin], row[j, KEPT_VELOCITY]
                row[j, TIME_FROZEN] += now - row[j, FROZEN_SINCE]
            else:
                row[j, KEPT_VELOCITY], row[j, FROZEN_SINCE] = state.v[j], now
                state.x[j], state.v[j] = 0.0, 0.0
        memory.included[0] += 1 if birth else -1
        return self.birth if birth else self.death

    # -- Python -----------------------------------------------------------------------------------------------------

    def _moving(self, x):
        """Whether each group starts in: where one of its coordinates is not 0."""
        return np.array(
            [
                np.any(x[self.grouped[a:b]] != 0.0)
                for a, b in zip(self.begin_group[:-1], self.begin_group[1:], strict=True)
            ]
        ).astype(np.int64)

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = super().velocity(x, rng)
        v[self.grouped[np.repeat(self._moving(x), np.diff(self.begin_group)) == 0]] = 0.0
        return v

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        single, moving = super().memory(x, rng), self._moving(x)
        bits = np.concatenate([x[self.sticking] != 0.0, moving[np.diff(self.begin_group) > 1]]).astype(np.int64)
        listed = self.units <= LISTED
        single = single._replace(
            included=np.array([bits.sum()]),
            model=np.array([bits @ (1 << np.arange(self.units)) if listed else -1], dtype=np.int64),
            occupied=np.zeros(2**self.units if listed else 0),
        )
        largest, chosen = self.root.shape[1], np.zeros(1, np.int64)
        rooms = [np.zeros(n) for n in (largest, largest, self.dim, self.dim)]
        return Memory(*single, chosen, *rooms)  # type: ignore[call-arg]  # its fields are those of another and these


def _check_inner(inner):
    """Only processes whose rates are functions of where the path is: it jumps."""
    batches = isinstance(inner, ZigZag) and not inner.model.n_data == 0 and not inner.provider.exact
    fine = (
        isinstance(inner, ZigZag)
        and inner.metric is None
        and (batches or isinstance(inner.thinning, (Affine, Inversion)))
    )
    if not (fine or isinstance(inner, (RegressionZigZag, RowFactors))):
        raise TypeError(
            "groups of coordinates need a RegressionZigZag, a RegressionBPS, a RegressionBoomerang, or a ZigZag "
            f"without a metric and with batches, inversion or affine bounds; got {type(inner).__name__}."
        )


def _known_rows(inner, rows):
    """Of the data at the anchor of a process: gradient (K,) and rows of the Hessian (K, d); None where it has none."""
    if isinstance(inner, RowFactors):
        return inner.pull[rows].copy(), inner.hessian[rows].copy()
    if not isinstance(inner, RegressionZigZag) or np.intersect1d(rows, inner.means).size:
        return None  # the prior of effects has parts in their means
    hessian, places = np.zeros((len(rows), inner.dim)), np.searchsorted(inner.shared, rows)
    hessian[:, inner.shared] = inner.inner[places]
    effects = slice(inner.first_effect, inner.first_effect + len(inner.border))
    hessian[:, effects] = inner.border[:, places].T
    return inner.pull[rows].copy(), hessian


def _hessian_rows(model, x, rows):
    """Rows of the Hessian of U at x, (len(rows), d): the model's own, or by central differences of the gradient."""
    if type(model).hessian is not Model.hessian:
        return np.asarray(model.hessian(x))[rows]
    step, found = 1e-5 * np.maximum(1.0, np.abs(x)), np.zeros((len(rows), model.dim))
    for k, j in enumerate(rows):
        e = np.zeros(model.dim)
        e[j] = step[j]
        found[k] = (model.gradient(x + e) - model.gradient(x - e)) / (2.0 * step[j])
    return found
