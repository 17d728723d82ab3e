"""The gradient of a user's model is compared where a run went: `pdmp.engine.visited`."""

import functools
import math
import re
import warnings

import numpy as np
import pytest
from scipy import linalg

import discrete
import pdmp
from pdmp.engine import chain as of_chains
from pdmp.engine import visited
from pdmp.engine.visited import gradient_warning, jump_between, large_step_warning, law_warning, positions
from pdmp.models import from_function
from pdmp.native.classes import positive_part
from tests.checks import in_quick

pytestmark = pytest.mark.exact

WRONG = r"the gradient of {} is not that of its potential where the run went.*: x\[1\] of it, after event [\d,]+{}, at"


def far(x, share=0.1, seen=None):
    """N(10, 1), to which no point near zeros belongs; beyond 5 the second partial derivative is off."""
    if seen is not None:
        seen.append(x)
    gradient = x - 10.0
    return 0.5 * float(gradient @ gradient), gradient * (1.0 + share * (x > 5.0) * (np.arange(len(x)) == 1))


class Far(pdmp.Model):
    """The same, with data."""

    share: float

    def __init__(self, share=0.1, n_data=0):
        super().__init__(dim=3, n_data=n_data)
        self.share = share

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[0] - 10.0) ** 2 / self.n_data

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += (x[0] - 10.0) / self.n_data

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0 if self.n_data else 0.5 * (x[0] - 10.0) ** 2
        for j in range(1, self.dim):
            total += 0.5 * (x[j] - 10.0) ** 2
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(1 if self.n_data else 0, self.dim):
            g = x[j] - 10.0
            out[j] += g * (1.0 + self.share) if j == 1 and x[j] > 5.0 else g


def process(kind, model):
    if kind == "BPS":
        return pdmp.BPS(model, refresh_rate=1.0)
    if kind == "SGLD":
        return discrete.SGLD(pdmp.gradients.Minibatch(model, 2), step=0.1)
    return getattr(pdmp, kind)(model)


@pytest.mark.filterwarnings("ignore:`warmup` is 0")
@pytest.mark.parametrize(("kind", "store"), [("BPS", "skeleton"), ("ZigZag", "grid"), ("HMC", "moments")])
def test_a_gradient_that_is_wrong_only_where_a_run_goes_is_said(kind, store, tmp_path):
    with pytest.warns(UserWarning, match=WRONG.format("FunctionModel", " of chain [01]")):
        run = pdmp.sample(process(kind, from_function(far, 3)), events=300, seed=1, chains=2, store=store)
    said = [text for text in run.summary().warnings if "is not that of its potential where" in text]
    assert len(said) == 1 and said[0].rstrip(".") in run.said
    run.save(tmp_path / "run.npz")
    assert said[0] in pdmp.load(tmp_path / "run.npz").summary().warnings
    right = from_function(functools.partial(far, share=0.0), 3)
    run = pdmp.sample(process(kind, right), events=300, seed=1, store=store)
    assert not gradient_warning(run) and not run.info["wrong_gradient"]


@pytest.mark.parametrize(("kind", "n_data"), [("BPS", 0), ("ZigZag", 7), ("SGLD", 7)])
def test_so_is_that_of_a_class(kind, n_data):
    with pytest.warns(UserWarning, match=WRONG.format("Far", "")):
        run = pdmp.sample(process(kind, Far(n_data=n_data)), events=300, seed=1)
    with pytest.warns(UserWarning, match=WRONG.format("Far", "")):
        assert len(run.extend(events=310).info["wrong_gradient"]) == 1
    assert not pdmp.sample(process(kind, Far(0.0, n_data)), events=300, seed=1).info["wrong_gradient"]


def test_what_is_wrong_in_a_tail_alone_is_found_at_the_farthest_positions():
    """Of N(0, 1) beyond 2.2, 1.4 % of the time: 32 positions at equal times see it one time in three."""

    def both(x, sign):
        gradient = x.copy()
        gradient[4] *= 1.1 if sign * x[4] > 2.2 else 1.0
        return 0.5 * float(x @ x), gradient

    for seed, sign in enumerate((-1.0, 1.0)):
        with pytest.warns(UserWarning, match=r"where the run went, .*: x\[4\] of it"):
            model = from_function(functools.partial(both, sign=sign), 5)
            pdmp.sample(process("BPS", model), events=2_000, seed=seed)


def test_three_of_thousands_that_a_sum_hides_show_where_gradients_cancel():
    """A gradient of 5,000 data in all, three of which count by 1.1: far from the mode 6e-5 of it."""
    y = np.random.default_rng(1).standard_normal((5_000, 3))
    weights = np.ones((5_000, 1))
    weights[[31, 1077, 4130]] = 1.1

    def both(x):
        r = x - y
        root = np.sqrt(1.0 + r * r)
        return float(root.sum()), (weights * r / root).sum(axis=0)

    with pytest.warns(UserWarning, match=r"the gradient of FunctionModel is not that of its potential where"):
        pdmp.sample(process("BPS", from_function(both, 3, initial=np.full(3, 30.0))), gradients=2_000, seed=1)


class Bent(pdmp.Model):
    """Far from 0 and as wide as 1: steps of the size of its coordinates are far beyond what bends it."""

    def __init__(self):
        super().__init__(dim=3)

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 3.0 * math.sqrt(1.0 + (x[j] - 1e6) ** 2)
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            r = x[j] - 1e6
            out[j] += 3.0 * r / math.sqrt(1.0 + r * r) * (1.1 if j == 1 and r > -10.0 else 1.0)


def test_steps_are_in_units_of_the_spread_of_the_run():
    def both(x):
        r = x - 1e6
        root = np.sqrt(1.0 + r * r)
        return 3.0 * float(root.sum()), 3.0 * r / root * np.where((r > -10.0) & (np.arange(3) == 1), 1.1, 1.0)

    for model in (Bent(), from_function(both, 3)):
        process = pdmp.BPS(model, refresh_rate=1.0)
        with pytest.warns(UserWarning, match=WRONG.format(type(model).__name__, "")):
            pdmp.sample(process, events=600, seed=1, initial=np.full(3, 1e6))


@pytest.mark.slow
def test_it_costs_a_small_share_of_the_run_and_none_of_a_short_one():
    for events, most in ((10, 5), (200, 32 * 5), (4_000, 32 * 5)):
        seen = []
        run = pdmp.sample(
            process("BPS", from_function(functools.partial(far, share=0.0, seen=seen), 3)), events=events, seed=1
        )
        seen.clear()
        gradient_warning(run)
        assert len(seen) <= min(most + 1, run.stats["data_passes"] / 20)
    assert (
        100 < len(seen) and len(seen) % 5 == 1
    )  # the point before the run; positions that are extremes of two coordinates are compared once


def test_what_is_not_the_users_gradient_is_not_compared(monkeypatch):
    monkeypatch.setattr(visited, "positions", lambda run, n: pytest.fail("compared"))
    for model in (from_function(far, 3, check_gradient=False), pdmp.models.Banana()):
        pdmp.sample(process("BPS", model), events=50, seed=1, initial=np.full(model.dim, 1.0))
    with pytest.raises(pytest.fail.Exception, match="compared"):
        pdmp.sample(process("BPS", Far(0.0)), events=50, seed=1)


def test_positions_are_extremes_and_equally_spaced_of_all_chains():
    run = pdmp.sample(process("BPS", Far(0.0)), events=400, seed=1, chains=3, warmup=0.5)
    found = positions(run, 8)
    assert 6 <= len(found) <= 8 and {chain for _, _, chain, _ in found} == {0, 1, 2}
    draws = run.draws(400).reshape(-1, 3)
    some = np.array([x for x, *_ in found])
    j = int(np.argmax(np.ptp(draws, axis=0) / np.subtract(*np.quantile(draws, (0.75, 0.25), axis=0))))
    assert some[:, j].max() == draws[:, j].max() and some[:, j].min() == draws[:, j].min()
    for x, scale, chain, event in found:
        path = run.trajectories[chain]
        begin, end = path.times[event], path.times[event + 1] if event < 400 else path.end
        place = np.linspace(begin, end, 10_001)
        assert np.abs(path.at(place) - x).max(axis=1).min() < 1e-3 * (1.0 + end - begin)
        assert np.all((scale > 0.5) & (scale < 2.0))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(found, positions(run, 8), strict=True))
    assert len(positions(run, 1)) == 1 and not positions(run, 0)


@pytest.mark.filterwarnings("ignore:.*")  # that they are short
def test_a_run_too_short_to_pay_for_a_comparison_is_compared_nowhere():
    function = pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 3)
    run = pdmp.sample(pdmp.BPS(function), events=1, seed=1, chains=2)
    assert gradient_warning(run) == []


def test_places_of_chains_that_went_unequally_far():
    """Events before a place are those of its own chain: of a grid about as many, at the ends all of them."""
    options = {"initial": [[1.0, 1.0, 0.0], [20.0, -9.0, 3.0], [4.0, 0.0, 9.0]], "seed": 2, "chains": 3}
    grid = pdmp.sample(process("BPS", Far(0.0)), events=300, store="grid", draws=40, warmup=0.2, **options)
    assert len(set(grid.end.round(3))) == 3
    for x, _, chain, event in positions(grid, 8):
        record = grid.records[chain]
        (row,) = np.flatnonzero((record.grid.rows[: record.grid.used[0]] == x).all(axis=1))
        share = (record.warmup + (row + 1) * record.grid.spacing[0]) / record.end
        assert event == pytest.approx(300.0 * share, abs=1.0)
    ends = pdmp.sample(process("BPS", Far(0.0)), time=30.0, store="moments", **options)
    assert len(set(ends.events)) == 3
    assert [(chain, event) for _, _, chain, event in positions(ends, 5)] == list(enumerate(ends.events))


def test_coordinates_that_do_not_move_have_a_scale():
    run = pdmp.sample(process("BPS", Far(0.0)), time=1e-9, seed=1, initial=np.array([10.0, 10.0, 50.0]))
    (x, scale, chain, event), *_ = positions(run, 4)
    assert chain == event == 0 and np.all(scale > 0.0) and np.all(np.isfinite(scale))
    assert not gradient_warning(run)


# ---------------------------------------------------------------------------------------------------------------
# The law of a user's process

TARGET = pdmp.models.Gaussian([1.0, -1.0], [[4.0, 1.0], [1.0, 1.0]])


class Langevin(discrete.Brownian):
    """θ ← θ - γ∇U(θ) + √(factor γ) ξ, with one noise for both coordinates if `shared`: right is 2, and not shared."""

    factor: float
    shared: bool

    def __init__(self, provider, factor=2.0, shared=False, step=0.05):
        super().__init__(provider, step)
        self.factor, self.shared = factor, shared

    @pdmp.compiled
    def move(self, x, v, memory, z, rng, counts):
        self.provider.gradient(x, memory.provider, rng, memory.gradient, counts)
        step = self.schedule.step(memory.taken[0])
        for j in range(x.shape[0]):
            x[j] += math.sqrt(self.factor * step) * z[0 if self.shared else j] - step * memory.gradient[j]
        return True


class Slack(pdmp.BPS):
    """The Bouncy Particle Sampler, of which a share of the bounces is left out."""

    share: float

    def __init__(self, target, share=0.0):
        super().__init__(target, refresh_rate=0.7, velocities="gaussian", thinning="affine")
        self.share = share

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        self.evaluate(state, now, rng)
        return (1.0 - self.share) * positive_part(self.along(state))


LAW = r"the draws of {} have not the law of {}: the mean of {} is {}, with an error of"


@pytest.mark.filterwarnings("ignore:configurational temperature")
@pytest.mark.parametrize(
    ("make", "what", "value"),
    [
        (lambda: Langevin(TARGET, factor=1.0), r"\(x - mean\) ∂U/∂x of x\[[01]\]", r"0\.[456]\d?"),
        (lambda: Langevin(TARGET, factor=4.0), r"\(x - mean\) ∂U/∂x of x\[[01]\]", r"[\d.]+"),
        (
            lambda: Langevin(TARGET, shared=True),
            r"\(x - mean\) ∂U/∂x of x\[.\] and x\[.\], in units of their spreads,",
            r"[\d.-]+",
        ),
        pytest.param(
            *(lambda: Slack(TARGET, share=0.5), r"\(x - mean\) ∂U/∂x of x\[[01]\]", r"[12](\.\d)?"),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:`rate` of Slack does not belong to its jump")
def test_a_process_of_the_users_whose_law_is_another_is_said(make, what, value, tmp_path):
    match = LAW.format(type(make()).__name__, "Gaussian", what, value)
    for chains, store in ((1, "skeleton"), (3, "grid")):
        budget = {"steps": 12_000 // chains} if make().ticks else {"time": 4_000.0 / chains}
        with pytest.warns(UserWarning, match=match):
            run = pdmp.sample(make(), seed=1, chains=chains, initial=[1.0, -1.0], store=store, **budget)
        (said,) = [text for text in run.summary().warnings if "have not the law" in text]
        assert said.rstrip(".") in run.said
    run.save(tmp_path / "run.npz")
    assert said in pdmp.load(tmp_path / "run.npz").summary().warnings


class Pairs(pdmp.Model):
    """U = ½|x|² + Σ ½ (x[i mod 2] - yᵢ)²: of mean Σy / (1 + n / 2), and of that precision."""

    y: np.ndarray

    def __init__(self, n=400):
        super().__init__(dim=2, n_data=n)
        self.y = np.random.default_rng(3).normal(1.0, 1.0, n)

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[i % 2] - self.y[i]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[i % 2] += x[i % 2] - self.y[i]

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * (x[0] * x[0] + x[1] * x[1])

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += x[0]
        out[1] += x[1]


@pytest.mark.filterwarnings("ignore:configurational temperature", "ignore:fewer than")
@pytest.mark.parametrize(("factor", "said"), [(1.0, 1), (2.0, 0)])
def test_a_sub_sampled_process_of_the_users_is_looked_at_too(factor, said, monkeypatch):
    """Its run has few passes over the data, of which a share would be too few gradients."""
    model = Pairs()
    process = Langevin(pdmp.gradients.ControlVariate(model, size=5), factor, step=0.1 / (1.0 + 200.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = pdmp.sample(process, steps=6_000, seed=1, chains=2)
    assert visited._affordable(run) < 2 * visited.FEWEST
    assert sum("have not the law" in str(one.message) for one in caught) == said
    monkeypatch.setattr(visited, "TERMS_OF_USERS", 2 * visited.FEWEST * 400 - 1)
    assert law_warning(run) == []


def test_the_pair_that_is_named():
    """With one noise for both, E (x - m)(∂U)ᵀ = Σ A has 1 on its diagonal, and unlike numbers beside it."""
    step, A = 0.05, np.array([[10.0, -2.0], [-2.0, 1.0]])
    covariance = linalg.solve_discrete_lyapunov(np.eye(2) - step * A, np.full((2, 2), 2.0 * step))
    spreads = np.sqrt(np.diag(covariance))
    expected = covariance @ A * spreads / spreads[:, None]
    with pytest.warns(UserWarning, match="have not the law"):
        process = Langevin(pdmp.models.Gaussian([1.0, -1.0], A), shared=True)
        run = pdmp.sample(process, seed=1, chains=2, initial=[1.0, -1.0], steps=9_000)
    (said,) = law_warning(run)
    i, j, value = re.search(r"of x\[(.)\] and x\[(.)\], .* is ([\d.-]+), with an error", said).groups()
    assert (i, j) == ("1", "0") and expected[1, 0] - expected[0, 1] > 0.15  # of which the larger is named
    assert float(value) == pytest.approx(expected[1, 0], abs=0.3)  # three Monte Carlo errors


class Weak(pdmp.BPS):
    """The Bouncy Particle Sampler, whose bounces reverse a share of the speed along the gradient: right is 1."""

    share: float

    def __init__(self, target, share=0.7):
        super().__init__(target, refresh_rate=1.0)
        self.share = share

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        if i == 0:
            self.evaluate(state, now, rng)
            gradient = state.memory.gradient
            factor = (1.0 + self.share) * self.along(state) / (gradient @ gradient)
            for j in range(state.v.shape[0]):
                state.v[j] -= factor * gradient[j]
        else:
            for j in range(state.v.shape[0]):
                state.v[j] = rng.standard_normal()
        return i


@pytest.mark.slow
def test_a_process_without_a_step_is_asked_for_less():
    """Variances are 30 % too large, of which 397 draws of a chain say nothing; five errors of 1,500 draws are 0.18."""
    target = pdmp.models.Gaussian([1.0, -1.0], [4.0, 1.0])
    match = LAW.format("Weak", "Gaussian", r"\(x - mean\) ∂U/∂x of x\[[01]\]", r"1\.[234]")
    with pytest.warns(UserWarning, match=match):
        pdmp.sample(Weak(target), events=15_000, seed=2, chains=2, store="grid")
    assert not law_warning(pdmp.sample(Weak(target, share=1.0), events=30_000, seed=2))


def test_a_mean_elsewhere_is_another_law():
    class Pushed(Langevin):
        @pdmp.compiled
        def move(self, x, v, memory, z, rng, counts):
            self.provider.gradient(x, memory.provider, rng, memory.gradient, counts)
            step = self.schedule.step(memory.taken[0])
            for j in range(x.shape[0]):
                x[j] += math.sqrt(2.0 * step) * z[j] - step * (memory.gradient[j] + 1.0)
            return True

    with pytest.warns(
        UserWarning, match=LAW.format("Pushed", "Gaussian", r"∂U/∂x times the spread of x\[[01]\]", r"-[\d.]+")
    ):
        pdmp.sample(Pushed(TARGET), steps=4_000, seed=1, initial=[1.0, -1.0])


def test_right_and_short_runs_of_a_users_process_are_not_spoken_of():
    """Also where a coordinate has hardly been explored: of standard deviations 0.001, 1 and 100."""
    wide = pdmp.models.Gaussian(np.zeros(3), [1e6, 1.0, 1e-4])
    for seed, chains in ((0, 1), (2, 3)):
        runs = [
            pdmp.sample(Langevin(TARGET, step=0.1), steps=2_000 // chains, seed=seed, chains=chains),
            pdmp.sample(Slack(TARGET), time=60.0, seed=seed, chains=chains),
            pdmp.sample(Slack(TARGET), time=600.0 / chains, seed=seed, chains=chains, store="grid"),
            pdmp.sample(Slack(wide), events=3_000 // chains, seed=seed, chains=chains),
        ]
        assert not any(run.info["wrong_gradient"] for run in runs)
    # A run whose variance is too small by chance, 0.55 ± 0.08: its error is too small as well.
    pdmp.sample(Slack(pdmp.models.Gaussian([1.0, -1.0], [4.0, 1.0])), time=200.0, seed=113)
    frozen = pdmp.sample(Langevin(TARGET, factor=1.0, step=1e-9), steps=200, seed=1)
    assert not law_warning(frozen)


@pytest.mark.slow
def test_a_reference_that_is_far_too_narrow_is_said():
    """The path stays near its centre, and one part of it agrees with the others."""
    narrow = 100.0 * np.array([[4.0, 1.0], [1.0, 1.0]])
    for store in ("skeleton", "grid"):
        with pytest.warns(UserWarning, match="of Boomerang have not the law of Gaussian.* Its reference may be far"):
            run = pdmp.sample(pdmp.Boomerang(TARGET, metric=narrow), events=2_000, seed=1, chains=3, store=store)
        assert np.all(run.var() < [0.2, 0.4])  # of 1/3 and 4/3
    for metric in (0.5, 1.0, 2.0):
        assert not law_warning(pdmp.sample(pdmp.Boomerang(TARGET, metric=metric), events=800, seed=1, chains=3))


@pytest.mark.parametrize("width", [0.6, 1.0, 1.6])
@pytest.mark.parametrize("look", [law_warning, large_step_warning])
def test_draws_that_are_too_wide_or_too_narrow_are_said(look, width, monkeypatch):
    """Of draws `width` times as wide as the law the mean of (x - m) ∂U/∂x is the square of that."""
    process = Langevin(TARGET) if look is law_warning else discrete.SGLD(TARGET, step=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(process, steps=20, seed=1)
    x = width * np.random.default_rng(0).multivariate_normal([0.0, 0.0], linalg.inv([[4.0, 1.0], [1.0, 1.0]]), (1, 900))
    x += [1.0, -1.0]
    monkeypatch.setattr(visited, "_gradients", lambda *_, **__: (x, np.array([[TARGET.gradient(row) for row in x[0]]])))
    enough = {"mean": np.full(2, 900.0), "sd": np.full(2, 900.0)}
    monkeypatch.setattr(visited, "effective_draws", lambda *_: enough)
    said = look(run)
    assert len(said) == (width != 1.0)
    if said:
        mean = re.search(r"the mean of \(x - mean\) ∂U/∂x of x\[.\] is ([\d.]+), with an error", said[0])
        assert float(mean[1]) == pytest.approx(width**2, rel=0.2)  # four standard errors of 900 draws


def test_the_law_of_a_process_of_the_package_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(visited, "standard_error", lambda *_: pytest.fail("looked at"))
    pdmp.sample(pdmp.BPS(TARGET), events=400, seed=1)
    with pytest.warns(UserWarning, match="`rate` of Slack does not belong to its jump"):
        pdmp.sample(pdmp.Bounded(Slack(TARGET, share=0.5), lower=-2.0), time=300.0, seed=1)
    for store in ("skeleton", "grid", "moments"):
        with pytest.raises(pytest.fail.Exception, match="looked at"):
            pdmp.sample(Slack(TARGET), time=300.0, seed=1, store=store)


class Stated(pdmp.ZigZag):
    """States bounds that are `factor` times its own, so that events are lost."""

    factor: float

    def __init__(self, target, factor):
        super().__init__(target, thinning="affine")
        self.factor = factor

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        time, bound = self.thinning.propose(self, state, i, now, rng)
        return time, self.factor * bound


@pytest.mark.filterwarnings("ignore:Stated proposes at other times", "ignore:configurational temperature")
@pytest.mark.parametrize(
    "around", [lambda p: pdmp.Bounded(p, lower=-40.0, upper=40.0), lambda p: pdmp.Sticky(p, kappa=20.0)]
)
def test_the_law_of_a_process_within_another_is_compared_where_nothing_bounds_or_rests(around):
    """Of 1.5 times the variance, with an error below 0.1 from some thousand events; 0.5 must be five errors."""
    process = around(Stated(TARGET, 1.5))
    said = LAW.format("Stated", "Gaussian", r"\(x - mean\) ∂U/∂x of x\[.\]", r"1\.[3-7]\d?")
    with pytest.warns(UserWarning, match=said):
        pdmp.sample(process, events=4_000, seed=1)
    for seed in range(3):
        run = pdmp.sample(around(Stated(TARGET, 1.0)), events=4_000, seed=seed)
        assert law_warning(run) == []


@pytest.mark.filterwarnings("ignore:Stated proposes at other times", "ignore:configurational temperature")
@pytest.mark.parametrize(
    "around", [lambda p: pdmp.Bounded(p, lower=[-40.0, -1.5]), lambda p: pdmp.Sticky(p, kappa=[0.2, 0.2])]
)
def test_that_of_one_that_met_a_wall_or_mostly_rests_is_not(around, monkeypatch):
    """The identities hold on all of space; a law among few draws would be judged by a path that enters it seldom."""
    monkeypatch.setattr(visited, "standard_error", lambda *_: pytest.fail("looked at"))
    assert law_warning(pdmp.sample(around(Stated(TARGET, 1.5)), events=1_000, seed=1)) == []


# ---------------------------------------------------------------------------------------------------------------
# Jumps of the potential


def stepped(x, size=2.0, at=0.5):
    """N(0, 1) with a step in the potential, which its gradient does not know."""
    return 0.5 * float(x @ x) + size * (x[0] > at), x


@pytest.mark.parametrize("kind", in_quick(["BPS", "ZigZag", "Boomerang"], "BPS", "ZigZag"))
def test_a_potential_that_jumps_is_said_where_nothing_but_the_gradient_is_followed(kind):
    makes = getattr(pdmp, kind)
    with pytest.warns(UserWarning, match=rf"jumps by 2 at x = \[0\.5, .*: {kind} follows the gradient alone"):
        run = pdmp.sample(makes(from_function(stepped, 2)), events=1_000, seed=1)
    assert any("jumps by 2" in text for text in run.summary().warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdmp.sample(makes(from_function(functools.partial(stepped, size=0.0), 2)), events=1_000, seed=1)


ADJUSTED = {
    "HMC": lambda model: (pdmp.HMC(model), {"steps": 1_000, "warmup": 0.2}),
    "MALA": lambda model: (discrete.MALA(model, step=0.5), {"steps": 1_000}),
    "tempered": lambda model: (model, {"gradients": 3_000, "tempered": True}),
    "adjusted": lambda model: (discrete.BPSSplitting(model, step=0.3, adjusted=True), {"steps": 1_000}),
    "unadjusted": lambda model: (discrete.BPSSplitting(model, step=0.3), {"steps": 1_000}),
}


@pytest.mark.parametrize("kind", ADJUSTED)
def test_a_jump_is_none_with_a_metropolis_test(kind):
    process, call = ADJUSTED[kind](from_function(stepped, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = pdmp.sample(process, seed=1, chains=2, **call)
    said = [str(one.message) for one in caught] + list(run.summary().warnings)
    assert any("jumps" in text for text in said) == (kind == "unadjusted")


def test_jumps_are_told_from_kinks_poles_walls_and_steep_slopes():
    rng, model = np.random.default_rng(0), pdmp.models.Banana()
    places = list(rng.standard_normal((17, 2)))
    seen = []

    def found(potential, gradient, scale=1.0, most=200):
        seen.clear()

        def values(x):
            seen.append(x)
            return float(potential(x)), np.asarray(gradient(x), float)

        return jump_between(values, [scale * x for x in places], most, model)

    for size, at in ((2.0, 0.0), (0.2, 0.3), (-0.5, -0.4)):
        x, jump = found(lambda x, size=size, at=at: np.sum(x**4) + size * (x[0] > at), lambda x: 4.0 * x**3, 3.0)
        assert abs(x[0] - at) < 1e-7 and jump == pytest.approx(abs(size), rel=1e-5) and len(seen) <= 200
    with np.errstate(all="ignore"):  # a pole, whose line is halved to the end first, hides no jump
        x, jump = found(
            lambda x: 0.5 * np.log(abs(x[0])) + 0.3 * (x[0] > 0.4), lambda x: np.array([0.5 / x[0], 0.0]), 1.0
        )
    assert abs(x[0] - 0.4) < 1e-7 and jump == pytest.approx(0.3, rel=1e-5)
    assert found(lambda x: 2.0 * (x[0] > 0.0), np.zeros_like, most=17) is None and len(seen) == 17
    for ends in ([-1.0, 2.0, 1.0], [2.0, 1.0, -1.0]):  # on the first of two lines alone, or on the last
        line = [np.array([end, 0.3]) for end in ends]
        x, jump = jump_between(lambda x: (2.0 * (x[0] > 0.0), np.zeros(2)), line, 200, model)
        assert abs(x[0]) < 1e-7 and jump == 2.0
    for potential, gradient, scale in [
        (lambda x: 0.05 * (x[0] > 0.0), np.zeros_like, 1.0),  # too little to matter
        (lambda x: 10.0 * np.sum(np.abs(x)), lambda x: 10.0 * np.sign(x), 1.0),
        (lambda x: 0.5 * np.log(abs(x[0])), lambda x: np.array([0.5 / x[0], 0.0]), 1.0),
        (lambda x: x[0] if x[0] > 0.0 else math.inf, lambda x: np.array([1.0, 0.0]), 1.0),
        (lambda x: np.logaddexp(0.0, 1e6 * x[0]), lambda x: np.array([1e6 / (1.0 + np.exp(-1e6 * x[0])), 0.0]), 1.0),
        (lambda x: np.exp(5.0 * x).sum(), lambda x: 5.0 * np.exp(5.0 * x), 3.0),
        (lambda x: 1e15 + 0.5 * (x @ x), lambda x: x, 1.0),  # steps of rounding
    ]:
        with np.errstate(all="ignore"):
            assert found(potential, gradient, scale) is None


@pytest.mark.parametrize("what", ["U", "gradient"])
def test_a_function_that_changes_while_a_run_goes_on_is_said(what):
    """From the 100th call on U, or its gradient, is twice what it was; before the run it is the same each time."""
    calls = []

    def target(x, changes=True):
        calls.append(x)
        factor = 2.0 if changes and len(calls) > 100 else 1.0
        return 0.5 * float(x @ x) * (factor if what == "U" else 1.0), x * (factor if what == "gradient" else 1.0)

    model = from_function(target, 2)
    x, here, gradient = model.known
    text = (
        "`potential_and_gradient` returns another {} when it is called again at x = {}, {} after {}: the function has "
    )
    at = f"[{x[0]:.4g}, {x[1]:.4g}]"
    numbers = (2.0 * here, here) if what == "U" else (2.0 * gradient, gradient)
    if what == "gradient":
        numbers = [part[np.argmax(np.abs(gradient))] for part in numbers]
    said = (
        text.format(what, at, *(f"{number:.8g}" for number in numbers)) + "changed, and a run is of no one posterior."
    )
    with pytest.warns(UserWarning, match="the function has changed"):
        run = pdmp.sample(pdmp.BPS(model, refresh_rate=1.0), events=200, seed=1)
    assert said in run.summary().warnings
    same = from_function(functools.partial(target, changes=False), 2)
    assert same.changed() is None and from_function(target, 2, check_gradient=False).changed() is None


def wrong_far_out(x):
    """Right within 2.2 of zero, where a last position usually is."""
    return 0.5 * x @ x, np.where(np.abs(x) > 2.2, 0.2 * x, x)


def test_a_run_of_moments_keeps_what_the_checks_look_at():
    """Its averages are those of another store; heavy tails and gradients far out are seen all the same."""
    with pytest.warns(UserWarning, match="the gradient of FunctionModel is not that of its potential where"):
        run = pdmp.sample(pdmp.ZigZag(from_function(wrong_far_out, 2)), events=600, seed=1, store="moments")
    rows = run.records[0].grid.rows
    assert of_chains.ASIDE <= run.records[0].grid.used[0] <= len(rows) == 2 * of_chains.ASIDE

    tail = from_function(lambda x: (math.log1p(float(x @ x)), 2.0 * x / (1.0 + x @ x)), 1)
    run = pdmp.sample(pdmp.ZigZag(tail, metric=1.0), events=600, seed=1, store="moments")
    assert "x[0] seems to have no variance" in run.summary().note
    assert any('`run.quantile([0.05, 0.5, 0.95])` of `store="grid"`' in text for text in run.summary().warnings)
    kept = pdmp.sample(pdmp.ZigZag(tail, metric=1.0), events=600, seed=1)
    assert kept.mean() == pytest.approx(run.mean(), rel=1e-12) and kept.end == run.end
    with pytest.raises(ValueError, match="keeps none"):
        run.draws(10)


def test_a_run_that_keeps_no_positions_says_what_was_not_looked_at(monkeypatch):
    """Of 10⁶ coordinates 64 would take half a gigabyte for each chain."""
    assert [of_chains.rows_aside(d) for d in (1, 2_048, 8_192, 8_193, 10**6)] == [256, 256, 64, 0, 0]
    said = 'and the law of the draws were not checked, as `store="moments"` keeps no positions'
    call = {"events": 100, "seed": 1, "store": "moments"}
    model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 2.0])
    assert said not in pdmp.sample(pdmp.ZigZag(model), **call).summary().note
    monkeypatch.setattr(of_chains, "ASIDE_BYTES", 16 * of_chains.FEWEST_ASIDE)
    run = pdmp.sample(pdmp.ZigZag(model), **call)
    assert said in run.summary().note and len(run.records[0].grid.rows) == 0
