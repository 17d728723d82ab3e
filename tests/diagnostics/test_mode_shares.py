"""Effective draws of the shares of modes between which chains seldom go, against indicators by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp.automatic.modes import Hidden
from pdmp.automatic.start import Gaussian
from pdmp.diagnostics import effective_size, mode_shares
from pdmp.diagnostics.mode_shares import FEW, LEAST, RARE, most, share_doubts, share_draws
from pdmp.engine.goals import Goal

pytestmark = pytest.mark.exact

CENTRES = np.array([[0.0, 0.0], [10.0, 1.0], [2.0, -20.0]])
MODES = tuple(
    Hidden(Gaussian(centre, root), behind)
    for centre, root, behind in zip(
        CENTRES, (np.diag([1.0, 2.0]), np.eye(2), 0.5 * np.eye(2)), (0.0, 1.0, 2.5), strict=True
    )
)


def run_of(places, monkeypatch, modes=MODES, **given):
    """A run whose draws of each chain are near the centres of these numbers."""
    which = np.array(places)
    draws = CENTRES[which] + 0.3 * np.random.default_rng(1).standard_normal((*which.shape, 2))
    monkeypatch.setattr(mode_shares, "diagnostic_draws", lambda run: draws)
    process = SimpleNamespace(prepared=SimpleNamespace(modes=modes))
    run = SimpleNamespace(process=process, store="skeleton", dim=2, names=lambda: ["a", "b"])
    return SimpleNamespace(**{**vars(run), **given}), which


def switching(rates, n, seed=2):
    """Chains (chains, n) that go from 0 to 1 or 2, and back, at rates of their own."""
    rng = np.random.default_rng(seed)
    found = np.zeros((len(rates), n), int)
    for chain, rate in enumerate(rates):
        for k in range(1, n):
            found[chain, k] = rng.integers(3) if rng.random() < rate else found[chain, k - 1]
    return found


def test_draws_of_shares_are_those_of_indicators(monkeypatch):
    run, which = run_of(switching([0.05, 0.2, 0.02], 400), monkeypatch)
    found = share_draws(run)
    assert list(found) == [
        "the share of the mode at a = 10, b = 1",
        "the share of the mode at a = 2, b = -20",
    ]
    for k, value in enumerate(found.values(), 1):
        wanted = effective_size.draws_ess((which == k)[..., None].astype(float), "mean")[0]
        assert value == pytest.approx(wanted) and 5.0 < value < 300.0
    assert len(set(found.values())) == 2


def test_masses_decide_between_modes(monkeypatch):
    """A point between two of unequal mass and volume is of that with more of both density and mass."""
    run, _ = run_of(np.zeros((2, 8), int), monkeypatch)
    a = np.linspace(0.0, 10.0, 2_001)
    logs = [-m.behind - np.log(np.linalg.det(m.gaussian.root)) for m in MODES[:2]]
    edge = a[np.argmax(logs[1] - 0.5 * (a - 10.0) ** 2 - 0.5 > logs[0] - 0.5 * a**2)]
    draws = np.zeros((2, 100, 2))
    draws[:, :50, 0] = edge - 0.02
    draws[:, 50:, 0] = edge + 0.02
    monkeypatch.setattr(mode_shares, "diagnostic_draws", lambda run: draws)
    found = share_draws(run)
    assert 0.0 < found["the share of the mode at a = 10, b = 1"] < 20.0  # half of the draws, in one visit each
    draws[:, 50:, 0] = edge - 0.02
    assert share_draws(run)["the share of the mode at a = 10, b = 1"] == 0.0


def test_a_mode_of_less_than_its_normal_approximation_says_has_no_draws(monkeypatch):
    """Single draws of it all over, which are effective, and too few."""
    share = np.exp(-1.0) / np.exp([0.0, -1.0]).sum()
    for factor, none in ((0.9, True), (1.1, False)):
        each = np.zeros((2, 1000), int)
        each[:, np.linspace(0, 999, int(RARE * share * factor * 1000)).astype(int)] = 1
        run, _ = run_of(each, monkeypatch, MODES[:2])
        [value] = share_draws(run).values()
        assert (value == 0.0) == none and (none or value > 500.0)


@pytest.mark.parametrize("swap", [False, True])
def test_what_holds_hardly_any_is_not_counted(swap, monkeypatch):
    """Most draws are in one mode: three visits more would change little."""
    first, other = MODES[0]._replace(behind=6.0 * swap), MODES[1]._replace(behind=6.0 * (not swap))
    for visits, counted in ((2, False), (15, True)):
        each = np.full((2, 1000), int(swap))
        for k in range(visits):
            each[k % 2, 60 * k + 1 : 60 * k + 4] = int(not swap)
        run, which = run_of(each, monkeypatch, (first, other))
        assert (most(which == int(not swap)) > LEAST) == counted
        assert len(share_draws(run)) == counted


@pytest.mark.parametrize(
    "there, wanted",
    [
        ([[0, 1, 1, 0, 0], [0, 0, 0, 0, 1]], 3 / 2 * 5 / 10),  # two visits, in two chains
        ([[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]], 4 / 3 * 6 / 10),  # from the start, in both
        ([[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]], 1.0 * 5 / 10),  # the end of one chain is not before the start of another
        ([[0] * 5] * 2, 0.0),
    ],
)
def test_three_visits_more(there, wanted):
    assert most(np.array(there, bool)) == pytest.approx(wanted)


def test_where_nothing_is_counted(monkeypatch):
    which = switching([0.05, 0.2], 100)
    assert share_draws(run_of(which, monkeypatch)[0]) != {}
    assert share_draws(run_of(which, monkeypatch, modes=())[0]) == {}
    assert share_draws(run_of(which, monkeypatch, store="moments")[0]) == {}
    assert share_draws(run_of(which, monkeypatch, process="BPS")[0]) == {}
    run, _ = run_of(which, monkeypatch)
    monkeypatch.setattr(mode_shares, "diagnostic_draws", lambda run: None)
    assert share_draws(run) == {}


def test_a_doubt_names_the_share_with_fewest_draws(monkeypatch):
    run, _ = run_of(np.zeros((2, 8), int), monkeypatch)
    some = (({"a": FEW + 1.0, "b": 12.3}, "b"), ({"a": 1.0, "b": 12.3}, "a"), ({"a": FEW}, None), ({}, None))
    for found, named in some:
        monkeypatch.setattr(mode_shares, "share_draws", lambda run, found=found: found)
        said = share_doubts(run)
        assert len(said) == (named is not None)
        if named:
            assert f"there are {found[named]:.2g} effective draws of {named}, and averages may be wrong" in said[0]
            assert "tempered=True" in said[0]


def test_a_place_is_told_by_where_it_is_farthest(monkeypatch):
    """In standard deviations of the first: of five coordinates three, in their order."""
    first = Gaussian(np.zeros(5), np.diag([1.0, 1.0, 10.0, 0.1, 1.0]))
    other = Gaussian(np.array([3.0, -4.0, 20.0, 0.5, 1.0]), np.eye(5))
    process = SimpleNamespace(prepared=SimpleNamespace(modes=(Hidden(first, 0.0), Hidden(other, 0.0))))
    run = SimpleNamespace(process=process, names=lambda: list("abcde"))
    assert mode_shares.place(run, process.prepared.modes[1]) == "a = 3, b = -4, d = 0.5 …"


def test_a_goal_asks_for_shares(monkeypatch):
    """Also beside what the process asks for; a run that stops names the least."""
    process = pdmp.HMC(pdmp.models.Gaussian(np.zeros(2), np.ones(2)), step=0.8)
    run = pdmp.sample(process, events=400, chains=2, seed=1)
    goal = Goal(process, 0.0, ess=10.0)
    monkeypatch.setattr("pdmp.engine.goals.share_draws", lambda run: {"the share of b": 3.0})
    monkeypatch.setattr(type(process.report), "further_draws", lambda self, run: {"log p": 5.0}, raising=False)
    goal.examine(run)
    assert goal.further == {"log p": 5.0, "the share of b": 3.0} and not goal.reached()
    assert goal.least() == (3.0, "the share of b", None)
