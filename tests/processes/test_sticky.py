"""Sticky processes: freezing and thawing, their rates, what is accumulated of a path, what is refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import config
from scipy import sparse, special, stats

import pdmp
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression
from pdmp.models.priors import BetaBernoulli
from pdmp.processes import sticky
from pdmp.processes.sticky import KEPT_VELOCITY, thawing_rates
from tests.checks import assert_unbiased, plain_only, run_chain

pytestmark = pytest.mark.exact

RNG = np.random.default_rng(81)
A = RNG.standard_normal((12, 4))
RESPONSE = A @ [0.8, 0.0, 0.2, -0.4] + RNG.standard_normal(12)
MODEL = LinearGaussian(A, RESPONSE, prior_scale=1.3)
LOGISTIC = LogisticRegression(A, np.arange(12) % 2)
INCLUSION = [0.3, 0.5, 0.6, 0.4]
SPARSE = Gaussian(0.3, sparse.diags([-np.ones(39), np.full(40, 2.5), -np.ones(39)], [-1, 0, 1]))


def bps(target, refresh_rate=0.5, **options):
    return pdmp.BPS(target, refresh_rate, velocities="gaussian", **options)


def boomerang(target, mean=None, metric="diagonal", **options):
    return pdmp.Boomerang(target, mean, metric=metric, **options)


CASES = {
    "ZigZag": lambda: pdmp.Sticky(pdmp.ZigZag(MODEL), INCLUSION, always=[2]),
    "BPS": lambda: pdmp.Sticky(bps(MODEL), INCLUSION, always=[2]),
    "ZigZag, one clock": lambda: pdmp.Sticky(pdmp.ZigZag(MODEL, thinning="affine"), INCLUSION, always=[2]),
    "BPS, grid": lambda: pdmp.Sticky(bps(MODEL, thinning="grid"), INCLUSION, always=[2]),
    "Boomerang": lambda: pdmp.Sticky(boomerang(MODEL), INCLUSION, always=[2]),
    "BPS, partly refreshed": lambda: pdmp.Sticky(
        bps(MODEL, refresh="partial", thinning="affine"), INCLUSION, always=[2]
    ),
}
STICKING, ALWAYS = [0, 1, 3], 2
if not config.DISABLE_JIT:
    CASES = {name: CASES[name] for name in ("ZigZag", "BPS", "Boomerang")}


def rng(seed=0):
    return np.random.default_rng(seed)


# ---------------------------------------------------------------------------------------------------------------
# Rates


def test_the_thawing_rate_balances_the_flux_through_the_spike():
    """Per unit of slab posterior at 0 the spike weighs (1 - w) / (w s(0)); out of it flows κ|v| of that, in |v|."""
    process = pdmp.Sticky(pdmp.ZigZag(MODEL), INCLUSION)
    slab = stats.norm.pdf(0.0, scale=1.3)
    w = np.array(INCLUSION)
    np.testing.assert_allclose((1.0 - w) / (w * slab) * process.kappa, 1.0, rtol=1e-13)
    state = process.begin(np.zeros(4), rng())
    for v in (-1.0, 0.3, 2.5):
        state.memory.coordinates[1, KEPT_VELOCITY] = v
        assert process.native.thawing(state, 1) == pytest.approx(process.kappa[1] * abs(v), rel=1e-14)


def test_the_slab_is_read_from_the_model_where_it_can_say():
    X = RNG.standard_normal((10, 2))
    logistic = LogisticRegression(X, np.arange(10) % 2, prior_scale=[0.5, 2.0])
    np.testing.assert_allclose(logistic.slab_density(), stats.norm.pdf(0.0, scale=[0.5, 2.0]), rtol=1e-13)
    np.testing.assert_allclose(MODEL.slab_density(), stats.norm.pdf(0.0, scale=1.3), rtol=1e-13)
    target = Gaussian([0.0, 1.0], [1.0, 2.0])
    assert target.slab_density() is None
    given = pdmp.Sticky(bps(target), 0.2, slab_density=[0.4, 0.8])
    np.testing.assert_allclose(given.kappa, [0.1, 0.2], rtol=1e-14)
    np.testing.assert_array_equal(pdmp.Sticky(pdmp.ZigZag(target), kappa=[0.1, 0.2]).kappa, [0.1, 0.2])
    np.testing.assert_array_equal(pdmp.Sticky(pdmp.ZigZag(target), kappa=0.1, always=[1]).kappa, [0.1, 0.0])
    mask = pdmp.Sticky(pdmp.ZigZag(target), kappa=0.1, always=[True, False])
    np.testing.assert_array_equal(mask.sticking, [1])


@plain_only
def test_bounces_and_refreshments_concern_the_coordinates_that_move():
    process = bps(MODEL).among_moving()
    kernel = process.resolve(np.zeros(4)).native
    for seed in range(10):
        v, a = rng(seed).standard_normal((2, 4))
        v[[0, 2]] = 0.0
        w = v.copy()
        kernel.bounce(w, a, np.zeros((2, len(w))), rng())
        active = [1, 3]
        np.testing.assert_array_equal(w[[0, 2]], 0.0)
        expected = v[active] - 2.0 * (v @ a) / (a[active] @ a[active]) * a[active]
        np.testing.assert_allclose(w[active], expected, rtol=1e-13)
        assert w @ a == pytest.approx(-(v @ a), rel=1e-12)
        assert np.linalg.norm(w) == pytest.approx(np.linalg.norm(v), rel=1e-13)
    drawn, generator = np.zeros((20_000, 4)), rng(1)
    for u in drawn:
        u[[1, 3]] = 5.0
        kernel.refresh(u, np.zeros(4), generator)
    assert np.all(drawn[:, [0, 2]] == 0.0)
    for j in (1, 3):
        assert stats.kstest(drawn[:, j], "norm").pvalue > 1e-6
    partly = bps(MODEL, refresh="partial", persistence=0.6).among_moving().native
    pairs, generator = rng(2).standard_normal((20_000, 4)), rng(3)
    before = pairs.copy()
    for u in pairs:
        partly.refresh(u, np.zeros(4), generator)
    assert stats.kstest(pairs[:, 0], "norm").pvalue > 1e-6
    assert np.corrcoef(before[:, 0], pairs[:, 0])[0, 1] == pytest.approx(0.6, abs=0.03)  # six standard errors


# ---------------------------------------------------------------------------------------------------------------
# Paths


def frozen(path):
    """Whether each coordinate stands still after each event, (K + 1, d)."""
    return (path.positions == 0.0) & (path.velocities == 0.0)


@plain_only
@pytest.mark.parametrize("name", CASES)
def test_coordinates_freeze_at_zero_exactly_and_go_on_as_they_came(name):
    path = pdmp.sample(CASES[name](), events=300, seed=3).trajectories[0]
    kinds = [path.events[k] for k in path.kinds]
    xs, vs, still = path.positions, path.velocities, frozen(path)
    assert kinds.count("freeze") > 20 and kinds.count("thaw") > 20
    kept, gaps = np.full(4, np.nan), np.diff(path.times)[:, None]
    before, arrived = xs[:-1] + vs[:-1] * gaps, vs[:-1]
    if path.kind == "elliptic":
        y = np.where(still[:-1], 0.0, xs[:-1] - path.centre)
        before = xs[:-1] - y + y * np.cos(gaps) + vs[:-1] * np.sin(gaps)
        arrived = vs[:-1] * np.cos(gaps) - y * np.sin(gaps)
    for k, kind in enumerate(kinds, 1):
        changed = np.flatnonzero(still[k] != still[k - 1])
        if kind == "freeze":
            (j,) = changed
            kept[j] = arrived[k - 1, j]
            assert before[k - 1, j] == pytest.approx(0.0, abs=1e-12)
            assert still[k, j] and j != ALWAYS
        elif kind == "thaw":
            (j,) = changed
            assert still[k - 1, j] and xs[k, j] == 0.0
            assert np.isnan(kept[j]) or vs[k, j] == pytest.approx(kept[j], rel=1e-9)
        else:
            assert len(changed) == 0
    # Nothing that sticks passes through 0 without freezing.
    assert np.all(xs[1:, STICKING] * xs[:-1, STICKING] >= 0.0)
    assert np.any(xs[1:, ALWAYS] * xs[:-1, ALWAYS] < 0.0)
    np.testing.assert_allclose(xs[1:], before, atol=1e-12)
    if name.startswith("ZigZag"):
        assert set(np.unique(vs)) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("name", CASES)
def test_what_is_accumulated_is_what_the_path_says(name):
    options = {"events": 200, "warmup": 0.3, "chains": 2, "seed": 4}
    run = pdmp.sample(CASES[name](), **options)
    included, models, length = np.zeros(4), {}, 0.0
    for path in run.trajectories:
        knots = np.concatenate([path.times, [path.end]])
        h = np.diff(np.maximum(knots, path.warmup))
        moving = ~frozen(path)
        included += h @ moving
        length += h.sum()
        for row, time in zip(moving[:, STICKING], h, strict=True):
            name_ = tuple(np.array(STICKING)[row].tolist())
            models[name_] = models.get(name_, 0.0) + time
    np.testing.assert_allclose(pdmp.diagnostics.inclusion(run), included / length, rtol=1e-11)
    assert pdmp.diagnostics.inclusion(run)[ALWAYS] == pytest.approx(1.0, rel=1e-13) and np.all(
        pdmp.diagnostics.inclusion(run)[STICKING] < 1.0
    )
    probabilities = pdmp.diagnostics.sparsity(run)
    assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)
    assert sum(probabilities.values()) == pytest.approx(1.0, rel=1e-11)
    for model, time in models.items():
        assert probabilities.get(model, 0.0) == pytest.approx(time / length, rel=1e-9, abs=1e-12)
    moments = pdmp.sample(CASES[name](), store="moments", **options)
    np.testing.assert_array_equal(pdmp.diagnostics.inclusion(moments), pdmp.diagnostics.inclusion(run))
    assert pdmp.diagnostics.sparsity(moments) == probabilities


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_went_on_has_accumulated_the_same(name):
    from pdmp.engine.run import extend

    whole = pdmp.sample(CASES[name](), events=300, seed=5)
    parts = extend(pdmp.sample(CASES[name](), events=100, seed=5), events=300)
    np.testing.assert_array_equal(pdmp.diagnostics.inclusion(whole), pdmp.diagnostics.inclusion(parts))


def test_with_many_coordinates_models_are_read_from_the_skeleton(monkeypatch):
    listed = pdmp.sample(CASES["BPS"](), events=300, seed=6, warmup=0.2)
    monkeypatch.setattr(sticky, "LISTED", 2)
    read = pdmp.sample(CASES["BPS"](), events=300, seed=6, warmup=0.2)
    one, other = pdmp.diagnostics.sparsity(listed), pdmp.diagnostics.sparsity(read)
    assert one.keys() == other.keys()
    for name, probability in one.items():
        assert other[name] == pytest.approx(probability, rel=1e-9)
    moments = pdmp.sample(CASES["BPS"](), events=300, seed=6, store="moments")
    with pytest.raises(ValueError, match="needs the path"):
        pdmp.diagnostics.sparsity(moments)


def test_inclusion_survives_a_file(tmp_path):
    run = pdmp.sample(CASES["ZigZag"](), events=150, seed=7, chains=2)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(pdmp.diagnostics.inclusion(loaded), pdmp.diagnostics.inclusion(run))
    assert pdmp.diagnostics.sparsity(loaded) == pdmp.diagnostics.sparsity(run)


def test_coordinates_that_start_at_zero_start_frozen():
    path = pdmp.sample(CASES["ZigZag"](), initial=[0.5, 0.0, 0.0, 1.0], events=20, seed=1).trajectories[0]
    np.testing.assert_array_equal(frozen(path)[0], [False, True, False, False])
    assert abs(path.velocities[0, ALWAYS]) == 1.0


def test_on_sparse_targets_an_event_concerns_its_neighbours_alone():
    process = pdmp.Sticky(pdmp.ZigZag(SPARSE), kappa=0.5)
    assert process.local and process.clocks == 80
    for i, expected in ((5, [45, 4, 5, 6]), (45, [45, 4, 5, 6])):
        assert process.order[process.start[i] : process.start[i + 1]].tolist() == expected
    chain = run_chain(process, np.full(40, 0.3), 3, events=400)
    assert len(chain.finish().times) == 400  # one coordinate each


@plain_only
def test_thawing_is_exponential_at_the_rate_of_the_speed():
    """Time frozen times κ|v| is Exp(1), for speeds that differ; each clock of the process within keeps its own."""
    model = Gaussian([0.1, -0.1], [1.0, 2.0])
    process = pdmp.Sticky(bps(model, 1.0), kappa=[0.7, 0.3])
    path = pdmp.sample(process, events=3_000, seed=9).trajectories[0]
    still, since, gaps = frozen(path), np.full(2, np.nan), []
    for k in range(1, len(still)):
        for j in np.flatnonzero(still[k] != still[k - 1]):
            if still[k, j]:
                since[j] = path.times[k]
            elif np.isfinite(since[j]):
                gaps.append((path.times[k] - since[j]) * process.kappa[j] * abs(path.velocities[k, j]))
    gaps = np.array(gaps)
    assert len(gaps) > 300
    assert stats.kstest(gaps, "expon").pvalue > 1e-6
    assert abs(gaps.mean() - 1.0) < 5.0 / math.sqrt(len(gaps))


@plain_only
def test_of_several_frozen_coordinates_each_thaws_at_its_own_rate():
    process, generator = pdmp.Sticky(bps(MODEL), kappa=[1.0, 2.0, 3.0, 4.0]), rng(1)
    state = process.begin(np.zeros(4), generator)
    state.memory.coordinates[:, KEPT_VELOCITY] = [-1.0, 2.0, 0.5, -0.25]
    rates, first, waits = np.array([1.0, 4.0, 1.5, 1.0]), np.zeros(4), []
    for _ in range(5_000):
        time, _ = process.native.clock(state, process.first, 2.0, generator)
        first[state.memory.next[0]] += 1
        waits.append(time - 2.0)
    assert stats.chisquare(first, 5_000 * rates / rates.sum()).pvalue > 1e-6
    assert stats.kstest(np.array(waits) * rates.sum(), "expon").pvalue > 1e-6


@pytest.mark.parametrize("name", ["ZigZag", "ZigZag, one clock"])
def test_a_prior_of_the_models_size(name):
    """Frozen coordinates thaw at s(0) p(γ ∪ i) / p(γ); all are redrawn when one of them has frozen or thawed."""
    a, b = 2.0, 0.5
    options = {"thinning": "affine"} if name.endswith("clock") else {}
    process = pdmp.Sticky(pdmp.ZigZag(MODEL, **options), BetaBernoulli(a, b), always=[2])
    slab = stats.norm.pdf(0.0, scale=1.3)

    def log_prior(k):  # of one model with k of the 3 coordinates
        return special.betaln(a + k, b + 3 - k) - special.betaln(a, b)

    assert sum(math.comb(3, k) * math.exp(log_prior(k)) for k in range(4)) == pytest.approx(1.0)
    state = process.begin(np.array([0.0, 0.0, 1.0, 0.0]), rng())
    for k, i in enumerate([1, 0, 3]):
        assert state.memory.included[0] == k
        speed = abs(state.memory.coordinates[i, KEPT_VELOCITY])
        rate = slab * math.exp(log_prior(k + 1) - log_prior(k)) * speed
        assert process.native.thawing(state, i) == pytest.approx(rate, rel=1e-12)
        clock = process.first if process.one_clock else process.first + STICKING.index(i)
        state.memory.next[0] = STICKING.index(i)
        assert process.native.jump(state, clock, 0.0, None) == process.thaw
        redrawn = process.order[process.start[clock] : process.start[clock + 1]]
        assert set(range(process.first, process.clocks)) <= set(redrawn.tolist())
    state.x[1] = 0.0
    state.memory.next[0] = STICKING.index(1)
    clock = process.first if process.one_clock else process.first + STICKING.index(1)
    assert process.native.jump(state, clock, 0.0, None) == process.freeze and state.memory.included[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [pdmp.ZigZag, bps, pytest.param(boomerang, marks=pytest.mark.release)])
def test_inclusion_under_a_prior_of_the_models_size(make):
    """Against the enumeration of all models, weighted anew."""
    law, model = BetaBernoulli(1.0, 2.0), pdmp.models.SpikeAndSlabLinearRegression(A, RESPONSE, slab_scale=1.3)
    known = model.enumerate()
    k = known.models.sum(axis=1)
    weights = known.probabilities * np.exp(special.betaln(1.0 + k, 2.0 + 4 - k)) / 0.5**4
    truth = weights @ known.models / weights.sum()
    process = pdmp.Sticky(make(MODEL), law)
    found = [
        pdmp.diagnostics.inclusion(
            pdmp.sample(process, initial=np.ones(4), events=1_500, warmup=0.05, seed=seed, progress=False)
        )
        for seed in range(16)
    ]
    assert_unbiased(np.array(found), truth, resolution=0.25)


def test_numbers_of_a_prior_of_the_models_size_are_checked():
    with pytest.raises(ValueError, match="`b` of BetaBernoulli must be positive and finite, got 0"):
        BetaBernoulli(1.0, 0.0)


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize("make", [pdmp.ZigZag, bps, boomerang])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"inclusion": 0.0}, "`inclusion` must be between 0 and 1; `always` is for certainty, got 0"),
        ({"inclusion": [0.5, 0.5, 1.0, 0.5]}, "`inclusion` must be between 0 and 1"),
        ({"inclusion": np.nan}, "`inclusion` must be between 0 and 1"),
        ({"inclusion": [0.5, 0.5]}, r"`inclusion` must be a number or have shape \(4,\)"),
        ({"kappa": 0.0}, "`kappa` must be > 0 and finite, got 0"),
        ({"kappa": [1.0, -1.0, 1.0, 1.0]}, "`kappa` must be > 0 and finite, got -1"),
        ({"kappa": 1.0, "inclusion": 0.5}, "give `kappa`, or `inclusion` and the slab, not both"),
        ({"slab_density": -0.1}, "`slab_density` must be > 0 and finite"),
        ({"always": [4]}, "`always` must name coordinates 0 … 3"),
        ({"always": [0.5]}, "`always` must name coordinates 0 … 3"),
        ({"always": [0, 1, 2, 3]}, "`always` names every coordinate"),
    ],
)
def test_priors_that_make_no_sense_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        pdmp.Sticky(make(MODEL), **options)


@plain_only
def test_bounces_of_boomerang_concern_the_coordinates_that_move():
    process = boomerang(MODEL, np.zeros(4), pdmp.Metric(covariance=[1.0, 4.0, 0.5, 2.0])).among_moving()
    for seed in range(10):
        state = process.begin(rng(seed).standard_normal(4), rng(seed))
        state.x[[0, 2]], state.v[[0, 2]] = 0.0, 0.0
        v, active, variances = state.v.copy(), [1, 3], np.array([4.0, 2.0])
        g = MODEL.gradient(state.x) - state.x / [1.0, 4.0, 0.5, 2.0]
        assert process.native.rate(state, 0, 0.0, rng()) == pytest.approx(max(0.0, v @ g), rel=1e-11)
        process.native.jump(state, 0, 0.0, rng())
        raised = variances * g[active]
        np.testing.assert_array_equal(state.v[[0, 2]], 0.0)
        np.testing.assert_allclose(state.v[active], v[active] - 2.0 * (v @ g) / (g[active] @ raised) * raised)
        # The waves are those of v·∇E along the ellipses of the coordinates that move.
        mean = np.array([0.5, -0.2, 0.3, 0.1])
        process_ = boomerang(MODEL, mean, pdmp.Metric(covariance=[1.0, 4.0, 0.5, 2.0])).among_moving()
        state = process_.begin(state.x, rng(seed))
        state.v[[0, 2]] = 0.0
        a, b, c, d, energy = process_.native.harmonics(state, 0.0, rng())
        y, scale = np.where(state.v == 0.0, 0.0, state.x - mean), np.array([1.0, 4.0, 0.5, 2.0])
        for t in (0.3, 1.7, 4.0):
            x = state.x - y + y * math.cos(t) + state.v * math.sin(t)
            w = state.v * math.cos(t) - y * math.sin(t)
            rate = w @ (MODEL.gradient(x) - (x - mean) / scale)
            found = a * math.cos(t) + b * math.sin(t) + c * math.cos(2 * t) + d * math.sin(2 * t)
            assert found == pytest.approx(rate, rel=1e-9, abs=1e-9)
    drawn, generator = np.zeros((5_000, 4)), rng(1)
    for row in drawn:
        state.v[:] = [0.0, 1.0, 0.0, 1.0]
        process.native.jump(state, 1, 0.0, generator)
        row[:] = state.v
    assert np.all(drawn[:, [0, 2]] == 0.0)
    for j, sd in ((1, 2.0), (3, math.sqrt(2.0))):
        assert stats.kstest(drawn[:, j] / sd, "norm").pvalue > 1e-6


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: boomerang(MODEL, metric="auto"), lambda: boomerang(MODEL, metric=np.eye(4))),
        lambda: boomerang(pdmp.gradients.ControlVariate(LOGISTIC, 1)),
        *(
            lambda: pdmp.BPS(MODEL),
            lambda: bps(MODEL, metric=np.arange(1.0, 5.0)),
            lambda: bps(MODEL, metric="diagonal"),
        ),
        *(lambda: pdmp.ZigZag(MODEL, metric=np.eye(4) + 0.1), lambda: pdmp.ZigZag(MODEL, metric="dense")),
        *(lambda: pdmp.ForwardEventChain(MODEL), lambda: pdmp.GeneralisedBPS(MODEL), lambda: pdmp.LocalBPS(SPARSE)),
        *(lambda: pdmp.DirectionalBPS(MODEL, velocities="gaussian"), lambda: pdmp.CoordinateSampler(MODEL)),
        *(lambda: pdmp.FactorisedBoomerang(MODEL), lambda: pdmp.HMC(MODEL), lambda: CASES["BPS"]()),
        lambda: pdmp.Bounded(pdmp.ZigZag(MODEL), lower=-9.0),
    ],
)
def test_a_process_that_cannot_be_frozen_is_refused(make):
    process = make()
    with pytest.raises(TypeError, match=f"pdmp.Sticky needs .* one by one: .*; got a {type(process).__name__} that"):
        pdmp.Sticky(process, kappa=1.0)


def test_the_former_names_say_what_is_written_now():
    with pytest.raises(TypeError, match="`process` must be a process such as .*, got a LinearGaussian"):
        pdmp.Sticky(MODEL)
    for kind in ("ZigZag", "BPS", "Boomerang"):
        for room in (pdmp, pdmp.processes):
            with pytest.raises(AttributeError) as error:
                getattr(room, f"Sticky{kind}")
            model, told = MODEL, str(error.value)
            written = told.partition(" is written ")[2].replace(", ...).", ", inclusion=0.5)")
            process = eval(written, {"pdmp": pdmp, "model": model})
            assert told.startswith(f"pdmp.Sticky{kind}(") and isinstance(process.inner, getattr(pdmp, kind))
        with pytest.raises(AttributeError, match="no attribute 'StickyHMC'"):
            pdmp.StickyHMC  # noqa: B018


@pytest.mark.parametrize("make", [pdmp.ZigZag, bps])
def test_a_slab_that_is_not_known_is_asked_for(make):
    with pytest.raises(ValueError, match="pdmp.Sticky needs the density of the slab at 0, which Gaussian"):
        pdmp.Sticky(make(Gaussian(0.0, [1.0, 2.0])))
    with pytest.raises(TypeError, match="`inclusion` must hold numbers"):
        pdmp.Sticky(make(MODEL), inclusion="half")
    with pytest.raises(TypeError, match="knows what a wall does"):
        pdmp.Bounded(pdmp.Sticky(make(MODEL)), lower=0.0)


def test_inclusion_is_for_sticky_runs():
    run = pdmp.sample(pdmp.ZigZag(MODEL), events=20, seed=1)
    for ask in (lambda: pdmp.diagnostics.inclusion(run), lambda: pdmp.diagnostics.sparsity(run)):
        with pytest.raises(ValueError, match="inclusion is for runs of sticky processes, .*one of ZigZag"):
            ask()
    short = pdmp.sample(CASES["ZigZag"](), proposals=1, warmup=0.5, seed=1)
    with pytest.raises(ValueError, match="no path after the warm-up"):
        pdmp.diagnostics.inclusion(short)


def test_what_is_certain_never_sticks():
    """κ = w s(0) / (1 - w) of unequal probabilities and slabs; the prior of a certain coordinate may be flat."""
    model = SimpleNamespace(
        prior_inclusion=lambda: np.array([0.2, 1.0, 0.7]), slab_density=lambda: np.array([0.3, 0.0, 0.4])
    )
    found = thawing_rates(model, 3, None, None, None, "Sticky")
    np.testing.assert_allclose(found, [0.2 / 0.8 * 0.3, 0.0, 0.7 / 0.3 * 0.4], rtol=1e-12)
    counted = thawing_rates(model, 3, BetaBernoulli(2.0, 3.0), None, None, "Sticky")
    np.testing.assert_allclose(counted, [0.3, 0.0, 0.4], rtol=1e-12)  # the ratio depends on how many move


def test_what_waits_for_a_warm_up_within_says_so():
    inner = pdmp.ZigZag(pdmp.gradients.ControlVariate(LOGISTIC, 1, renew=True))
    assert pdmp.Sticky(inner).waits_for_warmup() == inner.waits_for_warmup() == "renew=True"
    assert pdmp.Sticky(pdmp.ZigZag(LOGISTIC)).waits_for_warmup() is None
