"""Paths: positions at any time, exact integrals, continuity, and local skeletons that are never made dense."""

import itertools

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.diagnostics import averages
from pdmp.engine import trajectory as module
from pdmp.engine.trajectory import Trajectory, _uniform, apply, integrate_function, segment_integrals
from tests.toys import Coupled, Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact


def make(kind="linear", d=3, k=40, seed=0, end=None):
    """A continuous path (jumps, if it is constant) of k events, global."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(size=k))
    v = rng.normal(size=(k + 1, d))
    gaps = np.diff(times, prepend=0.0)
    x = np.cumsum(np.concatenate([rng.normal(size=(1, d)), v[:-1] * gaps[:, None]]), axis=0)
    kinds = rng.integers(2, size=k).astype(np.int8)
    vs = v[1:] if kind == "linear" else np.zeros((k, 0))
    end = times[-1] + 1.0 if end is None else end
    return Trajectory(
        *(x[0], v[0], times, kinds, np.zeros(0, int), x[1:], vs), end=end, kind=kind, events=("a", "b"), local=False
    )


def local(seed=0, d=5, k=200, kind="linear"):
    """A path of which each row changes one coordinate, and the same path with all coordinates in each row."""
    rng = np.random.default_rng(seed)
    times, which = np.cumsum(rng.exponential(size=k)), rng.integers(d, size=k)
    x, v, now = rng.normal(size=d), rng.normal(size=d), 0.0
    start = x.copy(), v.copy()
    xs, vs, dense_x, dense_v = [], [], [], []
    for t, j in zip(times, which, strict=True):
        if kind == "linear":
            x, v[j] = x + v * (t - now), rng.normal()
        else:
            x[j] = rng.normal()
        now = t
        xs.append([x[j]])
        vs.append([v[j]])
        dense_x.append(x.copy())
        dense_v.append(v.copy())
    options = {"end": times[-1] + 0.5, "kind": kind, "events": ("flip",)}
    kinds, width = np.zeros(k, np.int8), None if kind == "linear" else 0  # paths that stand still have no velocities
    vs, dense_v = np.array(vs)[:, :width], np.array(dense_v)[:, :width]
    sparse = Trajectory(*start, times, kinds, which, np.array(xs), vs, local=True, **options)
    dense = Trajectory(*start, times, kinds, which, np.array(dense_x), dense_v, local=False, **options)
    return sparse, dense


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "constant"])
def test_positions_at_events_are_the_stored_ones(kind):
    path = make(kind)
    np.testing.assert_array_equal(path.at(path.times), path.positions)
    if kind == "constant":
        np.testing.assert_array_equal(path.at(path.times[1:], side="left"), path.positions[:-1])
        np.testing.assert_array_equal(path.at(0.5 * (path.times[1:] + path.times[:-1])), path.positions[:-1])


def test_between_events():
    path = make()
    middle = 0.5 * (path.times[1:] + path.times[:-1])
    np.testing.assert_allclose(path.at(middle), 0.5 * (path.positions[1:] + path.positions[:-1]), rtol=1e-12)
    shuffled = np.random.default_rng(1).permutation(middle)
    np.testing.assert_array_equal(path.at(shuffled)[np.argsort(shuffled)], path.at(middle))
    assert path.at(1.0).shape == (3,)
    last = path.positions[-1] + path.velocities[-1] * (path.end - path.times[-1])
    np.testing.assert_allclose(path.at(path.end), last)


def test_a_path_without_events():
    empty = np.zeros(0)
    path = Trajectory(
        *(np.array([1.0, 2.0]), np.array([1.0, -1.0]), empty, empty.astype(np.int8), empty.astype(int)),
        *(np.zeros((0, 2)), np.zeros((0, 2))),
        end=2.0,
        kind="linear",
        events=("a",),
        local=False,
    )
    np.testing.assert_array_equal(path.at([0.0, 2.0]), [[1.0, 2.0], [3.0, 0.0]])
    np.testing.assert_allclose(path.mean(), [2.0, 1.0])
    np.testing.assert_allclose(path.var(), [1.0 / 3.0, 1.0 / 3.0])


@pytest.mark.parametrize("process", [Telegraph(), Walls()], ids=["global", "local"])
def test_continuity_of_real_paths(process):
    """P7: the position after an event plus velocity times the gap is the next position; times increase."""
    path = pdmp.sample(process, events=400, seed=1).trajectories[0]
    gaps = np.diff(path.times)
    assert np.all(gaps > 0.0)
    reached = path.positions[:-1] + path.velocities[:-1] * gaps[:, None]
    np.testing.assert_allclose(reached, path.positions[1:], rtol=0, atol=1e-12 * path.end)
    np.testing.assert_array_equal(np.abs(path.velocities), 1.0)


# -- integrals ----------------------------------------------------------------------------------------------------


def test_moments_along_a_ray():
    """P5: ∫x = xτ + vτ²/2 and ∫xxᵀ = τxxᵀ + τ²/2 (xvᵀ + vxᵀ) + τ³/3 vvᵀ; m + 1 Gauss nodes for degree m."""
    path = make(k=1)
    x, v, tau = path.positions[0], path.velocities[0], path.times[1]
    np.testing.assert_allclose(path.integral(a=0.0, b=tau), x * tau + v * tau**2 / 2, rtol=1e-12)
    second = tau * np.outer(x, x) + tau**2 / 2 * (np.outer(x, v) + np.outer(v, x)) + tau**3 / 3 * np.outer(v, v)
    np.testing.assert_allclose(path.products(np.zeros(3), 0.0, tau), second, rtol=1e-12)
    np.testing.assert_allclose(path.integral(lambda z: np.outer(z, z), 0.0, tau), second, rtol=1e-12)
    for m in range(6):
        ray = np.polynomial.Polynomial([x[1], v[1]]) ** m
        nodes, weights = np.polynomial.legendre.leggauss(m + 1)
        gauss = 0.5 * tau * np.sum(weights * ray(0.5 * tau * (nodes + 1.0)))
        assert gauss == pytest.approx(ray.integ()(tau), rel=1e-12)
        assert path.integral(lambda z, m=m: z[1] ** m, 0.0, tau) == pytest.approx(gauss, rel=1e-12)


@pytest.mark.parametrize("kind", ["linear", "constant"])
def test_averages_against_brute_force(kind):
    path = make(kind, d=2)
    knots = np.append(path.times, path.end)
    mean, second, n = 0.0, 0.0, 16
    nodes, weights = np.polynomial.legendre.leggauss(n)
    for a, b in zip(knots[:-1], knots[1:], strict=True):
        x = path.at(a + 0.5 * (b - a) * (nodes + 1.0))
        mean = mean + 0.5 * (b - a) * weights @ x
        second = second + 0.5 * (b - a) * x.T @ (weights[:, None] * x)
    mean, second = mean / path.end, second / path.end
    np.testing.assert_allclose(path.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(path.cov(), second - np.outer(mean, mean), rtol=1e-10)
    np.testing.assert_allclose(path.var(), np.diag(path.cov()), rtol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "constant"])
def test_averages_add_up(kind):
    """P8: averages over [0, T₁] and [T₁, T₂] combine by length, wherever T₁ is."""
    path = make(kind)
    for cut in (path.times[7], 0.37 * path.end):
        parts = path.integral(a=0.0, b=cut) + path.integral(a=cut)
        np.testing.assert_allclose(parts, path.integral(), rtol=1e-12)
        f = lambda x: np.sin(x)  # noqa: E731
        np.testing.assert_allclose(
            path.integral(f, 0.0, path.times[7]) + path.integral(f, path.times[7]), path.integral(f)
        )


def test_discretisation_converges():
    """P6: end points of n equal parts err by O(1/n), their midpoints by O(1/n²); constant paths by holding times."""
    path = pdmp.sample(Telegraph(), time=50.0, seed=2).trajectories[0]
    exact = path.integral(lambda x: x**2) / path.end
    errors = {"ends": [], "middles": []}
    for n in (4_000, 16_000):
        errors["ends"].append(np.abs((path.discretise(n) ** 2).mean(axis=0) - exact).max())
        middles = path.at((np.arange(n) + 0.5) * path.end / n)
        errors["middles"].append(np.abs((middles**2).mean(axis=0) - exact).max())
    assert 3.0 < errors["ends"][0] / errors["ends"][1] < 5.0
    assert errors["middles"][1] < (path.end / 16_000) ** 2 < 0.01 * errors["ends"][1]
    path = make("constant")
    held = np.diff(np.append(path.times, path.end))
    np.testing.assert_allclose(path.mean(), held @ path.positions / path.end, rtol=1e-12)


def test_time_average_of_ticks_is_weighted_by_their_steps():
    """L9: Σ γ f / Σ γ, the plain mean for equal steps, and the same for c γ."""
    path = make("constant")
    held = np.diff(np.append(path.times, path.end))
    f = lambda x: x[0] ** 2  # noqa: E731
    assert path.integral(f) / path.end == pytest.approx(held @ path.positions[:, 0] ** 2 / held.sum(), rel=1e-12)
    one, other = (pdmp.sample(Ticks(size), steps=100, seed=3) for size in (0.5, 5.0))
    np.testing.assert_allclose(one.mean(), one.trajectories[0].positions[:100].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-12)
    np.testing.assert_allclose(one.var(), other.var(), rtol=1e-12)


# -- local paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "constant"])
def test_a_local_path_is_the_dense_one(kind):
    sparse, dense = local(kind=kind)
    np.testing.assert_array_equal(sparse.times, dense.times)
    np.testing.assert_allclose(sparse.positions, dense.positions, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(sparse.velocities, dense.velocities)
    t = np.random.default_rng(0).uniform(0.0, sparse.end, 50)
    np.testing.assert_allclose(sparse.at(t), dense.at(t), atol=1e-11)
    for a, b in ((None, None), (3.0, 20.0), (sparse.times[5], sparse.times[6])):
        np.testing.assert_allclose(sparse.mean(a, b), dense.mean(a, b), rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(sparse.var(a, b), dense.var(a, b), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(sparse.cov(a, b), dense.cov(a, b), rtol=1e-7, atol=1e-10)
    mean = dense.mean()
    for n, a, b in ((7, 0.0, sparse.end), (4, 3.0, 20.0)):
        stretches = [dense.mean(*ends) for ends in itertools.pairwise(np.linspace(a, b, n + 1))]
        np.testing.assert_allclose(sparse.stretches(n, None, a, b), stretches, rtol=1e-9, atol=1e-11)
        for one, other in zip(*(path.square_stretches(n, mean, a, b) for path in (sparse, dense)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    places = np.array([3, 1])  # of two coordinates alone
    for path in (sparse, dense):
        two = path.narrowed(places)
        np.testing.assert_allclose(two.stretches(4), path.stretches(4)[:, places], rtol=1e-12)
        for one, other in zip(two.square_stretches(4, mean[places]), path.square_stretches(4, mean), strict=True):
            np.testing.assert_allclose(one, other[..., places], rtol=1e-12)


def test_a_local_path_is_never_made_dense_unasked(monkeypatch):
    sparse, dense = local(k=2_000)
    mean, var = dense.mean(), dense.var()
    monkeypatch.setattr(module, "DENSE_BYTES", 1_000)
    np.testing.assert_allclose(sparse.mean(), mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(sparse.var(), var, rtol=1e-8)
    assert sparse.at([1.0, 2.0]).shape == (2, 5)
    with pytest.raises(ValueError, match=r"2001 positions of 5 coordinates would take .* GB; .*`at\(t\)`"):
        _ = sparse.positions
    with pytest.raises(ValueError, match="all products of 12 coordinates would take .* GB; use `var`"):
        make(d=12).products(np.zeros(12))


def test_blocks_of_a_long_path(monkeypatch):
    path = make(k=100)
    one, f = path.cov(), path.integral(lambda x: np.exp(0.01 * x[0]))
    monkeypatch.setattr(module, "BLOCK", 21)
    np.testing.assert_allclose(path.cov(), one, rtol=1e-12)
    assert path.integral(lambda x: np.exp(0.01 * x[0])) == pytest.approx(f, rel=1e-12)
    sparse, dense = local()
    np.testing.assert_allclose(sparse.cov(), dense.cov(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("centre", [None, np.array([0.3, -0.2, 1.0])], ids=["lines", "arcs"])
def test_stretches_over_several_blocks(centre, monkeypatch):
    """Against Simpson's rule between positions, by path and coordinate, for blocks of seven segments and of all."""
    rng, n = np.random.default_rng(3), 40
    times, xs, vs = np.sort(rng.uniform(0.0, 9.0, n)), np.zeros((n, 3)), rng.standard_normal((n, 3))
    x, v, now = np.array([0.4, 0.1, -0.8]), rng.standard_normal(3), 0.0
    start = x.copy(), v.copy()
    for k, t in enumerate(times):
        step, c = t - now, 0.0 if centre is None else centre
        x = x + step * v if centre is None else c + np.cos(step) * (x - c) + np.sin(step) * v
        xs[k], v, now = x, vs[k], t
    path = Trajectory(
        *(*start, times, np.zeros(n, np.int8), np.zeros(n, np.int64), xs, vs),
        end=10.0,
        kind="linear" if centre is None else "elliptic",
        centre=centre,
        events=("a", "b"),
        local=False,
    )
    around, ends = np.array([0.1, 0.0, -0.5]), 1.0 + np.arange(9) * (8.5 / 8)
    knots = np.unique(np.concatenate([ends, times[(times > 1.0) & (times < 9.5)], np.linspace(1.0, 9.5, 2_001)]))
    h, middle = np.diff(knots), 0.5 * (knots[1:] + knots[:-1])
    for block in (21, module.SUMMED):
        monkeypatch.setattr(module, "SUMMED", block)
        squares, fourth = path.square_stretches(8, around, 1.0, 9.5)
        means = path.stretches(8, None, 1.0, 9.5)
        for found, power, shift in ((means, 1, 0.0), (squares, 2, around), (fourth, 4, around)):
            values = [(path.at(t, side) - shift) ** power for t, side in ((knots[:-1], "right"), (knots[1:], "left"))]
            pieces = h[:, None] * (values[0] + 4.0 * (path.at(middle) - shift) ** power + values[1]) / 6.0
            at = [(middle > a) & (middle < b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
            sums = np.array([pieces[where].sum(axis=0) for where in at])
            expected = sums.sum(axis=0) / 8.5 if power == 4 else sums * 8 / 8.5
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_events_of_a_local_process_that_change_several_coordinates():
    times, which = np.array([1.0, 1.0, 2.5]), np.array([0, 2, 1])
    path = Trajectory(
        *(np.zeros(3), np.ones(3), times, np.array([1, 1, 0], np.int8), which),
        *(np.array([[1.0], [1.0], [2.5]]), np.array([[-1.0], [0.0], [2.0]])),
        end=4.0,
        kind="linear",
        events=("a", "b"),
        local=True,
    )
    np.testing.assert_array_equal(path.times, [0.0, 1.0, 2.5])
    np.testing.assert_array_equal(path.kinds, [1, 0])
    np.testing.assert_allclose(path.positions, [[0, 0, 0], [1, 1, 1], [-0.5, 2.5, 1.0]])
    np.testing.assert_array_equal(path.velocities[-1], [-1.0, 2.0, 0.0])


# -- copies, functions ----------------------------------------------------------------------------------------------


def test_blocks_of_coupled_copies():
    run = pdmp.sample(Coupled(), steps=20, seed=4)
    whole, fine = run.trajectories[0].whole, run.trajectories[0]
    assert whole.dim == 6 and fine.dim == 3
    np.testing.assert_array_equal(fine.at(fine.times), whole.at(fine.times)[:, :3])
    np.testing.assert_array_equal(fine.coarse, whole.at(fine.coarse_times)[:, 3:])
    np.testing.assert_allclose(fine.mean(), whole.mean()[:3], rtol=1e-12)
    with pytest.raises(ValueError, match="global process"):
        local()[0].block(0, 2)


def test_functions_of_one_and_of_many_points(monkeypatch):
    monkeypatch.setattr(averages, "SINGLES", 7)
    x = np.random.default_rng(5).normal(size=(3, 40))
    calls = []

    def counted(z):
        calls.append(z.shape)
        return z[0] * z[1]

    np.testing.assert_array_equal(apply(counted, x), x[0] * x[1])
    assert len(calls) < 40  # many at once
    for f, shape in (
        (lambda z: z[0] if z.ndim == 1 else 1 / 0, (40,)),
        (lambda z: float(z[0]), (40,)),
        (lambda z: z - z.mean(), (3, 40)),  # right shape, wrong values
        (lambda z: np.outer(z, z), (3, 3, 40)),
        (lambda z: 2.0, (40,)),
        (lambda z: z.sum(), (40,)),
    ):
        single = np.stack([np.asarray(f(z)) for z in x.T], axis=-1)
        assert apply(f, x).shape == shape
        np.testing.assert_allclose(apply(f, x), single, rtol=1e-12)
    assert integrate_function(lambda z: z[2], np.ones(40), x.T, None) == pytest.approx(x[2].sum())


@pytest.mark.parametrize("kind", ["lines", "arcs"])
@pytest.mark.parametrize("edge", [-1.0, 0.1, 1.7])
def test_functions_that_jump_are_integrated_without_a_bias(kind, edge):
    """Of 4,000 segments that cross an edge just behind the second node: the time above it, up to its own errors.

    The errors are those of a random place in each segment. Quadrature alone takes the node for half of what it stands
    for, and would be off by many of them.
    """
    rng, m = np.random.default_rng(3), 4_000
    nodes, centre = (module.NODES, None) if kind == "lines" else (module.ARC_NODES, np.zeros(2))
    h, x, v = rng.uniform(0.9, 1.0, m), rng.standard_normal((m, 2)), np.ones((m, 2)) * 2.0
    before = (nodes[1] + 0.002) * h
    x[:, 0] = edge - 2.0 * before if centre is None else (edge - 2.0 * np.sin(before)) / np.cos(before)
    found = segment_integrals(lambda z: 1.0 * (z[0] > edge), h, x, v, centre)
    u = ((np.arange(4_000) + 0.5) / 4_000)[:, None] * h
    there = x[:, 0] + 2.0 * u if centre is None else x[:, 0] * np.cos(u) + 2.0 * np.sin(u)
    expected = h * np.mean(there > edge, axis=0)
    error = float(np.sqrt(np.sum((found - expected) ** 2)))
    assert 0.0 < error < 0.01 * expected.sum() and abs(np.sum(found - expected)) < 3.5 * error
    quadrature = (module.WEIGHTS if centre is None else module.ARC_WEIGHTS)[2:].sum() * h.sum()
    assert abs(quadrature - expected.sum()) > 3.5 * error


@pytest.mark.parametrize("kind", ["lines", "arcs"])
def test_functions_that_turn_within_a_segment_are_integrated_in_parts(kind):
    """cos 9x, which turns three times on it, and what jumps, at fractions of the noise of one random place for each."""
    rng, m, centre = np.random.default_rng(4), 3_000, None if kind == "lines" else np.zeros(2)
    h, x, v = rng.uniform(0.9, 1.0, m), rng.uniform(-1.0, 1.0, (m, 2)), np.full((m, 2), 2.0)
    u = ((np.arange(8_000) + 0.5) / 8_000)[:, None] * h
    there = x[:, 0] + 2.0 * u if centre is None else x[:, 0] * np.cos(u) + 2.0 * np.sin(u)
    found = segment_integrals(lambda z: np.cos(9.0 * z[0]), h, x, v, centre)
    error = found - h * np.mean(np.cos(9.0 * there), axis=0)
    assert np.sqrt(np.mean(error**2)) < 1e-4
    found = segment_integrals(lambda z: 1.0 * (np.abs(z[0] - 0.4) < 0.3), h, x, v, centre)
    expected = h * np.mean(np.abs(there - 0.4) < 0.3, axis=0)
    error = np.sqrt(np.sum((found - expected) ** 2))
    assert abs(np.sum(found - expected)) < 3.5 * error < 0.35 * np.sqrt(np.sum(expected * (h - expected)))


def test_places_on_segments_are_as_random():
    """Uniform, not correlated with where a segment begins, with its length or with the next; the same each time."""
    rng = np.random.default_rng(2)
    h, x = rng.exponential(1.0, 20_000), rng.standard_normal(20_000)
    u = _uniform(h, x)
    assert stats.kstest(u, "uniform").pvalue > 1e-4 and np.array_equal(u, _uniform(h, x))
    for other in (h, x, np.roll(u, 1)):
        assert abs(np.corrcoef(u, other)[0, 1]) < 4.0 / np.sqrt(len(u))
    assert np.all((u > 0.0) & (u < 1.0)) and np.mean(_uniform(h * (1.0 + 1e-13), x + 1e-13) == u) > 0.999
    assert len(set(_uniform(np.full(9, 1.0), 0.5 + 1e-6 * np.arange(9)))) == 9


def test_functions_cannot_change_the_path():
    path = make()
    before = path.positions.copy()

    def spoil(x):
        x[...] = 0.0
        return 1.0

    assert path.integral(spoil) == pytest.approx(path.end)
    np.testing.assert_array_equal(path.positions, before)


# -- bad input ----------------------------------------------------------------------------------------------------


def test_bad_input():
    path = make(end=100.0)
    for t in (-1.0, 101.0, np.nan, [1.0, 200.0]):
        with pytest.raises(ValueError, match=r"`t` must lie in \[0, 100.0\]"):
            path.at(t)
    with pytest.raises(ValueError, match="`t` must be a number or one-dimensional"):
        path.at([[1.0]])
    with pytest.raises(ValueError, match="`side` must be 'left' or 'right', got 'up'"):
        path.at(1.0, side="up")
    for n in (0, -3, 2.5):
        with pytest.raises(ValueError, match="`n` must be a positive integer"):
            path.discretise(n)
    with pytest.raises(ValueError, match="there is no path after time 100.0"):
        path.discretise(5, a=100.0)
    for a, b in ((5.0, 5.0), (5.0, 2.0), (-1.0, 2.0), (0.0, 101.0)):
        with pytest.raises(ValueError, match="must lie in the path's, .*and have a length"):
            path.mean(a, b)
