"""Monte Carlo errors: exact averages over stretches; series and processes whose asymptotic variance is known."""

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import averages, monte_carlo_error
from pdmp.diagnostics.monte_carlo_error import asymptotic_variance
from pdmp.models import Gaussian
from tests.checks import assert_unbiased
from tests.toys import Coupled, Telegraph, Ticks, Walls

PROCESSES = {"global": Telegraph, "local": Walls, "ticks": Ticks, "coupled": Coupled}


# -- the exact averages ---------------------------------------------------------------------------------------------


@pytest.mark.exact
@pytest.mark.parametrize("name", PROCESSES)
def test_averages_over_stretches_are_integrals(name, monkeypatch):
    run = pdmp.sample(PROCESSES[name](), time=30.0, warmup=0.1, seed=1)
    path = run.trajectories[0].whole
    ends = np.linspace(3.0, 30.0, 8)

    def cubic(x):
        return np.array([x[0] ** 3 - x[-1], x[0] * x[-1]])

    for f in (None, cubic):
        expected = [path.integral(f, a, b) / (b - a) for a, b in zip(ends, ends[1:], strict=False)]
        np.testing.assert_allclose(path.stretches(7, f), expected, rtol=1e-10, atol=1e-12)
    plain = path.stretches(7)
    monkeypatch.setattr("pdmp.engine.trajectory.BLOCK", 5)
    np.testing.assert_allclose(path.stretches(7, cubic), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(path.stretches(7), plain, rtol=1e-10, atol=1e-12)


@pytest.mark.exact
@pytest.mark.parametrize("name", PROCESSES)
def test_stretches_of_all_stores_are_of_the_same_path(name):
    """The average over all of them is the run's, for x and for f, extrapolated where copies are coupled."""
    for store in ("skeleton", "grid", "moments"):
        run = pdmp.sample(
            PROCESSES[name](), time=64.0, chains=2, seed=3, store=store, draws=32 if store == "grid" else None
        )
        series, stretches, lengths = pdmp.diagnostics.averages.stretches(run)
        means = [one.mean() for one in pdmp.diagnostics.split(run)]
        for i, (one, stretch, length) in enumerate(zip(series, stretches, lengths, strict=True)):
            assert len(one) * stretch == pytest.approx(length)
            np.testing.assert_allclose(one.mean(axis=0), means[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.mean(means, axis=0), run.mean(), rtol=1e-10)
        if store != "moments":
            f = lambda x: x[0] ** 2  # noqa: E731
            means = [one.expectation(f) for one in pdmp.diagnostics.split(run)]
            for one, mean in zip(pdmp.diagnostics.averages.stretches(run, f)[0], means, strict=True):
                assert one.mean() == pytest.approx(mean)
            assert np.mean(means) == pytest.approx(run.expectation(f))


# -- series of which everything is known ------------------------------------------------------------------------------


def autoregressions(rho, n, m, seed):
    """m stationary AR(1) series of unit variance, (n, m)."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, m))
    for k in range(1, n):
        z[k] = rho * z[k - 1] + np.sqrt(1.0 - rho * rho) * z[k]
    return z


@pytest.mark.exact
@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.5, 0.9])
def test_the_spectral_estimate_of_an_autoregression(rho):
    """σ² = (1 + ρ) / (1 - ρ), in steps."""
    found = asymptotic_variance(autoregressions(rho, 4_000, 400, 1), 1.0)
    assert_unbiased(found * (1.0 - rho) / (1.0 + rho), 1.0, resolution=0.08)


@pytest.mark.exact
@pytest.mark.parametrize("rho", [-0.6, 0.5, 0.9])
def test_batch_means_of_an_autoregression(rho):
    """The mean of the estimate is exactly that of the variances of the means of a batch and of all of them."""

    def variance_of_mean(n):
        k = np.arange(1, n)
        return (n + 2.0 * np.sum((n - k) * rho**k)) / n**2

    found = asymptotic_variance(autoregressions(rho, 900, 2_000, 2), 0.5, "batch")
    expected = 0.5 * 30.0 * (variance_of_mean(30) - variance_of_mean(900)) * 30.0 / 29.0
    assert_unbiased(found / expected, 1.0, resolution=0.07)


@pytest.mark.exact
@pytest.mark.parametrize("method, resolution", [("spectral", 0.05), ("batch", 0.12)])
def test_an_ornstein_uhlenbeck_process(method, resolution):
    """dx = -θ x dt + √(2θ) dW: σ² = 2/θ; x and its integral over a stretch are jointly normal."""
    theta, h, n, m = 2.0, 0.4, 2_500, 400
    rng, a = np.random.default_rng(3), np.exp(-0.8)
    # of the integral over [0, h] given x: mean x (1 - a)/θ; variances and covariance of the noise
    end = 1.0 - a * a
    both = (1.0 - a) ** 2 / theta
    whole = (2.0 * h - (3.0 - 4.0 * a + a * a) / theta) / theta
    factor = np.linalg.cholesky([[end, both], [both, whole]])
    x, averages = rng.standard_normal(m), np.empty((n, m))
    for k in range(n):
        noise = factor @ rng.standard_normal((2, m))
        averages[k] = (x * (1.0 - a) / theta + noise[1]) / h
        x = a * x + noise[0]
    assert_unbiased(asymptotic_variance(averages, h, method) * theta / 2.0, 1.0, resolution=resolution)


@pytest.mark.exact
def test_series_that_never_moved_and_bad_ones():
    assert asymptotic_variance(np.ones((50, 2)), 1.0).tolist() == [0.0, 0.0]
    assert np.isnan(asymptotic_variance(np.arange(7.0), 1.0))
    with pytest.raises(ValueError, match="must be finite"):
        asymptotic_variance(np.full(50, np.nan), 1.0)
    with pytest.raises(ValueError, match='`method` must be "spectral" or "batch"'):
        asymptotic_variance(np.ones(50), 1.0, "geyer")
    with pytest.raises(ValueError, match="`method`"):
        pdmp.sample(Ticks(), steps=50, seed=1).mcse(method="geyer")


@pytest.mark.exact
def test_chains_that_disagree_have_the_error_of_their_averages():
    x = autoregressions(0.0, 400, 4, 5)
    agree = monte_carlo_error.standard_error([*x.T], [1.0] * 4, [400.0] * 4)
    assert agree == pytest.approx(1.0 / 40.0, rel=0.2)
    apart = x + [0.0, 1.0, 2.0, 3.0]
    found = monte_carlo_error.standard_error([*apart.T], [1.0] * 4, [400.0] * 4)
    assert found == pytest.approx(apart.mean(axis=0).std(ddof=1) / 2.0)
    unequal = monte_carlo_error.standard_error([*apart.T], [1.0] * 4, [400.0, 400.0, 1.0, 1.0])
    means = apart.mean(axis=0)
    assert unequal == pytest.approx(abs(means[0] - means[1]) / 2.0, rel=0.05)


# -- processes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zigzags():
    return pdmp.sample(pdmp.ZigZag(Gaussian(0.0, [1.0])), time=4_000.0, warmup=0.01, chains=200, seed=6)


def test_the_zig_zag_on_a_normal_law(zigzags):
    r"""σ² of x is 2 √(2/π), of x² it is 4 √(2/π).

    The generator is θ ∂ₓφ + (θx)₊ (φ(x, -θ) - φ(x, θ)). With φ = a(x) + θ b(x) it equals -f where b' - x b = -f and
    a' = |x| b: b = 1 for f = x, b = x for f = x² - 1, and σ² = 2 E[f a] = E|x|³ and ⅔ E[(x² - 1)|x|³].
    """
    truth = np.array([2.0, 4.0]) * np.sqrt(2.0 / np.pi)

    def f(x):
        return np.array([x[0], x[0] ** 2])

    series, stretches, lengths = pdmp.diagnostics.averages.stretches(zigzags, f)
    for method, resolution in (("spectral", [0.1, 0.2]), ("batch", [0.2, 0.3])):
        each = [asymptotic_variance(s, h, method) for s, h in zip(series, stretches, strict=True)]
        assert_unbiased(each / truth, 1.0, resolution=resolution)
    # And so do replicates.
    squares = (pdmp.diagnostics.running_mean(zigzags, f, n=1)[:, 0] - [0.0, 1.0]) ** 2 * np.array(lengths)[:, None]
    assert_unbiased(squares / truth, 1.0, resolution=1.5)
    # So many effective draws as there are: of the time T, T / σ².
    assert zigzags.ess("spectral")[0] == pytest.approx(sum(lengths) / truth[0], rel=0.05)
    found = zigzags.expectation(f, error=True)
    np.testing.assert_allclose(found.error, np.sqrt(truth / sum(lengths)), rtol=0.04)
    assert np.all(np.abs(found.value - [0.0, 1.0]) < 5.0 * found.error)
    np.testing.assert_array_equal(zigzags.mean(error=True).error, zigzags.mcse())


@pytest.mark.parametrize("store", ["skeleton", "grid", "moments"])
@pytest.mark.parametrize(
    "process, options",
    [
        (pdmp.BPS(Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 2.0]])), {"time": 800.0}),
        pytest.param(
            *(discrete.SGLD(Gaussian([0.0, 0.0], [1.0, 4.0]), step=0.1), {"steps": 2_000}), marks=pytest.mark.release
        ),
        (
            discrete.SGLD(Gaussian([0.0, 0.0], [1.0, 4.0]), step=discrete.schedules.polynomial(0.4, 1.0, 0.33)),
            {"steps": 2_000},
        ),
    ],
    ids=["BPS", "equal steps", "unequal steps"],
)
def test_the_errors_of_chains_are_those_of_their_replicates(process, options, store):
    """z² of the chains' averages under the error given for each has the mean 1."""
    options = options | {"store": store, "draws": 200 if store == "grid" else None}
    run = pdmp.sample(process, chains=200, warmup=0.1, seed=7, **options)
    series, stretches, lengths = pdmp.diagnostics.averages.stretches(run)
    each = np.array([asymptotic_variance(s, h) / n for s, h, n in zip(series, stretches, lengths, strict=True)])
    means = np.array([one.mean() for one in pdmp.diagnostics.split(run)])
    spread = (means - means.mean(axis=0)) ** 2 * 200 / 199
    assert_unbiased(spread / each.mean(axis=0), 1.0, resolution=1.25)
    assert np.all(np.abs(run.mcse() * np.sqrt(200.0) / np.sqrt(each.mean(axis=0)) - 1.0) < 0.02)


def test_ess_of_the_path_and_of_draws():
    """x ← ρ x + noise with ρ = 0.9: n steps are worth n / 19, by every estimate."""
    run = pdmp.sample(discrete.SGLD(Gaussian([0.0, 0.0], [1.0, 1.0]), step=0.1), steps=60_000, chains=2, seed=8)
    for method in ("spectral", "batch", "mean"):
        np.testing.assert_allclose(run.ess(method), 120_000 / 19.0, rtol=0.25)
    found = pdmp.diagnostics.efficiency(run)
    least = run.ess("spectral").min()
    assert found["ess_min"] == least and found["per_event"] == pytest.approx(least / 120_000)
    assert found["per_gradient"] == pytest.approx(found["per_event"], rel=1e-3)
    assert found["per_second"] == pytest.approx(least / run.stats["seconds"])


@pytest.mark.exact
def test_squares_whose_extrapolated_variance_is_negative_have_no_effective_draws():
    """They counted as infinitely many, as those of squares that do not vary."""
    run = pdmp.sample(Coupled(), events=120, chains=2, seed=0)
    *_, fourth = averages.square_stretches(run, np.tile(run.mean(), 2))
    assert run.var().min() > 0.0 and np.array_equal(fourth < run.var() ** 2, [False, False, True])
    assert np.array_equal(np.isnan(pdmp.diagnostics.effective_draws(run)["sd"]), [False, False, True])


@pytest.mark.exact
def test_errors_that_need_the_path():
    run = pdmp.sample(Telegraph(), time=50.0, seed=1, store="moments")
    assert run.mcse().shape == (run.dim,)
    with pytest.raises(ValueError, match='keeps none; use `store="skeleton"` or `store="grid"`'):
        run.mcse(lambda x: x[0])
    assert np.isnan(pdmp.sample(Telegraph(), events=2, seed=1).mcse()).all()


@pytest.mark.exact
def test_chains_that_differ_by_chance_in_one_of_many_averages_are_no_finding():
    """Of 1,500 averages of independent draws none has far too few effective draws; one whose chains are apart has."""
    x = np.random.default_rng(9).standard_normal((4, 400, 1_500))
    found = 1_600.0 * monte_carlo_error.standard_error(list(x), [1.0] * 4, [400.0] * 4) ** 2  # 1, of independent draws
    assert found.max() < 2.5  # where each is tested at 0.001 one or two are at 6 or more
    alone = 1_600.0 * monte_carlo_error.standard_error(list(x), [1.0] * 4, [400.0] * 4, together=1) ** 2
    assert np.sum(alone > 5.0) >= 1 and np.allclose(alone[alone < 2.5], found[alone < 2.5])
    x[0, :, 7] += 0.8  # sixteen standard errors of a chain's average
    apart = 1_600.0 * monte_carlo_error.standard_error(list(x), [1.0] * 4, [400.0] * 4) ** 2
    assert apart[7] > 30.0 and np.array_equal(np.delete(apart, 7), np.delete(found, 7))


@pytest.mark.exact
def test_the_average_of_a_short_chain_may_lie_farther_off():
    """Of independent draws in chains of 1,000 and three times 50 few errors are too large: 1 % was stated for 400 sets.

    One in fifty had a ratio above 1.5 in 20 other sets of 400; where averages of all chains had the same variance it
    was six of ten. A short chain that lies 20 of its standard errors off is seen.
    """
    rng, lengths = np.random.default_rng(3), [1000.0, 50.0, 50.0, 50.0]
    x = [rng.standard_normal((40, 400)) / np.sqrt(n / 40) for n in lengths]
    found = np.sqrt(sum(lengths)) * np.array(
        [
            monte_carlo_error.standard_error([one[:, [k]] for one in x], [n / 40 for n in lengths], lengths)[0]
            for k in range(400)
        ]
    )
    assert np.mean(found > 1.5) < 0.06 and 0.9 < np.median(found) < 1.1
    x[3] += 20.0 / np.sqrt(50.0)
    apart = monte_carlo_error.standard_error(x, [n / 40 for n in lengths], lengths)
    means, weights = np.array([one.mean(axis=0) for one in x]), np.array(lengths) / sum(lengths)
    squares = weights @ weights
    spread = weights @ (means - weights @ means) ** 2
    assert np.allclose(apart, np.sqrt(spread * squares / (1.0 - squares)))
