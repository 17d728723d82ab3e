"""Several anchors, and anchors that move in the warm-up: the same law for each, and where they go."""

import itertools
import math
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.gradients import ControlVariate, control_variate
from pdmp.gradients.anchors import POOR, Anchors
from pdmp.models import LinearGaussian, LogisticRegression
from pdmp.native.classes import Compiled, by_name, compiled, entry, larger
from pdmp.process import ADAPTING, DATA, KINDS
from tests.checks import new_chain, plain_only

pytestmark = pytest.mark.exact

N, D = 8, 2
RNG = np.random.default_rng(17)
FEATURES = RNG.standard_normal((N, D)) * [1.0, 2.0]
MODEL = LogisticRegression(FEATURES, np.arange(N) % 2, prior_scale=[0.8, 1.5])
SCALE = np.array([0.5, 2.0])
POINTS = np.array([[0.5, -0.5], [-1.0, 0.5], [0.4, 3.0]])
BANKS = {
    (draw, size): ControlVariate(MODEL, size, anchor=POINTS, draw=draw, scale=SCALE)
    for draw in ("uniform", "importance")
    for size in (1, 2)
}


def data_gradient(x):
    return MODEL.term_gradients(x, np.arange(N)).sum(axis=0)


def nearest(x, scale=SCALE):
    return POINTS[np.argmin((((x - POINTS) / scale) ** 2).sum(axis=1))]


def places(n=12):
    """Some near each anchor, and at it."""
    rng = np.random.default_rng(5)
    return np.concatenate([POINTS, POINTS[np.arange(n) % 3] + rng.normal(size=(n, D)) * SCALE])


@entry
def again(provider, x, memory, out, counts):
    provider.gradient_again(x, memory, out, counts)


@pytest.mark.parametrize("bank", BANKS.values(), ids=[f"{draw}-{size}" for draw, size in BANKS])
def test_estimates_have_the_full_gradient_as_their_mean_at_every_place(bank):
    """Over all batches; they are those of the nearest anchor in units of `scale`, so without noise at each anchor."""
    memory, counts = by_name(bank.memory(None)), np.zeros(KINDS, np.int64)
    p = bank.drawing.alias.probabilities() if bank.draw == "importance" else np.full(N, 1.0 / N)
    which = set()
    for x in places(3):
        found, total = [], np.zeros(D)
        for rows in itertools.product(range(N), repeat=bank.size):
            memory.rows[:], memory.weights[:] = rows, 1.0 / (bank.size * p[list(rows)])
            out = np.zeros(D)
            again(bank.native, x, memory, out, counts)
            terms = MODEL.term_gradients(x, np.array(rows)) - MODEL.term_gradients(nearest(x), np.array(rows))
            prior = MODEL.gradient(x) - data_gradient(x)
            expected = (
                data_gradient(nearest(x)) + prior + memory.weights @ terms
                if bank.draw == "importance"
                else (data_gradient(nearest(x)) + prior + N / bank.size * terms.sum(axis=0))
            )
            np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-10)
            total += p[list(rows)].prod() * out
            found.append(out)
        np.testing.assert_allclose(total, MODEL.gradient(x), rtol=1e-9, atol=1e-10)
        if (x == POINTS).all(axis=1).any():
            np.testing.assert_allclose(found, np.tile(MODEL.gradient(x), (len(found), 1)), rtol=1e-9, atol=1e-12)
        which.add(tuple(nearest(x)))
    assert len(which) == 3


class Waiting:
    """A generator whose exponential numbers are all the same."""

    def __init__(self, wait):
        self.wait, self.rng = wait, np.random.default_rng(1)

    def random(self):
        return self.rng.random()

    def standard_exponential(self):
        return self.wait


@plain_only
@pytest.mark.parametrize("wait", [0.3, 40.0])
@pytest.mark.parametrize("draw", ["uniform", "importance"])
def test_rates_of_several_anchors_balance_the_flow_under_their_bound(draw, wait):
    """λⱼ(x, v) - λⱼ(x, Fⱼv) = vⱼ ∂ⱼU(x). A proposal has the rate of the anchor nearest to it, not to its clock."""
    process = pdmp.ZigZag(BANKS[draw, 1], metric=pdmp.Metric(scales=SCALE))
    state, rng, crossed = process.begin(POINTS[0], np.random.default_rng(0)), Waiting(wait), 0
    memory = state.memory
    for x, v in zip(places(), np.random.default_rng(2).choice([-1.0, 1.0], (15, D)) * SCALE, strict=True):
        forth, back = np.zeros(D), np.zeros(D)
        process.native.true_rates(x, v, np.zeros(D), forth)
        process.native.true_rates(x, -v, np.zeros(D), back)
        np.testing.assert_allclose(forth - back, v * MODEL.gradient(x), rtol=1e-9, atol=1e-12)
        for row in range(N):
            state.x[:], state.v[:], state.moved[:], memory.at[0] = x, v, 0.0, -1.0
            time, bound = process.native.clock(state, 0, 0.0, rng)
            if memory.turn[0] < 0:  # the first call fills the ring
                process.native.rate(state, 0, time, rng)
                process.native.clock(state, 0, 0.0, rng)
            memory.turn[0] = 0
            weight = memory.weights[0, 0] = process.provider.drawing.inverse(row)
            memory.rows[0] = row
            rate, j = process.native.rate(state, 0, time, rng), memory.flipping[0]
            there = x + v * time
            known = MODEL.gradient(there) - data_gradient(there) + data_gradient(nearest(there))
            terms = MODEL.term_gradients(np.array(there), np.array([row]))[0]
            difference = terms - MODEL.term_gradients(nearest(there), np.array([row]))[0]
            expected = max(0.0, v[j] * (known + weight * difference)[j])
            assert memory.bounds.sum() == pytest.approx(bound, rel=1e-9)
            assert expected <= memory.bounds[j] * (1.0 + 1e-9)
            assert rate * memory.bounds[j] / bound == pytest.approx(expected, rel=1e-8, abs=1e-9)
            crossed += not np.array_equal(nearest(x), nearest(there))
    assert crossed > 0 or wait < 1.0


def following(points=POINTS, renew=True):
    anchors = Anchors(points, np.array([data_gradient(a) for a in points]), SCALE, N, renew)
    counts = np.zeros(KINDS, np.int64)
    counts[ADAPTING] = 1
    return anchors, by_name(anchors.memory()), counts


def test_an_anchor_moves_to_the_mean_of_the_path_when_it_has_cost_a_pass():
    anchors, bank, counts = following(POINTS[:1])
    corners, times = np.array([[2.0, 1.0], [3.0, -1.0], [2.5, 0.0], [4.0, 2.0]]), np.array([1.0, 1.5, 3.0, 3.5])
    lengths, pieces = np.diff(times), np.diff(corners, axis=0)
    mean = (lengths[:, None] * (corners[:-1] + 0.5 * pieces)).sum(axis=0) / lengths.sum()
    for k, (x, t) in enumerate(zip(corners, times, strict=True)):
        assert bank.renewals[0] == 0
        np.testing.assert_array_equal(bank.anchor, POINTS[0])
        if k == 3:
            weight, squares = bank.weights[0], bank.squares[0]
            part = ((corners[:3] - POINTS[0]) / SCALE) ** 2
            cross = ((corners[:2] - POINTS[0]) * (corners[1:3] - POINTS[0]) / SCALE**2).sum(axis=1)
            expected = (lengths[:2] * (part[:2].sum(1) + cross + part[1:].sum(1)) / 3.0).sum()
            assert weight == 2.0 and squares == pytest.approx(expected, rel=1e-12)
            anchors.native.evaluated(bank, N)
        anchors.native.follow(MODEL.native, bank, x, t, counts)
    assert bank.renewals[0] == 1 and counts[DATA] == N
    np.testing.assert_allclose(bank.anchor, mean, rtol=1e-12)
    np.testing.assert_allclose(bank.points[0], mean, rtol=1e-12)
    np.testing.assert_allclose(bank.anchor_gradient, data_gradient(mean), rtol=1e-12)
    np.testing.assert_allclose(bank.gradients[0], data_gradient(mean), rtol=1e-12)
    assert bank.due[0] == N and bank.evaluated[0] == 0  # the path was far: it may be on its way
    assert not bank.weights.any() and not bank.sums.any() and not bank.squares.any()
    np.testing.assert_array_equal(anchors.points, POINTS[:1])  # those of other chains


@pytest.mark.parametrize(("away", "moves", "due"), [(0.9 * POOR, 0, 2), (1.1 * POOR, 1, 2), (0.9, 1, 2), (1.1, 1, 1)])
def test_only_an_anchor_that_is_poor_moves(away, moves, due):
    """By the mean square distance of the path from its mean; the next time is twice as late, unless it is far."""
    anchors, bank, counts = following(POINTS[:1])
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, D))
    x -= x.mean(axis=0)
    x *= SCALE / np.sqrt((x**2).sum(axis=1).mean())
    anchors.native.evaluated(bank, N - 40)
    for a in x + POINTS[0] + np.array([np.sqrt(away), 0.0]) * SCALE:
        anchors.native.visit(MODEL.native, bank, a, 1, counts)
    assert bank.renewals[0] == 0
    bank.evaluated[0] = N
    anchors.native.visit(MODEL.native, bank, POINTS[0] + np.array([np.sqrt(away), 0.0]) * SCALE, 3, counts)
    assert bank.renewals[0] == moves and counts[DATA] == moves * N and bank.due[0] == due * N
    assert bank.evaluated[0] == 3


def test_each_anchor_moves_to_the_part_of_the_path_near_it():
    anchors, bank, counts = following()
    clusters = POINTS[:2] + np.array([0.2, 0.3])
    for k in range(20):
        anchors.native.visit(MODEL.native, bank, clusters[k % 2], 0, counts)
    bank.evaluated[0] = N
    anchors.native.visit(MODEL.native, bank, clusters[0], 1, counts)
    np.testing.assert_allclose(bank.points, [*clusters, POINTS[2]], rtol=1e-12)
    np.testing.assert_allclose(bank.gradients, [data_gradient(a) for a in bank.points], rtol=1e-12)
    np.testing.assert_allclose(bank.anchor, clusters[0], rtol=1e-12)
    np.testing.assert_allclose(bank.anchor_gradient, data_gradient(clusters[0]), rtol=1e-12)
    assert bank.renewals[0] == 2 and counts[DATA] == 2 * N


def test_the_nearest_anchor_is_the_one_that_is_nearest_now():
    """Not that which was, before they moved."""
    anchors, bank, counts = following(np.array([[0.0, 0.0], [1.0, 0.0]]))
    bank.points[:] = [[0.0, 4.0], [0.0, 0.5]]
    for x, k in (([0.0, 0.0], 1), ([1.0, 4.0], 0)):
        anchors.native.choose(bank, np.array(x))
        assert bank.nearest[0] == k and bank.anchor.tolist() == bank.points[k].tolist()


@pytest.mark.parametrize("k", [0, 1])
def test_all_anchors_are_looked_at_soon_again_where_one_was_far(k):
    """Also where the path was around another one, and did not move it."""
    anchors, bank, counts = following(POINTS[:2])
    moved = POINTS[:2].copy()
    moved[k] += [0.2, 0.3]
    for side in (1.0, -1.0) * 10:
        for j in (0, 1):
            anchors.native.visit(MODEL.native, bank, moved[j] + side * (j != k) * 0.1 * SCALE, 0, counts)
    bank.evaluated[0] = N
    anchors.native.visit(MODEL.native, bank, moved[k], 1, counts)
    assert bank.renewals[0] == 1 and bank.due[0] == N
    np.testing.assert_allclose(bank.points, moved, rtol=1e-12)


class Holed(Compiled):
    """The gradient of eight data, of which one partial derivative is not a number."""

    j: int
    n_data: int

    def __init__(self, j):
        self.j, self.n_data = j, N

    @compiled
    def add_block_gradient(self, x, first, last, out):
        for j in range(out.shape[0]):
            out[j] += math.nan if j == self.j else 1.0


@plain_only
@pytest.mark.parametrize("j", range(D))
def test_no_anchor_moves_to_where_a_partial_derivative_is_not_finite(j):
    anchors, bank, counts = following(POINTS[:1])
    bank.sums[0], bank.weights[0] = 4.0, 2.0
    anchors.native.examine(Holed(j).native, bank, counts)
    assert bank.renewals[0] == 0 and counts[DATA] == N
    np.testing.assert_array_equal(bank.points, POINTS[:1])
    np.testing.assert_array_equal(bank.anchor_gradient, data_gradient(POINTS[0]))


@plain_only
@pytest.mark.parametrize("which", range(3))
def test_a_bound_that_is_not_a_number_stays_so(which):
    """Whichever anchor or row it is of, first or last."""
    anchors, bank, _ = following()
    bank.gradients[which, 1] = math.nan
    assert math.isnan(anchors.native.largest(bank, 1, 0.5, 0.1))
    rates = np.maximum(0.5 * (0.1 + bank.gradients[:, 0]), 0.0)
    assert anchors.native.largest(bank, 0, 0.5, 0.1) == rates.max()
    values = np.array([1.0, 3.0, 2.0])
    values[which] = math.nan
    assert math.isnan(larger(larger(values[0], values[1]), values[2])) and larger(2.0, 3.0) == larger(3.0, 2.0) == 3.0


def test_no_anchor_moves_after_the_warmup_nor_where_that_is_not_asked_for():
    for renew, adapting in ((True, 0), (False, 1)):
        anchors, bank, counts = following(renew=renew)
        counts[ADAPTING] = adapting
        for k in range(50):
            anchors.native.evaluated(bank, N)
            anchors.native.follow(MODEL.native, bank, POINTS[0] + 1.0, float(k), counts)
            anchors.native.visit(MODEL.native, bank, POINTS[0] + 1.0, N, counts)
        np.testing.assert_array_equal(bank.points, POINTS)
        assert bank.renewals[0] == 0 and counts[DATA] == 0


FAR = [6.0, -6.0]


def renewed(draw="importance", size=1, anchor=FAR):
    return ControlVariate(MODEL, size, anchor=anchor, draw=draw, renew=True)


@plain_only
@pytest.mark.parametrize("anchor", [FAR, POINTS])
def test_a_run_counts_what_its_anchors_cost_and_keeps_them(anchor):
    chain = new_chain(pdmp.ZigZag(renewed(anchor=anchor)), POINTS[0], 3, warmup=0.3, proposals=400)
    moved = []
    while chain.stopped is None:
        chain.chunk = 1
        chain.advance(seconds=0.0)
        if not chain.warming:
            moved.append(chain.state.memory.bank.points.copy())
    assert len(moved) > 200 and all(np.array_equal(moved[0], points) for points in moved)
    bank = chain.state.memory.bank
    assert bank.renewals[0] >= 1 and not np.array_equal(bank.points, np.atleast_2d(anchor))
    np.testing.assert_allclose(bank.gradients, [data_gradient(a) for a in bank.points], rtol=1e-10)
    assert chain.state.counts[DATA] == 400 + N * bank.renewals[0]
    assert chain.finish().statistics == {"anchor_renewals": bank.renewals[0]}


@plain_only
def test_a_run_is_that_of_its_seed_whatever_its_pieces_and_each_chain_has_its_own_anchor():
    def path(chain):
        record = chain.finish()
        return [record.times, record.xs, record.counts, chain.state.x, chain.state.memory.bank.points]

    options = {"proposals": 200, "warmup": 0.5}
    process = pdmp.ZigZag(renewed("uniform"))
    whole = path(new_chain(process, FAR, 3, **options).advance())
    for stop in (1, 30, 90):
        pieces = new_chain(process, FAR, 3, **options)
        pieces.chunk = stop
        pieces.advance(seconds=0.0)
        header, arrays = pieces.pack(pieces.snapshot(), "chain")
        fresh = new_chain(process, FAR, 3, **options)
        fresh.restore(header, arrays, "chain")
        elsewhere = new_chain(process, FAR, 3, **options).continued(*pieces.carried())
        elsewhere.blocks = list(pieces.blocks)
        for other in (fresh, elsewhere):
            for a, b in zip(whole, path(other.advance()), strict=True):
                np.testing.assert_array_equal(a, b)
    other = path(new_chain(process, FAR, 4, **options).advance())
    assert not np.array_equal(other[-1], whole[-1])
    np.testing.assert_array_equal(process.provider.points, [FAR])


@plain_only
def test_stochastic_gradient_samplers_move_their_anchor_to_the_mean_of_their_steps():
    provider = renewed("uniform", size=2, anchor=[3.0, 3.0])
    chain = new_chain(discrete.SGLD(provider, step=0.05), [0.0, 0.0], 5, warmup=1.0 - 1e-9, steps=9)
    seen = [chain.start[0]]
    while chain.stopped is None:
        chain.chunk = 1
        chain.advance(seconds=0.0)
        seen.append(chain.position(float(chain.state.now[0])))
        if chain.state.memory.provider.bank.renewals[0]:
            break
    bank = chain.state.memory.provider.bank
    steps = N // provider.size + 1  # the states at which batches of a pass were drawn, and the one after them
    np.testing.assert_allclose(bank.points[0], np.mean(seen[:steps], axis=0), rtol=1e-10)


WRONG = {
    "a number": (lambda: ControlVariate(MODEL, 1, anchor=[0.0, 0.0], renew=3), "`renew` must be"),
    "no points": (lambda: ControlVariate(MODEL, 1, anchor=np.zeros((0, 2))), "`anchor` must name a point or more"),
    "wide points": (lambda: ControlVariate(MODEL, 1, anchor=np.zeros((2, 3))), "`anchor`"),
    "not finite": (lambda: ControlVariate(MODEL, 1, anchor=[[0.0, 0.0], [np.nan, 0.0]]), "`anchor`"),
    "Boomerang": (lambda: pdmp.Boomerang(renewed()), "Boomerang takes control variates with one anchor .* renew=True"),
    "FactorisedBoomerang": (
        lambda: pdmp.FactorisedBoomerang(ControlVariate(MODEL, 1, anchor=POINTS)),
        "FactorisedBoomerang takes control variates with one anchor .* several anchors",
    ),
    "LocalBPS": (lambda: pdmp.LocalBPS(renewed()), "LocalBPS takes control variates with one anchor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    make, text = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=text):
        make()


@plain_only
def test_without_a_warmup_nothing_moves_and_that_is_said():
    for process in (pdmp.ZigZag(renewed()), discrete.SGLD(renewed(size=2), step=0.01)):
        with pytest.warns(UserWarning, match="`warmup` is 0: renew=True adapts in the warm-up only"):
            run = pdmp.sample(process, initial=[0.0, 0.0], events=20, seed=1)
        assert run.stats["anchor_renewals"] == 0


@plain_only
def test_a_run_far_from_its_anchor_says_so_once():
    def texts(provider, **options):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            pdmp.sample(pdmp.ZigZag(provider), initial=[0.0, 0.0], proposals=1_200, warmup=0.1, seed=2, **options)
        return [str(w.message) for w in found if "anchor" in str(w.message)]

    (text,) = texts(ControlVariate(MODEL, 1, anchor=FAR))
    assert "renew=True" in text and "times as far from the anchor" in text
    assert not texts(ControlVariate(MODEL, 1))
    assert not texts(renewed())


def test_a_lipschitz_constant_that_is_no_number_is_not_left_out(monkeypatch):
    """In whichever of several ranges of rows, which threads look at, it is."""
    model = LinearGaussian(np.ones((6, 2)), np.arange(6.0))
    provider = ControlVariate(model, 1, anchor=[0.0, 0.0])
    for k, j in ((0, 1), (1, 0), (2, 1)):
        parts = [np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([2.0, 2.5])]
        parts[k][j] = math.nan
        monkeypatch.setattr(control_variate, "each", lambda part, chunks, parts=parts: parts)
        largest = provider._bound_terms(np.zeros(0))
        assert math.isnan(largest[j]) and largest[1 - j] == (3.0, 2.5)[1 - j]


class Counts(pdmp.Model):
    """Normal data, (y - x)² / 2, in an array that its owner may change."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(1, n_data=len(y))
        self.y = y

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (self.y[i] - x[0]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += x[0] - self.y[i]

    @pdmp.compiled
    def term_lipschitz(self, i, scale, out):
        out[0] = scale[0]


@pytest.mark.parametrize("largest", [10_000_000, 1_000])
@pytest.mark.parametrize("entry", [0, 1_999])
def test_an_anchor_of_data_that_were_changed_is_refused(entry, largest, monkeypatch):
    """Its gradient is that of the data as they were; also where only pieces of them are looked at."""
    monkeypatch.setattr("pdmp.native.fingerprints.PIECES_ABOVE", largest)
    y = np.linspace(-1.0, 2.0, 2_000)
    model = Counts(y)
    provider = ControlVariate(model, size=5, anchor=[0.5])
    made = discrete.SGLD(provider, step=1e-4), discrete.SGLD(provider.rescaled(2.0), step=1e-4)
    for process in made:
        pdmp.sample(process, steps=2, seed=1, store="moments")
    y[entry] += 3.0
    for process in made:
        with pytest.raises(ValueError, match="what Counts holds has changed since its ControlVariate was made"):
            pdmp.sample(process, steps=2, seed=1, store="moments")
    with pytest.raises(ValueError, match="what Counts holds has changed"):  # in other units it is the same gradient
        provider.rescaled(3.0).check_unchanged()
    anew = discrete.SGLD(ControlVariate(model, size=5, anchor=[0.5]), step=1e-4)
    pdmp.sample(anew, steps=2, seed=1, store="moments")
    y[entry] -= 3.0
    pdmp.sample(made[0], steps=2, seed=1, store="moments")


class Shifted(Counts):
    """Of data with a known shift each, (y - shift - x)² / 2."""

    shift: np.ndarray

    def __init__(self, y, shift):
        super().__init__(y)
        self.shift = shift

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (self.y[i] - self.shift[i] - x[0]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += x[0] + self.shift[i] - self.y[i]


@pytest.mark.parametrize("changed", ["y", "shift"])
def test_each_array_of_a_model_is_that_of_its_anchor(changed):
    model = Shifted(np.linspace(-1.0, 2.0, 20), np.linspace(0.0, 0.5, 20))
    provider = ControlVariate(model, size=5, anchor=[0.5])
    provider.check_unchanged()
    getattr(model, changed)[7] += 3.0
    with pytest.raises(ValueError, match="what Shifted holds has changed"):
        provider.check_unchanged()
