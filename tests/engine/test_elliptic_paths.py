"""Piecewise-elliptic paths: positions between events, exact averages, and all that a run does with them."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.engine import trajectory as module
from pdmp.engine.run import extend
from pdmp.engine.trajectory import Trajectory, integrate_function
from tests.toys import Ellipses, FrozenEllipses

pytestmark = pytest.mark.exact

CENTRE = np.array([1.0, -2.0, 0.0])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


# ---------------------------------------------------------------------------------------------------------------
# Paths


def around(x, v, s):
    """Positions and velocities (M, d) after times s (M,) from (d,); what stands at zero stays."""
    still = (x == 0.0) & (v == 0.0)
    bend = np.where(still, 0.0, x - CENTRE)
    s = np.asarray(s)[:, None]
    moved = CENTRE + bend * np.cos(s) + v * np.sin(s)
    return np.where(still, 0.0, moved), v * np.cos(s) - bend * np.sin(s)


def paths(k=60, seed=0, stops=0.2, gap=1.5):
    """A path whose rows change one coordinate each, some to a stop, and the same with all coordinates in each row."""
    rng = np.random.default_rng(seed)
    times, which = np.cumsum(gap * rng.exponential(size=k)), rng.integers(3, size=k)
    x, v, now = rng.normal(size=3), rng.normal(size=3), 0.0
    start, xs, vs, dense_x, dense_v = (x.copy(), v.copy()), [], [], [], []
    for t, j in zip(times, which, strict=True):
        (x,), (v,) = around(x, v, [t - now])
        now, stops_here = t, rng.random() < stops
        x[j], v[j] = (0.0, 0.0) if stops_here else (x[j], rng.normal())
        xs.append([x[j]])
        vs.append([v[j]])
        dense_x.append(x)
        dense_v.append(v)
    options = {"end": times[-1] + 0.5, "kind": "elliptic", "events": ("flip",), "centre": CENTRE, "warmup": 0.3}
    rows = times, np.zeros(k, np.int8), which
    sparse = Trajectory(*start, *rows, np.array(xs), np.array(vs), local=True, **options)
    return sparse, Trajectory(*start, *rows, np.array(dense_x), np.array(dense_v), local=False, **options)


def reference(path, f, a, b):
    """∫ f(x(t)) dt segment by segment, through `around` alone; `f` of (M, 3) is (M, …)."""
    x, v, times, total = path._x, path._v, path._times, 0.0
    for k in range(len(times) + 1):
        begin = 0.0 if k == 0 else times[k - 1]
        end = path.end if k == len(times) else times[k]
        since, until = max(a, begin), min(b, end)
        if since < until:
            parts = int(np.ceil(until - since))
            for low in since + (until - since) / parts * np.arange(parts):
                half = 0.5 * (until - since) / parts
                at = low - begin + half * (1.0 + NODES)
                total = total + half * np.tensordot(WEIGHTS, f(around(x, v, at)[0]), 1)
        if k < len(times):
            x, v = path._xs[k], path._vs[k]
    return total


def test_elliptic_paths_are_read_between_events():
    sparse, dense = paths()
    assert dense.kind == "elliptic" and "elliptic" in repr(dense)
    np.testing.assert_array_equal(dense.at(dense.times), dense.positions)
    np.testing.assert_allclose(sparse.positions, dense.positions, atol=1e-13)
    np.testing.assert_allclose(sparse.velocities, dense.velocities, atol=1e-13)
    for k in (0, 7, 30):
        t = dense.times[k] + np.linspace(0.0, 0.999, 9) * (dense.times[k + 1] - dense.times[k])
        expected = around(dense.positions[k], dense.velocities[k], t - dense.times[k])[0]
        np.testing.assert_allclose(dense.at(t), expected, atol=1e-13)
        np.testing.assert_allclose(sparse.at(t), expected, atol=1e-12)
    points = sparse.discretise(37)
    np.testing.assert_allclose(points, dense.discretise(37), atol=1e-12)
    spacing = (dense.end - 0.3) / 37
    np.testing.assert_allclose(points[11], dense.at(0.3 + 12 * spacing), atol=1e-12)
    part = dense.block(1, 3)
    np.testing.assert_array_equal(part.at(3.3), dense.at(3.3)[1:])
    assert part.mean() == pytest.approx(dense.mean()[1:], rel=1e-12)


@pytest.mark.parametrize("interval", [(None, None), (2.1, 17.7)])
def test_averages_along_ellipses_are_exact(interval):
    sparse, dense = paths()
    a, b = 0.3 if interval[0] is None else interval[0], dense.end if interval[1] is None else interval[1]
    mean = reference(dense, lambda x: x, a, b) / (b - a)
    cov = reference(dense, lambda x: x[:, :, None] * x[:, None, :], a, b) / (b - a) - np.outer(mean, mean)
    for path in (sparse, dense):
        np.testing.assert_allclose(path.mean(*interval), mean, atol=1e-12)
        np.testing.assert_allclose(path.integral(None, *interval), mean * (b - a), atol=1e-10)
        np.testing.assert_allclose(path.var(*interval), np.diag(cov), rtol=1e-11)
        np.testing.assert_allclose(path.cov(*interval), cov, atol=1e-11)
    total = sum(h.sum() for h, _, _ in dense.segments(*interval))
    assert total == pytest.approx(b - a, rel=1e-13)


@pytest.mark.parametrize("gap", [0.05, 1.5, 30.0])
def test_functions_are_integrated_along_the_arc(gap):
    """To 1e-10 for polynomials of degree 5; many full turns count as often as they are made."""
    sparse, dense = paths(k=20, gap=gap)
    a, b = 0.3, dense.end
    monomials = [
        lambda x: x[0] ** 5,
        lambda x: x[0] ** 2 * x[1] ** 3,
        lambda x: x[2] * x[1] * x[0] ** 3,
        lambda x: 1.0 + x[0],
    ]
    for f in monomials:
        expected = reference(dense, lambda x, f=f: f(x.T), a, b)
        scale = reference(dense, lambda x, f=f: np.abs(f(x.T)), a, b)
        for path in (sparse, dense):
            assert abs(path.integral(f) - expected) < 1e-10 * scale
    x, v = np.array([[0.3, 0.0, 1.0]]), np.array([[1.0, 0.0, -1.0]])
    for turns in (1, 1000):
        found = integrate_function(lambda x: x[0] ** 4, np.array([turns * math.tau]), x, v, CENTRE)
        radius = 0.49 + 1.0  # squared
        assert found == pytest.approx(turns * math.tau * (1.0 + 3.0 * radius + 3.0 / 8.0 * radius**2), rel=1e-12)


def test_a_function_may_change_what_it_is_given():
    """The integral along arcs is that of the path, and the path is what it was."""
    _, dense = paths(k=5)
    x, v = dense.positions[:-1].copy(), dense.velocities[:-1].copy()
    before, h = x.copy(), np.diff(dense.times)

    def in_place(y):
        y *= y
        return y

    found = integrate_function(in_place, h, x, v, CENTRE)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(found, integrate_function(lambda y: y * y, h, x, v, CENTRE), rtol=1e-14)


def test_points_for_a_picture_lie_on_the_curve():
    _, dense = paths()
    fine = dense.refine(dense.times)
    assert np.all(np.diff(fine) > 0.0) and np.diff(fine).max() <= 0.1 * (1.0 + 1e-9)
    assert set(dense.times) <= set(fine)
    assert len(dense.refine(dense.times[:1])) == 1


def test_stretches_of_a_local_path_in_blocks_of_coordinates(monkeypatch):
    """Each coordinate turns about its own centre, whichever block of coordinates it is in."""
    sparse, dense = paths()
    about = np.array([1.5, -2.0, 0.2])
    wanted = dense.stretches(7), *dense.square_stretches(7, about)
    length = dense.end - dense.warmup
    for power, found in ((2, wanted[1].mean(axis=0)), (4, wanted[2])):
        powers = reference(dense, lambda x, power=power: (x - about) ** power, dense.warmup, dense.end)
        np.testing.assert_allclose(found, powers / length, rtol=1e-10)
    for block in (8, 8 * 60):  # one coordinate at a time, and two
        monkeypatch.setattr(module, "BLOCK", block)
        for found, right in zip((sparse.stretches(7), *sparse.square_stretches(7, about)), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Runs


def assert_same(a, b):
    for name in ("mean", "var", "cov", "ess", "rhat"):
        np.testing.assert_array_equal(getattr(a, name)(), getattr(b, name)())
    np.testing.assert_array_equal(a.draws(50), b.draws(50))
    f = math.sin
    assert a.expectation(lambda x: f(x[0])) == b.expectation(lambda x: f(x[0]))
    for one, two in zip(a.trajectories, b.trajectories, strict=True):
        np.testing.assert_array_equal(one.at([0.5, 2.0, 7.7]), two.at([0.5, 2.0, 7.7]))
        np.testing.assert_array_equal(one.velocities, two.velocities)


@pytest.mark.parametrize("process", [Ellipses(), FrozenEllipses()], ids=["global", "local"])
def test_everything_that_a_run_does(process, tmp_path):
    call = {"initial": [0.5, -1.0, 0.2], "seed": 3, "chains": 2, "warmup": 0.1}
    run = pdmp.sample(process, time=40.0, **call)
    assert run.trajectories[0].kind == "elliptic"
    run.save(tmp_path / "run.npz")
    assert_same(run, pdmp.load(tmp_path / "run.npz"))
    kept = {
        "moments": pdmp.sample(process, time=40.0, store="moments", **call),
        "grid": pdmp.sample(process, time=40.0, store="grid", draws=64, **call),
    }
    for other in kept.values():
        np.testing.assert_allclose(other.mean(), run.mean(), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(other.var(), run.var(), rtol=1e-10)
        if not process.local:
            np.testing.assert_allclose(other.cov(), run.cov(), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(kept["grid"].draws(64), run.draws(64), atol=1e-11)
    lengths = [path.end - path.warmup for path in run.trajectories]
    pooled = np.average([path.mean() for path in run.trajectories], axis=0, weights=lengths)
    np.testing.assert_allclose(run.mean(), pooled, rtol=1e-11, atol=1e-12)
    assert run.expectation(lambda x: x[0] * x[1]) == pytest.approx(run.cov()[0, 1] + run.mean()[:2].prod(), abs=1e-10)
    np.testing.assert_allclose(run.at(3.0)[1], run.trajectories[1].at(3.0))
    assert run.summary().rows[0]["mean"] == pytest.approx(run.mean()[0])


@pytest.mark.parametrize("process", [Ellipses(), FrozenEllipses()], ids=["global", "local"])
def test_runs_go_on_from_where_they_stopped(process, tmp_path):
    call = {"initial": [0.5, -1.0, 0.2], "seed": 4}
    whole = pdmp.sample(process, events=60, **call)
    part = pdmp.sample(process, events=25, **call)
    assert_same(extend(part, events=60), whole)
    file = tmp_path / "checkpoint"
    pdmp.sample(process, events=60, checkpoint=file, **call)
    assert_same(pdmp.sample(process, events=60, checkpoint=file, **call), whole)


def test_pictures_draw_the_curve():
    run = pdmp.sample(Ellipses(), time=20.0, initial=[0.5, -1.0, 0.2], seed=5)
    figure = pdmp.plots.trajectory(run, coordinates=(0, 1))
    drawn, against_time = figure.axes[0].lines[0].get_xydata(), figure.axes[1].lines[0].get_xydata()
    assert np.diff(against_time[:, 0]).max() < 0.1001
    np.testing.assert_allclose(drawn, run.trajectories[0].at(against_time[:, 0])[:, :2], atol=1e-12)
    np.testing.assert_allclose(against_time[:, 1], drawn[:, 0], atol=1e-12)
