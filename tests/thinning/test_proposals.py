"""For every bound and sampler: the bound that a proposal reports is the intensity that its time was drawn from.

A bound that is reported 1 % too high, or a rate that is 1 % too low, makes events too rare by 1 %, which laws and
counts of events hardly see. Here the intensity is found from the times alone: the time of a proposal is a function of
one exponential number, and the derivative of its inverse is the intensity.
"""

import inspect
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import pdmp
from pdmp import thinning
from pdmp.engine.scheduler import CHUNK, Limits, advance
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.process import CERTAIN, EVENTS, HORIZON, positions, velocities
from pdmp.validation.clocks import LONGEST, NEVER
from tests import toys
from tests.checks import new_chain, plain, plain_only
from tests.thinning.helpers_bounds import CONE, EXACT, LOGISTIC, QUARTIC, SAMPLERS

pytestmark = [pytest.mark.exact, plain_only]

GAUSSIAN = pdmp.models.Gaussian([1.0, -2.0], [[2.0, 0.8], [0.8, 1.5]])
CHAIN = pdmp.models.Gaussian(np.zeros(3), [[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
REFERENCE = {"mean": [0.5, -1.0], "metric": pdmp.Metric(covariance=[0.3, 0.6])}
ANCHOR = np.array([0.3, -0.2])
#: Of each pair of a sampler and a bound, a process.
CASES = {
    f"{sampler}, {name}": (lambda s=sampler, m=model, b=bound: SAMPLERS[s](m, thinning=b))
    for sampler in SAMPLERS
    for name, (model, bound) in EXACT.items()
}
CASES |= {
    f"{sampler}, {name}": (lambda s=sampler, b=name: SAMPLERS[s](CONE, thinning=b))
    for sampler in SAMPLERS
    for name in ("grid", "maxima", "predicted")
}
CASES |= {
    f"Boomerang, {name}": (lambda b=name: pdmp.Boomerang(GAUSSIAN, **REFERENCE, thinning=b))
    for name in ("sinusoids", "grid", "predicted")
}
CASES |= {
    "Boomerang, maxima": lambda: pdmp.Boomerang(GAUSSIAN, **REFERENCE, thinning=thinning.Maxima()),
    "BPS, inversion": lambda: pdmp.BPS(GAUSSIAN, refresh_rate=0.7),
    "BPS with a mass, inversion": lambda: pdmp.BPS(GAUSSIAN, refresh_rate=0.7, metric="auto"),
    "ZigZag, inversion": lambda: pdmp.ZigZag(GAUSSIAN),
    "ZigZag with speeds": lambda: pdmp.ZigZag(LOGISTIC, "affine", metric=pdmp.Metric(scales=[0.5, 2.0])),
    "Boomerang, energy": lambda: pdmp.Boomerang(LOGISTIC, thinning="hessian"),
    "Boomerang, energy, batches": lambda: pdmp.Boomerang(Minibatch(LOGISTIC, 1)),
    "factorised Boomerang, inversion": lambda: pdmp.FactorisedBoomerang(GAUSSIAN, **REFERENCE),
    "factorised Boomerang, energies": lambda: pdmp.FactorisedBoomerang(LOGISTIC, thinning="hessian"),
    "factorised Boomerang, energies, batches": lambda: pdmp.FactorisedBoomerang(Minibatch(LOGISTIC, 1)),
    "factorised Boomerang, grid": lambda: pdmp.FactorisedBoomerang(GAUSSIAN, **REFERENCE, thinning="grid"),
    "coordinate sampler, affine": lambda: pdmp.CoordinateSampler(CONE, 0.3, "affine"),
    "coordinate sampler, grid": lambda: pdmp.CoordinateSampler(CONE, 0.3, "grid"),
    "local BPS, factors": lambda: pdmp.LocalBPS(CHAIN, refresh_rate=0.5),
    "local BPS, data": lambda: pdmp.LocalBPS(LOGISTIC, refresh_rate=0.5, thinning="columns"),
    "local BPS, rows": lambda: pdmp.LocalBPS(LOGISTIC, refresh_rate=0.5, thinning="rows"),
    "ZigZag, data": lambda: pdmp.ZigZag(Minibatch(LOGISTIC, 1)),
    "ZigZag, control variates": lambda: pdmp.ZigZag(ControlVariate(LOGISTIC, 1, anchor=ANCHOR)),
    "ZigZag, importance": lambda: pdmp.ZigZag(ControlVariate(LOGISTIC, 1, anchor=ANCHOR, draw="importance")),
    "directional BPS": lambda: pdmp.DirectionalBPS(LOGISTIC, 0.5),
    "event chain": lambda: pdmp.ForwardEventChain(LOGISTIC, "refresh", 0.5),
    "generalised BPS": lambda: pdmp.GeneralisedBPS(QUARTIC, thinning="hessian"),
    "SBPS, noise": lambda: pdmp.SBPS(Noisy(LOGISTIC, 0.5), refresh_rate=0.5),
    "SBPS, batches": lambda: pdmp.SBPS(Minibatch(LOGISTIC, 2), refresh_rate=0.5),
    "Lipschitz SBPS": lambda: pdmp.LipschitzSBPS(Minibatch(LOGISTIC, 2)),
}
FAR = 1e9  #: an exponential that nothing integrates to


class Draws:
    """The exponential number `which` is `e`, all others are never reached; other numbers are always the same."""

    def __init__(self, e, which):
        self.e, self.which, self.drawn = e, which, 0

    def standard_exponential(self):
        self.drawn += 1
        return self.e if self.drawn == self.which + 1 else FAR

    def random(self):
        return 0.4

    def standard_normal(self):
        return 0.3


class Proposals:
    """What clock i of a process proposes from one start, as a function of its exponential numbers."""

    def __init__(self, process, seed, i):
        x = process.anchor if getattr(process, "anchor", None) is not None else np.zeros(process.dim)
        x = np.asarray(x) + 0.8 * np.random.default_rng(seed).standard_normal(process.dim)
        self.process, self.native, self.x, self.seed, self.i = process.resolve(x), None, x, seed, i
        self.native = self.process.native

    def ask(self, e, which):
        """(state, time, bound, number of exponentials) of the first proposal."""
        state, draws = self.process.begin(self.x, np.random.default_rng(self.seed)), Draws(e, which)
        time, bound = self.native.clock(state, self.i, 0.0, draws)
        state.bounds[self.i] = bound
        return state, time, bound, draws.drawn

    def integral(self, s, which):
        """Of one part of the intensity from 0 to s: the largest exponential number that arrives by then."""

        def beyond(e):
            """How much later than s it arrives; not at all is taken for a second later."""
            _, time, bound, _ = self.ask(e, which)
            return 1.0 if bound == HORIZON else min(time - s, 1.0)

        high = 1.0
        while beyond(high) <= 0.0:
            high *= 4.0
        return brentq(beyond, 1e-10, high, xtol=1e-13) if beyond(1e-10) < 0.0 else 0.0

    def intensity(self, s, parts):
        """All parts together at s."""
        h = 1e-5 * s
        return sum(self.integral(s + h, k) - self.integral(s - h, k) for k in range(parts)) / (2.0 * h)

    def true_rate(self, state, time):
        """The rate of the clock there, by the process's definition; NaN where it has none."""
        names = list(self.process.channels())
        mine = [self.i]
        if len(names) != self.process.clocks:
            mine = [k for k, name in enumerate(names) if not name.startswith("refresh")] if self.i == 0 else []
        if not mine or "true_rates" not in self.process._methods:
            return math.nan
        x, v = np.zeros(len(self.x)), np.zeros(len(self.x))
        scratch, out = np.full(len(x), 5.0), np.full(len(names), 7.0)  # as a call before may have left them
        plain(positions)(self.process.flow.native, state, time, x)
        plain(velocities)(self.process.flow.native, state, time, v)
        self.native.true_rates(x, v, scratch, out)
        return sum(max(out[k], 0.0) for k in mine)


def used_bounds():
    """Classes of the bounds of all cases."""
    found = set()
    for make in CASES.values():
        bound = getattr(make(), "thinning", None)
        found |= {type(bound), type(getattr(bound, "bound", None))}
    return found


def test_every_bound_is_among_the_cases():
    exported = {getattr(thinning, name) for name in thinning.__all__}
    bounds = {cls for cls in exported if inspect.isclass(cls) and cls is not thinning.Bound}
    assert bounds - used_bounds() == set()


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_the_intensity_of_the_proposals(name):
    process, compared = CASES[name](), 0
    for i in range(min(process.clocks, 2)):
        for seed, e in ((1, 0.07), (2, 0.6), (3, 0.2), *((k, 0.003) for k in range(4, 40))):
            if seed > 3 and compared > 0:
                break
            proposals = Proposals(process, seed, i)
            parts = max(proposals.ask(1.0, 0)[3], 1)
            state, time, bound, _ = proposals.ask(e, seed % parts)
            if bound == HORIZON or not 0.0 < time < 1e6:
                continue
            found = proposals.intensity(time, parts)
            rate = proposals.true_rate(state, time)
            # `pdmp.CoordinateSampler` says 1 where nothing is thinned; no bound of these is 1.
            expected = rate if bound == CERTAIN or (bound == 1.0 and "coordinate" in name) else bound
            if not math.isnan(expected):
                assert found == pytest.approx(expected, rel=1e-4), (i, seed, time)
                compared += 1
    assert compared >= 1


#: Those whose rate is that of a datum or batch just drawn, and those that thin nothing.
OTHERS = (
    "inversion",
    "batches",
    "data",
    "rows",
    "control variates",
    "importance",
    "noise",
    "factors",
    "Lipschitz SBPS",
)


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith(OTHERS)])
def test_the_rate_at_a_proposal_is_the_true_one(name):
    process, compared = CASES[name](), 0
    for seed in range(60):
        if seed >= 8 and compared >= 4:
            break
        proposals = Proposals(process, seed, 0)
        for e in (0.02, 0.3):
            state, time, bound, parts = proposals.ask(e, 0)
            if bound in (HORIZON, CERTAIN) or not time < 1e6 or (bound == 1.0 and "coordinate" in name):
                continue
            rate = proposals.true_rate(state, time)
            found = proposals.native.rate(state, 0, time, Draws(1.0, 0))
            assert found == pytest.approx(rate, rel=1e-9, abs=1e-12), (seed, e)
            compared += 1
    assert compared >= 4


class Fixed:
    """Waits of 1, and uniform numbers that are known in advance."""

    def __init__(self, uniform):
        self.uniform = uniform

    def standard_exponential(self):
        return 1.0

    def random(self):
        return self.uniform


@pytest.mark.parametrize(("uniform", "accepted"), [(0.0, True), (0.5999, True), (0.6001, False), (0.9999, False)])
def test_a_proposal_is_accepted_with_the_probability_rate_over_bound(uniform, accepted):
    """The second clock of this process has the bound 1 and the rate 0.6."""
    chain = new_chain(toys.Telegraph(), [0.0, 0.0], 1, store="moments")
    limits = Limits(LONGEST, NEVER, NEVER, NEVER, 1, True, False)
    # The first candidate is of clock 0, at the same time and of smaller index; it is always an event.
    arguments = chain.process.native, chain.state, chain.recording, limits
    assert plain(advance)(*arguments, 1, chain.local, Fixed(uniform)) == CHUNK and chain.state.counts[EVENTS] == 1
    assert plain(advance)(*arguments, 1, chain.local, Fixed(uniform)) == CHUNK
    assert chain.state.counts[EVENTS] == 1 + accepted


class Bounds(toys.Telegraph):
    """Its second clock claims the bound `level` for the rate 0.6."""

    level: float

    def __init__(self, level):
        super().__init__()
        self.level = level

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), CERTAIN if i == 0 else self.level


@pytest.mark.filterwarnings("ignore:.* proposes at other times than the bounds")
def test_excesses_are_counted_and_their_largest_is_kept():
    """A rate of 0.6 above a bound of 0.5 by a fifth, and of 0.48 by a quarter; `run.stats` keeps sum and maximum."""

    class Approximate(Bounds):
        exact_bounds = False

    runs = [pdmp.sample(Approximate(level), events=40, seed=1) for level in (0.5, 0.48, 0.6)]
    for run, excess in zip(runs, (0.2, 0.25, 0.0), strict=True):
        stats = run.stats
        assert stats["max_excess"] == pytest.approx(excess, abs=1e-12)
        assert stats["mean_excess"] == pytest.approx(excess, abs=1e-12)
        thinned = stats["events"]["second"] if excess else stats["thinned"]
        assert stats["thinned"] == thinned and stats["bound_violations"] == (thinned if excess else 0)
    pooled = pdmp.engine.result.Run(runs[0].info, [runs[0].records[0], runs[1].records[0]]).stats
    assert pooled["max_excess"] == pytest.approx(0.25) and 0.2 < pooled["mean_excess"] < 0.25
    n, m = (run.stats["bound_violations"] for run in runs[:2])
    assert pooled["mean_excess"] == pytest.approx((0.2 * n + 0.25 * m) / (n + m))


@pytest.mark.filterwarnings("ignore:.* proposes at other times than the bounds")
def test_a_larger_excess_of_an_exact_bound_is_an_error():
    with pytest.raises(pdmp.SamplingError, match="by a factor 1.2"):
        pdmp.sample(Bounds(0.5), events=40, seed=1)
    pdmp.sample(Bounds(0.6 * (1.0 - 5e-4)), events=40, seed=1)  # rounding, and up to a thousandth
    with pytest.raises(pdmp.SamplingError, match="by a factor 1.002"):
        pdmp.sample(Bounds(0.6 / 1.002), events=40, seed=1)


class Horizons(toys.Telegraph):
    """Its second clock has a horizon of 0.25 before each of its proposals; each horizon and proposal waits so long."""

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        if i == 0:
            return now + 10.0, CERTAIN
        if int(4.0 * now) % 2 == 0:
            return now + 0.25, HORIZON
        return now + 0.25, 1.0


def test_horizons_proposals_and_thinned_are_counted():
    """Up to time 8: 16 horizons and 16 proposals of the second clock, and none of the first, which comes at 10."""
    stats = pdmp.sample(Horizons(), time=8.1, seed=1).stats
    assert (stats["horizons"], stats["proposals"], stats["thinned"]) == (16, 16, 16)
    assert stats["total_events"] == stats["events"]["second"] < 16
    stats = pdmp.sample(Horizons(), proposals=5, chains=2, seed=1).stats
    assert stats["proposals"] == 10 and stats["horizons"] == 10
