"""A gradient that fails once, whichever way and whenever: no run finishes as if nothing had happened."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine.executors import Segments
from pdmp.engine.preflight import check_propriety
from tests.checks import in_ci
from tests.engine.helpers_run import Serial

DIM = 2


class Function:
    """U(x) = Σ log cosh xⱼ + |x|²/2 and its gradient, from the call number `at` on once something else."""

    def __init__(self, what=None, at=0):
        self.what, self.at, self.calls, self.failed = what, at, 0, False

    def __call__(self, x):
        self.calls += 1
        potential, gradient = float(np.logaddexp(x, -x).sum() + 0.5 * x @ x), np.tanh(x) + x
        if self.what is None or self.calls != self.at:
            return potential, gradient
        self.failed = True
        return WAYS[self.what](potential, gradient)


def raising(error):
    def fail(potential, gradient):
        raise error

    return fail


def entry(value):
    def fail(potential, gradient):
        gradient[-1] = value
        return potential, gradient

    return fail


WAYS = {
    "ValueError": raising(ValueError("a bad day")),
    "MemoryError": raising(MemoryError()),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "SystemExit": raising(SystemExit(3)),
    "NaN": entry(math.nan),
    "inf": entry(math.inf),
    "-inf": entry(-math.inf),
    "potential NaN": lambda potential, gradient: (math.nan, gradient),
    "both NaN": lambda potential, gradient: (math.nan, gradient + math.nan),
    "potential -inf": lambda potential, gradient: (-math.inf, gradient),
    "shape": lambda potential, gradient: (potential, gradient[:1]),
    "nothing": lambda potential, gradient: None,
    "text": lambda potential, gradient: (potential, ["a", "b"]),
    "complex": lambda potential, gradient: (potential, gradient + 1j),
}
CAUSES = {"shape": "ValueError", "nothing": "TypeError", "text": "ValueError", "complex": "TypeError"}
CAUSES |= {name: name for name in ("ValueError", "MemoryError", "KeyboardInterrupt", "SystemExit")}

SAMPLERS = {
    "BPS": lambda m: pdmp.BPS(m, refresh_rate=0.5),
    "BPS gaussian": lambda m: pdmp.BPS(m, refresh_rate=0.5, velocities="gaussian"),
    "BPS adaptive": lambda m: pdmp.BPS(m, refresh_rate=0.5, metric="diagonal"),
    "BPS maxima": lambda m: pdmp.BPS(m, refresh_rate=0.5, thinning="maxima"),
    "SBPS": lambda m: pdmp.SBPS(pdmp.gradients.Noisy(m, 0.1), refresh_rate=0.5),
    "DirectionalBPS": lambda m: pdmp.DirectionalBPS(m, refresh_rate=0.5, metric=None),
    "GeneralisedBPS": lambda m: pdmp.GeneralisedBPS(m),
    "ForwardEventChain": lambda m: pdmp.ForwardEventChain(m, orthogonal="refresh"),
    "ZigZag": lambda m: pdmp.ZigZag(m),
    "ZigZag maxima": lambda m: pdmp.ZigZag(m, thinning="maxima"),
    "CoordinateSampler": lambda m: pdmp.CoordinateSampler(m),
    "Boomerang": lambda m: pdmp.Boomerang(m, np.zeros(DIM), metric=pdmp.Metric(covariance=0.5 * np.eye(DIM))),
    "FactorisedBoomerang": lambda m: pdmp.FactorisedBoomerang(
        m, np.zeros(DIM), metric=pdmp.Metric(covariance=np.full(DIM, 0.5))
    ),
    "Sticky ZigZag": lambda m: pdmp.Sticky(pdmp.ZigZag(m), kappa=0.4),
    "Sticky BPS": lambda m: pdmp.Sticky(pdmp.BPS(m, refresh_rate=0.5, velocities="gaussian"), kappa=0.4),
    "Sticky Boomerang": lambda m: pdmp.Sticky(
        pdmp.Boomerang(m, metric=pdmp.Metric(covariance=np.full(DIM, 0.5))), kappa=0.4
    ),
    "Bounded ZigZag": lambda m: pdmp.Bounded(pdmp.ZigZag(m), lower=-0.7),
    "Bounded BPS": lambda m: pdmp.Bounded(pdmp.BPS(m, refresh_rate=0.5), lower=-0.7, upper=1.0),
    "GD": lambda m: discrete.GD(m, 0.1),
    "SGD": lambda m: discrete.SGD(m, 0.1),
    "SGD clipped": lambda m: discrete.SGD(m, 0.1, clip_norm=1.0),
    "SGLD": lambda m: discrete.SGLD(m, 0.1),
    "SGLD RMSprop": lambda m: discrete.SGLD(m, 0.1, metric=discrete.preconditioners.RMSprop()),
    "SGBD": lambda m: discrete.SGBD(m, 0.5),
    "SGHMC": lambda m: discrete.SGHMC(m, 0.1),
    "SGHMC semi-implicit": lambda m: discrete.SGHMC(m, 0.1, scheme="semi_implicit"),
    "SGHMC explicit": lambda m: discrete.SGHMC(m, 0.1, scheme="explicit"),
    "BAOAB": lambda m: discrete.BAOAB(m, 0.1),
    "UBU": lambda m: discrete.UBU(m, 0.1),
    "SGNHT": lambda m: discrete.SGNHT(m, 0.1),
    "MSGNHT": lambda m: discrete.MSGNHT(m, 0.1),
    "BADODAB": lambda m: discrete.BADODAB(m, 0.1),
    "RichardsonRomberg": lambda m: discrete.RichardsonRomberg(discrete.SGLD(m, 0.1)),
    "SGRRLD": lambda m: discrete.SGRRLD(m, 0.1),
    "SGRRHMC": lambda m: discrete.SGRRHMC(m, 0.1),
    "SGZZ": lambda m: discrete.SGZZ(m, 0.1),
    "SGBPS": lambda m: discrete.SGBPS(m, 0.1, refresh_rate=0.5),
    "ZigZagSplitting": lambda m: discrete.ZigZagSplitting(m, 0.1),
    "ZigZagSplitting adjusted": lambda m: discrete.ZigZagSplitting(m, 0.1, adjusted=True),
    "BPSSplitting": lambda m: discrete.BPSSplitting(m, 0.1, refresh_rate=0.5),
    "BPSSplitting adjusted": lambda m: discrete.BPSSplitting(m, 0.1, refresh_rate=0.5, adjusted=True),
    "MALA": lambda m: discrete.MALA(m, 0.5),
    "Barker": lambda m: discrete.Barker(m, 1.0),
    "Barker single": lambda m: discrete.Barker(m, 1.0, signs="single"),
}


def outcome(name, what=None, at=0):
    """What came of a run, the warnings that name the failure, the function, and its calls before the run began."""
    function = Function()
    process = SAMPLERS[name](pdmp.models.from_function(function, DIM))
    check_propriety(process.model, [0.3, -0.2], process)  # which looks beyond where a function is defined
    process.model.is_compared = False  # after the run, by calls that may fail as they may beyond a support
    function.what, function.at, function.calls = what, at, 0
    budget = {"steps": 25} if process.ticks else {"events": 25}
    with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            found = pdmp.sample(process, **budget, warmup=0.3, initial=[0.3, -0.2], seed=3, progress=False)
        except BaseException as error:  # noqa: BLE001 - whatever comes of it
            found = error
    return found, [str(w.message) for w in said if "raised" in str(w.message)], function


@pytest.mark.exact
@pytest.mark.parametrize("name", SAMPLERS)
def test_no_failure_is_silent(name):
    """A failure in one call stops the run, with the exception as its cause and what was sampled before kept."""
    clean, _, function = outcome(name)
    assert clean.stopped == "events"
    for k, what in enumerate(WAYS):
        place = k + list(SAMPLERS).index(name)
        if place % 5:  # the other ways with the next samplers
            continue
        parts = (0.0, 0.13 + 0.01 * k, 0.37 + 0.02 * k, 0.999)
        part = parts[place % 4]  # and the other parts
        found, said, function_ = outcome(name, what, max(1, math.ceil(part * function.calls)))
        assert function_.failed
        assert isinstance(found, BaseException) or said, (what, part)
        if isinstance(found, pdmp.SamplingError):
            assert found.run.stopped == "failed" and np.all(found.run.events <= clean.events)
            assert type(found.__cause__).__name__ == CAUSES.get(what, "NoneType")


@pytest.mark.exact
@pytest.mark.parametrize("name", ["BPS", "ZigZag", "DirectionalBPS", "MALA", "Barker", "BPSSplitting adjusted"])
def test_what_was_sampled_before_a_failure_is_the_path_without_it(name):
    clean, _, function = outcome(name)
    path = clean.trajectories[0]
    for share in (0.6, 0.7, 0.8):
        found, _, _ = outcome(name, "NaN", int(share * function.calls))
        kept = found.run.trajectories[0]
        n = len(kept.times)
        assert 1 < n < len(path.times)
        np.testing.assert_array_equal(kept.positions, path.positions[:n])
        np.testing.assert_array_equal(kept.times, path.times[:n])
        if not clean.process.ticks:  # the place is where the path would be at that time, from the last event on
            ahead = found.time - kept.times[-1]
            assert ahead >= 0.0
            wanted = kept.positions[-1] + ahead * kept.velocities[-1]
            np.testing.assert_allclose(found.position, wanted, rtol=1e-9, atol=1e-9)


def half_line(x):
    """Exponential with rate 1 in each coordinate, on x > 0."""
    if np.any(x < 0.0):
        return math.inf, np.full(len(x), math.nan)
    return float(np.sum(x)), np.ones(len(x))


@pytest.mark.exact
@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_proposals_outside_the_support_are_rejected_and_counted(make):
    process = make(pdmp.models.from_function(half_line, 2, initial=[0.1, 0.1]), 0.5)
    run = pdmp.sample(process, steps=400, initial=[0.1, 0.1], seed=1)
    assert run.stopped == "events" and 20 <= run.stats["outside"] < 400
    assert run.draws(50).min() >= 0.0


@pytest.mark.exact
def test_a_grid_looks_ahead_to_outside_the_support_but_not_into_a_failure():
    """A barrier: U = x - log x, with +inf beyond 0; and the same where the function says NaN beyond 0."""

    def barrier(x, beyond):
        if x[0] <= 0.0:
            return beyond, np.full(1, math.nan)
        return float(x[0] - math.log(x[0])), 1.0 - 1.0 / x

    for process in (pdmp.ZigZag, pdmp.BPS, lambda m: pdmp.ZigZag(m, thinning="maxima")):
        model = pdmp.models.from_function(lambda x: barrier(x, math.inf), 1, initial=[1.0])
        assert pdmp.sample(process(model), events=60, initial=[1.0], seed=2).stopped == "events"
        model = pdmp.models.from_function(lambda x: barrier(x, math.nan), 1, initial=[1.0])
        with pytest.raises(pdmp.SamplingError, match="not finite"):
            pdmp.sample(process(model), events=60, initial=[1.0], seed=2)


class Compiled(pdmp.Model):
    """A model of a user's own, whose gradient is `value` beyond 1."""

    value: float

    def __init__(self, value=math.nan):
        super().__init__(dim=1)
        self.value = value

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] * x[0]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] if x[0] < 1.0 else self.value


COMPILED = {
    "ZigZag": lambda m: pdmp.ZigZag(m),
    "BPS": lambda m: pdmp.BPS(m, refresh_rate=1.0),
    "MALA": lambda m: discrete.MALA(m, 0.5),
    "Barker": lambda m: discrete.Barker(m, 1.0),
}


@pytest.mark.parametrize("name", in_ci(["ZigZag", "MALA", "BPS", "Barker"], "MALA"))
def test_a_compiled_gradient_that_fails_stops_the_run(name):
    for value in (math.nan, math.inf, -math.inf):
        process = COMPILED[name](Compiled(value))
        with np.errstate(all="ignore"), pytest.raises(pdmp.SamplingError, match="not finite") as caught:
            pdmp.sample(process, events=5_000, initial=[0.0], seed=1, progress=False)
        assert caught.value.run.stopped == "failed"


class Raising(Compiled):
    """One that raises beyond 1."""

    @pdmp.compiled
    def add_gradient(self, x, out):
        if x[0] > 1.0:
            raise ArithmeticError("beyond one")
        out[0] += x[0]


@pytest.mark.exact
def test_an_exception_in_a_compiled_method_keeps_the_run():
    with pytest.raises(pdmp.SamplingError, match="ArithmeticError in a step of SGLD: beyond one") as caught:
        pdmp.sample(discrete.SGLD(Raising(), 0.1), steps=1_000, initial=[0.0], seed=1)
    run = caught.value.run
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert run.events[0] == len(run.trajectories[0].times) - 1 > 0 and run.stopped == "failed"


@pytest.mark.exact
@pytest.mark.parametrize("sampler", [lambda m: pdmp.HMC(m, step=0.5), lambda m: discrete.SGLD(m, 0.1)])
def test_the_summary_of_a_run_whose_function_has_failed_does_not_ask_it_again(sampler):
    calls = itertools.count()

    def function(x):
        if next(calls) > 2_000:
            raise ConnectionError("the simulator is gone")
        return 0.5 * x @ x, x

    model = pdmp.models.from_function(function, 2)
    with pytest.raises(pdmp.SamplingError) as caught:
        pdmp.sample(sampler(model), steps=2_000, chains=2, seed=1)
    assert isinstance(caught.value.__cause__, ConnectionError) and caught.value.run.events.max() > 200
    assert caught.value.run.summary().warnings[0].startswith("the run failed")


@pytest.mark.exact
def test_nor_where_its_chains_stay_apart():
    calls = itertools.count()

    def function(x):
        if next(calls) > 2_000:
            raise ConnectionError("the simulator is gone")
        slope = np.array([0.5 * (x[0] ** 2 - 36.0) * x[0], x[1]])
        return 0.125 * (x[0] ** 2 - 36.0) ** 2 + 0.5 * x[1] ** 2, slope

    process = pdmp.HMC(pdmp.models.from_function(function, 2), step=0.1)
    with pytest.raises(pdmp.SamplingError) as caught:
        pdmp.sample(process, steps=2_000, initial=[[6.0, 0.0], [-6.0, 0.0]], chains=2, seed=1)
    assert caught.value.run.rhat()[0] > 1.5 and caught.value.run.summary().warnings[0].startswith("the run failed")


@pytest.mark.exact
def test_chains_that_had_not_begun_are_left_out_of_a_run_that_failed():
    """Or quantiles and draws of the others would be refused."""

    def function(x):
        if x[0] > 3.0:
            raise ArithmeticError("beyond")
        return 0.5 * x @ x, x

    class First(Serial):
        begun = False

        def submit(self, function, /, *args, **kwargs):
            if self.begun:
                raise KeyboardInterrupt
            self.begun = True
            return super().submit(function, *args, **kwargs)

    process = pdmp.BPS(pdmp.models.from_function(function, 2))
    with pytest.raises(pdmp.SamplingError, match="beyond") as caught:
        pdmp.sample(process, events=5_000, chains=3, seed=1, executor=Segments(First(), 60.0))
    run = caught.value.run
    assert run.stopped == "failed" and run.chains == 1 and run.draws(10).shape == (1, 10, 2)
    said = run.summary().warnings[0]
    assert said.startswith("the run failed; the table is of what was sampled until then; 2 of 3 chains had no path")
    assert np.all(np.isfinite(run.quantile(0.9)))


X = np.random.default_rng(0).standard_normal((12, 2))
LOGISTIC = pdmp.models.LogisticRegression(X, np.arange(12) % 2)
POISSON = pdmp.models.PoissonRegression(X, np.arange(12))
GAUSSIAN = pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0])
BATCHES = pdmp.gradients.ControlVariate(LOGISTIC, size=2)
P = pdmp.Parameters(x=2)
TERMS = pdmp.models.sum_of_terms(P, [pdmp.terms(lambda y, z: np.exp(z) - y * z, [np.arange(12.0)], [X @ P.x])])
#: Samplers and bounds by what a clock is drawn from.
CLOCKS = {
    "Boomerang": lambda: pdmp.Boomerang(LOGISTIC),
    "Boomerang, batches": lambda: pdmp.Boomerang(BATCHES),
    "Boomerang, sinusoids": lambda: pdmp.Boomerang(GAUSSIAN, [0.0, 1.0], metric=pdmp.Metric(covariance=np.eye(2))),
    "Boomerang among those that move": lambda: pdmp.Boomerang(LOGISTIC, metric="diagonal").among_moving(),
    "factorised Boomerang": lambda: pdmp.FactorisedBoomerang(LOGISTIC),
    "factorised Boomerang, batches": lambda: pdmp.FactorisedBoomerang(BATCHES),
    "factorised Boomerang, inversion": lambda: pdmp.FactorisedBoomerang(GAUSSIAN),
    "BPS": lambda: pdmp.BPS(LOGISTIC),
    "BPS, inversion": lambda: pdmp.BPS(GAUSSIAN),
    "BPS, local Hessian": lambda: pdmp.BPS(POISSON, thinning=pdmp.thinning.LocalHessian()),
    "BPS, pieces": lambda: pdmp.BPS(LOGISTIC, thinning=pdmp.thinning.ConcaveConvex()),
    "BPS, constant": lambda: pdmp.BPS(LOGISTIC, thinning=pdmp.thinning.Constant(5.0)),
    "Zig-Zag": lambda: pdmp.ZigZag(LOGISTIC),
    "Zig-Zag, inversion": lambda: pdmp.ZigZag(GAUSSIAN),
    "Zig-Zag, grid": lambda: pdmp.ZigZag(LOGISTIC, thinning="grid"),
    "Zig-Zag, maxima": lambda: pdmp.ZigZag(LOGISTIC, thinning="maxima"),
    "Zig-Zag, predicted": lambda: pdmp.ZigZag(LOGISTIC, thinning="predicted"),
    "Zig-Zag, batches": lambda: pdmp.ZigZag(BATCHES),
    "SBPS": lambda: pdmp.SBPS(pdmp.gradients.Minibatch(LOGISTIC, size=3)),
    "Zig-Zag, terms": lambda: pdmp.ZigZag(TERMS),
    "SBPS, bounded batches": lambda: pdmp.LipschitzSBPS(pdmp.gradients.Minibatch(LOGISTIC, size=3)),
    "local BPS, grid": lambda: pdmp.LocalBPS(LOGISTIC, thinning="grid"),
    "local BPS": lambda: pdmp.LocalBPS(LOGISTIC),
    "coordinate sampler": lambda: pdmp.CoordinateSampler(LOGISTIC),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", CLOCKS)
@np.errstate(all="ignore")
def test_what_is_not_a_number_is_no_waiting_time(name):
    """A rate that is not a number is told from one that is 0, whose clock never proposes: the loop stops there."""
    process = CLOCKS[name]().resolve(np.zeros(2))

    def lost():
        state = process.begin(np.array([0.3, 0.2]), np.random.default_rng(1))
        state.x[0] = math.nan
        return state

    time, bound = process.native.clock(lost(), 0, 0.0, np.random.default_rng(2))
    assert math.isnan(time) or math.isnan(bound) or name in ("BPS, constant", "local BPS")
    assert math.isnan(process.native.rate(lost(), 0, 0.1, np.random.default_rng(2)))
    if name.startswith("Boomerang"):
        state = lost()
        assert process.native.jump(state, 0, 0.1, np.random.default_rng(2)) == -1 and np.all(np.isfinite(state.v))
