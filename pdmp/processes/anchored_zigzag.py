"""What the sub-sampled Zig-Zag processes of regressions share: clocks, an anchor, and the expansion of the rows there.

`pdmp.processes.regression_zigzag` is of no groups and of one grouping, `pdmp.processes.crossed_zigzag` of crossed ones.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.expressions.tape import Scratch
from pdmp.metric import WORDS, Diagonal, check_metric
from pdmp.models.priors import derivative, second_derivative_bound_until
from pdmp.models.regressions.design import products
from pdmp.native.classes import compiled, inlined, positive
from pdmp.native.vectors import exp
from pdmp.process import HORIZON, Process, State, last_moved
from pdmp.processes.remainders import beyond
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import draw_component

SPREAD_CHORD = 1.2  #: and where τ² may have changed by this one

#: Columns of `Memory.clocks`: when the clock was drawn; the bound of the rows' part then, and its slope; those of the
#: part that is known; the row of the proposal.
START, LEVEL, SLOPE, KNOWN, KNOWN_SLOPE, ROW = range(6)
#: `Memory.sums`, of d the coefficients less the anchor of their mean: their time, Σd, Σv, Σd², Σdv, Σv².
TIME, FIRST, VELOCITY, SQUARE, PRODUCT, SPEED = range(6)


class AnchoredZigZag(Process):
    """Zig-Zag process of a regression whose gradient is expanded at an anchor, and whose rows have the remainders.

    Clocks: one for each group; one for the priors of the shared coordinates, that is of β and the dispersions; one for
    each mean and one for each log τ. What a subclass has besides:

    - ``propose_row(state, i, now, rng)`` and ``rate_of_row(state, i, now, rng)``, of the groups' clocks;
    - ``bound_of_mean(state, k, now)``, ``slope_of_mean(state, k, now)``, the derivative by a mean;
    - ``known(state, k, now)``, G of the k-th shared coordinate, and ``rise(state, k, now)``, its largest slope;
    - ``rest_of(x, i, j, evaluation, rho)``, what row i adds beyond the expansion, and ``add_of_groups(x, out)``, of
      which coefficients of groups are a part, to it;
    - ``turn(state, e, now)``, what changes in the memory before coefficient e of the groups flips;
    - ``size(k)``, how many groups grouping k has, ``mean_part(state, k, now)``, ``advance_sums(memory, now)``.
    """

    model: object
    anchor: np.ndarray
    speed: np.ndarray
    scale: np.ndarray  #: units of distances from the anchor
    pull: np.ndarray  #: (d,) Σᵢ ∇Uᵢ at the anchor
    inner: np.ndarray  #: (m, m) Hessian of the data there, of the shared coordinates
    border: np.ndarray  #: (E, m) of these and the groups' coefficients
    rises: np.ndarray  #: (m,) the largest slope of G of the shared coordinates
    shared: np.ndarray  #: (m,) the coordinates of which all rows depend
    priors: np.ndarray  #: (m,) places of their priors
    prior_horizon: float
    tables: object
    growth: object  #: φ, of each group
    parts: np.ndarray  #: (N, n) bounds on what each row has by its functionals, in units of φ
    horizon: np.ndarray  #: of the groups' clocks
    pace: float  #: |σ / scale| of the coordinates of a row
    groups: int  #: clocks of rows
    slots: int  #: K, the group columns
    first_effect: int
    spread: int  #: place of the first log τ
    means: np.ndarray  #: (K,) their places
    mean_speeds: np.ndarray  #: (K,) the largest slope of an effect by the means alone
    sum_of_speeds: np.ndarray  #: (K,) Σ over the groups of the largest slope of an effect by its coefficients
    root_of_speeds: np.ndarray  #: (K,) root of the sum of their squares

    events = ("flip",)
    local = True

    def _expand(self, model, anchor, metric, approximation, means):
        """Where the expansion is, and the coordinates of which all rows depend; returns those of β among them."""
        metric = check_metric(metric, model.dim, type(self).__name__, WORDS[:2], diagonal=True)
        if anchor is None or isinstance(metric, str):
            found = approximation(model)
            if found is None:
                raise ValueError("`anchor` and `metric` must be given: the posterior's mode was not found.")
            anchor = found.mean if anchor is None else anchor
            metric = Diagonal(np.array(found.sd)) if isinstance(metric, str) else metric
        self.model = model
        self.anchor = model.check(anchor, "anchor")
        self.speed = np.ones(model.dim) if metric is None else metric.root
        p, laws = model.n_fixed, np.arange(model.dim - model.n_dispersions, model.dim)
        self.spread, self.first_effect, self.slots, self.means = p, int(model.first[0]), model.n_groups, means
        fixed = np.setdiff1d(np.arange(p), means)
        self.shared = np.r_[fixed, laws].astype(np.int64)
        self.priors = np.r_[fixed, p + model.n_groups + np.arange(len(laws))].astype(np.int64)
        self.scale = self.speed.copy()
        return fixed

    def _weigh(self, fixed, squares, inner):
        """Units of the shared coordinates; `squares` (p,) are of the columns, `inner` of what groups add to a row.

        Σⱼ of the bounds is smallest where both parts of a row's linear predictor weigh as they vary.
        """
        inner, outer = math.sqrt(inner), math.sqrt(max(float(self.speed[fixed] ** 2 @ squares[fixed]), 1e-300))
        self.scale[self.shared] *= min(max(math.sqrt(inner / outer * math.sqrt(len(self.shared))), 1.0), 1e3)

    # -- compiled: positions, sums ----------------------------------------------------------------------------------

    @compiled
    def at(self, state, j, now):
        """Coordinate j at the time `now`."""
        return self.flow.position(j, state.x[j], state.v[j], now - last_moved(state.moved, j))

    @compiled
    def place(self, state, j, now):
        """Write it into the memory; returns the square of its distance from the anchor."""
        x = self.at(state, j, now)
        state.memory.here[j] = x
        z = (x - self.anchor[j]) / self.scale[j]
        return z * z

    @compiled
    def prior_derivative(self, q, x):
        n = self.model.numbers
        return derivative(self.model.kinds[q], n[q, 0], n[q, 1], n[q, 2], x)

    @compiled
    def excess(self, state, k, now):
        """-Σ of the effects of grouping k."""
        self.advance_sums(state.memory, now)
        return self.size(k) * self.mean_part(state, k, now) - state.memory.sums[k, FIRST]

    @compiled
    def square_sum(self, state, k, now):
        """The sum of their squares."""
        self.advance_sums(state.memory, now)
        b, sums = self.mean_part(state, k, now), state.memory.sums
        return positive(sums[k, SQUARE] - 2.0 * b * sums[k, FIRST] + self.size(k) * b * b)

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i < self.groups:
            return self.propose_row(state, i, now, rng)
        if i == self.groups:
            return self.propose_prior(state, i, now, rng)
        if i <= self.groups + self.slots:
            bound, horizon = self.bound_of_mean(state, i - self.groups - 1, now)
        else:
            bound, horizon = self.bound_of_spread(state, i - self.groups - self.slots - 1, now)
        s = rng.standard_exponential() / bound if bound > 0.0 else math.inf
        return (now + s, bound) if s < horizon else (now + horizon, HORIZON)

    @compiled
    def propose_prior(self, state, i, now, rng):
        memory, level, rise, n, horizon = state.memory, 0.0, 0.0, self.model.numbers, self.prior_horizon
        self.advance_sums(memory, now)
        for k in range(self.shared.shape[0]):
            self.place(state, self.shared[k], now)
        for k in range(self.shared.shape[0]):
            j, q = self.shared[k], self.priors[k]
            x, speed = memory.here[j], self.speed[j]
            memory.known[k] = speed * abs(self.prior_derivative(q, x) + self.known(state, k, now))
            bound = second_derivative_bound_until(self.model.kinds[q], n[q, 0], n[q, 1], n[q, 2], x + speed * horizon)
            memory.slopes[k] = speed * (speed * bound + self.rise(state, k, now))
            level += memory.known[k]
            rise += memory.slopes[k]
        memory.clocks[i, START] = now
        s = first_arrival(level, rise, rng.standard_exponential())
        return (now + s, level + rise * s) if s < horizon else (now + horizon, HORIZON)

    @compiled
    def bound_of_spread(self, state, k, now):
        """A bound on the rate of log τₖ, and for how long it holds: the priors' derivatives by log τ increase."""
        j, n = self.spread + k, self.size(k)
        speed, s, root = self.speed[j], self.at(state, j, now), math.sqrt(self.square_sum(state, k, now))
        fastest = self.root_of_speeds[k] + math.sqrt(float(n)) * self.mean_speeds[k]
        sign = 1.0 if state.v[j] >= 0.0 else -1.0
        slope = 2.0 * speed * exp(-2.0 * s) * root * (speed * root + fastest)
        h = 1.0 / max(1.0, math.sqrt(slope))
        end = s + sign * speed * h
        size = positive(root - sign * fastest * h)
        return speed * positive(sign * (self.prior_derivative(j, end) + n - exp(-2.0 * end) * size * size)), h

    @compiled
    def rate(self, state, i, now, rng):
        if state.bounds[i] == HORIZON:
            return 0.0
        if i < self.groups:
            return self.rate_of_row(state, i, now, rng)
        memory = state.memory
        if i == self.groups:
            s, total = now - memory.clocks[i, START], 0.0
            for k in range(self.shared.shape[0]):
                memory.known[k] += memory.slopes[k] * s
                total += memory.known[k]
            k = draw_component(memory.known, rng.random() * total)
            j = self.shared[k]
            memory.flipping[0] = j
            self.advance_sums(memory, now)
            for q in range(self.shared.shape[0]):
                self.place(state, self.shared[q], now)
            partial = self.prior_derivative(self.priors[k], memory.here[j]) + self.known(state, k, now)
            return positive(state.v[j] * partial) * (total / memory.known[k])
        k = i - self.groups - 1
        if k < self.slots:
            j, partial = self.means[k], self.slope_of_mean(state, k, now)
        else:
            k -= self.slots
            j = self.spread + k
            s = self.at(state, j, now)
            partial = self.prior_derivative(j, s) + (self.size(k) - exp(-2.0 * s) * self.square_sum(state, k, now))
        memory.flipping[0] = j
        return positive(state.v[j] * partial)

    @compiled
    def remainder_by(self, x, i, j, evaluation, rho):
        """Of row i beyond its expansion, by the dispersion j, or by its linear predictor for any other j."""
        model, there, own = self.model, self.anchor, self.dim - self.model.n_dispersions
        model.expand_row(there, x, i, model.margin(x, i), model.margin(there, i), evaluation, rho)
        return rho[j - own + 1 if j >= own else 0]

    @compiled
    def jump(self, state, clock, now, rng):
        j = state.memory.flipping[0]
        e = j - self.first_effect
        if 0 <= e < self.border.shape[0]:
            self.advance_sums(state.memory, now)
            self.turn(state, e, now)
        state.v[j] = -state.v[j]
        return 0

    @compiled(allocates=True, inline=False)
    def true_rates(self, x, v, scratch, out):
        """The rate of each coordinate, from all rows."""
        model, m, law = self.model, self.shared.shape[0], self.model.likelihood
        evaluation = Scratch(
            np.empty((law.count, 1)), np.empty((law.count, 1)), np.empty((1, 1)), np.empty((law.registers, 1))
        )
        rho = np.empty(law.count)
        for j in range(x.shape[0]):
            scratch[j] = self.pull[j]
        for k in range(m):
            for q in range(m):
                scratch[self.shared[k]] += self.inner[k, q] * (x[self.shared[q]] - self.anchor[self.shared[q]])
        self.add_of_groups(x, scratch)
        model.add_prior_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = positive(v[j] * scratch[j])
        for i in range(model.n_data):
            for k in range(m):
                out[self.shared[k]] += positive(v[self.shared[k]] * self.rest_of(x, i, self.shared[k], evaluation, rho))
            for k in range(self.slots):
                j = model.level[i, k]
                out[j] += positive(v[j] * self.rest_of(x, i, j, evaluation, rho))

    @compiled
    def touches(self, state, i):
        return state.memory.flipping[0], state.memory.flipping[0] + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def channel(self, state, i):
        return state.memory.flipping[0]

    # -- Python -----------------------------------------------------------------------------------------------------

    def channels(self) -> list[str]:
        return [f"coordinate {j}" for j in range(self.dim)]

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim) * self.speed

    def lost(self, state: State) -> str | None:
        return beyond(self, state)

    def describe_bound(self) -> str:
        return f"the bound on single rows of {self.model.likelihood.name}"


@inlined
def add_inner(inner, features, fixed, hessian):
    """Add a row's Hessian by the shared coordinates, of which the first `fixed` have features.

    But for the part of two features, of all rows in `products_of_shared`.
    """
    for k in range(fixed, inner.shape[0]):
        for q in range(fixed):
            inner[q, k] += hessian[0, 1 + k - fixed] * features[q]
            inner[k, q] += hessian[0, 1 + k - fixed] * features[q]
        for q in range(fixed, inner.shape[0]):
            inner[k, q] += hessian[1 + k - fixed, 1 + q - fixed]


def products_of_shared(model, shared, curvature):
    """The Hessian's part of two features, (m, m) by the m shared coordinates, with ℓ'' of each row."""
    fixed = shared[: len(shared) - model.n_dispersions]
    inner = np.zeros((len(shared), len(shared)))
    inner[: len(fixed), : len(fixed)] = products(model.design.data, curvature, model.n_fixed)[np.ix_(fixed, fixed)]
    return inner
