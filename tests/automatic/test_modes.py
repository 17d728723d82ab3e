"""Modes that no chain is in: found by further paths, told from worse basins and from ridges, said in words."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq

import pdmp
from pdmp.automatic import images, modes, preparing, start
from pdmp.automatic.images import Image, images_of, lookalikes, sign_changes, symmetric_signs
from pdmp.automatic.metric import Metric
from pdmp.automatic.modes import (
    RARE,
    along,
    beyond,
    comes_to,
    descend,
    dips,
    first_valley,
    gap,
    hidden_modes,
    is_rare,
    no_wider,
    origins,
)
from pdmp.automatic.start import Evaluations, Gaussian, Path, Starts, find_starts
from pdmp.automatic.windows import run_window
from pdmp.metric import from_root
from tests.automatic.helpers_start import GAUSSIAN, MEAN, PRECISION, rng, two_modes
from tests.models.helpers_propriety import horseshoe, target

pytestmark = pytest.mark.exact

LEFT = np.array([[-4.0, 0.0], [-4.5, 0.5], [-3.0, 1.0], [-5.0, -1.0]])  # where chains start


@pytest.fixture
def by_paths(monkeypatch):
    """Modes that are images of each other are to be found by paths alone."""
    monkeypatch.setattr(images, "symmetric_signs", lambda *_: [])


def seed(k=0):
    return np.random.SeedSequence(k)


def learnt(mean, root, visited, points):
    return Metric(Gaussian(mean, root), 0.1, points, 0.9, False, from_root(root), 0.0, 1, 500, visited)


def in_the_left_mode(weight=0.0, apart=4.0, also=()):
    """Model, starts and metric of chains that are all in the left of two modes, or also in others."""
    model = two_modes(weight, apart)
    starts = find_starts(model, 4, rng(1), initial=LEFT)._replace(centre=np.zeros(2))
    centre = np.array([-apart, 0.0])
    visited = np.concatenate([centre + rng(2).standard_normal((100, 2)), np.reshape(also, (-1, 2))])
    return model, starts, learnt(centre, np.eye(2), visited, LEFT)


@pytest.mark.parametrize("weight, found", [(0.0, True), (-1.0, True), (2.5, True), (3.5, False)])
def test_a_mode_that_no_chain_is_in(weight, found):
    """`weight`: nats by which the mode on the left, where the chains are, has more than the other one."""
    model, starts, metric = in_the_left_mode(weight, apart=5.0)
    assert starts.points[:, 0].max() < 0.0
    hidden, _, spent = hidden_modes(model, starts, metric, seed())
    assert [mode.behind for mode in hidden] == ([pytest.approx(weight, abs=0.2)] if found else [])
    if found:
        np.testing.assert_allclose(hidden[0].gaussian.centre, [5.0, 0.0], atol=0.05)
        assert spent > 400  # chains have been sent from there
    else:  # nor is it one beside a path that ended much higher up
        worse = starts.paths[0]._replace(elbo=starts.paths[0].elbo - 50.0)
        assert hidden_modes(model, starts._replace(paths=(*starts.paths, worse)), metric, seed())[0] == []
    again, _, spent_again = hidden_modes(model, starts, metric, seed())
    assert spent_again == spent and [m.behind for m in again] == [m.behind for m in hidden]


def test_a_mode_that_a_chain_has_visited_is_none():
    assert hidden_modes(*in_the_left_mode(also=[4.5, 1.0]), seed())[0] == []
    assert len(hidden_modes(*in_the_left_mode(also=[-9.0, 1.0]), seed())[0]) == 1


@pytest.mark.parametrize("weight", [0.0, 1.5])
@pytest.mark.parametrize("there, rare", [(0, None), (1, True), (10, True), (40, False)])
def test_a_mode_that_chains_have_hardly_been_in(weight, there, rare):
    """`there` of 100 + `there` places are in a mode of 1 / (1 + exp(`weight`)) of the mass; a quarter of it is few."""
    places = [5.0, 0.0] + rng(4).standard_normal((there, 2))
    hidden, near, _ = hidden_modes(*in_the_left_mode(weight, 5.0, places), seed())
    assert len(hidden) == int(rare is None)  # what no chain has been in is hidden
    if there == 10 and weight:
        assert near == ()  # 0.09 of the places, and 0.18 of the mass
    elif rare:
        first, other = near
        np.testing.assert_allclose([first.gaussian.centre, other.gaussian.centre], [[-5, 0], [5, 0]], atol=0.05)
        assert [first.behind, other.behind] == [pytest.approx(0.0, abs=0.2), pytest.approx(weight, abs=0.2)]
    else:
        assert near == ()


def test_which_places_are_of_a_mode():
    """Those at which its Gaussian, times its mass, is largest: of sds 1 and 3 at 0 and 4, masses e and 1."""
    narrow, wide, third = (
        Path(Gaussian(np.array([c]), np.array([[sd]])), elbo, True, mode=Gaussian(np.array([c]), np.array([[sd]])))
        for c, sd, elbo in ((0.0, 1.0, 1.0), (4.0, 3.0, 0.0), (9.0, 1.0, 0.0))
    )
    edge = brentq(lambda x: 1.0 - 0.5 * x**2 + np.log(3.0) + (x - 4.0) ** 2 / 18.0, 0.0, 4.0)
    share = RARE / (1.0 + np.e)
    for k, n in ((-1, 12), (0, 12), (1, 12)):
        few = math.ceil(share * n) + k  # of n places, those just beyond the edge
        x = np.where(np.arange(n) < few, edge + 0.01, edge - 0.01)[:, None]
        assert is_rare(wide, [narrow], x) == (few / n < share)
    x = np.append(np.full(89, 0.0), np.full(11, 9.0))[:, None]
    for others, rare in (([narrow, third], True), ([narrow], False), ([third], False)):
        assert is_rare(wide, others, x) == rare


def test_a_gaussian_no_wider_than_the_metric():
    """Narrower along one axis of its own and wider along the other, which alone is cut; if that has more ELBO."""
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    metric = Gaussian(np.array([7.0, 7.0]), np.diag([2.0, 5.0]) @ np.array([[0.8, -0.6], [0.6, 0.8]]))
    right = np.diag([2.0, 5.0]) @ turn @ np.diag([0.3, 1.0])  # of the law
    precision = np.linalg.inv(right @ right.T)
    law = target(lambda x: 0.5 * x @ precision @ x, lambda x: precision @ x, 2)
    normal = rng(5).standard_normal((8, 2))
    for width, better in ((50.0, True), (1.0, False)):
        wide = Gaussian(np.zeros(2), np.diag([2.0, 5.0]) @ turn @ np.diag([0.3, width]))
        path = Path(wide, modes.elbo(Evaluations(law), wide, normal), True, mode=wide)
        found = no_wider(Evaluations(law), path, metric, normal)
        assert (found is not path) == better
        np.testing.assert_allclose(found.mode.root @ found.mode.root.T, right @ right.T, atol=1e-10)
    assert found.mode.centre.tolist() == [0.0, 0.0] and found.mode is found.gaussian
    cut = no_wider(Evaluations(law), path._replace(elbo=-99.0), metric, normal)
    assert cut.elbo == modes.elbo(Evaluations(law), cut.mode, normal) and cut.gaussian is cut.mode
    diagonal = Gaussian(np.zeros(2), np.array([9.0, 0.5]))
    narrow = no_wider(
        Evaluations(law), Path(diagonal, -99.0, True, mode=diagonal), Gaussian(np.ones(2), np.array([2.0, 5.0])), normal
    )
    assert narrow.mode.root.tolist() == [2.0, 0.5]


def test_a_mode_that_is_flat_on_top_is_one():
    """Two bars side by side: second derivatives at an end of a path say widths of many times the bar's length."""
    along, across = np.arange(-4.5, 4.6, 1.5), np.repeat([0.0, 8.0], 7)
    model = pdmp.models.GaussianMixture(np.column_stack([across, np.tile(along, 2)]), np.ones(14))
    visited = np.column_stack([rng(3).standard_normal(100), rng(4).uniform(-5.0, 5.0, 100)])
    starts = find_starts(model, 4, rng(1), initial=visited[:4])
    case = learnt(np.zeros(2), np.diag([1.0, 3.2]), visited, visited[:4])
    for at in range(3):
        [hidden] = hidden_modes(model, starts, case, seed(at)).hidden
        assert hidden.gaussian.centre[0] == pytest.approx(8.0, abs=0.1) and abs(hidden.behind) < modes.TIE


@pytest.mark.usefixtures("by_paths")
def test_ends_on_the_same_flat_top_are_one_mode(monkeypatch):
    """x₀ is 3 or -3, and x₁ anything between -8 and 8: paths end all over, and their Gaussians know nothing of that."""
    model = target(
        lambda x: 0.125 * (x[0] ** 2 - 9.0) ** 2 + np.logaddexp(0.0, x[1] - 8.0) + np.logaddexp(0.0, -x[1] - 8.0),
        lambda x: np.array(
            [0.5 * (x[0] ** 2 - 9.0) * x[0], 0.5 * (np.tanh(0.5 * (x[1] - 8)) + np.tanh(0.5 * (x[1] + 8)))]
        ),
        2,
    )
    visited = np.column_stack([3.0 + 0.34 * rng(3).standard_normal(100), rng(4).uniform(-8.0, 8.0, 100)])
    sides = np.array([[3.0, -6.0], [-3.0, 6.0], [-3.0, 0.5], [3.0, 4.0], [-3.0, -3.0]])
    ends = [find_starts(model, 1, rng(k), initial=sides[k : k + 1]) for k in range(5)]
    starts = ends[0]._replace(points=visited[:4], paths=tuple(one.paths[0] for one in ends))
    for at in range(3):
        [hidden] = hidden_modes(
            model, starts, learnt(np.array([3.0, 0.0]), np.diag([0.34, 4.6]), visited, visited[:4]), seed(at)
        ).hidden
        assert hidden.gaussian.centre[0] == pytest.approx(-3.0, abs=0.1)
    monkeypatch.setattr(modes, "comes_to", lambda *a: True)
    case = learnt(np.array([3.0, 0.0]), np.diag([0.34, 4.6]), visited, visited[:4])
    assert len(hidden_modes(model, starts, case, seed(0)).near) == 2  # that of the chains, and one more


def test_the_first_is_where_chains_were_whatever_has_most_mass():
    """A path of theirs ended in the mode on the right too, which has more, and one place of a hundred is there."""
    model, starts, metric = in_the_left_mode(-1.0, 5.0, [[5.0, 0.0]])
    right = find_starts(model, 4, rng(1), initial=-LEFT).paths[0]
    first, other = hidden_modes(model, starts._replace(paths=(*starts.paths, right)), metric, seed()).near
    np.testing.assert_allclose([first.gaussian.centre, other.gaussian.centre], [[-5, 0], [5, 0]], atol=0.05)
    assert first.behind - other.behind == pytest.approx(1.0, abs=0.2)


@pytest.mark.usefixtures("by_paths")
def test_an_end_of_the_first_paths_counts_as_well():
    """The path from the model's own point ended on the right, where no chain starts."""
    model, _, metric = in_the_left_mode()
    starts = find_starts(model, 4, rng(1), initial=LEFT)
    right = find_starts(model, 4, rng(1), initial=-LEFT)
    both = starts._replace(paths=(right.paths[0], *starts.paths))
    modes_found = []
    for found in (starts, both):
        few = pytest.MonkeyPatch()
        few.setattr(modes, "PATHS", 0)
        few.setattr(modes, "DIPS", 0)
        few.setattr(modes, "lookalikes", lambda *_: [])
        modes_found.append(len(hidden_modes(model, found, metric, seed())[0]))
        few.undo()
    assert modes_found == [0, 1]


def test_what_has_no_barrier_is_no_mode(monkeypatch):
    """Two centres, 4.4 standard deviations apart: log p is 1.7 lower in between."""
    case = in_the_left_mode(apart=2.2)
    case = (*case[:2], case[2]._replace(visited=case[2].visited - [2.0, 0.0], points=LEFT - [2.0, 0.0]))
    case = (case[0], case[1]._replace(points=LEFT - [2.0, 0.0]), case[2])
    monkeypatch.setattr(modes, "comes_to", lambda *a: False)
    assert hidden_modes(*case, seed())[0] == []
    [_, other] = hidden_modes(*case, seed()).near  # chains of the run may seldom cross it
    np.testing.assert_allclose(other.gaussian.centre, [2.2, 0.0], atol=0.3)
    monkeypatch.setattr(modes, "LOW", 1.8)
    assert hidden_modes(*case, seed()).near == ()
    monkeypatch.setattr(modes, "BARRIER", 1.0)
    assert len(hidden_modes(*case, seed())[0]) == 1
    barrier = modes.barrier(Evaluations(case[0]), np.array([-2.2, 0.0]), np.array([2.2, 0.0]))
    assert barrier == pytest.approx(2.42 - np.log(2.0), abs=0.05)
    slope = Evaluations(pdmp.models.from_function(lambda x: (float(x[0]), np.ones(1)), 1))
    for begin, end in ((0.0, 5.0), (5.0, 0.0)):
        assert modes.barrier(slope, np.array([begin]), np.array([end])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.usefixtures("by_paths")
def test_a_barrier_parts_a_mode_from_every_other(monkeypatch):
    """Chains have been in two Gaussians: from one of them alone there is a barrier, or from the other, or from both."""
    model, starts, metric = in_the_left_mode(apart=5.0)
    path = starts.paths[0]
    other = path._replace(gaussian=Gaussian(path.gaussian.centre + [0.0, 0.5], path.gaussian.root))
    monkeypatch.setattr(modes, "comes_to", lambda *a: False)
    for near, found in ((path, 0), (other, 0), (None, 1)):
        low = np.full(2, np.nan) if near is None else near.gaussian.centre
        monkeypatch.setattr(modes, "barrier", lambda target, x, y, low=low: 0.0 if np.array_equal(y, low) else 9.0)
        both = starts._replace(paths=(*starts.paths, other))
        assert len(hidden_modes(model, both, metric, seed())[0]) == found


def test_from_where_chains_come_to_the_others_there_is_no_mode(monkeypatch):
    case = in_the_left_mode()
    monkeypatch.setattr(modes, "comes_to", lambda *a: True)
    hidden, near, _ = hidden_modes(*case, seed())
    assert hidden == [] and len(near) == 2 and near[1].gaussian.centre[0] > 3.0  # but one chain shall start there


def test_chains_that_come_to_the_others():
    process = pdmp.HMC(pdmp.models.Gaussian(np.zeros(2), np.ones(2)), step=0.8)
    run = run_window(process, np.zeros((2, 2)), seed(), 60)
    near, unit = rng().standard_normal((100, 2)), Gaussian(np.zeros(2), np.ones(2))
    assert comes_to(run, unit, near) and not comes_to(run, unit, near + [12.0, 0.0])
    still = SimpleNamespace(trajectories=run.trajectories, records=[SimpleNamespace(length=0.0)] * 2)
    assert not comes_to(still, unit, near)


def test_a_chain_that_passes_by_has_not_come():
    unit, near = Gaussian(np.zeros(2), np.ones(2)), rng().standard_normal((100, 2))
    for times in (2, 3):  # of 50 places
        places = np.where(np.arange(50)[:, None] < times, near[0], 20.0)
        path = SimpleNamespace(discretise=lambda n, x=places: x)
        run = SimpleNamespace(trajectories=[path], records=[SimpleNamespace(length=1.0)])
        assert comes_to(run, unit, near) == (times == 3)


def test_any_chain_may_come_to_the_others():
    unit, near = Gaussian(np.zeros(2), np.ones(2)), rng().standard_normal((100, 2))
    away, among = (SimpleNamespace(discretise=lambda n, x=x: np.tile(x, (n, 1))) for x in (near[0] + 20.0, near[0]))
    for paths, came in (([away, among], True), ([among, away], True), ([away, away], False)):
        run = SimpleNamespace(trajectories=paths, records=[SimpleNamespace(length=1.0)] * 2)
        assert comes_to(run, unit, near) == came


@pytest.mark.parametrize(("square", "is_so"), [(8.9, True), (9.1, False)])
def test_three_standard_deviations_from_the_mean_are_near(square, is_so):
    root = np.linalg.cholesky(np.linalg.inv(PRECISION))
    for metric in (Gaussian(MEAN, root), Gaussian(MEAN, np.array([0.1, 2.0, 30.0]))):
        assert modes.is_near(metric, metric.at(math.sqrt(square) * np.array([0.6, 0.0, -0.8]))) == is_so


def test_directions_have_a_standard_deviation():
    root = np.linalg.cholesky(np.linalg.inv(PRECISION))
    rows = along(Gaussian(MEAN, root))
    np.testing.assert_allclose(np.linalg.norm(np.linalg.solve(root, rows.T), axis=0), 1.0)
    for j in range(3):
        assert np.flatnonzero(rows[2 * j]).tolist() == [j]
    np.testing.assert_allclose(rows[1::2].T @ rows[1::2], root @ root.T, rtol=1e-10)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("axis, sd, apart", [(0, 0.3, 5.0), (1, 0.5, 6.0)])
def test_a_narrow_mode_on_a_line_through_the_mean(axis, sd, apart, side):
    there = side * apart * np.eye(5)[axis]

    def both(x):
        logs = -0.5 * np.array([x @ x, (x - there) @ (x - there) / sd**2 + 10.0 * np.log(sd)])
        share = np.exp(logs - np.logaddexp(*logs))
        return -np.logaddexp(*logs), share[0] * x + share[1] * (x - there) / sd**2

    model, metric = pdmp.models.from_function(both, 5), Gaussian(np.zeros(5), np.eye(5))
    points = dips(Evaluations(model), metric, 250.0)
    assert 1 <= len(points) <= modes.DIPS and np.linalg.norm(points[0] - there) < 1.0
    assert dips(Evaluations(model), metric, 7.0) == []  # nothing to spend
    visited = rng(2).standard_normal((100, 5))
    starts = find_starts(model, 4, rng(1), initial=visited[:4])
    learnt_there = learnt(np.zeros(5), np.eye(5), visited, visited[:4])
    assert len(hidden_modes(model, starts, learnt_there, seed())[0]) == 1


def test_no_dip_on_lines_that_only_rise():
    target = Evaluations(GAUSSIAN)
    target.count = 0
    assert dips(target, Gaussian(MEAN, np.linalg.cholesky(np.linalg.inv(PRECISION))), 250.0) == []
    assert target.count == 2 * 3 * 2 * len(modes.OUT)


def test_paths_begin_two_by_two_near_and_far_out():
    """Far out is 6, 20 standard deviations, or twice the distance to the mean: of each coordinate the largest."""
    centre, metric = np.array([1.0, 2.0, 3.0]), Gaussian(np.array([1.5, -38.0, 3.0]), np.array([0.1, 1.0, 5.0]))
    target = Evaluations(GAUSSIAN)
    begin = origins(target, centre, metric, rng())
    offsets = np.array([next(begin) for _ in range(800)]).reshape(200, 2, 2, 3) - centre
    np.testing.assert_allclose(offsets[:, :, 1], -offsets[:, :, 0], atol=1e-12)
    for k, widths in enumerate(([2.0, 2.0, 2.0], [6.0, 80.0, 100.0])):
        reach = np.abs(offsets[:, k]).max(axis=(0, 1))
        assert np.all(reach <= widths) and np.all(reach > 0.97 * np.array(widths))  # (0.97)²⁰⁰ is 0.002


def test_behind_a_wall_no_path_begins():
    model = pdmp.models.from_function(
        lambda x: (x[0], np.ones(1)) if x[0] > 0.0 else (np.inf, np.full(1, np.nan)), 1, initial=[0.5]
    )
    begin = origins(Evaluations(model), np.array([0.5]), Gaussian(np.ones(1), np.ones(1)), rng())
    assert min(next(begin)[0] for _ in range(40)) > 0.0


@pytest.mark.parametrize(
    ("place", "last"),
    [
        (3.0, 4.0),  # of places 1, 4, 16, 20 on the way
        (12.0, 16.0),
        (20.0, 20.0),
        (30.0, 20.0),
        (0.4, None),
    ],
)
def test_a_first_step_ends_in_the_first_valley(place, last):
    """U falls to `place`, rises to the next one, and is lowest of all where the step ends."""
    seen = []

    def potential(x):
        seen.append(x[0])
        return abs(x[0] - place) if x[0] < 19.0 or place >= 19.0 else -5.0

    target = SimpleNamespace(potential=potential)
    found = first_valley(target, np.zeros(1), place, np.array([-20.0]), 20.0)
    if last is None:
        assert found is None and seen == [1.0]
    else:
        lower = last if place != 12.0 else 20.0  # from 16 on it is lower still
        assert found[0][0] == pytest.approx(lower) and found[1] == potential(found[0])


@pytest.mark.parametrize("at", range(1, 5))
def test_a_descent_does_not_leap_over_a_narrow_mode(at):
    """Modes at ±10 of standard deviations 0.3 and 1; chains are in the wide one, and no chain in the other."""
    model = pdmp.models.GaussianMixture([[-10.0], [10.0]], [0.09, 1.0])
    metric = Gaussian(np.array([10.0]), np.eye(1))
    for x in (-6.0, -9.0, -12.0, -15.0):
        end = descend(Evaluations(model), np.array([x]), metric, ())
        assert end is not None and end[0] == pytest.approx(-10.0, abs=0.01)
    visited = 10.0 + rng(at).standard_normal((100, 1))
    starts = find_starts(model, 4, rng(at), initial=visited[:4])._replace(centre=np.zeros(1))
    hidden, _, _ = hidden_modes(model, starts, learnt(np.array([10.0]), np.eye(1), visited, visited[:4]), seed(at))
    assert [mode.gaussian.centre[0] for mode in hidden] == [pytest.approx(-10.0, abs=0.1)]


def concentric(d, width, share, centre=0.0):
    """Two normals of one centre, the narrow one of this width and of a share of the mass; chains are in that."""
    widths, logs = np.array([width, 1.0]), np.log([share, 1.0 - share])

    def parts(x):
        return logs - d * np.log(widths) - 0.5 * ((x - centre) ** 2).sum() / widths**2

    def slope(x):
        each = parts(x)
        return np.exp(each - np.logaddexp(*each)) @ (widths**-2.0) * (x - centre)

    model = target(lambda x: -np.logaddexp(*parts(x)), slope, d)
    visited = centre + width * rng(3).standard_normal((200, d))
    return model, learnt(np.full(d, centre), width * np.eye(d), visited, visited[:4])


@pytest.mark.parametrize("d, width, share", [(5, 0.05, 0.5), (5, 0.05, 0.9), (20, 0.2, 0.5), (10, 0.1, 0.02)])
def test_a_wide_mode_around_the_chains(d, width, share):
    """Mass and width of it, and points of it, each farther out than all that was seen."""
    model, metric = concentric(d, width, share, 3.0)
    found = [beyond(Evaluations(model), metric, metric.visited, rng(k)) for k in range(12)]
    behind = [mode.behind for mode, _ in found]
    truth = np.log(share / (1.0 - share))
    assert np.mean(behind) == pytest.approx(truth, abs=0.4) and np.ptp(behind) < 3.0  # two of 256 draws have the mass
    assert np.mean([mode.times for mode, _ in found]) == pytest.approx(1.0 / width, rel=0.15)
    points = np.concatenate([points for _, points in found])
    assert points.shape == (48, d) and ((points - 3.0) ** 2).sum(axis=1).mean() == pytest.approx(d, rel=0.4)
    assert ((points - 3.0) ** 2).sum(axis=1).min() > ((metric.visited - 3.0) ** 2).sum(axis=1).max()
    np.testing.assert_allclose(found[0][0].gaussian.root, found[0][0].times * width * np.eye(d))


@pytest.mark.parametrize("d, width, share", [(5, 0.05, 0.995), (5, 1.0, 0.5), (20, 1.0, 0.5)])
def test_no_wide_mode_around_the_chains(d, width, share):
    """One of too little mass, and a normal law: a point of each scale tells."""
    model, metric = concentric(d, width, share)
    counted = Evaluations(model)
    for k in range(5):
        assert beyond(counted, metric, metric.visited, rng(k))[0] is None
    assert counted.count == 2 + 5 * (modes.DRAWS + modes.SCALES - 1) or share > 0.99


@pytest.mark.parametrize("nu", [1.0, 1.5, 3.0])
def test_heavy_tails_are_no_mode_around_the_chains(nu):
    """There is no gap before them, whatever mass they have."""
    model = target(lambda x: 0.5 * (nu + 5) * np.log1p(x @ x / nu), lambda x: (nu + 5) * x / (nu + x @ x), 5)
    near = 0.3 * rng(3).standard_normal((200, 5))
    metric = learnt(np.zeros(5), 0.3 * np.eye(5), near, near[:4])  # chains that were in the centre only
    assert [beyond(Evaluations(model), metric, near, rng(k))[0] for k in range(5)] == [None] * 5
    assert gap(Evaluations(model), metric.gaussian, np.full(5, 20.0)) < 0.1


def test_the_gap_is_that_of_the_density_of_the_radius():
    """d log r - U, between its maximum in the narrow mode and that in the wide one or the point on the ray."""
    model, metric = concentric(5, 0.05, 0.5)
    r = np.geomspace(0.02, 1.0, 2_000)
    for end in (0.6, np.sqrt(5.0), 6.0):
        z = np.array([end / 0.05, 0.0, 0.0, 0.0, 0.0])
        logs = 5.0 * np.log(r) - [model.potential(one * np.eye(5)[0]) for one in r]
        outer = max(5.0 * np.log(t) - model.potential(t * np.eye(5)[0]) for t in np.linspace(0.5, end, 200))
        low = logs[r < 0.5].min() if end < 0.6 else logs[(r > 0.12) & (r < 0.5)].min()
        wanted = min(logs[r < 0.2].max(), outer) - low
        assert gap(Evaluations(model), metric.gaussian, z) == pytest.approx(wanted, abs=0.5)


def test_a_wide_mode_around_the_chains_is_said(monkeypatch):
    """Unless chains that start there come back; and nothing where another mode has been found."""
    model, metric = concentric(5, 0.05, 0.5)
    starts = find_starts(model, 4, rng(1), initial=metric.points)
    ((mode,), _, spent) = hidden_modes(model, starts, metric, seed())
    said = modes.warning([mode], metric.gaussian, list("abcde"))
    assert f"around the one where they are lies another, some {mode.times:.2g} times as wide, with about" in said
    assert f"{np.exp(-mode.behind):.2g} times their mass. Averages leave it out" in said and "further paths" not in said
    for behind, share in ((-1.2, "3.3"), (1.2, "0.3"), (30.0, "2.1e-09")):
        text = modes.warning([mode._replace(behind=behind)], metric.gaussian, list("abcde"))
        assert f"with about {share} times their mass" in text
    assert 10.0 < mode.times < 40.0 and abs(mode.behind) < 1.5 and spent > 500
    monkeypatch.setattr(modes, "comes_to", lambda *_: True)
    none, (here, near), _ = hidden_modes(model, starts, metric, seed())
    assert none == [] and near.times == mode.times and np.abs(here.gaussian.root).max() < 0.1
    monkeypatch.undo()
    asked = []
    monkeypatch.setattr(modes, "beyond", lambda *a: asked.append(a) or (None, None))
    assert len(hidden_modes(*in_the_left_mode(apart=5.0), seed())[0]) == 1 and asked == []
    assert hidden_modes(*in_the_left_mode(3.5, apart=5.0), seed())[0] == [] and len(asked) == 1


def test_a_chain_starts_in_what_lies_around_chains_that_seldom_leave():
    """A normal 0.05 times as wide in the middle of another in two dimensions, half of the mass each.

    Of 12 seeds three had 2 % of their draws in the wide one, and said nothing.
    """
    model = pdmp.models.GaussianMixture(np.zeros((2, 2)), [1.0, 0.05**2])
    process = pdmp.auto(model, seed=3)
    there = model.responsibilities(process.prepared.starts)[:, 0] > 0.5
    assert there.tolist() == [False, False, False, True]
    here, wider = process.prepared.modes
    assert 5.0 < wider.times < 40.0 and np.abs(here.gaussian.centre).max() < 0.1
    assert process.prepared.choice.endswith("; there is another mode, in which chains had hardly been")


@pytest.mark.parametrize("number, found", [(3, False), (4, True)])
def test_half_of_the_mass_beyond_lies_behind_a_gap(number, found, monkeypatch):
    """Of eight points of it, drawn by their weights."""
    model, metric = concentric(5, 0.05, 0.5)
    gaps = iter([modes.GAP + 1.0] * number + [modes.GAP - 1.0] * (8 - number))
    monkeypatch.setattr(modes, "gap", lambda *_: next(gaps))
    mode, points = beyond(Evaluations(model), metric, metric.visited, rng(2))
    assert (mode is not None) == found and len(points) == (4 if found else 0) and next(gaps, None) is None


def test_a_descent_in_the_metric_of_a_normal_law_takes_a_step():
    target = Evaluations(GAUSSIAN)
    metric = Gaussian(MEAN + 50.0, np.linalg.cholesky(np.linalg.inv(PRECISION)))  # its centre is elsewhere
    target.count = 0
    end = descend(target, np.array([10.0, 10.0, -10.0]), metric, ())
    np.testing.assert_allclose(end, MEAN, rtol=1e-6)
    away = np.linalg.norm(np.linalg.solve(metric.root, [10.0, 10.0, -10.0] - MEAN))
    assert target.count == 4 + np.ceil(np.log(away) / np.log(4.0))  # U and its gradient, twice, and U on the way
    right = replace(metric, centre=MEAN)
    assert descend(target, np.array([10.0, 10.0, -10.0]), right, ()) is None  # to what is known


def test_a_descent_that_comes_to_no_end_finds_nothing(monkeypatch):
    begin, metric = np.array([10.0, 10.0, -10.0]), Gaussian(MEAN + 50.0, np.eye(3))
    assert descend(Evaluations(GAUSSIAN), begin, metric, ()) is not None
    monkeypatch.setattr(modes, "LONGEST", 3)
    assert descend(Evaluations(GAUSSIAN), begin, metric, ()) is None


def test_a_descent_ends_where_the_gradient_is_too_steep_for_floats():
    """The decrease that its first step promises overflows, without a word, and no step is tried."""
    model = target(lambda x: np.exp(x**4).sum(), lambda x: 4.0 * x**3 * np.exp(x**4), 2)
    counted = Evaluations(model)
    counted.count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert descend(counted, np.array([4.5, 4.5]), Gaussian(np.zeros(2), np.eye(2)), ()) is None
    assert counted.count == 2


def test_what_it_costs(monkeypatch):
    starts = find_starts(GAUSSIAN, 4, rng(1))
    root = np.linalg.cholesky(np.linalg.inv(PRECISION))
    metric = learnt(MEAN, root, MEAN + rng().standard_normal((100, 3)) @ root.T, starts.points)
    hidden, near, spent = hidden_modes(GAUSSIAN, starts, metric, seed())
    farther = modes.DRAWS + modes.SCALES - 1  # places of the chains, and a point of each scale
    assert hidden == [] and near == () and 5 * modes.PATHS < spent - farther < 11 * modes.PATHS
    # As soon as so much is spent no other path begins: half of the warm-up, or a number.
    limits = {}
    for number, share in ((0, 0.0), (40, 0.0), (0, 40.0 / (500 + starts.evaluations))):
        monkeypatch.setattr(modes, "EVALUATIONS", number)
        monkeypatch.setattr(modes, "SHARE", share)
        limits[number, share] = hidden_modes(GAUSSIAN, starts, metric, seed()).evaluations
    none, *some = limits.values()
    first = (
        2 + 8 + 4
    )  # evaluations, those of an ELBO, and of all signs changed, where U is not what it was at three places
    assert none == first + farther and 40 < some[0] - farther == some[1] - farther < 55


def test_auto_warns_before_the_run():
    model, left = two_modes(0.0, apart=3.5), LEFT + [1.0, 0.0]
    with pytest.warns(
        UserWarning, match=r"a mode that no chain is in: the image of the one.* at x\[0\] = 3.5, .* 1 times"
    ):
        process = pdmp.auto(model, seed=1, initial=left)
    assert process.prepared.starts[:, 0].max() < 0.0
    pdmp.auto(model, seed=1, initial=left * [[1.0], [1.0], [-1.0], [-1.0]])  # a row for each mode


def test_one_chain_starts_in_a_mode_beyond_a_low_barrier():
    """Two normals 6 standard deviations apart: without it all four stayed in the first, without a word."""
    model = pdmp.models.GaussianMixture([[0.0, 0.0, 0.0], [4.0, 4.0, 2.0]], [1.0, 1.0], [0.7, 0.3])
    process = pdmp.auto(model, seed=1)
    there = model.responsibilities(process.prepared.starts)[:, 1] > 0.5
    assert there.tolist() == [False, False, False, True]
    assert process.prepared.choice.endswith("; there is another mode, in which chains had hardly been")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run = pdmp.sample(process, seed=1, events=300)
    said = [str(w.message) for w in heard if "chains seldom go from mode to mode" in str(w.message)]
    assert len(said) == 1 and f"{said[0]}." in run.summary().warnings
    for given in ({"chains": 1}, {"initial": np.zeros(3)}):
        alone = pdmp.auto(model, seed=1, **given).prepared
        assert np.all(model.responsibilities(alone.starts)[:, 1] < 0.5) and len(alone.modes) == 2


def test_a_chain_starts_in_a_wide_mode_whose_barrier_is_low():
    """Three times as wide, in ten dimensions: U at its mode is 11 above that at the other, and at the barrier 0.6 more.

    What is looked for around the chains is that mode too, so that nothing is said of a second one.
    """
    u = np.full(10, 9.0 / np.sqrt(10.0))
    model = pdmp.models.GaussianMixture([0.0 * u, u], [1.0, 9.0], [0.6, 0.4])
    process = pdmp.auto(model, seed=1)
    there = model.responsibilities(process.prepared.starts)[:, 1] > 0.5
    assert there.tolist() == [False, False, False, True] and len(process.prepared.modes) == 2
    assert process.prepared.choice.endswith("; there is another mode, in which chains had hardly been")


def test_of_several_modes_the_first_has_a_chain(monkeypatch):
    """That of most mass; its draws cost evaluations; and nothing of this where no other mode is known."""
    kept, gaussians = preparing.hidden_modes, [Gaussian(MEAN + 9.0 * k, 0.01 * np.eye(3)) for k in range(3)]
    near = tuple(modes.Hidden(gaussian, float(k)) for k, gaussian in enumerate(gaussians))
    before = pdmp.auto(GAUSSIAN, seed=1).prepared
    monkeypatch.setattr(preparing, "hidden_modes", lambda *a: kept(*a)._replace(near=near))
    found = pdmp.auto(GAUSSIAN, seed=1).prepared
    np.testing.assert_array_equal(found.starts[:-1], before.starts[:-1])
    np.testing.assert_allclose(found.starts[-1], MEAN + 9.0, atol=0.1)
    assert found.modes == near and before.modes == ()
    assert found.gradients == before.gradients + 2 + start.CANDIDATES  # first evaluations, and U of the draws
    assert found.choice.endswith("; there are 2 other modes, in which chains had hardly been")
    for options in ({"chains": 1}, {"initial": MEAN}):  # one chain, or one that was told where to begin, is not moved
        away = np.abs(pdmp.auto(GAUSSIAN, seed=1, **options).prepared.starts - MEAN - 9.0).max(axis=1)
        assert np.all(away > 1.0)


def test_what_it_costs_is_counted(monkeypatch):
    before = pdmp.auto(GAUSSIAN, seed=1).prepared.gradients
    kept = preparing.hidden_modes
    monkeypatch.setattr(preparing, "hidden_modes", lambda *a: ([], (), kept(*a)[2] + 1_000))
    assert pdmp.auto(GAUSSIAN, seed=1).prepared.gradients == before + 1_000


def test_what_the_preparation_warned_of_is_in_the_summary(tmp_path):
    """Said once: the text has its beginning; a loaded run has heard nothing, and is told all. The note agrees."""
    model, left = two_modes(0.0, apart=5.0), LEFT - [1.0, 0.0]
    with pytest.warns(UserWarning, match="a mode that no chain is in") as heard:
        run = pdmp.sample(model, seed=1, initial=left, events=60)
    [issued] = [str(w.message) for w in heard if "a mode that no chain is in" in str(w.message)]
    found = run.summary()
    assert found.warnings[0] == issued and issued in found.said
    assert repr(found).count("a mode that no chain is in (as was warned).") == 1 and "the image of" not in repr(found)
    assert "near normal where the chains are (" in run.info["choice"] and run.info["choice"].endswith(
        "; there is a mode that no chain is in"
    )
    longer = pdmp.sample(run.process, seed=2, events=60)
    assert longer.summary().warnings[0] == issued
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz").summary()
    assert loaded.warnings[0] == issued and "the image of" in repr(loaded)
    quiet = pdmp.sample(GAUSSIAN, seed=1, events=60)
    assert quiet.process.prepared.cautions == () and "no chain is in" not in quiet.info["choice"]


def test_a_neck_is_in_the_summary(monkeypatch):
    monkeypatch.setattr(Starts, "warning", lambda *a: "a neck: narrow.")
    with pytest.warns(UserWarning, match="a neck") as heard:
        process = pdmp.auto(GAUSSIAN, seed=1)
    assert process.prepared.cautions == ("a neck: narrow.",) and len(heard) == 1
    for name, said in (("x[1]", "dependent: with x[1] others get narrow, down a neck ("), (None, "dependent.")):
        process.neck = name
        _, few, *_ = pdmp.sample(process, steps=60, seed=1, progress=False).summary().warnings
        assert few.startswith("fewer than 400 effective draws") and said in few


@pytest.mark.parametrize(
    ("rise", "place"),
    [
        ((0.0, 10.0, 9.7, 9.4), 3),  # it falls twice by less than `DIP`, and by more in all
        ((0.0, 10.0, 9.7, 9.6), None),
        ((3.0, 2.4, 5.0, 9.0), 1),
        ((3.0, 4.0, 5.0, 9.0), None),
    ],
)
def test_how_far_a_potential_must_fall_on_the_way_out(rise, place):
    known = dict(zip(modes.OUT, rise, strict=True))
    target = SimpleNamespace(potential=lambda x: known[round(float(x[0]), 6)] if x[0] > 0.0 else 100.0 + x[0] ** 2)
    found = dips(target, Gaussian(np.zeros(1), np.eye(1)), 8.0)
    assert [float(x[0]) for x in found] == ([] if place is None else [modes.OUT[place]])


@pytest.mark.parametrize("at", [11, *(pytest.param(at, marks=pytest.mark.slow) for at in (6, 18))])
def test_the_end_of_a_neck_is_no_mode(at):
    """A path down the flat neck of a horseshoe ends far below where the chains are, with the ELBO of its beginning."""
    with np.errstate(all="ignore"):
        process = pdmp.auto(horseshoe(), seed=at)
    assert process.prepared.cautions == ()


@pytest.mark.parametrize("at", [1, 4])
def test_a_skewed_mode_is_one(at):
    """Logs of Gamma(1/2), half of the mass: the curvature at the mode is far from its width, and its ELBO low."""

    def both(x):
        y = x - 15.0
        e = np.exp(np.minimum(y, 600.0))
        a, b = -0.5 * x @ x - np.log(2.0 * np.pi), (0.5 * y - e).sum() - np.log(np.pi)
        total = np.logaddexp(a, b)
        return -total, np.exp(a - total) * x - np.exp(b - total) * (0.5 - e)

    model = pdmp.models.from_function(both, 2, check_gradient=False)
    with pytest.warns(UserWarning, match="a mode that no chain is in"):
        assert len(pdmp.auto(model, seed=at).prepared.cautions) == 1


def _with_image(weight, *, exact=True, apart=5.0, places=()):
    """That of `in_the_left_mode`, whose model is known to be symmetric; or only nearly, by 3 along the first axis."""
    model, starts, metric = in_the_left_mode(weight, apart, places)
    model.images = lambda x: [np.array([-x[0] + (0.0 if exact else 3.0), x[1]])]
    return model, starts, metric


@pytest.mark.parametrize("weight, found", [(0.0, True), (2.5, True), (3.5, False)])
def test_an_image_is_a_mode_by_its_mass(weight, found, monkeypatch):
    """Without a path that leads there."""
    monkeypatch.setattr(modes, "PATHS", 0)
    monkeypatch.setattr(modes, "DIPS", 0)
    model, starts, metric = _with_image(weight)
    hidden, near, spent = hidden_modes(model, starts, metric, seed())
    assert [mode.behind for mode in hidden] == ([pytest.approx(weight, abs=1e-6)] if found else [])
    assert near == ()
    if found:
        np.testing.assert_allclose(hidden[0].gaussian.centre, [5.0, 0.0], atol=1e-9)
        np.testing.assert_allclose(hidden[0].gaussian.root, [[-1.0, 0.0], [0.0, 1.0]], atol=1e-6)
        assert spent >= 32  # U at draws and at their images


def test_an_image_that_chains_have_visited_is_no_hidden_mode(monkeypatch):
    monkeypatch.setattr(modes, "PATHS", 0)
    model, starts, metric = _with_image(0.0, places=[[5.0, 0.5]])
    assert hidden_modes(model, starts, metric, seed()).hidden == []


def test_a_path_begins_at_an_image_by_half_a_symmetry(monkeypatch):
    """The likelihood is another one there, but a mode is near."""
    monkeypatch.setattr(modes, "PATHS", 0)
    monkeypatch.setattr(modes, "dips", lambda *_: [])
    model, starts, metric = _with_image(1.0, exact=False)
    [mode] = hidden_modes(model, starts, metric, seed()).hidden
    np.testing.assert_allclose(mode.gaussian.centre, [5.0, 0.0], atol=0.05)
    assert mode.behind == pytest.approx(1.0, abs=0.2)


def test_an_image_beyond_a_low_barrier_is_near(monkeypatch):
    """One chain starts there."""
    monkeypatch.setattr(modes, "PATHS", 0)
    model, starts, metric = _with_image(0.0, apart=2.8)
    hidden, near, _ = hidden_modes(model, starts, metric, seed())
    assert hidden == [] and [float(mode.gaussian.centre[0]) for mode in near[1:]] == [pytest.approx(2.8, abs=1e-9)]


def test_likely_images_are_tried_where_u_is_hardly_higher():
    """Other signs of one, of two and of all, and an exchange; the lowest first, and four of them."""
    mean, asked = np.array([3.0, -2.0, 5.0]), []
    lower = {
        (-3.0, -2.0, 5.0): 3.9,
        (3.0, 2.0, 5.0): 4.1,
        (-3.0, 2.0, 5.0): 2.0,
        (-3.0, 2.0, -5.0): 3.5,
        (5.0, -2.0, 3.0): 1.5,
        (3.0, 5.0, -2.0): 3.8,
    }

    def potential(x):
        asked.append(tuple(x.tolist()))
        return 1.0 if asked[-1] == (3.0, -2.0, 5.0) else lower.get(asked[-1], 50.0)

    target = SimpleNamespace(potential=potential)
    found = lookalikes(target, Gaussian(mean, 0.1 * np.eye(3)), 3.0, 100)
    wanted = [(5.0, -2.0, 3.0), (-3.0, 2.0, 5.0), (-3.0, 2.0, -5.0), (3.0, 5.0, -2.0)]
    assert [tuple(x.tolist()) for x in found] == wanted
    assert len(asked) == len(set(asked)) == 1 + 3 + 1 + 6
    asked.clear()
    few = lookalikes(target, Gaussian(mean, 0.1 * np.eye(3)), 3.0, 4.5)
    assert len(asked) == 4 and [tuple(x.tolist()) for x in few] == [(-3.0, -2.0, 5.0)]
    # Where the Gaussian is wide itself nothing is away from it; nor in many dimensions are there pairs.
    asked.clear()
    assert lookalikes(target, Gaussian(mean, 20.0 * np.eye(3)), 3.0, 100) == [] and asked == []
    lookalikes(target, Gaussian(np.arange(1.0, 12.0), 0.1 * np.eye(11)), 3.0, 1e9)
    assert len(asked) == 1 + 11 + 1


def test_a_path_begins_at_the_other_sign(monkeypatch):
    """That of one coordinate, whose law is not about 0 in the other one; no other path is there to find the mode."""
    monkeypatch.setattr(modes, "PATHS", 0)
    monkeypatch.setattr(modes, "dips", lambda *_: [])
    model, starts, metric = in_the_left_mode(0.3, 5.0)
    [mode] = hidden_modes(model, starts, metric, seed()).hidden
    np.testing.assert_allclose(mode.gaussian.centre, [5.0, 0.0], atol=0.05)
    assert mode.behind == pytest.approx(0.3, abs=0.2)


@pytest.mark.parametrize("there, is_said", [(0, "hidden"), (3, "near"), (25, ""), (50, ""), (75, "")])
def test_an_image_where_chains_are_is_no_other_mode(there, is_said, monkeypatch):
    """`there` of 100 places are in it; the mean that was learnt is between the two."""
    monkeypatch.setattr(modes, "PATHS", 0)
    monkeypatch.setattr(modes, "lookalikes", lambda *_: [])
    monkeypatch.setattr(modes, "dips", lambda *_: [])
    monkeypatch.setattr(modes, "beyond", lambda target, learnt, seen, rng: (None, seen))
    model, starts, _ = _with_image(0.0)
    centres = np.repeat([[-5.0, 0.0], [5.0, 0.0]], [100 - there, there], axis=0)
    visited = rng(5).permutation(centres + rng(2).standard_normal((100, 2)))
    mean, root = visited.mean(axis=0), np.diag(visited.std(axis=0))
    case = learnt(mean, root, visited, visited[:4])
    starts = starts._replace(paths=starts.paths[:1])
    hidden, near, _ = hidden_modes(model, starts, case, seed())
    assert len(hidden) == (is_said == "hidden") and bool(near) == (is_said == "near")
    image, share = images_of(model, Evaluations(model), case)[0], 0.01 * there
    assert image.share == pytest.approx(2.0 * share * (1.0 - share), abs=0.1)
    assert image.is_rare == (there <= 3)


def test_which_signs_are_changed():
    """Those of all coordinates, of some variables but not of others, and of a column, or a row, of all matrices."""
    found = [signs.tolist() for signs in sign_changes({"a": (2,), "b": (), "c": (1,)})]
    blocks = {tuple([x, x, y, z]) for x in (1, -1) for y in (1, -1) for z in (1, -1)} - {(1, 1, 1, 1)}
    assert found[0] == [-1.0] * 4 and {*map(tuple, found)} == blocks and len(found) == len(blocks)
    pairs = np.array(list(sign_changes({name: (1,) for name in "abcdefg"})))
    assert np.sum(pairs < 0.0, axis=1).tolist() == [7] + 7 * [1] + 21 * [2] and len(np.unique(pairs, axis=0)) == 29
    assert len(list(sign_changes({f"a{k}": () for k in range(13)}))) == 1 + 13
    matrices = np.array(list(sign_changes({"s": (), "A": (2, 2), "B": (3, 2)})))[7:]
    A, B = matrices[:, 1:5].reshape(-1, 2, 2), matrices[:, 5:].reshape(-1, 3, 2)
    for j in (0, 1):
        assert np.all(A[j][:, j] == -1.0) and np.all(B[j][:, j] == -1.0) and np.sum(matrices[j] < 0.0) == 5
    for k in (0, 1, 2):
        assert np.all(B[2 + k][k] == -1.0) and np.sum(matrices[2 + k] < 0.0) == (4 if k < 2 else 2)
    assert np.all(matrices[:, 0] == 1.0) and len(matrices) == 5


def _factors(prior=1.0):
    """One factor: loadings and factors are known together but for their sign, and a mean is known."""
    y = np.random.default_rng(1).normal(size=(6, 3)) + np.outer(np.linspace(-2.0, 2.0, 6), [1.0, 2.0, -1.5])

    def potential(x):
        rest = y - x[9] - np.outer(x[3:9], x[:3])
        return float(0.5 * (rest**2).sum() + 0.5 * x @ x + (1.0 - prior) * x[0])

    return target(potential, np.zeros_like, 10, variables={"loadings": (3,), "factors": (6,), "mean": ()})


def test_signs_that_change_nothing_are_a_symmetry():
    places = rng(3).standard_normal((3, 10))
    model, skewed = _factors(), _factors(0.9)
    [signs] = symmetric_signs(model, Evaluations(model), places)
    assert signs.tolist() == 9 * [-1.0] + [1.0]
    assert symmetric_signs(skewed, Evaluations(skewed), places) == []
    high = target(lambda x: 1e10 + 0.5 * x @ x + 4.0 * np.tanh(x[0]), np.zeros_like, 2)  # 8 nats are not rounding
    assert symmetric_signs(high, Evaluations(high), 3.0 + places[:, :2]) == []
    even = target(lambda x: 0.5 * x @ x, np.zeros_like, 12, variables={name: (3,) for name in "abcd"})
    assert len(symmetric_signs(even, Evaluations(even), rng(3).standard_normal((3, 12)))) == 7  # of more, the first


@pytest.mark.parametrize("dim", [40, 210])
def test_other_signs_of_many_coordinates_are_a_mode(dim):
    """Of more dimensions than matrices are learnt for as well."""
    c = np.linspace(0.4, 1.0, dim)
    model = target(lambda x: 0.5 * (x @ x) - np.logaddexp(c @ x, -c @ x), lambda x: x - c * np.tanh(c @ x), dim)
    starts = find_starts(model, 4, rng(1), initial=c + 0.1 * rng(2).standard_normal((4, dim)))
    assert np.all(starts.points @ c > 0.0)
    visited = c + rng(3).standard_normal((100, dim))
    metric = learnt(c, np.ones(dim) if dim > 200 else np.eye(dim), visited, visited[:4])
    [mode], near, _ = hidden_modes(model, starts, metric, seed())
    assert mode.is_image and mode.behind == pytest.approx(0.0, abs=1e-9) and near == ()
    np.testing.assert_allclose(mode.gaussian.centre, -c, atol=1e-12)


def test_what_the_chains_of_each_image_cost_is_counted(monkeypatch):
    """Two signs that nothing tells: three images, and a window from each."""
    for name, part in {"sent": None, "comes_to": False, "lookalikes": [], "dips": [], "gradients_of": 10_000}.items():
        monkeypatch.setattr(modes, name, lambda *_, part=part: part)
    monkeypatch.setattr(modes, "PATHS", 0)
    model = target(
        lambda x: 0.5 * float((np.abs(x) - 5.0) @ (np.abs(x) - 5.0)),
        lambda x: x - 5.0 * np.sign(x),
        2,
        variables={"a": (), "b": ()},
    )
    starts = find_starts(model, 4, rng(1), initial=-LEFT[:, [0, 0]])
    visited = 5.0 + rng(2).standard_normal((100, 2))
    hidden, near, spent = hidden_modes(model, starts, learnt(np.full(2, 5.0), np.eye(2), visited, visited[:4]), seed())
    assert {tuple(np.sign(mode.gaussian.centre)) for mode in hidden} == {(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0)}
    assert near == () and spent // 10_000 == 3


def test_how_often_a_mode_of_less_mass_is_visited():
    """A quarter of 2 s (1 - s), with s its share of the mass."""
    gaussian = Gaussian(np.zeros(1), np.ones(1))
    for behind in (-2.0, 0.0, 1.0, 3.0):
        share = 1.0 / (1.0 + math.exp(behind))
        for factor in (0.9, 1.1):
            assert Image(gaussian, behind, factor * 0.5 * share * (1.0 - share)).is_rare == (
                factor < 1.0 or share < 1e-9
            )
