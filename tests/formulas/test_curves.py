"""Curves, groups of which a row has several, categories and cut-off responses in formulas, each against another way."""

import math
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, interpolate, optimize, special, stats

import pdmp
from pdmp.formulas import general, smooths
from pdmp.models import families
from pdmp.models.priors import Flat, Gamma, Normal
from pdmp.models.regressions import effect_information as information_module
from pdmp.models.regressions.monotonic_effects import MonotonicEffects
from pdmp.models.regressions.moved_coordinates import coordinates_of, natural_of
from pdmp.models.regressions.standardised_effects import StandardisedEffects

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

pytestmark = [
    pytest.mark.exact,
    pytest.mark.usefixtures("few_steps", "few_radii"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

N = 24


def table(n=N):
    rng = np.random.default_rng(8)
    found = pandas.DataFrame(
        {
            "x": rng.normal(3.0, 2.0, n),
            "w": rng.gamma(2.0, 10.0, n),
            "area": np.array(list("ba"))[np.arange(n) % 2],
            "g": np.array(list("uvst"))[rng.permutation(n) % 4],
            "h": np.array(list("tvwu"))[rng.permutation(n) % 4],
            "level": rng.permutation(n) % 4 + 2,
        }
    )
    found["size"] = pandas.Categorical(
        np.array(["S", "M", "L", "XL"])[rng.permutation(n) % 4], categories=["S", "M", "L", "XL"], ordered=True
    )
    found["y"] = np.sin(found.x) + 0.1 * found.w + rng.normal(0.0, 0.4, n)
    return found


def prepared(formula, data=None, **options):
    return pdmp.regression(formula, table() if data is None else data, sample=False, seed=1, **options)


def sampled_model(one):
    """In the coordinates in which it is sampled."""
    return one._sampled.args[0].model


def test_loo_of_some_rows_is_about_one_point_whatever_the_coordinates():
    """The mean in those of the rows; over choices of rows the total is that of all rows, within its stated error."""
    fit = prepared("y ~ mo(level) + (1 | g)")._sampled.args[0]
    model, base = fit.model, fit.base
    rng = np.random.default_rng(3)
    x = model.initial + 0.1 * rng.standard_normal((2, 30, model.dim))
    natural = natural_of(model, x)
    found = []
    for own, draws in ((model, x), (base, natural)):
        one = fit.replaced(model=own)
        one.run = SimpleNamespace(
            chains=2, dim=own.dim, draws=lambda n, d=draws: d[:, :n], constrain=lambda d, own=own: own.constrain(d)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of Pareto k
            found.append([one.loo(draws=30)] + [one.loo(rows=8, draws=30, seed=k) for k in range(3)])
    at_mean = base.pointwise_log_likelihood(natural.mean(axis=(0, 1)))
    assert model is not base and not np.allclose(natural.mean(axis=(0, 1)), natural_of(model, x.mean(axis=(0, 1))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.elpd_loo, other.elpd_loo, rtol=1e-10)
        if one.near is not None:
            np.testing.assert_allclose(one.near, at_mean, rtol=1e-10)
    whole, *some = found[0]
    totals, stated = np.array([(one.elpd_loo, one.subsampling_se) for one in some]).T
    assert abs(totals.mean() - whole.elpd_loo) < 4.0 * math.sqrt(np.mean(stated**2) / 3.0)  # four errors


@pytest.mark.parametrize("basis", ["tp", "cr"])
def test_with_a_knot_a_row_it_is_the_smoothing_spline(basis):
    """The mode with the factor σ² / τ², by SciPy's spline with a penalty on ∫f″²."""
    data = table().sort_values("x")
    one = prepared(f"y ~ s(x, k={N}, bs='{basis}')", data)
    X, _, (g,) = one.design.new(data)
    smooth, x, y = one.design.smooths[0], data.x.to_numpy(), data.y.to_numpy()
    assert np.mean(np.sum(g.value**2, axis=1)) == pytest.approx(1.0) and np.abs(g.value.mean(axis=0)).max() < 1e-9
    columns = np.hstack([X, g.value])
    for ratio in (0.03, 2.0):
        penalty = np.diag([0.0, 0.0, *np.full(g.value.shape[1], ratio)])
        found = columns @ np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)
        scale = smooth.bases[0].scale  # of x, in which ∫f″² has the unit -3
        spline = interpolate.make_smoothing_spline(x, y, lam=ratio * smooth.sizes[0] ** 2 * scale**3)
        np.testing.assert_allclose(found, spline(x), atol=1e-8)
        between = np.linspace(x.min() + 0.1, x.max() - 0.1, 9)  # by the functions of the fit
        Z, _, (new,) = one.design.new(pandas.DataFrame({"x": between}))
        b = np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)
        np.testing.assert_allclose(np.hstack([Z, new.value]) @ b, spline(between), atol=1e-8)


def test_cubic_splines_of_few_knots():
    """The penalised fit by values at the knots and natural cubic splines between them."""
    data, k, ratio = table(), 6, 0.3
    one = prepared(f"y ~ s(x, k={k}, bs='cr')", data)
    smooth, x, y = one.design.smooths[0], data.x.to_numpy(), data.y.to_numpy()
    basis = smooth.bases[0]
    knots = basis.knots[:, 0] * basis.scale + basis.centre[0]
    np.testing.assert_allclose(knots, np.sort(x)[[0, 5, 9, 14, 18, 23]])  # the nearest to quantiles
    spline = interpolate.CubicSpline(knots, np.eye(k), bc_type="natural")
    bend = spline(knots, 2)
    steps = np.diff(knots)
    penalty = sum(
        h / 6.0 * (2 * np.outer(a, a) + np.outer(a, b) + np.outer(b, a) + 2 * np.outer(b, b))
        for h, a, b in zip(steps, bend[:-1], bend[1:], strict=True)
    )
    at = spline(x)
    expected = at @ np.linalg.solve(at.T @ at + ratio * smooth.sizes[0] ** 2 * basis.scale**3 * penalty, at.T @ y)
    X, _, (g,) = one.design.new(data)
    columns = np.hstack([X, g.value])
    found = columns @ np.linalg.solve(columns.T @ columns + np.diag([0, 0, *np.full(k - 2, ratio)]), columns.T @ y)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_few_functions_are_nearly_the_whole_spline():
    """The eigenvectors of the largest eigenvalues: the fit by 8 functions of 24 is off by 0.2 % of its range."""
    data = table().sort_values("x")
    smooth = prepared("y ~ s(x, k=8)", data).design.smooths[0]
    X, (g,) = smooth.coded(data)
    x, y, ratio = data.x.to_numpy(), data.y.to_numpy(), 1.0
    columns = np.hstack([np.ones((N, 1)), X, g.value])
    found = columns @ np.linalg.solve(columns.T @ columns + ratio * np.diag([0, 0, *np.ones(6)]), columns.T @ y)
    spline = interpolate.make_smoothing_spline(x, y, lam=ratio * smooth.sizes[0] ** 2 * smooth.bases[0].scale ** 3)
    assert np.abs(found - spline(x)).max() < 0.005 * np.ptp(spline(x))


def test_plates_of_two_columns_and_products_of_curves():
    """Thin plates have Duchon's penalty; t2 spans all products of its columns' curves; a curve for each level."""
    data = table()
    one = prepared(f"y ~ s(x, w, k={N})", data)
    basis = one.design.smooths[0].bases[0]
    at = (data[["x", "w"]].to_numpy() - basis.centre) / basis.scale
    r = np.linalg.norm(at[:, None] - at, axis=-1)
    energy = np.where(r > 0.0, r**2 * np.log(np.where(r > 0.0, r, 1.0)), 0.0) / (8.0 * math.pi)
    null = np.column_stack([np.ones(N), at])
    lam, y = 0.2, data.y.to_numpy()
    system = np.block([[energy + lam * np.eye(N), null], [null.T, np.zeros((3, 3))]])  # Wahba (1990), section 2.4
    solution = np.linalg.solve(system, np.r_[y, np.zeros(3)])
    X, _, (g,) = one.design.new(data)
    columns = np.hstack([X, g.value])
    penalty = np.diag([0.0, 0.0, 0.0, *np.full(N - 3, lam * one.design.smooths[0].sizes[0] ** -2)])
    found = columns @ np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)
    np.testing.assert_allclose(found, energy @ solution[:N] + null @ solution[N:], atol=1e-7)

    product = prepared("y ~ t2(x, w, k=4)", data)
    X, _, groups = product.design.new(data)
    each = [prepared(f"y ~ s({name}, k=4, bs='cr')", data).design.new(data) for name in ("x", "w")]
    a, b = (np.hstack([X, g.value]) for X, _, (g,) in each)
    whole = (a[:, :, None] * b[:, None, :]).reshape(N, -1)
    mine = np.hstack([X, *(g.value for g in groups)])
    assert np.linalg.matrix_rank(mine) == np.linalg.matrix_rank(np.hstack([whole, mine])) == 16
    sizes = [np.mean(np.sum(g.value**2, axis=1)) for g in groups]
    np.testing.assert_allclose(sizes, 1.0)

    both = prepared("y ~ s(x, k=4, bs='cr') + s(w, k=4, bs='cr')", data).design.new(data)
    np.testing.assert_allclose(both[0][:, 1:], np.column_stack([each[0][0][:, 1], each[1][0][:, 1]]))
    for mine, (_, _, (own,)) in zip(both[2], each, strict=True):
        np.testing.assert_allclose(mine.value, own.value)
    levels = prepared("y ~ t2(x, w, by=area, k=4)", data).design.new(data)[2]
    for k, mine in enumerate(levels):
        is_level = (data.area == "ab"[k // 3]).to_numpy()
        np.testing.assert_allclose(mine.value, groups[k % 3].value * is_level[:, None], atol=1e-12)

    by = prepared("y ~ area + s(x, by=area, k=5)", data)
    X, _, (first, second) = by.design.new(data)
    _, _, (all_rows,) = prepared("y ~ s(x, k=5)", data).design.new(data)
    is_b = (data.area == "b").to_numpy()
    truth = prepared("y ~ s(x, by=is_b, k=5)", data.assign(is_b=is_b)).design.new(data.assign(is_b=is_b))[2]
    for mine, own in zip(truth, (first, second), strict=True):  # truth values are two levels
        np.testing.assert_array_equal(mine.value, own.value)
    np.testing.assert_allclose(second.value, all_rows.value * is_b[:, None], atol=1e-12)
    np.testing.assert_allclose(first.value + second.value, all_rows.value, atol=1e-12)
    np.testing.assert_allclose(X[:, 2] + X[:, 3], data.x - data.x.mean(), atol=1e-12)
    with pytest.raises(ValueError, match=r"levels \(c\) in 'area' are not present"):
        by.predict(data.assign(area="c"), draws=2)
    with pytest.raises(ValueError, match="`new`: 'area' is 'c', which the data of the fit have not"):
        prepared("y ~ s(x, by=area, k=5)", data).predict(data.assign(area=np.where(is_b, "b", "c")), draws=2)


def test_a_slope_that_changes_along_a_curve():
    """s(x, by=z) of a number z is z times the curve of x, whose mean is the coefficient of z; of new rows too."""
    data = table()
    data["n"] = np.arange(N) % 5 - 1  # whole numbers are numbers, as they are elsewhere in a formula
    _, _, (curve,) = prepared("y ~ s(x, k=5)", data).design.new(data)
    for name in ("w", "n"):
        one = prepared(f"y ~ s(x, by={name}, k=5)", data)
        for rows in (data, data[5:9].assign(**{name: [3.0, -2.0, 0.0, 1.5]})):
            X, _, (g,) = one.design.new(rows)
            z = rows[name].to_numpy(dtype=float)
            np.testing.assert_allclose(X[:, 1], z)
            np.testing.assert_allclose(X[:, 2], z * (rows.x - data.x.mean()), atol=1e-12)
            np.testing.assert_allclose(g.value, z[:, None] * curve.value[rows.index], atol=1e-12)
    surface, times = (prepared(f"y ~ t2(x, w, k=3{by})", data).design.new(data) for by in ("", ", by=n"))
    z = data["n"].to_numpy(dtype=float)[:, None]
    np.testing.assert_allclose(times[0][:, 1:], z * np.hstack([np.ones((N, 1)), surface[0][:, 1:]]), atol=1e-9)
    for mine, whole in zip(times[2], surface[2], strict=True):
        np.testing.assert_allclose(mine.value, z * whole.value, atol=1e-12)
    named = prepared("y ~ s(`my x`, by=`my w`, k=5)", data.rename(columns={"x": "my x", "w": "my w"}))
    assert named.design.columns[1:] == ["s(my x, by=my w).my w", "s(my x, by=my w).my x"]


def test_weights_of_several_groups():
    """Those of a row are divided by their sum, unless they are taken as they are."""
    data = table().assign(u=np.linspace(0.5, 3.0, N), v=np.linspace(2.0, 0.0, N))
    pair, several = data[["u", "v"]].to_numpy(), "mm(g, h, weights=cbind(u, v){})"
    for more, expected in (("", pair / pair.sum(axis=1, keepdims=True)), (", scale=False", pair)):
        name = several.format(more)
        one = prepared(f"y ~ x + (1 + x | {name})", data)
        for rows in (data, data[3:8]):
            _, _, (first, second) = one.design.new(rows)
            assert (first.name, second.name) == (f"1|{name}", f"x|{name}")
            np.testing.assert_allclose(first.value, expected[rows.index])
            np.testing.assert_allclose(second.value, expected[rows.index] * rows.x.to_numpy()[:, None])
    spread = prepared(f"y ~ x + (1 | {several.format('')})", data).priors[f"sd({several.format('')})"].scale
    assert spread == pytest.approx(prepared("y ~ x + (1 | mm(g, h))", data).priors["sd(mm(g, h))"].scale)
    for formula, says in (
        ("mm(g, h, weights=u)", "has 2 groups a row, and 1 columns of weights"),
        ("mm(g, h, weights=cbind(u, v, u))", "has 2 groups a row, and 3 columns of weights"),
        ("mm(g, h, weights=cbind(u - u, v))", rf"are \[0.0, 0.0\] in row {N - 1}: they must be finite and, unless"),
        ("mm(g, h, weights=cbind(u, 1 - v))", r"are \[0.5, -1.0\] in row 0: they must be finite and, unless"),
    ):
        with pytest.raises(ValueError, match=says):
            prepared(f"y ~ x + (1 | {formula})", data)


@pytest.mark.parametrize(("formula", "name"), [("y ~ 0 + x + c", "c"), ("y ~ x + (0 + c | g)", "sd(c|g)")])
def test_the_unit_of_a_constant_is_its_size(formula, name):
    """The standard deviation of -0.7 in each of 21 rows is not 0 in floating point."""
    data = table(21).assign(c=-0.7)
    assert data.c.to_numpy().std() > 0.0
    prior = prepared(formula, data).priors[name]
    assert (prior.sd if name == "c" else prior.scale) == pytest.approx(2.5 * data.y.std(ddof=0) / 0.7)


def test_weights_and_exposure_beside_the_response():
    data = table().assign(k=np.arange(N) % 4, t=np.linspace(1.0, 2.0, N), v=np.arange(N) % 3 + 0.5)
    left, right = (
        prepared(formula, data, family="poisson", **roles)
        for formula, roles in (
            ("k | rate(t) + weights(v) ~ x + s(w, k=4)", {}),
            ("k ~ x + s(w, k=4)", {"weights": "v", "exposure": "t"}),
        )
    )
    x = 0.1 * np.arange(left.model.dim)
    assert left.model.potential(x) == right.model.potential(x) and left.priors == right.priors
    other = prepared("k | rate(t) ~ x + s(w, k=4)", data, family="poisson")
    assert left.model.potential(x) != other.model.potential(x)
    with pytest.raises(ValueError, match="`exposure` is for counts"):
        prepared("y | rate(t) ~ x", data)
    with pytest.raises(ValueError, match="`weights` names 'nope'"):
        prepared("y | weights(nope) ~ x", data)


LINEAR = {
    "y ~ s(x, k=5) + (1 | mm(g, h))": {},
    "y ~ area + s(x, by=area, k=4) + w": {},
    "y ~ x + (1 + x | mm(g, h))": {"INVERTED": 0},  # sums over rows in place of one matrix
    "y ~ t2(x, w, k=3) + (1 | g)": {"INVERTED": 0},
    "y ~ gp(x, k=5) + (1 | g)": {},
    "y ~ gp(x, k=4, c=1.5)": {"INVERTED": 0},
    "y ~ gp(x, w, k=3)": {},
    "y ~ area + gp(x, by=area, k=4)": {},
    "y ~ gp(x, w, k=3, iso=FALSE)": {},
}


@pytest.mark.parametrize("formula", LINEAR)
def test_the_potential_is_the_density_of_natural_parameters(formula, monkeypatch):
    for name, number in LINEAR[formula].items():
        monkeypatch.setattr(information_module, name, number)
    data = table()
    one = prepared(formula, data, priors={"Intercept": Normal(0.0, 5.0)})
    model = sampled_model(one)
    assert isinstance(model, StandardisedEffects)
    X, _, groups = one.design.new(data)
    excess = []
    for k in range(3):
        x = model.initial + 0.3 * np.random.default_rng(k).standard_normal(model.dim)
        natural = model.constrain(x)
        beta = np.array([natural[name] for name in one.design.columns])
        z, density = X @ beta, 0.0
        for g in groups:
            u = natural[g.name]
            if g.name == "1|mm(g, h)":  # by hand: the mean of the effects of both
                level = {label: u[q] for q, label in enumerate("stuvw")}
                own = np.array([0.5 * (level[a] + level[b]) for a, b in zip(data.g, data.h, strict=True)])
                np.testing.assert_allclose(own, np.sum(u[g.level] * g.value, axis=1), rtol=1e-12)
            z = z + (np.sum(u[g.level] * g.value, axis=1) if g.value.ndim > 1 else u[g.level] * g.value)
            if g.name.startswith(
                "gp("
            ):  # whose length scale is in units of half of the range, 1/c of half of the interval
                c, d = (1.5 if "c=1.5" in formula else 2.0), 2 if "w" in g.name else 1
                half = 0.5 * np.array([np.ptp(data.x), np.ptp(data.w)][:d])
                if "iso" in formula:
                    length = np.array([natural[f"length({g.name})[{name}]"] for name in "xw"]) / half
                else:
                    length = np.full(d, natural[f"length({g.name})"] / half.max())
                one_way = np.arange(1, round(len(u) ** (1 / d)) + 1)
                square = np.meshgrid(*[(one_way * math.pi / (2.0 * c)) ** 2] * d, indexing="ij")
                along = sum(one**2 * part for one, part in zip(length, square, strict=True)).ravel()
                spectral = np.prod(length * math.sqrt(2.0 * math.pi)) * np.exp(-0.5 * along)
                density += stats.norm.logpdf(u, 0.0, natural[f"sd({g.name})"] * np.sqrt(spectral)).sum()
            elif "cor(1, x|mm(g, h))" not in natural:
                density += stats.norm.logpdf(u, 0.0, natural[f"sd({g.grouping})"]).sum()
        if "cor(1, x|mm(g, h))" in natural:
            sds, r = np.array([natural["sd(mm(g, h))"], natural["sd(x|mm(g, h))"]]), natural["cor(1, x|mm(g, h))"]
            law = stats.multivariate_normal(cov=np.outer(sds, sds) * [[1.0, r], [r, 1.0]])
            density += law.logpdf(np.column_stack([natural["1|mm(g, h)"], natural["x|mm(g, h)"]])).sum()
        np.testing.assert_allclose(
            model.pointwise_log_likelihood(x), stats.norm.logpdf(data.y, z, natural["sigma"]), rtol=1e-9
        )
        density += stats.norm.logpdf(data.y, z, natural["sigma"]).sum()
        for name, prior in one.priors.items():
            value = natural[name] + ((X[:, 1:] @ beta[1:]).mean() if name == "Intercept" else 0.0)
            law = {
                "Normal": lambda p: stats.norm(p.mean, p.sd),
                "HalfNormal": lambda p: stats.halfnorm(scale=p.scale),
                "HalfStudentT": lambda p: stats.t(p.degrees, scale=p.scale),
                "Gamma": lambda p: stats.gamma(p.shape, scale=p.scale),
                "LKJ": lambda p: stats.uniform(-1.0, 2.0),
            }[type(prior).__name__](prior)
            density += law.logpdf(value)
        h, columns = 1e-5, []
        for e in h * np.eye(model.dim):
            up, down = (np.concatenate([np.ravel(v) for v in model.constrain(x + s * e).values()]) for s in (1.0, -1.0))
            columns.append((up - down) / (2.0 * h))
        excess.append(model.potential(x) + density + np.linalg.slogdet(np.column_stack(columns))[1])
    assert np.ptp(excess) < 1e-5 * abs(model.potential(x))


def test_groups_of_new_rows_by_hand():
    """Of which some are not among the groups of the fit: 0, or drawn with their law, one of each name."""
    data = table()
    one = prepared("y ~ x + (1 | mm(g, h))", data)
    natural = one.run.natural(3)
    x = one.unconstrained(natural)
    effects = dict(zip("stuvw", natural["1|mm(g, h)"].T, strict=True))
    new = pandas.DataFrame({"x": [1.0, 2.0, 0.5], "g": ["s", "w", "zz"], "h": ["t", "w", "s"]})
    z = natural["Intercept"][:, None] + natural["x"][:, None] * new.x.to_numpy()
    pairs = [(effects["s"], effects["t"]), (effects["w"], effects["w"]), (0.0 * effects["s"], effects["s"])]
    expected = z + np.stack([0.5 * (a + b) for a, b in pairs], axis=1)
    np.testing.assert_allclose(one.predicted(x, new, "mean", "zero", None), expected, rtol=1e-10)
    with pytest.raises(ValueError, match=r"the group 'zz' of 'mm\(g, h\)' was not in the data"):
        one.predict(new, draws=2)
    many, drawn = np.repeat(x[:1], 4_000, axis=0), np.random.default_rng(2)
    found = one.predicted(many, new, "mean", "draw", drawn)[:, 2] - expected[0, 2]
    assert stats.kstest(found, stats.norm(0.0, 0.5 * natural["sd(mm(g, h))"][0]).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("names", "more", "k"), [("x", "", 60), ("x, w", "", 256), ("x", ", by=area", 60), ("x", ", by=h", 60)]
)
def test_a_gaussian_process_has_the_squared_exponential_kernel(names, more, k):
    """Of one column or two; with an own one for each level of a category, or times a number."""
    data = table().assign(h=np.linspace(-1.0, 2.0, N))
    one = prepared(f"y ~ gp({names}{more}, k={round(k ** (1 / (names.count(',') + 1)))}, c=2.5)", data)
    points = data[names.split(", ")].to_numpy()
    half = 0.5 * np.ptp(points, axis=0).max()
    groups = one.design.new(data)[2]
    assert [g.name for g in groups] == (
        ["gp(x, area=a)", "gp(x, area=b)"] if "area" in more else [f"gp({names}{more})"]
    )
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    expected = 1.7**2 * np.exp(-0.5 * (distance / (0.5 * half)) ** 2)
    for level, g in zip("ab", groups, strict=False):
        natural = {f"sd({g.name})": np.full(k, 1.7), f"length({g.name})": np.full(k, 0.5 * half)}
        others = {f"{what}({o.name})": np.ones(k) for o in groups if o is not g for what in ("sd", "length")}
        standard = {o.name: np.eye(k) for o in groups}
        root = one.effects_of_law(natural | others, standard)[g.name]  # of the covariance of effects
        times = {"": np.ones(N), ", by=area": (data.area == level) * 1.0, ", by=h": data.h}[more]
        found = (root @ g.value.T).T @ (root @ g.value.T)
        np.testing.assert_allclose(found, np.outer(times, times) * expected, atol=1e-3)
    outside = data[:1].assign(x=data.x.max() + 2.6 * half)
    ends = np.array([0.5 * (data.x.min() + data.x.max()) + s * 2.5 * half for s in (-1, 1)])
    of = " of 'x'" if "w" in names else ""
    says = re.escape(f"is known from {ends[0]:.4g} to {ends[1]:.4g}{of}: give it a larger c")
    with pytest.raises(ValueError, match=says):
        one.predict(outside, draws=2)


def test_a_gaussian_process_with_a_length_scale_for_each_column():
    """Columns of any units, with a prior for each; the law of effects has the kernel."""
    data = table().assign(w=1e3 * table().w)
    prior = Gamma(5.0, 2e3)
    priors = {"length(gp(x, w, area=b))[w]": prior}
    one = prepared("y ~ gp(x, w, by=area, k=16, c=2.5, iso=FALSE)", data, priors=priors)
    half = {name: 0.5 * np.ptp(data[name]) for name in "xw"}
    named = [(g.name, name) for g in one.design.new(data)[2] for name in "xw"]
    assert [name for name in one.priors if "length" in name] == [f"length({g})[{name}]" for g, name in named]
    for g, name in named:
        found = one.priors[f"length({g})[{name}]"]
        assert found == (prior if (g, name) == ("gp(x, w, area=b)", "w") else Gamma(4.0, 0.125 * half[name]))
    points = data[["x", "w"]].to_numpy()
    share = np.array([0.7 * half["x"], 0.45 * half["w"]])
    distance = np.linalg.norm((points[:, None] - points) / share, axis=-1)
    for g in one.design.new(data)[2]:
        natural = {f"length({other})[{name}]": np.full(256, share["xw".index(name)]) for other, name in named}
        natural |= {f"sd({other})": np.full(256, 1.7) for other, _ in named}
        root = one.effects_of_law(natural, {other: np.eye(256) for other, _ in named})[g.name] @ g.value.T
        own = 1.0 * (data.area == g.name[-2]).to_numpy()
        np.testing.assert_allclose(root.T @ root, np.outer(own, own) * 1.7**2 * np.exp(-0.5 * distance**2), atol=2e-3)
    outside = data[:1].assign(w=data.w.max() + 2.0 * half["w"])
    ends = data.w.max() - half["w"] + np.array([-2.5, 2.5]) * half["w"]
    with pytest.raises(ValueError, match=re.escape(f"is known from {ends[0]:.4g} to {ends[1]:.4g} of 'w': give it")):
        one.predict(outside, draws=2)
    x = sampled_model(one).initial + 0.1
    again = coordinates_of(sampled_model(one), one.model.reported.unconstrained(sampled_model(one).constrain(x)))
    np.testing.assert_allclose(again, x, rtol=1e-6, atol=1e-8)
    sampled_model(prepared("y ~ gp(x, w, k=3, iso=F) + gp(level, k=3)", data)).check_gradient(points=2)


@pytest.mark.parametrize("term", ["s(x, k=5)", "s(x, by=area, k=4)", "t2(x, w, k=4)", "t2(x, w, by=area, k=4)"])
def test_units_of_columns_do_not_matter_to_effects(term):
    """A curve in metres bends as one in millimetres; columns of coefficients are about 0, in the units of the table."""
    data = table()
    other = data.assign(x=1e3 * data.x - 7.0, w=1e-2 * data.w + 5.0)
    (one, two), columns = (prepared(f"y ~ {term}", t).design.smooths[0] for t in (data, other)), []
    for smooth, t in ((one, data), (two, other)):
        X, effects = smooth.coded(t)
        columns.append(X)
        inside = [np.ones(N) if level is None else t.area == level for level in smooth.by.levels]
        np.testing.assert_allclose(sum(X.sum(axis=0).reshape(len(inside), -1)), 0.0, atol=1e-9 * np.abs(X).max())
        if smooth is two:
            for a, b in zip(one.coded(data)[1], effects, strict=True):
                np.testing.assert_allclose(np.abs(a.value), np.abs(b.value), rtol=1e-7, atol=1e-9)
    names = [name.rpartition(".")[2] for name in one.columns]
    units = [{"x": 1e3, "w": 1e-2}.get(name, np.nan) for name in names]
    for j in np.flatnonzero(np.isfinite(units)):
        np.testing.assert_allclose(columns[1][:, j], units[j] * columns[0][:, j], rtol=1e-9, atol=1e-9)


def test_a_monotonic_effect_of_size_zero_has_coordinates():
    one = prepared("y ~ mo(level)")
    model, (steps,) = sampled_model(one), sampled_model(one).sets
    natural = model.natural_draws(np.linspace(-0.3, 0.3, model.dim))
    natural[[*steps.steps, steps.size]] = 0.0
    np.testing.assert_array_equal(model.natural_draws(model.coordinates(natural)), natural)


def test_monotonic_effects_by_hand():
    """Of whole numbers and an ordered category; shares of the prior are uniform on their simplex."""
    data = table()
    one = prepared("y ~ mo(level) + mo(size)", data)
    natural = one.run.natural(4_000)
    for name in ("level", "size"):
        steps = natural[f"steps of mo({name})"]
        np.testing.assert_allclose(steps.mean(axis=1), natural[f"mo({name})"], rtol=1e-9)
        shares = steps / steps.sum(axis=1, keepdims=True)
        for share in shares.T:
            assert stats.kstest(share, stats.beta(1, 2).cdf).pvalue > 1e-3
        assert abs(np.corrcoef(shares[:, 0], shares[:, 1])[0, 1] + 0.5) < 0.05
    z = natural["Intercept"][:3, None] + np.zeros(N)
    for name, codes in (("level", data.level - 2), ("size", data["size"].cat.codes)):
        reached = np.hstack([np.zeros((3, 1)), np.cumsum(natural[f"steps of mo({name})"][:3], axis=1)])
        z += reached[:, codes.to_numpy()]
    found = one.predicted(one.unconstrained({k: v[:3] for k, v in natural.items()}), data, "mean", "error", None)
    np.testing.assert_allclose(found, z, rtol=1e-9, atol=1e-9)
    # Of standard normal coordinates, exponential variables are made, and of these shares.
    model = one.model
    x, y = (model.initial + 0.4 * np.random.default_rng(k).standard_normal(model.dim) for k in (1, 2))
    first, size = model.reported.places["standardised steps of mo(size)"]
    y = np.r_[x[:first], y[first : first + size], x[first + size :]]
    own = [0.5 * np.sum(v[first : first + size] ** 2) for v in (x, y)]
    assert model.prior_potential(y) - model.prior_potential(x) == pytest.approx(own[1] - own[0])
    found = one.predicted(one.unconstrained(natural), data.assign(level=2.25), "mean", "error", None)
    ends = [one.predicted(one.unconstrained(natural), data.assign(level=k), "mean", "error", None) for k in (2, 3)]
    np.testing.assert_allclose(found, 0.75 * ends[0] + 0.25 * ends[1])  # in between, on a line
    parts = -special.log_ndtr(-x[first : first + size])
    steps = model.constrain(x)["steps of mo(size)"]
    np.testing.assert_allclose(steps / steps.sum(), parts / parts.sum(), rtol=1e-10)
    low = prepared("y ~ mo(level) + mo(size)", data.assign(level=data.level - 7))  # from -5 on: the same steps
    moved = low.predicted(low.unconstrained(natural), data.assign(level=2.25 - 7.0), "mean", "error", None)
    np.testing.assert_allclose(moved, found)
    with pytest.raises(ValueError, match=r"numbers from 2 to 1,003, and may have 1,000: a curve is s\(level\)"):
        prepared("y ~ mo(level)", data.assign(level=np.where(data.level > 2, 1_003, 2)))
    assert prepared("y ~ mo(level)", data.assign(level=np.where(data.level > 2, 1_002, 2))).priors["mo(level)"].sd > 0.0
    with pytest.raises(ValueError, match=r"mo\(level\) needs three levels or more: with two it is level"):
        prepared("y ~ mo(level)", data.assign(level=np.arange(N) % 2))
    unseen = data["size"].cat.set_categories(["S", "M", "ML", "L", "XL"])  # a size that no row has is no step
    assert prepared("y ~ mo(level) + mo(size)", data.assign(size=unseen)).model.dim == model.dim
    for column, value, says in (("level", 6, "which are 2 to 5"), ("size", "XXL", "which are S, M, L, XL")):
        with pytest.raises(ValueError, match=f"'{column}' has levels that the data of the fit have not, {says}"):
            one.predict(data.assign(**{column: value}), draws=2)


def test_a_row_of_weight_2_is_as_two_rows_for_monotonic_effects():
    data = table().assign(v=np.arange(N) % 3, k=lambda t: np.floor(t.w))
    for formula in ("k ~ mo(level) * w", "k ~ mo(level):area"):
        one = pdmp.regression(formula, data, "poisson", weights="v", sample=False)
        two = pdmp.regression(formula, data.loc[data.index.repeat(data.v)], "poisson", sample=False)
        assert [prior.coded() for prior in one.priors.values()] == [
            pytest.approx(prior.coded(), rel=1e-9) for prior in two.priors.values()
        ]
        assert one.priors.keys() == two.priors.keys()
        points = 0.3 * np.random.default_rng(1).standard_normal((2, one.model.dim))
        a, b = ([m.model.potential(x) for x in points] for m in (one, two))
        assert a[1] - a[0] == pytest.approx(b[1] - b[0], rel=1e-9)


def test_products_of_monotonic_effects_by_hand():
    """Times a number, and for levels of a category: differences from the first where that has steps of its own."""
    data = table()
    reach, spread = (data.level - 2).to_numpy(), 2.5 * data.y.std(ddof=0)
    is_b, w = (data.area == "b").to_numpy(), data.w.to_numpy()
    own = {"mo(level)": np.ones(N), "mo(level):area[b]": is_b, "mo(level):w": w, "mo(level):area[a]": ~is_b}
    for formula, names in (
        ("y ~ mo(level) * area", ["mo(level)", "mo(level):area[b]"]),
        ("y ~ area + mo(level) + area:mo(level)", ["mo(level)", "mo(level):area[b]"]),
        ("y ~ mo(level):area", ["mo(level):area[a]", "mo(level):area[b]"]),
        ("y ~ w * mo(level) + mo(level) + x", ["mo(level):w", "mo(level)"]),
        ("y ~ mo(level):`w`", ["mo(level):w"]),
    ):
        one = prepared(formula, data)
        natural = one.run.natural(3)
        assert [name for name in one.priors if "mo(" in name] == names
        X, _, groups = one.design.new(data)
        z = np.stack([natural[name] for name in one.design.columns], axis=1) @ X.T
        for name, g in zip(names, groups, strict=True):
            steps = natural[f"steps of {name}"]
            np.testing.assert_allclose(steps.mean(axis=1), natural[name], rtol=1e-9)
            z = z + own[name] * np.hstack([np.zeros((3, 1)), np.cumsum(steps, axis=1)])[:, reach]
            assert one.priors[name].sd == pytest.approx(spread / np.std(own[name] * reach)) and g.name[9:] == name
        found = one.predicted(one.unconstrained(natural), data, "mean", "error", None)
        np.testing.assert_allclose(found, z, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="`new`: 'area' is 'c', which the data of the fit have not"):
        prepared("y ~ mo(level):area", data).predict(data.assign(area="c"), draws=2)
    with pytest.raises(ValueError, match=r"mo\(level\):area\[b\] is 0 in every row"):
        prepared("y ~ mo(level):area", data.assign(level=np.where(is_b, 2, data.level)))


CURVED = {
    "y ~ mo(level) * area": MonotonicEffects,
    "y ~ gp(x, k=5)": StandardisedEffects,
    "y ~ mo(size) + mo(level):w + gp(x, w, k=3)": StandardisedEffects,
}


def test_knots_of_many_values_are_spread_over_all_of_them(monkeypatch):
    monkeypatch.setattr(smooths, "MOST_KNOTS", 21)
    x = np.random.default_rng(1).gamma(2.0, 1.0, (401, 1))
    basis = smooths.Basis(x, 8, "tp", "s(x)")
    knots = np.sort(x[:, 0])[::20]  # the smallest and the largest value among them
    np.testing.assert_allclose(basis.knots[:, 0] * basis.scale + basis.centre, knots, rtol=1e-12)


@pytest.mark.parametrize("formula", CURVED)
def test_derivatives_and_coordinates_of_effects_that_are_made_of_others(formula):
    one = prepared(formula)
    model = sampled_model(one)
    assert type(model) is CURVED[formula]
    rng = np.random.default_rng(4)
    for _ in range(3):
        x, v, h = model.initial + 0.4 * rng.standard_normal(model.dim), rng.standard_normal(model.dim), 1e-6
        slope = (model.potential(x + h * v) - model.potential(x - h * v)) / (2.0 * h)
        assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-5)
    rows, whole, parts = np.array([3, 20]), np.zeros(model.dim), np.zeros(model.dim)
    model.add_batch_gradient(x, rows, 2, whole)
    few = model.some_rows(rows)
    few.add_block_gradient(x, 0, 2, parts)
    np.testing.assert_allclose(parts, whole, rtol=1e-11, atol=1e-13)
    for i in rows:
        model.add_term_gradient(x, i, parts)
    np.testing.assert_allclose(parts, 2.0 * whole, rtol=1e-11, atol=1e-13)
    assert few.potential(x) - few.prior_potential(x) == pytest.approx(sum(model.term_potential(x, i) for i in rows))
    assert model.total_potential(x) == pytest.approx(model.potential(x), rel=1e-12)
    if "mo(" not in formula:
        return
    curved = model if isinstance(model, MonotonicEffects) else model.base
    y = np.empty(curved.dim)
    curved.natural(x, y, curved.room())
    np.testing.assert_allclose(curved.natural_draws(x), y, rtol=1e-12)
    np.testing.assert_allclose(curved.natural_draws(curved.coordinates(y)), y, rtol=1e-10)
    gradient, hessian = curved.data_sums(x)
    part = np.zeros(model.dim)
    curved.add_block_gradient(x, 0, N, part)
    np.testing.assert_allclose(gradient, part, rtol=1e-9, atol=1e-9)
    steps = 1e-6 * np.eye(model.dim)
    jacobian = (curved.natural_draws(x + steps) - curved.natural_draws(x - steps)).T / 2e-6
    expected = jacobian.T @ curved.base.data_sums(curved.natural_draws(x))[1] @ jacobian
    np.testing.assert_allclose(hessian, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "formula", ["y ~ s(x, k=5) + (1 | mm(g, h))", "y ~ gp(x, k=4) + mo(size)", "area ~ x + s(w, k=4)"]
)
def test_further_rows(formula):
    """The law of all rows, with the functions, priors and units of the first ones."""
    data, family = table(), "categorical" if formula.startswith("area") else "gaussian"
    data["area"] = np.array(list("bac"))[np.arange(N) % 3]
    one = prepared(formula, data[:18], family=family)
    fit, origin = one._sampled.args[:2]
    fit.run = one.run
    fit.some_draws = lambda n: model_draws(fit, one)
    changed, notes = general.extended_model(origin, fit, data[18:].assign(x=data.x[18:].clip(1.0, 4.0)))
    model, designs, kept = (changed[name] for name in ("model", "designs", "kept"))
    data.loc[18:, "x"] = data.x[18:].clip(1.0, 4.0)
    assert model.n_data == N and kept.n == N and notes[0].startswith("6 rows were added to 18")
    natural = {name: np.asarray(value)[None] for name, value in model.constrain(model.initial).items()}
    if family == "categorical":
        z = [linear(designs[name], natural, f"{name}: ", data) for name in "bc"]
        codes = np.searchsorted(list("abc"), data.area)
        expected = special.log_softmax(np.stack([0.0 * z[0], *z]), axis=0)[codes, np.arange(N)]
    else:
        z = linear(designs["mu"], natural, "", data)
        expected = stats.norm.logpdf(data.y, z, natural["sigma"][0])
    np.testing.assert_allclose(model.pointwise_log_likelihood(model.initial), expected, rtol=1e-8, atol=1e-9)


def model_draws(fit, one):
    """A draw of the prior in the coordinates in which the fit is sampled."""
    return fit.unconstrained({name: value for name, value in one.run.natural(1).items()})


def linear(design, natural, prefix, data):
    X, _, groups = design.new(data)
    z = X @ np.array([natural[prefix + name][0] for name in design.columns])
    return z + sum(np.sum(natural[prefix + g.name][0][g.level] * g.value, axis=1) for g in groups)


def test_categories_without_an_order():
    """Log-likelihood by hand, the mode with flat priors by a maximum of it, probabilities, and what has no meaning."""
    rng = np.random.default_rng(3)
    data = pandas.DataFrame({"x": rng.normal(size=90), "a": np.array(list("uv"))[np.arange(90) % 2]})
    scores = np.column_stack([np.zeros(90), 0.5 + data.x, -0.3 - 0.7 * data.x + (data.a == "v")])
    codes = np.argmax(scores + rng.gumbel(size=(90, 3)), axis=1)
    data["way"] = np.array(["bus", "car", "train"])[codes]
    flat = {f"{way}: {name}": Flat() for way in ("car", "train") for name in ("Intercept", "x", "a[v]")}
    one = prepared("way ~ x + a", data, family="categorical", priors=flat)
    X = np.column_stack([np.ones(90), data.x, data.a == "v"])

    def minus_log_likelihood(b):
        z = np.column_stack([np.zeros(90), X @ b.reshape(2, 3).T])
        return -special.log_softmax(z, axis=1)[np.arange(90), codes].sum()

    best = optimize.minimize(minus_log_likelihood, np.zeros(6), tol=1e-10)
    mode = one.model.constrain(one.model.mode())
    np.testing.assert_allclose([mode[name] for name in flat], best.x, atol=2e-5)
    found = one.predicted(one.model.mode()[None], data, "probability", "error", None)
    z = np.column_stack([np.zeros(90), X @ best.x.reshape(2, 3).T])
    np.testing.assert_allclose(found[0], special.softmax(z, axis=1), atol=1e-4)
    given = prepared("way ~ x + a", data, family="categorical")
    np.testing.assert_allclose(
        given.predict(data, kind="probability", draws=3), given.predict(kind="probability", draws=3), rtol=1e-10
    )
    for call, says in (
        (lambda: given.predict(), "categories of categorical have no order, and so no mean"),
        (lambda: given.predict(kind="link"), "has a linear predictor for each category: ask for probabilities"),
        (lambda: given.conditional_effects("a:x"), "`term` must name one column, along which probabilities are"),
        (lambda: prepared("y ~ x").predict(kind="probability"), "is for families of more than two categories"),
        (lambda: prepared("way ~ x", data.assign(way="bus"), family="categorical"), "'way' is bus in every row"),
    ):
        with pytest.raises(ValueError, match=says):
            call()
    turned = data.assign(way=pandas.Categorical(data.way, ["train", "bus", "car"]))  # the first is compared with
    turned = prepared("way ~ x + a", turned, family="categorical")
    assert turned.categories == ["train", "bus", "car"] and list(turned.priors)[0] == "bus: Intercept"
    np.testing.assert_array_equal(turned.observed, np.array([1.0, 2.0, 0.0])[codes])
    data.loc[data.way == "train", "x"] = np.nan
    with pytest.raises(ValueError, match=r"the response 'way' is \['train'\] in rows with missing values only"):
        prepared("way ~ x", data, family="categorical")


@pytest.mark.parametrize(("first", "second"), [("car", "train"), ("1", "2")])
def test_a_formula_of_its_own_for_a_category(first, second):
    data = table().assign(way=np.array(["0", first, second])[np.arange(N) % 3])
    one = prepared({"way": "way ~ x", second: "~ area + (1 | g)"}, data, family="categorical")
    x = one.run.draws(2)[0]
    natural = one.model.constrain(x)
    z = np.zeros((2, N, 3))
    z[..., 1] = natural[f"{first}: Intercept"][:, None] + natural[f"{first}: x"][:, None] * data.x.to_numpy()
    z[..., 2] = natural[f"{second}: Intercept"][:, None]
    z[..., 2] += natural[f"{second}: area[b]"][:, None] * (data.area == "b").to_numpy()
    z[..., 2] += natural[f"{second}: 1|g"][:, np.searchsorted(list("stuv"), data.g)]
    own = special.log_softmax(z, axis=2)
    np.testing.assert_allclose(one.predicted(x, None, "probability", "error", None), np.exp(own), rtol=1e-9)
    codes = (np.arange(N) % 3)[None, :, None]
    np.testing.assert_allclose(
        one.model.pointwise_log_likelihood(x), np.take_along_axis(own, codes, axis=2)[..., 0], rtol=1e-9
    )
    no_category = f"which is no category .* those are '{first}', '{second}'"
    for name, says in {"0": no_category, "trai": no_category, "": "which is no further parameter"}.items():
        with pytest.raises(ValueError, match=f"'{name}', {says}"):
            prepared({"way": "way ~ x", name: "~ w"}, data, family="categorical")


def test_counts_of_categories():
    data = table().assign(a=np.arange(N) % 5, b=np.arange(N) % 3 + 1, c=2)
    one = prepared("cbind(a, b, c) ~ x + (1 | g)", data, family="multinomial")
    x = one.run.draws(2)[0]
    chances, counts = one.predicted(x, None, "probability", "error", None), data[["a", "b", "c"]].to_numpy()
    expected = stats.multinomial.logpmf(counts[None], counts.sum(axis=1), chances)
    np.testing.assert_allclose(one.model.pointwise_log_likelihood(x), expected, rtol=1e-9, atol=1e-10)
    natural = one.model.constrain(x[0])
    z = [natural[f"{k}: Intercept"] + natural[f"{k}: x"] * data.x for k in "bc"]
    place = np.searchsorted(list("stuv"), data.g)
    z = [part + natural[f"{k}: 1|g"][place] for k, part in zip("bc", z, strict=True)]
    np.testing.assert_allclose(chances[0].T, special.softmax(np.stack([0.0 * z[0], *z]), axis=0), rtol=1e-9)
    with pytest.raises(ValueError, match="draws of multinomial counts are not made"):
        one.prior_predictive(draws=2)
    with pytest.raises(ValueError, match="`count of c` must be whole numbers of at least 0"):
        prepared("cbind(a, b, c) ~ x", data.assign(c=0.5), family="multinomial")


@pytest.mark.parametrize("name", ["cumulative", "sratio", "acat"])
def test_chances_of_ordered_categories(name):
    """In predictions and pictures they are those of the likelihood, and draws and means theirs."""
    data = table(40).assign(o=(np.arange(40) + 2) % 4)  # the rows do not begin with the lowest
    one = prepared("o ~ x + (1 | g)", data, family=name)
    x = one.run.draws(3)[0]
    chances = one.predicted(x, None, "probability", "error", None)
    picked = chances[:, np.arange(40), data.o]
    np.testing.assert_allclose(np.exp(one.model.pointwise_log_likelihood(x)), picked, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(one.predicted(x, data, "probability", "error", None), chances, rtol=1e-9)
    np.testing.assert_allclose(one.predicted(x, None, "mean", "error", None), chances @ np.arange(4), rtol=1e-9)
    many = np.repeat(x[:1], 4_000, axis=0)
    drawn = one.predicted(many, None, "response", "error", np.random.default_rng(5))
    for k in range(4):
        p = np.minimum(chances[0, :, k], 1.0)  # but for rounding
        off = np.mean(drawn == k, axis=0) - p
        assert np.all(np.abs(off) < 5.0 * np.sqrt(p * (1.0 - p) / 4_000) + 1e-3)
    cuts = np.stack([one.run.natural(300)[f"cut[{k}]"] for k in (1, 2, 3)])
    assert np.all(np.diff(cuts, axis=0) > 0.0) == (name == "cumulative")


BOUNDS = {"both": (0.4, 3.0), "lower": (0.4, math.inf), "upper": (-math.inf, 3.0)}
LAWS = {
    "gaussian": lambda z, s: stats.norm(z, s),
    "lognormal": lambda z, s: stats.lognorm(s, scale=np.exp(z)),
    "weibull": lambda z, s: stats.weibull_min(s, scale=np.exp(z)),
    "exponential": lambda z: stats.expon(scale=np.exp(z)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("ends", BOUNDS)
def test_responses_that_are_cut_off(name, ends):
    """Densities, means and draws, by SciPy; bounds are numbers and columns."""
    low, high = BOUNDS[ends]
    y = np.random.default_rng(2).uniform(0.5, 2.9, N)
    data = table().assign(y=y, low=0.4)
    inside = ", ".join([*(["lb=low"] if low > 0.0 else []), *(["ub=3"] if high < 4.0 else [])])
    censored = "" if name == "gaussian" else "cens(none) + "
    one = prepared(f"y | {censored}trunc({inside}) ~ x", data.assign(none=0), family=name)
    x = one.model.initial + 0.2
    natural = one.model.constrain(x)
    z = natural["Intercept"] + natural["x"] * data.x.to_numpy()
    law = LAWS[name](z, *[natural[k] for k in ("sigma", "shape") if k in natural])
    expected = law.logpdf(y) - np.log(law.cdf(high) - law.cdf(low))
    np.testing.assert_allclose(one.model.pointwise_log_likelihood(x), expected, rtol=1e-9, atol=1e-10)
    mean = one.predicted(x[None], data.drop(columns="y"), "mean", "error", None)[0]
    i = 5
    single = LAWS[name](z[i], *[natural[k] for k in ("sigma", "shape") if k in natural])
    total = integrate.quad(lambda t: t * single.pdf(t), max(low, -60.0), min(high, 400.0), limit=300)[0]
    assert mean[i] == pytest.approx(total / (single.cdf(high) - single.cdf(low)), rel=1e-6)
    np.testing.assert_allclose(one.predicted(x[None], None, "mean", "error", None)[0], mean, rtol=1e-10)
    drawn = one.predicted(np.repeat(x[None], 2_000, axis=0), None, "response", "error", np.random.default_rng(1))
    uniform = (law.cdf(drawn) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))
    assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-3 and drawn.min() >= low and drawn.max() <= high


COUNTED = {
    "poisson": lambda z: stats.poisson(np.exp(z)),
    "negative_binomial": lambda z, a: stats.nbinom(a, a / (a + np.exp(z))),
    "geometric": lambda z: stats.nbinom(1.0, 1.0 / (1.0 + np.exp(z))),
    "binomial": lambda z: stats.binom(9.0, special.expit(z)),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("ends", [(1, math.inf), (2, math.inf), (0, 5), (2, 6)], ids=str)
def test_counts_that_are_cut_off(name, ends):
    """Log-likelihoods, means and draws by SciPy, of the rows of the fit and of others; both ends could be seen."""
    low, high = ends
    data = table().assign(y=np.arange(N) % 4 + 2)
    inside = ", ".join([f"lb={low}"] * (low > 0) + [f"ub={high}"] * (high < math.inf))
    one = prepared(f"y | {'trials(9) + ' * (name == 'binomial')}trunc({inside}) ~ x", data, family=name)
    plain = prepared(f"y {'| trials(9)' * (name == 'binomial')} ~ x", data, family=name)
    assert one.priors == plain.priors  # as those of brms are
    x = one.model.initial + 0.1
    natural = one.model.constrain(x)
    z = natural["Intercept"] + natural["x"] * data.x.to_numpy()
    law = COUNTED[name](z, *[natural[k] for k in ("alpha",) if k in natural])
    k = np.arange(low, min(high, 400) + 1.0)
    p = law.pmf(k[:, None]) / law.pmf(k[:, None]).sum(axis=0)
    expected = np.log(p[data.y - low, np.arange(N)])
    np.testing.assert_allclose(one.model.pointwise_log_likelihood(x), expected, rtol=1e-8, atol=1e-9)
    for new in (None, data.drop(columns="y")):
        np.testing.assert_allclose(one.predicted(x[None], new, "mean", "error", None)[0], k @ p, rtol=1e-8)
        drawn = one.predicted(np.repeat(x[None], 2_000, axis=0), new, "response", "error", np.random.default_rng(1))
        assert np.abs(np.mean(drawn == low, axis=0) - p[0]).max() < 5.0 * 0.5 / math.sqrt(2_000)
        assert drawn.min() == low and drawn.max() <= high


@pytest.mark.parametrize(
    ("ends", "y", "said"),
    [
        ("lb=1, ub=4", [1, 1, 1, 2, 4, 3], "'x' separates rows of 1 or 4 from others"),
        ("lb=2", [2, 2, 2, 3, 4, 9], "'x' separates rows of 2 from others"),
        ("lb=1, ub=4", [4] * 6, "each row fits better the larger the intercept is"),
    ],
)
def test_counts_at_their_bounds_say_how_far_a_column_goes_by_its_prior(ends, y, said):
    data = {"x": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "y": y}
    with pytest.warns(UserWarning, match=said):
        prepared(f"y | trunc({ends}) ~ x", data, family="poisson")


@pytest.mark.parametrize("beyond", [False, True])
def test_known_standard_errors(beyond):
    """Densities, means and draws, by SciPy; a scatter beyond them has a formula of its own."""
    rng = np.random.default_rng(4)
    data = table().assign(y=rng.normal(1.0, 2.0, N), error=rng.uniform(0.1, 3.0, N))
    formulas = {"y": f"y | se(error{', sigma=T' if beyond else ''}) ~ x", **({"sigma": "~ w"} if beyond else {})}
    one = prepared(formulas, data)
    assert ("sigma: w" in one.priors) == beyond and "sigma" not in one.priors
    x = one.model.initial + 0.3
    natural = one.model.constrain(x)
    mu = natural["Intercept"] + natural["x"] * data.x.to_numpy()
    own = np.exp(natural["sigma: Intercept"] + natural["sigma: w"] * data.w.to_numpy()) if beyond else 0.0
    law = stats.norm(mu, np.hypot(data.error, own))
    np.testing.assert_allclose(one.model.pointwise_log_likelihood(x), law.logpdf(data.y), rtol=1e-10)
    again, draws = data.drop(columns=["y", "error"]), np.repeat(x[None], 3_000, axis=0)
    np.testing.assert_allclose(one.predicted(x[None], again, "mean", "error", None)[0], mu, rtol=1e-10)
    for new in (None, data.drop(columns="y")):
        drawn = one.predicted(draws, new, "response", "error", np.random.default_rng(1))
        assert stats.kstest(law.cdf(drawn).ravel(), "uniform").pvalue > 1e-3
    with pytest.raises(ValueError, match="names 'error', and `new` has no such column"):
        one.predicted(x[None], again, "response", "error", np.random.default_rng(1))


def test_what_is_seen_far_out_in_a_tail():
    """A bound 30 standard deviations above the mean leaves about an exponential law."""
    family = families.truncated(families.gaussian, True, False)
    far = stats.norm(-30.0, 1.0)
    found = family.log_density(np.array([0.01, 0.2]), -30.0, 0.0, data=(0.0,))
    np.testing.assert_allclose(found, far.logpdf([0.01, 0.2]) - far.logsf(0.0), rtol=1e-9)
    values = np.full(4_000, -30.0), np.ones(4_000), np.zeros(4_000)
    mean, drawn = family.mean(*values)[0], family.draw(np.random.default_rng(1), *values)
    assert mean == pytest.approx(1.0 / 30.0, rel=2.0 / 900.0)
    assert drawn.min() >= 0.0 and stats.kstest(drawn, stats.expon(scale=mean).cdf).pvalue > 1e-3
    both = families.truncated(families.gaussian, True, True)
    upper = both.log_density(np.array([0.1, 0.9]), -9.0, 0.0, data=(0.0, 1.0))
    law = stats.norm(-9.0, 1.0)
    assert upper[0] == pytest.approx(law.logpdf(0.1) - math.log(law.sf(0.0) - law.sf(1.0)), rel=1e-9)
    for family, ends, says in (
        (families.gamma, (True, True), "truncation is for the families gaussian, lognormal, weibull, exponential"),
        (families.gaussian.linked(sigma="identity"), (True, False), "with their own links"),
        (families.gaussian, (False, False), "truncation needs a lower bound, an upper one, or both"),
    ):
        with pytest.raises(ValueError, match=says):
            families.truncated(family, *ends)


FAR_OUT = [
    ("gaussian", (0.0, 1.0), -math.inf, -40.0),
    ("gaussian", (0.0, 1.0), 40.0, 40.01),
    ("gaussian", (5.0, 0.1), -50.0, -40.0),
    ("gaussian", (0.5, 2.0), -1.0, 1.5),
    ("lognormal", (0.3, 0.2), 1e4, math.inf),
    ("lognormal", (0.3, 1.5), 1e-30, 1e-29),
    ("weibull", (2.0, 3.0), 40.0, math.inf),
    ("weibull", (1.0, 2.0), 40.0, 40.001),
    ("weibull", (1.0, 0.6), 0.2, 7.0),
    ("weibull", (1.0, 1.5), 1.8, 3.0),
    ("exponential", (0.1,), 200.0, math.inf),
]


@pytest.mark.parametrize(("name", "parameters", "low", "high"), FAR_OUT)
def test_predictions_where_all_that_is_seen_is_far_out(name, parameters, low, high):
    """Means and quantiles by quadrature of the density over its largest value; its probabilities underflow."""
    lower, upper = math.isfinite(low), math.isfinite(high)
    family = families.truncated(getattr(families, name), lower, upper)
    before = [0.0] * len(getattr(families, name).data)
    ends = [end for end in (low, high) if math.isfinite(end)]
    natural = [math.log(p) if k or name in ("weibull", "exponential") else p for k, p in enumerate(parameters)]
    top = low if lower and (name != "gaussian" or low > parameters[0]) else min(high, max(low, parameters[0]))
    width = {"gaussian": parameters[-1] ** 2 / max(abs(top - parameters[0]), parameters[-1])}.get(name, 1.0)
    if name == "lognormal":
        width = low * parameters[1] ** 2 / max(abs(math.log(low) - parameters[0]), parameters[1])
    elif name != "gaussian":
        shape = parameters[1] if len(parameters) > 1 else 1.0
        width = low / max(shape * (low / parameters[0]) ** shape, 1.0)
    first, last = max(low, top - 60.0 * width), min(high, top + 60.0 * width)
    if name == "lognormal" and upper:
        first, last = low, high
    places = np.linspace(first, last, 400_001)
    heights = getattr(families, name).log_density(places, *natural, data=tuple(before))
    masses = np.exp(heights - heights.max())
    masses[[0, -1]] *= 0.5
    values = [np.full(20_000, v) for v in (*parameters, *before, *ends)]
    drawn = family.draw(np.random.default_rng(3), *values)
    mean = (places * masses).sum() / masses.sum()
    assert family.mean(*(v[:1] for v in values))[0] == pytest.approx(mean, abs=2e-3 * width + 1e-9 * abs(mean))
    share = np.interp(drawn, places, np.cumsum(masses) / masses.sum())
    assert stats.kstest(share, "uniform").pvalue > 1e-3 and drawn.min() >= low and drawn.max() <= high


def test_trials_of_rows_to_predict():
    """Counted where responses are drawn, a mean of the rows for what is expected, never below 0."""
    data = table().assign(y=np.arange(N) % 4, n=np.arange(N) % 4 + 3)
    one = prepared("y | trials(n) ~ x", data, family="binomial")
    each = [one.predict(data.assign(n=n), draws=3, seed=1) for n in (1.0, 1.5)]
    np.testing.assert_allclose(each[1], 1.5 * each[0])
    assert one.predict(data.assign(n=2.0), kind="response", draws=50, seed=1).max() == 2.0
    for n, kind in ((-1.0, "mean"), (-1.0, "response"), (1.5, "response")):
        with pytest.raises(ValueError, match=f"`new`: the trials must be whole numbers of at least 0, got {n:g}"):
            one.predict(data.assign(n=n), kind=kind, draws=3)


def test_fewer_trials_than_the_least_count_are_refused():
    """Of such rows nothing could be seen, and predictions of them would be of more successes than trials."""
    data = pandas.DataFrame({"k": [2, 3, 5, 4, 6, 3], "n": [9, 9, 8, 8, 9, 7], "x": [0.0, 1.0, 2.0, 1.5, 3.0, 0.5]})
    one = prepared("k | trials(n) + trunc(lb=2) ~ x", data, family="binomial")
    at, rng = np.zeros((1, one.model.dim)), np.random.default_rng(0)
    for kind in ("mean", "response"):
        assert one.predicted(at, data.assign(n=2), kind, "error", rng) == pytest.approx(np.full((1, 6), 2.0))
        with pytest.raises(ValueError, match="trials must be whole numbers of at least 2, got 1"):
            one.predicted(at, data.assign(n=1), kind, "error", rng)
