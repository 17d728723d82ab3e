"""Runs that go on, in this session and from a file, are bitwise the long run."""

from __future__ import annotations

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine import preflight
from tests.checks import in_quick
from tests.toys import RATE_NAN, Telegraph, Walls

pytestmark = pytest.mark.exact

MODEL = pdmp.models.LinearGaussian([[1.0, 0.2], [0.5, -1.0], [0.3, 0.8]], [1.0, 0.0, -1.0])
PROCESSES = {
    "Telegraph": Telegraph,
    "local": Walls,
    "ZigZag": lambda: pdmp.ZigZag(MODEL),
    "BPS": lambda: pdmp.BPS(MODEL),
    "SBPS": lambda: pdmp.SBPS(pdmp.gradients.Noisy(MODEL, 0.5)),
    "SGLD": lambda: discrete.SGLD(pdmp.gradients.Minibatch(MODEL, 2), 0.05),
    "SGRRLD": lambda: discrete.SGRRLD(pdmp.gradients.Minibatch(MODEL, 2), 0.05),
}


def same(one, other):
    assert one.chains == other.chains
    for a, b in zip(one.trajectories, other.trajectories, strict=True):
        np.testing.assert_array_equal(a.times, b.times)
        np.testing.assert_array_equal(a.whole.positions, b.whole.positions)
    np.testing.assert_array_equal(one.mean(), other.mean())
    np.testing.assert_array_equal(one.end, other.end)
    first, second = (dict(run.stats, seconds=0.0) for run in (one, other))
    assert {k: v for k, v in first.items() if v == v} == {k: v for k, v in second.items() if v == v}


def test_of_large_arrays_pieces_tell_whether_they_have_changed(monkeypatch):
    monkeypatch.setattr(preflight, "PIECES_ABOVE", 1_000)
    X = np.random.default_rng(0).standard_normal((400, 5))
    for order in "CF":
        model = pdmp.models.LinearGaussian(np.array(X, order=order), X[:, 0])
        before, field = preflight.contents(pdmp.ZigZag(model), of_ours=True), model.X
        assert before == preflight.contents(pdmp.ZigZag(model), of_ours=True)
        field[-1, -1] += 1.0
        assert before != preflight.contents(pdmp.ZigZag(model), of_ours=True)


@pytest.mark.parametrize("name", in_quick(PROCESSES, *(name for name in PROCESSES if name != "SBPS")))
def test_a_run_goes_on(name, tmp_path):
    call = {"chains": 2, "seed": 4}
    whole = pdmp.sample(PROCESSES[name](), events=90, **call)
    short = pdmp.sample(PROCESSES[name](), events=30, **call)
    short.save(tmp_path / "short.npz")
    same(short.extend(events=90, progress=False), whole)
    loaded = pdmp.load(tmp_path / "short.npz")
    loaded.save(tmp_path / "again.npz")  # a loaded run that is saved can go on as well
    for path in ("short.npz", "again.npz"):
        more = pdmp.load(tmp_path / path).extend(PROCESSES[name](), events=60, progress=False)
        same(more.extend(events=90), whole)


class Placed(Telegraph):
    """A process with a setting that is found where the first chain begins."""

    place: float

    def __init__(self, place=0.0):
        super().__init__()
        self.place = place

    def resolve(self, x):
        return Placed(float(x[0]))


def test_a_process_is_resolved_again_where_it_was(tmp_path):
    """Chains begin in different places, and the first one is that of the run."""
    call = {"chains": 2, "seed": 4, "initial": [[1.0, 0.0], [2.0, 0.0]]}
    run = pdmp.sample(Placed(), events=30, **call)
    run.save(tmp_path / "short.npz")
    same(pdmp.load(tmp_path / "short.npz").extend(Placed(), events=60), pdmp.sample(Placed(), events=60, **call))


@pytest.mark.parametrize("store", ["grid", "moments"])
def test_other_stores_go_on(store, tmp_path):
    call = {"chains": 2, "seed": 4, "store": store, "warmup": 0.2} | ({"draws": 20} if store == "grid" else {})
    short = pdmp.sample(Telegraph(), time=30.0, **call)
    short.save(tmp_path / "short.npz")
    live, loaded = short.extend(time=70.0), pdmp.load(tmp_path / "short.npz").extend(Telegraph(), time=70.0)
    np.testing.assert_array_equal(live.mean(), loaded.mean())
    np.testing.assert_array_equal(live.var(), loaded.var())
    assert live.warmup.tolist() == loaded.warmup.tolist() == [6.0, 6.0] and live.end.tolist() == [70.0, 70.0]


def test_a_run_goes_on_with_a_checkpoint(tmp_path):
    whole = pdmp.sample(Telegraph(), events=90, seed=4)
    more = pdmp.sample(Telegraph(), events=30, seed=4).extend(events=90, checkpoint=tmp_path / "run")
    same(more, whole)
    same(pdmp.sample(Telegraph(), events=90, seed=4, checkpoint=tmp_path / "run"), whole)  # finished: only read
    again = tmp_path / "again"
    same(pdmp.sample(Telegraph(), events=30, seed=4).extend(events=60, checkpoint=again).extend(events=90), whole)
    same(pdmp.sample(Telegraph(), events=30, seed=4).extend(events=90, checkpoint=again), whole)  # goes on from 60
    with pytest.raises(ValueError, match="is of another call: `seed` differs"):
        pdmp.sample(Telegraph(), events=30, seed=5).extend(events=120, checkpoint=again)
    with pytest.raises(ValueError, match="`checkpoint` must be the name of a file"):
        whole.extend(events=100, checkpoint="")


def test_a_goal_is_looked_at_after_a_checkpoint_of_a_run_without_one(tmp_path):
    def short():
        return pdmp.sample(Walls(), events=60, seed=4)

    file, limits = tmp_path / "run", {"ess": 60, "events": 20_000}
    short().extend(events=90, checkpoint=file)
    run = short().extend(checkpoint=file, **limits)
    assert set(run.stats["stopped"]) == set(short().extend(**limits).stats["stopped"]) == {"ess"}


def test_a_function_that_names_something_else_now_is_not_continued():
    """What would follow has another law; put back it goes on, as often as one likes."""
    centre = np.zeros(2)
    model = pdmp.models.from_function(lambda x: (0.5 * (x - centre) @ (x - centre), x - centre), 2)
    run = pdmp.sample(pdmp.BPS(model), time=5.0, chains=2, seed=1, progress=False)
    longer = run.extend(time=8.0)
    for one in (run, longer):
        centre[:] = 0.3
        with pytest.raises(ValueError, match="what it names has changed, and two posteriors would be averaged"):
            one.extend(time=10.0)
        centre[:] = 0.0
    assert longer.extend(time=10.0).end.tolist() == [10.0, 10.0]


def test_a_model_or_a_process_that_has_changed_in_place_is_not_continued():
    """In fields of the package's own classes too, arrays and numbers, of the process and of its model."""
    p = pdmp.Parameters(b=1)
    rows = pdmp.terms(lambda y, m: 0.5 * (y - m) ** 2, [[0.0, 1.0]], [p.b])
    gaussian, terms = pdmp.models.Gaussian(np.zeros(2), np.eye(2)), pdmp.models.sum_of_terms(p, [rows])
    for process, owner, field, what in (
        (pdmp.ZigZag(gaussian), gaussian, "mean", "`mean` of Gaussian"),
        (pdmp.BPS(terms), terms, "data", "`data` of SumOfTerms"),
        (pdmp.BPS(gaussian, refresh_rate=0.5), None, "refresh_rate", "`refresh_rate` of BPS"),
    ):
        run = pdmp.sample(process, time=5.0, chains=2, seed=1, progress=False)
        owner = owner or run.process
        before = getattr(owner, field)
        setattr(owner, field, before + 0.01)
        with pytest.raises(ValueError, match=f"{what} has changed, and two posteriors would be averaged"):
            run.extend(time=10.0)
        setattr(owner, field, before)
        assert run.extend(time=10.0).end.tolist() == [10.0, 10.0]


def test_what_cannot_go_on_says_why(tmp_path):
    def failed():
        with pytest.raises(pdmp.SamplingError) as caught:
            pdmp.sample(Telegraph(RATE_NAN), events=90, seed=1)
        caught.value.run.save(tmp_path / "failed.npz")
        return pdmp.load(tmp_path / "failed.npz")

    run = pdmp.sample(pdmp.ZigZag(MODEL), events=30, seed=1)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    other = pdmp.models.LinearGaussian([[1.0, 0.2], [0.5, -1.0], [0.3, 0.8]], [1.0, 0.0, -1.001])
    wider = pdmp.models.LinearGaussian(np.eye(3), np.ones(3))
    for call, message in (
        (lambda: loaded.extend(events=40), "a loaded run cannot be continued without its process"),
        (lambda: loaded.extend(pdmp.ZigZag(other), events=40), "`process` is not that of the run"),
        (lambda: loaded.extend(pdmp.BPS(MODEL), events=40), "`process` is not that of the run"),
        (lambda: loaded.extend(pdmp.ZigZag(wider), events=40), "`process` is not that of the run"),
        (lambda: loaded.extend(pdmp.ZigZag(MODEL), events=20), "smaller than what the run has already spent"),
        (lambda: run.extend(pdmp.ZigZag(MODEL), events=40), "`process` is for a loaded run"),
        (
            lambda: pdmp.diagnostics.split(run)[0].extend(pdmp.ZigZag(MODEL), events=40),
            "this run cannot be continued: it is a part of another",
        ),
        (lambda: run.extend(), "no budget"),
        (lambda: failed().extend(Telegraph(RATE_NAN), events=90), "a run that failed cannot be continued"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="`event` is no budget; there are time, events"):
        run.extend(event=40)
