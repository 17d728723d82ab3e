"""Whether a density can be normalised: what is not is named in a line before a run, and nothing proper is suspected."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy import special

import pdmp
from pdmp.engine.preflight import check_propriety
from pdmp.expressions.nodes import where
from pdmp.models.families import FAMILIES
from pdmp.models.priors import Flat, Gamma, HalfNormal, Normal
from pdmp.models.propriety import (
    APPROACH,
    _falls,
    _row_falls,
    _rows_that_fall,
    _Search,
    find_improper,
    find_wrong_sign,
)
from pdmp.models.transforms import Interval, Log, Simplex, Upper
from tests.checks import in_quick
from tests.digests import MODELS
from tests.models.helpers_propriety import (
    FLAT,
    HALF_CAUCHY,
    LABELS,
    PROPER,
    SPREADS,
    X,
    centred,
    counts,
    curve,
    logistic,
    normal,
    powers,
    schools,
    student,
    target,
    walk,
)

pytestmark = pytest.mark.exact


def minus(model):
    return target(lambda x: -model.potential(x), lambda x: -model.gradient(x), model.dim, initial=model.initial)


def effects(groups):
    """One datum for each group, a sum of a mean and an effect."""
    y = np.random.default_rng(2).normal(size=groups)
    X = np.column_stack([np.ones(groups), np.eye(groups)])
    return target(lambda x: 0.5 * ((y - X @ x) ** 2).sum(), lambda x: -(y - X @ x) @ X, groups + 1)


FALLING = {
    "normal": minus(pdmp.models.Gaussian(np.zeros(5), np.ones(5))),
    "far from its centre": minus(pdmp.models.Gaussian([100.0, -30.0], [1.0, 1.0])),
    "one": minus(pdmp.models.Gaussian([0.0], [1.0])),
    "Laplace": target(lambda x: -np.abs(x).sum(), lambda x: -np.sign(x), 2),
} | {name: minus(MODELS[name]) for name in ("LogisticRegression", "PoissonRegression", "Funnel", "Banana", "PPMF")}


@pytest.mark.parametrize("name", FALLING)
def test_a_log_density_for_a_potential_is_refused_in_a_line(name):
    model = FALLING[name]
    for run in (
        lambda: pdmp.sample(model, seed=1),
        lambda: pdmp.sample(pdmp.BPS(model, refresh_rate=1.0), initial=model.initial + 0.3, time=1.0, seed=1),
    ):
        with pytest.raises(ValueError, match="^U of FunctionModel falls without end along .* so give -f and minus its"):
            run()


def added(x):
    """Minus the log likelihood of three means, each a common one and one of its own."""
    return 0.5 * np.sum((x[0] + x[1:] - [28.0, 8.0, -3.0]) ** 2)


def differences(function, x, step):
    return (function(x + step) - function(x - step)) / (2.0 * np.sum(step))


def penalised(height, outside=0.0):
    """An exponential law of x[0] and a normal one of x[1], with a penalty for a wall."""

    def potential(x):
        return (x[0] if x[0] > 0.0 else height + outside * x[0] ** 2) + 0.5 * x[1] ** 2

    return target(potential, lambda x: [1.0 if x[0] > 0.0 else 2.0 * outside * x[0], x[1]], 2)


@pytest.mark.parametrize("model", [penalised(1e10), penalised(1e10, 0.5), penalised(1e6)])
def test_a_penalty_for_a_wall_is_named(model):
    """Whether or not the density beyond it falls off; from inside, and from outside where a run would stay."""
    for x in ([1.0, 0.0], [-2.0, 0.3]):
        found, _ = find_improper(model, np.array(x))
        assert re.search(r"jumps by 1e\+(10|06) at x\[0\] = 0, which no gradient shows.*return inf there", found.text)
        assert not found.certain
    found, _ = find_improper(penalised(1.0, 0.5), np.array([1.0, 0.0]))  # a jump as of a change point
    assert found is None


def test_what_is_bounded_is_not_said_to_grow():
    with pytest.warns(UserWarning, match=r"U of FunctionModel is bounded along x\[0\] → ±∞: the tails cannot be"):
        check_propriety(target(lambda x: np.cos(x[0]), lambda x: -np.sin(x), 1))


def test_minus_a_log_density_for_a_log_density():
    model = target(lambda x: -0.5 * x @ x, lambda x: -x, 2)
    model.of_log_density = True  # as of a JAX function
    with pytest.raises(
        ValueError, match="falls without end along .*: `log_density` has the sign of a potential, so give"
    ):
        check_propriety(model)


def flat_spread(n, d):
    """n rows of d coefficients and log σ, all with flat priors (of σ): proper from n = d + 2 on."""
    rng = np.random.default_rng(n)
    A, y = rng.normal(size=(n, d)), rng.normal(size=n)

    def parts(x):
        error = y - A @ x[:-1]
        return error, math.exp(-2.0 * min(max(x[-1], -150.0), 150.0))

    def slopes(x):
        error, weight = parts(x)
        return np.append(-weight * A.T @ error, n - 1.0 - weight * error @ error)

    return target(lambda x: 0.5 * parts(x)[1] * np.sum(parts(x)[0] ** 2) + (n - 1.0) * x[-1], slopes, d + 1)


def flat_groups(n):
    """n observed effects, their mean and log τ, with flat priors of both (of τ): proper from three on (Gelman 2006)."""
    y = np.random.default_rng(1).normal(0.0, 2.0, n)

    def parts(x):
        away = x[:n] - x[n]
        return away, math.exp(-2.0 * min(max(x[n + 1], -150.0), 150.0))

    def slopes(x):
        away, weight = parts(x)
        last = [-weight * away.sum(), n - 1.0 - weight * away @ away]
        return np.concatenate([x[:n] - y + weight * away, last])

    def potential(x):
        away, weight = parts(x)
        return 0.5 * np.sum((x[:n] - y) ** 2) + 0.5 * weight * away @ away + (n - 1.0) * x[n + 1]

    return target(potential, slopes, n + 2)


@pytest.mark.parametrize(
    ("improper", "proper", "name"),
    [
        (flat_spread(3, 2), flat_spread(4, 2), "x[2]"),
        (flat_spread(5, 4), flat_spread(6, 4), "x[4]"),
        (flat_groups(2), flat_groups(3), "x[3]"),
    ],
)
def test_a_spread_without_end_is_named(improper, proper, name):
    """What it widens has less and less mass for each width, and more widths: integrated out, it is level."""
    found, _ = find_improper(improper, improper.initial)
    assert f"improper where {name} → ∞: its density does not fall off there once all else" in found.text
    assert find_improper(proper, proper.initial)[0] is None


def by_differences(potential, dim, step=1e-6):
    """A target whose gradient is by central differences of steps that grow with |x|."""
    return target(
        potential,
        lambda x: [differences(potential, x, own) for own in np.diag(step * np.maximum(1.0, np.abs(x)))],
        dim,
    )


WINS = np.random.default_rng(0).integers(0, 6, (5, 5))


def skills(x):
    """Bradley and Terry's model: who wins against whom depends on differences of skills."""
    return float((WINS * np.logaddexp(0.0, x - x[:, None])).sum())


def choices(x):
    """Three ways with a constant and three slopes each, none of which is the reference: four ridges."""
    at = x[:3] + X @ x[3:].reshape(3, 3)
    return float((special.logsumexp(at, axis=1) - at[np.arange(len(X)), np.arange(len(X)) % 3]).sum())


IMPROPER = {
    "flat": (
        target(lambda x: 0.5 * x[0] ** 2, lambda x: [x[0], 0.0], 2, variables={"a": (), "b": ()}),
        "does not grow along b → ±∞: the posterior is improper",
    ),
    "one side": (
        target(lambda x: math.exp(-x[0]) + 0.5 * x[1] ** 2, lambda x: [-math.exp(-x[0]), x[1]], 2),
        r"does not grow along x\[0\] → ∞: the",
    ),
    "a sum": (
        target(lambda x: 0.5 * (x[0] + x[1] - 1.0) ** 2, lambda x: np.full(2, x[0] + x[1] - 1.0), 2),
        r"does not grow along the direction \+1 x\[0\] -1 x\[1\]: the",
    ),
    "by differences": (
        by_differences(added, 4),
        r"does not grow along the direction \+1 x\[0\] -1 x\[1\] -1 x\[2\] …: the",
    ),
    "skills by differences": (
        by_differences(skills, 5),
        r"does not grow along the direction \+1 x\[0\] \+1 x\[1\] \+1 x\[2\] …: the",
    ),
    "skills by coarse differences": (
        by_differences(skills, 5, 1e-3),
        r"does not grow along the direction \+1 x\[0\] \+1 x\[1\] \+1 x\[2\] …: the",
    ),
    "choices by differences": (
        by_differences(choices, 12),
        r"does not grow along the direction \+1 x\[([036])\] \+1 x\[[147]\] \+1 x\[[258]\] …: the",
    ),
    "a kink by differences": (
        by_differences(lambda x: 3.0 * abs(x[0] - x[1]), 2),
        r"does not grow along the direction \+1 x\[0\] \+1 x\[1\]: the",
    ),
    "a kink in units": (
        by_differences(lambda x: 3.0 * abs(x[0] - 4.0 * x[1]), 2),
        r"does not grow along the direction \+1 x\[0\] \+0.25 x\[1\]: the",
    ),
    "a plateau": (
        target(
            lambda x: -np.log(0.1 + np.exp(-0.5 * x @ x)),
            lambda x: x * np.exp(-0.5 * x @ x) / (0.1 + np.exp(-0.5 * x @ x)),
            2,
        ),
        "does not grow along the direction",
    ),
    "separable": (logistic(LABELS, X), "does not grow along the direction"),
    "flat prior": (
        pdmp.models.LogisticRegression([[1.0], [2.0], [-1.0]], [1, 1, 0], prior_scale=np.inf),
        r"U of LogisticRegression does not grow along x\[0\] → ∞",
    ),
    "1 / x": (target(lambda x: 0.5 * np.log1p(x @ x), lambda x: x / (1.0 + x @ x), 1), r"grows like 1 log\|x\|"),
    "1 / r^2": (
        target(lambda x: np.log1p(x @ x), lambda x: 2.0 * x / (1.0 + x @ x), 2),
        r"grows like 2 log\|x\| along the direction .* must grow faster than 2 log\|x\|: the tails cannot be norm",
    ),
    "minus a t": (minus(student(3.0, 2)), "falls without end along the direction .* minus the log density"),
    "minus a uniform": (
        target(lambda x: 0.0 if abs(x[0]) < 2.0 else -math.inf, lambda x: [0.0], 1),
        "falls without end",
    ),
    "spike": (powers(1.2, 1), r"falls like 2.4 log\|x\| towards x = 0, .*: the density has a spike"),
    "spike in a plane": (
        target(
            lambda x: 1.1 * math.log(abs(x[1])) + 0.5 * x @ x,
            lambda x: [x[0], 1.1 / x[1] + x[1]],
            2,
            initial=[0.5, 0.5],
        ),
        r"falls like 1.1 log\|x\| towards x\[1\] = 0, and may fall slower than 1 log",
    ),
    "neck": (
        schools(lambda s: (0.0, 0.0)),
        r"improper where log\(tau\) → -∞: its density does not fall off there once",
    ),
    "along a curve": (
        curve(0.0),
        r"improper where x\[1\] → -∞: its density falls off like \|x\|\^-1 once all else",
    ),
} | {
    name: (model, said)
    for groups in (12, 30, 100)
    for name, model, said in [
        (f"{groups} effects", effects(groups), r"not grow along the direction \+1 x\[0\] -1 x\[1\] -1 x\[2\] …: the"),
        (
            f"a walk of {2 * groups}",
            walk(2 * groups),
            r"not grow along the direction \+1 x\[0\] \+1 x\[1\] \+1 x\[2\] …",
        ),
        (f"a neck of {groups}", centred(groups, lambda s: (0.0, 0.0)), rf"improper where x\[{groups + 1}\] → -∞: its"),
    ]
}


@pytest.mark.parametrize("name", IMPROPER)
def test_what_is_improper_is_named(name):
    model, said = IMPROPER[name]
    with pytest.warns(UserWarning, match=said) as caught:
        # Of many dimensions 2 d gradients for flat directions, 2 d for necks, and d at each of four places down one.
        assert 5 <= check_propriety(model) <= max(270, 100 + 9 * model.dim)
    assert len(caught) == 1 and "\n" not in str(caught[0].message)
    with pytest.warns(UserWarning, match=said):  # again at the next run, of what is known
        assert check_propriety(model) == 0


@pytest.mark.parametrize("start", [np.zeros(5), np.array([3.0, 1.0, -2.0, 1.5, 0.2])])
def test_ridges_by_differences_are_found_from_anywhere(start):
    """Where coordinates have units that differ as well."""
    found, _ = find_improper(by_differences(skills, 5), start)
    assert "does not grow along the direction +1 x[0] +1 x[1] +1 x[2] …" in found.text
    assert find_improper(by_differences(lambda x: skills(x) + 1e-6 * x @ x, 5), start)[0] is None


@pytest.mark.parametrize("name", in_quick(PROPER, *(set(PROPER) - {"BPMF", "PPMF", "BayesianNN"})))
def test_nothing_proper_is_suspected(name):
    model = PROPER[name]
    found, evaluations = find_improper(model, model.initial)
    assert found is None
    # Of many dimensions d gradients for flat directions, 2 d for what may be a neck, and up to 1,000 for marginals.
    assert 0 < evaluations <= max(290, 5 * model.dim) + 1_000


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", SPREADS)
def test_a_neck_is_found_from_wherever_a_run_begins(name, seed):
    """From beside the ridge where all effects are their mean, and from a spread of 1/50 to 50, as from zero."""
    improper, proper, j = SPREADS[name]
    x = np.random.default_rng(seed).normal(size=improper.dim) * (seed > 0) + 0.3
    x[j] = (-8.0, -1.0, 0.3, 2.0, 4.0)[seed]
    found, _ = find_improper(improper, x)
    assert "→ -∞: its density does not fall off" in found.text
    assert find_improper(proper, x)[0] is None


def test_a_neck_of_many_that_are_not_normal():
    """The mode takes some steps, ten evaluations for each dimension in all and a last Hessian at most."""
    found, _ = find_improper(counts(100, 3, (FLAT, HALF_CAUCHY)), np.full(105, 0.3))
    assert "improper where x[103] → -∞" in found.text
    found, evaluations = find_improper(counts(100, 60, (HALF_CAUCHY, HALF_CAUCHY)), np.full(162, 0.3))
    assert found is None and evaluations <= 13 * 162 + 100 + 90


def test_a_start_far_from_the_mode_is_not_suspected():
    """U falls to the mode, with an overflow behind it; or is steep, as towards a spike."""

    def potential(x):
        return 0.5 * (x[1] - 30.0) ** 2 + (math.exp(-x[0]) + x[0] if x[0] < 50.0 else math.nan)

    overflows = target(potential, lambda x: [1.0 - np.exp(-x[0]), x[1] - 30.0], 2)
    for model, x in ((overflows, [-10.0, 0.0]), (normal(1e-3, 1e-9), [0.2, -0.5])):
        assert find_improper(model, np.array(x))[0] is None


def test_what_holds_from_one_point_alone_is_not_suspected():
    """Proper densities that are flat, or have a pole, on the one line on which the first rays begin."""
    plane = target(lambda x: 0.5 * x @ x, lambda x: x, 2)
    c = _Search(plane, np.zeros(2), None).point()[0][1]

    def pole(x):
        return abs(x[0]) + (x[1] - c) ** 2

    slit = target(
        lambda x: x[0] ** 4 * (x[1] - c) ** 2 + 0.5 * x[1] ** 2,
        lambda x: [4.0 * x[0] ** 3 * (x[1] - c) ** 2, 2.0 * x[0] ** 4 * (x[1] - c) + x[1]],
        2,
    )
    spike = target(
        lambda x: 0.5 * x @ x + math.log(pole(x)), lambda x: x + [np.sign(x[0]), 2.0 * (x[1] - c)] / pole(x), 2
    )
    for model in (slit, spike):
        assert find_improper(model, np.zeros(2))[0] is None


def wrong(dim):
    return target(lambda x: -0.5 * x @ x, lambda x: -x, dim)


def test_walls_are_those_of_the_process():
    """U = -x with a wall above is proper, or with a half-space; without one, or with one on the other side, not."""
    model = target(lambda x: -x.sum(), lambda x: np.full(2, -1.0), 2, initial=[-1.0, -1.0])
    options = {"events": 5, "initial": [-1.0, -1.0], "seed": 1}
    pdmp.sample(pdmp.Bounded(pdmp.ZigZag(model), upper=0.0), **options)
    pdmp.sample(pdmp.Bounded(pdmp.BPS(model, 1.0), upper=1.0, halfspaces=[([1.0, 1.0], 0.0)]), **options)
    for process in (pdmp.ZigZag(model), pdmp.Bounded(pdmp.ZigZag(model), lower=-2.0)):
        with pytest.raises(ValueError, match="falls without end"):
            pdmp.sample(process, **options)


@pytest.mark.parametrize(
    "walls", [{"lower": 0.0}, {"lower": [0.0, -1.0, 0.0]}, {"halfspaces": [([1.0, -2.0, 1.0], 0.0)]}]
)
def test_rays_begin_inside_where_the_start_is_on_a_wall(walls):
    """Of the log density of a normal law, which on a half-line is improper as everywhere."""
    process = pdmp.Bounded(pdmp.BPS(wrong(3)), **walls)
    with pytest.raises(ValueError, match="falls without end"):
        pdmp.sample(process, events=5, seed=1)


def test_without_a_mode_or_a_normal_law_there_the_sign_is_named():
    for options in ({}, {"metric": "diagonal", "mean": np.zeros(3)}, {"mean": np.zeros(3)}):
        with pytest.raises(ValueError, match="falls without end along .*: a potential is minus the log density"):
            pdmp.Boomerang(wrong(3), **options)


def test_a_tail_that_swings_is_looked_at_for_three_places():
    """U = 1.5 log |x| + 8 cos(…) far out, which between 10¹² and 10¹⁶ grows by 0.63 log |x|, and before by 2.0."""
    step = math.log(1e4)

    def log_size(x):
        return 0.5 * math.log1p(x[0] ** 2)

    model = target(
        lambda x: 1.5 * log_size(x) + 8.0 * math.cos(0.5 * math.pi * (log_size(x) / step - 3.0)),
        lambda x: (
            (1.5 - 4.0 * math.pi / step * math.sin(0.5 * math.pi * (log_size(x) / step - 3.0))) * x / (1.0 + x**2)
        ),
        1,
    )
    model.check_gradient()
    assert find_improper(model, np.ones(1))[0] is None


def test_where_a_function_cannot_be_computed_it_says_nothing():
    def fails(x):
        if np.abs(x).max() > 3.0:
            raise ZeroDivisionError
        return 0.5 * x @ x

    assert find_improper(target(fails, lambda x: x, 2), np.zeros(2))[0] is None
    near = target(
        lambda x: 2.0 * np.log1p(x @ x) if abs(x[0]) < 500.0 else math.nan, lambda x: 4.0 * x / (1.0 + x @ x), 1
    )
    assert find_improper(near, np.zeros(1))[0] is None
    nowhere = target(lambda x: 0.0 if not np.any(x) else math.nan, lambda x: x, 2)
    assert find_improper(nowhere, np.zeros(2))[0] is None

    def full(x):
        if np.any(x):
            raise MemoryError
        return 0.0

    with pytest.raises(MemoryError):
        find_improper(target(full, lambda x: x, 2), np.zeros(2))


def test_few_passes_over_many_data():
    model = target(lambda x: 0.5 * x @ x, lambda x: x, 2, n_data=10_000_000)
    assert find_improper(model, model.initial)[1] <= 20
    many = pdmp.models.Gaussian(np.zeros(400), np.ones(400))
    assert find_improper(many, many.initial)[1] <= 120


def test_a_flat_coordinate_of_many_is_found():
    weight = np.where(np.arange(300) == 217, 0.0, 1.0)
    model = target(lambda x: 0.5 * x @ (weight * x), lambda x: weight * x, 300)
    found, _ = find_improper(model, model.initial)
    assert "does not grow along x[217] → ±∞" in found.text


def test_draws_do_not_depend_on_it():
    model = target(lambda x: 0.5 * x @ x, lambda x: x, 2)
    first, second = (pdmp.sample(pdmp.BPS(model, 1.0), events=30, seed=1).trajectories[0] for _ in range(2))
    np.testing.assert_array_equal(first.positions, second.positions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_propriety(model) == 0


def test_a_sum_of_terms_is_looked_at_as_a_function_is():
    """What its U is, is written by the user too."""
    p, y = pdmp.Parameters(b=2), np.arange(6.0) % 4.0
    at = p.b[np.arange(6) % 2]
    for loss, prior in (
        (lambda y, m: -0.5 * (y - m) ** 2, {}),
        (lambda y, m: -((y - m) ** 2), {"b": Normal(0.0, 1.0)}),
    ):
        model = pdmp.models.sum_of_terms(p, [pdmp.terms(loss, [y], [at])], priors=prior)
        with pytest.raises(ValueError, match="`terms.0.` falls without end .* minus the log density"):
            pdmp.sample(pdmp.BPS(model), events=5, seed=1)
    twice = pdmp.terms(lambda y, m: 0.5 * (y - m) ** 2, [y], [np.column_stack([y, 2.0 * y]) @ p.b])
    with pytest.warns(UserWarning, match=r"does not grow along the direction \+1 b\[0\] -0.5 b\[1\]"):
        pdmp.sample(pdmp.BPS(pdmp.models.sum_of_terms(p, [twice])), events=5, seed=1)


@pytest.mark.parametrize(("dim", "rate"), [(2, 0.6), (5, 0.9), (20, 0.9)])
def test_heavy_tails_along_no_axis(dim, rate):
    """U grows like rate log|x| in one direction, which no curvature near the start tells from the others."""
    axis = np.linalg.qr(np.random.default_rng(dim).standard_normal((dim, dim)))[0][0]

    def make(rate):
        def potential(x):
            return 0.5 * rate * np.log1p((axis @ x) ** 2) + 0.5 * (x @ x - (axis @ x) ** 2)

        return target(potential, lambda x: x + (rate / (1.0 + (axis @ x) ** 2) - 1.0) * (axis @ x) * axis, dim)

    found, _ = find_improper(make(rate), np.zeros(dim))
    (said,) = re.findall(r"grows like ([\d.]+) log\|x\| along the direction", found.text)
    assert float(said) == pytest.approx(rate, rel=0.1)  # far out x @ x and (axis @ x)² cancel, to a few hundredths
    assert find_improper(make(1.2), np.zeros(dim))[0] is None


def test_far_out_is_so_in_units_of_each_coordinate():
    """What falls off with |x| / scale is seen where all coordinates are as many scales away, however they differ."""
    seen = []

    def gradient(x):
        seen.append(x)
        return x

    search = _Search(target(lambda x: 0.5 * float(x @ x), gradient, 3), np.array([1e12, 1.0, -1e6]), None)
    assert search.begin()
    seen.clear()
    assert not [*search.flat_directions(1e8, np.ones(3))]
    assert len(seen) == 4
    assert np.all(np.abs(seen) > 0.9e8 * search.scale)  # but for where the search begins, some scales from 0


@pytest.mark.parametrize("dim", [3, 10, 100])
@pytest.mark.parametrize(
    ("lowest", "says"),
    [
        (-0.1, "falls without end along the direction"),
        (-0.001, "falls without end along the direction"),
        (0.0, "does not grow along the direction"),
        (0.001, None),
    ],
)
def test_a_quadratic_of_any_axes_that_is_not_positive_definite(dim, lowest, says):
    """Terms that cancel leave rounding far out, which is neither growth nor a fall."""
    axes = np.linalg.qr(np.random.default_rng(dim).standard_normal((dim, dim)))[0]
    matrix = axes @ np.diag([lowest, *np.ones(dim - 1)]) @ axes.T
    matrix = 0.5 * (matrix + matrix.T)
    found, count = find_improper(target(lambda x: 0.5 * x @ matrix @ x, lambda x: matrix @ x, dim), np.zeros(dim))
    assert found is None if says is None else says in found.text
    assert count < 4 * dim + 500


def rows_of(name, sign, n=24):
    """Rows of a family, or minus these: of responses in its range, with coefficients and an offset."""
    family, rng, offset = FAMILIES[name], np.random.default_rng(5), np.linspace(-0.3, 0.3, n)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    numbers = X @ [0.5, 1.0, -1.0] + rng.normal(0.0, 1.5, n)
    y = {
        "number": numbers,
        "positive": rng.gamma(1.5, 1.0, n),
        "share": rng.uniform(0.01, 0.99, n),
        "count": np.minimum(rng.poisson(1.2, n), 3.0),
        "label": rng.integers(0, 4 if family.arrange else 2, n).astype(float),
        "angle": 2.0 * np.arctan(numbers),
    }[family.response.removesuffix(" or 0")]
    if family.response.endswith(" or 0"):
        y = np.where(np.arange(n) % 3 == 0, 0.0, y)
    if family.arrange:
        p = pdmp.Parameters(b=2, cuts=3)
        rows = family.rows(y, mu=offset + X[:, 1:] @ p.b, cuts=p.cuts)
    else:
        first, *others = family.links
        p = pdmp.Parameters(b=3, **dict.fromkeys(others, 1))
        more = {"trials": np.full(n, 3.0)} if "trials" in family.data else {}
        rows = family.rows(y, **{first: offset + X @ p.b}, **{name: getattr(p, name) for name in others}, **more)
    if sign < 0.0:
        ascending, loss = rows.ascending, rows.loss
        rows = pdmp.terms(lambda *a: -1.0 * loss(*a), rows.data[:-1], rows.at)
        rows.ascending = ascending
    return p, rows


@pytest.mark.parametrize("name", in_quick(FAMILIES, "gamma", "cumulative", "weibull", "zero_inflated_poisson"))
def test_the_sign_of_data_is_seen_whatever_priors_add(name):
    """Normal priors grow faster than what falls linearly; rows of effects and of a normal prior have the right sign."""
    right, wrong = (rows_of(name, sign) for sign in (1.0, -1.0))
    for p, rows in (right, wrong):
        prior = pdmp.terms(lambda b: 0.5 * b**2, at=[p.b[np.arange(p.b.size)]])
        model = pdmp.models.sum_of_terms(p, [prior, rows], priors=dict.fromkeys(p.sizes, Normal(0.0, 2.5)))
        found = find_wrong_sign(model, model.initial)
        if rows is right[1]:
            assert found is None and find_improper(model, model.initial)[0] is None
        elif found is None:  # what falls faster than the priors grow
            assert find_improper(model, model.initial)[0] is not None
        elif name == "von_mises":  # in its direction it is bounded
            assert found.text.startswith("the terms with data fall without end as kappa → ∞, where no density of data")
        else:
            assert found.certain
            assert found.text.startswith("the loss `<lambda>` of `terms[1]` falls without end whichever")


def test_the_sign_of_data_beside_other_terms():
    """Of effects that have no other data, of one kind of two; what is summed with other data is asked about."""
    rng, n = np.random.default_rng(1), 60
    p = pdmp.Parameters(b=2, u=6, c=1, log_tau=1)
    X, g = rng.normal(size=(n, 2)), np.arange(n) % 6
    y, z = rng.normal(size=n), (rng.random(n) < 0.5).astype(float)
    effects = pdmp.terms(lambda u, t: t + 0.5 * u**2 * np.exp(-2.0 * t), at=[p.u[np.arange(6)], p.log_tau])
    normal = pdmp.terms(lambda y, m: 0.5 * (y - m) ** 2, [y], [X @ p.b])
    cut = pdmp.terms(lambda a, m: pdmp.terms.log_ndtr(m - a), [np.full(n, -1.0)], [X @ p.b])  # y > -1 was seen only
    labels = [
        pdmp.terms(lambda y, m, s=s: s * (pdmp.terms.softplus(m) - y * m), [z], [p.u[g] + p.c]) for s in (1.0, -1.0)
    ]
    layers = pdmp.terms(lambda m: -pdmp.terms.softplus(m), at=[X @ p.b])  # of a restricted Boltzmann machine
    priors = {"b": Normal(0.0, 1.0), "u": Normal(0.0, 9.0), "c": Normal(0.0, 1.0), "log_tau": Normal(0.0, 1.0)}

    def found(*terms):
        model = pdmp.models.sum_of_terms(p, terms, priors=priors)
        return find_wrong_sign(model, model.initial)

    assert found(effects, normal, labels[0]) is None
    asked = (
        "the loss `<lambda>` of `terms[{}]` falls without end whichever way b goes, as the log density of data does, "
    )
    hidden = found(effects, normal, cut)
    assert hidden.text.startswith(f"{asked.format(2)}and other terms hide it") and not hidden.certain
    minus = pdmp.terms(lambda y, m: -0.5 * (y - m) ** 2, [y[:20]], [X[:20] @ p.b])
    hidden = found(minus, labels[0], normal, effects)
    assert hidden.text.startswith(asked.format(0)) and not hidden.certain
    with pytest.warns(
        UserWarning, match=r"terms\[0\]` falls without end whichever way b goes, .* and other terms hide it"
    ):
        check_propriety(pdmp.models.sum_of_terms(p, [minus, labels[0], normal, effects], priors=priors))
    for sign in (1.0, -1.0):  # a sum that falls towards one side, as a Jacobian does
        tilt = pdmp.terms(lambda w, c: w * c, [sign * np.arange(3.0)], [p.c])
        assert found(tilt, labels[0], effects) is None
        assert (
            "`terms[0]` is a straight line in all that it depends on, which minus the log density" in found(tilt).text
        )
    assert found(effects, layers) is None and found(layers, labels[0]) is None
    assert "`terms[2]` falls without end whichever way u goes" in found(effects, normal, labels[1]).text
    with pytest.raises(ValueError, match=r"^the loss `<lambda>` of `terms\[0\]` falls without end whichever way u"):
        pdmp.sample(pdmp.models.sum_of_terms(p, [labels[1], effects], priors=priors), seed=1)


@pytest.mark.filterwarnings("ignore:the loss `<lambda>` does not use")
def test_a_constant_with_the_wrong_sign_is_asked_about():
    """-n log σ in place of n log σ, which a normal prior of log σ outweighs; what is split among terms may fall."""
    rng, n = np.random.default_rng(1), 30
    p, X = pdmp.Parameters(b=2, log_sigma=1), rng.normal(size=(n, 2))
    y = rng.normal(size=n)

    def found(*losses):
        given = [[y] * (loss.__code__.co_argcount - 2) for loss in losses]
        rows = [pdmp.terms(loss, data, [X @ p.b, p.log_sigma]) for loss, data in zip(losses, given, strict=True)]
        model = pdmp.models.sum_of_terms(p, rows, priors={"b": Normal(0.0, 1.0), "log_sigma": Normal(0.0, 1.0)})
        wrong = find_wrong_sign(model, model.initial)
        return None if wrong is None else wrong.text

    def square(y, m, s):
        return 0.5 * (y - m) ** 2 * np.exp(-2.0 * s)

    text = "the terms with data fall without end as log_sigma → {}∞, where no density of data grows without end"
    assert found(lambda y, m, s: square(y, m, s) - s).startswith(text.format(""))
    assert found(lambda y, m, s: square(y, m, -s) + s).startswith(text.format("-"))
    assert found(lambda y, m, s: s + square(y, m, s)) is None
    assert found(lambda y, m, s: 0.5 * (y - m) ** 2 - s) is None  # a straight line, as a Jacobian
    # The parts of a Poisson law, one of them without data, and of a prior on the log scale.
    assert found(lambda y, m, s: -y * s, lambda m, s: np.exp(s) + np.exp(-s)) is None
    assert found(lambda y, m, s: s + square(y, m, s), lambda m, s: -s) is None
    # A Student's t that falls like a logarithm is seen by its directions, and no repulsion is.
    assert "falls without end whichever way b goes" in found(lambda y, m, s: -2.5 * np.log1p((y - m) ** 2) + 0.0 * s)


@pytest.mark.parametrize(("centre", "spread"), [(1e5, 1.0), (1.7e9, 1e7), (-3e6, 10.0)])
def test_data_far_from_zero_fall_as_far_as_they_are(centre, spread):
    """Of all rows, and of a few among others that are near zero; with another sign some fall without end."""
    c, p = centre + spread * np.random.default_rng(1).standard_normal(40), pdmp.Parameters(m=1)
    some = np.where(np.arange(40) % 5 == 0, c, c - centre)

    def found(data, sign):
        rows = pdmp.terms(lambda c, m: sign * 0.5 * ((c - m) / spread) ** 2, [data], [p.m])
        model = pdmp.models.sum_of_terms(p, [rows], priors={"m": Normal(0.0, 10.0 * abs(centre))})
        return find_wrong_sign(model, model.initial)

    assert found(c, 1.0) is None and found(some, 1.0) is None
    assert centre == 1.7e9 or "fall without end" in found(c, -1.0).text


def test_arguments_in_the_wrong_order_are_asked_about():
    """Where the loss is a straight line in what depends on parameters, whatever else the model has."""
    rng, n = np.random.default_rng(1), 40
    p, X = pdmp.Parameters(b=2, c=2, log_s=1), rng.normal(size=(n, 2))
    counts, numbers = rng.poisson(3.0, n).astype(float), rng.normal(size=n)
    normal = pdmp.terms(lambda y, m, s: s + 0.5 * (y - m) ** 2 * np.exp(-2.0 * s), [numbers], [X @ p.c, p.log_s])

    def found(loss, *others, data=counts):
        rows = [*others, pdmp.terms(loss, [data], [X @ p.b])]
        model = pdmp.models.sum_of_terms(p, rows, priors=dict.fromkeys(p.sizes, Normal(0.0, 1.0)))
        wrong = find_wrong_sign(model, model.initial)
        return None if wrong is None else wrong.text

    labels = (counts > 2.0).astype(float)
    exponentials = pdmp.terms(lambda m: np.exp(m), at=[X @ p.b])  # of a Poisson law in two parts
    for loss, data in (
        (lambda y, m: np.exp(m) - y * m, counts),
        (lambda y, m: pdmp.terms.softplus(m) - y * m, labels),
        (lambda y, m: m + y * np.exp(-m), counts + 1.0),
    ):
        for others in ((), (normal,)):
            assert found(loss, *others, data=data) is None
            said = found(lambda m, y, loss=loss: loss(y, m), *others, data=data)
            assert said.startswith(f"the loss `<lambda>` of `terms[{len(others)}]` is a straight line in all that")
            assert said.endswith("may be in the wrong order, as in loss(z, y) for loss(y, z).")
    assert found(lambda y, m: -y * m, exponentials) is None
    assert found(lambda y, m: np.abs(y - m)) is None


class Labels(pdmp.Model):
    """Logistic rows, of which some have another sign, and a normal prior or minus one; a prior that falls linearly."""

    X: np.ndarray
    y: np.ndarray
    sign: np.ndarray
    prior: np.ndarray
    slope: float

    def __init__(self, sign=(), prior=(1.0, 1.0, 1.0), straight=False, slope=0.0):
        rng = np.random.default_rng(2)
        super().__init__(dim=3, n_data=200)
        self.X, self.y, self.sign = rng.normal(size=(200, 3)), (rng.random(200) < 0.5) * 1.0, np.ones(200)
        self.sign[list(sign)] = -1.0
        if straight:
            self.sign[:] = 0.0
        self.prior, self.slope = np.array(prior), slope

    @pdmp.compiled
    def term_potential(self, x, i):
        z = self.X[i, 0] * x[0] + self.X[i, 1] * x[1] + self.X[i, 2] * x[2]
        return self.sign[i] * (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) - self.y[i] * z

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        z = self.X[i, 0] * x[0] + self.X[i, 1] * x[1] + self.X[i, 2] * x[2]
        for j in range(3):
            out[j] += (self.sign[i] / (1.0 + math.exp(-z)) - self.y[i]) * self.X[i, j]

    @pdmp.compiled
    def prior_potential(self, x):
        total = self.slope * x[0]
        for j in range(3):
            total += 0.5 * self.prior[j] * x[j] * x[j]
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += self.slope
        for j in range(3):
            out[j] += self.prior[j] * x[j]


def test_rows_of_a_class_and_coordinates_of_its_prior_with_the_wrong_sign_are_asked_about():
    """A prior that is flat or falls linearly in a coordinate, as a Jacobian does, is nothing wrong."""

    def found(**options):
        model = Labels(**options)
        assert np.isfinite(model.potential(np.ones(3)))
        wrong = find_wrong_sign(model, model.initial)
        return None if wrong is None else wrong.text

    assert found() is None and found(prior=(1.0, 0.0, 0.0)) is None and found(slope=-9.0, prior=(0.0, 1.0, 1.0)) is None
    assert found(prior=(1.0, 1.0, -0.01)).startswith(
        "`prior_potential` of Labels falls faster than linearly along x[2] → ±∞, as no prior does, and other parts hide"
    )
    assert "along x[0] → ±∞, x[1] → ±∞, as no" in found(prior=(-1.0, -1.0, 1.0))
    assert found(sign=(7, 90, 199)).startswith(
        "`term_potential` of Labels falls without end in some rows only (3 of 200 looked at: 7, 90, 199), where minus"
    )
    assert found(straight=True).startswith("`term_potential` of Labels is a straight line in all that it depends on")
    with pytest.warns(UserWarning, match=r"`term_potential` of Labels falls without end in some rows only \(1 of 200"):
        check_propriety(Labels(sign=(90,)))


def test_rows_of_terms_with_the_wrong_sign_are_asked_about():
    """Data without a scale of their own, as returns of exactly 0, let single rows fall in a straight line."""
    rng, n = np.random.default_rng(3), 60
    p, X = pdmp.Parameters(b=2, h=n, log_tau=1), rng.normal(size=(n, 2))
    y, returns = (rng.random(n) < 0.5) * 1.0, rng.normal(size=n)
    returns[::7] = 0.0
    sign = np.where(np.arange(n) % 29 == 5, -1.0, 1.0)
    prior = pdmp.terms(lambda h, t: t + 0.5 * h**2 * np.exp(-2.0 * t), at=[p.h[np.arange(n)], p.log_tau])

    def found(*rows):
        model = pdmp.models.sum_of_terms(p, rows, priors={"b": Normal(0.0, 1.0), "log_tau": Normal(0.0, 1.0)})
        wrong = find_wrong_sign(model, model.initial)
        return None if wrong is None else wrong.text

    def labels(sign):
        return pdmp.terms(lambda s, y, z: s * (pdmp.terms.softplus(z) - y * z), [sign, y], [X @ p.b])

    seen = pdmp.terms(lambda y, h: 0.5 * h + 0.5 * y**2 * np.exp(-h), [returns], [p.h[np.arange(n)]])
    assert found(labels(sign**2), prior) is None and found(seen, prior) is None
    assert "(2 of 60 looked at: 5, 34)" in found(
        prior, pdmp.terms(lambda s, y, m: s * np.log1p((y - m) ** 2), [sign, returns], [X @ p.b])
    )
    assert found(prior, labels(sign)).startswith(
        "the loss `<lambda>` of `terms[1]` falls without end in some rows only (2 of 60 looked at: 5, 34), where"
    )


@pytest.mark.parametrize("groups", [6, 15])
def test_terms_without_data_with_the_wrong_sign_are_asked_about(groups):
    """In a prior of effects, minus log tau or minus the squares; a product beside squares or a Jacobian is right.

    Of more effects than coordinates that are looked at, log tau stands behind them.
    """
    rng, n = np.random.default_rng(4), 60
    p, X = pdmp.Parameters(b=2, u=groups, log_tau=1), rng.normal(size=(n, 2))
    y, g, own = rng.normal(size=n), np.arange(n) % groups, np.arange(groups)
    normal = pdmp.terms(lambda y, m: 50.0 * (y - m) ** 2, [y], [X @ p.b + p.u[g]])

    def found(*rows):
        model = pdmp.models.sum_of_terms(
            p, [normal, *rows], priors={"b": Normal(0.0, 1.0), "log_tau": Normal(0.0, 1.0)}
        )
        wrong = find_wrong_sign(model, model.initial)
        return None if wrong is None else wrong.text

    def effects(a, b):
        return pdmp.terms(lambda u, t: a * t + b * u**2 * np.exp(-2.0 * t), at=[p.u[own], p.log_tau])

    squares = pdmp.terms(lambda u: u**2, at=[p.u[own]])
    products = pdmp.terms(lambda u, v: -0.99 * u * v, at=[p.u[own], p.u[np.roll(own, 1)]])
    jacobian = pdmp.terms(lambda t: -t, at=[p.log_tau])
    right = effects(1.0, 0.5)
    assert found(right) is None and found(right, jacobian) is None and found(squares, products) is None
    text = (
        "the terms without data fall without end as log_tau → ∞, where no density of data grows without end: the sign"
    )
    assert found(effects(-1.0, 0.5)).startswith(text)
    for wrong in ((effects(1.0, -0.5),), (products,), (pdmp.terms(lambda u: -0.5 * u**2, at=[p.u[own]]),)):
        assert found(*wrong).startswith("terms without data fall faster than linearly along ")


def test_what_a_prior_by_name_hides_is_asked_about_and_repeated():
    """Minus the squares of steps beside a narrower prior; not products of neighbours, which fall in some directions."""
    p, i = pdmp.Parameters(h=20), np.arange(19)

    def warnings_of(loss):
        walk = pdmp.terms(loss, at=[p.h[i], p.h[i + 1]])
        model = pdmp.models.sum_of_terms(p, [walk], priors={"h": Normal(0.0, 0.2)})
        return pdmp.sample(pdmp.BPS(model), events=300, seed=1).summary().warnings

    says = "terms without data fall faster than linearly whichever way h goes, as no prior does"
    with pytest.warns(match=says):
        found = warnings_of(lambda a, b: -1.0 * (a - b) ** 2)
    assert [text for text in found if text.startswith(says)] == found[:1]
    assert not any("fall" in text for text in warnings_of(lambda a, b: -9.0 * a * b))


def test_a_loss_given_a_logarithm_for_a_positive_number_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=80)
    p = pdmp.Parameters(b=2, s=1)

    def model(loss, *at):
        rows = pdmp.terms(loss, [y], [X @ p.b, *at])
        return pdmp.models.sum_of_terms(p, [rows], priors={"b": Normal(0.0, 2.5), "s": HalfNormal(1.0)})

    said = r"where log\(s\) is below 0. .* is log\(s\), which may be any number: write exp\(x\) where s itself is meant"
    with pytest.raises(ValueError, match=said):
        pdmp.sample(pdmp.BPS(model(lambda y, z, s: np.log(s) + 0.5 * ((y - z) / s) ** 2, p.s)), events=5)
    function = target(
        lambda x: x[1] + math.log(x[1]) + 0.5 * x[0] ** 2 if x[1] > 0.0 else math.nan,
        lambda x: np.array([x[0], 1.0 + 1.0 / x[1]]),
        2,
        variables={"b": (1,), "tau": (1,)},
        transforms={"tau": Log()},
        initial=[1.0, 1.0],
    )
    with pytest.raises(ValueError, match=r"not a number where log\(tau\[0\]\) is below 0"):
        pdmp.sample(function, chains=2)
    right = model(lambda y, z, t: t + 0.5 * ((y - z) * np.exp(-t)) ** 2, p.s)
    assert find_wrong_sign(right, right.initial) is None


@pytest.mark.parametrize("tail", [lambda u, t: 2.5 * pdmp.terms.log1p(u * u * np.exp(-2.0 * t) / 4.0),
                                  lambda u, t: pdmp.terms.log1p(u * u * np.exp(-2.0 * t))])  # fmt: skip
def test_the_sign_of_a_log_scale_of_heavy_effects_is_asked_about(tail):
    """Beside it, a constant of data that is a term without data is made up for by these."""
    y, own = np.sin(np.arange(30.0)), np.arange(30) % 5
    p = pdmp.Parameters(u=5, t=1)
    rows = pdmp.terms(lambda y, u: 0.5 * (y - u) ** 2, [y], [p.u[own]])
    for sign, said in ((1.0, None), (-1.0, "the terms without data fall without end as t → ∞")):
        effects = pdmp.terms(lambda u, t, s=sign: s * t + tail(u, t), at=[p.u[np.arange(5)], p.t])
        model = pdmp.models.sum_of_terms(p, [rows, effects], priors={"t": Normal(-1.0, 1.0)})
        wrong = find_wrong_sign(model, model.initial)
        assert (wrong is None) if said is None else wrong.text.startswith(said)
    p = pdmp.Parameters(s=1)
    rows = pdmp.terms(lambda y, s: 0.5 * y * y * np.exp(-2.0 * s), [y], [p.s[0 * own]])
    constant = pdmp.terms(lambda s: 30.0 * s + tail(1.0, -s) + s, at=[p.s])
    model = pdmp.models.sum_of_terms(p, [rows, constant], priors={"s": Normal(0.0, 3.0)})
    assert find_wrong_sign(model, model.initial) is None


BOTH = "terms without data fall without end along u[0] → ±∞, u[1] → ±∞, u[2] → ±∞"


def of_a_share(x, outside):
    """150 of 500, of the share itself, and what U is where it is none."""
    return -150.0 * math.log(x[0]) - 350.0 * math.log(1.0 - x[0]) if 0.0 < x[0] < 1.0 else outside


def of_shares(x, outside):
    last = 1.0 - x.sum()
    return -math.log(x[0]) - 2.0 * math.log(x[1]) - math.log(last) if min(*x, last) > 0.0 else outside


def of_a_spread(x, outside):
    return math.log(x[0]) + 2.0 / x[0] if x[0] > 0.0 else outside


@pytest.mark.parametrize(("outside", "how"), [(math.nan, "not a number"), (math.inf, "infinite")])
@pytest.mark.parametrize(
    ("potential", "transform", "label", "formula"),
    [
        (of_a_share, Interval(), "logit(p) is below 0", "expit(x)"),
        (
            lambda x, o: of_a_share((x + 1.0) / 4.0, o),
            Interval(-1.0, 3.0),
            "interval(p) is below -1",
            "-1 + 4 expit(x)",
        ),
        (of_shares, Simplex(), "simplex(p[0]) is below 0", "`Simplex.constrain` of x"),
        (of_a_spread, Log(), "log(p) is below 0", "exp(x)"),
        (lambda x, o: of_a_spread(x + 2.0, o), Log(-2.0), "log(p + 2) is below -2", "-2 + exp(x)"),
        (of_a_spread, Upper(10.0), "log(10 - p) is below 0", "10 - exp(x)"),
    ],
)
def test_a_potential_of_what_a_coordinate_is_not_is_found(potential, transform, label, formula, outside, how):
    """U of a natural parameter beside a transform: an edge where the parameter ends, and a coordinate does not."""
    d = 2 if isinstance(transform, Simplex) else 1
    shape = {"p": (2,) if d == 2 else ()}
    for begin in (np.full(d, 0.3), np.full(d, 0.45 if d == 2 else 0.7)):

        def made(function, begin=begin):
            return target(function, np.zeros_like, d, variables=shape, transforms={"p": transform}, initial=begin)

        wrong = find_wrong_sign(made(lambda x: potential(x, outside)), begin)
        said = f"U is {how} where {label}. By its prior or its transform the coordinate of p, x or p.p in a"
        assert wrong.text.startswith(said) and f"write {formula} where p itself is meant" in wrong.text
        assert wrong.certain == math.isnan(outside)
        assert wrong.text.endswith("let U be inf, not NaN, there." if wrong.certain else "ends there, all is well.")
        # Of the coordinate, as it is to be; and of a spread that is known to be at most 3.
        right = made(lambda x: potential(transform.constrain(x)[:d] if d == 2 else np.exp(-np.logaddexp(0.0, -x)), 0.0))
        assert find_wrong_sign(right, begin) is None
        walled = made(lambda x: 0.5 * float(x @ x) if x[0] < math.log(3.0) else outside)
        assert find_wrong_sign(walled, begin) is None


@pytest.mark.parametrize(
    ("transform", "side"), [(Log(), -1.0), (Interval(), 1.0), (Interval(), -1.0), (Interval(-1.0, 1.0), 1.0)]
)
def test_a_parameter_that_is_known_to_be_on_one_side_of_the_middle_is_right(transform, side):
    """A spread below 1, a share above 1/2, a correlation above 0: their coordinates end at 0 too."""
    begin = np.array([0.4 * side])
    model = target(
        lambda x: 0.5 * float(x @ x) if side * x[0] > 0.0 else math.inf,
        lambda x: x, 1, variables={"p": ()}, transforms={"p": transform}, initial=begin,
    )  # fmt: skip
    assert find_wrong_sign(model, begin) is None


def test_shares_that_are_none_at_the_start_nor_where_each_is_a_half_are_found_as_well():
    p, n = pdmp.Parameters(w=2), np.repeat([0.0, 1.0, 2.0], [40, 60, 100])
    rows = pdmp.terms(
        lambda k, a, b: -where(k == 0.0, np.log(a), where(k == 1.0, np.log(b), np.log(1.0 - a - b))),
        [n],
        [p.w[0], p.w[1]],
    )
    one = pdmp.models.sum_of_terms(p, [rows], transforms={"w": Simplex()})
    assert not one.initial.any() and not math.isfinite(one.potential(one.initial))
    assert "not a number where simplex(w[0]) is below 0." in find_wrong_sign(one, one.initial).text


@pytest.mark.parametrize("lower", [-2.0, -math.inf])
def test_an_interval_has_two_ends(lower):
    one = target(
        lambda x: -math.log(3.0 - x[0]) if lower < x[0] < 3.0 else math.inf,
        np.zeros_like, 1, variables={"p": ()}, transforms={"p": Interval(-2.0, 3.0)}, initial=[0.4],
    )  # fmt: skip
    found = find_wrong_sign(one, np.array([0.4]))
    assert found is None if lower < -2.0 else "infinite where interval(p) is below -2." in found.text


def test_a_wrong_sign_beside_terms_that_hold_a_coordinate_is_asked_about():
    """A random walk of log variances, whose steps keep the posterior proper."""
    y, p = np.random.default_rng(3).standard_normal(40), pdmp.Parameters(h=40)
    i = np.arange(39)
    steps = pdmp.terms(lambda a, b: 50.0 * (b - a) ** 2, at=[p.h[i], p.h[i + 1]])

    def wrong(loss):
        rows = pdmp.terms(loss, [y], [p.h[np.arange(40)]])
        model = pdmp.models.sum_of_terms(p, [rows, steps], priors={"h": Normal(0.0, 3.0)})
        return find_wrong_sign(model, model.initial)

    assert wrong(lambda y, h: 0.5 * h + 0.5 * y**2 * np.exp(-h)) is None
    said = "the terms with data fall without end as h[0] → ∞, where no density of data grows without end"
    assert wrong(lambda y, h: -0.5 * h + 0.5 * y**2 * np.exp(-h)).text.startswith(said)
    # What goes up linearly on the other side may be a part of which the rest is another term.
    part = pdmp.terms(lambda y, h: pdmp.terms.softplus(2.0 * h + y) + h, [y], [p.h[np.arange(40)]])
    rest = pdmp.terms(lambda h: np.exp(-h), at=[p.h[np.arange(40)]])
    model = pdmp.models.sum_of_terms(p, [part, rest, steps], priors={"h": Normal(0.0, 3.0)})
    assert find_wrong_sign(model, model.initial) is None


SLOW = {
    "Student's t": (lambda u: 2.5 * pdmp.terms.log1p(u**2 / 4.0), {-1.0: BOTH}),
    "Cauchy": (lambda u: pdmp.terms.log1p(u**2), {-1.0: BOTH}),
    "smooth Laplace": (lambda u: pdmp.terms.sqrt(1.0 + u**2), {-1.0: BOTH}),
    "a pole, as a Jacobian": (lambda u: 0.5 * np.log(u**2), {}),
    "half-Cauchy of a logarithm": (lambda u: pdmp.terms.softplus(2.0 * u) - u, {-1.0: BOTH}),
    "a Jacobian": (lambda u: u, {}),
    "to one side": (lambda u: pdmp.terms.softplus(2.0 * u) + u, {}),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_prior_that_falls_both_ways_is_asked_about_however_slowly(name):
    """A heavy tail with the wrong sign, which the data outweigh; a Jacobian falls one way only, or from a pole."""
    loss, asked = SLOW[name]  # of each sign what is said
    p, own = pdmp.Parameters(b=1, u=5), np.arange(30) % 5
    rows = pdmp.terms(lambda y, b, u: 50.0 * (y - b - u) ** 2, [np.sin(np.arange(30.0))], [p.b[0 * own], p.u[own]])
    for sign in (1.0, -1.0):
        effects = pdmp.terms(lambda u, s=sign: s * loss(u), at=[p.u[np.arange(5)]])
        model = pdmp.models.sum_of_terms(p, [rows, effects], priors={"b": Normal(0.0, 1.0)})
        wrong = find_wrong_sign(model, model.initial)
        assert (wrong is not None) == (sign in asked)
        assert wrong is None or wrong.text.startswith(asked[sign])


class Parts(pdmp.Model):
    """n (x₀ - 1)²/2 + |x₁| with the prior |x|²/2, or minus one; or a prior with -2 log |x₀| or -2 log(1 + x₀²)."""

    data: float
    prior: float
    scale: float

    def __init__(self, data=1.0, prior=1.0, scale=0.0):
        super().__init__(dim=2, n_data=3, variables={"place": (), "log_scale": ()})
        self.data, self.prior, self.scale = data, prior, scale

    @pdmp.compiled
    def term_potential(self, x, i):
        return self.data * (abs(x[0] - 1.0) + abs(x[1])) + self.scale * x[1]

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += self.data * (1.0 if x[0] > 1.0 else -1.0)
        out[1] += self.data * (1.0 if x[1] > 0.0 else -1.0) + self.scale

    @pdmp.compiled
    def prior_potential(self, x):
        if abs(self.prior) == 0.5:
            return 1.0 - 2.0 * math.log(abs(x[0]) if self.prior > 0.0 else 1.0 + x[0] * x[0])
        return self.prior * (0.5 * x[0] * x[0] + abs(x[1]))

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(2):
            out[j] += self.prior * x[j]


def test_a_part_of_a_class_with_the_wrong_sign_is_asked_about():
    """Terms that the prior outweighs, or a prior that the terms do; not one that falls like a logarithm from a pole."""

    def found(**options):
        model = Parts(**options)
        wrong = find_wrong_sign(model, model.initial)
        assert wrong is None or not wrong.certain
        return None if wrong is None else wrong.text

    assert found() is None and found(prior=0.5) is None and found(scale=0.9) is None
    text = (
        "`{}` of Parts falls without end whichever way x goes, as a log density does, and what it is added to hides "
        "it: a potential is minus the log density, so give -f and minus its gradient."
    )
    assert found(data=-1.0) == text.format("term_potential") and found(prior=-1.0) == text.format("prior_potential")
    assert found(prior=-0.5).startswith("`prior_potential` of Parts falls without end along place → ±∞, as no prior")
    assert found(scale=1.1).startswith(
        "`term_potential` of Parts falls without end as log_scale → -∞, where no density"
    )
    with pytest.warns(UserWarning, match="`term_potential` of Parts falls without end whichever way x goes"):
        assert check_propriety(Parts(data=-0.1)) > 5
    with pytest.raises(ValueError, match="^U of Parts falls without end along"):  # a proof comes first
        check_propriety(Parts(data=-0.1, prior=-1.0))


class AllInTerms(pdmp.Model):
    """A class without a method for its prior, which is in its terms, and one of which falls."""

    def __init__(self):
        super().__init__(dim=1, n_data=3)

    @pdmp.compiled
    def term_potential(self, x, i):
        return -0.5 * abs(x[0]) if i == 0 else abs(x[0])

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        sign = 1.0 if x[0] > 0.0 else -1.0
        out[0] += -0.5 * sign if i == 0 else sign


def test_terms_of_a_class_without_a_prior_may_fall():
    """Where the prior is among them they may be parts of one density, and only their sum has to grow."""
    model = AllInTerms()
    assert find_wrong_sign(model, model.initial) is None and find_improper(model, model.initial)[0] is None


@pytest.mark.parametrize(("dim", "power", "share"), [(1, 4, 1e-3), (3, 4, 1e-5), (3, 3, 1e-2), (3, 4, 1e-20)])
def test_what_falls_beyond_a_barrier_is_named(dim, power, share):
    """U = |x|²/2 - share Σ xᵏ is lowest near 0 up to a barrier, as high as 1/(16 share) for k = 4."""

    def make(sign):
        return target(
            lambda x: 0.5 * x @ x + sign * share * (x**power).sum(),
            lambda x: x + sign * share * power * x ** (power - 1),
            dim,
        )

    with pytest.warns(UserWarning, match="grows along .*, and far beyond that falls without end: the posterior is"):
        assert check_propriety(make(-1.0)) < 120
    assert power == 3 or find_improper(make(1.0), np.zeros(dim))[0] is None


LIMITS = {  # families with the parameter of which U tends to a limit, the side, and where a flat prior is proper
    "negative_binomial": ("alpha", "", None),
    "student_t": ("nu", "", "sigma"),
    "beta_binomial": ("phi", "", None),
    "zero_inflated_poisson": ("zi", "-", None),
    "gamma": (None, "", "shape"),
    "mixture_poisson": (list(FAMILIES["mixture_poisson"].links)[-1], "-", None),  # U is rounding towards the other side
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_seen_in_spite_of_rounding(name):
    """U changes ever less on the way to it, and is the rounding of sums of log gamma functions further out."""
    improper, side, proper = LIMITS[name]
    p, rows = rows_of(name, 1.0)
    for flat in filter(None, (improper, proper)):
        for law in (Flat(), Normal(0.0, 1e4)):
            priors = dict.fromkeys(p.sizes, Normal(0.0, 2.5)) | {flat: law}
            model = pdmp.models.sum_of_terms(p, [rows], priors=priors)
            found, count = find_improper(model, model.initial)
            assert count < 260
            if flat is proper or law != Flat():
                assert found is None
            else:
                assert f" {flat} → {side}∞" in found.text and "improper" in found.text


@pytest.mark.parametrize("falls", [2, 3])
@pytest.mark.parametrize("before", [0, 2])
def test_a_limit_is_said_where_changes_fall_at_three_places_in_a_row(falls, before):
    """Until they are rounding; two may be by chance, also behind changes that do not fall."""
    changes = [0.1] * before + [0.1 / 4.0**k for k in range(falls + 1)]
    changes += [(-1.0) ** k * changes[-1] for k in range(1, len(APPROACH) - len(changes))]
    levels = dict(zip(APPROACH, np.cumsum([0.0, *changes]), strict=True))
    stairs = target(lambda x: levels.get(x[0], 0.5), lambda x: 0.0 * x, 1)
    assert _Search(stairs, np.zeros(1), None).tends(np.zeros(1), 0, 1.0) == (falls == 3)


def test_an_exponential_beyond_all_numbers_is_infinite():
    """One that stops to grow there would let U of Student's t fall as ν goes to 0, where residuals are small."""
    p, y = pdmp.Parameters(b=1, sigma=1, nu=1), np.linspace(-1.0, 1.0, 12)
    rows = pdmp.families.student_t.rows(y, mu=np.ones((12, 1)) @ p.b, sigma=p.sigma, nu=p.nu)
    laws = {"b": Normal(0.0, 2.5), "sigma": Normal(0.0, 2.5), "nu": Gamma(2.0, 0.1)}
    model = pdmp.models.sum_of_terms(p, [rows], priors=laws)
    for far in (-800.0, -1e6):
        assert model.potential([0.0, 0.0, far]) == math.inf
    assert find_improper(model, model.initial)[0] is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("height", [3.0, 12.0, 29.0])
def test_a_plateau_along_a_diagonal(height, sign):
    """Flat far from the ridge on which both coordinates are as far out, whichever diagonal it is."""

    def both(x):
        along, across = x[0] + sign * x[1], x[0] - sign * x[1]
        fall = np.exp(-(along**2) / 8.0)
        slope = height * fall * along / 4.0
        return height * (1.0 - fall) + 0.5 * across**2, np.array([slope + across, sign * (slope - across)])

    found, _ = find_improper(pdmp.models.from_function(both, 2), np.zeros(2))
    assert f"does not grow along the direction +1 x[0] {sign:+.0f} x[1]: the posterior is improper" in found.text


def test_a_plateau_that_rises_too_slowly():
    """Like 0.06 log|x|, beyond a height at which U has grown as fast as it must."""

    def both(x):
        along, across = x[0] - x[1], x[0] + x[1]
        fall = np.exp(-(along**2) / 8.0)
        slope = 27.8 * fall * along / 4.0 + 0.06 * along / (1.0 + along**2)
        value = 27.8 * (1.0 - fall) + 0.03 * np.log1p(along**2) + 0.5 * across**2
        return value, np.array([across + slope, across - slope])

    found, _ = find_improper(pdmp.models.from_function(both, 2), np.zeros(2))
    assert "grows like 0.06 log|x| along the direction +1 x[0] -1 x[1], and must grow faster" in found.text


def two_wells_beside_a_flat_coordinate(x):
    return (x[0] ** 2 - 4.0) ** 2, np.array([4.0 * x[0] * (x[0] ** 2 - 4.0), 0.0])


def test_of_an_improper_posterior_nothing_else_is_said():
    """No other modes, no longer runs, no tails."""
    model = pdmp.models.from_function(two_wells_beside_a_flat_coordinate, 2)
    with pytest.warns(UserWarning) as heard:
        run = pdmp.sample(model, gradients=400, seed=1, progress=False)
    [said] = {str(w.message) for w in heard}
    assert "does not grow along x[1]" in said and "improper" in said
    assert [text for text in run.summary().warnings if "mode" in text or "as long" in text or "R-hat" in text] == []
    assert "improper" in run.summary().warnings[0] and "other modes of what is improper" in run.info["choice"]
    process = pdmp.BPS(pdmp.models.from_function(two_wells_beside_a_flat_coordinate, 2))
    with pytest.warns(UserWarning, match="improper") as heard:
        run = pdmp.sample(process, events=60, chains=2, seed=1, initial=[2.0, 0.0], progress=False)
    assert len({str(w.message) for w in heard}) == 1 and "improper" in run.summary().warnings[0]


def test_a_row_that_goes_up_and_down_looks_once_as_if_it_fell(monkeypatch):
    """From the points of this seed a cosine is lower at each place than at the last; it is looked at again."""
    monkeypatch.setattr("pdmp.models.propriety.FURTHER", ())
    swings, grows, falls = (
        target(u, lambda x: x, 1) for u in (lambda x: math.cos(x[0]), lambda x: x @ x, lambda x: -x @ x)
    )
    search, v = _Search(swings, np.zeros(1), None), np.ones(1)
    search.rng = np.random.default_rng(24)
    assert _falls(search, v, 0.0) and _row_falls(search, v)
    rest = _Search(grows, np.zeros(1), None)
    for first, found in ((search, []), (_Search(falls, np.zeros(1), None), [0])):
        first.rng = np.random.default_rng(24)
        monkeypatch.setattr(rest, "of_row", lambda i, first=first: rest if i else first, raising=False)
        monkeypatch.setattr("pdmp.models.propriety._direction", lambda *_: np.ones(1))
        assert _rows_that_fall(rest, [np.ones(1, bool)], np.arange(3)) == found


def test_a_row_falls_in_the_direction_that_is_asked_for():
    """And in no other, along which it grows."""
    row = _Search(target(lambda x: 10.0 * x[1] - x[0], lambda x: [-1.0, 10.0], 2), np.zeros(2), None)
    for v, falls in (([1.0, 0.0], True), ([-1.0, 0.0], False), ([0.0, 1.0], False), ([0.0, -1.0], True)):
        assert _row_falls(row, np.array(v)) == falls


def test_what_ends_above_where_it_began_does_not_fall():
    """Behind a barrier, as far out as it can be computed; without the barrier it does."""
    for barrier in (1e3, 0.0):

        def potential(x, barrier=barrier):
            return 0.0 if x[0] < 1.0 else barrier - x[0] if x[0] < 60.0 else math.nan

        search = _Search(target(potential, lambda x: [0.0 if x[0] < 1.0 else -1.0], 1), np.zeros(1), None)
        assert _falls(search, np.ones(1), 0.0) == (barrier == 0.0)


@pytest.mark.exact
@pytest.mark.parametrize("none", [0, 1])
def test_a_search_needs_both_points_to_begin_at(none, monkeypatch):
    found = [(np.ones(2), 1.0), (np.ones(2), 1.0)]
    found[none] = None
    search = _Search(wrong(2), np.zeros(2), None)
    monkeypatch.setattr(search, "point", lambda: found.pop(0))
    assert search.result() is None and not found


def test_priors_of_positive_parameters_start_at_their_mean_or_scale():
    assert Gamma(3.0, 2.0).typical() == 6.0 == Gamma(3.0, 2.0).shape * Gamma(3.0, 2.0).scale
    assert HalfNormal(2.0).typical() == 2.0 and Normal(1.5, 2.0).typical() == 1.5


@pytest.mark.parametrize("walls", [(0,), (2,), (0, 1, 2)])
def test_a_point_beside_one_on_walls_is_inside(walls):
    """Each coordinate is turned inwards alone; the signs are drawn, so that some seed goes out in each."""
    model = target(lambda x: 0.5 * float(x @ x), lambda x: x, 3)
    for start in range(8):
        search = _Search(model, np.zeros(3), lambda x: all(x[j] >= 0.0 for j in walls))
        search.rng = np.random.default_rng(start)
        found = search.point()
        assert found is not None and np.all(found[0][list(walls)] > 0.0)
        assert np.all(np.abs(found[0]) >= 0.3) and found[1] == 0.5 * found[0] @ found[0]
