"""Coordinates given the scales, from expressions: a bijection whose Jacobian is exact, in which nothing is lost."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse

import pdmp
from pdmp.automatic import metric, preparing
from pdmp.automatic.metric import learn_metric
from pdmp.automatic.start import find_starts
from pdmp.automatic.windows import gradients_of
from pdmp.metric import from_root
from pdmp.models import noncentred as module
from pdmp.models.base import Model
from pdmp.models.noncentred import noncentred, scaled_rows
from pdmp.models.priors import Normal
from pdmp.native.classes import Compiled, compiled
from pdmp.process import DATA

pytestmark = pytest.mark.exact

e = pdmp.terms


def effect(u, m, t):
    return t + 0.5 * ((u - m) * e.exp(-t)) ** 2


def hierarchy(groups=4, n=9):
    """Normal effects of groups of unequal sizes, with a mean, a scale and a scale of the noise, all unknown."""
    p = pdmp.Parameters(u=groups, mu=1, log_tau=1, log_sigma=1)
    y = np.random.default_rng(0).normal(size=n)
    group = np.arange(n) % groups
    rows = [
        e(effect, at=[p.u[np.arange(groups)], p.mu, p.log_tau]),
        e(lambda y, u, s: s + 0.5 * ((y - u) * e.exp(-s)) ** 2, [y], [p.u[group], p.log_sigma]),
        e(lambda t: 0.5 * (t + 1.0) ** 2, at=[p.log_tau]),
    ]
    return pdmp.models.sum_of_terms(p, rows, priors={"mu": Normal(0.3, 2.0), "log_sigma": Normal(0.0, 1.0)})


def horseshoe(k=3):
    """Each weight has two scales, one of its own."""
    p = pdmp.Parameters(w=k, log_local=k, log_all=1)
    i, y = np.arange(k), np.random.default_rng(1).normal(size=k)
    rows = [
        e(lambda w, a, t: a + t + 0.5 * w**2 * e.exp(-2.0 * a - 2.0 * t), at=[p.w[i], p.log_local[i], p.log_all]),
        e(lambda y, w: 0.5 * (y - w) ** 2, [y], [p.w[i]]),
    ]
    return pdmp.models.sum_of_terms(p, rows, priors={"log_local": Normal(0.0, 1.0), "log_all": Normal(-1.0, 1.0)})


def walk(n=5):
    """Counts whose log rates are a random walk, with a further coordinate that all of them have."""
    p = pdmp.Parameters(s=n, log_scale=1, shift=1)
    step = scipy.sparse.csr_array(scipy.sparse.eye_array(n) - scipy.sparse.eye_array(n, k=-1))
    y = np.array([2.0, 0.0, 1.0, 4.0, 3.0])[:n]
    rows = [
        e(lambda c, t: t + 0.5 * (c / 0.3 * e.exp(-t)) ** 2, at=[step @ p.s, p.log_scale]),
        e(lambda y, s: e.exp(s) - y * s, [y], [p.s[np.arange(n)] + p.shift]),
    ]
    return pdmp.models.sum_of_terms(p, rows, priors={"log_scale": Normal(0.0, 1.0), "shift": Normal(0.0, 0.5)})


def funnel(d=3):
    p = pdmp.Parameters(x=d - 1, t=1)
    rows = [e(lambda x, t: 0.5 * t + 0.5 * x**2 * e.exp(-t), at=[p.x[np.arange(d - 1)], p.t])]
    return pdmp.models.sum_of_terms(p, rows, priors={"t": Normal(0.0, 3.0)})


def points(model, n=6, seed=2):
    return 0.4 * np.random.default_rng(seed).normal(size=(n, model.dim)) + 0.1


def moved_from(model, x):
    return noncentred(model, scaled_rows(model), x)


@pytest.mark.parametrize("make", [hierarchy, horseshoe, walk, funnel])
def test_there_and_back_with_the_jacobian_and_its_gradient(make):
    model = make()
    moved = moved_from(model, points(model))
    z = 0.7 * np.random.default_rng(3).normal(size=(3, model.dim))
    x = moved.natural_points(z)
    assert np.abs(x - z).max() > 0.1
    np.testing.assert_allclose(moved.standardised(x), z, rtol=1e-10, atol=1e-12)
    step, unit = 1e-6, np.eye(model.dim)
    for here, there in zip(z, x, strict=True):
        around = moved.natural_points(np.concatenate([here + step * unit, here - step * unit]))
        jacobian = (around[: model.dim] - around[model.dim :]) / (2.0 * step)
        expected = model.potential(there) - np.linalg.slogdet(jacobian)[1]
        assert moved.potential(here) == pytest.approx(expected, abs=1e-7)
        slope = [(moved.potential(here + step * u) - moved.potential(here - step * u)) / (2.0 * step) for u in unit]
        np.testing.assert_allclose(moved.gradient(here), slope, rtol=1e-6, atol=1e-7)
        out = np.full(model.dim, 2.0)
        assert moved.native.potential_and_gradient(here, out) == moved.potential(here)
        np.testing.assert_allclose(out - 2.0, moved.gradient(here), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("make", "k"), [(hierarchy, 2), (horseshoe, 4)])
def test_effects_with_normal_data_are_standard_normal_at_every_scale(make, k):
    """So the potential is ½|z|² and what depends on the k scales alone, wherever the coordinates were learnt."""
    model = make()
    moved, rng = moved_from(model, points(model, seed=5)), np.random.default_rng(4)
    for scales in ([-3.0, 1.0, 0.4, -0.2], [0.5, -0.7, 0.1, 1.1], [2.0, 0.1, -1.0, 0.6]):
        z = np.column_stack([rng.normal(size=(4, model.dim - k)), np.tile(scales[:k], (4, 1))])
        left = [moved.potential(one) - 0.5 * one[:-k] @ one[:-k] for one in z]
        np.testing.assert_allclose(left, left[0], rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose([moved.gradient(one)[:-k] for one in z], z[:, :-k], rtol=1e-9, atol=1e-9)


def test_other_data_are_expanded_at_the_points():
    """At the mean of their scales: with the means over the points of H and of H x - ∇U."""
    model = walk()
    x, rest = points(model), np.arange(model.dim) != 5
    z = np.where(rest, 0.0, x.mean(axis=0))
    x[:, 5] = z[5]
    hessians = np.array([model.hessian(one)[rest][:, rest] for one in x])
    shifts = [h @ one[rest] - model.gradient(one)[rest] for h, one in zip(hessians, x, strict=True)]
    moved = moved_from(model, points(model))
    natural = moved.natural_points(z[None])[0]
    hessian = hessians.mean(axis=0)
    np.testing.assert_allclose(natural[rest], np.linalg.solve(hessian, np.mean(shifts, axis=0)), rtol=1e-6)
    log_root = 0.5 * np.linalg.slogdet(hessian)[1]
    assert moved.potential(z) - model.potential(natural) == pytest.approx(log_root, abs=1e-6)


def test_the_rows_that_show_a_scale():
    model = hierarchy()
    found = scaled_rows(model)
    assert [(part.scales, part.powers) for part in found] == [((5,), (2.0,)), ((6,), (2.0,))]
    np.testing.assert_array_equal(found[0].rows, np.arange(4))
    np.testing.assert_array_equal(found[1].rows, np.arange(4, 13))
    two = scaled_rows(horseshoe())
    assert [(part.scales, part.powers, part.rows.tolist()) for part in two] == [
        ((3 + k, 6), (2.0, 2.0), [k]) for k in range(3)
    ]
    # A scale of each of two groups, one at -½ of its coordinate: a log precision.
    p = pdmp.Parameters(u=3, t=2)
    weight = np.array([[1.0, 0.0], [0.0, -0.5], [1.0, 0.0]])
    found, dense = (
        scaled_rows(pdmp.models.sum_of_terms(p, [e(effect, at=[p.u[np.arange(3)], 0.0 * p.u[[0]], t])]))
        for t in (scipy.sparse.csr_array(weight) @ p.t, weight @ p.t)
    )
    assert dense == []  # a functional of two coordinates
    assert sorted((part.scales, part.powers, part.rows.tolist()) for part in found) == [
        ((3,), (2.0,), [0, 2]),
        ((4,), (-1.0,), [1]),
    ]


@pytest.mark.parametrize(
    "loss",
    [
        lambda u, t: t + 2.0 * e.log1p((u * e.exp(-t)) ** 2 / 3.0),  # its curvature depends on u
        lambda u, t: u**4 * e.exp(-2.0 * t),  # as does this one's
        lambda u, t: 0.5 * (u - t) ** 2,  # and this one's on nothing
        lambda u, t: 0.5 * u**2 * (1.0 + e.exp(-2.0 * t)),  # two powers
        lambda u, t: -0.5 * u**2 * e.exp(-2.0 * t),  # concave
        lambda u, t: e.exp(-t) * u,  # straight
    ],
)
def test_rows_that_show_none(loss):
    p = pdmp.Parameters(u=2, t=1)
    model = pdmp.models.sum_of_terms(p, [e(loss, at=[p.u[np.arange(2)], p.t])])
    assert scaled_rows(model) == []
    assert scaled_rows(pdmp.models.Gaussian([0.0], [1.0])) == []


def test_what_is_not_convex_elsewhere_is_left_out():
    """The mean Hessian of the other terms is indefinite: H(t) is none where scales are large, but with its diagonal."""
    p = pdmp.Parameters(u=2, t=1)
    rows = [
        e(lambda u, t: t + 0.5 * (u * e.exp(-t)) ** 2, at=[p.u[np.arange(2)], p.t]),
        e(lambda a, b: 0.1 * a**4 + 0.1 * b**4 + 3.0 * a * b + 0.2 * a**2 - 0.3 * b**2, at=[p.u[[0]], p.u[[1]]]),
    ]
    model = pdmp.models.sum_of_terms(p, rows, priors={"t": Normal(0.0, 1.0)})
    moved = moved_from(model, points(model))
    z = np.array([[0.3, -0.8, 9.0], [0.3, -0.8, 0.0]])
    np.testing.assert_allclose(moved.standardised(moved.natural_points(z)), z, rtol=1e-9)
    diagonal = moved.base[moved.start[1:] - 1]
    assert np.all(diagonal >= 0.0) and np.count_nonzero(moved.base) == np.count_nonzero(diagonal)


def test_no_coordinates_whose_factor_costs_more_than_gradients(monkeypatch):
    model = walk()
    assert moved_from(model, points(model)) is not None
    monkeypatch.setattr(module, "OPERATIONS", 0.1)
    assert moved_from(model, points(model)) is None


def test_where_there_is_no_factor_the_density_is_zero():
    model = funnel()
    moved = moved_from(model, points(model))
    far = np.array([1.0, 1.0, -800.0])
    assert moved.potential(far) == np.inf and np.all(np.isnan(moved.gradient(far)))
    out = np.zeros(3)
    assert moved.native.potential_and_gradient(far, out) == np.inf and np.all(np.isnan(out))


class Twin(Model):
    """The potential of coordinates given the scales, without their way back."""

    inner: Compiled

    def __init__(self, inner):
        super().__init__(inner.dim)
        self.inner = inner

    @compiled(inline=False)
    def potential(self, x):
        return self.inner.total_potential(x)

    @compiled(inline=False)
    def add_gradient(self, x, out):
        self.inner.add_gradient(x, out)


def process_in(model, moved, around):
    sd = np.linspace(0.5, 0.9, model.dim)
    process = pdmp.HMC(model, step=0.5, metric=from_root(sd), around=np.full(model.dim, 0.1) if around else None)
    process.coordinates = moved
    return process


@pytest.mark.parametrize("around", [True, False])
def test_paths_are_those_of_the_other_coordinates(around):
    """States, means and names are the model's own, and each is where a path in (t, z) is at the same random numbers."""
    model = hierarchy()
    moved = moved_from(model, points(model))
    start = points(model, 2, seed=8)
    run = pdmp.sample(process_in(model, moved, around), initial=start, chains=2, events=25, seed=3, progress=False)
    twin = pdmp.sample(
        process_in(Twin(moved), None, around), initial=moved.standardised(start), chains=2, events=25, seed=3,
        progress=False,
    )  # fmt: skip
    for path, other in zip(run.trajectories, twin.trajectories, strict=True):
        assert len(np.unique(path.positions, axis=0)) > 15
        np.testing.assert_allclose(path.positions, moved.natural_points(other.positions), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(run["log_tau"].ravel(), run.draws()[..., 5].ravel())
    # A gradient here is one of all rows, and a potential at the end of each path another.
    assert run.records[0].counts[DATA] == model.n_data * twin.records[0].counts[DATA]


def test_the_same_bits_from_a_checkpoint_and_from_a_pickle(tmp_path):
    model = horseshoe()
    process = process_in(model, moved_from(model, points(model)), True)
    start, call = points(model, 2, seed=8), {"chains": 2, "seed": 5, "progress": False}
    whole = pdmp.sample(process, initial=start, events=24, **call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pdmp.sample(process, initial=start, events=9, checkpoint=tmp_path / "run", **call)
        resumed = pdmp.sample(process, initial=start, events=24, checkpoint=tmp_path / "run", **call)
    copied = pdmp.sample(pickle.loads(pickle.dumps(process)), initial=start, events=24, **call)
    for run in (resumed, copied):
        for path, other in zip(whole.trajectories, run.trajectories, strict=True):
            np.testing.assert_array_equal(path.positions, other.positions)
    other = process_in(model, moved_from(model, points(model, seed=11)), True)
    with pytest.raises(ValueError, match="checkpoint"):
        pdmp.sample(other, initial=start, events=24, checkpoint=tmp_path / "run", **call)


def learnt(model, reparametrise=True, chains=3):
    starts = find_starts(model, chains, np.random.default_rng(2))
    return learn_metric(model, starts, np.random.SeedSequence(4), reparametrise=reparametrise)


def test_the_warm_up_of_a_funnel(monkeypatch):
    """It runs in coordinates given the scale, where one path is a draw; what it hands on is of the model's own."""
    monkeypatch.setattr(metric, "FIRST_WINDOW", 60)
    monkeypatch.setattr(metric, "POINTS", 60)
    model, windows, kept = funnel(), [], metric.run_window

    def noted(process, *rest):
        windows.append((process.coordinates, len(process.centre) > 0, kept(process, *rest)))
        return windows[-1][2]

    monkeypatch.setattr(metric, "run_window", noted)
    found = learnt(model)
    coordinates = [c for c, _, _ in windows]
    assert coordinates[0] is None and None not in coordinates[-2:] and coordinates[-1] is not coordinates[-2]
    assert found.coordinates is coordinates[-1] and found.windows == len(windows) >= 3
    assert found.residual < 0.05 and not found.far and windows[-1][1] and found.around is not None
    run = windows[-1][2]
    number = -(-max(60, gradients_of(run) // metric.EACH) // run.chains)
    each = np.concatenate([path.discretise(number) for path in run.trajectories])
    np.testing.assert_allclose(found.visited, each, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.points, [path.positions[-1] for path in run.trajectories])
    assert found.gaussian.root.shape == (3, 3)
    gradients = np.array([model.gradient(x) for x in found.visited])
    np.testing.assert_allclose(found.gaussian.root, metric.fitted_gaussian(found.visited, gradients).root)
    assert found.diagonal().coordinates is None and found.neck is None
    process = pdmp.HMC.in_metric(model, found)
    assert process.coordinates is found.coordinates and process.metric is found.mass
    assert pdmp.HMC.in_metric(model, found, metric=1.0).coordinates is None
    assert "covariance of coordinates non-centred in part, by t, learnt in" in preparing.describe(process, found)


def test_coordinates_are_only_chosen_where_they_gain():
    model, rng = funnel(), np.random.default_rng(6)
    t = 3.0 * rng.normal(size=80)
    wide = np.column_stack([rng.normal(size=(80, 2)) * np.exp(0.5 * t)[:, None], t])
    found, cost = metric.coordinates_from(model, None, wide)
    assert found is not None and cost == 5 * metric.HESSIANS
    assert metric.coordinates_from(model, found, wide)[1] == 2 * metric.HESSIANS
    # A scale that is known well is none that widths depend on.
    narrow = pdmp.models.sum_of_terms(
        pdmp.Parameters(x=2, t=1),
        [e(lambda x, t: 0.5 * t + 0.5 * x**2 * e.exp(-t), at=[pdmp.Parameters(x=2, t=1).x[np.arange(2)],
                                                              pdmp.Parameters(x=2, t=1).t])],
        priors={"t": Normal(0.0, 0.1)},
    )  # fmt: skip
    t = 0.1 * rng.normal(size=80)
    tight = np.column_stack([rng.normal(size=(80, 2)) * np.exp(0.5 * t)[:, None], t])
    assert metric.coordinates_from(narrow, None, tight) == (None, 0)
    # Nor is one that moves what is narrow for another reason: the least variance that a Gaussian follows stays.
    assert not metric.gains(narrow, moved_from(narrow, tight), tight)
    assert metric.coordinates_from(pdmp.models.Gaussian([0.0], [1.0]), None, tight[:, :1])[0] is None


def test_a_row_that_was_not_looked_at_and_curves_the_other_way():
    """Of 200 rows some tell of their scale; elsewhere a path would be shut out of where H(t) has no root."""
    p, n = pdmp.Parameters(x=200, t=1), 200
    for odd, chosen in ((1.0, True), (-1.0, False)):
        side = np.ones(n)
        side[1] = odd
        rows = e(lambda s, x, t: t + 0.5 * s * x**2 * e.exp(-2.0 * t), [side], [p.x[np.arange(n)], p.t])
        model = pdmp.models.sum_of_terms(p, [rows], priors={"x": Normal(0.0, 0.1), "t": Normal(0.0, 1.0)})
        (part,) = parts = scaled_rows(model)
        assert len(part.rows) == n
        assert (noncentred(model, parts, 0.1 * np.random.default_rng(1).normal(size=(2, 201))) is not None) == chosen


def test_a_neck_is_named():
    rng = np.random.default_rng(7)
    t = 2.0 * rng.normal(size=200)
    x = np.column_stack([rng.normal(size=200), t, rng.normal(size=(200, 3)) * np.exp(0.5 * t)[:, None]])
    slopes = np.column_stack([x[:, 0], t / 4.0, x[:, 2:] * np.exp(-t)[:, None]])
    assert metric.neck_of(x, slopes) == 1
    assert metric.neck_of(x[:, [0, 2]], slopes[:, [0, 2]]) is None
    process = pdmp.HMC(pdmp.models.Gaussian([0.0], [1.0]), step=0.1)
    stats = {"divergences": 2, "mean_step": 0.125, "max_held": 0}
    said = process.report.warnings(process, stats)[0]
    assert said.endswith(
        "in which the scale of one parameter does not depend on another (non-centred, for a hierarchy)"
    )
    process.neck = "log_tau"
    assert process.report.warnings(process, stats) == [
        "2 Hamiltonian paths diverged: there are places where the posterior is too narrow for the step of 0.12, and "
        "averages may be wrong. What helps: a smaller step (`target_acceptance=0.95`, of pdmp.sample(model) or "
        "pdmp.HMC), or a parametrisation in which scales do not depend on log_tau, with which those of others change "
        "(non-centred, for a hierarchy)"
    ]
