r"""Non-reversible parallel tempering: a ladder of replicas, short Hamiltonian paths, and swaps of neighbours.

=====  ======================================================================================================
flow   none: the state, that of the replica at the target, is held until the next scan
clock  ticks; every state is held for the same time
rate   none: every tick is an event
jump   one scan, of the replicas x₀ … x_{N-1} at 0 = β₀ < … < β_{N-1} = 1 with the potentials
       U_β = U₀ + βW,  W = U - U₀,  and a normalised reference exp(-U₀):
       1. explore: x₀ is drawn from the reference; each other one takes a Hamiltonian path, of 1, 2, 4 … steps;
       2. swap: at even scans the pairs (0, 1), (2, 3), …, at odd ones (1, 2), (3, 4), …, each with probability
              α = min(1, exp((βᵢ₊₁ - βᵢ)(W(xᵢ₊₁) - W(xᵢ)))).
=====  ======================================================================================================

Even and odd pairs take turns. So a replica that is swapped goes on in its direction, and is at the other end after a
number of scans of the order of N, not of N² as where pairs are chosen at random. A *restart* is a replica that comes to
the target and has been at the reference since it was there last: an independent beginning. A *round trip* ends at the
reference again.

The path of a rung, in coordinates in which its mass is the identity, has steps of ε times a random factor: where the
density is much narrower than on average, the small ones are accepted.

References
----------
Syed, Bouchard-Côté, Deligiannidis & Doucet (2022), Non-reversible parallel tempering: a scalable highly parallel MCMC
scheme, JRSS B 84: the scheme is algorithm 1, α equation (3), W and rejections equation (22); Okabe, Kawata, Okamoto &
Mikami (2001) for even and odd swaps. Neal (2011), MCMC using Hamiltonian dynamics.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pdmp.automatic.tempering.answers import TemperedReport
from pdmp.automatic.tempering.references import Mixture, MixtureMemory
from pdmp.flow import Still
from pdmp.gradients import as_provider
from pdmp.interfaces.recipe import Recipe
from pdmp.models.base import Model
from pdmp.native.classes import ByAddress, compiled, inlined
from pdmp.native.records import Count, Flag, Vector, zeros
from pdmp.native.velocities import dot, finite
from pdmp.process import ADAPTING, CERTAIN, DATA, Process, State

#: Steps of a path, at most: of a target that the reference fits, and of another one. One path in two has one step, one
#: in four has two, one in eight has four …
SHORT, LONG = 4, 64
ACCEPTANCE = 0.8  #: mean probability of acceptance at which the steps of a rung aim
SPREAD = 2.5  #: steps are ε e^(-SPREAD u²), u uniform on (0, 1): one in four is below a quarter of ε
LARGEST_ENERGY = 1_000.0  #: kinetic energy, above d / 2, from which a path has diverged
ROWS = 4_096  #: scans of which W is kept; of a longer run every second one, then every fourth …


class Trace(NamedTuple):
    """What is kept of scans: of every one, and when the rows are used up of every second, fourth …"""

    works: np.ndarray  #: (rows, N) W at each rung, before the swaps
    potentials: np.ndarray  #: (rows,) U at the target
    used: Count  #: rows so far
    spacing: np.ndarray  #: (1,) scans from one to the next
    since: Count  #: scans since the last one
    lowest: np.ndarray  #: (1,) the least W at the target, of all scans
    place: Vector  #: where that was


class TemperedMemory(NamedTuple):
    """What a chain keeps beside its state; of replica r or of rung i."""

    at: np.ndarray  #: (N,) the replica at each rung
    positions: np.ndarray  #: (N, d) of replica r
    gradients: np.ndarray  #: (N, d) ∇U there
    slopes: np.ndarray  #: (N, d) ∇U₀ there
    potentials: np.ndarray  #: (N,) U there
    heights: np.ndarray  #: (N,) U₀ there
    known: Flag  #: whether all these have been evaluated
    came: np.ndarray  #: (N,) where replica r has been last: 1 at the reference, -1 at the target, 0 at neither yet
    x: Vector  #: the proposal
    gradient: Vector
    slope: Vector
    u: Vector  #: momentum, in coordinates in which the mass is the identity
    force: Vector  #: ∇U_β
    log_steps: np.ndarray  #: (N,) log ε of each rung
    scans: Count  #: scans so far
    counted: Count  #: of them after the warm-up
    accepted: np.ndarray  #: (N,) sums of the probabilities of acceptance, after the warm-up
    rejected: np.ndarray  #: (N - 1,) sums of 1 - α of all pairs, after the warm-up
    squares: np.ndarray  #: (N, d, d) sums of ∇U_β∇U_βᵀ, if it learns, after the warm-up
    restarts: Count  #: after the warm-up
    trips: Count  #: round trips after the warm-up
    undefined: Count  #: draws of the reference where U is not a number
    trace: Trace
    mixture: MixtureMemory
    within: tuple  #: what evaluations need, or the explorer of the upper rung


@inlined
def swap_acceptance(step, lower, upper):
    """min(1, exp((βⱼ - βᵢ)(Wⱼ - Wᵢ))) of neighbours i, j = i + 1, from βⱼ - βᵢ, Wᵢ and Wⱼ."""
    return math.exp(min(0.0, step * (upper - lower)))


class TemperedRecipe(Recipe):
    """Not in comparisons that name no samplers."""

    def __init__(self):
        super().__init__(featured=False)


class Tempered(Process):
    """Non-reversible parallel tempering from a reference to exp(-U).

    The inverse temperatures `betas` (N,) are from 0 to 1. Of rung k L = `roots[k]` is lower triangular, with the mass
    (L Lᵀ)⁻¹, and ``steps[k]`` is ε in coordinates in which that is the identity. Replicas start at one of those of each
    rung in `pool` (n, N, d). In a warm-up steps are adapted so that paths are accepted with the mean probability
    `acceptance`; `learns`: whether ∇U_β∇U_βᵀ is summed. A path has at most `longest` steps.
    """

    target: ByAddress
    reference: object
    betas: np.ndarray
    roots: np.ndarray
    steps: np.ndarray
    learns: bool
    acceptance: float
    longest: int
    extra: int  #: evaluations of the potential alone, for each gradient

    events = ("scan",)
    ticks = 1
    recipe = TemperedRecipe()
    report = TemperedReport()
    remedy = "`initial=` nearer to the mass"

    def __init__(
        self,
        target: Model,
        reference: Mixture,
        betas: np.ndarray,
        roots: np.ndarray,
        steps: np.ndarray,
        pool: np.ndarray,
        learns: bool = False,
        acceptance: float = ACCEPTANCE,
        longest: int = LONG,
    ) -> None:
        self.provider = as_provider(target)
        self.model = self.provider.model
        self.reference = reference
        self.betas, self.roots, self.steps = (np.ascontiguousarray(a, dtype=float) for a in (betas, roots, steps))
        self.pool, self.learns, self.acceptance, self.longest = pool, bool(learns), float(acceptance), int(longest)
        #: The mode of each component of the reference but the last, the wide one.
        self.modes = np.zeros(max(len(reference.weights) - 1, 1), np.int64)
        #: Modes that were found beforehand: centres (n, d), roots (n, d, d) and log masses (n,).
        self.known = np.zeros((0, self.model.dim)), np.zeros((0, self.model.dim, self.model.dim)), np.zeros(0)
        self.narrowest = 1.0  #: width of a mode, of that of another one, from which on it is not missed
        self.extra = 0 if self.model.has("potential_and_gradient") else 1
        super().__init__(self.model.dim, flow=Still())

    @property
    def target(self) -> Model:
        """The model that gives the gradient."""
        return self.provider.packed  # type: ignore[attr-defined]

    # -- clock and jump ---------------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        return now + 1.0, CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        memory, counts, rungs = state.memory, state.counts, self.betas.shape[0]
        adapting = counts[ADAPTING] == 1
        if not memory.known[0]:
            for rung in range(1, rungs):
                self.move(memory.positions, memory.at[rung], memory.x)
                self.evaluate(memory, counts, memory.at[rung])
            memory.known[0] = True
        self.renew(memory, counts, rng)
        for rung in range(1, rungs):
            accept = self.explore(memory, counts, rung, rng)
            if adapting:
                gain = 2.0 / math.sqrt(4.0 + memory.scans[0])
                memory.log_steps[rung] += gain * (accept - self.acceptance)
            else:
                memory.accepted[rung] += accept
        if not adapting:
            self.note(memory)
        self.swap(memory, rng, adapting)
        memory.scans[0] += 1
        top = memory.at[rungs - 1]
        for j in range(state.x.shape[0]):
            state.x[j] = memory.positions[top, j]
        return 0

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def renew(self, memory, counts, rng):
        """A draw of the reference for the replica at β = 0, wherever the target is zero too."""
        r, terms = memory.at[0], max(self.target.n_data, 1)
        self.reference.draw(rng, memory.u, memory.x)
        u = self.both(memory.x, memory.gradient)
        counts[DATA] += (1 + self.extra) * terms
        if math.isnan(u):
            memory.undefined[0] += 1
            u = math.inf
        height = self.height(memory)
        self.keep(memory, r, u, height)

    @compiled
    def explore(self, memory, counts, rung, rng):
        """A Hamiltonian path of the replica at a rung; its probability of acceptance."""
        r, beta, d, terms = memory.at[rung], self.betas[rung], memory.x.shape[0], max(self.target.n_data, 1)
        x, u, force = memory.x, memory.u, memory.force
        for j in range(d):
            x[j] = memory.positions[r, j]
            u[j] = rng.standard_normal()
            force[j] = beta * memory.gradients[r, j] + (1.0 - beta) * memory.slopes[r, j]
        before = 0.5 * dot(u, u) + beta * memory.potentials[r] + (1.0 - beta) * memory.heights[r]
        uniform = rng.random()
        step = math.exp(memory.log_steps[rung] - SPREAD * uniform * uniform)
        n, left = 1, rng.random()
        while left < 0.5 and n < self.longest:
            n, left = 2 * n, 2.0 * left
        potential, height = math.inf, math.inf
        for _ in range(n):
            self.kick(rung, step, u, force)
            self.drift(rung, step, u, x)
            potential = self.both(x, memory.gradient)
            counts[DATA] += (1 + self.extra) * terms
            if not (potential < math.inf and finite(memory.gradient)):
                return 0.0
            height = self.height(memory)
            for j in range(d):
                force[j] = beta * memory.gradient[j] + (1.0 - beta) * memory.slope[j]
            self.kick(rung, step, u, force)
            if not 0.5 * dot(u, u) < LARGEST_ENERGY + d:
                return 0.0
        accept = math.exp(min(before - 0.5 * dot(u, u) - beta * potential - (1.0 - beta) * height, 0.0))
        if not accept <= 1.0:
            return 0.0
        if rng.random() < accept:
            self.keep(memory, r, potential, height)
        return accept

    @compiled
    def swap(self, memory, rng, adapting):
        """Even or odd pairs, in turn; who has come to the ends of the ladder."""
        at, rungs = memory.at, self.betas.shape[0]
        for rung in range(rungs - 1):
            a, b = at[rung], at[rung + 1]
            lower = memory.potentials[a] - memory.heights[a]
            upper = memory.potentials[b] - memory.heights[b]
            accept = swap_acceptance(self.betas[rung + 1] - self.betas[rung], lower, upper)
            if not adapting:
                memory.rejected[rung] += 1.0 - accept
            if (rungs == 2 or rung % 2 == memory.scans[0] % 2) and rng.random() < accept:
                at[rung], at[rung + 1] = b, a
        low, high = at[0], at[rungs - 1]
        if memory.came[high] == 1 and not adapting:
            memory.restarts[0] += 1
        if memory.came[low] == -1 and not adapting:
            memory.trips[0] += 1
        memory.came[high], memory.came[low] = -1, 1

    @compiled
    def note(self, memory):
        """Keep W of every rung and U at the target, and what is learnt of the gradients."""
        trace, rungs, d = memory.trace, self.betas.shape[0], memory.x.shape[0]
        memory.counted[0] += 1
        trace.since[0] += 1
        top = memory.at[rungs - 1]
        if memory.potentials[top] - memory.heights[top] < trace.lowest[0]:
            trace.lowest[0] = memory.potentials[top] - memory.heights[top]
            self.move(memory.positions, top, trace.place)
        if trace.since[0] >= trace.spacing[0]:
            trace.since[0] = 0
            row = trace.used[0]
            for rung in range(rungs):
                r = memory.at[rung]
                trace.works[row, rung] = memory.potentials[r] - memory.heights[r]
            trace.potentials[row] = memory.potentials[top]
            trace.used[0] += 1
            if trace.used[0] == trace.works.shape[0]:
                for k in range(trace.works.shape[0] // 2):
                    for rung in range(rungs):
                        trace.works[k, rung] = trace.works[2 * k + 1, rung]
                    trace.potentials[k] = trace.potentials[2 * k + 1]
                trace.used[0] = trace.works.shape[0] // 2
                trace.spacing[0] *= 2
        if self.learns:
            for rung in range(rungs):
                r, beta = memory.at[rung], self.betas[rung]
                for j in range(d):
                    memory.force[j] = beta * memory.gradients[r, j] + (1.0 - beta) * memory.slopes[r, j]
                if finite(memory.force):
                    for j in range(d):
                        for k in range(d):
                            memory.squares[rung, j, k] += memory.force[j] * memory.force[k]

    @compiled
    def kick(self, rung, step, u, force):
        """u ← u - ½ε Lᵀ∇U_β."""
        for k in range(u.shape[0]):
            total = 0.0
            for j in range(k, u.shape[0]):
                total += self.roots[rung, j, k] * force[j]
            u[k] -= 0.5 * step * total

    @compiled
    def drift(self, rung, step, u, x):
        """x ← x + ε L u."""
        for j in range(u.shape[0]):
            total = 0.0
            for k in range(j + 1):
                total += self.roots[rung, j, k] * u[k]
            x[j] += step * total

    @compiled
    def move(self, rows, r, out):
        """Copy a row."""
        for j in range(out.shape[0]):
            out[j] = rows[r, j]

    @compiled
    def keep(self, memory, r, potential, height):
        """The proposal as the state of replica r."""
        for j in range(memory.x.shape[0]):
            memory.positions[r, j] = memory.x[j]
            memory.gradients[r, j] = memory.gradient[j]
            memory.slopes[r, j] = memory.slope[j]
        memory.potentials[r], memory.heights[r] = potential, height

    @compiled(inline=False)
    def both(self, x, out):
        """U(x); ∇U(x) into `out`."""
        for j in range(x.shape[0]):
            out[j] = 0.0
        return self.target.potential_and_gradient(x, out)

    @compiled(inline=False)
    def height(self, memory):
        """U₀ at the proposal, and its gradient."""
        return self.reference.potential_and_gradient(memory.x, memory.mixture, memory.slope)

    @compiled
    def evaluate(self, memory, counts, r):
        """What belongs to the start of replica r."""
        potential = self.both(memory.x, memory.gradient)
        counts[DATA] += (1 + self.extra) * max(self.target.n_data, 1)
        height = self.height(memory)
        self.keep(memory, r, potential, height)

    # -- Python -----------------------------------------------------------------------------------------------------

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(self.dim)

    def tick_length(self) -> float:
        return 1.0

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float | None] | None:
        return state.memory.x, None

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        """The replica at the target is at x; the others are where those of one of the `pool` were, each of its rung."""
        d, n = self.dim, len(self.betas)
        positions = self.pool[rng.integers(len(self.pool), size=n), np.arange(n)].copy()
        positions[-1] = x
        width = d if self.learns else 0
        trace = zeros(
            Trace,
            d,
            works=np.zeros((ROWS, n)),
            potentials=np.zeros(ROWS),
            spacing=np.ones(1, np.int64),
            lowest=np.full(1, math.inf),
        )
        return zeros(
            TemperedMemory,
            d,
            at=np.arange(n),
            positions=positions,
            gradients=np.zeros((n, d)),
            slopes=np.zeros((n, d)),
            potentials=np.zeros(n),
            heights=np.zeros(n),
            came=np.zeros(n, np.int64),
            log_steps=np.log(self.steps),
            accepted=np.zeros(n),
            rejected=np.zeros(n - 1),
            squares=np.zeros((n, width, width)),
            trace=trace,
            mixture=self.reference.memory(),
            within=self.provider.memory(rng),
        )

    def learnt(self, state: State) -> dict[str, Any]:
        """What a chain has learnt for the next ladder: means over its scans after the warm-up."""
        memory = state.memory
        counted = max(int(memory.counted[0]), 1)
        return {
            "rejections": memory.rejected / counted,
            "acceptances": memory.accepted / counted,
            "log_steps": memory.log_steps.copy(),
            "squares": memory.squares / counted,
            "works": memory.trace.works[: int(memory.trace.used[0])].copy(),
            "positions": memory.positions[memory.at],
        }
