"""Targets that users of samplers test on: derivatives, factors, what clocks use of them, and moments by quadrature."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.models import (
    Banana,
    EightSchools,
    Funnel,
    Gaussian,
    GaussianMarkovRandomField,
    GaussianMixture,
    HierarchicalNormal,
    LogGaussianCox,
)
from tests.checks import assert_unbiased, plain_only
from tests.targets import BANANA, MIXTURE, Plane

pytestmark = [pytest.mark.exact, plain_only]


def ring(n, precision=1.0):
    return GaussianMarkovRandomField(nx.cycle_graph(n), tau=precision, kappa=0.8)


def cox():
    field = GaussianMarkovRandomField(nx.grid_2d_graph(2, 3), tau=2.0, kappa=0.7)
    return LogGaussianCox([[3, 0, 1], [7, 2, 0]], field.hessian(), mean=0.3, area=1.5)


MODELS = {
    "banana": Banana,
    "twisted": lambda: Banana(4, scale=10.0, bend=-0.03, noise=1.0),
    "funnel": lambda: Funnel(4, scale=1.5),
    "mixture": lambda: GaussianMixture(
        [[-1.0, 0.5], [1.0, 0.0], [0.0, 2.0]],
        [[[1.0, 0.3], [0.3, 0.5]], [[0.4, 0.0], [0.0, 2.0]], [[0.7, -0.2], [-0.2, 0.6]]],
        weights=[1.0, 2.0, 5.0],
    ),
    "field": lambda: ring(5),
    "schools": EightSchools,
    "schools centred": lambda: EightSchools(centred=True),
    "cox": cox,
}


def points(model, n=4):
    return np.random.default_rng(1).standard_normal((n, model.dim))


def half_cauchy(tau, scale):
    return stats.halfcauchy(scale=scale).logpdf(tau)


def log_density(name, model, x):
    """Independently, by scipy's densities; up to a constant."""
    normal = stats.norm.logpdf
    if name in ("banana", "twisted"):
        s, b, n = model.scale, model.bend, model.noise
        return normal(x[0], 0.0, s) + normal(x[1], b * x[0] ** 2, n) + normal(x[2:]).sum()
    if name == "funnel":
        return normal(x[0], 0.0, 1.5) + normal(x[1:], 0.0, math.exp(x[0] / 2.0)).sum()
    if name == "mixture":
        parts = zip((0.125, 0.25, 0.625), model.means, model.covariances, strict=True)
        return math.log(sum(w * stats.multivariate_normal(m, s).pdf(x) for w, m, s in parts))
    if name == "field":
        return -0.5 * sum((x[i] - x[(i + 1) % 5]) ** 2 for i in range(5)) - 0.5 * 0.64 * float(x @ x)
    if name == "cox":
        grid = (x - 0.3).reshape(2, 3)
        steps = [np.diff(grid, axis=0), np.diff(grid, axis=1)]
        prior = -0.5 * 2.0 * (sum((s**2).sum() for s in steps) + 0.49 * (grid**2).sum())
        return prior + stats.poisson.logpmf([3, 0, 1, 7, 2, 0], 1.5 * np.exp(x)).sum()
    mu, tau, z = x[0], math.exp(x[1]), x[2:]
    if model.centred:
        theta, prior = z, normal(z, mu, tau).sum()
    else:
        theta, prior = mu + tau * z, normal(z).sum()
    prior += normal(mu, 0.0, 5.0) + half_cauchy(tau, 5.0) + math.log(tau)
    return prior + normal(model.y, theta, model.sigma).sum()


def assert_derivatives(model, x, step=1e-5):
    """The gradient is that of the potential, the Hessian that of the gradient."""
    steps = step * np.eye(model.dim)
    gradient = [(model.potential(x + h) - model.potential(x - h)) / (2.0 * step) for h in steps]
    hessian = [(model.gradient(x + h) - model.gradient(x - h)) / (2.0 * step) for h in steps]
    scale = 1.0 + np.abs(model.hessian(x)).max()
    assert np.allclose(model.gradient(x), gradient, rtol=1e-7, atol=1e-7 * scale)
    assert np.allclose(model.hessian(x), hessian, rtol=1e-7, atol=1e-7 * scale)


@pytest.mark.parametrize("name", MODELS)
def test_potential_and_derivatives(name):
    model = MODELS[name]()
    x = points(model)
    gaps = [model.potential(a) + log_density(name, model, a) for a in x]
    assert np.allclose(gaps, gaps[0], rtol=1e-11)
    for a in x:
        assert_derivatives(model, a)
    assert np.allclose(model.curvatures(x[0]), np.diag(model.hessian(x[0])), rtol=1e-12)


def test_field_is_the_laplacian_of_its_graph():
    graph = nx.Graph([("a", "b", {"weight": 2.0}), ("b", "c"), ("c", "c")])
    graph.add_node("d")
    field = GaussianMarkovRandomField(graph, {"d": 4.0, "b": 2.0, "c": 3.0, "a": 1.0}, tau=3.0, kappa=0.5)
    assert type(field) is Gaussian and field.nodes == ["a", "b", "c", "d"]
    graph.remove_edge("c", "c")
    expected = 3.0 * (nx.laplacian_matrix(graph).toarray() + 0.25 * np.eye(4))
    assert np.allclose(field.hessian(), expected, rtol=1e-14) and np.array_equal(field.mean, [1.0, 2.0, 3.0, 4.0])
    assert len(field.neighbours()[1]) == 4 + 2 * 2  # zeros are not stored
    run = pdmp.sample(pdmp.ZigZag(field), events=50, seed=1)
    assert run.stats["thinned"] == 0  # its clocks are inverted


# ---------------------------------------------------------------------------------------------------------------
# Moments


def grid_moments(model, *axes):
    """Mean and covariance of two coordinates by the trapezium rule, from the potential alone."""
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    potential = np.array([model.native.total_potential(a) for a in x])
    weight = np.exp(potential.min() - potential)
    weight /= weight.sum()
    mean = weight @ x
    return mean, (weight * (x - mean).T) @ (x - mean)


@pytest.mark.parametrize(
    ("model", "low", "high", "n"),
    [
        (Banana(bend=0.7, scale=0.9, noise=0.6), (-5.5, -3.5), (5.5, 20.0), (80, 160)),
        (Funnel(2, scale=0.4), (-2.6, -11.0), (2.6, 11.0), (50, 240)),
        (MODELS["mixture"](), (-7.0, -10.0), (7.0, 10.0), (90, 110)),
    ],
    ids=["banana", "funnel", "mixture"],
)
def test_moments_by_quadrature(model, low, high, n):
    axes = [np.linspace(*part) for part in zip(low, high, n, strict=True)]
    mean, covariance = grid_moments(model, *axes)
    assert np.allclose(model.moments()[0], mean, atol=1e-6) and np.allclose(model.moments()[1], covariance, atol=1e-5)


@pytest.mark.parametrize(
    "model", [Banana(3), Funnel(3, scale=0.8), MODELS["mixture"]()], ids=lambda m: type(m).__name__
)
def test_exact_draws(model):
    mean, covariance = model.moments()
    draws = model.exact_draws(20_000, seed=5).reshape(200, 100, model.dim)
    away = draws - mean
    products = np.einsum("rni,rnj->rij", away, away) / 100.0
    sd = np.sqrt(np.diag(covariance))
    assert_unbiased(draws.mean(axis=1) / sd, mean / sd, resolution=0.1)
    assert_unbiased(products / np.outer(sd, sd), covariance / np.outer(sd, sd), resolution=0.35)


@pytest.mark.parametrize("centred", [True, False])
def test_moments_of_the_hierarchy_by_its_groups_alone(centred):
    # Gelman et al., section 5.4: given μ and τ the groups are independent, and θⱼ weighs yⱼ and μ by their precisions.
    y, sigma = np.array([3.0, -1.0, 8.0]), np.array([1.5, 2.0, 4.0])
    model = HierarchicalNormal(y, sigma, mu_scale=6.0, tau_scale=2.0, centred=centred)
    mu, s = np.linspace(-45.0, 45.0, 701)[:, None], np.linspace(-22.0, 25.0, 801)
    tau = np.exp(s)
    log_density = stats.norm.logpdf(mu, 0.0, 6.0) + half_cauchy(tau, 2.0) + s
    for a, e in zip(y, sigma, strict=True):
        log_density = log_density + stats.norm.logpdf(a, mu, np.sqrt(e**2 + tau**2))
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()

    def moments(value, extra=0.0):
        mean = (weight * value).sum()
        return mean, (weight * ((value - mean) ** 2 + extra)).sum()

    expected = [moments(mu + 0.0 * s), moments(s + 0.0 * mu)]
    for a, e in zip(y, sigma, strict=True):
        variance = 1.0 / (1.0 / e**2 + 1.0 / tau**2)
        theta = variance * (a / e**2 + mu / tau**2)
        expected.append(moments(theta, variance) if centred else moments((theta - mu) / tau, variance / tau**2))
    mean, covariance = model.moments()
    assert np.allclose(np.stack([mean, np.diag(covariance)], axis=1), expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_moments_of_the_hierarchy_are_in_its_units(scale):
    y, sigma = np.array([3.0, -1.0, 8.0]), np.array([1.5, 2.0, 4.0])
    mean, covariance = HierarchicalNormal(y, sigma, mu_scale=6.0, tau_scale=2.0, centred=True).moments()
    unit = np.array([scale, 1.0, *[scale] * 3])  # of μ, log τ, θ
    other = HierarchicalNormal(scale * y, scale * sigma, mu_scale=6.0 * scale, tau_scale=2.0 * scale, centred=True)
    found, spread = other.moments()
    np.testing.assert_allclose(found, unit * mean + math.log(scale) * np.array([0, 1, 0, 0, 0]), rtol=1e-6)
    np.testing.assert_allclose(spread, np.outer(unit, unit) * covariance, rtol=1e-6)


def test_moments_of_a_hierarchy_far_from_its_prior():
    """Where the data say all, with densities that no float holds."""
    y, sigma = np.array([1000.0, 1003.0]), np.array([0.1, 0.2])
    mean, covariance = HierarchicalNormal(y, sigma, mu_scale=6.0, tau_scale=2.0, centred=True).moments()
    np.testing.assert_allclose(mean[2:], y, atol=0.01)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)[2:]), sigma, rtol=0.01)


def test_hierarchy_carries_its_natural_parameters():
    x = np.random.default_rng(4).standard_normal((2, 3, 10))
    schools, centred = EightSchools(), EightSchools(centred=True)
    natural = schools.constrain(x)
    assert list(natural) == ["mu", "tau", "z", "theta"] and list(centred.constrain(x)) == ["mu", "tau", "theta"]
    assert np.allclose(natural["theta"], x[..., :1] + np.exp(x[..., 1:2]) * x[..., 2:], rtol=1e-14)
    # The same point in both parameterisations: densities differ by the Jacobian of θ = μ + τ z.
    other = np.concatenate([x[..., :2], natural["theta"]], axis=-1)[0, 0]
    gap = centred.potential(other) - schools.potential(x[0, 0])
    assert math.isclose(gap, 8.0 * x[0, 0, 1], rel_tol=1e-12, abs_tol=1e-12)
    expected = stats.norm.logpdf(schools.y, natural["theta"], schools.sigma)
    assert np.allclose(schools.log_likelihood(x), expected, rtol=1e-13)
    assert np.array_equal(schools.predict(x), natural["theta"])


def test_cox_process_predicts_and_is_generated():
    model = cox()
    x = points(model)
    assert model.predict(x).shape == (4, 2, 3) and np.allclose(model.predict(x)[1].ravel(), 1.5 * np.exp(x[1]))
    expected = stats.poisson.logpmf(model.counts, 1.5 * np.exp(x[0])).sum()
    assert math.isclose(model.log_likelihood(x[0]), expected, rel_tol=1e-12)
    assert math.isclose(model.log_likelihood(x[0], model.counts), expected, rel_tol=1e-12)
    model, field = LogGaussianCox.generated(6, seed=2)
    assert field.shape == model.counts.reshape(6, 6).shape and model.variables == {"x": (6, 6)}
    # Møller's covariance, and as many points as promised: E exp(x) = points
    covariance = np.linalg.inv(model.field.hessian())
    assert np.allclose(covariance[0, [0, 1, 6, 7]], 1.91 * np.exp(-33.0 / 6.0 * np.array([0, 1, 1, math.sqrt(2)])))
    assert math.isclose(36 * model.area * math.exp(model.field.mean[0] + 1.91 / 2.0), 126.0, rel_tol=1e-12)
    assert np.linalg.norm(model.gradient(model.mode())) < 1e-3


def test_factors_of_a_cox_process_are_its_cells_and_its_pairs():
    """Of a grid of two rows of three, whose cells are counted row by row, with seven pairs of neighbours."""
    model = cox()
    start, columns = model.factors()
    rows = [columns[a:b].tolist() for a, b in zip(start[:-1], start[1:], strict=True)]
    assert rows[:6] == [[j] for j in range(6)]
    assert sorted(map(sorted, rows[6:])) == [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    x, total = points(model)[0], np.zeros(6)
    for f, row in enumerate(rows):
        part = np.zeros(6)
        model.add_factor_gradient(x, f, part)
        assert np.flatnonzero(part).tolist() == sorted(row)
        total += part
    assert np.allclose(total, model.gradient(x), rtol=1e-12)


def test_toys_of_the_tests_are_these():
    for which, model in (
        (BANANA, Banana()),
        (MIXTURE, GaussianMixture([[-1.2, 0.0], [1.2, 0.0]], 0.49, weights=[3.0, 7.0])),
    ):
        plane = Plane(which)
        for x in points(plane):
            assert np.allclose(plane.gradient(x), model.gradient(x), rtol=1e-11)
        assert np.allclose(plane.moments()[0], model.moments()[0])
        assert np.allclose(plane.moments()[1], np.diag(model.moments()[1]))


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Banana(1), "`dim` must be a whole number, at least 2, got 1"),
        (lambda: Banana(scale=0.0), "`scale` must be a positive number, got 0.0"),
        (lambda: Banana(noise=math.inf), "`noise` must be a positive number"),
        (lambda: Banana(bend=math.nan), "`bend` must be a finite number"),
        (lambda: Funnel(1), "`dim` must be a whole number, at least 2, got 1"),
        (lambda: Funnel(scale=-1.0), "`scale` must be a positive number, got -1.0"),
        (lambda: GaussianMixture([1.0], 1.0), r"`means` must have shape \(K, d\)"),
        (
            lambda: GaussianMixture([[1.0]], np.ones(3)),
            r"`covariances` must be a number or have shape \(1,\)",
        ),
        (lambda: GaussianMixture([[1.0]], 1.0, [1.0, 2.0]), r"`weights` must have shape \(1,\), as `means` says"),
        (lambda: GaussianMixture([[1.0], [2.0]], 1.0, [1.0, 0.0]), "`weights` must be positive, got 0"),
        (lambda: GaussianMixture([[math.nan]], 1.0), "`means` must be finite"),
        (lambda: GaussianMixture([[1.0]], -1.0), "`covariances` must be positive definite; 0 has the eigenvalue -1"),
        (lambda: GaussianMixture([[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]]), "`covariances` must be symmetric"),
        (lambda: GaussianMarkovRandomField(nx.Graph()), "`graph` must have at least one node"),
        (lambda: GaussianMarkovRandomField(nx.path_graph(2), kappa=0.0), "`kappa` must be a positive number"),
        (lambda: GaussianMarkovRandomField(nx.path_graph(2), {0: 1.0}), "`mean` has no value for the node 1"),
        (lambda: HierarchicalNormal([1.0], [1.0, 2.0]), r"must have one shape \(J,\), got \(1,\) and \(2,\)"),
        (lambda: HierarchicalNormal([1.0], [0.0]), "`sigma` must be positive and finite"),
        (lambda: HierarchicalNormal([math.inf], [1.0]), "`y` must be finite"),
        (lambda: EightSchools(tau_scale=0.0), "`tau_scale` must be positive and finite, got 0.0"),
        (lambda: LogGaussianCox([1, 2], np.ones(3)), "`precision` must have a row for each of the 2 cells, got 3"),
        (lambda: LogGaussianCox([1.5, 2], np.ones(2)), "`counts` must be whole numbers"),
        (lambda: LogGaussianCox([-1, 2], np.ones(2)), "`counts` must be whole numbers"),
        (lambda: LogGaussianCox([1, 2], np.ones(2), area=0.0), "`area` must be a positive number"),
        (lambda: LogGaussianCox.generated(71), "`n` must be at most 70"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_field_needs_a_graph():
    with pytest.raises(TypeError, match="`graph` must be a networkx graph, got list"):
        GaussianMarkovRandomField([(0, 1)])


def test_the_mode_of_a_funnel():
    """Where all but the first are 0: the largest of -x²/2s² - 3x/2."""
    assert MODELS["funnel"]().mode()[0] == -0.5 * 3 * 1.5**2


@pytest.mark.exact
def test_exact_draws_without_a_seed_are_fresh():
    for model in (Banana(2), Funnel(3), MODELS["mixture"]()):
        assert not np.array_equal(model.exact_draws(2), model.exact_draws(2)), type(model).__name__
        assert np.array_equal(model.exact_draws(2, 5), model.exact_draws(2, seed=5))


@pytest.mark.exact
def test_partials_of_the_cox_process_by_hand():
    """∂ⱼ of a e^xᵢ - yᵢ xᵢ is a e^xᵢ - yᵢ for j = i, and else 0."""
    model = cox()
    x, scratch = points(model)[0], np.zeros(model.dim)
    for i in range(model.dim):
        found = [model.native.term_partial(x, i, j, scratch) for j in range(model.dim)]
        expected = np.where(np.arange(model.dim) == i, 1.5 * np.exp(x[i]) - np.ravel(model.counts)[i], 0.0)
        assert np.allclose(found, expected, rtol=1e-13)
