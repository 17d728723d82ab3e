"""Posteriors of shards, combined: exact for Gaussian factors, and as far off as stated for skewed ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.shards import combining, consensus, prior_share, swiss
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, plain_only]

N, S, D = 400, 3, 2


@pytest.fixture
def shards():
    """Draws whose sample moments are exactly those of three Gaussian factors, with the moments of their product."""
    rng, samples, precisions, pulls = np.random.default_rng(0), [], [], []
    for s in range(S):
        x = rng.standard_normal((N, D))
        x -= x.mean(axis=0)
        x = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x, rowvar=False))).T
        root = np.array([[1.0 + s, 0.0], [0.7 * s, 0.5]])
        mean = np.array([s - 1.0, 0.3 * s])
        samples.append(mean + x @ root.T)
        precisions.append(np.linalg.inv(root @ root.T))
        pulls.append(precisions[-1] @ mean)
    cov = np.linalg.inv(sum(precisions))
    return samples, cov @ sum(pulls), cov, precisions


@pytest.mark.parametrize("combine", [consensus, swiss])
def test_mean_and_covariance_are_those_of_the_product_of_gaussians(combine, shards):
    samples, mean, cov, _ = shards
    found = combine(samples)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.cov, cov, rtol=1e-12)
    np.testing.assert_allclose(found.sd, np.sqrt(np.diag(cov)), rtol=1e-12)
    np.testing.assert_allclose(found.draws.mean(axis=0), mean, atol=1e-12)


def test_consensus_is_a_weighted_average_of_draws(shards):
    samples, _, cov, precisions = shards
    found = consensus([samples[0], samples[1][:100], samples[2]])
    assert found.draws.shape == (100, D)
    full = consensus(samples)
    met = [np.random.default_rng(s).permutation(N) for s in range(S)]  # which draw meets which
    by_hand = [cov @ sum(precisions[s] @ samples[s][met[s][k]] for s in range(S)) for k in (0, 7, N - 1)]
    np.testing.assert_allclose(full.draws[[0, 7, N - 1]], by_hand, rtol=1e-9)
    a, b, c = [np.linalg.inv(np.cov(x, rowvar=False)) for x in (samples[0], samples[1][:100], samples[2])]
    # Of more draws than the fewest, equally spaced ones from the first to the last.
    spaced, met = (
        np.linspace(0, N - 1, 100).round().astype(int),
        [np.random.default_rng(s).permutation(100) for s in range(S)],
    )
    parts = a @ samples[0][spaced[met[0][3]]], b @ samples[1][met[1][3]], c @ samples[2][spaced[met[2][3]]]
    np.testing.assert_allclose(found.draws[3], np.linalg.solve(a + b + c, sum(parts)), rtol=1e-9)


def test_shards_that_ran_with_one_seed_are_not_paired(shards):
    """Their draws move alike: averages of such pairs would be as wide as a shard's, not as the posterior."""
    x = shards[0][0]
    found = consensus([x, x + 0.5, x - 0.5, x + 1e-9])
    # 400 independent averages: their standard deviations are known to 4 %.
    np.testing.assert_allclose(found.draws.std(axis=0), found.sd, rtol=0.16)
    assert np.all(found.sd < 0.51 * x.std(axis=0))


def test_each_shard_of_swiss_has_the_common_moments(shards):
    samples, mean, cov, _ = shards
    found = swiss(samples)
    assert found.draws.shape == (S * N, D)
    for s in range(S):
        part = found.draws[s * N : (s + 1) * N]
        np.testing.assert_allclose(part.mean(axis=0), mean, atol=1e-12)
        np.testing.assert_allclose(np.cov(part, rowvar=False), cov, rtol=1e-10)
    values, vectors = np.linalg.eigh(np.cov(samples[1], rowvar=False))
    other, basis = np.linalg.eigh(cov)
    a = (basis * np.sqrt(other)) @ basis.T @ (vectors / np.sqrt(values)) @ vectors.T
    np.testing.assert_allclose(found.draws[N + 5], mean + a @ (samples[1][5] - samples[1].mean(axis=0)), rtol=1e-9)


def test_inflated_shards_have_the_mean_of_the_precisions(shards):
    samples, mean, cov, _ = shards
    found = swiss(samples, inflated=True)
    np.testing.assert_allclose(found.cov, S * cov, rtol=1e-12)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(np.cov(found.draws[:N], rowvar=False), S * cov, rtol=1e-10)


def test_the_errors_that_the_documentation_states():
    """Four factors Gamma(10, 5), whose product is Gamma(37, 20): in its sds, with errors of 0.01 from 40,000 draws."""
    rng, a, b, parts = np.random.default_rng(1), 10.0, 5.0, 4
    truth = stats.gamma(parts * (a - 1.0) + 1.0, scale=1.0 / (parts * b))
    factors = [rng.gamma(a, 1.0 / b, size=(40_000, 1)) for _ in range(parts)]
    for combine in (consensus, swiss):
        off = (combine(factors).mean[0] - truth.mean()) / truth.std()
        assert off == pytest.approx(0.49, abs=0.03) and combine(factors).sd[0] / truth.std() == pytest.approx(
            1.04, abs=0.02
        )
    whole = [rng.gamma(parts * (a - 1.0) + 1.0, 1.0 / (parts * b), size=(40_000, 1)) for _ in range(parts)]
    found = swiss(whole, inflated=True)
    assert found.mean[0] == pytest.approx(truth.mean(), abs=0.03 * truth.std())
    assert found.sd[0] == pytest.approx(truth.std(), rel=0.02)
    assert stats.skew(found.draws[:, 0]) == pytest.approx(float(truth.stats("s")), abs=0.05)
    assert stats.skew(consensus(factors).draws[:, 0]) < 0.6 * stats.skew(swiss(factors).draws[:, 0])


def test_runs_of_shards_of_a_regression():
    """Each with its share of the prior, so that their product is the posterior, which is known."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((90, 1))
    y = X[:, 0] + rng.standard_normal(90)
    whole = pdmp.models.LinearGaussian(X, y, prior_scale=0.2)
    runs = []
    for s in range(3):
        part = pdmp.models.LinearGaussian(X[s::3], y[s::3], prior_scale=prior_share(0.2, 3))
        runs.append(pdmp.sample(pdmp.ZigZag(part), events=4_000, chains=2, seed=s, progress=False))
    precision = 1.0 / 0.04 + X[:, 0] @ X[:, 0]
    found = swiss(runs, draws=1_100)
    assert found.draws.shape == (3 * 2 * 1_100, 1) and whole.hessian(np.zeros(1))[0, 0] == pytest.approx(precision)
    # Means of 2,200 draws of a path that overshoots: well below 1 / √1000 a shard.
    assert found.mean[0] == pytest.approx(X[:, 0] @ y / precision, abs=0.1 / np.sqrt(precision))
    assert found.sd[0] == pytest.approx(precision**-0.5, rel=0.1) and not found.warnings
    assert consensus(runs, draws=50).draws.shape == (100, 1)


def test_shares_of_a_prior():
    assert prior_share(0.5, 9) == 1.5 and isinstance(prior_share(1, 4), float)
    np.testing.assert_allclose(prior_share([1.0, 2.0], 4), [2.0, 4.0])
    with pytest.raises(ValueError, match="`shards` must be a whole number, at least 1"):
        prior_share(1.0, 0)
    for bad in (-1.0, 0.0, np.nan, [1.0, np.inf]):
        with pytest.raises(ValueError, match="`scale` must be positive and finite"):
            prior_share(bad, 2)


def test_shards_that_disagree_are_said(shards):
    samples, *_ = shards
    assert not consensus(samples).warnings and "approximation" in str(swiss(samples))
    moved = [*(samples[0] + 1e-9 * k for k in range(8)), samples[1], samples[0] + 12.0, samples[2]]
    found = swiss(moved)
    for x, apart in zip(moved, found.apart, strict=True):
        m, c = x.mean(axis=0) - found.mean, np.cov(x, rowvar=False)
        assert apart == pytest.approx(np.sqrt(m @ np.linalg.inv(c) @ m / D))
    assert np.all(np.delete(found.apart, 9) < 4.0) and found.apart[9] > 4.0
    assert len(found.warnings) == 1 and found.warnings[0] in str(found)
    assert f"shard 9 is {found.apart[9]:.1f} of its standard" in found.warnings[0]
    assert f"up to {found.apart[9]:.1f} of their sds apart" in str(found) and f"{11 * N:,} draws" in str(found)


def standard(n, d=2, seed=3):
    """Draws whose mean is 0 and whose covariance is 1, but for rounding."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    x -= x.mean(axis=0)
    return x @ np.linalg.inv(np.linalg.cholesky(np.atleast_2d(np.cov(x, rowvar=False)))).T


@pytest.mark.parametrize(("apart", "said"), [(3.95, 0), (4.05, 1)])
def test_shards_are_far_apart_from_four_standard_deviations_on(apart, said):
    """Of two factors as wide the common mean is in the middle."""
    x = standard(60)
    found = swiss([x * [2.0, 0.1], x * [2.0, 0.1] + np.sqrt(2.0) * np.array([0.0, 0.2 * apart])])
    np.testing.assert_allclose(found.apart, apart, rtol=1e-9)
    assert len(found.warnings) == said


def test_shards_that_are_no_trouble(shards):
    """Chains one after the other, as few draws as a covariance needs, one mean in common, columns of other units."""
    samples, *_ = shards
    chained = [x.reshape(4, N // 4, D) for x in samples]
    for combine in (consensus, swiss):
        assert np.array_equal(combine(chained).draws, combine(samples).draws)
    assert swiss([samples[0][:5], samples[1]]).draws.shape == (N + 5, D)
    x = standard(60)
    np.testing.assert_allclose(swiss([x, x + [0.0, 1.0]]).mean, [0.0, 0.5], atol=1e-12)
    small = consensus([y * [1e-9, 1.0] for y in samples])
    np.testing.assert_allclose(small.draws / [1e-9, 1.0], consensus(samples).draws, rtol=1e-6)


@pytest.mark.parametrize(("left", "is_refused"), [(4e-12, False), (2.5e-13, True)])
def test_the_least_eigenvalue_of_correlations(left, is_refused):
    """1 - r of two columns with the correlation r, whatever their units."""
    x, r = standard(60), 1.0 - left
    near = np.column_stack([x[:, 0], r * x[:, 0] + np.sqrt(1.0 - r**2) * x[:, 1]]) * [1.0, 1e3]
    if is_refused:
        with pytest.raises(ValueError, match="a covariance is singular"):
            swiss([standard(50, seed=4) + 1.0, near])
    else:
        assert np.all(np.isfinite(swiss([standard(50, seed=4) + 1.0, near]).draws))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda x: x[0], "must be a list of two or more"),
        (lambda x: x[:1], "must be a list of two or more"),
        (lambda x: [x[0], x[1], x[0]], "`shards` has the same draws twice"),
        (lambda x: [x[0], x[1][:, :1]], r"`shards\[1\]` must have the shape"),
        (lambda x: [x[0], x[1][:, 0]], r"`shards\[1\]` must have the shape"),
        (
            lambda x: [x[0], np.where(x[1] == x[1].max(), np.nan, x[1])],
            r"`shards\[1\]` has numbers that are not finite",
        ),
        (lambda x: [x[0][:4], x[1]], r"`shards\[0\]` has 4 draws of 2 numbers"),
        (lambda x: [x[0], x[1] * [1.0, 0.0]], "a covariance is singular"),
        (lambda x: [x[0], x[1] * [1.0, 0.0] + 0.1], "a covariance is singular"),  # its variance is that of rounding
        *(
            (lambda x, s=s: [x[0], x[1][s:, [0, 0]]], "a covariance is singular") for s in range(12)
        ),  # so that signs differ
        (lambda x: [x[0], x[1] + 1j], r"`shards\[1\]` must be real"),
        (lambda x: [x[0], np.ma.array(x[1], mask=x[1] > 1.0)], r"`shards\[1\]` has \d+ masked entries"),
        (lambda x: [x[0], [["a", "b"]]], r"`shards\[1\]` must be a `Run` or an array of numbers"),
        (lambda x: 3, "must be a list of two or more"),
        (lambda x: (y for y in x), "must be a list of two or more"),
    ],
)
def test_what_cannot_be_combined(bad, says, shards):
    for combine in (consensus, swiss):
        with pytest.raises(ValueError, match=says):
            combine(bad(shards[0]))


@pytest.mark.parametrize("store", ["skeleton", "grid"])
def test_chains_of_a_run_count_as_their_lengths_say(store):
    """One of 30 and one of 400 events, which began elsewhere: moments of the shard are those over time."""
    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 1.0], [1.0, 2.0]), refresh_rate=0.5)
    options = {"seed": 1, "warmup": 0.0, "progress": False, "store": store}
    options |= {"draws": 500} if store == "grid" else {}
    short, long = (
        pdmp.sample(process, events=events, initial=start, **options)
        for events, start in ((30, [20.0, -15.0]), (400, [0.0, 1.0]))
    )
    run = pdmp.Run(short.info, [*short.records, *long.records], process=process)
    lengths = np.array([record.length for record in run.records])
    assert lengths[1] > 4.0 * lengths[0] and np.abs(np.diff(run.draws(150).mean(axis=1), axis=0)).min() > 1.0
    flat = np.random.default_rng(0).standard_normal((400, 2))
    flat = 1e6 * (flat - flat.mean(axis=0))  # the other shard says next to nothing
    for combine in (consensus, swiss):
        np.testing.assert_allclose(combine([run, flat], draws=500).mean, run.mean(), atol=0.02)
        np.testing.assert_allclose(combine([run, flat], draws=500).cov, run.cov(), rtol=0.05, atol=0.05)


def test_no_chain_is_asked_for_more_than_its_grid_has():
    """Draws are at equal times of all chains one after the other, so that the number of each is rounded."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        lengths, used = rng.exponential(size=3), rng.integers(3, 30, 3)
        records = [
            SimpleNamespace(length=x, grid=SimpleNamespace(used=[k])) for x, k in zip(lengths, used, strict=True)
        ]
        run = SimpleNamespace(chains=3, store="grid", records=records, thin=lambda n, method: n)
        n = combining._draws_of(run, 1_000)
        counts = np.diff(np.rint(np.cumsum(lengths) * (n / lengths.sum())), prepend=0)
        assert np.all(counts <= used) and 1 <= n < 3_000
        room = np.min((used - 1) / lengths) * lengths.sum()
        assert n == 1 or room - 1.0 < n <= room
        assert combining._draws_of(run, 1) == min(n, 3)
