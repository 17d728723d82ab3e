"""The metric: exact on Gaussians, free of scale, learnt until it has settled."""

import functools
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy
import scipy.sparse
import threadpoolctl

import pdmp
from pdmp.automatic import metric, preparing, start
from pdmp.automatic.metric import distance, fitted_gaussian, learn_metric, residual_gradient, spaced_points
from pdmp.automatic.start import Gaussian, find_starts
from pdmp.automatic.windows import LATER, WARMUP, ends, gradients_of, run_window
from pdmp.metric import Diagonal, LowRank, Sparse, covariance_of
from pdmp.models.base import Model
from pdmp.models.regressions.laplace import laplace
from pdmp.native import threads
from pdmp.native.classes import compiled
from pdmp.native.threads import one_thread
from tests.targets import HEAVY, Plane

pytestmark = pytest.mark.exact

MEAN = np.array([1.0, -200.0, 0.5])
PRECISION = np.array([[2.0, 0.01, 0.3], [0.01, 1.5e-4, 0.0], [0.3, 0.0, 5.0]])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)
COVARIANCE = np.linalg.inv(PRECISION)


def rng(seed=0):
    return np.random.default_rng(seed)


def seed(k=1):
    return np.random.SeedSequence(k)


@pytest.mark.parametrize("n", [5, 50])
def test_the_fit_to_a_gaussian_is_exact_wherever_the_points_are(n):
    x = MEAN + 3.0 + rng().normal(size=(n, 3)) @ np.array([[0.5, 3.0, 0.0], [0.1, -5.0, 0.2], [0.0, 1.0, 1.0]])
    found = fitted_gaussian(x, (x - MEAN) @ PRECISION)
    np.testing.assert_allclose(found.root @ found.root.T, COVARIANCE, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.centre, MEAN, rtol=1e-7)
    assert np.all(np.triu(found.root, 1) == 0.0)
    assert residual_gradient(found, x, (x - MEAN) @ PRECISION) < 1e-6


def test_the_diagonal_fit():
    precision = np.array([2.0, 1e-4, 30.0])
    x = MEAN + 1.0 + rng().normal(size=(9, 3))
    found = fitted_gaussian(x, (x - MEAN) * precision, dense=False)
    np.testing.assert_allclose(found.root**2, 1.0 / precision, rtol=1e-9)
    np.testing.assert_allclose(found.centre, MEAN, rtol=1e-6)
    assert residual_gradient(found, x, (x - MEAN) * precision) < 1e-6


def test_all_but_singular_correlations():
    """Two coordinates of correlation 1 - 1e-9, in units of 1e6 and 1e-6."""
    scale = np.array([1e6, 1e-6])
    covariance = scale[:, None] * np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]]) * scale
    root = np.linalg.cholesky(covariance)
    x = rng().normal(size=(40, 2)) @ root.T
    found = fitted_gaussian(x, np.linalg.solve(root.T, np.linalg.solve(root, x.T)).T)
    assert distance(root, found.root) < 1e-3


def test_the_directions_that_variances_miss():
    """Of a normal target they are found exactly where the points span them."""
    d, scale = 12, np.exp(rng(3).normal(size=12))
    directions = np.linalg.qr(rng().normal(size=(d, 2)))[0]
    middle = np.eye(d) + directions @ np.diag([80.0, 1.0 / 50.0 - 1.0]) @ directions.T
    covariance = scale[:, None] * middle * scale
    x = scale * (rng(1).normal(size=(60, d)) @ np.linalg.cholesky(middle).T)
    gradients = x @ np.linalg.inv(covariance)
    mass = metric.low_rank(scale, x, gradients)
    np.testing.assert_allclose(np.sort(mass.gains), [math.sqrt(1.0 / 50.0) - 1.0, 8.0], atol=0.2)
    np.testing.assert_allclose(mass.transform(mass.transposed(np.eye(d))), covariance, rtol=0.06, atol=0.06)
    flat = scale * rng(2).normal(size=(60, d))
    assert isinstance(metric.low_rank(scale, flat, flat / scale**2), Diagonal)


@pytest.mark.parametrize("n", [9, 40])
def test_directions_from_few_and_from_many_points(n):
    """The geometric mean of two covariances by roots of matrices, within the span of the points and in all of R^d."""
    d, scale = 30, np.exp(rng(3).normal(size=30))
    widths = np.r_[30.0, 20.0, 0.02, np.ones(d - 3)]
    whitened = np.sqrt(widths) * rng(1).normal(size=(n, d))
    mass = metric.low_rank(scale, scale * whitened, whitened / widths / scale + 3.0)
    centred = whitened - whitened.mean(axis=0)
    spread, slopes = (p.T @ p / n + metric.RIDGE * np.eye(d) for p in (centred, centred / widths))
    half = scipy.linalg.sqrtm(spread)
    middle = half @ np.linalg.inv(scipy.linalg.sqrtm(half @ slopes @ half)) @ half
    values, vectors = np.linalg.eigh(middle)
    values = np.where(np.abs(np.log(values)) > math.log(metric.CUTOFF), values, 1.0)
    expected = scale[:, None] * ((vectors * values) @ vectors.T) * scale
    assert len(mass.gains) == np.count_nonzero(values != 1.0)
    np.testing.assert_allclose(mass.transform(mass.transposed(np.eye(d))), expected, atol=1e-5 * np.abs(expected).max())


def test_windows_are_fitted_on_one_thread(monkeypatch):
    """Of both kinds of metric; and BLAS has its threads while chains run, whose models may use them."""
    seen = []

    def noted(name):
        kept = getattr(metric, name)

        def call(*given):
            info = threadpoolctl.threadpool_info()
            seen.append((name, {each["num_threads"] for each in info if each["user_api"] == "blas"}))
            return kept(*given)

        monkeypatch.setattr(metric, name, call)

    for name in ("run_window", "fitted_gaussian", "low_rank"):
        noted(name)
    monkeypatch.setattr(metric, "ENTRIES", 0)
    with threadpoolctl.threadpool_limits(2, "blas"):
        for dense in (200, 0):
            monkeypatch.setattr(metric, "DENSE", dense)
            monkeypatch.setattr(start, "DENSE", dense)
            learn_metric(GAUSSIAN, find_starts(GAUSSIAN, 2, rng()), np.random.SeedSequence(1))
    assert {name for name, _ in seen} == {"run_window", "fitted_gaussian", "low_rank"}
    assert all(threads == ({2} if name == "run_window" else {1}) for name, threads in seen)


def grouped():
    rng = np.random.default_rng(1)
    return {"y": rng.normal(size=60), "x": rng.normal(size=60), "g": np.repeat(np.arange(12), 5)}


ALONE = {
    "starts": lambda: find_starts(pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 2), 2, rng()),
    "terms": lambda: pdmp.regression({"y": "y ~ x + (1 | g)", "sigma": "~ x"}, grouped(), sample=False),
    "laplace": lambda: laplace(pdmp.regression("y ~ x", grouped(), select="all", sample=False).model),
}


@pytest.mark.parametrize("name", ALONE)
def test_starts_and_normal_approximations_are_on_one_thread(name, monkeypatch):
    """But not the gradients of a search for starts, which a user may have written."""
    seen = []

    def noted(function, *given, **options):
        seen.append({each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"})
        return function(*given, **options)

    for each in ("eigh", "inv", "solve"):
        monkeypatch.setattr(np.linalg, each, functools.partial(noted, getattr(np.linalg, each)))
    with threadpoolctl.threadpool_limits(2, "blas"):
        ALONE[name]()
    assert seen and all(threads == {1} for threads in seen)


def test_libraries_of_linear_algebra_are_looked_for_once():
    """It takes as long as a small fit does between two looks; and those of SciPy are among them."""
    threads._libraries.cache_clear()
    for _ in range(3):
        with one_thread():
            info = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
            assert {each["num_threads"] for each in info} == {1}
    assert threads._libraries.cache_info().misses == 1
    assert len(threads._libraries().info()) == len(info)


def test_fits_on_one_thread():
    """BLAS has its threads again when the last of several fits ends, in whatever order and however they do."""

    def threads():
        return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, "blas"):
        before = threads()
        assert set(before) == {2}
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert set(threads()) == {1}
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert threads() == before


def test_directions_are_combined():
    """(I + V C Vᵀ)² in the coordinates of another mass, against products of matrices."""
    scale = np.exp(rng(3).normal(size=6))
    first, second = (np.linalg.qr(rng(k).normal(size=(6, 2)))[0].T for k in range(2))
    mass = LowRank(scale, first, np.array([4.0, -0.7]))
    further = LowRank(np.ones(6), second, np.array([2.0, 0.9]))
    found = metric.combined(mass, further)
    root = mass.transform(np.eye(6)).T @ further.transform(np.eye(6)).T
    np.testing.assert_allclose(found.transform(found.transposed(np.eye(6))), root @ root.T, rtol=1e-10, atol=1e-12)
    assert metric.combined(mass, Diagonal(np.ones(6))) is mass
    alone = metric.combined(Diagonal(scale), further)
    np.testing.assert_allclose(alone.transform(np.eye(6)), scale * further.transform(np.eye(6)))


def test_of_many_directions_those_are_kept_that_are_farthest_from_what_they_were(monkeypatch):
    """One that is a tenth as wide before one that is half as wide again."""
    monkeypatch.setattr(metric, "RANK", 1)
    wide, narrow = (LowRank(np.ones(4), np.eye(4)[k : k + 1], np.array([g])) for k, g in ((0, 0.5), (2, -0.9)))
    for found in (metric.combined(wide, narrow), metric.combined(narrow, wide)):
        np.testing.assert_allclose(found.transform(np.eye(4)), np.diag([1.0, 1.0, 0.1, 1.0]), atol=1e-12)


class Ridge(Model):
    """U = Σ xⱼ² cosh(x₀) / 2 + x₀² / 2: an arrow, whose mean over x₀ is not its value at 0; not definite far out."""

    def __init__(self):
        super().__init__(4)

    @compiled
    def potential(self, x):
        return 0.5 * (x[1] ** 2 + 2.0 * x[2] ** 2 + 3.0 * x[3] ** 2) * math.cosh(x[0]) + 0.5 * x[0] ** 2

    @compiled
    def add_gradient(self, x, out):
        out[0] += 0.5 * (x[1] ** 2 + 2.0 * x[2] ** 2 + 3.0 * x[3] ** 2) * math.sinh(x[0]) + x[0]
        for j in range(1, 4):
            out[j] += j * x[j] * math.cosh(x[0])

    def sparse_hessian(self, x):
        out = np.diag(np.arange(4.0) * math.cosh(x[0]))
        out[0, 0] = 1.0 + 0.5 * (x[1] ** 2 + 2.0 * x[2] ** 2 + 3.0 * x[3] ** 2) * math.cosh(x[0])
        out[0, 1:] = out[1:, 0] = np.arange(1, 4) * x[1:] * math.sinh(x[0])
        return scipy.sparse.csc_array(out)


def test_the_mean_of_a_sparse_hessian():
    """Over points that are not alike; made definite by its own diagonal where it is not; None where it would fill."""
    model, points = Ridge(), rng(5).normal(size=(7, 4))
    mean = sum(model.sparse_hessian(x).toarray() for x in points) / 7.0
    np.testing.assert_allclose(metric.mean_hessian(model, points).product(np.eye(4)), mean, rtol=1e-10, atol=1e-12)
    many = np.repeat(points, 100, axis=0)  # of which 50 are looked at, the first and the last among them
    taken = many[np.linspace(0, 699, 50).astype(int)]
    expected = sum(model.sparse_hessian(x).toarray() for x in taken) / 50.0
    np.testing.assert_allclose(metric.mean_hessian(model, many).product(np.eye(4)), expected, rtol=1e-10, atol=1e-12)

    steep = np.array([[2.0, 3.0, 0.0, 0.0]])
    hessian = model.sparse_hessian(steep[0]).toarray()
    assert np.linalg.eigvalsh(hessian)[0] < 0.0
    found = metric.mean_hessian(model, steep).product(np.eye(4)) - hessian
    added = found[0, 0] / hessian[0, 0]
    np.testing.assert_allclose(found, np.diag(np.diag(hessian)) * added, atol=1e-9)
    assert math.log2(added / metric.RIDGE) == pytest.approx(round(math.log2(added / metric.RIDGE)), abs=1e-6)
    half = hessian + 0.5 * found
    assert np.linalg.eigvalsh(half)[0] <= 0.0


def test_no_sparse_metric_where_its_factor_is_full(monkeypatch):
    monkeypatch.setattr(metric, "ENTRIES", 1)
    assert metric.mean_hessian(Ridge(), rng(5).normal(size=(3, 4))) is None


def test_the_change_of_a_sparse_metric():
    """√(mean (λ - 1)²) of M_old⁻¹ M_new, here diagonal in the old coordinates, so that every direction gives it."""
    old = pdmp.Metric(scipy.sparse.diags_array([1.0, 4.0, 9.0])).made(3)
    new = pdmp.Metric(scipy.sparse.diags_array([1.1, 4.0, 7.2])).made(3)
    assert metric.change_of(old, new) == pytest.approx(math.sqrt((0.1**2 + 0.2**2) / 3.0))
    assert metric.change_of(Diagonal(np.ones(3)), old) == pytest.approx(math.sqrt((3.0**2 + 8.0**2) / 3.0))


def test_many_dimensions_with_a_sparse_hessian(monkeypatch):
    """The metric is the mean Hessian of the last window's points, and steps are around the Gaussian that it makes."""
    monkeypatch.setattr(metric, "DENSE", 1)
    monkeypatch.setattr(start, "DENSE", 1)
    precision = 2.2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    model = pdmp.models.Gaussian([1.0, 0.0, -1.0, 5.0], scipy.sparse.csr_array(precision))
    found = learn_metric(model, find_starts(model, 3, rng()), seed())
    assert isinstance(found.mass, Sparse) and found.windows == 1 and found.change < 1e-9
    np.testing.assert_allclose(covariance_of(found.mass), np.linalg.inv(precision), rtol=1e-9)
    np.testing.assert_allclose(found.around, [1.0, 0.0, -1.0, 5.0], atol=1e-9)
    kept, runs = metric.run_window, []

    def noted(process, points, seed, length, *rest):
        runs.append((length, kept(process, points, seed, length, *rest)))
        return runs[-1][1]

    monkeypatch.setattr(metric, "run_window", noted)
    ridge = learn_metric(Ridge(), find_starts(Ridge(), 3, rng()), seed())
    # Twice as long from the first as where variances are learnt, as the step has to adapt; a Hessian costs a gradient.
    assert [length for length, _ in runs] == [4 * metric.FIRST_WINDOW * 2**k for k in range(ridge.windows)]
    points = sum(len(spaced_points(Ridge(), run)[0]) for _, run in runs)
    assert ridge.gradients == sum(gradients_of(run) for _, run in runs) + points + metric.HESSIANS * ridge.windows
    some = ridge.visited[np.linspace(0, len(ridge.visited) - 1, 50).astype(int)]
    expected = sum(Ridge().sparse_hessian(x).toarray() for x in some) / 50.0
    np.testing.assert_allclose(ridge.mass.product(np.eye(4)), expected, rtol=1e-9, atol=1e-12)
    assert ridge.settled and ridge.change > 0.0
    process = pdmp.HMC.in_metric(Ridge(), ridge)
    assert process.metric is ridge.mass
    assert "the mean of the sparse Hessian learnt in" in preparing.describe(process, ridge)


def test_a_singular_direction_is_limited():
    x, gradients = rng().normal(size=(30, 2)), rng(1).normal(size=(30, 2))
    gradients[:, 1] *= 1e-9
    found = fitted_gaussian(x, gradients)
    values = np.linalg.eigvalsh(found.root @ found.root.T)
    assert values[-1] < 2.0 * metric.LARGEST_VALUE


def test_residual_gradient_of_a_wrong_gaussian():
    x = rng().normal(size=(10, 2))
    twice = Gaussian(np.zeros(2), np.array([[2.0, 0.0], [0.0, 2.0]]))
    # Lᵀ∇U - z = 2 x - x / 2.
    assert residual_gradient(twice, x, x) == pytest.approx(1.5 * np.sqrt((x**2).mean()))
    assert residual_gradient(Gaussian(twice.centre, np.full(2, 2.0)), x, x) == pytest.approx(
        1.5 * np.sqrt((x**2).mean())
    )


def test_distance_of_covariances():
    a, b, change = (np.linalg.cholesky(m @ m.T) for m in rng().normal(size=(3, 4, 4)))
    assert distance(a, a) == pytest.approx(0.0, abs=1e-12)
    assert distance(a, b) == pytest.approx(distance(b, a))
    assert distance(change @ a, change @ b) == pytest.approx(distance(a, b))
    assert distance(a, 3.0 * a) == pytest.approx(2.0 * math.log(3.0))
    assert distance(np.array([1.0, 2.0]), np.array([1.0, 2.0 * math.e])) == pytest.approx(2.0 / math.sqrt(2.0))


@pytest.mark.parametrize(
    ("far", "change", "is_settled"),
    [(False, 0.499, True), (False, 0.501, False), (True, 0.699, True), (True, 0.701, False)],
)
def test_which_change_of_the_covariance_is_small(far, change, is_settled):
    names = ("gaussian", "residual", "points", "step", "far", "mass", "change", "windows", "gradients", "visited")
    made = metric.Metric(**dict.fromkeys(names) | {"far": far, "change": change})
    assert made.settled == is_settled


def test_chains_that_are_astray_have_steps_below_three_tenths_of_the_median():
    """And started on a path that did not converge."""
    steps = np.array([0.2, 0.0599, 0.0601, 0.0599, 0.4, 0.2, 0.9])
    run = SimpleNamespace(records=[SimpleNamespace(statistics={"mean_step": step}) for step in steps])
    starts = SimpleNamespace(converged=np.arange(7) == 3)
    assert np.flatnonzero(metric.astray(run, starts)).tolist() == [1]


def test_points_have_escaped_that_are_ten_thousand_times_further_out(monkeypatch):
    """Than starts, or than 1."""
    monkeypatch.setattr(metric, "along_ridge", lambda model, x: "a ridge")
    for starts, limit in (([[0.5, -0.2], [0.0, 0.1]], 1e4), ([[0.5, -30.0], [0.0, 0.1]], 3e5)):
        for factor, said in ((1.01, "a ridge"), (0.99, "")):
            x = np.array([[1.0, -0.4 * factor * limit], [3.0, 0.6 * factor * limit]])
            assert metric.escaped(None, x, np.array(starts)) == said
    assert metric.escaped(None, np.array([[np.inf, 0.0], [1.0, 0.0]]), np.zeros((2, 2))) == ""


@pytest.mark.parametrize(("share", "neck"), [(0.199, None), (0.201, 1)])
def test_a_neck_explains_a_fifth_of_the_sizes_of_gradients(share, neck):
    """Of two coordinates of which the first has nothing of the other's gradients."""
    u, v, w, z = 10.0 * np.linalg.qr(np.column_stack([np.ones(100), rng().standard_normal((100, 4))]))[0][:, 1:].T
    logs = np.column_stack([math.sqrt(share) * v + math.sqrt(1.0 - share) * w, 3.0 * z])
    signs = np.where(np.arange(200).reshape(100, 2) % 3, 1.0, -1.0)
    assert metric.neck_of(np.column_stack([u, 7.0 + v]), signs * np.exp(logs)) == neck


def test_windows_go_on_until_it_has_settled(monkeypatch):
    monkeypatch.setattr(metric, "TOLERANCE", -1.0)
    monkeypatch.setattr(metric, "FAR_TOLERANCE", -1.0)
    monkeypatch.setattr(metric, "FIRST_WINDOW", 20)
    found = learn_metric(GAUSSIAN, find_starts(GAUSSIAN, 2, rng()), seed())
    assert found.windows == metric.WINDOWS and not found.settled
    # Ten for each dimension in the first, and each twice as long.
    assert 0 <= found.gradients - 2 * 30 * (2**metric.WINDOWS - 1) - metric.WINDOWS * metric.POINTS < 200


def test_later_windows_begin_with_the_last_step_and_the_last_two_are_fitted_together(monkeypatch):
    for name in ("TOLERANCE", "FAR_TOLERANCE"):
        monkeypatch.setattr(metric, name, -1.0)
    monkeypatch.setattr(metric, "FIRST_WINDOW", 200)
    monkeypatch.setattr(metric, "WINDOWS", 4)
    windows, own, fitted, steps = [], [], [], []
    run, spaced, fit = metric.run_window, metric.spaced_points, metric.fitted_gaussian

    def noted(process, points, child, length, warmup):
        steps.append(process.step)
        windows.append((run(process, points, child, length, warmup), warmup))
        return windows[-1][0]

    monkeypatch.setattr(metric, "run_window", noted)
    monkeypatch.setattr(metric, "spaced_points", lambda *a: own.append(spaced(*a)) or own[-1])
    monkeypatch.setattr(metric, "fitted_gaussian", lambda *a: fitted.append(a[:2]) or fit(*a))
    learn_metric(GAUSSIAN, find_starts(GAUSSIAN, 2, rng()), seed())
    assert [warmup for _, warmup in windows] == [WARMUP, LATER, LATER, LATER] == [0.4, 0.2, 0.2, 0.2]
    assert steps[1:] == [metric.step_of(found) for found, _ in windows[:-1]]
    # The first goes from the starts to the mass, and is left out.
    together = [
        own[0],
        own[1],
        *([np.concatenate(both) for both in zip(*own[k - 1 : k + 1], strict=True)] for k in (2, 3)),
    ]
    for found, expected in zip(fitted, together, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("dense", [True, False])
def test_a_window_without_a_move_changes_nothing(dense, monkeypatch):
    """At the first window the step is far too large, and everything is rejected."""
    if not dense:
        monkeypatch.setattr(metric, "DENSE", 2)
        monkeypatch.setattr(start, "DENSE", 2)
    monkeypatch.setattr(metric, "WINDOWS", 2)
    monkeypatch.setattr(metric, "ENTRIES", 0)
    kept, used = metric.hamiltonian, []

    def stuck(model, mass, far, step=None, **rest):
        used.append(mass.root)
        if len(used) == 1:
            step, rest["around"] = 1e9, None
        return kept(model, mass, far, step, **rest)

    monkeypatch.setattr(metric, "hamiltonian", stuck)
    starts = find_starts(GAUSSIAN, 2, rng())
    found = learn_metric(GAUSSIAN, starts, seed())
    np.testing.assert_array_equal(used[0], used[1])
    assert found.windows == 2 and (found.settled or not dense) and np.isfinite(found.change)


def test_the_step_is_the_geometric_mean_over_the_chains(monkeypatch):
    kept, runs = metric.run_window, []
    monkeypatch.setattr(metric, "run_window", lambda *a: runs.append(kept(*a)) or runs[-1])
    heavy = Plane(HEAVY)
    found = learn_metric(heavy, find_starts(heavy, 3, rng(), initial=np.ones(2)), seed(0))
    steps = [record.statistics["mean_step"] for record in runs[-1].records]
    assert len(set(steps)) == 3 and found.step == pytest.approx(np.prod(steps) ** (1.0 / 3.0))


def test_spaced_points_leave_out_what_is_not_finite():
    cut = pdmp.models.from_function(lambda x: (0.5 * x @ x, np.where(x[0] > 1.0, np.nan, x)), 2)
    run = run_window(metric.hamiltonian(GAUSSIAN, metric.from_root(np.eye(3)), False), np.zeros((2, 3)), seed(), 30)
    run.dim = 2
    paths = run.trajectories
    x, gradients = spaced_points(cut, FakeRun([FakePath(p) for p in paths], run.records))
    assert len(x) == len(gradients) < 2 * metric.POINTS // 2 and np.all(x[:, 0] <= 1.0)
    np.testing.assert_array_equal(x, gradients)


def test_a_window_has_as_many_points_as_its_length_bears(monkeypatch):
    """One for 32 gradients, where a covariance is learnt; of the chains that are not left out."""
    run = run_window(metric.hamiltonian(GAUSSIAN, metric.from_root(np.eye(3)), False), np.zeros((3, 3)), seed(), 1_800)
    each = -(-(gradients_of(run) // 32) // 3)
    assert each > metric.POINTS / 3
    parts = [path.discretise(each) for path in run.trajectories]
    x, gradients = spaced_points(GAUSSIAN, run)
    np.testing.assert_array_equal(x, np.concatenate(parts))
    np.testing.assert_allclose(gradients[-1], GAUSSIAN.gradient(x[-1]))
    np.testing.assert_array_equal(
        spaced_points(GAUSSIAN, run, but=np.array([False, True, False]))[0], np.concatenate([parts[0], parts[2]])
    )
    monkeypatch.setattr(metric, "DENSE", 2)
    assert len(spaced_points(GAUSSIAN, run)[0]) == 3 * -(-metric.POINTS // 3)


def test_a_chain_that_started_where_the_density_is_narrow_starts_beside_another(monkeypatch):
    """After the first two windows, if no minimum is there; what it saw is not learnt from."""
    starts = find_starts(GAUSSIAN, 4, rng())._replace(converged=np.array([False, False, True, False]))
    kept, runs, begun, but = metric.run_window, [], [], []

    def noted(process, points, *rest):
        begun.append(points)
        runs.append(kept(process, points, *rest))
        steps = [[0.8, 0.11, 0.1, 0.9], [0.1, 0.9, 0.8, 1.0], [0.9, 0.8, 1.0, 0.1]][len(runs) - 1]
        for record, step in zip(runs[-1].records, steps, strict=True):
            record.statistics["mean_step"] = step
        return runs[-1]

    spaced = metric.spaced_points
    monkeypatch.setattr(metric, "run_window", noted)
    monkeypatch.setattr(metric, "spaced_points", lambda *a: but.append(list(a[3])) or spaced(*a))
    monkeypatch.setattr(metric, "TOLERANCE", -1.0)
    monkeypatch.setattr(metric, "FAR_TOLERANCE", -1.0)
    monkeypatch.setattr(metric, "WINDOWS", 3)
    learn_metric(GAUSSIAN, starts, seed())
    # The median step is 0.455: those of chains 1 and 2 are below 0.3 of it, but chain 2 is at a minimum.
    assert but == [[False, True, False, False], [True, False, False, False], [False] * 4]
    first, second = runs[0].trajectories, runs[1].trajectories
    middle = first[0].at(0.5 * (first[0].times[0] + first[0].end))
    later = second[1].at(0.5 * (second[1].times[0] + second[1].end))
    np.testing.assert_array_equal(begun[1], [first[0].at(first[0].end), middle, *(p.at(p.end) for p in first[2:])])
    np.testing.assert_array_equal(begun[2], [later, *(path.at(path.end) for path in second[1:])])


def test_chains_that_are_moved_start_along_others_in_turn():
    run = run_window(metric.hamiltonian(GAUSSIAN, metric.from_root(np.eye(3)), False), np.zeros((5, 3)), seed(), 90)
    run.records[1].warmup = run.records[1].end  # it did not move
    moved = metric.beside(run, np.zeros((5, 3)), np.array([True, False, False, True, False]))
    halfway = [path.at(0.5 * (path.times[0] + path.end)) for path in run.trajectories]
    np.testing.assert_array_equal(moved, [halfway[2], np.zeros(3), np.zeros(3), halfway[4], np.zeros(3)])
    moved = metric.beside(run, np.zeros((5, 3)), np.array([True, True, True, True, False]))
    np.testing.assert_array_equal(moved, [*[halfway[4]] * 4, np.zeros(3)])  # more than there are others


class FakePath:
    """The first two coordinates of a path, standardised."""

    def __init__(self, path):
        self.path = path

    def discretise(self, n):
        x = self.path.discretise(n)[:, :2]
        return (x - x.mean(axis=0)) / x.std(axis=0)


class FakeRun:
    def __init__(self, trajectories, records):
        self.trajectories, self.records, self.chains = trajectories, records, len(records)
        self.info = {"n_data": 1}


def test_a_gradient_that_is_not_finite_where_chains_go():
    trap = pdmp.models.from_function(lambda x: (0.5 * x @ x, x.copy()), 2)
    starts = find_starts(trap, 2, rng())
    trap.callback.function = lambda x: (0.5 * x @ x, np.full(2, np.nan))
    with pytest.raises(pdmp.SamplingError, match="failed in window 1") as caught:
        learn_metric(trap, starts, seed())
    assert caught.value.run.chains == 2


@pytest.mark.filterwarnings("ignore")  # that the posterior is improper, and overflow
def test_chains_that_go_without_end_are_a_failure_in_words():
    """They go so far that the square of a coordinate is beyond floats."""
    p = pdmp.Parameters(b=1)
    model = pdmp.models.sum_of_terms(p, [pdmp.terms(lambda z: np.logaddexp(0, z), at=[p.b])])
    said = r"^the warm-up of SumOfTerms failed in window \d: b has a spread of (inf|nan), as of an improper"
    with pytest.raises(pdmp.SamplingError, match=said) as caught:
        pdmp.sample(model, gradients=3_000, chains=2, seed=1)
    assert caught.value.run is not None


def test_a_coordinate_that_stands_still_is_a_failure_in_words(monkeypatch):
    """As the mean of equal numbers where their spread goes to 0."""
    model = pdmp.models.Gaussian(np.zeros(3), np.ones(3))
    points = rng().standard_normal((40, 3)) * [1.0, 0.0, 1.0]
    monkeypatch.setattr(metric, "spaced_points", lambda *_: (points, points))
    with pytest.raises(
        pdmp.SamplingError, match=r"failed in window 1: x\[1\] has a spread of 0, as of .*, or one too narrow"
    ):
        learn_metric(model, find_starts(model, 2, rng()), seed())


@pytest.mark.filterwarnings("ignore")  # of the logarithm of 0
def test_points_in_a_plane_are_a_failure_in_words(monkeypatch):
    """As where chains go far along a ridge, and all else is lost in rounding: the covariance has no inverse."""
    model = pdmp.models.Gaussian(np.zeros(2), np.ones(2))
    singular = metric.fitted_gaussian(*2 * (rng().standard_normal((40, 2)),), True)
    singular.root[:] = [[1.0, 0.0], [-1.0, 0.0]]
    monkeypatch.setattr(metric, "fitted_gaussian", lambda *_: singular)
    with pytest.raises(pdmp.SamplingError, match="window 1: its points go ever further along .* is improper along"):
        learn_metric(model, find_starts(model, 2, rng()), seed())


def test_what_a_gradient_raises_in_a_window_is_said():
    """In a run it is a failure; a window goes on with the other chains, unless the program is to end."""
    process, starts = pdmp.BPS(pdmp.models.from_function(up_to_two, dim=1)), np.array([[0.0], [1.9], [0.0]])
    seed = np.random.SeedSequence
    text = r"in the warm-up the gradient of FunctionModel raised ValueError: above 2\. The chains that met this ended"
    with pytest.warns(UserWarning, match=text):
        run = run_window(process, starts, seed(3), 5)
    assert sorted(record.stopped == "failed" for record in run.records) == [False, False, True]
    with pytest.raises(SystemExit, match="above 1.95"):
        run_window(pdmp.BPS(pdmp.models.from_function(with_an_exit, dim=1)), starts, seed(3), 5)


def test_a_chain_that_failed_in_a_window_goes_on_from_where_it_started():
    path = SimpleNamespace(end=7.0, at=lambda t: np.array([t]))
    records = [SimpleNamespace(stopped=why, length=1.0 * far) for why, far in [("failed", 1), ("time", 1), ("time", 0)]]
    run, starts = SimpleNamespace(trajectories=3 * [path], records=records), np.array([[1.0], [2.0], [3.0]])
    assert ends(run, starts).tolist() == [[1.0], [7.0], [3.0]]


def up_to_two(x):
    if x[0] > 2.0:
        raise ValueError("above 2")
    return 0.5 * x @ x, x


def with_an_exit(x):
    if x[0] > 1.95:
        sys.exit("above 1.95")
    return up_to_two(x)


def ridge(x):
    both = np.outer([1.0, 1000.0], [1.0, 1000.0])
    return 0.5 * x @ both @ x, both @ x


def test_a_ridge_without_an_end_is_named(monkeypatch):
    """Of points that are further apart in one direction than floats tell of the other; where a fit fails, too."""
    model = pdmp.models.from_function(ridge, 2)
    x = np.outer(np.linspace(-1e9, 1e9, 40), [1.0, -0.001]) + 1e-3 * rng().standard_normal((40, 2))
    said = metric.along_ridge(model, x)
    assert said.startswith(
        "its points go ever further along the direction +1 x[0] -0.001 x[1]: the density is improper"
    )
    assert (
        metric.escaped(model, x, np.zeros((2, 2))) == said and metric.escaped(model, 1e-9 * x, np.zeros((2, 2))) == ""
    )

    def singular(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(metric, "residual_gradient", singular)
    monkeypatch.setattr(metric, "along_ridge", lambda model, x: "along a ridge")
    with pytest.raises(pdmp.SamplingError, match="failed in window 1: along a ridge"):
        learn_metric(GAUSSIAN, find_starts(GAUSSIAN, 2, rng()), seed())


@pytest.mark.parametrize(("off", "windows"), [(0.04, 1), (0.15, 2)])
def test_variances_of_the_first_window_replace_those_of_starts(off, windows, monkeypatch):
    """Above the dimensions of full covariances, if they are a tenth apart: of a normal target they are exact."""
    monkeypatch.setattr(metric, "DENSE", 2)
    monkeypatch.setattr(metric, "ENTRIES", 0)  # so that its Hessian is not the metric
    monkeypatch.setattr(metric, "FIRST_WINDOW", 60)
    sd = np.array([0.5, 1.0, 4.0, 0.1])
    target = pdmp.models.Gaussian(np.zeros(4), sd**-2)
    found = find_starts(target, 3, rng())
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    starts = found._replace(gaussian=Gaussian(np.zeros(4), sd * np.exp(0.5 * off * signs)))
    learnt = learn_metric(target, starts, seed())
    assert learnt.windows == windows and learnt.settled
    expected = sd if windows == 2 else sd * np.exp(0.5 * off * signs)
    np.testing.assert_allclose(np.sqrt(covariance_of(learnt.mass)), expected, rtol=1e-8)
