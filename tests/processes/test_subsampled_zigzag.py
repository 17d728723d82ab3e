"""Zig-Zag with exact sub-sampling, with speeds and with excess rates: its rates, bounds, events and laws."""

import copy
import functools
import itertools
import pickle

import numpy as np
import pytest
from numba.core import config
from scipy.special import expit

import pdmp
from pdmp.gradients import ControlVariate, Minibatch
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression
from pdmp.native.classes import entry
from tests.checks import assert_exponential, assert_unbiased, in_ci, new_chain, plain_only, replicate
from tests.statistics.helpers_events import integral_of_positive_part

JIT = not config.DISABLE_JIT
N, D = 8, 2
RNG = np.random.default_rng(91)
FEATURES = RNG.standard_t(3, size=(N, D)) * [1.0, 3.0]
LABELS = np.arange(N) % 2
SIGNED = FEATURES * (2.0 * LABELS - 1.0)[:, None]
PRECISION = np.array([4.0, 0.25])
MODEL = LogisticRegression(FEATURES, LABELS, prior_scale=PRECISION**-0.5)
ANCHOR = np.array([0.2, -0.1])  # not the mode: the part that is known has a gradient too
SPEED, EXCESS = np.array([0.5, 2.0]), np.array([0.3, 0.0])

PROVIDERS = {
    "uniform": ControlVariate(MODEL, 1, anchor=ANCHOR),
    "importance": ControlVariate(MODEL, 1, anchor=ANCHOR, draw="importance"),
    "importance of two": ControlVariate(MODEL, 2, anchor=ANCHOR, draw="importance"),
    "batch": Minibatch(MODEL, 1),
    "batch of two": Minibatch(MODEL, 2),
    "distinct": Minibatch(MODEL, 2, draw="distinct"),
}


@functools.cache
def process(name, plain=False):
    options = {} if plain else {"metric": pdmp.Metric(scales=SPEED), "refresh_rate": EXCESS}
    return pdmp.ZigZag(PROVIDERS[name], **options)


def term_gradients(x):
    """∇Uᵢ at points x (..., D), shape (..., N, D)."""
    x = np.asarray(x)
    return -expit(-(x @ SIGNED.T))[..., None] * SIGNED


def batches(name, speed=SPEED):
    """All batches, their probabilities, and the weights of their data."""
    p = np.full(N, 1.0 / N)
    if "importance" in name:
        scaled = FEATURES * speed
        p = np.abs(scaled).sum(axis=1) * np.linalg.norm(scaled, axis=1)
        p /= p.sum()
    n = PROVIDERS[name].size
    rows = list(itertools.permutations(range(N), n) if name == "distinct" else itertools.product(range(N), repeat=n))
    rows = np.array(rows)
    chance = np.full(len(rows), 1.0 / len(rows)) if name == "distinct" else p[rows].prod(axis=1)
    return rows, chance, 1.0 / (n * p[rows])


def estimates(name, x, speed=SPEED):
    """The estimates of ∇U from all batches at x (..., D), shape (..., batches, D)."""
    rows, _, weights = batches(name, speed)
    terms, base = term_gradients(x), np.zeros(D)
    if not name.startswith(("batch", "distinct")):
        terms = terms - term_gradients(ANCHOR)
        base = term_gradients(ANCHOR).sum(axis=0)
    return (weights[..., None] * terms[..., rows, :]).sum(axis=-2) + (base + PRECISION * x)[..., None, :]


def rates(name, x, v, speed=SPEED, excess=EXCESS):
    """The flip rates at (x, v), (..., D): expectations over batches."""
    positive = np.maximum(0.0, v[..., None, :] * estimates(name, x, speed))
    return (batches(name, speed)[1][:, None] * positive).sum(axis=-2) + excess


class Constantly:
    """A generator whose numbers are all the same."""

    def __init__(self, u):
        self.u = u

    def random(self):
        return self.u

    def standard_exponential(self):
        return self.u


def look(process, x, v, wait=0.7):
    """A state at x with velocity v whose clock was asked at time 0, and when it proposes."""
    state = process.begin(np.array(x, dtype=float), np.random.default_rng(0))
    state.v[:] = v
    time, bound = process.native.clock(state, 0, 0.0, Constantly(wait))
    return state, time, bound


@pytest.mark.exact
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_proposal_flips_each_coordinate_at_the_papers_rate(name):
    """For all batches: given the batch, coordinates are drawn in proportion to bounds that add up to the clock's."""
    sampler = process(name)
    rows, chance, weights = batches(name)
    for seed in range(3):
        x, signs = np.random.default_rng(seed).normal(size=D), np.random.default_rng(seed).choice([-1.0, 1.0], D)
        v = signs * SPEED
        state, time, bound = look(sampler, x, v)
        there = x + v * time
        expected = np.maximum(0.0, v * estimates(name, there)) + EXCESS
        found = np.zeros((len(rows), D))
        for b in range(len(rows)):
            for j in range(D):
                memory, u = state.memory, 0.5
                for _ in range(2):  # the first call is for the bounds
                    memory.turn[0] = 0
                    memory.rows[0], memory.weights[0] = rows[b], weights[b]
                    rate = sampler.native.rate(state, 0, time, Constantly(u))
                    total = memory.bounds.sum()
                    u = (memory.bounds[:j].sum() + 0.5 * memory.bounds[j]) / total
                assert total == pytest.approx(bound, rel=1e-12)
                assert memory.flipping[0] == j
                assert rate <= bound * (1.0 + 1e-12)
                found[b, j] = rate * memory.bounds[j] / total
                assert sampler.native.touches(state, 0) == (j, j + 1)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(chance @ found, rates(name, there, v), rtol=1e-8, atol=1e-9)


@pytest.mark.exact
@pytest.mark.parametrize("name", PROVIDERS)
def test_rates_balance_the_flow(name):
    """λⱼ(x, v) - λⱼ(x, Fⱼv) = vⱼ ∂ⱼU(x), whatever the batches."""
    assert batches(name)[1].sum() == pytest.approx(1.0, rel=1e-12)
    for seed in range(10):
        x, v = np.random.default_rng(seed).normal(size=(2, D))
        difference = rates(name, x, v) - rates(name, x, -v)
        np.testing.assert_allclose(difference, v * MODEL.gradient(x), rtol=1e-9, atol=1e-12)


@pytest.mark.exact
@pytest.mark.parametrize("name", PROVIDERS)
def test_what_the_clocks_are_checked_against(name):
    x, v, out = np.array([0.7, -1.3]), np.array([0.5, -2.0]), np.zeros(D)
    process(name).native.true_rates(x, v, np.zeros(D), out)
    if PROVIDERS[name].size == 1:
        np.testing.assert_allclose(out, rates(name, x, v), rtol=1e-9)
    else:
        assert np.all(np.isnan(out))
    exact = pdmp.ZigZag(MODEL, metric=pdmp.Metric(scales=SPEED), refresh_rate=EXCESS)
    exact.native.true_rates(x, v, np.zeros(D), out)
    np.testing.assert_allclose(np.maximum(out, 0.0), np.maximum(v * MODEL.gradient(x), 0.0) + EXCESS, rtol=1e-9)


@pytest.mark.exact
@pytest.mark.parametrize("name", PROVIDERS)
def test_the_clocks_bound_is_the_papers(name):
    sampler = process(name)
    scaled = FEATURES * SPEED
    lipschitz = 0.25 * np.abs(scaled) * np.linalg.norm(scaled, axis=1)[:, None]
    x, v = np.array([0.7, -1.3]), np.array([1.0, -1.0]) * SPEED
    base = PRECISION * x
    if name.startswith(("batch", "distinct")):
        constant, slope = N * np.abs(scaled).max(axis=0).sum(), 0.0
    else:
        total = N * lipschitz.max(axis=0).sum() if name == "uniform" else lipschitz.sum()
        constant, slope = total * np.linalg.norm((x - ANCHOR) / SPEED), total * np.sqrt(D)
        base = base + term_gradients(ANCHOR).sum(axis=0)
    level = np.maximum(0.0, v * base).sum() + EXCESS.sum() + constant
    slope += (PRECISION * v**2).sum()
    for wait in (0.01, 1.0, 30.0):
        _, time, bound = look(sampler, x, v, wait)
        assert level * time + 0.5 * slope * time**2 == pytest.approx(wait, rel=1e-10)
        assert bound == pytest.approx(level + slope * time, rel=1e-12)


@entry
def highest(process, state, xs, vs, rng):
    """The largest rate / bound from many states, and the mean."""
    worst, total = 0.0, 0.0
    for k in range(xs.shape[0]):
        for j in range(xs.shape[1]):
            state.x[j], state.v[j], state.moved[j] = xs[k, j], vs[k, j], 0.0
        state.memory.at[0] = -1.0
        time, bound = process.clock(state, 0, 0.0, rng)
        ratio = process.rate(state, 0, time, rng) / bound
        worst, total = max(worst, ratio), total + ratio
    return worst, total / xs.shape[0]


@pytest.mark.exact
@pytest.mark.parametrize("name", ["uniform", "importance", "batch"])
def test_bounds_are_never_violated_and_are_reached(name):
    n = 100_000 if JIT else 3_000
    generator = np.random.default_rng(5)
    xs = generator.normal(size=(n, D)) * generator.exponential(1.0, size=(n, 1)) + ANCHOR
    xs[: n // 3] = ANCHOR + 1e-3 * generator.normal(size=(n // 3, D))
    vs = generator.choice([-1.0, 1.0], size=(n, D)) * SPEED
    sampler = process(name)
    state = sampler.begin(ANCHOR, generator)
    worst, mean = highest(sampler.native, state, xs, vs, generator)
    assert 0.8 < worst <= 1.0 + 1e-9
    assert 0.02 < mean < 0.9


@pytest.mark.exact
def test_data_are_drawn_ahead_without_changing_what_they_are():
    """Each batch is used once, in the order in which it was begun."""
    sampler = process("batch")
    state = sampler.begin(ANCHOR, np.random.default_rng(0))
    memory, generator, used = state.memory, np.random.default_rng(1), []
    for _ in range(50):
        b = sampler.rates.native.next_batch(sampler.provider.native, memory, generator)
        used.append(memory.rows[b, 0])
    same = np.random.default_rng(1)
    np.testing.assert_array_equal(used, [int(same.random() * N) for _ in range(50)])


@pytest.mark.exact
@pytest.mark.parametrize("name", ["importance of two", "distinct"])
def test_every_datum_has_its_share_and_its_weight(name):
    scaled = FEATURES * SPEED
    p = np.abs(scaled).sum(axis=1) * np.linalg.norm(scaled, axis=1)
    p = np.full(N, 1.0 / N) if name == "distinct" else p / p.sum()
    sampler, generator, count, n = process(name), np.random.default_rng(2), np.zeros(N), 3_000
    memory = sampler.begin(ANCHOR, np.random.default_rng(0)).memory
    for _ in range(n):
        b = sampler.rates.native.next_batch(sampler.provider.native, memory, generator)
        rows = memory.rows[b]
        assert name != "distinct" or len(set(rows)) == 2
        np.testing.assert_allclose(memory.weights[b], 0.5 / p[rows], rtol=1e-12)
        np.add.at(count, rows, 0.5 / n)
    assert np.abs(count - p).max() < 5.5 * np.sqrt(p.max() / n)


@plain_only
@pytest.mark.exact
def test_excess_rates_compete_with_the_flips():
    speed, excess = np.array([0.5, 1.0, 2.0]), np.array([50.0, 0.0, 100.0])
    for thinning in ("inversion", "affine"):
        times = []
        for rate in (0.0, excess):
            sampler = pdmp.ZigZag(Gaussian(MEAN, THREE), thinning, metric=pdmp.Metric(scales=speed), refresh_rate=rate)
            state = sampler.begin(MEAN + 0.1, np.random.default_rng(0))
            times.append([sampler.native.clock(state, i, 0.0, Constantly(0.7)) for i in range(sampler.clocks)])
        plain, found = times
        if thinning == "inversion":
            assert found == [(0.7 / 50.0, np.inf), plain[1], (0.7 / 100.0, np.inf)]
        else:
            assert found == [(0.7 / 150.0, np.inf)] and plain[0][0] > 0.1
            assert state.memory.flipping[0] == 2  # 0.7 of the sum of the rates lies in the last one


@plain_only
@pytest.mark.exact
def test_counts_of_data_and_of_flips():
    for name in ("importance of two", "batch"):
        run = pdmp.sample(process(name), events=30, seed=1)
        size = PROVIDERS[name].size
        assert run.stats["data_terms"] == size * run.stats["proposals"]
        path = run.trajectories[0]
        assert np.all(np.abs(path.velocities) == SPEED)
        assert np.all((path.velocities[1:] != path.velocities[:-1]).sum(axis=1) == 1)


@pytest.mark.exact
@pytest.mark.parametrize("name", ["importance", "distinct"])
def test_the_path_is_a_function_of_the_seed_alone(name):
    """Whatever the chunks, and when a stored chain is taken up again."""

    def path(chain):
        record = chain.finish()
        return [record.times, record.which, record.xs, record.vs, record.counts, chain.state.x]

    options = {"proposals": 150, "warmup": 0.25}
    whole = path(new_chain(process(name), ANCHOR, 3, **options).advance())
    for stop in (1, 7, 40):
        pieces = new_chain(process(name), ANCHOR, 3, **options)
        pieces.chunk = stop
        pieces.advance(seconds=0.0)
        header, arrays = pieces.pack(pieces.snapshot(), "chain")
        fresh = new_chain(process(name), ANCHOR, 3, **options)
        fresh.restore(header, arrays, "chain")
        for a, b in zip(whole, path(fresh.advance()), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.exact
def test_speeds_are_the_providers_units_and_auto_is_a_standard_deviation():
    sampler = pdmp.ZigZag(PROVIDERS["importance"], metric="auto").resolve(ANCHOR)
    speed = 1.0 / np.sqrt(np.diag(MODEL.hessian(ANCHOR)))
    np.testing.assert_allclose(sampler.speed, speed, rtol=1e-12)
    np.testing.assert_array_equal(sampler.provider.scale, sampler.speed)
    np.testing.assert_array_equal(PROVIDERS["importance"].scale, 1.0)
    p = batches("importance", speed)[1]
    np.testing.assert_allclose(sampler.provider.drawing.alias.probabilities(), p, rtol=1e-9)
    assert set(np.abs(sampler.velocity(ANCHOR, np.random.default_rng(1)))) == set(sampler.speed)
    gaussian = pdmp.ZigZag(Gaussian(0.0, [4.0, 0.25]), metric="auto").resolve(np.zeros(2))
    np.testing.assert_array_equal(gaussian.speed, [0.5, 2.0])
    for again in (pickle.loads(pickle.dumps(sampler)), copy.copy(sampler)):
        assert type(again) is pdmp.ZigZag and again.thinning.total == sampler.thinning.total
    assert type(gaussian) is pdmp.ZigZag


class Unknown(pdmp.Model):
    """Bounds on its term, but none on the slope of its prior."""

    def __init__(self):
        super().__init__(dim=1, n_data=2)

    @pdmp.compiled
    def prior_potential(self, x):
        return x[0] ** 4

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += 4.0 * x[0] ** 3

    @pdmp.compiled
    def term_potential(self, x, i):
        return abs(x[0])

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += np.sign(x[0])

    @pdmp.compiled
    def term_gradient_bounds(self, i, out):
        out[0] = 1.0


LINEAR = LinearGaussian(FEATURES, LABELS)
BAD = {
    "epoch": (lambda: pdmp.ZigZag(Minibatch(MODEL, 2, "epoch")), TypeError, "draw='epoch'.*use draw=\"iid\" or"),
    "reshuffle": (lambda: pdmp.ZigZag(Minibatch(MODEL, 2, "reshuffle")), TypeError, "independent.*draw='reshuffle'"),
    "noise": (lambda: pdmp.ZigZag(pdmp.gradients.Noisy(MODEL, 1.0)), TypeError, "got a Noisy. pdmp.SBPS"),
    "no bounds": (
        lambda: pdmp.ZigZag(Minibatch(LINEAR, 1)),
        ValueError,
        "LinearGaussian .*`term_gradient_bounds`.*ControlV",
    ),
    "no prior": (lambda: pdmp.ZigZag(Minibatch(Unknown(), 1)), ValueError, "Unknown has no `prior_partial`"),
    "no Lipschitz": (
        lambda: pdmp.ZigZag(ControlVariate(Unknown(), 1, anchor=[0.0])),
        ValueError,
        "Unknown has no `term_lipschitz`",
    ),
    "thinning": (lambda: pdmp.ZigZag(PROVIDERS["batch"], "grid"), ValueError, "`thinning` must be \"auto\" .*'grid'"),
    "thinning, an object": (
        lambda: pdmp.ZigZag(PROVIDERS["batch"], pdmp.thinning.Grid()),
        ValueError,
        '`thinning` must be "auto" .*Grid',
    ),
    "speed zero": (
        lambda: pdmp.ZigZag(MODEL, metric=pdmp.Metric(scales=0.0)),
        ValueError,
        "`scales` must be positive definite; got 0",
    ),
    "speed nan": (
        lambda: pdmp.ZigZag(PROVIDERS["batch"], metric=pdmp.Metric(scales=np.nan)),
        ValueError,
        "`scales` must be finite",
    ),
    "speed shape": (
        lambda: pdmp.ZigZag(MODEL, metric=pdmp.Metric(scales=[1.0] * 3)),
        ValueError,
        r"`metric` .* shape \(2,\)",
    ),
    "speed word": (
        lambda: pdmp.ZigZag(MODEL, metric="fast"),
        ValueError,
        "`metric` of pdmp.ZigZag must be .*'fast'",
    ),
    "rate": (
        lambda: pdmp.ZigZag(MODEL, refresh_rate=-1.0),
        ValueError,
        "`refresh_rate` must be finite and at least 0.*-1.0",
    ),
    "rates": (
        lambda: pdmp.ZigZag(MODEL, refresh_rate=[0.0, np.inf]),
        ValueError,
        "`refresh_rate` must be finite and at least 0",
    ),
    "flat": (
        lambda: pdmp.ZigZag(pdmp.models.SkewNormal(1.0), metric="auto").resolve(np.array([np.nan])),
        ValueError,
        '`metric="auto"` needs positive curvatures.*coordinate 0',
    ),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


class Boastful(LogisticRegression):
    """States half the bounds that hold."""

    @pdmp.compiled
    def term_gradient_bounds(self, i, out):
        for j in range(self.dim):
            out[j] = 0.3 * abs(self.feature(i, j))


@pytest.mark.exact
@pytest.mark.skipif(JIT, reason="a model of its own takes seconds to compile, and the loop is the same")
def test_a_bound_that_does_not_hold_is_an_error_that_names_it():
    model = Boastful(FEATURES, LABELS)
    with pytest.raises(pdmp.SamplingError, match="the bound on single terms, `term_gradient_bounds` of Boastful"):
        pdmp.sample(pdmp.ZigZag(Minibatch(model, 1)), events=300, seed=1, initial=[0.0, 0.0])


# ---------------------------------------------------------------------------------------------------------------
# Events

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


@pytest.mark.parametrize("name", in_ci(["importance", "distinct", "uniform", "batch"], "importance"))
def test_each_coordinate_flips_at_its_rate(name):
    path = pdmp.sample(process(name), events=75_000, seed=41).trajectories[0]
    x, v, s = path.positions[:-1], path.velocities[:-1], np.diff(path.times)
    hazards = np.zeros((len(s), D))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        hazards += 0.5 * weight * s[:, None] * rates(name, x + v * (0.5 * s * (node + 1.0))[:, None], v)
    flipped = np.argmax(path.velocities[1:] != path.velocities[:-1], axis=1)
    for j in range(D):
        assert_exponential(np.diff(np.cumsum(hazards[:, j])[flipped == j]), resolution=0.07)


THREE = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("thinning", ["inversion", "affine"])
def test_speeds_and_excess_rates_with_the_exact_gradient(thinning):
    speed, excess = np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.0, 1.0])
    sampler = pdmp.ZigZag(Gaussian(MEAN, THREE), thinning, metric=pdmp.Metric(scales=speed), refresh_rate=excess)
    path = pdmp.sample(sampler, events=60_000, seed=42).trajectories[0]
    x, v, s = path.positions[:-1], path.velocities[:-1], np.diff(path.times)
    flipped = np.argmax(path.velocities[1:] != path.velocities[:-1], axis=1)
    for j in range(3):
        assert np.all(np.abs(v[:, j]) == speed[j])
        a, b = v[:, j] * ((x - MEAN) @ THREE[j]), v[:, j] * (v @ THREE[j])
        hazards = integral_of_positive_part(a, b, s) + excess[j] * s
        assert_exponential(np.diff(np.cumsum(hazards)[flipped == j]), resolution=0.09)


# ---------------------------------------------------------------------------------------------------------------
# Laws


@functools.cache
def law():
    """Means and variances by quadrature on a lattice, which for smooth densities is exact to many digits."""
    mode, hessian = MODEL.mode(), MODEL.hessian(MODEL.mode())
    spread = 9.0 / np.sqrt(np.linalg.eigvalsh(hessian)[0])
    grid = np.linspace(-spread, spread, 801)
    points = mode + np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    u = np.logaddexp(0.0, -(points @ SIGNED.T)).sum(axis=-1) + 0.5 * (PRECISION * points**2).sum(axis=-1)
    density = np.exp(u.min() - u)
    density /= density.sum()
    mean = np.einsum("ij,ijk->k", density, points)
    return mean, np.einsum("ij,ijk->k", density, (points - mean) ** 2)


@pytest.mark.parametrize("name", in_ci(["importance", "importance of two", "distinct", "uniform", "batch"], "distinct"))
def test_the_law_is_the_posterior_without_error(name):
    mean, variance = law()
    found = replicate(process(name), ANCHOR, 24, seed=43, warmup=0.02, events=60_000)
    assert_unbiased((found.mean - mean) / np.sqrt(variance), 0.0, resolution=0.05)
    assert_unbiased(found.var / variance, 1.0, resolution=0.08)


@pytest.mark.exact
@plain_only
def test_rows_of_a_file_are_drawn_far_ahead_and_asked_for(tmp_path, monkeypatch):
    """Whether they are asked for changes no path, and a run that goes on is the run that was not interrupted."""
    from pdmp.models.regressions import design

    assert design.KEPT_SHARE == 0.25
    rng, asked = np.random.default_rng(3), []
    X = rng.standard_normal((300, 2))
    y = (rng.random(300) < 0.5).astype(float)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(design, "ask", lambda rows, i: asked.append(int(i)))
    runs = {}
    for share in (1.0, 0.0):
        monkeypatch.setattr(design, "KEPT_SHARE", share)
        model = LogisticRegression(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
        process = pdmp.ZigZag(ControlVariate(model, 1, anchor=[0.0, 0.0], draw="importance"))
        options = {"seed": 4, "initial": [0.0, 0.0], "progress": False}
        assert not asked
        runs[share] = pdmp.sample(process, proposals=300, **options)
        assert len(asked) == (0 if share else 300 + 64)  # a half of the ring ahead
        asked.clear()
        pdmp.sample(process, proposals=100, checkpoint=tmp_path / f"{share}", **options)
        runs[share, "resumed"] = pdmp.sample(process, proposals=300, checkpoint=tmp_path / f"{share}", **options)
        asked.clear()
    for run in runs.values():
        assert len(run.trajectories[0].times) > 10
        np.testing.assert_array_equal(run.trajectories[0].positions, runs[1.0].trajectories[0].positions)
        np.testing.assert_array_equal(run.trajectories[0].times, runs[1.0].trajectories[0].times)
    memory = pdmp.ZigZag(ControlVariate(LogisticRegression(X, y), 1, anchor=[0.0, 0.0])).memory(np.zeros(2), rng)
    assert len(memory.rows) == 16 and not LogisticRegression(X, y).in_file
