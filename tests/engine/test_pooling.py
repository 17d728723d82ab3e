"""What is summed, averaged and compared over chains, of three with unequal lengths, values and counts."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp import comparison
from pdmp.diagnostics import averages, running_mean, split
from pdmp.models import Gaussian
from pdmp.process import VIOLATIONS
from tests.checks import plain_only
from tests.toys import Coupled

pytestmark = [pytest.mark.exact, plain_only]

TARGET = Gaussian([0.5, -1.0], [[1.0, 0.3], [0.3, 0.5]])


def joined(make, *lengths, warmups=0.1, **options):
    """One run of chains of these numbers of events, made one by one with their own seeds."""
    parts = enumerate(zip(lengths, np.broadcast_to(warmups, len(lengths)).tolist(), strict=True))
    runs = [pdmp.sample(make(), events=n, seed=s, warmup=warmup, **options) for s, (n, warmup) in parts]
    return pdmp.Run(runs[0].info, [record for run in runs for record in run.records], process=runs[0].process)


@pytest.fixture(scope="module", params=["skeleton", "grid", "moments"])
def run(request):
    warmups = 0.1, 0.4, 0.3
    return joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25, warmups=warmups, store=request.param)


def weighted(run, value):
    """Σ Tᵢ valueᵢ / Σ Tᵢ, of each chain alone."""
    lengths = np.array([record.length for record in run.records])
    assert len(set(lengths.tolist())) == len(lengths) == 3
    return np.tensordot(lengths / lengths.sum(), np.array([value(one) for one in split(run)]), 1)


def test_moments(run):
    mean = weighted(run, lambda one: one.mean())
    np.testing.assert_allclose(run.mean(), mean, rtol=1e-12)
    spread = weighted(run, lambda one: one.cov() + np.outer(one.mean() - mean, one.mean() - mean))
    np.testing.assert_allclose(run.cov(), spread, rtol=1e-10)
    np.testing.assert_allclose(run.var(), np.diag(spread), rtol=1e-10)
    if run.store != "moments":
        np.testing.assert_allclose(run.expectation(product), weighted(run, lambda one: one.expectation(product)))
        assert run.expectation(lambda x: 1.0) == pytest.approx(1.0, rel=1e-12)
        if run.store == "grid":  # of which as many rows count as a chain has come to, whatever its spacing
            rows = [one.records[0].grid.rows[: int(one.records[0].grid.used[0])] for one in split(run)]
            each = [np.mean(part[:, 0] * part[:, 1]) for part in rows]
            lengths = [record.length for record in run.records]
            assert run.expectation(product) == pytest.approx(np.average(each, weights=lengths), rel=1e-12)
            assert all(len(part) * r.grid.spacing[0] < r.length for part, r in zip(rows, run.records, strict=True))
        for f in (None, product):
            apart = [running_mean(one, f, 12)[0] for one in split(run)]
            np.testing.assert_allclose(running_mean(run, f, 12), apart, rtol=1e-12)
            if run.store == "skeleton":
                np.testing.assert_allclose(running_mean(run, f, 12)[:, -1], running_mean(run, f, 1)[:, 0], rtol=1e-9)


def product(x):
    return x[0] * x[1]


def test_paths_turn_about_the_reference_of_their_own_chain():
    centres = iter([[0.5, -1.0], [2.0, 0.3], [-0.4, 0.0]])
    run = joined(lambda: pdmp.Boomerang(TARGET, next(centres), metric=pdmp.Metric(covariance=0.8)), 60, 300, 25)
    for path, one in zip(run.trajectories, split(run), strict=True):
        np.testing.assert_allclose(path.whole.mean(one.records[0].warmup), one.mean(), rtol=1e-9)


def test_errors_and_effective_draws(run):
    """The error from within chains where they agree; of chains that differ by more, that of their averages."""
    for f in (None,) if run.store == "moments" else (None, product):
        apart = [averages.stretches(one, f) for one in split(run)]
        for k, found in enumerate(averages.stretches(run, f)):
            assert [np.asarray(part).tolist() for part in found] == [np.asarray(one[k][0]).tolist() for one in apart]
    if run.store == "skeleton":  # half as many stretches as there were events after the warm-up
        events = [int(np.sum(path.times > path.warmup)) for path in run.trajectories]
        assert [len(one) for one in averages.stretches(run)[0]] == [n // 2 for n in events]
        assert [len(one) for one in averages.square_stretches(run, run.mean())[0]] == [n // 2 for n in events]
    apart = pdmp.diagnostics.monte_carlo_error.standard_error(*averages.stretches(run))
    np.testing.assert_allclose(run.mcse(), apart, rtol=1e-12)
    found = pdmp.diagnostics.effective_draws(run)
    np.testing.assert_allclose(found["mean"], run.var() / apart**2, rtol=1e-10)
    away = [one.mean()[0] for one in split(run)]
    assert len(set(away)) == 3 and np.all(np.isfinite(found["sd"]))
    # That of the sds: of (x - mean)², whose fourth moments are averaged over the time of all chains.
    series, each, lengths, fourth = averages.square_stretches(run, run.mean())
    if run.store == "moments":
        assert fourth is None
        fourth = 3.0 * run.var() ** 2
    else:
        np.testing.assert_allclose(fourth, run.expectation(lambda x: ((x.T - run.mean()) ** 4).T), rtol=1e-9)
    error = pdmp.diagnostics.monte_carlo_error.standard_error(series, each, lengths)
    np.testing.assert_allclose(found["sd"], (fourth - run.var() ** 2) / error**2, rtol=1e-9)


def test_counts():
    """Sums, but the largest of what is called the largest, and the mean of means."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25, store="moments")
    told = [
        {"excess": np.array([1.0, 0.5]), "statistics": {"max_a": 2.0, "mean_b": 1.0, "c": 5.0}, "stopped": "events"},
        {"excess": np.array([4.0, 0.9]), "statistics": {"max_a": 7.0, "mean_b": 4.0, "c": 11.0}, "stopped": "time"},
        {"excess": np.array([2.0, 0.7]), "statistics": {"max_a": 3.0, "mean_b": 10.0, "c": 1.0}, "stopped": "events"},
    ]
    records = []
    for k, (record, values) in enumerate(zip(run.records, told, strict=True)):
        counts = np.arange(len(record.counts)) * (10 + k) + k  # all different
        records.append(dataclasses.replace(record, counts=counts, seconds=2.0**k, **values))
    run = pdmp.Run({**run.info, "n_data": 5}, records)
    stats, parts = run.stats, [one.stats for one in split(run)]
    for name in ("total_events", "proposals", "thinned", "bound_violations", "horizons", "data_terms", "data_passes"):
        assert stats[name] == pytest.approx(sum(part[name] for part in parts)) and stats[name] > 0, name
    assert stats["events"] == {name: sum(part["events"][name] for part in parts) for name in stats["events"]}
    assert stats["data_passes"] == stats["data_terms"] / 5 and stats["seconds"] == 7.0
    assert stats["mean_excess"] == pytest.approx(7.0 / stats["bound_violations"]) and stats["max_excess"] == 0.9
    assert (stats["max_a"], stats["mean_b"], stats["c"]) == (7.0, pytest.approx(5.0), 17.0)
    assert stats["stopped"] == ["events", "time", "events"] and run.stopped == "events, time"
    assert run.events.tolist() == [one.events[0] for one in split(run)]


def test_of_a_chain_that_is_too_short_no_position_is_kept():
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 3, 300, warmups=0.0)
    first, second = run.records
    assert first.length < second.length / 8.0
    np.testing.assert_array_equal(run.thin(4, method="time"), run.trajectories[1].discretise(4))


@pytest.mark.parametrize("warmups", [(0.1, 0.1, 0.1), (0.0, 0.8, 0.3)])
def test_quantiles_count_chains_by_their_lengths(warmups):
    """Without their warm-ups."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25, warmups=warmups)
    for q in (0.1, 0.5, 0.8):
        cut = run.quantile(q)
        below = weighted(run, lambda one, cut=cut: np.mean(one.draws(3_000)[0] <= cut, axis=0))
        np.testing.assert_allclose(below, q, atol=0.002)
    low, high = run.hdi(0.5).T
    inside = weighted(run, lambda one: np.mean((one.draws(3_000)[0] >= low) & (one.draws(3_000)[0] <= high), axis=0))
    np.testing.assert_allclose(inside, 0.5, atol=0.002)


def test_correlations_and_rates_of_events():
    """Around the mean of all chains, each lag's products averaged over them; data are those of the whole run."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 120, 300, 80, warmups=(0.1, 0.4, 0.2))
    run.stats.update(data_terms=450, data_passes=90.0)
    u, n = np.array([[1.0, 2.0], [0.3, -1.0]]), 40
    z = (run.draws(n) - run.draws(n).mean(axis=(0, 1))) @ u.T
    products = np.array([(z[:, k:] * z[:, : n - k]).sum(axis=(0, 1)) / (n - k) for k in range(9)]).T
    found, lags = pdmp.diagnostics.acf(run, 9, u, n), np.arange(9) / n
    np.testing.assert_allclose(found["acf"], products / products[:, :1], rtol=1e-9)
    np.testing.assert_allclose(found["time"], np.mean(run.end - run.warmup) * lags)
    for name, spent in (("data_terms", 450.0), ("data_passes", 90.0)):
        np.testing.assert_allclose(found[name], found["time"] * spent / run.end.sum())
    apart = [pdmp.diagnostics.event_rates(one) for one in split(run)]
    lengths = np.array([record.length for record in run.records])
    for name, rate in pdmp.diagnostics.event_rates(run).items():
        assert rate.value == pytest.approx(lengths @ [part[name].value for part in apart] / lengths.sum())
        within = np.sqrt(np.sum((lengths * [part[name].error for part in apart]) ** 2)) / lengths.sum()
        assert rate.error == pytest.approx(within) and within > 0.0


@pytest.mark.parametrize("d", [2, 12])
def test_probabilities_of_models(d):
    """Of two coordinates they are accumulated; of twelve they are read from the paths."""
    target = Gaussian(np.where(np.arange(d) == 0, 1.0, 0.2), np.ones(d))
    run = joined(lambda: pdmp.Sticky(pdmp.ZigZag(target), kappa=0.4), 40, 300, 90, warmups=(0.1, 0.5, 0.2))
    included = weighted(run, lambda one: pdmp.diagnostics.inclusion(one))
    np.testing.assert_allclose(pdmp.diagnostics.inclusion(run), included, rtol=1e-12)
    found, parts = (
        pdmp.diagnostics.sparsity(run),
        [pdmp.diagnostics.sparsity(one) for one in split(run)],
    )
    lengths = np.array([record.length for record in run.records])
    assert set(found) == set().union(*parts) and len({frozenset(part) for part in parts}) > (d > 2)
    for model, p in found.items():
        assert p == pytest.approx(sum(lengths * [part.get(model, 0.0) for part in parts]) / lengths.sum(), rel=1e-9)
    assert sum(found.values()) == pytest.approx(1.0) and list(found.values()) == sorted(found.values(), reverse=True)
    for j in range(d):
        assert sum(p for model, p in found.items() if j in model) == pytest.approx(included[j], abs=1e-9)
    ended = dataclasses.replace(run.records[1], warmup=math.inf)
    some, others = (
        pdmp.Run(run.info, [run.records[0], *part, run.records[2]], process=run.process) for part in ([ended], [])
    )
    assert d == 2 or pdmp.diagnostics.sparsity(some) == pdmp.diagnostics.sparsity(others)


def test_errors_of_means_by_data_passes():
    """Of each chain's mean up to a time: the mean over coordinates and chains, and the root of that of squares."""
    run, truth = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25), SimpleNamespace()
    truth.mean, truth.sd = np.array([0.2, -0.5]), np.array([1.1, 2.3])
    run.stats.update(data_passes=90.0)
    passes, mean, root = comparison._errors_by_pass(run, truth, 0.1, spent=7.0)
    shares = np.geomspace(0.15, 1.0, comparison.POINTS)
    np.testing.assert_allclose(passes, 7.0 + 30.0 * shares)
    for k in (0, 5, comparison.POINTS - 1):
        ends = [path.warmup + (shares[k] - 0.1) / 0.9 * (path.end - path.warmup) for path in run.trajectories]
        errors = [
            (path.mean(path.warmup, t) - truth.mean) / truth.sd for path, t in zip(run.trajectories, ends, strict=True)
        ]
        assert mean[k] == pytest.approx(np.mean(np.abs(errors)), rel=1e-9)
        assert root[k] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-9)


def test_the_row_of_a_comparison():
    """Costs of a chain, and the errors of one chain's means and sds, on average."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25)
    truth = SimpleNamespace(mean=np.array([0.2, -0.5]), sd=np.array([1.1, 2.3]))
    for k, record in enumerate(run.records):
        record.counts[VIOLATIONS] = 10**k
    run.stats.update(data_passes=90.0, seconds=6.0)
    found = comparison._row("a", run.process, run, truth, TARGET, None, spent=7.0, prepared=0.5)
    assert (found["data_passes"], found["seconds"]) == (37.0, 2.5)
    assert (found["events"], found["bound_violations"]) == (385.0 / 3.0, 37.0)
    ess = run.ess() / 3.0
    assert found["min_ess"] == pytest.approx(ess.min()) and found["median_ess"] == pytest.approx(np.median(ess))
    assert found["ess_per_pass"] == pytest.approx(ess.min() / 37.0)
    errors = np.array([np.abs(one.mean() - truth.mean) / truth.sd for one in split(run)])
    assert found["mean_error"] == pytest.approx(errors.mean())
    assert found["max_mean_error"] == pytest.approx(np.mean([max(error) for error in errors]))
    assert found["sd_error"] == pytest.approx(np.mean([np.abs(one.sd() / truth.sd - 1.0) for one in split(run)]))


def test_the_loss_on_held_out_rows():
    """Of each chain's mean probability, extrapolated where copies are coupled, on average over the chains."""
    rng = np.random.default_rng(4)
    model = SimpleNamespace(predict=lambda x, X: 1.0 / (1.0 + np.exp(-x @ X.T)))
    coupled = joined(Coupled, 60, 300, 25)
    for run in (joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25), coupled):
        X, y = 0.1 * rng.standard_normal((6, run.dim)), np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
        losses = []
        for path in (one.whole for one in run.trajectories):
            copies = np.split(path.discretise(500), len(run.copies), axis=1)
            p = sum(w * model.predict(x, X).mean(axis=0) for w, x in zip(run.copies, copies, strict=True))
            losses.append(-np.mean(np.where(y == 1.0, np.log(p), np.log(1.0 - p))))
        assert len(set(losses)) == 3
        assert comparison._log_loss(run, model, (X, y)) == pytest.approx(np.mean(losses), rel=1e-9)


@pytest.mark.parametrize("k", [0, 2])
def test_a_chain_that_ended_in_its_warm_up(k):
    """It has no part in averages, and draws of it are refused by its number."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), 60, 300, 25)
    records = [dataclasses.replace(r, warmup=math.inf) if i == k else r for i, r in enumerate(run.records)]
    some, others = (pdmp.Run(run.info, part, process=run.process) for part in (records, np.delete(records, k)))
    for name in ("mean", "var", "cov", "mcse"):
        np.testing.assert_allclose(getattr(some, name)(), getattr(others, name)(), rtol=1e-12)
    assert some.expectation(lambda x: x[0] ** 2) == pytest.approx(others.expectation(lambda x: x[0] ** 2))
    rates = pdmp.diagnostics.event_rates
    assert {k: r.value for k, r in rates(some).items()} == {k: r.value for k, r in rates(others).items()}
    for ask in (some.draws, lambda: running_mean(some)):
        with pytest.raises(ValueError, match=f"chain {k} has no path"):
            ask()
    assert averages.diagnostic_draws(some) is None and np.all(np.isnan(some.ess())) and np.all(np.isnan(some.rhat()))
    assert "<table" in some._repr_html_()


@pytest.mark.parametrize("order", [(60, 300, 45), (300, 45, 60), (45, 60, 300)])
def test_all_chains_have_as_many_draws_as_the_shortest_grid(order):
    """And as the one with the fewest events."""
    run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), *order, store="grid", draws=60)
    for record, n in zip(run.records, order, strict=True):
        record.grid.used[0] = {60: 50, 300: 57, 45: 31}[n]
    fewest = 31
    assert run["x[0]"].shape == (3, fewest) and averages.diagnostic_draws(run).shape == (3, fewest, 2)
    assert len(run.to_dataframe()) == 3 * fewest and run.thin(5).shape == (5, 2)
    for n in (fewest + 1, 60):  # what is said holds for all chains
        with pytest.raises(ValueError, match=rf"that chain {0 if n == 60 else order.index(45)} has .* `n={fewest}` or"):
            run.draws(n)
    path = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), *order)
    assert averages.diagnostic_draws(path).shape == (3, 45, 2)


@pytest.mark.parametrize("store", ["skeleton", "grid"])
def test_few_positions_represent_the_whole_run(store):
    """As many of a chain as it is long: chains in far modes have the shares of the run's time, not a third each."""
    chains = [joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), n, store=store) for n in (60, 900, 240)]
    records = [one.records[0] for one in chains]
    run = pdmp.Run(chains[0].info, records, process=chains[0].process)
    lengths = np.array([record.length for record in records])
    x = run.thin(200, method="time")
    ends = np.rint(200 * np.cumsum(lengths) / lengths.sum()).astype(int)
    counts = np.diff(ends, prepend=0)
    assert x.shape == (200, 2) and len(set(counts)) == 3
    for one, first, stop in zip(chains, ends - counts, ends, strict=True):
        np.testing.assert_array_equal(x[first:stop], one.draws(stop - first)[0])
    assert run.thin(7).shape == (7, 2)
    ended = dataclasses.replace(records[0], warmup=math.inf)
    rest = pdmp.Run(chains[0].info, [ended, *records[1:]], process=chains[0].process)
    np.testing.assert_array_equal(
        rest.thin(50, method="time")[:3], chains[1].draws(round(50 * lengths[1] / lengths[1:].sum()))[0][:3]
    )
    assert rest.thin(7).shape == (7, 2)


def test_chains_of_unequal_lengths_are_said():
    """As averages over draws, as many of each chain, are others than those over time, whose weights are named."""

    def said(*lengths, **options):
        run = joined(lambda: pdmp.BPS(TARGET, refresh_rate=0.5), *lengths, **options)
        return run, [text for text in run.summary().warnings if "unequal lengths" in text]

    run, (text,) = said(300, 150, 310)
    lengths = np.array([record.length for record in run.records])
    assert text.startswith(f"the chains have unequal lengths, {lengths.min():.4g} to {lengths.max():.4g}: `run.mean()`")
    draws = run.draws(20_000).mean(axis=1)
    np.testing.assert_allclose(lengths @ draws / lengths.sum(), run.mean(), atol=2e-3)  # the weights that are named
    assert np.abs(draws.mean(axis=0) - run.mean()).max() > 0.01
    assert said(300, 290, 310)[1] == [] and said(300)[1] == [] and said(300, 100, store="moments")[1] == []
