"""What is drawn of a run's convergence: ranks, autocorrelations in time, event rates, and all on one page."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

import pdmp
from pdmp import plots
from tests.plots.helpers_plane import PLANE
from tests.toys import Telegraph, Walls

pytestmark = pytest.mark.exact


def test_ranks_by_hand(plane):
    """Shares of each chain's ranks among both, times the number of bins."""
    plane = pdmp.diagnostics.split(plane)[0].__class__(plane.info, plane.records)
    draws = np.array([[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]]]).repeat(2, axis=2)
    draws[1, :, 1] = draws[0, :, 1]  # ties
    plane.draws = lambda n: draws
    first, second = plots.ranks(plane, bins=4).axes
    lines = [[p.get_data().values.tolist() for p in a.patches if isinstance(p, StepPatch)] for a in (first, second)]
    assert lines == [[[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]], [[1.0, 1.0, 1.0, 1.0]] * 2]


def test_the_band_of_ranks(plane):
    """Two standard deviations of a share of independent draws, as many as are effective."""
    axes = plots.ranks(plane, [1], draws=100, bins=10).axes[0]
    (band,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    effective = min(np.mean([chain.ess("spectral")[1] for chain in pdmp.diagnostics.split(plane)]), 100.0)
    # The share of chain 1 among all ranks in a bin, with p = 1/10 and two chains: its deviations are half its own.
    wide = 2.0 * 10.0 * np.sqrt(0.1 * 0.9 / effective / 2.0)
    assert band.get_y() == pytest.approx(max(1.0 - wide, 0.0)) and band.get_height() == pytest.approx(
        1.0 + wide - band.get_y()
    )


def test_shares_of_independent_draws_are_in_the_band(monkeypatch):
    """About 95 % of them."""
    rng, inside, count = np.random.default_rng(0), 0, 0
    run = pdmp.sample(Walls(3), initial=np.zeros(3), events=60, chains=2, seed=1)
    alone = [SimpleNamespace(ess=lambda method: np.full(3, 1e9))] * 2
    monkeypatch.setattr("pdmp.plots.convergence.split", lambda run: alone)
    for _ in range(10):
        x = rng.standard_normal((2, 400, 3))
        run.draws = lambda n, x=x: x
        for axes in plots.ranks(run, draws=400).axes:
            (band,) = [p for p in axes.patches if isinstance(p, Rectangle)]
            shares = np.array([p.get_data().values for p in axes.patches if isinstance(p, StepPatch)])
            inside += np.sum((shares >= band.get_y()) & (shares <= band.get_y() + band.get_height()))
            count += shares.size
    assert inside / count == pytest.approx(0.955, abs=0.03)  # 600 independent shares: a standard error of 0.009


def test_chains_in_separate_modes_are_outside_the_band():
    """However few the effective draws of all together."""
    run = pdmp.sample(Walls(3), initial=np.zeros(3), events=400, chains=3, seed=1)
    assert plots.ranks(run, [0], draws=100).axes[0].patches  # it has a band
    x = run.draws(100)
    x[2] += 100.0
    run.draws = lambda n: x
    run.ess = lambda method: np.full(3, 2.0)
    (axes,) = plots.ranks(run, [0], draws=100).axes
    (band,) = [p for p in axes.patches if isinstance(p, Rectangle)]
    assert band.get_y() + band.get_height() < 3.0 and band.get_y() > 0.0
    shares = [p.get_data().values for p in axes.patches if isinstance(p, StepPatch)]
    assert np.all(shares[2][-6:] == 3.0) and np.all(shares[2][:12] == 0.0)


def test_the_band_of_less_than_one_effective_draw(plane, monkeypatch):
    """It is as wide as the formula says, and there is none where no draw is effective."""
    plane = pdmp.diagnostics.split(plane)[0].__class__(plane.info, plane.records)
    alone = [SimpleNamespace(ess=lambda method, k=k: np.array([0.25 * k, 0.0])) for k in (1, 2)]
    monkeypatch.setattr("pdmp.plots.convergence.split", lambda run: alone)
    first, second = plots.ranks(plane, draws=50, bins=5).axes
    (band,) = [patch for patch in first.patches if isinstance(patch, Rectangle)]
    assert band.get_y() == 0.0 and band.get_height() == pytest.approx(1.0 + 2.0 * np.sqrt(4.0 * 0.5 / 0.375))
    assert not [patch for patch in second.patches if isinstance(patch, Rectangle)]


def test_one_chain_is_compared_in_halves(line, monkeypatch):
    line = line.__class__(line.info, line.records)
    line.draws = lambda n: np.arange(9.0)[None, :, None]
    (axes,) = plots.ranks(line, bins=2).axes
    shares = [p.get_data().values.tolist() for p in axes.patches if isinstance(p, StepPatch)]
    assert shares == [[2.0, 0.0], [0.0, 2.0]] and axes.get_xlabel() == "rank among both halves"
    alone = [SimpleNamespace(ess=lambda method: np.array([500.0]))]
    monkeypatch.setattr("pdmp.plots.convergence.split", lambda run: alone)
    line.draws = lambda n: np.arange(2_000.0)[None, :, None]
    (band,) = [p for p in plots.ranks(line, bins=2).axes[0].patches if isinstance(p, Rectangle)]
    # A half has half of the effective draws, 250; with p = 1/2 and two halves.
    assert band.get_height() == pytest.approx(2.0 * 2.0 * np.sqrt(2.0 * 0.25 / 250.0))


# -- autocorrelation -------------------------------------------------------------------------------------------------


def test_the_autocorrelation_in_process_time(plane):
    axes = plots.autocorrelation(plane, lags=4.0)
    zero, *lines = axes.lines
    ess = plane.ess("spectral")
    x, length = plane.draws(4_000), np.mean(plane.end - plane.warmup)
    x = x - x.mean(axis=(0, 1))
    for k, one in enumerate(lines):
        lag, value = one.get_xydata().T
        assert lag[0] == 0.0 and value[0] == 1.0 and lag[-1] == pytest.approx(4.0, rel=0.05)
        for at, seen in zip(lag[::15], value[::15], strict=True):
            shift = int(round(at / length * 4_000))
            by_hand = np.mean(x[:, : 4_000 - shift, k] * x[:, shift:, k]) / np.mean(x[:, :, k] ** 2)
            assert seen == pytest.approx(by_hand, abs=0.03)
        assert one.get_label() == f"x[{k}]: {ess[k]:,.0f} effective draws"
    assert lines[0].get_marker() != lines[1].get_marker() and axes.get_xlabel() == "lag (process time)"
    assert zero.get_ydata()[0] == 0.0
    alone = plots.autocorrelation(plane, [1], lags=4.0).lines[1]
    assert np.array_equal(alone.get_xydata(), lines[1].get_xydata())


def test_the_autocorrelation_of_a_telegraph():
    """A position with constant rate 1 of flips moves as a random walk, whose velocity has the correlation exp(-2t)."""
    run = pdmp.sample(Telegraph(), initial=[0.0, 0.0], events=6_000, seed=3)
    path = run.trajectories[0]
    run.draws = lambda n: path.velocities[
        np.searchsorted(path.times, np.arange(1, n + 1) * (path.end / n), side="right") - 1
    ][None]
    lag, value = plots.autocorrelation(run, [0], lags=1.5).lines[1].get_xydata().T
    np.testing.assert_allclose(value, np.exp(-2.0 * lag), atol=0.12)


def test_the_longest_lag(plane):
    """That of five effective draws of the slowest coordinate shown; at most a quarter of the path."""
    slowest = plane.ess("spectral")[1]
    expected = 5.0 * np.sum(plane.end - plane.warmup) / slowest
    seen = plots.autocorrelation(plane, [1]).lines[1].get_xdata()[-1]
    assert seen == pytest.approx(expected, rel=0.06) and expected < 0.25 * np.min(plane.end - plane.warmup)
    quarter = plots.autocorrelation(plane, [1], lags=1e9).lines[1].get_xdata()[-1]
    assert quarter == pytest.approx(0.25 * np.min(plane.end - plane.warmup), rel=0.06)
    given = 0.1 * np.min(plane.end - plane.warmup)
    seen = plots.autocorrelation(plane, [1], lags=given).lines[1].get_xdata()[-1]
    assert seen == pytest.approx(given, rel=0.06)
    one = plots.autocorrelation(plane, [1], chain=0).lines[1]
    assert one.get_label().startswith(f"x[1]: {pdmp.diagnostics.split(plane)[0].ess('spectral')[1]:,.0f} ")
    with pytest.raises(ValueError, match="`lags` must be positive, got 0.0"):
        plots.autocorrelation(plane, lags=0.0)


# -- events ----------------------------------------------------------------------------------------------------------


def test_event_rates_of_each_chain_and_of_all(plane):
    axes = plots.event_rates(plane)
    kinds, chains = list(plane.stats["events"]), len(axes.containers)
    assert [t.get_text() for t in axes.get_xticklabels()] == kinds == ["bounce", "refresh"] and chains == 2
    pooled = pdmp.diagnostics.event_rates(plane)
    for container, path, one in zip(axes.containers, plane.trajectories, pdmp.diagnostics.split(plane), strict=True):
        at, value = container[0].get_xydata().T
        assert np.array_equal(np.round(at), [0.0, 1.0])
        errors = pdmp.diagnostics.event_rates(one)
        for k, name in enumerate(kinds):
            count = np.sum((path.times[1:] > path.warmup) & (path.kinds == k))
            assert value[k] == pytest.approx(count / (path.end - path.warmup))
            low, high = container[2][0].get_segments()[k][:, 1]
            assert high - low == pytest.approx(4.0 * errors[name].error)
    black = [one for one in axes.lines if one.get_color() == "black"]
    assert [one.get_ydata()[0] for one in black] == [pooled[name].value for name in kinds]


def test_nothing_of_event_rates_is_cut_and_unknown_errors_are_hollow(plane):
    runs = [
        plane,
        pdmp.sample(pdmp.BPS(PLANE, refresh_rate=0.5), events=12, chains=2, seed=1),  # too short for errors
        pdmp.sample(pdmp.BPS(PLANE, refresh_rate=0.5), events=60, chains=8, seed=1),
        pdmp.sample(pdmp.ZigZag(PLANE), events=60, seed=1),
    ]
    for run in runs:
        axes = plots.event_rates(run)
        axes.figure.draw_without_rendering()
        errors = np.array(
            [[v.error for v in pdmp.diagnostics.event_rates(one).values()] for one in pdmp.diagnostics.split(run)],
            dtype=float,
        )
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        shown = np.array(sorted(xy[0] for line in hollow for xy in line.get_xydata()))
        assert len(shown) == np.isnan(errors).sum() and len(hollow) == run.chains
        above = [line.get_ydata().max() for line in axes.lines if len(line.get_ydata())]
        bars = [segment for c in axes.containers for segment in c[2][0].get_segments()]
        above += [bar[:, 1].max() for bar in bars if len(bar) and np.all(np.isfinite(bar))]
        free = axes.get_window_extent().y1 - 4.0
        if axes.get_legend():
            free = axes.get_legend().get_window_extent().y0
        assert axes.transData.transform((0.0, max(above)))[1] < free and axes.get_ylim()[0] == 0.0
    assert np.isnan(pdmp.diagnostics.event_rates(pdmp.diagnostics.split(runs[1])[0])["bounce"].error)


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_four_that_one_looks_at_first(plane):
    figure = plane.plot()
    panels = np.array(figure.axes).reshape(2, 4)
    alone = plots.trace(plane), plots.marginals(plane)
    for k, (trace, marginal, ranks, correlation) in enumerate(panels):
        for one, other in zip(trace.lines, alone[0][k].lines, strict=True):
            assert np.array_equal(one.get_xydata(), other.get_xydata())
        np.testing.assert_array_equal(marginal.patches[0].get_data().values, alone[1][k].patches[0].get_data().values)
        assert sum(isinstance(patch, StepPatch) for patch in ranks.patches) == 2
        expected = plots.autocorrelation(plane, [k]).lines[1].get_xydata()
        assert np.array_equal(correlation.lines[1].get_xydata(), expected)
    assert 86.0 * figure.get_figwidth() <= 681.0  # the narrowest column of the site beside its sidebar, docs/images.py


def test_a_loaded_run_is_drawn(plane, tmp_path):
    plane.save(tmp_path / "run.npz")
    figure = pdmp.load(tmp_path / "run.npz").plot()
    assert "BPS" in figure.get_suptitle()
    times = [ax.get_title("right") for ax in figure.axes]  # of the autocorrelation in each row, and nowhere else
    alone = [plots.autocorrelation(plane, [k]).get_legend().get_texts()[0].get_text() for k in (0, 1)]
    assert [bool(text) for text in times] == 2 * [False, False, False, True]
    assert all(text.endswith(time) for text, time in zip(alone, times[3::4], strict=True))


def test_a_short_run_is_drawn():
    run = pdmp.sample(Walls(2), initial=[0.0, 0.0], events=3, seed=1)
    assert len(run.plot().axes) == 8
