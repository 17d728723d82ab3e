"""`Model.check_gradient` and `Model.check_bounds`: what is right passes, what is wrong is named."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse

import pdmp
from pdmp.engine import preflight
from pdmp.models import verification
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.verification import CHECKS, check_gradient, slopes_differ
from tests.digests import MODELS
from tests.targets import KINDS, Cone, Plane, Quartic

pytestmark = pytest.mark.exact

RIGHT, ASSIGNED, SIGN, COLUMN, DOUBLED = range(5)
PACKED = {"LogisticRegression packed": pdmp.gradients.Full(MODELS["LogisticRegression"]).packed}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_gradient_of_its_potential(name):
    MODELS[name].check_gradient(points=3, data=4)


@pytest.mark.parametrize("name", [*MODELS, *PACKED])
def test_no_bound_of_any_model_is_violated(name):
    (MODELS | PACKED)[name].check_bounds(points=8, steps=10)


@pytest.mark.parametrize("model", [Quartic(2), Quartic(1, wall=0.0), Cone(3), *map(Plane, range(len(KINDS)))])
def test_kinks_walls_and_small_supports_are_no_errors(model):
    model.check_gradient(points=20)
    model.check_bounds(points=10, steps=20)


class Regression(pdmp.Model):
    """A regression with an absolute loss, smoothed, and a Gaussian prior, either of which can be made wrong."""

    X: np.ndarray
    term: int
    prior: int

    def __init__(self, term=RIGHT, prior=RIGHT, batch=RIGHT):
        super().__init__(dim=3, n_data=30)
        self.X = np.random.default_rng(0).standard_normal((30, 3))
        self.term, self.prior = term, prior

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * (x[0] * x[0] + 2.0 * x[1] * x[1] + 3.0 * x[2] * x[2])

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            k = (j + 1) % self.dim if self.prior == COLUMN else j
            g = (k + 1.0) * x[k]
            if self.prior == ASSIGNED:
                out[j] = g
            elif self.prior == SIGN:
                out[j] -= g
            elif self.prior == DOUBLED:
                out[j] += 2.0 * g
            else:
                out[j] += g

    @pdmp.compiled
    def margin(self, x, i):
        z = 0.5
        for j in range(self.dim):
            z += self.X[i, j] * x[j]
        return z

    @pdmp.compiled
    def term_potential(self, x, i):
        z = self.margin(x, i)
        return math.sqrt(1.0 + z * z)

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        z = self.margin(x, i)
        w = z / math.sqrt(1.0 + z * z)
        for j in range(self.dim):
            a = self.X[i, (j + 1) % self.dim if self.term == COLUMN else j]
            if self.term == ASSIGNED:
                out[j] = w * a
            elif self.term == SIGN:
                out[j] -= w * a
            elif self.term == DOUBLED:
                out[j] += 2.0 * w * a
            else:
                out[j] += w * a


def test_a_right_regression_passes():
    Regression().check_gradient()


@pytest.mark.parametrize("part", ["prior", "term"])
@pytest.mark.parametrize("wrong", [ASSIGNED, SIGN, COLUMN, DOUBLED])
def test_a_wrong_gradient_is_named(part, wrong):
    model = Regression(**{part: wrong})
    where = " of datum 0" if part == "term" else ""
    text = f"`add_{part}_gradient` of Regression overwrites `out` in coordinate 0{where}: it must add"
    if wrong != ASSIGNED:
        text = (
            rf"`add_{part}_gradient` of Regression is not the gradient of `{part}_potential`: coordinate \d{where}, at "
            rf"x = \[.*\], is .*, a difference quotient of `{part}_potential` .*\.$"
        )
    with pytest.raises(ValueError, match=text) as caught:
        model.check_gradient()
    assert "\n" not in str(caught.value)


def test_a_wrong_gradient_of_a_function_is_named():
    model = pdmp.models.from_function(lambda x: (0.5 * x @ x, 1.1 * x), 2, check_gradient=False)
    with pytest.raises(
        ValueError, match="`gradient` of FunctionModel is not the gradient of `potential`: coordinate 0"
    ):
        model.check_gradient()


class Springs(pdmp.Model):
    """½ Σ x² + ½ (x₀ - x₁)² + ½ (x₁ - x₂)², with what it says of its Hessian and of its factors."""

    share: float

    def __init__(self, share=1.0, factors=(0, 1)):
        self.share, self.known = share, factors
        super().__init__(dim=3)

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * (x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2)

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += 2.0 * x[0] - x[1]
        out[1] += 3.0 * x[1] - x[0] - x[2]
        out[2] += 2.0 * x[2] - x[1]

    @pdmp.compiled
    def hessian_product(self, v, out):
        out[0] = self.share * (2.0 * v[0] - v[1])
        out[1] = 3.0 * v[1] - v[0] - v[2]
        out[2] = 2.0 * v[2] - v[1]

    def factors(self):
        return [[0, 1, 2], [1, 2]][: len(self.known)]

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        if f == 1:
            out[1] += x[1] - x[2]
            out[2] += x[2] - x[1]
        else:
            out[0] += 2.0 * x[0] - x[1]
            out[1] += 2.0 * x[1] - x[0]
            out[2] += x[2]


class Leaning(Springs):
    """With factors whose sum is right, of which the second depends on x₀, which it does not list."""

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        if f == 1:
            out[1] += x[1] - x[2] - 0.5 * x[0]
            out[2] += x[2] - x[1]
        else:
            out[0] += 2.0 * x[0] - x[1]
            out[1] += 2.0 * x[1] - 0.5 * x[0]
            out[2] += x[2]


class Steps(pdmp.Model):
    """½ Σ (x_{i+1} - x_i - 1)² + ⅛ (x_{i+1} + x_i)²: its terms, and the coordinates that it says they have."""

    def __init__(self, known):
        super().__init__(dim=3, n_data=2)
        self.known = known

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[i + 1] - x[i] - 1.0) ** 2 + 0.125 * (x[i + 1] + x[i]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        r, s = x[i + 1] - x[i] - 1.0, 0.25 * (x[i + 1] + x[i])
        out[i] += s - r
        out[i + 1] += s + r

    def factors(self):
        return self.known


def test_no_run_starts_with_what_is_another_law(monkeypatch):
    """A product with another Hessian, and factors of which one is missing, were sampled as if they were the target."""
    said = r"^`hessian_product` of Springs does not hold \(out = Hv, .*\): at x = .* it says .*, and .* was found\.$"
    with pytest.raises(ValueError, match=said):
        pdmp.sample(pdmp.BPS(Springs(share=0.9)), events=10, seed=1)
    with pytest.raises(ValueError, match=r"^the factors of Springs do not add up"):
        pdmp.sample(pdmp.LocalBPS(Springs(factors=(0,))), events=10, seed=1)
    assert pdmp.sample(pdmp.LocalBPS(Springs(factors=(0, 1))), events=10, seed=1).events == [10]
    with pytest.raises(ValueError, match=r"^`factors` of Leaning does not hold"):
        verification.check_bounds(Leaning(), names=["factors"])
    with pytest.raises(ValueError, match=r"^`factors` of Steps does not hold"):
        pdmp.sample(pdmp.LocalBPS(Steps([[0, 1], [2]])), events=10, seed=1)
    assert pdmp.sample(pdmp.LocalBPS(Steps([[0, 1], [1, 2]])), events=10, seed=1).events == [10]
    tried = []
    monkeypatch.setattr(verification, "check_bounds", lambda model, **options: tried.append(options["names"]))
    verification.check_equations(Steps([[0, 1], [1, 2]]), most_data=2)
    verification.check_equations(Steps([[0, 1], [1, 2]]), most_data=1)
    assert "factors" in tried[0] and [*tried[1]] == [name for name in tried[0] if name != "factors"]
    assert set(tried[0]) == {name for name, (_, relation) in CHECKS.items() if relation == "="}


@pytest.mark.parametrize("wrong", [ASSIGNED, SIGN, COLUMN, DOUBLED])
def test_no_run_starts_with_a_wrong_gradient(wrong):
    for make in (pdmp.BPS, lambda m: pdmp.SBPS(pdmp.gradients.Minibatch(m, 3))):
        with pytest.raises(ValueError, match="`add_term_gradient` of Regression"):
            pdmp.sample(make(Regression(term=wrong)), events=10, seed=1, initial=np.ones(3))


def test_the_first_run_of_a_model_checks_it_and_no_other(monkeypatch):
    calls, checked = [], preflight.check_gradient
    monkeypatch.setattr(preflight, "check_gradient", lambda m, **k: (calls.append(m), checked(m, **k)))
    model = Regression()
    for _ in range(2):
        pdmp.sample(pdmp.BPS(model), events=5, seed=1, initial=np.ones(3))
    pdmp.sample(pdmp.BPS(MODELS["Banana"]), events=5, seed=1)
    assert calls == [model]


class Dataless(pdmp.Model):
    """A target without data whose gradient is right but for one coordinate of many."""

    def __init__(self):
        super().__init__(dim=30)

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += math.cosh(x[j])
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += math.sinh(x[j]) if j != 17 else math.cosh(x[j])


def test_errors_of_targets_without_data_speak_of_what_is_written():
    with pytest.raises(
        ValueError, match="`add_gradient` of Dataless is not the gradient of `potential`: coordinate 17"
    ):
        Dataless().check_gradient()


class Many(pdmp.Model):
    """A mean of many coordinates: of some data, or in one coordinate of the prior, the gradient is wrong."""

    y: np.ndarray
    signs: np.ndarray
    scales: np.ndarray

    def __init__(self, n=200, d=3, wrong=(), prior=None, factor=-1.0, share=0.1):
        super().__init__(dim=d, n_data=n)
        self.y = np.random.default_rng(1).standard_normal((n, d))
        self.signs, self.scales = np.ones(n), np.ones(d)
        self.signs[list(wrong)] = factor
        if prior is not None:
            self.scales[prior] = 1.0 + share

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += x[j] * x[j]
        return 0.5 * total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.scales[j] * x[j]

    @pdmp.compiled
    def term_potential(self, x, i):
        total = 0.0
        for j in range(self.dim):
            total += math.sqrt(1.0 + (x[j] - self.y[i, j]) ** 2)
        return total

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        for j in range(self.dim):
            r = x[j] - self.y[i, j]
            out[j] += self.signs[i] * r / math.sqrt(1.0 + r * r)


def test_a_few_wrong_data_of_many_are_found_before_a_run():
    """Of 200 data three that are not among those that are looked at one by one."""
    with pytest.raises(
        ValueError, match="`add_term_gradient` of Many is not .*: coordinate . of datum (31|77|130), at"
    ):
        pdmp.sample(pdmp.BPS(Many(wrong=(31, 77, 130))), events=5, seed=1, initial=np.ones(3))


def test_a_little_too_much_of_a_few_data_of_thousands_is_found():
    """Their share of the sum over all data is below its tolerance: blocks are compared, and the datum is named."""
    right = Many(n=5_000)
    right.check_gradient(points=2, data=2)
    for wrong in ((31, 1077, 4130), (4_999,)):
        named = "|".join(map(str, wrong))
        with pytest.raises(ValueError, match=f"`add_term_gradient` of Many .*: coordinate . of datum ({named}), at"):
            pdmp.sample(pdmp.BPS(Many(n=5_000, wrong=wrong, factor=1.01)), events=5, seed=1, initial=np.ones(3))


def test_of_very_many_data_some_blocks_are_compared(monkeypatch):
    """Every second here, where all data have more numbers than are to be looked at."""
    monkeypatch.setattr(verification, "BLOCK_NUMBERS", 400)
    seen, right = [], verification._block_slopes
    monkeypatch.setattr(
        verification, "_block_slopes", lambda *arguments: (seen.append(arguments[3].tolist()), right(*arguments))
    )
    verification._compare_blocks(Many(n=200), np.random.default_rng(0), np.ones(3))
    assert seen == [[0, 64, 128, 192]]


def test_every_coordinate_of_many_is_compared(monkeypatch):
    for j in (0, 23, 59):
        with pytest.raises(ValueError, match=f"`add_prior_gradient` of Many is not .*: coordinate {j}, at"):
            Many(n=5, d=60, prior=j, share=1e-3).check_gradient(points=1)
    # The sum over all data does so whatever the time that the parts have.
    monkeypatch.setattr(verification, "_compare", lambda *arguments: None)
    with pytest.raises(
        ValueError, match="the gradient of Many, over all data, is not that of its .*: coordinate 23, at"
    ):
        check_gradient(Many(n=5, d=60, prior=23), points=1, data=2, seed=0, seconds=0.0)
    with pytest.raises(ValueError, match="the gradient of Dataless is not that of its potential: coordinate 17, at"):
        check_gradient(Dataless(), points=1, data=2, seed=0, seconds=0.0)


class Raised(Dataless):
    """U with a constant beside which its slopes are rounding, in a right gradient."""

    @pdmp.compiled
    def potential(self, x):
        total = 1e13
        for j in range(self.dim):
            total += math.cosh(x[j])
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += math.sinh(x[j])


def test_a_class_whose_constant_hides_its_gradient_is_warned_of():
    with pytest.warns(
        UserWarning, match=r"the gradient of Raised could not be compared .* in x\[0\], x\[1\], x\[2\], …: U"
    ):
        Raised().check_gradient()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Many().check_gradient()


def test_the_passes_over_many_data_are_few(monkeypatch):
    passes = []
    model = Many(n=40, d=2)
    for name in ("potential", "gradient"):
        function = getattr(Many, name)
        monkeypatch.setattr(Many, name, lambda self, x, f=function, name=name: passes.append(name) or f(self, x))
    monkeypatch.setattr(verification, "PASSES", 10 * 40)
    verification._compare_sum(model, np.random.default_rng(0), np.ones(2), np.ones(2, bool))
    assert len(passes) in (1 + 1 + 4, 1 + 1 + 8)  # longer steps too where rounding hides the slope, as here by chance
    most, right = [], verification.directions
    monkeypatch.setattr(verification, "directions", lambda *given: most.append(given[2]) or right(*given))
    for share, expected in ((5.99, 5), (6.0, 6), (1e6, verification.DIRECTIONS)):
        monkeypatch.setattr(verification, "PASSES", int(share * 10 * 40))
        verification._compare_sum(model, np.random.default_rng(0), np.ones(2), np.ones(2, bool))
        assert most.pop() == expected


@pytest.mark.parametrize("slope, hidden", [(1.0, 0.05), (4.0, 0.2), (0.1, 0.01), (0.0, 0.01)])
def test_a_slope_is_hidden_where_rounding_is_a_twentieth_of_it_or_a_hundredth(slope, hidden):
    """Of U = slope x + constant, where it is whichever is more, at the longer step; what was seen once stays seen."""
    step, resolution = np.finfo(float).eps ** 0.2, np.finfo(float).eps
    for share, found in ((0.9, verification.SEEN), (1.1, verification.HIDDEN)):
        constant = share * hidden * step / (64.0 * resolution)
        for before in (0, verification.HIDDEN, verification.SEEN):
            seen = np.array([before], np.int8)
            gradient, value = np.array([slope]), lambda y, c=constant: c + slope * y[0]
            slopes_differ(value, np.zeros(1), constant, gradient, np.ones(1), resolution, np.array([0]), seen)
            assert seen[0] == max(before, found)


class Nowhere(Dataless):
    @pdmp.compiled
    def potential(self, x):
        return math.inf


def test_a_potential_that_is_finite_nowhere_is_refused():
    for check in (Nowhere().check_gradient, Nowhere().check_bounds):
        with pytest.raises(ValueError, match="the potential of Nowhere is not finite at any point near `initial`"):
            check()


def test_both_sums_of_a_batch_are_compared(monkeypatch):
    model = MODELS["LogisticRegression"]
    right = type(model)._methods["add_batch_squares"]

    def wrong(self, x, rows, n, scratch, out, squares):
        right(self, x, rows, n, scratch, out, squares)
        out *= 1.01

    monkeypatch.setattr(type(model)._tuple, "add_batch_squares", wrong)
    with pytest.raises(ValueError, match="`add_batch_squares` of LogisticRegression differs from what its terms"):
        model.check_gradient()


def test_a_batch_is_as_many_rows_as_are_said(monkeypatch):
    """And not all that there is room for, as the last of an epoch may be smaller."""
    model = MODELS["LogisticRegression"]
    right = type(model)._methods["add_batch_gradient"]
    wrong = lambda self, x, rows, n, out: right(self, x, rows, rows.shape[0], out)  # noqa: E731
    monkeypatch.setattr(type(model)._tuple, "add_batch_gradient", wrong)
    with pytest.raises(ValueError, match="`add_batch_gradient` of LogisticRegression differs from what its terms"):
        model.check_gradient()


class WaysOfItsOwn(pdmp.Model):
    """A line through the origin, with all ways to ask for rows, of which `spoilt` is wrong for one row."""

    X: np.ndarray
    row: int
    spoilt: int

    def __init__(self, n, row, spoilt):
        super().__init__(dim=3, n_data=n)
        self.X, self.row, self.spoilt = np.random.default_rng(0).standard_normal((n, 3)), row, spoilt

    @pdmp.compiled
    def slope(self, x, i, way):
        wrong = 1.5 if i == self.row and self.spoilt == way else 1.0
        return wrong * (x @ self.X[i] - 0.5)

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * self.slope(x, i, 0) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out += self.slope(x, i, 0) * self.X[i]

    @pdmp.compiled
    def add_batch_gradient(self, x, rows, n, out):
        for k in range(n):
            out += self.slope(x, rows[k], 1) * self.X[rows[k]]

    @pdmp.compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        out[:] = 0.0
        for k in range(n):
            out += (self.slope(x, rows[k], 2) - self.slope(y, rows[k], 0)) * self.X[rows[k]]

    @pdmp.compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        out[:] = 0.0
        for k in range(n):
            out += weights[k] * (self.slope(x, rows[k], 3) - self.slope(y, rows[k], 0)) * self.X[rows[k]]

    @pdmp.compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            out += self.slope(x, rows[k], 0) * self.X[rows[k]]
            p = self.slope(x, rows[k], 4) * (v @ self.X[rows[k]])
            first, second = first + p, second + p * p
        return first, second

    @pdmp.compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        for k in range(n):
            out += self.slope(x, rows[k], 0) * self.X[rows[k]]
            squares += (self.slope(x, rows[k], 5) * self.X[rows[k]]) ** 2

    @pdmp.compiled
    def term_partial(self, x, i, j, scratch):
        return self.slope(x, i, 6) * self.X[i, j]

    @pdmp.compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        return (self.slope(x, i, 7) - self.slope(y, i, 0)) * self.X[i, j]


WAYS = ["add_batch_gradient", "batch_difference", "weighted_difference", "add_batch_projection", "add_batch_squares"]
WAYS += ["term_partial", "term_partial_difference"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("way", WAYS)
def test_one_row_of_hundreds_that_a_way_of_its_own_gets_wrong_is_found(way, seed):
    model = WaysOfItsOwn(400, 150 + seed, 1 + WAYS.index(way))
    with pytest.raises(ValueError, match=f"`{way}` of WaysOfItsOwn differs from what its terms"):
        model.check_gradient(seed=seed)


def test_the_entry_that_is_no_number_is_named(monkeypatch):
    model = MODELS["LogisticRegression"]
    right = type(model)._methods["add_batch_gradient"]

    def wrong(self, x, rows, n, out):
        right(self, x, rows, n, out)
        out[1] = math.nan

    monkeypatch.setattr(type(model)._tuple, "add_batch_gradient", wrong)
    with pytest.raises(ValueError, match="`add_batch_gradient` of LogisticRegression differs .* entry 1, at .* is nan"):
        model.check_gradient()


def test_one_row_of_thousands_in_the_gradient_of_a_batch_is_found():
    for n, row in ((2_500, 2_499), (2_500, 1_000), (1_001, 1_000)):
        with pytest.raises(ValueError, match="`add_batch_gradient` of WaysOfItsOwn differs from what its terms"):
            WaysOfItsOwn(n, row, 1).check_gradient()
    WaysOfItsOwn(2_500, 0, -1).check_gradient()


@pytest.mark.parametrize(
    ("name", "model", "wrong"),
    [
        ("hessian_bounds", "LogisticRegression", lambda self: (np.eye(3), 1.5 * np.eye(3))),
        ("prior_hessian_bounds", "LogisticRegression", lambda self: (np.zeros((3, 3)), 0.9 * np.eye(3))),
        ("largest_term_gradient", "LogisticRegression", lambda self: 1.0),
        ("neighbours", "Gaussian sparse", lambda self: (np.arange(7), np.arange(6))),
        (
            "sparse_hessian",
            "Gaussian sparse",
            lambda self, x: scipy.sparse.diags_array(self.curvatures(), format="csc"),
        ),
        ("factors", "GaussianMixture", lambda self: [[0]]),
        ("factors", "Banana", lambda self: [[0], [1]]),
    ],
)
def test_a_wrong_capability_in_python_is_named(name, model, wrong, monkeypatch):
    model = MODELS[model]
    monkeypatch.setattr(type(model), name, wrong, raising=False)
    with pytest.raises(ValueError, match=f"^`{name}` of {type(model).__name__} does not hold"):
        model.check_bounds()


@pytest.mark.parametrize("lacks", range(6))
def test_a_row_of_neighbours_without_its_own_coordinate_is_seen_before_a_run(lacks, monkeypatch):
    """Whichever it is, at any seed of the tries."""
    model = MODELS["Gaussian sparse"]
    indptr, indices = (np.asarray(a) for a in model.neighbours())
    place = next(k for k in range(indptr[lacks], indptr[lacks + 1]) if indices[k] == lacks)
    short = indptr - (np.arange(7) > lacks), np.delete(indices, place)
    monkeypatch.setattr(type(model), "neighbours", lambda self: short)
    with pytest.raises(ValueError, match="^`neighbours` of Gaussian does not hold"):
        verification.check_equations(model, most_data=10)


@pytest.mark.parametrize(
    ("name", "model", "wrong"),
    [
        ("hessian_bounds", "LogisticRegression", lambda self: (np.zeros(3), np.ones(3))),
        ("prior_hessian_bounds", "LogisticRegression", lambda self: (np.zeros((3, 3)), np.eye(4))),
        ("sparse_hessian", "Gaussian sparse", lambda self, x: scipy.sparse.csc_array((5, 5))),
    ],
)
def test_a_matrix_of_another_shape_is_refused_and_not_passed_over(name, model, wrong, monkeypatch):
    model = MODELS[model]
    monkeypatch.setattr(type(model), name, wrong)
    d = model.dim
    with pytest.raises(TypeError, match=rf"`{name}` of {type(model).__name__} must return {d} x {d} numbers, got an a"):
        model.check_bounds()


class Slope(pdmp.Model):
    """½x² - x, the second a term, whose derivative is -1 everywhere."""

    least: float

    def __init__(self, least):
        super().__init__(dim=1, n_data=1)
        self.least = least

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * x[0] * x[0]

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += x[0]

    @pdmp.compiled
    def term_potential(self, x, i):
        return -x[0]

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] -= 1.0

    @pdmp.compiled
    def signed_term_bound(self, i, j, sign):
        return max(-sign, self.least)


def test_a_bound_on_a_rate_is_not_negative():
    """Although a derivative that is negative everywhere is below it."""
    Slope(0.0).check_bounds(points=5, steps=0)
    with pytest.raises(ValueError, match="`signed_term_bound` of Slope does not hold .* it says nan, and -1 was found"):
        Slope(-0.5).check_bounds(points=5, steps=0)


@pytest.mark.parametrize("points, compared", [(1, 1), (2, 2), (5, 2)])
def test_all_data_are_compared_at_two_points(points, compared, monkeypatch):
    seen = []
    monkeypatch.setattr(verification, "_compare_sum", lambda model, rng, x, blind: seen.append(x))
    check_gradient(Many(n=40, d=2), points, data=1, seed=0)
    assert len(seen) == compared and len(np.unique(seen, axis=0)) == compared


def test_of_no_time_one_direction_of_each_part_is_compared(monkeypatch):
    """At the first point alone, with no sum over all data left out; of time enough every one, of four points."""
    calls, model, right = [], Regression(), verification.first_wrong
    monkeypatch.setattr(verification, "_compare_sum", lambda model, rng, x, seen: calls.append("sum"))
    monkeypatch.setattr(verification, "_compare_ways", lambda model, rng, x: calls.append("ways"))
    monkeypatch.setattr(verification, "first_wrong", lambda *given: calls.append("slope") or right(*given))
    for seconds, slopes, ways in ((-1.0, 3, 0), (math.inf, 4 * 3 * 3, 4)):
        calls.clear()
        check_gradient(model, 4, data=2, seed=0, seconds=seconds)
        assert [calls.count(name) for name in ("slope", "ways", "sum")] == [slopes, ways, 2]


class Narrow(pdmp.Model):
    """½ (x - 10)² where x is nearer to 10 than 0.4, which is where runs begin."""

    def __init__(self):
        super().__init__(dim=1, initial=[10.0])

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * (x[0] - 10.0) ** 2 if abs(x[0] - 10.0) < 0.4 else math.inf

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] - 10.0


def test_a_sum_is_compared_nearer_to_the_start_where_it_is_infinite(monkeypatch):
    found = []
    monkeypatch.setattr(verification, "wrong_slope", lambda model, x, *args, **options: found.append((x[0], args[-1])))
    verification._compare_sum(Narrow(), np.random.default_rng(0), np.array([12.0]), np.zeros(1, np.int8))
    assert found == [(10.25, 0.5 * 0.25**2)]


def test_every_capability_is_tried():
    """Those that are not are tried with another: whole sums with their parts, the calls of a ray with one another."""
    with_others = {"add_factor_gradient"}
    with_others |= {"potential_and_gradient", "ray_room", "ray_begin", "ray_gradient", "ray_turn"}
    assert set(CHECKS) | with_others == set(CAPABILITIES)


def test_the_search_finds_what_chance_does_not():
    """A bound on 3x² that holds for |x| < 5 alone."""

    class Bounded(Quartic):
        @pdmp.compiled
        def curvature_bound(self, v):
            return 75.0 * v[0] * v[0]

    Bounded().check_bounds(points=5, steps=0)
    with pytest.raises(ValueError, match="`curvature_bound` of Bounded does not hold"):
        Bounded().check_bounds(points=5, steps=60)


class Off(pdmp.Model):
    """A Gaussian whose potential that comes with its gradient is another."""

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] * x[0]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0]

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        out[0] += x[0]
        return x[0] * x[0]


def test_a_potential_that_comes_with_its_gradient_is_compared():
    with pytest.raises(ValueError, match="^`potential_and_gradient` of Off differs from"):
        Off(1).check_gradient()


@pytest.mark.parametrize("at", [-1.6, -0.9, -0.3, 0.0, 0.2, 0.7, 1.3])
@pytest.mark.parametrize("side", [0.0, 3.0])
def test_beside_a_kink_the_slopes_of_both_sides_are_right(at, side):
    """A kink `at` steps of x: with the slope at x, and at x itself that of either side."""
    h = np.finfo(float).eps ** (1.0 / 3.0)

    def differ(slope):
        return slopes_differ(
            lambda y: 3.0 * max(y[0] - 1.0 - at * h, 0.0), np.ones(1), 3.0 * max(-at * h, 0.0), *slope, [0]
        )

    right = [np.full(1, side if at == 0.0 else 3.0 * (at < 0.0)), np.ones(1), np.finfo(float).eps]
    assert differ(right) is None
    assert differ([np.full(1, 9.0), *right[1:]]) is not None


def test_a_bend_is_no_kink():
    """Where slopes to both sides differ by 0.005, one of 0.002 is not that of x²/2 at 0."""
    resolution = 1e-7
    for slope, wrong in ((0.002, True), (0.0, False)):
        found = slopes_differ(
            lambda y: 0.5 * y[0] ** 2, np.zeros(1), 0.0, np.full(1, slope), np.ones(1), resolution, [0]
        )
        assert (found is not None) == wrong


class SinglePrecision(pdmp.Model):
    """A line through the origin, whose batches are summed in single precision, with `error` of one row too much."""

    X: np.ndarray
    error: float

    def __init__(self, error):
        super().__init__(dim=3, n_data=2_500)
        self.X, self.error = np.random.default_rng(0).standard_normal((2_500, 3)), error

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x @ self.X[i] - 0.5) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out += (x @ self.X[i] - 0.5) * self.X[i]

    @pdmp.compiled
    def add_batch_gradient(self, x, rows, n, out):
        total = np.zeros(3, np.float32)
        for k in range(n):
            share = 1.0 + self.error if rows[k] == 20 else 1.0
            total += (share * (x @ self.X[rows[k]] - 0.5) * self.X[rows[k]]).astype(np.float32)
        out += total


@pytest.mark.parametrize("seed", [22, 37])  # at which its rounding passes a millionth
def test_a_batch_in_single_precision_is_taken_and_some_hundredths_of_a_row_are_found(seed):
    SinglePrecision(0.0).check_gradient(seed=seed)
    with pytest.raises(ValueError, match="`add_batch_gradient` of SinglePrecision differs"):
        SinglePrecision(0.05).check_gradient(seed=seed)


class Uneven(pdmp.Model):
    """Terms whose slopes differ by nine powers of ten between coordinates; one of the small ones is wrong."""

    sizes: np.ndarray
    wrong: int

    def __init__(self, wrong):
        super().__init__(dim=60, n_data=3)
        self.sizes, self.wrong = np.where(np.arange(60) % 2, 1e9, 1.0), wrong

    @pdmp.compiled
    def term_potential(self, x, i):
        total = 0.0
        for j in range(x.shape[0]):
            total += (i + 1.0) * self.sizes[j] * math.sin(x[j])
        return total

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        for j in range(x.shape[0]):
            out[j] += (i + 1.0) * self.sizes[j] * math.cos(x[j]) * (1.1 if j == self.wrong else 1.0)


@pytest.mark.parametrize("wrong", [-1, 0, 34])
def test_small_slopes_of_a_term_do_not_drown_in_large_ones(wrong):
    model = Uneven(wrong)
    if wrong < 0:
        model.check_gradient()
        return
    said = f"^`add_term_gradient` of Uneven is not the gradient of `term_potential`: coordinate {wrong} "
    with pytest.raises(ValueError, match=said):
        model.check_gradient()


class Line(pdmp.Model):
    """U = Σ ½ xⱼ² + Σ ½ (xⱼ - xⱼ₊₁)², one factor for each summand; `wrong` names what is wrong of part `bad`."""

    wrong: str
    bad: int

    def __init__(self, dim, wrong="", bad=0):
        super().__init__(dim=dim)
        self.wrong, self.bad = wrong, bad

    def neighbours(self):
        rows = [[j for j in (i - 1, i, i + 1) if 0 <= j < self.dim] for i in range(self.dim)]
        return np.cumsum([0] + [len(row) for row in rows]), np.concatenate(rows).astype(np.int64)

    def factors(self):
        return [[j] for j in range(self.dim)] + [[j, j + 1] for j in range(self.dim - 1)]

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.5 * x[j] * x[j] + (0.5 * (x[j] - x[j + 1]) ** 2 if j + 1 < self.dim else 0.0)
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j]
            if j + 1 < self.dim:
                out[j] += x[j] - x[j + 1]
                out[j + 1] += x[j + 1] - x[j]

    @pdmp.compiled
    def prior_partial(self, x, j):
        value = x[j]
        for k in (j - 1, j + 1):
            if 0 <= k < self.dim:
                value += x[j] - x[k]
        return 3.0 * value if self.wrong == "prior_partial" and j == self.bad else value

    @pdmp.compiled
    def affine_partial(self, x, v, times, now, i):
        value, slope = x[i] + v[i] * (now - times[i]), v[i]
        y = value
        for k in (i - 1, i + 1):
            if 0 <= k < self.dim and not (self.wrong == "affine_partial" and i == self.bad and k > i):
                value += y - x[k] - v[k] * (now - times[k])
                slope += v[i] - v[k]
        if self.wrong == "its slope" and i == self.bad:
            slope *= 0.5
        return value, slope

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        if f < self.dim:
            out[f] += x[f]
        else:
            j = f - self.dim
            out[j] += x[j] - x[j + 1]
            out[j + 1] += x[j + 1] - x[j]

    @pdmp.compiled
    def affine_factor(self, x, v, times, now, f):
        if f < self.dim:
            y, w = x[f] + v[f] * (now - times[f]), v[f]
        else:
            j = f - self.dim
            w = v[j] - v[j + 1]
            y = x[j] + v[j] * (now - times[j]) - x[j + 1] - v[j + 1] * (now - times[j + 1])
        a = 0.3 if self.wrong == "affine_factor" and f == self.bad else 1.0
        b = 0.3 if self.wrong in ("affine_factor", "its factor's slope") and f == self.bad else 1.0
        return a * w * y, b * w * w


#: What is wrong, and how many parts there are of 40 coordinates.
PARTS = {
    "prior_partial": ("prior_partial", "coordinate", 40),
    "affine_partial": ("affine_partial", "coordinate", 39),
    "its slope": ("affine_partial", "coordinate", 40),
    "affine_factor": ("affine_factor", "factor", 79),
    "its factor's slope": ("affine_factor", "factor", 79),
}


@pytest.mark.parametrize("wrong", PARTS)
def test_one_wrong_part_of_many_is_named_before_a_run(wrong):
    """Whichever it is: a run would have another law, and no look after it asks single parts."""
    capability, kind, count = PARTS[wrong]
    verification.check_equations(Line(40), most_data=10)
    for bad in {0, 1, 17, count - 2, count - 1}:
        with pytest.raises(ValueError, match=rf"^`{capability}` of Line .* was found, of {kind} {bad}\.$"):
            verification.check_equations(Line(40, wrong, bad), most_data=10)


def test_of_very_many_parts_some_are_compared(monkeypatch):
    """From one at random on, and around the end: no more than some seconds, and no more than some vectors, allow."""
    assert verification._several(7, 9, 9) == [7, 8, *range(7)]
    assert verification._several(7, 600, 600) == list(range(7, 507))
    assert verification._several(590, 600, 600)[8:12] == [598, 599, 0, 1]
    assert verification._several(3, 10**6, 10**6) == [3, 4] and verification._several(3, 10**7, 10**7) == [3]


def test_what_a_bound_reads_and_does_not_have_is_named():
    class Forgetful(Quartic):
        @pdmp.compiled
        def curvature_bound(self, v):
            return self.radius * v[0] * v[0]

    with pytest.raises(TypeError, match="a compiled method of Forgetful does not compile.*radius"):
        Forgetful().check_bounds(points=2, steps=0)
