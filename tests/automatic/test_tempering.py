"""Tempering in parts: references, ladders, swaps, paths, estimates of the evidence, modes, and what is refused."""

import itertools
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, signal, special, stats

import pdmp
from pdmp.automatic import start
from pdmp.automatic.modes import Hidden
from pdmp.automatic.start import Evaluations
from pdmp.automatic.tempering import answers, lines, preparing, references, rounds
from pdmp.automatic.tempering import process as tempering
from pdmp.automatic.tempering.evidence import LogEvidence, bennett, log_evidence
from pdmp.automatic.tempering.ladder import rungs
from pdmp.automatic.tempering.modes import groups, labels
from pdmp.automatic.tempering.references import Mixture, defended, fitted, wide
from pdmp.models import Gaussian, GaussianMixture
from pdmp.process import ADAPTING, DATA
from tests.checks import plain_only

pytestmark = pytest.mark.exact

ROOTS = np.array([[[1.0, 0.0], [0.5, 0.7]], [[0.4, 0.0], [-0.2, 2.0]]])
MIXTURE = Mixture([1.0, 3.0], [[0.0, 1.0], [2.0, -1.0]], ROOTS, [5.0, 3.0])


# ---------------------------------------------------------------------------------------------------------------
# References


def test_a_reference_is_normalised():
    """Its density is that of scipy's t, and its integral 1."""
    x = np.random.default_rng(0).standard_normal((6, 2)) * 3.0
    laws = [
        stats.multivariate_t(m, L @ L.T, df=n) for m, L, n in zip(MIXTURE.means, ROOTS, MIXTURE.freedoms, strict=True)
    ]
    density = 0.25 * laws[0].pdf(x) + 0.75 * laws[1].pdf(x)
    assert np.allclose(special.logsumexp(MIXTURE.log_terms(x), axis=1), np.log(density), rtol=1e-12)
    line = Mixture([2.0, 1.0], [[0.0], [3.0]], [[[1.0]], [[0.2]]], [5.0, 8.0])
    mass = integrate.quad(lambda v: math.exp(-at(line, np.array([v]))[0]), -math.inf, math.inf, points=None)[0]
    assert abs(mass - 1.0) < 1e-6


def at(mixture, x):
    gradient = np.full(len(x), np.nan)
    return mixture.potential_and_gradient(x, mixture.memory(), gradient), gradient


@plain_only
def test_the_gradient_of_a_reference():
    for x in np.random.default_rng(1).standard_normal((4, 2)) * 2.0:
        height, gradient = at(MIXTURE, x)
        assert height == pytest.approx(-special.logsumexp(MIXTURE.log_terms(x[None])), rel=1e-13)
        h = 1e-6 * np.eye(2)
        slopes = [(at(MIXTURE, x + e)[0] - at(MIXTURE, x - e)[0]) / 2e-6 for e in h]
        assert np.allclose(gradient, slopes, atol=1e-8)


@plain_only
def test_draws_of_a_reference():
    """Shares of both components, and the law of a coordinate of each, by its distribution function."""
    rng, z, x, n = np.random.default_rng(2), np.empty(2), np.empty((4_000, 2)), 4_000
    far = Mixture([1.0, 3.0], [[0.0, 1.0], [900.0, -1.0]], ROOTS, [5.0, 3.0])
    for row in x:
        far.draw(rng, z, row)
    second = x[:, 0] > 450.0
    assert abs(second.mean() - 0.75) < 5.0 * math.sqrt(0.75 * 0.25 / n)
    for part, j, k in ((~second, 0, 0), (~second, 1, 0), (second, 1, 1)):
        scale = math.sqrt((ROOTS[k, j] ** 2).sum())
        assert stats.kstest((x[part, j] - far.means[k, j]) / scale, stats.t(far.freedoms[k]).cdf).pvalue > 1e-4


def test_a_wide_reference():
    """Within (4 and 2.5), and between -3, 3 and 9 where paths began, 24: times two."""
    found = wide(np.array([[-3.0, 0.0], [3.0, 0.0]]), np.array([np.eye(2), np.diag([7.0, 4.0])]), np.array([9.0, 0.0]))
    assert np.allclose(found.means, [[3.0, 0.0]]) and np.allclose(found.roots[0] ** 2, 4.0 * np.diag([28.0, 2.5]))


def test_a_fitted_mixture():
    """Three clusters of 600, 300 and 100 draws, one of them narrow; a few draws of a heavy tail spoil nothing."""
    rng = np.random.default_rng(3)
    laws = [(600, [0.0, 0.0], 1.0), (300, [8.0, 0.0], 0.2), (100, [0.0, -9.0], 1.0)]
    x = np.concatenate([rng.normal(m, s, (n, 2)) for n, m, s in laws] + [[[1e6, 1e6]]])
    weights, means, covariances = fitted(x, np.random.default_rng(0))
    order = np.argsort(-weights)
    assert np.allclose(weights[order], [0.6, 0.3, 0.1], atol=1e-6)
    assert np.allclose(means[order], [m for _, m, _ in laws], atol=0.3)
    assert np.allclose(np.linalg.det(covariances[order]) ** 0.25, [1.0, 0.2, 1.0], rtol=0.15)


def test_what_a_reference_is_defended_by():
    """Modes that are far, or much narrower, with mass; the wide t keeps a tenth, and all weights sum to one."""
    far = Mixture([1.0], [[0.0, 0.0]], [10.0 * np.eye(2)], [5.0])
    parts = np.array([1.0]), np.zeros((1, 2)), np.array([np.eye(2)])
    root = np.eye(2)
    modes = [
        (np.array([1.0, 0.0]), root, 3.0),  # known already
        (np.array([9.0, 0.0]), root, 3.0 + math.log(0.5)),
        (np.array([0.5, 0.0]), 0.05 * root, 1.0),  # within the first one, but twenty times narrower
        (np.array([0.0, 9.0]), root, -5.1),  # of no mass
    ]
    found = defended(parts, far, modes, 3.0)
    assert np.array_equal(found.means, [[0.0, 0.0], [9.0, 0.0], [0.5, 0.0], [0.0, 0.0]])
    before = np.array([1.0, 0.5, math.exp(-2.0)])
    assert np.allclose(found.weights, [*0.9 * before / before.sum(), 0.1]) and found.freedoms.tolist() == [5.0] * 4
    scales = np.sqrt(references.WIDENED) * np.array([1.0, 1.0, 0.05])
    assert np.allclose(found.roots[:, 0, 0], [*scales, 10.0])
    high = Mixture([1.0], np.zeros((1, 7)), [np.eye(7)], [5.0])
    assert defended((np.ones(1), np.zeros((1, 7)), np.eye(7)[None]), high, [], 0.0).freedoms.tolist() == [7.0, 5.0]


# ---------------------------------------------------------------------------------------------------------------
# Ladder


def test_rungs_have_equal_shares_of_the_barrier():
    betas, rejections = np.array([0.0, 0.1, 0.4, 1.0]), np.array([0.3, 0.6, 0.1])
    found = rungs(betas, rejections, 6)
    cumulative = np.interp(found, betas, [0.0, 0.3, 0.9, 1.0])
    assert np.allclose(np.diff(cumulative), 0.2) and found[0] == 0.0 and found[-1] == 1.0
    still = rungs(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0]), 3)  # none is rejected: no two are the same
    assert np.allclose(still, [0.0, 0.5, 1.0])


def test_what_the_next_ladder_is_made_of():
    """A misfit and precisions by hand: of two components of unequal weights, and of what is seen as it was known."""
    roots = np.array([[[1.0, 0.0], [0.5, 2.0]], [[0.5, 0.0], [-1.0, 1.0]]])
    reference = Mixture([3.0, 1.0], [[0.0, 0.0], [9.0, 0.0]], roots, [5.0, 7.0])
    expected = 0.75 * np.linalg.inv(roots[0] @ roots[0].T) + 0.25 * np.linalg.inv(roots[1] @ roots[1].T)
    np.testing.assert_allclose(reference.precision(), expected, rtol=1e-12)
    model, x, root, out = Gaussian([1.0, -1.0], [[4.0, 1.0], [1.0, 1.0]]), np.ones((1, 2)), roots[0], np.empty(2)
    reference.potential_and_gradient(x[0], reference.memory(), out)
    pulled = root.T @ (model.gradient(x[0]) - out)
    assert rounds.misfit(model, reference, x, root) == pytest.approx(math.sqrt(pulled @ pulled / 2.0), rel=1e-12)
    wide, known = Mixture([1.0], np.zeros((1, 2)), np.eye(2)[None], [5.0]), np.diag([9.0, 25.0])
    ladder = rounds.first_ladder(wide, known, np.array([[1.0, 1.0], [2.0, 2.0]]), 3, 10)
    many = len(ladder.betas)
    positions = np.arange(3.0 * many * 2).reshape(3, many, 2)
    seen = rounds.Round(np.ones((3, 4, 2)), np.full(many - 1, 0.2), ladder.steps, ladder.precisions, positions, None, 0)
    after = rounds.next_ladder(ladder, seen, many, known, 12, None, np.random.default_rng(0))
    for beta, precision in zip(after.betas, after.precisions, strict=True):
        np.testing.assert_allclose(precision, beta * known + (1.0 - beta) * np.eye(2), rtol=1e-9)
    np.testing.assert_array_equal(after.pool[:, 0], positions[:, -1])
    np.testing.assert_array_equal(after.starts, positions[:, -1])


@pytest.mark.parametrize("far", [False, True])
def test_the_first_ladder_is_made_of_the_modes_within_five_nats_of_the_first(monkeypatch, far):
    """Its metric of these alone, the wide reference and the places where replicas begin of all of them."""
    made = []

    def stop(*given):
        made.extend(given)
        raise InterruptedError

    monkeypatch.setattr(rounds, "first_ladder", stop)
    roots = [
        np.array([[2.0, 0.0], [0.5, 1.0]]),
        np.array([[0.3, 0.0], [-0.1, 0.7]]),
        np.array([[9.0, 0.0], [1.0, 0.01]]),
    ]
    centres, begun = np.array([[0.0, 1.0], [5.0, -2.0], [-8.0, 3.0]]), np.array([1.0, 7.0])
    modes = [rounds.Mode(*one) for one in zip(centres, roots, (-40.0, -44.9, -45.1), strict=True)]
    with pytest.raises(InterruptedError):
        rounds.learn_ladder(Gaussian([0.0, 0.0], [1.0, 1.0]), modes, begun, 3, np.random.SeedSequence(1), far=far)
    around, known, points, chains, longest = made
    covariances = np.array([root @ root.T for root in roots])
    np.testing.assert_allclose(known, 0.5 * (np.linalg.inv(covariances[0]) + np.linalg.inv(covariances[1])), rtol=1e-12)
    expected = wide(centres, covariances, begun)
    np.testing.assert_allclose(around.means, expected.means)
    np.testing.assert_allclose(around.precision(), expected.precision())
    np.testing.assert_array_equal(points, centres)
    assert (chains, longest) == (3, tempering.LONG if far else tempering.SHORT) and tempering.LONG > tempering.SHORT


def test_what_is_known_of_modes_is_that_of_most_mass_first(monkeypatch):
    """Each once, with the sign of its root, and none of e⁻⁸ of the mass of the first or less."""
    truth = {-20.0: (0.0, 0.5), 0.0: (-7.9, 2.0), 20.0: (-8.1, 1.0)}  # of a centre: log of its mass, and the sd
    gaussians = [start.Gaussian(np.array([c]), np.array([[-sd]])) for c, (_, sd) in truth.items()]
    monkeypatch.setattr(preparing, "elbo", lambda _, g, __: truth[float(np.rint(g.centre[0] / 20.0) * 20.0)][0])
    monkeypatch.setattr(preparing, "along_lines", lambda _, paths, *__: (paths, 7))
    again = start.Gaussian(np.array([0.5]), np.array([[2.0]]))
    learnt, begun = SimpleNamespace(gaussian=gaussians[1]), SimpleNamespace(paths=(), centre=np.zeros(1))
    model = Gaussian([0.0], [1.0])
    found, lines, _ = preparing.known_modes(
        model,
        begun,
        learnt,
        [Hidden(gaussians[2], 8.1), Hidden(again, 7.9), Hidden(gaussians[0], 0.0)],
        np.random.SeedSequence(1),
    )
    assert [(float(m.centre[0]), float(m.root[0, 0]), m.mass) for m in found] == [(-20.0, 0.5, 0.0), (0.5, 2.0, -7.9)]
    assert lines == 7
    within = start.Gaussian(np.array([-3.0]), np.array([[0.1]]))  # in the middle of a wide one, but another one
    several = [Hidden(again, 0.0), Hidden(within, 1.0)]
    found, *_ = preparing.known_modes(model, begun, learnt, several, np.random.SeedSequence(1))
    assert sorted(float(m.root[0, 0]) for m in found) == [0.1, 2.0]
    # What is known of an image, that it has the mass of the best but for 2 nats, counts where an ELBO says less.
    bent = Hidden(gaussians[2], 2.0)
    found, *_ = preparing.known_modes(
        model, begun, learnt, [bent, Hidden(gaussians[0], 0.0)], np.random.SeedSequence(1)
    )
    assert [(float(m.centre[0]), m.mass) for m in found] == [(-20.0, 0.0), (20.0, -2.0), (0.0, -7.9)]


def test_all_evaluations_of_the_preparation_are_added(monkeypatch):
    modes = [rounds.Mode(np.full(2, k), (1.0 + k) * np.eye(2), -float(k)) for k in range(2)]
    starts = SimpleNamespace(evaluations=1, centre=np.zeros(2), warning=lambda names: "a neck")
    made = SimpleNamespace(process=lambda *_: ladder(), starts=np.ones((2, 2)))

    def grouped(target, reference):
        target.count = 100_000
        return np.array([0])

    for name, result in {
        "find_starts": starts,
        "learn_metric": SimpleNamespace(gradients=10, far=False),
        "hidden_modes": ([], (), 100),
        "known_modes": (modes, 858, 1_000),
        "learn_ladder": (made, 10_000, 2.5),
    }.items():
        monkeypatch.setattr(preparing, name, lambda *_, result=result: result)
    monkeypatch.setattr(preparing, "groups", grouped)
    model = Gaussian([0.0, 0.0], [1.0, 4.0])
    monkeypatch.setattr(preparing, "MANY_ROWS", model.n_data + 1)
    with warnings.catch_warnings(action="error"):
        process = preparing.tempered(model, 2, np.random.SeedSequence(1).spawn(4), None, None)
    monkeypatch.setattr(preparing, "MANY_ROWS", model.n_data)
    ticks = iter([0.0, 9.0, 11.0, 16.0])
    monkeypatch.setattr(preparing, "perf_counter", lambda: next(ticks))
    with pytest.warns(UserWarning, match=r"all 0 rows, 2 s\. .*, here 1,200\.0 to 14,333\.3 minutes"):
        preparing.tempered(model, 2, np.random.SeedSequence(1).spawn(4), None, None)
    assert process.prepared.gradients == 111_111 and process.prepared.cautions == ("a neck",)
    assert "barrier 2.5, learnt in 10,000 gradients" in process.prepared.choice
    assert process.narrowest == lines.narrowest(2, 858) < 0.1
    assert "less than 0.06 times as wide as others may be missed" in process.prepared.choice
    np.testing.assert_array_equal(process.prepared.starts, made.starts)
    for name, found in zip(("centre", "root", "mass"), process.known, strict=True):
        np.testing.assert_array_equal(found, [getattr(mode, name) for mode in modes])


# ---------------------------------------------------------------------------------------------------------------
# Lines


def test_lines_meet_what_is_said_to_be_seen():
    """Of the ratio that is named, at any distance: the share of random lines that have a place in the ball."""
    assert [lines.number(d) for d in (1, 3, 5, 7)] == [100, 900, 1_200, 858]
    assert lines.narrowest(50, 3) == 1.0  # three lines see nothing
    rng = np.random.default_rng(0)
    for d, n in ((1, 10), (2, 40), (3, 50), (5, 50)):
        r, far = lines.narrowest(d, n), 9.0
        z = rng.standard_normal((20_000, d))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        first = lines.NEAREST * lines.RATIO ** rng.random((20_000, 1))
        x = (first * lines.RATIO ** np.arange(8))[..., None] * z[:, None]
        inside = np.linalg.norm(x - far * np.eye(d)[0], axis=-1) < r * np.linalg.norm(x, axis=-1)
        assert inside.any(axis=1).mean() == pytest.approx(1.0 - 0.05 ** (1.0 / n), rel=0.15)


def path(centre, sd, elbo, mode=True):
    gaussian = start.Gaussian(np.array(centre, float), sd * np.eye(len(centre)))
    return start.Path(gaussian, elbo, mode, mode=gaussian if mode else None)


def test_what_is_known_of_the_potential():
    """Minus the log of the density of the Gaussian that is highest there; the widest ones have mass."""
    known = lines.Known((path([0.0, 0.0], 2.0, 1.0), path([6.0, 0.0], 1.1, 0.0), path([9.0, 9.0], 50.0, -7.1, False)))
    for x in ([0.5, 1.0], [6.0, 2.0]):
        logs = [
            stats.multivariate_normal([0, 0], 4.0).logpdf(x) + 1.0,
            stats.multivariate_normal([6, 0], 1.21).logpdf(x),
        ]
        assert known.expected(np.array(x)) == pytest.approx(-max(logs), rel=1e-12)
    assert [g.root[0, 0] for g in known.widest()] == [2.0, 1.1]


def test_directions_are_far_from_each_other():
    rng, earlier = np.random.default_rng(0), [np.array([1.0])]
    assert lines.spread(earlier, 1, rng) == -1.0 and len(earlier) == 2
    found = [np.array([1.0, 0.0]), np.array([-1.0, 0.0])]
    assert abs(lines.spread(found, 2, rng)[0]) < 0.2 and np.allclose(np.linalg.norm(found, axis=1), 1.0)


def test_lines_find_a_narrow_mode_off_the_axes(monkeypatch):
    """From either of two that are known, one a fifth as wide, with a third of the mass; each once."""
    model = GaussianMixture([[0.0, 0.0], [4.0, 5.0], [-9.0, 3.0]], [1.0, 0.04, 0.8], [0.4, 0.3, 0.3])
    paths = path([0.0, 0.0], 1.0, math.log(0.4)), path([-9.0, 3.0], math.sqrt(0.8), math.log(0.3))
    monkeypatch.setattr(lines, "number", lambda dim: 60)
    target = Evaluations(model)
    found, looked = lines.along_lines(target, paths, np.zeros(2), np.random.default_rng(1))
    assert found[:2] == paths and len(found) == 3 and looked == 60
    assert np.allclose(found[2].mode.centre, [4.0, 5.0], atol=0.01) and found[2].elbo == pytest.approx(math.log(0.3))
    assert target.count < 800
    monkeypatch.setattr(lines, "EVALUATIONS", target.count)
    assert lines.along_lines(target, paths, np.zeros(2), np.random.default_rng(1)) == (paths, 1)


def test_a_heavy_tail_is_not_looked_into_without_end(monkeypatch):
    """U of a Cauchy law is lower than of a normal everywhere far out; nothing falls on the way."""
    model = pdmp.models.from_function(lambda x: (math.log1p(x[0] ** 2), 2.0 * x / (1.0 + x[0] ** 2)), 1)
    begun = []
    monkeypatch.setattr(lines, "find_path", lambda target, x, *_: begun.append(x) or path([0.0], 1.0, 0.0, False))
    paths = (path([0.0], 1.0, 0.0),)
    assert lines.along_lines(Evaluations(model), paths, np.zeros(1), np.random.default_rng(0)) == (paths, 100)
    assert len(begun) == lines.WASTED


def test_a_mode_that_was_found_by_luck_is_named():
    """It is a tenth as wide as the wider component of another one; one of little weight is not worth a word."""
    roots = np.array([2.0, 0.1, 0.2, 0.1, 99.0])[:, None, None] * np.eye(2)
    means = [[0.0, 2.0], [1.0, 2.0], [7.0, 2.0], [7.0, 3.0], [0.0, 0.0]]
    found = SimpleNamespace(
        reference=Mixture([5.0, 9.0, 2.0, 1.0, 1.0], means, roots, [5.0] * 5),
        modes=np.array([0, 0, 1, 1]),
        narrowest=0.11,
    )
    said = preparing.narrow(found, ["a", "b"])
    assert said.startswith("the mode at a = 7, b = 2 is 0.1 times as wide as another one, and what is less than 0.11")
    found.narrowest = 0.09
    assert preparing.narrow(found, ["a", "b"]) is None
    found.narrowest, found.modes = 0.5, np.zeros(4, int)
    assert preparing.narrow(found, ["a", "b"]) is None
    found.modes, found.reference = np.array([0, 0, 1, 1]), Mixture([5.0, 95.0, 1.0, 0.9, 1.0], means, roots, [5.0] * 5)
    assert preparing.narrow(found, ["a", "b"]) is None


def test_a_root_of_the_inverse():
    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]])
    root = rounds.inverse_root(precision)
    assert np.allclose(root @ root.T @ precision, np.eye(3)) and np.array_equal(root, np.tril(root))


# ---------------------------------------------------------------------------------------------------------------
# Swaps and paths


class Outcome(float):
    """A uniform number that is below what it is compared with, or not, and keeps that."""

    def __lt__(self, probability):
        self.seen.append(probability)
        return self.accepted


def outcomes(accepted, seen):
    """A generator whose numbers decide as they are told."""

    def random():
        made = Outcome(0.5)
        made.accepted, made.seen = accepted[len(seen)], seen
        return made

    return SimpleNamespace(random=random)


BETAS = np.array([0.0, 0.3, 1.0])


def ladder(target=None, betas=BETAS, **options):
    target = Gaussian([0.0, 0.0], [1.0, 4.0]) if target is None else target
    roots, d = np.broadcast_to(np.eye(target.dim), (len(betas), target.dim, target.dim)), target.dim
    pool = np.zeros((1, len(betas), d))
    return tempering.Tempered(target, MIXTURE, betas, roots, np.ones(len(betas)), pool, **options)


def swapped(works, scan, accepted):
    """The replicas at the rungs after a swap of such a scan, and the probabilities."""
    process = ladder()
    memory, seen = process.memory(np.zeros(2), np.random.default_rng(0)), []
    memory.potentials[:], memory.heights[:], memory.scans[0] = np.array(works) + 1.5, 1.5, scan
    process.swap(memory, outcomes(accepted, seen), False)
    return memory, seen


@plain_only
def test_swaps_keep_the_product_of_the_tempered_laws():
    """Three rungs of a target of two states: the law of all eight is that of independent ones, exactly."""
    reference, work = np.array([0.6, 0.4]), np.array([0.2, -1.7])
    laws = [reference * np.exp(-b * work) / (reference * np.exp(-b * work)).sum() for b in BETAS]
    states = list(itertools.product((0, 1), repeat=3))
    law = np.array([math.prod(p[s] for p, s in zip(laws, state, strict=True)) for state in states])
    for scan, pair in ((0, (0, 1)), (1, (1, 2)), (6, (0, 1))):
        moves = np.zeros((8, 8))
        for i, state in enumerate(states):
            for accepted in (True, False):
                memory, seen = swapped([work[s] for s in state], scan, [accepted])
                expected = list(range(3))
                if accepted:
                    expected[pair[0]], expected[pair[1]] = pair[1], pair[0]
                assert memory.at.tolist() == expected and len(seen) == 1
                after = tuple(state[r] for r in memory.at)
                moves[i, states.index(after)] += seen[0] if accepted else 1.0 - seen[0]
        assert np.allclose(moves.sum(axis=1), 1.0) and np.allclose(law @ moves, law, rtol=1e-14)
        assert moves.diagonal().min() < 0.9


@plain_only
def test_the_acceptance_of_a_swap():
    """min(1, exp((β₁ - β₀)(W₁ - W₀))): 0.3 · -2 and, of the other pair, 0.7 · 5; no mass at the lower rung: never."""
    memory, seen = swapped([3.0, 1.0, 6.0], 0, [False])
    assert seen == [pytest.approx(math.exp(-0.6))] and np.allclose(memory.rejected, [1.0 - math.exp(-0.6), 0.0])
    memory, seen = swapped([math.inf, 1.0, -1.0], 0, [False])
    assert seen == [0.0] and np.allclose(memory.rejected, [1.0, 1.0 - math.exp(-1.4)])


@plain_only
def test_restarts_and_round_trips():
    """The replica that begins at the reference: up in two scans, a restart; down again in two more, a round trip."""
    process = ladder()
    memory = process.memory(np.zeros(2), np.random.default_rng(0))
    memory.potentials[:], seen = [1.0, 5.0, 3.0], []
    for scan in range(6):
        memory.scans[0] = scan
        process.swap(memory, outcomes([True] * 9, seen), False)
        assert memory.at.tolist() == [[1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1], [0, 2, 1], [0, 1, 2]][scan]
    assert memory.restarts[0] == 2 and memory.trips[0] == 2  # 1, then 2 at the target; 2, then 0 at the reference
    memory = process.memory(np.zeros(2), np.random.default_rng(0))
    memory.potentials[:], seen = [1.0, 5.0, 3.0], []
    for scan in range(6):  # of a warm-up nothing is counted
        memory.scans[0] = scan
        process.swap(memory, outcomes([True] * 9, seen), True)
    assert memory.at.tolist() == [0, 1, 2] and not (memory.restarts[0] or memory.trips[0] or memory.rejected.any())


@plain_only
def test_steps_follow_the_acceptance_of_their_rung_in_the_warm_up(monkeypatch):
    monkeypatch.setattr(tempering.Tempered, "explore", lambda self, memory, counts, rung, rng: 0.3 + 0.25 * rung)
    process, rng = ladder(acceptance=0.6), np.random.default_rng(0)
    memory, counts = process.memory(np.zeros(2), rng), np.zeros(12, np.int64)
    state = SimpleNamespace(memory=memory, counts=counts, x=np.zeros(2))
    counts[ADAPTING] = 1
    for _ in range(3):
        process.jump(state, 0, 1.0, rng)
    gains = sum(2.0 / math.sqrt(4.0 + scan) for scan in range(3))
    assert np.allclose(memory.log_steps, gains * np.array([0.0, -0.05, 0.2])) and not memory.accepted.any()
    counts[ADAPTING] = 0
    process.jump(state, 0, 1.0, rng)
    assert np.allclose(memory.log_steps, gains * np.array([0.0, -0.05, 0.2]))
    assert np.allclose(memory.accepted, [0.0, 0.55, 0.8]) and memory.counted[0] == 1


def test_replicas_begin_where_those_of_their_rung_were():
    process, x = ladder(), np.array([7.0, -7.0])
    process.pool = np.arange(24.0).reshape(4, 3, 2)
    positions = process.memory(x, np.random.default_rng(3)).positions
    assert np.array_equal(positions[-1], x)
    for rung in (0, 1):
        assert positions[rung].tolist() in process.pool[:, rung].tolist()


@plain_only
@pytest.mark.parametrize("together", [False, True], ids=["U and its gradient", "both together"])
def test_a_path_of_a_rung(together):
    """The leapfrog scheme on U_β in the metric of the rung, written once more, its probability and what it costs."""
    target, rung, beta = Gaussian([1.0, -1.0], [2.0, 5.0]), 1, 0.3
    both = pdmp.models.from_function(lambda x: (target.potential(x), target.gradient(x)), 2, check_gradient=False)
    process = ladder(both if together else target, longest=8)
    process.roots = process.roots.copy()
    process.roots[rung] = root = np.array([[0.7, 0.0], [0.3, 0.5]])
    memory = process.memory(np.zeros(2), np.random.default_rng(0))
    counts, lengths, accepted = np.zeros(12, np.int64), [], []

    def potential(x):
        height, slope = at(MIXTURE, x)
        force = beta * target.gradient(x) + (1.0 - beta) * slope
        return beta * target.potential(x) + (1.0 - beta) * height, force

    memory.log_steps[rung] = math.log(0.9)
    memory.x[:] = [0.4, 0.6]
    process.evaluate(memory, counts, 1)
    for seed in range(40):
        start = memory.positions[1].copy()
        found = process.explore(memory, counts, rung, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        u, x = rng.standard_normal(2), start.copy()
        step = 0.9 * math.exp(-tempering.SPREAD * rng.random() ** 2)
        n = min(2 ** int(-math.log2(rng.random())), 8)
        lengths.append(n)
        (before, force), kinetic = potential(x), 0.5 * u @ u
        for _ in range(n):
            u = u - 0.5 * step * root.T @ force
            x = x + step * root @ u
            after, force = potential(x)
            u = u - 0.5 * step * root.T @ force
        expected = math.exp(min(0.0, before + kinetic - after - 0.5 * u @ u))
        assert found == pytest.approx(expected, rel=1e-9)
        accepted.append(rng.random() < expected)
        assert np.allclose(memory.positions[1], x if accepted[-1] else start, rtol=1e-9)
        assert memory.potentials[1] == pytest.approx(target.potential(memory.positions[1]))
        assert np.allclose(memory.slopes[1], at(MIXTURE, memory.positions[1].copy())[1])
    assert set(lengths) == {1, 2, 4, 8} and 0 < sum(accepted) < 40
    assert counts[DATA] == (1 if together else 2) * (1 + sum(lengths))


@plain_only
@pytest.mark.parametrize("together", [False, True], ids=["U and its gradient", "both together"])
def test_what_a_draw_of_the_reference_costs(together):
    """U and its gradient: two evaluations, or one."""
    target = Gaussian([0.0, 0.0], [1.0, 4.0])
    both = pdmp.models.from_function(lambda x: (target.potential(x), target.gradient(x)), 2, check_gradient=False)
    process = ladder(both if together else target)
    memory, counts = process.memory(np.zeros(2), np.random.default_rng(0)), np.zeros(12, np.int64)
    process.renew(memory, counts, np.random.default_rng(1))
    assert counts[DATA] == (1 if together else 2)


@plain_only
def test_the_reference_draws_where_the_target_has_no_density():
    """Zero density, or a number that is none, at half of the draws: kept, W infinite, and the latter counted."""
    for outside, undefined in ((math.inf, 0), (math.nan, 1)):
        wall = pdmp.models.from_function(
            lambda x, outside=outside: (outside if x[0] > 0.0 else 0.5 * x @ x, x), 2, initial=[-1.0, 0.0]
        )
        process = ladder(wall)
        memory, rng, seen = process.memory(np.zeros(2), np.random.default_rng(0)), np.random.default_rng(1), []
        for _ in range(20):
            process.renew(memory, np.zeros(12, np.int64), rng)
            beyond = memory.positions[0, 0] > 0.0
            assert memory.potentials[0] == math.inf if beyond else math.isfinite(memory.potentials[0])
            seen.append(beyond)
        assert 0 < sum(seen) < 20 and memory.undefined[0] == undefined * sum(seen)


@plain_only
def test_what_is_kept_of_scans(monkeypatch):
    """Every scan while there is room, then every second and every fourth; chains are compared at the same ones."""
    monkeypatch.setattr(tempering, "ROWS", 4)
    kept = []
    for scans in (3, 5, 9, 15):
        process = ladder()
        memory = process.memory(np.zeros(2), np.random.default_rng(0))
        for scan in range(1, scans + 1):
            memory.potentials[:] = 10.0 * scan + np.arange(3)
            memory.heights[:] = 0.5
            memory.positions[:] = abs(scan - 2.0)
            memory.heights[memory.at[-1]] += 25.0 * (scan == 2)  # where W at the target is the least
            process.note(memory)
        assert memory.trace.lowest.tolist() == [-3.5] and memory.trace.place.tolist() == [0.0, 0.0]
        used = int(memory.trace.used[0])
        assert np.array_equal(memory.trace.works[:used, 0], memory.trace.potentials[:used] - 2.5)
        kept.append({"rungs/potentials": memory.trace.potentials[:used], "rungs/spacing": memory.trace.spacing})
    assert [((k["rungs/potentials"] - 2.0) / 10.0).tolist() for k in kept] == [[1, 2, 3], [2, 4], [4, 8], [4, 8, 12]]
    run = SimpleNamespace(records=[SimpleNamespace(accumulated=k) for k in kept[1:]])
    assert [t.tolist() for t in answers.traces(run, "potentials")] == [[42.0], [42.0, 82.0], [42.0, 82.0, 122.0]]


# ---------------------------------------------------------------------------------------------------------------
# Evidence


def between_normals(n, betas, mean=1.5, sd=0.6, log_z=2.0):
    """W at n quantiles of each rung of the path from N(0, 1) to e^log_z N(mean, sd²)."""
    precisions = 1.0 - betas + betas / sd**2
    centres = betas * mean / sd**2 / precisions
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)[:, None]
    x = centres + z / np.sqrt(precisions)
    work = 0.5 * ((x - mean) / sd) ** 2 + math.log(sd) - log_z - 0.5 * x**2
    # ∫ N(0, 1)^(1 - β) (e^log_z N(mean, sd²))^β, by completing the square.
    logs = betas * (log_z - math.log(sd)) - 0.5 * np.log(precisions)
    return work, logs - 0.5 * betas * mean**2 / sd**2 + 0.5 * precisions * centres**2


def test_bennett_between_normals():
    """Each ratio, over quantiles, as by completing the square; and all together."""
    betas = np.array([0.0, 0.2, 0.55, 1.0])
    works, logs = between_normals(20_000, betas)
    steps = np.diff(betas)
    found = [bennett(steps[i] * works[:, i], steps[i] * works[:, i + 1]) for i in range(3)]
    assert np.allclose(found, np.diff(logs), atol=2e-4)
    whole = log_evidence([works[:9_000], works[9_000:]], betas)
    assert whole.value == pytest.approx(2.0, abs=3e-4) and whole.second == pytest.approx(2.0, abs=3e-3)
    assert abs(whole.gap) < 3e-3


def test_bennett_where_the_target_has_no_density():
    """Half of the reference's draws are outside: log Z = log ½, whatever W is there; and W of 10²⁶ finds a bracket."""
    works = np.zeros((1_000, 3))
    works[::2, 0] = math.inf
    assert log_evidence([works], np.array([0.0, 0.5, 1.0])).value == pytest.approx(math.log(0.5), abs=1e-9)
    assert bennett(np.array([1e26, 0.0, 1e26, 0.0]), np.array([0.0, 0.0, 0.0, 0.0])) == pytest.approx(math.log(0.5))


@pytest.mark.slow
def test_the_error_of_log_z_is_what_repetitions_show():
    """Of draws that are correlated in time, z_t = 0.8 z_{t-1} + …, three times that of independent ones; ± 20 %."""
    betas, n, repeated = np.array([0.0, 0.15, 0.4, 0.7, 1.0]), 300, 120
    noise = np.random.default_rng(4).standard_normal((repeated, 2, n, len(betas)))
    noise[:, :, 1:] *= 0.6
    z = signal.lfilter([1.0], [1.0, -0.8], noise, axis=2)
    precisions = 1.0 - betas + betas / 0.36
    x = betas * 1.5 / 0.36 / precisions + z / np.sqrt(precisions)
    works = 0.5 * ((x - 1.5) / 0.6) ** 2 + math.log(0.6) - 0.5 * x**2
    found = [log_evidence(list(chains), betas) for chains in works]
    value, error, _, gap, gap_error = np.array(found).T
    assert abs(value.mean()) < 5.0 * value.std() / math.sqrt(repeated)
    assert 0.8 < np.sqrt(np.mean(error**2)) / value.std() < 1.2
    assert 0.8 < np.sqrt(np.mean(gap_error**2)) / gap.std() < 1.2
    assert np.mean(np.abs(value) < 2.0 * error) > 0.9
    apart = log_evidence([works[0, 0], works[0, 1] + 1.0], betas)  # chains that differ by 1 in W: by 1 in log Z
    assert apart.error == pytest.approx(0.5, rel=0.25)


def test_chains_of_unequal_lengths_count_by_them_in_any_order():
    """And stepping stones by hand, from below and from above."""
    rng, betas = np.random.default_rng(7), np.array([0.0, 0.3, 1.0])
    works = [shift + rng.normal(size=(n, 3)) for n, shift in ((40, 0.0), (200, 0.8), (90, -0.5))]
    found = log_evidence(works, betas)
    for order in ((2, 0, 1), (1, 2, 0)):
        np.testing.assert_allclose(log_evidence([works[k] for k in order], betas), found, rtol=1e-9)
    w, steps = np.concatenate(works), np.diff(betas)
    forward = sum(math.log(np.mean(np.exp(-s * w[:, i]))) for i, s in enumerate(steps))
    backward = sum(-math.log(np.mean(np.exp(s * w[:, i + 1]))) for i, s in enumerate(steps))
    assert found.gap == pytest.approx(forward - backward) and abs(found.gap) > 0.1
    assert found.second == pytest.approx(0.5 * (forward + backward))


@plain_only
def test_what_a_round_has_learnt_is_the_mean_over_its_chains(monkeypatch):
    learnt, apart = tempering.Tempered.learnt, []

    def kept(self, state):
        apart.append(learnt(self, state))
        return apart[-1]

    monkeypatch.setattr(tempering.Tempered, "learnt", kept)
    starts = np.array([[0.5, 0.5], [-0.5, 1.0], [0.0, 0.2]])
    found = rounds.run_round(ladder(learns=True), starts, np.random.SeedSequence(3), 30)
    assert len(apart) == 3 and len({one["log_steps"][1] for one in apart}) == 3
    np.testing.assert_allclose(found.rejections, np.mean([one["rejections"] for one in apart], axis=0))
    np.testing.assert_allclose(found.steps, np.exp(np.mean([one["log_steps"] for one in apart], axis=0)))
    np.testing.assert_allclose(found.squares, np.mean([one["squares"] for one in apart], axis=0))
    np.testing.assert_array_equal(found.positions, [one["positions"] for one in apart])


# ---------------------------------------------------------------------------------------------------------------
# Modes, and what is said


def components(means, sds):
    d = len(means[0])
    roots = [s * np.eye(d) for s in sds]
    return Mixture(
        [*[1.0] * len(means), 1.0], [*means, np.zeros(d)], [*roots, 9.0 * np.eye(d)], [5.0] * (len(means) + 1)
    )


def test_components_of_one_mode():
    """Two near each other, one beyond a barrier; and twelve on a ring, each next to its neighbours, are one."""
    target = GaussianMixture([[-6.0, 0.0], [6.0, 0.0]], [1.0, 1.0], [0.5, 0.5])
    mixture = components([[-6.5, 0.0], [6.0, 0.0], [-5.5, 0.5]], [1.0, 1.0, 1.0])
    group = groups(Evaluations(target), mixture)
    assert group.tolist() == [0, 1, 0] or group.tolist() == [1, 0, 1]
    x = np.array([[[-7.0, 0.0], [5.0, 1.0]], [[7.0, 1.0], [-4.0, 0.0]]])
    assert labels(mixture, group, x).tolist() == [[group[0], group[1]], [group[1], group[0]]]
    ring = pdmp.models.from_function(
        lambda x: (14.0 * (math.hypot(*x) - 5.0) ** 2, 28.0 * (math.hypot(*x) - 5.0) * x / math.hypot(*x)),
        2,
        [5.0, 0.0],
    )
    angles = np.append(np.arange(0, 12, 2), np.arange(1, 12, 2)) * math.tau / 12
    around = components(list(5.0 * np.column_stack([np.cos(angles), np.sin(angles)])), [0.8] * 12)
    assert groups(Evaluations(ring), around).tolist() == [0] * 12


def test_a_component_between_two_modes_does_not_join_them():
    """Its centre is where U is high: it belongs to one of them."""
    model = GaussianMixture([[-5.0, 0.0], [5.0, 0.0]], 1.0)
    between = components([[-5.0, 0.0], [0.3, 0.0], [5.0, 0.0]], [1.0, 4.0, 1.0])
    found = groups(Evaluations(model), between).tolist()
    assert found[0] != found[2] and found[1] in (found[0], found[2]) and set(found) == {0, 1}


class Told:
    """A run of two chains with so many draws, of two modes at ±6."""

    dim, chains, store = 2, 2, "skeleton"

    def __init__(self, draws, potentials=None, known=()):
        mixture = components([[-6.0, 0.0], [6.0, 0.0]], [1.0, 1.0])
        self.found, self.events = draws, np.full(2, len(draws[0]))
        self.records = [
            SimpleNamespace(
                length=1.0,
                accumulated={
                    "rungs/betas": BETAS,
                    "rungs/spacing": np.ones(1, np.int64),
                    "rungs/potentials": u,
                    "reference/weights": mixture.weights,
                    "reference/means": mixture.means,
                    "reference/roots": mixture.roots,
                    "reference/freedoms": mixture.freedoms,
                    "reference/modes": np.array([0, 1]),
                    "known/centres": np.array([c for c, _ in known]).reshape(-1, 2),
                    "known/roots": np.array([np.eye(2) for _ in known]).reshape(-1, 2, 2),
                    "known/masses": np.array([m for _, m in known]),
                },
            )
            for u in ((0.5 * draws**2).sum(axis=-1) if potentials is None else potentials)
        ]

    def names(self):
        return ["a", "b"]

    def draws(self, n):
        return self.found[:, :n]


def two_chains(shares, n=400, seed=0):
    """Independent draws; of each chain this share is at 6, the others at -6."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((2, n, 2))
    for chain, share in zip(draws, shares, strict=True):
        chain[:, 0] += np.where(rng.permutation(n) < share * n, 6.0, -6.0)
    return draws


def test_bayes_factors_and_the_constants_that_u_leaves_out(monkeypatch):
    runs = [object.__new__(pdmp.Run) for _ in range(2)]
    found = {id(runs[0]): LogEvidence(3.0, 0.3, 3.5, 0.1, 0.2), id(runs[1]): LogEvidence(-1.0, 0.4, -1.5, 0.1, 0.2)}
    monkeypatch.setattr(answers, "integral_of", lambda run: found[id(run)])
    monkeypatch.setattr(answers, "of_tempered", lambda run, what: {"rungs/omitted": np.array([2.0])})
    assert answers.evidence_of(runs[0]) == LogEvidence(5.0, 0.3, 5.5, 0.1, 0.2)
    assert answers.evidence(*runs) == (4.0, pytest.approx(0.5))


def test_a_mode_is_named_by_its_component_of_most_weight():
    run = Told(two_chains([0.3, 0.3]))
    means, roots = [[-6.0, 0.0], [4.0, 1.0], [6.0, 2.0], [0.0, 0.0]], [np.eye(2)] * 4
    mixture = Mixture([1.0, 0.5, 2.0, 9.0], means, roots, [5.0] * 4)
    kept = run.records[0].accumulated
    kept |= {f"reference/{name}": getattr(mixture, name) for name in ("weights", "means", "roots", "freedoms")}
    kept["reference/modes"] = np.array([0, 1, 1])
    assert (answers._place(run, 1), answers._place(run, 0)) == ("a = 6, b = 2", "a = -6, b = 0")


def test_shares_of_modes():
    draws = two_chains([0.7, 0.8], seed=5)
    found = answers.modes_of(Told(draws))
    assert [mode.share for mode in found] == [0.75, 0.25]
    right = draws[draws[..., 0] > 0.0]
    assert np.array_equal(found[0].mean, right.mean(axis=0)) and np.array_equal(found[0].sd, right.std(axis=0))
    assert found[0].error == found[1].error > 0.015
    assert np.isnan(found.narrowest) and len(repr(found).splitlines()) == 3
    found = answers.Modes(found, ["a", "b"], 0.16)
    assert repr(found).splitlines()[3] == "Modes less than 0.16 times as wide as others may be missing."
    assert repr(found).splitlines()[1].split()[:4] == ["mode", "0", "0.750", f"{found[0].error:.3f}"]


def test_effective_draws_of_shares_potentials_and_tails():
    """Independent draws count as about all of them; where a chain stays in a mode for long stretches, as few."""
    draws = two_chains([0.3, 0.3])
    found = answers.further_draws(Told(draws))
    left, right, tail = (
        "the share of the mode at a = -6, b = 0",
        "the share of the mode at a = 6, b = 0",
        "the tails of ",
    )
    assert set(found) >= {left, right, "log p"} and sum(name.startswith(tail) for name in found) == 1
    assert all(value > 500.0 for value in found.values())
    slow = np.array([chain[np.argsort(np.arange(400) % 200 < 60, kind="stable")] for chain in draws])
    slow[..., 0] = np.where(np.arange(400) < 120, 6.0, -6.0) + slow[..., 1]
    found = answers.further_draws(Told(slow, [draws[0, :, 1], draws[1, :, 1]]))
    assert found[left] == found[right] < 30.0 and found["log p"] > 500.0
    rare = answers.further_draws(Told(two_chains([0.005, 0.01])))  # neither a rare mode's nor the rest of its share
    assert not {left, right} & set(rare) and set(answers.further_draws(Told(two_chains([0.02, 0.02])))) >= {left, right}
    draws[..., 0] = 6.0  # a coordinate that never moved has no tails, and is not the one that is named
    assert "the tails of b" in answers.further_draws(Told(draws))


def test_chains_that_disagree_are_named():
    assert answers._disagreement(Told(two_chains([0.3, 0.31])), two_chains([0.3, 0.31])) == []
    draws = two_chains([0.2, 0.7])
    [said] = answers._disagreement(Told(draws, [draws[0, :, 1], draws[1, :, 1]]), draws)
    assert "the chains disagree about the share of the mode at a = " in said and "pdmp.diagnostics.split(run)" in said
    draws = two_chains([0.3, 0.3])
    [said] = answers._disagreement(Told(draws, [draws[0, :, 1], draws[1, :, 1] + 1.0]), draws)
    assert said.startswith("the chains disagree about log p (R-hat 1.")


@pytest.mark.parametrize(("rhat", "is_said"), [(1.069, False), (1.071, True)])
def test_from_which_r_hat_on_chains_disagree(rhat, is_said, monkeypatch):
    """1.05, and 8 more over the number of draws, of whatever is worst; what is not known is not."""
    draws, asked = two_chains([0.3, 0.31]), []

    def found(x, method):
        asked.append(method)
        return np.array([[math.nan], [rhat], [1.0]][len(asked) - 1])

    monkeypatch.setattr(answers, "draws_rhat", found)
    said = answers._disagreement(Told(draws), draws)
    assert asked == ["rank", "identity", "identity"] and len(said) == is_said
    assert not is_said or said[0].startswith("the chains disagree about the share of the mode at a = -6, b = 0 (R-hat")


@pytest.mark.parametrize(
    ("share", "seen", "square", "is_said"),
    [
        (0.0201, 0, 1.0, True),  # a fiftieth is worth a word
        (0.0199, 0, 1.0, False),
        (0.101, 8, 1.0, True),  # and a tenth of it to be seen enough: eight of 800 draws
        (0.099, 8, 1.0, False),
        (0.099, 8, 9.9, False),  # within d + 4 √2d of its centre
        (0.099, 8, 10.1, True),
    ],
)
def test_from_where_on_a_mode_is_missed(share, seen, square, is_said):
    draws = two_chains([0.0, 0.0])
    draws[0, :seen] = [20.0 + math.sqrt(square), 0.0]
    said = answers._missed(Told(draws, known=[([20.0, 0.0], 2.0 + math.log(share))]), draws, 2.0)
    assert len(said) == is_said and all(
        f"visited {seen * (square < 10.0) / 800:.2g} of the time" in one for one in said
    )


def test_a_mode_that_was_found_and_not_visited_is_named():
    """Its share by Laplace's approximation is e^(1 - 2); there are no draws. A hundredth is not worth a word."""
    draws = two_chains([0.3, 0.3])
    known = [([-6.0, 0.0], 1.9), ([6.0, 0.0], 9.0), ([0.0, 20.0], 1.0)]  # a share of 1 at most, of which 0.3 is seen
    [said] = answers._missed(Told(draws, known=known), draws, 2.0)
    assert said.startswith("a mode that a path found at a = 0, b = 20, with a share of about 0.37 by Laplace's")
    assert "was visited 0 of the time" in said
    assert answers._missed(Told(draws, known=[([0.0, 20.0], -2.7)]), draws, 2.0) == []
    rare = two_chains([0.01, 0.01])  # of a share of 0.05 a hundredth was seen: no tenth is missing
    assert answers._missed(Told(rare, known=[([6.0, 0.0], 2.0 + math.log(0.05))]), rare, 2.0) == []


def test_a_mode_that_the_reference_does_not_know_is_named_where_it_is_deepest(monkeypatch):
    """Where a chain is 12.6 nats above it for 250 rows of 6 scans; not if it left between, came later, or at 4.9."""

    def told(rows, nats, left=(), least=0.0):
        run = Told(two_chains([0.3, 0.3]))
        for k, record in enumerate(run.records):
            works = np.full((400, 2), least - 2.0)
            works[:, 0], works[100 : 100 + rows * k, 1] = -50.0, -nats - 2.0
            works[list(left), 1] = least - 2.0
            place = {"rungs/lowest": np.array([-9.0 * k]), "rungs/place": np.array([1.0 + k, 5.0])}
            record.accumulated |= {"rungs/works": works, "rungs/spacing": np.array([6])} | place
        return run

    monkeypatch.setattr(answers, "integral_of", lambda run: LogEvidence(2.0, 0.1, 2.0, 0.0, 0.1))
    report = answers.TemperedReport()
    [said] = report.doubts(told(250, 12.6), 400)
    assert said.startswith("a replica stayed for 1,500 scans near a = 2, b = 5, where the density is up to e^13 times")
    assert "`initial=` a row for each chain" in said and report.in_vain(told(250, 12.6))
    assert report.in_vain(told(300, 12.6))  # to the end
    assert not report.in_vain(told(250, 12.6, least=-8.0))  # a reference that is far below everywhere
    for run in (told(249, 12.6), told(250, 4.9), told(300, 12.6, left=[250]), Told(two_chains([0.3, 0.3]))):
        assert report.doubts(run, 400) == [] and not report.in_vain(run)


def test_few_restarts_and_undefined_potentials_are_said():
    report = answers.TemperedReport()
    assert report.warnings(None, {"restarts": 50.0, "undefined": 0.0}) == []
    few, undefined = report.warnings(None, {"restarts": 49.0, "undefined": 3.0})
    assert few.startswith("only 49 replicas came from the reference") and "`gradients=`" in few
    assert undefined.startswith("U was not a number at 3 draws") and "return inf" in undefined


@pytest.mark.parametrize(
    "found, words",
    [
        (LogEvidence(1.0, 0.31, 1.0, 0.0, 0.1), "log Z has a standard error of 0.31"),
        (LogEvidence(1.0, 0.1, 1.0, -0.95, 0.1), "stepping stones from both sides differ by 0.95"),
        (LogEvidence(1.0, 0.1, 1.0, math.nan, math.inf), "stepping stones from both sides differ by nan"),
        (LogEvidence(1.0, 0.29, 1.0, 0.85, 0.1), None),
        (LogEvidence(1.0, 0.1, 1.0, 1.75, 5.0), "stepping stones from both sides differ by 1.8"),  # 0.5 + 4 · 0.3
        (LogEvidence(1.0, 0.1, 1.0, -1.65, 5.0), None),
    ],
)
def test_an_unsettled_evidence_is_said(monkeypatch, found, words):
    monkeypatch.setattr(answers, "integral_of", lambda run: found)
    said = answers.TemperedReport().doubts(Told(two_chains([0.3, 0.3])), 400)
    assert said == [] if words is None else len(said) == 1 and words in said[0] and "`gradients=`" in said[0]


def test_few_draws_are_said_of_a_run_that_was_asked_for_none(monkeypatch):
    monkeypatch.setattr(answers, "integral_of", lambda run: LogEvidence(1.0, 0.1, 1.0, 0.0, 0.1))
    run = Told(two_chains([0.3, 0.3], n=40))
    [said] = answers.TemperedReport().doubts(run, None)
    assert said.startswith("fewer than 100 effective draws of ") and answers.TemperedReport().doubts(run, 400) == []
    for draws in (99.0, 101.0):
        monkeypatch.setattr(answers, "further_draws", lambda run, n=draws: {"log p": 500.0, "the tails of b": n})
        said = answers.TemperedReport().doubts(run, None)
        assert [one[:53] for one in said] == ["fewer than 100 effective draws of the tails of b, 99:"] * (draws < 100.0)


@pytest.mark.parametrize(
    ("rows", "chains", "each"), [(0, 2, 2_000), (80_000, 2, 1_250), (10**6, 2, 200), (1, 3, 1_334)]
)
def test_a_bridge_has_as_many_points_as_rows_allow(rows, chains, each, monkeypatch):
    """200 million rows, at 400 to 4,000 points of all chains together; half of the median effective draws are known."""
    draws, asked = np.random.default_rng(0).standard_normal((chains, 60, 3)), []

    def bridged(draws, effective, potential, points, rng):
        asked.append((effective, potential, points))
        return LogEvidence(1.0, 0.1, 1.5, 0.0, 0.1)

    monkeypatch.setattr(answers, "bridged", bridged)
    monkeypatch.setattr(answers, "diagnostic_draws", lambda run: draws)
    monkeypatch.setattr(answers, "draws_ess", lambda x, method: np.array([80.0, 30.0, 50.0]))
    model = SimpleNamespace(n_data=rows, potential=abs, omitted=lambda: -3.0)
    found = answers.evidence_of_draws(SimpleNamespace(seed=1, chains=chains), model)
    assert found == LogEvidence(-2.0, 0.1, -1.5, 0.0, 0.1) and asked == [(25.0, abs, each)]
    draws = draws[:, :15]
    with pytest.raises(ValueError, match="needs at least 16 draws of each chain"):
        answers.evidence_of_draws(SimpleNamespace(seed=1, chains=chains), model)


# ---------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    "given, error, words",
    [
        ({"store": "moments"}, ValueError, "keeps no draws, by which the modes of a tempered run are told apart"),
        ({"tempered": 1}, TypeError, "`tempered` must be True or False, got 1"),
    ],
)
def test_what_does_not_go_with_tempering(given, error, words):
    with pytest.raises(error, match=words):
        pdmp.sample(Gaussian([0.0], [1.0]), **({"tempered": True} | given))


def test_processes_samplers_and_large_models_are_refused():
    model = Gaussian([0.0], [1.0])
    with pytest.raises(TypeError, match="HMC is one already: give its model"):
        pdmp.sample(pdmp.HMC(model), events=10, tempered=True)
    for name, value in (("sampler", pdmp.BPS), ("options", {"step": 1.0}), ("metric", "diagonal")):
        with pytest.raises(TypeError, match=f"`{name}` does not go with `tempered`"):
            pdmp.auto(model, tempered=True, **{name: value})
    with pytest.raises(ValueError, match="at most 200 dimensions, .* Gaussian has 201"):
        pdmp.sample(Gaussian(np.zeros(201), np.ones(201)), tempered=True)


def test_a_plain_run_has_no_modes():
    run = pdmp.sample(pdmp.ZigZag(Gaussian([0.0], [1.0])), events=50, seed=1)
    for ask, name in (
        (run.modes, "modes"),
        (lambda: run.log_evidence, "log_evidence"),
        (lambda: pdmp.evidence(run, run), "log_evidence"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` is for a tempered run"):
            ask()
    with pytest.raises(TypeError, match="`b` must be a run"):
        pdmp.evidence(run, 3.0)


def test_how_many_coordinates_are_not_shown():
    """Six are."""
    for dim, line in ((6, ""), (7, "\n… and 1 more coordinates"), (16, "\n… and 10 more coordinates")):
        modes = [SimpleNamespace(mean=np.zeros(dim), sd=np.ones(dim), share=0.5, error=0.1)] * 2
        said = repr(answers.Modes(modes, [f"x[{j}]" for j in range(dim)]))
        assert said.endswith(f"0 ± 1{line}") and said.count("0 ± 1") == 12
