"""What a summary says, in words; thinning, bad draws."""

import importlib
import math
import types
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import ess, ksd, pooled, rhat, scores
from pdmp.diagnostics.pooled import quantiles
from pdmp.diagnostics.summary import (
    copies_warning,
    natural_draws,
    natural_rows,
    sd_errors,
    short_warning,
)
from pdmp.diagnostics.tails import heavy_tails
from pdmp.diagnostics.variable_selection import changes, mean_rest
from pdmp.engine import preflight, result
from pdmp.errors import short_runs
from pdmp.models import Gaussian
from pdmp.processes.sticky_groups import StickyGroups
from tests.toys import Ticks, Walls

pytestmark = pytest.mark.exact


def rows_of(run, names, draws):
    return natural_rows(run, natural_draws(run, names, draws))


def test_rows_of_natural_parameters_weigh_chains_by_their_lengths():
    """Those that are no coordinates, of draws of which there are as many of a short chain as of a long one."""
    rng, lengths = np.random.default_rng(2), np.array([1.0, 6.0, 2.0])
    natural = {"sigma": rng.gamma(3.0, 1.0, (3, 90)) + [[0.0], [1.0], [5.0]], "mu": rng.standard_normal((3, 90))}
    natural["rho"] = rng.standard_normal((3, 90, 2)) * [1.0, 9.0]
    run = SimpleNamespace(
        transforms={"a": 1}, info={}, constrain=lambda x: natural, records=[SimpleNamespace(length=h) for h in lengths]
    )
    rows = rows_of(run, ["log sigma", "mu"], np.zeros((3, 90, 4)))
    assert [row["name"] for row in rows] == ["sigma", "rho[0]", "rho[1]"]
    w = np.repeat(lengths / lengths.sum() / 90, 90)
    for row, x in zip(rows, (natural["sigma"], natural["rho"][..., 0], natural["rho"][..., 1]), strict=True):
        flat, alone = x.ravel(), [ess(one[None, :, None])[0] for one in x]
        # Each chain's mean is as uncertain as its own draws say, and they differ: those of sigma by more than that.
        weighted = 1.0 / sum(h**2 / n for h, n in zip(lengths / lengths.sum(), alone, strict=True))
        effective = min(weighted, ess(x[..., None])[0])
        assert (effective < weighted) == (row["name"] == "sigma")
        sd = np.sqrt(w @ (flat - w @ flat) ** 2)
        assert (row["mean"], row["sd"]) == pytest.approx((w @ flat, sd))
        assert (row["ess"], row["mcse"]) == pytest.approx((effective, sd / np.sqrt(effective)))
        assert row["rhat"] == pytest.approx(rhat(x[..., None])[0])
        for name, q in (("2.5%", 0.025), ("97.5%", 0.975)):  # within the weight of a draw
            assert w[flat < row[name]].sum() <= q + w.max() and w[flat <= row[name]].sum() >= q - w.max()
    run.records = [SimpleNamespace(length=h) for h in (2.0, 3.0, 2.5)]  # nearly equal: as of one sample
    for row, x in zip(rows_of(run, ["log sigma", "mu"], np.zeros((3, 90, 4)))[1:], natural["rho"].T, strict=True):
        assert row["ess"] == pytest.approx(ess(x.T[..., None])[0])
    for info, transforms, count in (({}, {}, 0), ({"constrains": True}, {}, 3)):
        run.info, run.transforms = info, transforms
        assert len(rows_of(run, ["log sigma", "mu"], np.zeros((3, 90, 4)))) == count
    assert rows_of(run, [], None) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdmp.diagnostics.summary.NATURAL", 2)
        assert rows_of(run, ["mu"], np.zeros((3, 90, 4))) == []


@pytest.mark.parametrize("chains", [1, 4])
def test_errors_of_standard_deviations(chains):
    """Half that of x² over E x²; nothing to say of independent draws, however few."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((chains, 4_000 // chains, 300))
    assert np.mean(sd_errors(x) > 0.0) < 0.02 and np.mean(sd_errors(x[:, : 200 // chains]) > 0.0) < 0.02
    lengths = np.repeat(rng.choice([0.5, 1.5], (chains, 200 // chains, 300)), 20, axis=1)
    spread = np.sqrt((2.0 * 2.5625 + 20.0) / 4_000.0) / 2.5  # x² = l² z²: 2 E l⁴ for each draw, var l² for each length
    np.testing.assert_allclose(np.mean(sd_errors(lengths * x)), spread, rtol=0.15)


def test_a_standard_deviation_that_is_hardly_known():
    """Hardly ever refreshed, the paths keep their distance from the mode: their means are good, their spread is not."""
    model = Gaussian(np.zeros(4), np.ones(4))
    for rate, said in ((0.003, True), (1.0, False)):
        found = pdmp.sample(pdmp.BPS(model, refresh_rate=rate), time=3_000.0, chains=2, seed=3, warmup=0.1).summary()
        assert any("the standard deviation of" in w and "refresh more often" in w for w in found.warnings) == said
    found = pdmp.sample(discrete.SGLD(model, step=0.01), steps=600, chains=2, seed=3).summary()
    assert [("times as long." in w, "refresh" in w) for w in found.warnings if "standard deviation of x" in w] == [
        (True, False)
    ]


def test_the_coordinates_whose_tails_are_looked_at(monkeypatch):
    """Those whose standard deviations are hardly known."""
    module = importlib.import_module("pdmp.diagnostics.summary")
    monkeypatch.setattr(module, "sd_errors", lambda draws: np.array([0.4, 0.0, 0.3]))
    run = pdmp.sample(Ticks(), steps=5_000, chains=2, seed=13)
    seen = []
    monkeypatch.setattr(module, "heavy_tails", lambda draws, places, ess, model: seen.extend(places) or {})
    run.summary()
    assert seen == [0, 2]
    monkeypatch.setattr(module, "FEW", 1e9)  # and those of which there are few effective draws
    run.summary()
    assert seen == [0, 2, 0, 1, 2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "sampler, budget",
    [
        (pdmp.BPS, {"events": 14}),
        (pdmp.BPS, {"time": 10.0}),
        (pdmp.ZigZag, {"proposals": 14}),
        (pdmp.HMC, {"gradients": 40}),
        (pdmp.HMC, {"steps": 12, "store": "moments"}),
        (pdmp.BPS, {"events": 14, "store": "grid"}),
        (pdmp.BPS, {"events": 14, "rhat": 1.0001}),
    ],
)
def test_a_short_run_says_so_whatever_its_budget(sampler, budget):
    process = sampler(Gaussian([0.0, 0.0], [1.0, 4.0]))
    with pytest.warns(UserWarning) as heard:
        run = pdmp.sample(process, seed=1, chains=2, initial=np.ones(2), **budget)
    said = [str(w.message) for w in heard if "fewer than 30 effective draws" in str(w.message)]
    draws = pdmp.diagnostics.effective_draws(run)["mean"]
    worst = int(np.argmin(np.where(np.isnan(draws), 0.0, draws)))
    assert len(said) == 1 and said[0].startswith(f"fewer than 30 effective draws of {run.names()[worst]} (")


@pytest.mark.filterwarnings("error")
def test_a_run_that_is_long_enough_says_nothing_and_one_with_a_goal_says_it_once():
    model = Gaussian([0.0, 0.0], [1.0, 4.0])
    assert short_warning(pdmp.sample(pdmp.HMC(model, step=0.5), steps=400, seed=1)) == []
    with pytest.warns(UserWarning) as heard:
        pdmp.sample(pdmp.BPS(model), ess=1_000, events=14, seed=1)
    assert len(heard) == 1 and "was not reached" in str(heard[0].message)
    pdmp.sample(pdmp.BPS(model, refresh_rate=1.0), ess=10, seed=1)  # what was asked for
    with pytest.warns(UserWarning, match="fewer than 30"):
        run = pdmp.sample(pdmp.HMC(model, step=0.5), steps=10, seed=1)
    run.extend(steps=400)
    with short_runs():
        quiet = pdmp.sample(pdmp.BPS(model), events=14, seed=1)
    assert not any("fewer than" in text for text in quiet.said)
    with pytest.warns(UserWarning, match="fewer than 30"):  # and only within
        pdmp.sample(pdmp.BPS(model), events=14, seed=1)


class Turning(pdmp.Process):
    """Turns back at given distances, which no random number decides."""

    def __init__(self):
        super().__init__(dim=1)

    def initial_velocity(self, x, rng):
        return np.ones(1)

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + 1.0 + 0.5 * np.sin(now), pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        return 0


def test_chains_that_are_copies():
    """They would be pooled as if each said something new; the third of these begins elsewhere."""
    with pytest.warns(UserWarning, match="chains 0 and 2 have the same path: what the process draws"):
        run = pdmp.sample(Turning(), initial=[[0.0], [1.0], [0.0]], chains=3, events=100, seed=1)
    assert any("chains 0 and 2 have the same path" in text for text in run.summary().warnings)
    others = pdmp.sample(Turning(), initial=[[0.0], [1.0]], chains=2, events=100, seed=1)
    assert copies_warning(others) == []
    # Two may be alike by chance, as paths on which nothing has happened are.
    for events, alike in ((29, False), (30, True)):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            few = pdmp.sample(Turning(), initial=[0.0], chains=2, events=events, seed=1)
        assert bool(copies_warning(few)) is alike
    # What has not moved is told of otherwise.
    law = pdmp.models.from_function(lambda x: (0.25 * float(x @ x) ** 2, float(x @ x) * x), 2)
    still = pdmp.sample(discrete.MALA(law, step=0.5), steps=50, chains=2, seed=1, initial=[100.0, 0.0])
    assert copies_warning(still) == []


def test_copies_behind_a_chain_that_rests_and_in_some_coordinates_only():
    zero, squares = np.zeros(2), ([0.0, 0.0], [2.0, 0.0], [2.0, 0.0])
    sums = [types.SimpleNamespace(centre=zero, first=zero, second=np.array(two)) for two in squares]
    records = [types.SimpleNamespace(length=1.0, integrals=part) for part in sums]
    assert "chains 1 and 2 have" in copies_warning(types.SimpleNamespace(records=records, dim=2, events=[30] * 3))[0]


def test_a_mirrored_path_is_another_one():
    """Its squares have the same integrals."""
    zero, one = np.zeros(1), np.ones(1)
    sums = [types.SimpleNamespace(centre=zero, first=first, second=2.0 * one) for first in (one, -one, one)]
    records = [types.SimpleNamespace(length=1.0, integrals=part) for part in sums]
    assert copies_warning(types.SimpleNamespace(records=records[:2], dim=1, events=[30] * 2)) == []
    assert "chains 0 and 2 have" in copies_warning(types.SimpleNamespace(records=records, dim=1, events=[30] * 3))[0]


def test_chains_that_never_left_where_they_began():
    model = pdmp.models.from_function(lambda x: (0.25 * float(x @ x) ** 2, float(x @ x) * x), 2)
    starts = [[100.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    run = pdmp.sample(discrete.MALA(model, step=0.5), steps=100, chains=3, seed=1, initial=starts)
    assert "1 of 3 chains never left where it began" in short_warning(run)[0]
    assert short_warning(run)[0].startswith("fewer than 30 effective draws: ")
    both = pdmp.sample(discrete.MALA(model, step=0.5), steps=100, chains=2, seed=1, initial=[starts[0], starts[0]])
    assert "2 of 2 chains never left where they began" in short_warning(both)[0]
    alone = pdmp.sample(discrete.MALA(model, step=0.5), steps=100, seed=1, initial=starts[0])
    assert "the chain never left where it began" in short_warning(alone)[0]
    # Where coordinates rest at 0, that is an answer.
    alone.process = SimpleNamespace(rests=True)
    assert short_warning(alone) == []
    # But not where one of the chains rests and others move.
    run.process = SimpleNamespace(rests=True)
    assert "fewer than 30 effective draws of x[" in short_warning(run)[0]


def test_a_coefficient_that_always_rests_is_not_few_draws():
    model = pdmp.models.SpikeAndSlabLinearRegression(3.0 * np.eye(2), [60.0, 0.0], inclusion=1e-9)
    run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), events=2_000, seed=1, initial=[20.0, 0.0])
    assert pdmp.diagnostics.inclusion(run)[1] == 0.0 and short_warning(run) == []


def test_a_negative_extrapolated_variance_is_not_few_draws(monkeypatch):
    """`var` warns of it; coordinates beside it, and those with too short a path, are spoken of as ever."""
    run = pdmp.sample(pdmp.BPS(pdmp.models.Gaussian(np.zeros(3), np.eye(3))), events=2_000, seed=1)
    for draws, said in (
        ([-4.0, 500.0, 90.0], None),
        ([-4.0, 12.0, 90.0], "x[1] (12)"),
        ([-4.0, 90.0, np.nan], "x[2] (0)"),
    ):
        found = {"mean": np.array(draws)}
        monkeypatch.setattr("pdmp.diagnostics.summary.effective_draws", lambda run, part, of, found=found: found)
        found = short_warning(run)
        assert found == [] if said is None else said in found[0]


def test_a_short_run_is_looked_at_portion_by_portion(monkeypatch):
    """Until one has few draws, or so many numbers were read: what comes after it is not looked at."""
    run = pdmp.sample(pdmp.BPS(pdmp.models.Gaussian(np.zeros(4), np.eye(4))), events=2_000, seed=1)
    monkeypatch.setattr(pdmp.diagnostics.averages, "PORTION", 1)
    looked, found = [], [500.0, 29.9, 3.0, 40.0]

    def draws_of(run, part, of):
        looked.append(part.start)
        return {"mean": np.array(found[part])}

    monkeypatch.setattr("pdmp.diagnostics.summary.effective_draws", draws_of)
    (said,) = short_warning(run)
    assert looked == [0, 1] and "fewer than 30 effective draws of x[1] (" in said
    found[1] = 30.0
    assert "x[2] (3)" in short_warning(run)[0] and looked[2:] == [0, 1, 2]
    for most, last in ((3_999, 1), (4_000, 2)):  # 2,000 numbers in each
        looked.clear()
        monkeypatch.setattr("pdmp.diagnostics.summary.LOOKED", most)
        short_warning(run)
        assert looked[-1] == last
    monkeypatch.setattr(pdmp.diagnostics.averages, "PORTION", 2)
    looked.clear()
    monkeypatch.setattr("pdmp.diagnostics.summary.LOOKED", 3_999)
    assert short_warning(run) == [] and looked == [0]


def test_what_was_warned_of_is_not_said_twice(tmp_path):
    """The text of a summary has the beginning of a sentence that the run has issued; its list has all of it."""
    steep = pdmp.models.from_function(lambda x: (0.5e7 * float(x @ x) ** 2, 2e7 * float(x @ x) * x), 2)
    with pytest.warns(UserWarning, match="diverged.*What helps"):
        run = pdmp.sample(pdmp.HMC(steep, step=0.1), steps=60, seed=1, initial=[0.01, 0.01])
    found = run.summary()
    [said] = [w for w in found.warnings if "diverged" in w]
    assert "What helps" in said and said in found.said and said.rstrip(".") in run.said
    assert repr(found).count("diverged") == 1 and "What helps" not in repr(found)
    assert "diverged (as was warned)." in repr(found)
    run.said = frozenset()
    assert "What helps" in repr(run.summary())
    assert pdmp.Run(run.info, run.records).said == frozenset()


def test_chains_in_separate_modes():
    """Said once, and no longer run is proposed; not of chains that drift, nor of those that have not settled."""
    modes = pdmp.models.GaussianMixture([[-8.0, 0.0], [8.0, 0.0]], 1.0)
    starts = [[-8.0, 0.0], [-8.0, 0.0], [8.0, 0.0]]
    run = pdmp.sample(pdmp.BPS(modes), events=1_000, chains=3, initial=starts, seed=1)
    said = [w for w in run.summary().warnings if "x[0]" in w]
    assert len(said) == 1 and "the chains stay apart in x[0] (R-hat" in said[0]
    assert "no longer run mends that" in said[0] and "tempered=True" in said[0] and "Ordered" in said[0]
    drifting = pdmp.sample(Ticks(), steps=60, seed=11, chains=2, initial=[[50.0] * 3, [-50.0] * 3]).summary().warnings
    assert not any("stay apart" in w for w in drifting) and any("R-hat above 1.05" in w for w in drifting)


def test_what_is_nearly_always_zero_has_no_warning_of_its_sd(monkeypatch):
    run = pdmp.sample(Walls(2), initial=np.zeros(2), events=600, chains=2, seed=1)
    draws = pdmp.diagnostics.averages.diagnostic_draws(run)
    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.summary"), "sd_errors", lambda draws: np.full(2, 0.5))
    said = str(run.summary().warnings)
    assert "the standard deviation of x[0], x[1]" in said
    draws[..., 0] *= np.arange(draws.shape[1]) < 0.05 * draws.shape[1]
    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.summary"), "diagnostic_draws", lambda run: draws)
    assert "the standard deviation of x[1] is" in str(run.summary().warnings)
    mixed = pdmp.diagnostics.averages.diagnostic_draws(run)  # of all chains together: 1 and 0.7 are 0.85 of them
    mixed[0, :, 0], mixed[1, : int(0.7 * mixed.shape[1]), 0] = 0.0, 0.0
    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.summary"), "diagnostic_draws", lambda run: mixed)
    assert "the standard deviation of x[0], x[1]" in str(run.summary().warnings)


def far_apart(model, process=lambda model: discrete.MALA(model, step=0.1), d=2, size=6.0, **budget):
    """What is said of the density by a run of four chains, two on each side."""
    starts = size * np.outer([1.0, 1.0, -1.0, -1.0], np.ones(d))
    run = pdmp.sample(process(model), initial=starts, chains=4, seed=1, warmup=0.2, **(budget or {"steps": 200}))
    assert run.rhat().max() > 1.2
    return [w for w in run.summary().warnings if "does not fall off" in w]


def test_where_the_density_does_not_fall(monkeypatch):
    """A sign forgotten, a flat direction; neither of two modes, nor of few draws. All this no ray has shown before."""
    monkeypatch.setattr(preflight, "find_improper", lambda *arguments: (None, 0))
    wrong = pdmp.models.from_function(lambda x: (-0.5 * float(x @ x), -x), 2, check_gradient=False)
    [said] = far_apart(wrong)
    assert said.startswith("along x[0], x[1] the density") and "may be improper" in said and "∂U/∂x is -" in said
    flat = pdmp.models.from_function(lambda x: (0.5 * float(x[0] ** 2), np.array([x[0], 0.0])), 2, check_gradient=False)
    [said] = far_apart(flat)
    assert said.startswith("along x[1] the density") and "is 0 for x[1]" in said
    modes = pdmp.models.GaussianMixture([[-6.0, -6.0], [6.0, 6.0]], [np.eye(2)] * 2)
    assert far_apart(modes) == [] and far_apart(flat, steps=8) == []


def test_a_density_that_ends_at_a_wall():
    """That of an exponential variable does not fall to 0 there, so that partial integration has another term."""

    def nearly_straight(x):
        return float(x.sum() + 5e-4 * x @ x), 1.0 + 1e-3 * x

    slope = pdmp.models.from_function(nearly_straight, 2, initial=[1.0, 1.0])
    bounded = pdmp.Bounded(pdmp.ZigZag(slope), lower=-9.0)
    assert far_apart(slope, lambda _: bounded, events=20) == []
    bounded.walled = False
    assert far_apart(slope, lambda _: bounded, events=20) != []


def test_a_coordinate_that_never_moved():
    model = Gaussian([0.0, 0.0], [1.0, 1e12])
    run = pdmp.sample(discrete.MALA(model, step=0.5), steps=200, seed=1, initial=[0.0, 1.0])
    assert any("never moved" in w for w in run.summary().warnings)
    assert np.isnan(run.ess("spectral")).all()


def test_a_process_that_may_be_reducible():
    model = Gaussian([0.0, 0.0], [1.0, 4.0])
    for rate, said in ((0.0, True), (0.5, False)):
        run = pdmp.sample(pdmp.BPS(model, refresh_rate=rate), events=50, seed=1)
        assert any("reducible" in w for w in run.summary().warnings) == said


def test_a_summary_calls_nothing_for_each_coordinate(monkeypatch):
    """With 100,000 of them one call of ArviZ for each takes minutes."""

    def each(*arguments, **options):
        raise AssertionError("called for each coordinate")

    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.effective_size"), "_each", each)
    run = pdmp.sample(discrete.SGLD(Gaussian(np.zeros(30), np.ones(30)), step=0.2), steps=100, chains=2, seed=1)
    assert len(run.summary()) == 30
    with pytest.raises(AssertionError, match="called for each"):
        run.ess()


def test_rhat_of_a_single_chain_and_of_constants():
    x = np.random.default_rng(2).standard_normal((1, 400, 2))
    x[0, :200, 1] += 5.0
    found = rhat(x)
    assert abs(found[0] - 1.0) < 0.02 and found[1] > 1.5
    halves = x[0].reshape(2, 200, 2)  # its two halves are compared, without the draw that is left over
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    odd = np.concatenate([x, np.full((1, 1, 2), 1e6)], axis=1)
    np.testing.assert_allclose(rhat(odd, "identity"), np.sqrt(199 / 200 + between / within), rtol=1e-12)
    for function in (ess, rhat):
        with pytest.warns(UserWarning, match=r"coordinates \[0, 1\] of `draws` are constant: they never moved"):
            np.testing.assert_array_equal(function(np.ones((2, 50, 2))), [np.nan, np.nan])


def test_draws_that_are_not_finite():
    x = np.random.default_rng(3).standard_normal((2, 50, 2))
    x[0, 3, 1] = np.nan
    for function in (ess, rhat):
        with pytest.raises(ValueError, match="`draws` must be finite; 1 of 100 are not"):
            function(x)
        for few in (np.zeros(7), x[:, :3], np.zeros((2, 50, 0))):
            with pytest.raises(ValueError, match="`draws` must have shape"):
                function(few)
        assert function(x[1:, :4]).shape == (2,)


# -- thinning ---------------------------------------------------------------------------------------------------------


def test_stein_thinning_of_a_run():
    model = Gaussian([0.0, 0.0], [1.0, 1.0])
    run = pdmp.sample(discrete.SGLD(model, step=0.1), steps=600, seed=4, initial=[30.0, 30.0])
    few = run.thin(20)
    assert few.shape == (20, 2)
    everywhere = run.draws(600)[0]
    assert all((everywhere == row).all(axis=1).any() for row in few)
    assert np.abs(few).max() < 4.0  # the way from 30 is left out
    even = run.thin(60, method="time")
    assert even.shape == (60, 2) and np.abs(even).max() > 8.0
    others = [run.draws(600)[0, 50 + 20 * k : 70 + 20 * k] for k in range(27)]  # as many, one after the other
    assert ksd(few, scores(model, few)) < 0.5 * np.median([ksd(x, scores(model, x)) for x in others])
    still = pdmp.sample(discrete.SGLD(model, step=0.1), steps=1, seed=4)
    with pytest.raises(ValueError, match="give another `preconditioner`"):
        still.thin(3)
    assert still.thin(3, preconditioner=None).shape == (3, 2)
    with pytest.raises(ValueError, match="give the model as `target=`"):
        pdmp.sample(Walls(), time=20.0, seed=1).thin(5)
    with pytest.raises(ValueError, match='`method` must be "stein" or "time"'):
        run.thin(5, method="best")
    for method in ("stein", "time"):
        for n in (0, 2.5):
            with pytest.raises(ValueError, match=f"`n` must be .*got {n}"):
                run.thin(n, method)


def test_positions_of_one_mode_alone_are_said(monkeypatch):
    """Half of the draws have x₁ > 0: a selection of these is spoken of, and one of all is not."""
    run = pdmp.sample(pdmp.ZigZag(Gaussian([0.0, 0.0], [1.0, 1.0])), events=400, seed=3, chains=2)
    monkeypatch.setattr(result, "stein_thin", lambda x, slopes, n, **options: np.argsort(x[:, 1])[-n:])
    with pytest.warns(UserWarning, match=r"a mean of x\[1\] of [\d.]+, and the draws .* ± [\d.]+: .*\"time\"") as said:
        run.thin(30, candidates=90)
    assert len(said) == 1
    monkeypatch.setattr(result, "stein_thin", lambda x, slopes, n, **options: np.arange(len(x))[:: len(x) // n][:n])
    assert run.thin(30, candidates=90).shape == (30, 2)  # a warning would be an error


def spiked(process, events=300, seed=9, **options):
    """A run of a spike and slab of which the first coefficient is in with probability 0.964, the second with 0.110."""
    model = pdmp.models.SpikeAndSlabLinearRegression(3.0 * np.eye(2), [3.6, 1.0], inclusion=0.2)
    process = pdmp.Sticky(process(model), **options)
    with short_runs():
        return pdmp.sample(process, events=events, chains=2, seed=seed, warmup=0.1, progress=False)


def test_a_rest_at_the_start_of_a_path_counts():
    run, draws = spiked(pdmp.ZigZag), np.ones((2, 6, 2))
    draws[0, [0, 1, 4], 0], draws[1, [2, 3], 0], draws[1, 0, 1] = 0.0, 0.0, 0.0
    assert changes(run, np.array([0.5, 0.5]), draws)[1].tolist() == [[2, 0], [1, 1]]


def test_coordinates_that_rested_at_0_too_seldom_are_named(monkeypatch):
    """Two short rests, where one lasts ten units of time on average: 0.99 is known to 0.07, and not to 0.008."""
    run = spiked(pdmp.ZigZag)
    found = pdmp.diagnostics.inclusion(run, errors=True)
    np.testing.assert_array_equal(found.value, pdmp.diagnostics.inclusion(run))
    assert found.value[0] > 0.98 and run.mcse(lambda x: 1.0 * (x != 0.0))[0] < 0.01
    rest, length = np.sqrt(2.0 * np.pi) / 0.25, sum(record.length for record in run.records)
    assert found.error[0] == pytest.approx(found.value[0] * np.sqrt(2.0 * 3.0) * rest / length)
    assert 0.01 < found.error[1] < 0.05  # which rested 21 times
    (said,) = [text for text in run.summary().warnings if "too seldom" in text]
    assert said.startswith("coefficients[0] went to 0 and back too seldom: coefficients[0] rested there 0, 2 times in ")
    assert "0.99, is known to 0.07 at best: run about 2 times as long." in said
    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.summary"), "UNSURE", 0.01)
    (said,) = [text for text in run.summary().warnings if "too seldom" in text]
    assert f"run about {math.ceil((found.error[0] / 0.01) ** 2)} times as long." in said
    monkeypatch.undo()
    always = spiked(pdmp.ZigZag, seed=1)  # nothing is known of the first but that it was in
    assert np.isnan(pdmp.diagnostics.inclusion(always, errors=True).error[0])
    assert not any("too seldom" in text for text in always.summary().warnings)


def test_how_long_a_rest_lasts_is_known():
    found, zigzag = np.array([0.5, 0.25]), np.sqrt(2.0 * np.pi) / 0.25
    assert mean_rest(spiked(pdmp.ZigZag), found) == pytest.approx([zigzag] * 2)
    gaussian = mean_rest(spiked(lambda model: pdmp.BPS(model, velocities="gaussian")), found)
    assert gaussian == pytest.approx([zigzag * np.sqrt(0.5 * np.pi)] * 2, rel=0.3)  # of 100 velocities
    counted = mean_rest(spiked(pdmp.ZigZag, inclusion=pdmp.models.priors.BetaBernoulli(1.0, 1.0)), found)
    slab = np.sqrt(2.0 * np.pi)  # times (b + others that are out) / (a + others that are in)
    assert counted == pytest.approx([slab * 1.75 / 1.25, slab * 1.5 / 1.5])
    run = spiked(pdmp.ZigZag, always=[0])
    assert np.isnan(mean_rest(run, found)[0]) and pdmp.diagnostics.inclusion(run)[0] == 1.0
    model = pdmp.models.LinearGaussian(3.0 * np.eye(2), np.array([3.6, 1.0]), prior_scale=1.0)
    jumping = StickyGroups(pdmp.ZigZag(model), [[0], [1]], inclusion=0.2)  # its coordinates jump from 0 as well
    with short_runs():
        run = pdmp.sample(jumping, events=2_000, seed=1, warmup=0.1, progress=False)
    assert np.isnan(mean_rest(run, found)).all()
    error = pdmp.diagnostics.inclusion(run, errors=True).error
    assert np.all(error > 0.0) and np.all(error < 0.04), error


@pytest.mark.parametrize(
    ("chains", "initial", "said"),
    [(2, [1.0, 0.0], True), (2, None, True), (1, [1.0, 0.0], False), (3, [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], False)],
)
def test_chains_that_began_at_one_point_are_said(chains, initial, said):
    """R-hat of both chains is near 1, and neither has seen the other mode."""
    far = pdmp.models.GaussianMixture([[0.0, 0.0], [30.0, 0.0]], [1.0, 1.0])
    run = pdmp.sample(pdmp.BPS(far, refresh_rate=1.0), events=300, chains=chains, initial=initial, seed=1)
    assert np.all(np.abs(run.mean()) < 3.0)
    note = run.summary().note
    assert ("the chains began at one point, so that R-hat says nothing of modes" in note) == said
    assert ("there is one chain, so that R-hat says nothing of modes that it has not found" in note) == (chains == 1)


def test_blocks_of_coordinates_are_as_all_together(monkeypatch):
    """What takes copies of the draws is computed of a few coordinates at a time."""
    rng = np.random.default_rng(3)
    draws = np.cumsum(rng.standard_t(3.0, (3, 400, 5)), axis=1) * [1.0, 0.2, 3.0, 1.0, 5.0] + [0.0, 9.0, 0.0, -1.0, 2.0]
    draws[:, ::3, 2] = 0.0
    tails = rng.standard_t(1.0, (3, 400, 5))

    def found():
        heavy = heavy_tails(tails, np.arange(5), np.full(5, 900.0))
        return sd_errors(draws), quantiles([0.1, 0.7], draws, [1.0, 2.0, 4.0]), list(heavy.items())

    whole = found()
    assert np.all(whole[0] > 0.0) and len(whole[2]) > 3
    monkeypatch.setattr(pooled, "NUMBERS", 2_500)
    assert [part.shape[2] for part in pooled.blocks(draws)] == [2, 2, 1]
    for got, expected in zip(found(), whole, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
