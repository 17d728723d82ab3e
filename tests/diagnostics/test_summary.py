"""What a summary says, in words; rank plots, thinning, R-hat against ArviZ, bad draws."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import ess, ksd, rhat, scores
from pdmp.diagnostics.effective_size import draws_rhat
from pdmp.diagnostics.summary import (
    Summary,
    _no_density,
    anchor_warning,
    find_warnings,
    natural_rows,
    sd_errors,
    short_warning,
    stay_apart,
    step_warning,
)
from pdmp.engine import preflight
from pdmp.errors import short_runs
from pdmp.interfaces import Report
from pdmp.models import Gaussian
from tests.toys import Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact


def test_mcse_and_ess_are_of_the_exact_path():
    run = pdmp.sample(Ticks(), steps=5_000, chains=2, seed=13)
    table = run.summary()
    np.testing.assert_array_equal([row["mcse"] for row in table.rows], run.mcse())
    np.testing.assert_allclose([row["ess"] for row in table.rows], run.ess("spectral"))
    assert "per data pass" in table.cost and table.warnings == []


def test_a_table_as_text_and_as_html():
    """Sixty rows, and how many more there are; quantiles unless no row has them; warnings that were heard cut short."""
    numbers = [[0.5 * k, 1.0 + k, k - 0.25, k + 1e4, 0.0123 + k, 100.4 * k, 1.0 + k / 1e3] for k in range(73)]
    numbers[1][2:4] = [np.nan, np.nan]
    rows = [dict(zip(Summary.COLUMNS, (f"<b{k}>", *row), strict=True)) for k, row in enumerate(numbers)]
    heard = ["too short: run longer", "too hot: a smaller step"]
    found = Summary(rows, "least ess 3", ["a note & more"], heard, {heard[1]})
    table, (more, *below) = repr(found).splitlines()[:61], repr(found).splitlines()[61:]
    assert table[0].split() == list(Summary.COLUMNS[1:]) and more == "… and 13 more" and len(found) == 73
    forms = ("{:.4g}", "{:.4g}", "{:.4g}", "{:.4g}", "{:.2g}", "{:.0f}", "{:.3f}")
    for k, line in enumerate(table[1:]):
        assert line.split() == [f"<b{k}>", *(form.format(x) for form, x in zip(forms, numbers[k], strict=True))]
    assert len({len(line) for line in table}) == 1
    notes = ["least ess 3", "a note & more", "Warning: too short: run longer", "Warning: too hot (as was warned)."]
    assert below == notes and found.warnings == heard and found.said == {heard[1]}
    text = found._repr_html_()
    assert text.count("<tr>") == 61 and "<p>… and 13 more</p>" in text and "<th>&lt;b59&gt;</th>" in text
    assert "a note &amp; more" in text and "<td>5940" not in text.partition("&lt;b59")[0]
    few = Summary([row | {"2.5%": np.nan, "97.5%": np.nan} for row in rows[:60]])
    assert repr(few).splitlines()[0].split() == ["mean", "sd", "mcse", "ess", "rhat"]
    assert len(repr(few).splitlines()) == 61 and "more" not in few._repr_html_()


def test_rows_of_natural_parameters_weigh_chains_by_their_lengths():
    """Those that are no coordinates, of draws of which there are as many of a short chain as of a long one."""
    rng, lengths = np.random.default_rng(2), np.array([1.0, 6.0, 2.0])
    natural = {"sigma": rng.gamma(3.0, 1.0, (3, 90)) + [[0.0], [1.0], [5.0]], "mu": rng.standard_normal((3, 90))}
    natural["rho"] = rng.standard_normal((3, 90, 2)) * [1.0, 9.0]
    run = SimpleNamespace(
        transforms={"a": 1}, info={}, constrain=lambda x: natural, records=[SimpleNamespace(length=h) for h in lengths]
    )
    rows = natural_rows(run, ["log sigma", "mu"], np.zeros((3, 90, 4)))
    assert [row["name"] for row in rows] == ["sigma", "rho[0]", "rho[1]"]
    w = np.repeat(lengths / lengths.sum() / 90, 90)
    for row, x in zip(rows, (natural["sigma"], natural["rho"][..., 0], natural["rho"][..., 1]), strict=True):
        flat, effective = x.ravel(), ess(x[..., None])[0]
        sd = np.sqrt(w @ (flat - w @ flat) ** 2)
        assert (row["mean"], row["sd"]) == pytest.approx((w @ flat, sd))
        assert (row["ess"], row["mcse"]) == pytest.approx((effective, sd / np.sqrt(effective)))
        assert row["rhat"] == pytest.approx(rhat(x[..., None])[0])
        for name, q in (("2.5%", 0.025), ("97.5%", 0.975)):  # within the weight of a draw
            assert w[flat < row[name]].sum() <= q + w.max() and w[flat <= row[name]].sum() >= q - w.max()
    for info, transforms, count in (({}, {}, 0), ({"constrains": True}, {}, 3)):
        run.info, run.transforms = info, transforms
        assert len(natural_rows(run, ["log sigma", "mu"], np.zeros((3, 90, 4)))) == count
    assert natural_rows(run, [], None) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdmp.diagnostics.summary.NATURAL", 2)
        assert natural_rows(run, ["mu"], np.zeros((3, 90, 4))) == []


NAMES = list("abcdef")
QUIET = {
    "sd": np.ones(6),
    "ess": np.full(6, 1e4),
    "rhat": np.ones(6),
    "loose": np.zeros(6),
    "apart": np.zeros(6, bool),
    "heavy": {},
}
STATS = {"events": {"bounce": 40, "refresh": 3}, "bound_violations": 0, "thinned": 9_000, "max_excess": 0.25}


def of_numbers(names=NAMES, info=(), stats=(), events=(40, 3), stopped="events", **changed):
    """What is said of a run with these numbers."""
    told = {**QUIET, **{key: value if key == "heavy" else np.array(value) for key, value in changed.items()}}
    run = SimpleNamespace(
        **{"info": dict(info), "dim": len(names), "stats": STATS | dict(stats), "stopped": stopped, "process": "BPS"},
        **{"events": np.array(events), "records": [SimpleNamespace(length=1.0)], "store": "moments", "chains": 2},
        quantile=lambda q: np.outer(q, np.arange(1.0, 7.0)),
    )
    return find_warnings(run, names, *told.values())


def test_the_worst_coordinate_is_named_with_its_number():
    """Which is neither the first nor the last; of those that are apart, or have no variance, other things are said."""
    assert of_numbers() == []
    few = {"ess": [500.0, 90.0, 30.5, 399.0, 1e4, 400.0]}
    text = "(least 30.5: its mean is known to 0.4 standard deviations): run about 14 times as long"
    assert of_numbers(**few) == [f"fewer than 400 effective draws of b, c, d {text}, or precondition."]
    [found] = of_numbers(**few, info={"choice": "HMC"})
    assert found.startswith(f"fewer than 400 effective draws of b, c, d {text}, `run.extend(")
    heavy, found = of_numbers(**few, heavy={0: 1.9, 4: 0.7, 2: 1.5})
    assert "b, d (least 90: its mean is known to 0.2 standard deviations): run about 5 times as long" in found
    assert heavy.startswith("a, e, c seem to have no variance nor a mean: the tail index of e is about 0.7, ")
    assert heavy.endswith("5, 25, 50, 75 and 95 % of e are below 0.25, 1.25, 2.5, 3.75, 4.75.")
    apart = {"apart": [False, False, True, False, True, False], "rhat": [1.0, 1.06, 2.0, 1.3, 3.0, 1.2]}
    modes, low, high = of_numbers(**few, **apart)
    assert modes.startswith("the chains stay apart in c, e (R-hat 3 of e), each settled by itself")
    assert low.startswith("fewer than 400 effective draws of b, d (least 90")
    assert high.startswith("R-hat above 1.05 for b, d, f (largest 1.3, of d)")
    loose = {"loose": [0.0, 0.06, 0.2, 0.3, 0.05, 0.1]}
    said = of_numbers(**loose, apart=[False, False, False, True, False, False])
    assert said[-1].startswith("the standard deviation of b, c, f is known to 40 % at best, as tails")
    assert said[-1].endswith("run about 16 times as long, or refresh more often.")
    [said] = of_numbers(**loose, stats={"events": {"step": 9}}, heavy=dict.fromkeys((), 1.0))
    assert said.startswith("the standard deviation of b, c, d and 1 more is known to 60 % at best")
    assert said.endswith("run about 36 times as long.")


def test_one_of_very_many_coordinates_that_is_off_may_be_chance():
    """Unless some have few effective draws too."""
    names, n = [f"x{k}" for k in range(2_000)], 2_000
    off = {"sd": np.ones(n), "ess": np.full(n, 1e4), "rhat": np.ones(n), "loose": np.zeros(n)}
    off |= {"apart": np.zeros(n, bool), "events": (n, n)}
    off["rhat"][7], off["loose"][9] = 1.2, 0.4
    assert of_numbers(names, **off) == []
    low = of_numbers(names, **off | {"ess": np.where(np.arange(n) == 3, 20.0, 1e4)})
    assert [text.split()[0] for text in low] == ["fewer", "the", "R-hat"]
    off["rhat"][:3], off["loose"][:3] = 1.1, 0.1
    assert [text.split()[0] for text in of_numbers(names, **off)] == ["the", "R-hat"]


def test_other_things_that_are_said():
    nan = np.nan
    for given, says in (
        ({"stopped": "failed"}, "the run failed; the table is of"),
        ({"stopped": "interrupted"}, "the run was interrupted; the table"),
        (
            {"sd": [1.0, 0.0, 1.0, 0.0, 0.0, 0.0], "ess": [1e4, nan, 1e4, nan, nan, nan]},
            "b, d, e and 1 more never moved",
        ),
        ({"ess": [1e4, 1e4, nan, 1e4, 1e4, 1e4]}, "too short for Monte Carlo errors"),
        ({"events": (2, 3)}, "5 events in 6 dimensions"),
        ({"sd": [1.0, 1.0, nan, 1.0, nan, 1.0]}, "the extrapolated variance is negative for c, e."),
        (
            {"stats": {"mean_kinetic_temperature": 0.4}},
            "kinetic temperature 0.4, where it should be 1: the step is too ",
        ),
        (
            {"stats": {"mean_kinetic_temperature": 2.0}},
            "kinetic temperature 2, where it should be 1: the step is too l",
        ),
        ({"info": {"cautions": ["first."], "doubts": ["second"], "wrong_gradient": ["third."]}}, "first."),
    ):
        assert of_numbers(**given)[0].startswith(says), given
    assert of_numbers(info={"cautions": ["1."], "doubts": ["2"], "wrong_gradient": ["3."]}) == ["1.", "3.", "2."]
    assert "friction" in of_numbers(stats={"mean_kinetic_temperature": 0.4})[0]
    assert "noise of the gradient" in of_numbers(stats={"mean_kinetic_temperature": 2.0})[0]
    for temperature in (0.6, 1.9, nan):
        assert of_numbers(stats={"mean_kinetic_temperature": temperature}) == []
    assert of_numbers(events=(3, 3)) == []


@pytest.mark.parametrize(
    ("distance", "says"),
    [
        (0.5, "too many to say how far the law of a path is off; give an exact bound"),
        (0.3, "a chain's path is off by at most 0.3 in total variation; use a tighter horizon"),
        (0.009, "and the law of a chain's path is off by at most 0.009 in total variation."),
    ],
)
def test_bounds_that_were_exceeded_are_said_with_their_numbers(distance, says, monkeypatch):
    found = {"violations": 1_234, "missed": 56.7, "path_distance": distance}
    monkeypatch.setattr("pdmp.diagnostics.events.bounds", lambda run: found)
    [said] = of_numbers(stats={"bound_violations": 1_234})
    begins = "1,234 of 9,000 proposals exceeded their bound, the largest by 25 %: about 57 events of the right process "
    assert said.startswith(begins) and says in said and (distance > 0.01 or said.endswith(says))


def test_steps_that_a_metropolis_test_would_reject(monkeypatch):
    """Looked at in 64 draws of all chains, or as few as the data allow; said from seven tenths of what was expected."""
    seen, draws = [], np.random.default_rng(1).standard_normal((2, 80, 3))

    class Told(Report):
        def step_acceptance(self, process, x, rng):
            seen.append(x)
            return pair

    monkeypatch.setattr("pdmp.diagnostics.summary.diagnostic_draws", lambda run: draws)
    process = SimpleNamespace(report=Told(), model=SimpleNamespace(n_data=0))
    run = SimpleNamespace(process=process, store="skeleton", events=np.array([80, 64]), dim=3)
    pair = (0.55, 0.8)
    [said] = step_warning(run)
    assert said.startswith("a Metropolis test would accept 55% of the steps, where 80% were expected: ")
    assert np.array_equal(seen.pop(), draws.reshape(-1, 3)[np.linspace(0, 159, 64).astype(int)])
    pair = 0.57, 0.8
    assert step_warning(run) == [] and seen.pop() is not None
    pair = None
    assert step_warning(run) == [] and seen.pop() is not None
    pair, process.model.n_data = (0.1, 0.8), 25_000  # 2,000,000 gradients of single data, four for each draw
    assert len(step_warning(run)) == 1 and len(seen.pop()) == 20
    for changed in ({"store": "moments"}, {"events": np.array([80, 19])}, {"process": "SGLD"}):
        assert step_warning(SimpleNamespace(**{**vars(run), **changed})) == [] and not seen
    process.model.n_data = 40_000
    assert step_warning(run) == [] and not seen


def test_an_anchor_that_is_far_from_the_path():
    """As far as three times the distance from the path's own mean, whatever the sampler is wrapped in."""
    seen, mean, var = [], np.array([1.0, -2.0]), np.array([4.0, 0.25])

    def distances(*given):
        seen.append(given)
        return told

    provider = SimpleNamespace(anchor_distances=distances, anchor_advice="do this")
    inner = SimpleNamespace(provider=provider)
    run = SimpleNamespace(
        process=SimpleNamespace(inner=SimpleNamespace(inner=inner), provider=None),
        stats={"thinned": 1_000},
        records=[SimpleNamespace(length=0.0), SimpleNamespace(length=2.0)],
        mean=lambda: mean,
        var=lambda: var,
    )
    told = 48.0, 2.0
    [said] = anchor_warning(run)
    assert said.startswith("the path was 5.0 times as far from the anchor as from its own mean, ")
    assert said.endswith("do this.") and seen == [(mean, var)]
    told = 1.0, 0.0
    assert "inf times as far" in anchor_warning(run)[0]
    told = 16.0, 2.0  # three times
    assert anchor_warning(run) == []
    told = None
    assert anchor_warning(run) == []
    told = 48.0, 2.0
    for changed in ({"stats": {"thinned": 999}}, {"records": run.records[:1]}, {"process": SimpleNamespace()}):
        assert anchor_warning(SimpleNamespace(**{**vars(run), **changed})) == []


def test_too_few_draws():
    run = pdmp.sample(Ticks(), steps=150, chains=2, seed=1)
    found = run.summary()
    least = min(row["ess"] for row in found.rows)
    factor = int(np.ceil(400.0 / least))
    assert any(f"run about {factor} times as long" in w and "fewer than 400" in w for w in found.warnings)
    assert any(
        "too short for Monte Carlo errors" in w for w in pdmp.sample(Telegraph(), events=5, seed=1).summary().warnings
    )


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


def test_what_is_said_of_tails_without_a_variance(monkeypatch):
    """Quantiles, and no length of a run."""
    module = importlib.import_module("pdmp.diagnostics.summary")
    monkeypatch.setattr(module, "sd_errors", lambda draws: np.array([0.4, 0.0, 0.3]))
    run = pdmp.sample(Ticks(), steps=5_000, chains=2, seed=13)
    for k, mean in ((0.8, False), (1.1, True)):
        monkeypatch.setattr(module, "heavy_tails", lambda draws, places, ess, model, k=k: {0: 1.0 / k})
        found = run.summary()
        [said] = [w for w in found.warnings if "beta[0]" in w]
        assert said.startswith("beta[0] seems to have no variance" + (" nor a mean:" if mean else ":"))
        assert f"tail index of beta[0] is about {1.0 / k:.2g}" in said and "times as long" not in said
        low, middle = run.quantile([0.05, 0.5])[:, 0]
        assert f"below {low:.3g}, " in said and f", {middle:.3g}, " in said
        assert any("times as long" in w for w in found.warnings if "the standard deviation of sigma" in w)
    monkeypatch.setattr(module, "heavy_tails", lambda *a: {0: 1.7, 2: 1.1})
    assert any(w.startswith("beta[0], sigma seem to") and "of sigma is" in w for w in run.summary().warnings)
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


def test_how_much_of_a_path_is_looked_at(monkeypatch):
    """Portions until one is too few, or much of the path is read; the first in any case."""
    module = importlib.import_module("pdmp.diagnostics.summary")
    run = pdmp.sample(discrete.SGLD(Gaussian(np.zeros(100), np.ones(100)), step=0.3), steps=400, seed=1)
    looked = []
    few = {1: 25.0, 3: 12.0}

    def counted(run, part, of):
        looked.append(part.start // 32)
        return dict.fromkeys(of, np.full(part.stop - part.start, few.get(part.start // 32, 99.0)))

    first = pdmp.diagnostics.effective_draws(run, slice(0, 32), of=["mean"])
    assert list(first) == ["mean"] and np.array_equal(first["mean"], pdmp.diagnostics.effective_draws(run)["mean"][:32])
    monkeypatch.setattr(module, "effective_draws", counted)
    assert "of x[32] (25)" in short_warning(run)[0] and looked == [0, 1]
    few.clear(), looked.clear()
    assert short_warning(run) == [] and looked == [0, 1, 2, 3]
    looked.clear()
    monkeypatch.setattr(module, "LOOKED", 400 * 33)
    assert short_warning(run) == [] and looked == [0, 1]


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


def test_fewer_events_than_dimensions():
    model = Gaussian(np.zeros(40), np.ones(40))
    for steps, said in ((30, True), (50, False)):
        found = pdmp.sample(discrete.SGLD(model, step=0.1), steps=steps, seed=1).summary()
        assert any(f"{steps} events in 40 dimensions" in w for w in found.warnings) == said


def test_chains_that_disagree():
    run = pdmp.sample(Ticks(), steps=60, seed=11, chains=2, initial=[[50.0] * 3, [-50.0] * 3])
    [said] = [w for w in run.summary().warnings if "R-hat above 1.05" in w]
    worst = int(np.argmax(run.rhat()))
    assert f"largest {run.rhat()[worst]:.3g}, of {run.names()[worst]}" in said and "plots.ranks" in said


def test_chains_in_separate_modes(monkeypatch):
    """Said once, and no longer run is proposed; not of chains that drift, nor of those that have not settled."""
    modes = pdmp.models.GaussianMixture([[-8.0, 0.0], [8.0, 0.0]], 1.0)
    starts = [[-8.0, 0.0], [-8.0, 0.0], [8.0, 0.0]]
    run = pdmp.sample(pdmp.BPS(modes), events=1_000, chains=3, initial=starts, seed=1)
    said = [w for w in run.summary().warnings if "x[0]" in w]
    assert len(said) == 1 and "the chains stay apart in x[0] (R-hat" in said[0]
    assert "no longer run mends that" in said[0] and "tempered=True" in said[0] and "Ordered" in said[0]
    drifting = pdmp.sample(Ticks(), steps=60, seed=11, chains=2, initial=[[50.0] * 3, [-50.0] * 3]).summary().warnings
    assert not any("stay apart" in w for w in drifting) and any("R-hat above 1.05" in w for w in drifting)
    # As far apart, but each with few effective draws, or itself on its way.
    rhat = np.array([1.6, 1.6])
    draws = np.random.default_rng(0).standard_normal((2, 400, 2)) + np.array([0.0, 50.0])[:, None, None]
    draws[1, :, 1] += np.linspace(0.0, 9.0, 400)
    for few, apart in ((1e3, [True, False]), (40.0, [False, False])):
        chains = [SimpleNamespace(ess=lambda method, n=n: np.full(2, n)) for n in (1e3, few)]
        pair = SimpleNamespace(chains=2, dim=2)
        monkeypatch.setattr("pdmp.diagnostics.summary.split", lambda run, chains=chains: chains)
        assert stay_apart(pair, draws, rhat).tolist() == apart
    assert not stay_apart(pair, draws, np.array([1.1, 1.1])).any()
    # Of those that are far apart alone, each with its own number of effective draws.
    three, still = np.concatenate([draws, draws[..., :1]], axis=2), SimpleNamespace(ess=lambda method: np.full(3, 1e3))
    few = SimpleNamespace(ess=lambda method: np.array([9e3, 40.0, 2e3]))
    monkeypatch.setattr("pdmp.diagnostics.summary.split", lambda run: [still, few])
    pair.dim, three[..., 1] = 3, three[..., 0]
    assert stay_apart(pair, three, np.array([1.1, 1.6, 1.6])).tolist() == [False, False, True]
    few.ess = lambda method: np.array([9e3, 2e3, 40.0])
    assert stay_apart(pair, three, np.array([1.1, 1.6, 1.6])).tolist() == [False, True, False]


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


def test_the_coordinates_along_which_a_density_does_not_fall(monkeypatch):
    """Of those in which chains are apart; the worst of them with its number, about the mean, wherever that is."""
    slopes = np.array([0.2, 1.0, -0.9, 0.1, -0.4])
    draws = 100.0 + np.random.default_rng(0).standard_normal((4, 90, 5))
    draws[0] += [0.0, 0.0, 0.0, 0.3, 0.0]
    asked = []
    model = SimpleNamespace(gradient=lambda x: asked.append(x) or (x - 100.0) * slopes, n_data=0)
    monkeypatch.setattr("pdmp.diagnostics.summary.diagnostic_draws", lambda run: draws)
    process = SimpleNamespace(model=model, rests=False, walled=False)
    run = SimpleNamespace(process=process, store="grid", chains=4, dim=5)
    names, rhat = list("abcde"), np.array([1.1, 1.3, 1.2, 1.5, 1.4])
    [said] = _no_density(run, names, rhat)
    rows = draws[:, np.linspace(0, 89, 64).astype(int)].reshape(-1, 5)
    assert np.array_equal(asked, rows)
    value = np.mean((rows - rows.mean(axis=0)) * (rows - 100.0), axis=0) * slopes
    assert said.startswith("along d, e the density does not fall off where the chains went")
    assert f"∂U/∂x is {value[4]:.2g} for e, and 1 for" in said
    slopes[3:] = 0.45  # less than half, but by less than three errors
    assert _no_density(run, names, rhat) == []
    slopes[3:] = -0.4
    for changed in ({"rests": True}, {"walled": True}):
        run.process = SimpleNamespace(**{**vars(process), **changed})
        assert _no_density(run, names, rhat) == []
    run.process = process
    assert _no_density(run, names, np.ones(5)) == [] and len(_no_density(run, names, rhat)) == 1
    model.n_data = 40_000  # twelve draws of each chain
    assert _no_density(run, names, rhat) == []


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


def test_warnings_are_printed():
    text = repr(pdmp.sample(pdmp.BPS(Gaussian([0.0, 0.0], [1.0, 4.0]), refresh_rate=0.0), events=20, seed=1).summary())
    assert text.count("Warning: ") >= 2 and "refresh_rate=0" in text


def test_a_summary_survives_a_file(tmp_path):
    run = pdmp.sample(discrete.SGLD(Gaussian([0.0], [1.0]), step=0.1), steps=500, seed=1)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(loaded.mcse(), run.mcse())
    assert loaded.summary().rows == run.summary().rows


def test_a_summary_calls_nothing_for_each_coordinate(monkeypatch):
    """With 100,000 of them one call of ArviZ for each takes minutes."""

    def each(*arguments, **options):
        raise AssertionError("called for each coordinate")

    monkeypatch.setattr(importlib.import_module("pdmp.diagnostics.effective_size"), "_each", each)
    run = pdmp.sample(discrete.SGLD(Gaussian(np.zeros(30), np.ones(30)), step=0.2), steps=100, chains=2, seed=1)
    assert len(run.summary()) == 30
    with pytest.raises(AssertionError, match="called for each"):
        run.ess()


@pytest.mark.parametrize("shape", [(4, 101, 5), (2, 50, 3), (3, 7, 2)])
def test_rhat_is_that_of_arviz(shape):
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape) * rng.uniform(0.5, 1.5, (shape[0], 1, 1)) + 0.3 * np.arange(shape[0])[:, None, None]
    x[..., 0] = np.round(x[..., 0])  # ties
    expected = [float(array_stats.rhat(x[:, :, j], chain_axis=0, draw_axis=1, method="rank")) for j in range(shape[2])]
    np.testing.assert_allclose(draws_rhat(x, "rank"), expected, rtol=1e-12)


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


# -- rank plots -------------------------------------------------------------------------------------------------------


def test_rank_plots():
    run = pdmp.sample(Ticks(), steps=400, seed=11, chains=3)
    figure = pdmp.plots.ranks(run, [0, 2], draws=200)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["beta[0]", "sigma"]
    assert len(pdmp.plots.ranks(run, draws=100).axes) == 3
    with pytest.raises(ValueError, match="`coordinates` must be some of 0 … 2"):
        pdmp.plots.ranks(run, [3])
