r"""Sticky coordinates, for spike-and-slab selection: a process of which coordinates freeze at 0 for a while.

=====  ================================================================================================
flow   that of the process within; a frozen coordinate stays at 0
clock  those of the process within; and for each coordinate i that sticks: while it moves, when its
       path reaches 0, certain; while it is frozen, a Poisson clock of the constant rate κᵢ|vᵢ|
rate   of the process within, with the velocity of frozen coordinates taken as 0
jump   freeze: xᵢ is put at 0, and vᵢ remembered; thaw: it goes on with the velocity that it had
=====  ================================================================================================

With a prior that gives coordinate i the density wᵢ sᵢ(xᵢ) with the probability wᵢ, and xᵢ = 0 with 1 - wᵢ, the
posterior has against the slab posterior exp(-U(x)) dx the mass (1 - wᵢ) / (wᵢ sᵢ(0)) on xᵢ = 0 for dxᵢ. Through 0 flows
|vᵢ| for a density of 1, out of the frozen state κᵢ|vᵢ| for a mass of 1, so the rate must be κᵢ = wᵢ sᵢ(0) / (1 - wᵢ).
With a prior on the models, which are sets γ of coordinates, it is sᵢ(0) p(γ ∪ i) / p(γ): for `BetaBernoulli`, of m
coordinates that stick, sᵢ(0) (a + |γ|) / (b + m - 1 - |γ|).

References
----------
Bierkens, Grazzi, van der Meulen & Schauer (2023), Sticky PDMP samplers for sparse and local inference problems, Stat.
Comput. 33.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.interfaces.recipe import Recipe
from pdmp.models.priors import BetaBernoulli
from pdmp.native.arguments import coordinates
from pdmp.native.classes import compiled
from pdmp.process import CERTAIN, Process, last_moved
from pdmp.processes.extended import Extended, InnerReport, check_process

#: Columns of `Memory.coordinates`: the velocity with which a frozen coordinate goes on when it thaws; the time at which
#: it froze; and for how long it had been frozen before. They are columns of one array, so that an event of one
#: coordinate touches one place of the memory.
KEPT_VELOCITY, FROZEN_SINCE, TIME_FROZEN = range(3)
#: With at most so many sticking coordinates, m, the time in each of the 2^m models is accumulated.
LISTED = 10


class Memory(NamedTuple):
    """Beside the path."""

    coordinates: np.ndarray  #: (d, 3), its columns as above
    next: np.ndarray  #: (1,) which coordinate freezes or thaws next, when one clock serves them all
    included: np.ndarray  #: (1,) how many of those that stick move
    model: np.ndarray  #: (1,) the present model, bit k for the k-th coordinate that sticks; -1 where they are too many
    changed: np.ndarray  #: (1,) the time at which the present model was entered
    occupied: np.ndarray  #: (2^m,) the time spent in each model before that
    inner: tuple


class StickyReport(InnerReport):
    """Also the times for which coordinates moved."""

    def accumulated(self, process, state, since, end):
        """Time for which each coordinate moved, ``included`` (d,), and for few coordinates that in each model.

        ``models`` (2^m,): bit k of the place stands for the coordinates ``sticking[unit == k]``, set while they move.
        """
        memory, length = state.memory, end - since
        frozen = (state.x == 0.0) & (state.v == 0.0)
        spent = memory.coordinates[:, TIME_FROZEN] + np.where(frozen, end - memory.coordinates[:, FROZEN_SINCE], 0.0)
        models = memory.occupied.copy()
        if len(models):
            models[memory.model[0]] += end - memory.changed[0]
        return {"included": length - spent, "models": models, "sticking": process.members, "unit": process.unit}

    def count_from(self, process, state, now):
        memory = state.memory
        memory.coordinates[:, TIME_FROZEN] = 0.0
        memory.coordinates[:, FROZEN_SINCE] = now  # of what is frozen: none has been since later
        memory.occupied[:] = 0.0
        memory.changed[:] = now


class Sticky(Extended):
    """A sticky process of a spike-and-slab posterior: coordinates are exactly 0 for a part of the time.

    The likelihood is that of the model, whose prior is the slab. Coordinate i is 0 under the prior with the probability
    1 - inclusionᵢ. ``pdmp.diagnostics.inclusion(run)`` gives the posterior inclusion probabilities: the fractions of
    time in which coordinates move. With a local process the cost of an event does not depend on the dimension.

    Parameters
    ----------
    process : Process
        What moves between 0 and 0, of the model with the slab as its prior, a product over the coordinates that stick:
        `ZigZag`, with exact gradients or batches; `BPS` with ``velocities="gaussian"``; `Boomerang` with a diagonal
        covariance; or a sub-sampled process of a regression.
    inclusion : float, array_like of shape (d,) or pdmp.models.priors.BetaBernoulli, optional
        Prior probability that a coordinate is not 0, above 0 and below 1. By default it is that of the model, or 0.5 if
        the model has no spikes.
    always : sequence of int, or mask of shape (d,)
        Coordinates that never stick, an intercept for example.
    slab_density : float or array_like, shape (d,), optional
        Density of the slab at 0, for models that do not say it (``model.slab_density()``).
    kappa : float or array_like, shape (d,), optional
        In place of `inclusion` and `slab_density`: rates at which coordinates of unit speed leave 0, inclusion / (1 -
        inclusion) * slab_density.

    Raises
    ------
    TypeError
        For a process whose coordinates cannot be frozen one by one, or not with its options.
    ValueError
        For probabilities, rates or densities out of range, a model whose slab density is not known, or nothing that
        sticks.

    See Also
    --------
    pdmp.ZigZag : The usual argument `process`.
    pdmp.diagnostics.inclusion : Inclusion probabilities with errors.

    Notes
    -----
    A run that starts with coordinates at exactly 0 has these frozen.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = pdmp.models.LinearGaussian(X, X @ [1.0, 0.0, 0.0], noise_scale=1.0)
    >>> run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model), inclusion=0.2), time=1_000.0, seed=1)
    >>> bool(pdmp.diagnostics.inclusion(run)[0] > 0.9 > 0.5 > pdmp.diagnostics.inclusion(run)[1])
    True
    """

    kappa: np.ndarray  #: (d,) thawing rates at unit speed; 0 for coordinates that never stick
    sticking: np.ndarray  #: (m,) those that do
    freeze: int  #: kinds of event
    thaw: int
    shape: float  #: a of a beta-Bernoulli prior; 0 for probabilities that are known
    other_shape: float  #: b
    units: int  #: how many coordinates, or groups of them, may be 0 by themselves

    recipe = Recipe(featured=False)
    report = StickyReport()
    rests = True  # frozen coordinates
    has_groups = False  # of coordinates that leave together

    def __init__(
        self,
        process: Process,
        inclusion: ArrayLike | BetaBernoulli | None = None,
        always: ArrayLike = (),
        slab_density: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
    ) -> None:
        check_process(process)
        inner = process.among_moving()
        model, d = inner.model, inner.dim
        self.kappa = thawing_rates(model, d, inclusion, slab_density, kappa, type(self).__name__)
        self.kappa[coordinates("always", always, d)] = 0.0
        self.sticking = np.flatnonzero(self.kappa)
        self.members, self.unit, self.units = self.sticking, np.arange(len(self.sticking)), len(self.sticking)
        if self.units == 0 and not self.has_groups:
            raise ValueError("`always` names every coordinate: none is left that sticks.")
        law = inclusion if isinstance(inclusion, BetaBernoulli) else None
        self.shape, self.other_shape = (law.a, law.b) if law else (0.0, 0.0)
        # The rates of all frozen coordinates depend on how many move.
        super().__init__(inner, (np.arange(len(self.sticking) + 1), self.sticking), final=law is not None)
        self.prepared = inner.prepared
        self.freeze = len(inner.events)
        self.thaw = self.freeze + 1
        self.events = (*inner.events, "freeze", "thaw")

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        return self.clock_of_one(state, i, now, rng)

    @compiled
    def jump(self, state, i, now, rng):
        return self.jump_of_one(state, i, now, rng)

    @compiled
    def clock_of_one(self, state, i, now, rng):
        if i < self.first:
            return self.inner.clock(self.inside(state), i, now, rng)
        if not self.one_clock:
            j = self.sticking[i - self.first]
            if self.frozen(state, j):
                return now + rng.standard_exponential() / self.thawing(state, j), CERTAIN
            return self.reaches_zero(state, j, now), CERTAIN
        time, total = math.inf, 0.0
        for k in range(self.sticking.shape[0]):
            j = self.sticking[k]
            if self.frozen(state, j):
                total += self.thawing(state, j)
            else:
                hit = self.reaches_zero(state, j, now)
                if hit < time:
                    time, state.memory.next[0] = hit, k
        if total > 0.0:
            thaw = now + rng.standard_exponential() / total
            rest = rng.random() * total
            if thaw < time:
                time = thaw
                for k in range(self.sticking.shape[0]):
                    j = self.sticking[k]
                    if self.frozen(state, j):
                        state.memory.next[0] = k
                        rest -= self.thawing(state, j)
                        if rest < 0.0:
                            break
        return time, CERTAIN

    @compiled
    def frozen(self, state, j):
        return state.x[j] == 0.0 and state.v[j] == 0.0

    @compiled
    def thawing(self, state, j):
        """Rate at which the frozen coordinate j thaws."""
        rate = self.kappa[j] * abs(state.memory.coordinates[j, KEPT_VELOCITY])
        if self.shape > 0.0:
            k = state.memory.included[0]
            rate *= (self.shape + k) / (self.other_shape + self.units - 1 - k)
        return rate

    @compiled
    def reaches_zero(self, state, j, now):
        """When the moving coordinate j is at 0 next; one that has just thawed leaves first."""
        x, v, centre = state.x[j], state.v[j], self.flow.around(j)
        moved = last_moved(state.moved, j)
        side = 1.0 if x < 0.0 or (x == 0.0 and v < 0.0) else -1.0
        return max(moved + self.flow.first_passage(side * (x - centre), side * v, -side * centre), now)

    @compiled
    def span(self, state, k):
        k = state.memory.next[0] if self.one_clock else k
        return k, k + 1

    @compiled
    def jump_of_one(self, state, i, now, rng):
        if i < self.first:
            return self.inner.jump(self.inside(state), i, now, rng)
        memory = state.memory
        k = memory.next[0] if self.one_clock else i - self.first
        j = self.sticking[k]
        row = memory.coordinates
        if memory.model[0] >= 0:
            memory.occupied[memory.model[0]] += now - memory.changed[0]
            memory.changed[0] = now
            memory.model[0] ^= 1 << k
        if self.frozen(state, j):
            state.v[j] = row[j, KEPT_VELOCITY]
            row[j, TIME_FROZEN] += now - row[j, FROZEN_SINCE]
            memory.included[0] += 1
            return self.thaw
        row[j, KEPT_VELOCITY], row[j, FROZEN_SINCE] = state.v[j], now
        state.x[j], state.v[j] = 0.0, 0.0
        memory.included[0] -= 1
        return self.freeze

    # -- Python -----------------------------------------------------------------------------------------------------

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = np.array(self.inner.velocity(x, rng), dtype=float)
        v[self.sticking[x[self.sticking] == 0.0]] = 0.0
        return v

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        coordinates = np.zeros((self.dim, 3))
        coordinates[:, KEPT_VELOCITY] = self.inner.velocity(x, rng)
        m = len(self.sticking)
        listed = m <= LISTED
        moving = x[self.sticking] != 0.0
        return Memory(
            coordinates=coordinates,
            next=np.zeros(1, np.int64),
            included=np.array([moving.sum()], dtype=np.int64),
            model=np.array([moving @ (1 << np.arange(m)) if listed else -1], dtype=np.int64),
            changed=np.zeros(1),
            occupied=np.zeros(2**m if listed else 0),
            inner=self.inner.memory(x, rng),
        )


def thawing_rates(model, d, inclusion, slab_density, kappa, name):
    """κ (d,) from the prior's inclusion probabilities and slab, or as given."""
    if kappa is not None:
        if inclusion is not None or slab_density is not None:
            raise ValueError("give `kappa`, or `inclusion` and the slab, not both.")
        return _vector("kappa", kappa, d, 0.0, math.inf, "> 0 and finite")
    inclusion, slab_density = spikes_and_slab(model, d, inclusion, slab_density, name)
    return inclusion / (1.0 - inclusion) * slab_density


def spikes_and_slab(model, d, inclusion, slab_density, name):
    """Prior inclusion probabilities, (d,), and densities of the slab at 0, (d,): 0 for what never sticks."""
    certain = np.zeros(d, bool)
    counts = isinstance(inclusion, BetaBernoulli)  # then the ratio comes with the number of coordinates that move
    if (inclusion is None or counts) and model is not None and model.prior_inclusion() is not None:
        inclusion = model.prior_inclusion()
        certain = inclusion == 1.0
        inclusion[certain] = 0.5  # of any value: these never stick
    if counts:
        inclusion = 0.5
    inclusion = _vector(
        "inclusion", 0.5 if inclusion is None else inclusion, d, 0.0, 1.0, "between 0 and 1; `always` is for certainty"
    )
    if slab_density is None:
        slab_density = model.slab_density()
        if slab_density is None:
            raise ValueError(
                f"pdmp.{name} needs the density of the slab at 0, which {type(model).__name__} does not say: give "
                "`slab_density=`, a number or one for each coordinate."
            )
        slab_density = np.where(certain, 1.0, slab_density)  # the prior of what never sticks may be flat
    slab_density = _vector("slab_density", slab_density, d, 0.0, math.inf, "> 0 and finite")
    slab_density[certain] = 0.0
    return inclusion, slab_density


def _vector(name, value, d, low, high, what):
    """A number or d of them, all between `low` and `high`, as an array (d,)."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must hold numbers, got {value!r}.") from None
    if array.shape not in ((), (d,)):
        raise ValueError(f"`{name}` must be a number or have shape ({d},), got {array.shape}.")
    wrong = ~((array > low) & (array < high))
    if np.any(wrong):
        raise ValueError(f"`{name}` must be {what}, got {array[wrong].flat[0]:.6g}.")
    return np.array(np.broadcast_to(array, (d,)))
