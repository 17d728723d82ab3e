"""Regressions by formula: coding against matrices made by hand, predictions, mistakes, and the command."""

import contextlib
import decimal
import importlib.util
import json
import math
import pickle
import re
import shlex
import sys
import warnings
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp import cli
from pdmp.automatic import subsampling
from pdmp.diagnostics.effective_size import draws_ess, draws_rhat
from pdmp.formulas import checks, fitting, general
from pdmp.formulas import design as design_module
from pdmp.formulas import fit as fit_module
from pdmp.formulas import table as table_module
from pdmp.formulas.design import Design, describe
from pdmp.formulas.families import family_of
from pdmp.formulas.inclusion import Inclusion, inclusion_of_units
from pdmp.gradients.alias import AliasBlocks
from pdmp.models.priors import BetaBernoulli, Flat, HalfNormal, Normal
from pdmp.models.regressions.design import Columns
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.models.regressions.moved_coordinates import innermost
from pdmp.native import threads
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.remainders import Shells

pandas = pytest.importorskip("pandas")
Environment = pytest.importorskip("formulae.environment").Environment

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

N = 24
TWINS = (0, 2), (1, 3), (4, 6)


def table():
    rng = np.random.default_rng(3)
    found = {
        "x": rng.normal(3.0, 2.0, N),
        "w": rng.normal(0.0, 100.0, N),
        "treated": np.where(np.arange(N) % 2, "yes", "no"),
        "g": np.array(list("bca"))[np.arange(N) % 3],
        "h": np.arange(N) % 5,
        "e": rng.uniform(0.5, 2.0, N),
    }
    found["y"] = 1.0 + 0.5 * found["x"] + rng.standard_normal(N)
    found["c"] = rng.poisson(2.0, N)
    found["b"] = np.where(rng.random(N) < 0.5, "up", "down")
    for one, other in TWINS:  # so that no sum of columns separates the labels, whatever the seed
        found["x"][other], found["w"][other] = found["x"][one], found["w"][one]
        found["b"][one], found["b"][other] = "up", "down"
    return pandas.DataFrame(found)


def made(formula, family="gaussian", data=None, priors=None, sampler="auto", progress=False, namespace=(), **options):
    roles = dict.fromkeys(("offset", "weights", "exposure", "select")) | options
    environment = Environment.capture(0).with_outer_namespace({"np": np} | dict(namespace))
    data = table() if data is None else data
    return fitting.make_model(
        describe(formula),
        data,
        family_of(family),
        priors,
        *roles.values(),
        environment=environment,
        sampler=sampler,
        progress=progress,
    )


def original(model):
    """The fixed columns in the units of the data."""
    return model.centre + model.scale * model.X


def test_coding_against_a_matrix_by_hand():
    t = table()
    model, design, _, _ = made("y ~ x * treated + np.log(e) + C(h) + (1 + x | g) + (1 | g:h)")
    yes = (t.treated == "yes").to_numpy(float)
    by_hand = np.column_stack(
        [
            np.ones(N),
            t.x,
            yes,
            t.x * yes,
            np.log(t.e),
            *(t.h == k for k in (1, 2, 3, 4)),
        ]  # what formulae calls treatment
    )
    assert model.columns[:5] == ("Intercept", "x", "treated[yes]", "x:treated[yes]", "np.log(e)")
    assert np.allclose(original(model), by_hand)
    assert np.allclose(model.X[:, 1:].mean(axis=0), 0.0) and np.allclose(model.X[:, 1:].std(axis=0), 1.0)
    one, slope, both = model.groups
    assert (one.name, slope.name, both.name) == ("1|g", "x|g", "1|g:h")
    assert [g.sd_name for g in model.groups] == ["sd(g)", "sd(x|g)", "sd(g:h)"]
    assert one.levels == ("a", "b", "c")
    assert np.array_equal(np.array(one.levels)[one.level], t.g)
    assert np.array_equal(slope.value, t.x) and np.array_equal(one.value, np.ones(N))
    assert all(np.array_equal(g.rows, np.bincount(g.level)) for g in model.groups)
    labels = t.g + ":" + t.h.astype(str)
    assert np.array_equal(np.array(both.levels)[both.level], labels)
    assert design.intercept == 0


def whole_numbers():
    """Whole numbers whose products, powers and differences overflow in few bits, those of 64 among them; and bools."""
    rng = np.random.default_rng(4)
    big, small = rng.integers(30_000, 120_000, (2, N)), rng.integers(0, 256, (2, N))
    codes = np.arange(N) % 3
    return {"y": rng.standard_normal(N), "x": big[0], "z": big[1], "u": small[0], "w": small[1], "k": codes}


def less(a, b):
    return a - b < 0


BITS = {
    "numpy": {"x": "int32", "z": "int32", "u": "uint8", "w": "uint8", "k": "int8"},
    "int64": {},
    "unsigned": dict.fromkeys("xzuwk", "uint64"),
    "float": {"x": "float32", "z": "float32", "u": "float16", "w": "float16", "k": "int16"},
    "nullable": {"x": "Int32", "z": "Int32", "u": "UInt8", "w": "UInt8", "k": "Int8"},
    "arrow": {"x": "int32[pyarrow]", "z": "int32[pyarrow]", "u": "uint8[pyarrow]", "w": "uint8[pyarrow]", "k": "Int8"},
}


WRAPPED = [
    "y ~ C(u - w > 0) + C(k * 2 - 1):x + (1 | I(k - 1)) + (1 | np.sign(u - w)) + (1 | less(u, w))",
    "y ~ I(x**5) + np.square(x) + scale(I(x * z)) + binary(k, 1):z",
    "y ~ x:z + I(u - w) + I(-w)",
    "y ~ offset(x * z) + I((x > 60000) + (z > 60000))",
    "I(u - w) ~ x",
    "y ~ C(k) + C(I(u - w) > 0) + k:u + (x:z | k) + (1 | np.minimum(k, 1))",
    "y ~ C(x * x * x * x - z * z * z * z > 0) + C(np.sign(u - w) > 0) + S(-k)",
]


@pytest.mark.filterwarnings("ignore:fixed columns have an effect of each group")
@pytest.mark.parametrize(
    ("formula", "kind"),
    [(formula, kind) for k, formula in enumerate(WRAPPED) for kind in (BITS if k < 2 else ("numpy", "arrow"))],
)
def test_numbers_are_floats_before_anything_is_computed(formula, kind):
    if kind == "arrow":
        pytest.importorskip("pyarrow")
    given = pandas.DataFrame(whole_numbers())
    floats = given.astype({name: float for name in "xzuw"})
    other, coded, _, _ = made(formula, data=floats)
    model, design, _, _ = made(formula, data=given.astype(BITS[kind]))
    assert model.columns == other.columns and [g.levels for g in model.groups] == [g.levels for g in other.groups]
    np.testing.assert_array_equal(model.X, other.X)
    np.testing.assert_array_equal(model.y, other.y)
    for g, of_floats in zip(model.groups, other.groups, strict=True):
        np.testing.assert_array_equal(g.value, of_floats.value)
    if design.whole_column is None:  # of a table to predict as well
        for found, wanted in zip(design.new(given.astype(BITS[kind]))[:2], coded.new(floats)[:2], strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "text", ["np.exp(-x**2)", "I(-(x - w)**2**3)", "{2**-x**2}", "np.log(w - -`x`**-2)", "I(x - (-w)**2)", "I(w**2**x)"]
)
def test_powers_are_those_of_python(text):
    given = pandas.DataFrame({"y": [1.0, 3.0, 2.0, 5.0], "x": [0.5, -1.0, 1.5, 2.0], "w": [1.0, 3.0, 2.5, 0.5]})
    expected = eval(text.strip("{}").replace("`", ""), {"np": np, "I": lambda x: x, **given})
    model, *_ = made(f"I(y - -x**2) ~ {text}", data=given)
    np.testing.assert_allclose(original(model)[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(model.y, given.y + given.x**2, rtol=1e-12)


def test_powers_in_curly_brackets_before_other_terms():
    given = pandas.DataFrame({"y": [1.0, 3.0, 2.0, 5.0], "x": [0.5, -1.0, 1.5, 2.0], "w": [1.0, 3.0, 2.5, 0.5]})
    model, *_ = made("y ~ {2**-x**2} + np.exp(-w**2)", data=given)
    expected = np.column_stack([2.0 ** -(given.x**2), np.exp(-(given.w**2))])
    np.testing.assert_allclose(original(model)[:, 1:], expected, rtol=1e-12)


def test_truth_values_are_numbers():
    """Their sum is no "or"."""
    t = pandas.DataFrame(whole_numbers()).assign(flag=np.arange(N) % 2 == 0)
    model = made("y ~ I((x > 60000) + (z > 60000)) + I(flag + flag)", data=t)[0]
    above = (t.x > 60_000).to_numpy(int) + (t.z > 60_000).to_numpy(int)
    assert set(above) == {0, 1, 2} and np.allclose(original(model)[:, 1:], np.column_stack([above, 2 * t.flag]))


def i8(x):
    return x.astype("int8")


TEXTS = [f"t{k:03}" for k in range(N)]


def rank(texts):
    """Codes of few bits, as pandas gives them."""
    return texts.astype(pandas.CategoricalDtype(TEXTS)).cat.codes


def cube(x):
    return x**3


def above(a, b):
    return a > b


def chosen(x, rows):
    """A function that takes truth values, and no numbers, for a test."""
    return (x + 0.0).where(~rows, -1.0) + x[rows].reindex(x.index).fillna(0.0)


def small_numbers():
    """Whole numbers of 8 bits each, whose products, squares and sums are not."""
    rng = np.random.default_rng(6)
    x, z, w = rng.integers(20, 121, (3, N))
    texts = rng.permutation(TEXTS)
    return {"y": rng.standard_normal(N), "x": x, "z": z, "w": w, "a": texts, "b": texts[::-1], "k": np.arange(N) % 3}


def ordered(texts):
    return texts.map(TEXTS.index)


#: Terms with functions that return few bits or truth values, and their columns by hand.
RETURNED = {
    "rank(a):rank(b)": lambda t: ordered(t.a) * ordered(t.b),
    "np.square(rank(a))": lambda t: ordered(t.a) ** 2,
    "i8(x):i8(z)": lambda t: t.x * t.z,
    "I(i8(x) + i8(z))": lambda t: t.x + t.z,
    "np.array(x, dtype='int8'):np.array(z, dtype='int8')": lambda t: t.x * t.z,
    "np.int64(x):I(np.int64(x) ** 9)": lambda t: t.x**10.0,
    "cube(i8(x))": lambda t: t.x**3,
    "np.clip(i8(x), 0, 99):np.round(i8(z))": lambda t: np.minimum(t.x, 99) * t.z,
    "np.where(x > z, np.int8(x), np.int8(z)):np.int8(w)": lambda t: np.maximum(t.x, t.z) * t.w,
    "np.negative(np.uint8(x))": lambda t: -t.x,
    "np.subtract(np.uint8(x), np.uint8(z))": lambda t: t.x - t.z,
    "scale(i8(x)):scale(i8(z))": lambda t: (t.x - t.x.mean()) / t.x.std(ddof=0) * (t.z - t.z.mean()) / t.z.std(ddof=0),
    "np.add(above(x, z), np.greater(x, w))": lambda t: 1.0 * (t.x > t.z) + (t.x > t.w),
    "I(np.greater(x, z) + above(x, w))": lambda t: 1.0 * (t.x > t.z) + (t.x > t.w),
    "above(x, z):i8(x):i8(z)": lambda t: (t.x > t.z) * t.x * t.z,
    # Truth values where a test is wanted, and bits where they are.
    "np.where(np.logical_and(x > z, x > w), i8(x), i8(z)):i8(w)": lambda t: (
        np.where((t.x > t.z) & (t.x > t.w), t.x, t.z) * t.w
    ),
    "np.where(np.invert(x > z), np.bitwise_or(x > z, x > w), 2)": lambda t: np.where(t.x > t.z, 2, t.x > t.w),
    "np.left_shift(i8(x), 3)": lambda t: 8 * t.x,
    "chosen(x, above(x, z))": lambda t: np.where(t.x > t.z, t.x - 1, t.x),
}


@pytest.mark.parametrize("term", RETURNED)
def test_what_functions_return_is_a_float(term):
    """In a term, the response, effects of groups, and a table to predict."""
    t = pandas.DataFrame(small_numbers())
    by_hand = np.asarray(RETURNED[term](t), float)
    assert len(set(by_hand)) > 1
    model, design, _, _ = made(f"y ~ {term} + (0 + {term} | k)", data=t)
    np.testing.assert_allclose(original(model)[:, -1], by_hand, rtol=1e-12, atol=1e-9 * np.abs(by_hand).max())
    np.testing.assert_allclose(model.groups[-1].value, by_hand, rtol=1e-12, atol=1e-12 * np.abs(by_hand).max())
    if design.whole_column is None:
        np.testing.assert_allclose(design.new(t.iloc[3:9])[0][:, -1], by_hand[3:9], rtol=1e-12)
    if term.count(":") == 0:
        np.testing.assert_allclose(made(f"{term} ~ z", data=t)[0].y, by_hand, rtol=1e-12)


def sorted_rows(x):
    return x.sort_values()


def numbered_anew(x):
    return (x + 0.0).reset_index(drop=True)


def above_its_mean(x):
    return x[x > x.mean()]


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ {}",
        "{} ~ z",
        "y ~ z:{}",
        "y ~ z + np.log({})",
        "y ~ I({} + z)",
        "y ~ z + offset({})",
        "y ~ z + (0 + {} | k)",
        "y ~ z + (1 | {})",
    ],
)
def test_values_of_other_rows_are_refused(formula):
    """Also where a function numbers rows as those of the table happen to be numbered, which a response may."""
    t = pandas.DataFrame(small_numbers())
    tables = t.iloc[2:], t.set_index(np.arange(N)[::-1]), t
    functions = ["sorted_rows", "numbered_anew", "above_its_mean"]
    for function in functions if formula in ("y ~ {}", "{} ~ z") else functions[:1]:
        said = f"^`formula` .* cannot be evaluated: {function}.* returns a pandas Series whose index is not that .* `.t"
        for data in tables[: 2 if (function, formula) == ("numbered_anew", "{} ~ z") else 3]:
            with pytest.raises(ValueError, match=said) as caught:
                made(formula.format(f"{function}(x)"), data=data)
            assert "\n" not in str(caught.value)


def masked(x):
    return np.ma.masked_greater(x, np.sort(x)[-2])


def root(x):
    return np.emath.sqrt(x - 100.0)


@pytest.mark.parametrize("formula", ["y ~ {}", "{} ~ z", "y ~ z:{}", "y ~ z + I({} + z)", "y ~ z + (0 + {} | k)"])
def test_masked_and_complex_values_of_functions_are_refused(formula):
    """Not taken for the numbers below the mask, or for their real parts; np.real of them is a number."""
    t = small_numbers()
    for function, said in (("masked", "masked entries: leave these rows"), ("root", "complex numbers: take np.real")):
        with pytest.raises(ValueError, match=rf"cannot be evaluated: .*\(\.\.\.\) returns {said}"):
            made(formula.format(f"{function}(x)"), data=t)
    real = made("y ~ np.real(root(x)) + np.abs(root(x))", data=t)[0]
    np.testing.assert_allclose(original(real)[:, 1], np.sqrt(np.maximum(np.asarray(t["x"], float) - 100.0, 0.0)))


def binned(x):
    return pandas.cut(x, [-1e9, 40.0, 80.0], labels=["low", "high"])


def called(x):
    return x.map({0.0: "none", 50.0: "some"})


def logs(x):
    return np.log(x)


def first(x):
    return np.asarray(x)[:1]


@pytest.mark.parametrize(
    "formula", ["y ~ {}", "y ~ C({})", "y ~ z:{}", "y ~ (0 + {} | k)", "y ~ (1 | {})", "y ~ (1 | k:{})"]
)
def test_missing_values_of_functions_are_no_category(formula):
    """They were those of the last one, as are not numbers that values of effects may not be."""
    t = pandas.DataFrame(small_numbers() | {"x": np.arange(N) % 3 * 50.0, "k": np.arange(N) % 2})
    for function in ("binned", "called"):
        with pytest.raises(ValueError, match=rf"{function}\(\.\.\.\) returns 8 missing values: leave these rows"):
            made(formula.format(f"{function}(x)"), data=t)
    with pytest.raises(
        ValueError, match=r"logs\(x - 50\).* is not finite in row 0|logs\(\.\.\.\) returns 8 missing values"
    ):
        made(formula.format("logs(x - 50)"), data=t.iloc[np.arange(N) % 3 != 1].reset_index(drop=True))
    with pytest.raises(ValueError, match=r"cannot be evaluated: first\(\.\.\.\) returns 1 values for 24 rows\.$"):
        made(formula.format("first(x)"), data=t)


def test_tables_whose_columns_have_other_types_than_those_of_the_fit():
    """Truth values as 0 and 1, ordered categories as text: the last level before, or another test."""
    levels = ["low", "mid", "high", "none"]
    t = pandas.DataFrame({"y": np.arange(N) ** 2.0, "flag": np.arange(N) % 2 > 0, "k": np.arange(N) % 3})
    t["z"] = np.sqrt(1.0 + t.y)
    t["size"] = pandas.Categorical(np.array(levels)[np.arange(N) % 3], categories=levels, ordered=True)
    known = {"sd(flag)": HalfNormal(1.0)}
    design = made("y ~ C(flag) + I(size > 'low') + C(size):z + (1 | flag)", data=t, priors=known)[1]
    rows = np.array([4, 1, 2, 9])
    X, _, groups = design.new(t.iloc[rows])
    assert np.array_equal(X[:, :3], np.column_stack([np.ones(4), rows % 2, rows % 3 > 0]))
    other = t.assign(flag=t.flag.astype(float), size=t["size"].astype(str))
    again, _, same = design.new(other.iloc[rows])
    assert np.array_equal(X, again) and np.array_equal(groups[0].level, rows % 2)
    assert np.array_equal(same[0].level, rows % 2) and list(design.labels(other.iloc[rows], "flag")) == [
        str(flag) for flag in t.flag.iloc[rows]
    ]
    as_truth = pandas.DataFrame({"k": [True, False]})
    with pytest.raises(ValueError, match="the column 'k' holds truth values, and numbers such as 2 in the data of the"):
        made("y ~ C(k)", data=t)[1].new(as_truth)
    answers = ["number"]

    def changes(k):
        return k if answers == ["number"] else k > 0

    coded = made("y ~ C(changes(k))", data=t, namespace={"changes": changes})[1]
    answers[0] = "truth"
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"'C\(changes\(k\)\)' has other values in rows of"):
        warnings.simplefilter("ignore")  # of pandas, that True is no level, though it is 1
        coded.new(t.iloc[[1, 2]].reset_index(drop=True))


def test_terms_that_share_or_add_categories():
    """`g / x` has a slope for each group, in a new table too; C(g):C(h) has full rank by a term that is added."""
    t = table()
    for nested in ("y ~ g / x", "y ~ C(g) / x", "y ~ g / treated"):
        model, design, _, _ = made(nested, data=t)
        inner = (t.treated == "yes").to_numpy(float) if "treated" in nested else t.x
        by_hand = [np.ones(N), t.g == "b", t.g == "c", *(inner * (t.g == k) for k in "abc")]
        assert len(model.columns) == 6 and np.allclose(original(model), np.column_stack(by_hand))
        assert np.allclose(design.new(t.iloc[5:9])[0], np.column_stack(by_hand)[5:9])
    model, design, _, _ = made("y ~ C(g):C(treated)", data=t)
    assert len(model.columns) == 6 and np.linalg.matrix_rank(original(model)) == 6
    assert np.allclose(design.new(t.iloc[5:9])[0], original(model)[5:9])


def test_labels_that_functions_return_do_not_wrap():
    """They are whole numbers of 64 bits, and sums of truth values no "or"; truth values alone are labels."""
    t = pandas.DataFrame(small_numbers() | {"x": np.arange(N) % 3 * 50, "z": 64})
    for products in ("np.multiply(i8(x), i8(z))", "i8(x) * i8(z)"):
        assert made(f"y ~ C({products})", data=t)[0].columns[1:] == (f"C({products})[3200]", f"C({products})[6400]")
    for sums in ("np.add(x > 0, x > 50)", "(x > 0) + (x > 50)"):
        assert len(made(f"y ~ C({sums})", data=t)[0].columns) == 3
    groups = made("y ~ (1 | np.square(i8(x))) + (1 | I(x > 0))", data=t)[0].groups
    assert [" ".join(map(str, g.levels)) for g in groups] == ["0 2500 10000", "False True"]
    assert made("y ~ C(above(x, z))", data=t)[0].columns[-1] == "C(above(x, z))[True]"


def test_integers_that_are_labels_keep_their_names():
    t = pandas.DataFrame(whole_numbers() | {"flag": np.arange(N) % 2 == 0}).astype({"k": "uint8", "u": "float16"})
    assert made("y ~ C(k - 1)", data=t)[0].columns == ("Intercept", "C(k - 1)[0]", "C(k - 1)[1]")
    for of_floats in ("C(k / 2)[0.5]", "C(np.floor(u / 200.0) + 1)[2.0]"):
        assert of_floats in made(f"y ~ {of_floats.partition('[')[0]}", data=t)[0].columns
    known = {"sd(k)": HalfNormal(1.0)}
    model = made("y ~ C(k) + C(flag) + T(k, ref=2):x + (1 | k) + (1 | k:flag) + (1 | u)", data=t, priors=known)[0]
    assert model.columns[:4] == ("Intercept", "C(k)[1]", "C(k)[2]", "C(flag)[True]")
    assert [g.levels for g in model.groups[:2]] == [
        (0, 1, 2),
        ("0:False", "0:True", "1:False", "1:True", "2:False", "2:True"),
    ]


@pytest.mark.parametrize(
    ("formula", "whole"),
    [
        ("y ~ I(x - np.mean(x))", "I(x - np.mean(x))"),
        ("y ~ w + np.log(e / np.max(e))", "np.log(e / np.max(e))"),
        ("y ~ w * I(x / np.max(np.abs(x)))", "I(x / np.max(np.abs(x)))"),
        ("y ~ w + offset(x - np.mean(x))", "offset(x - np.mean(x))"),
        ("y ~ w + (1 + I(e - np.min(e)) | g)", "I(e - np.min(e))|g"),
        ("y ~ w + (1 | np.sign(x - np.mean(x)))", "1|np.sign(x - np.mean(x))"),
        # Where the other part of a product is 0, the values of one do not show.
        ("y ~ w + I(h == np.max(h)):x", "I(h == np.max(h)):x"),
        ("y ~ w + (1 + I(h == np.max(h)):x | g)", "I(h == np.max(h)):x|g"),
        # The smallest and the largest values are those of their rows.
        ("y ~ w + np.where(np.abs(x) < 1, np.mean(x), x)", "np.where(np.abs(x) < 1, np.mean(x), x)"),
        ("y ~ np.log(e) + C(h) + np.sin(x) + poly(w, 2) + bs(e, df=4) + center(x) + offset(2 * x)", None),
        ("I(y - np.mean(y)) ~ scale(x) + (1 + I(2 * x) | g) + (0 + center(e) | h) + (1 | np.sign(w))", None),
    ],
)
def test_functions_of_whole_columns(formula, whole):
    """Of a new table they are others: it is not predicted, nor is it coded in parts of whatever size."""
    t = table()
    fit = frozen(formula)
    assert fit.design.whole_column == whole
    assert fit.predict(draws=2).shape == (2, N)
    if whole is None:
        parts = [fit.predict(t.iloc[s], draws=2) for s in (slice(0, 1), slice(1, 9), slice(9, N))]
        assert np.allclose(np.concatenate(parts, axis=1), fit.predict(draws=2))
        return
    with pytest.raises(ValueError, match="is computed of the whole column") as error:
        fit.predict(t.iloc[:5])
    assert repr(whole) in str(error.value) and "\n" not in str(error.value)


def test_gaussian_rows_of_groups_are_summed(monkeypatch):
    """By cells, where these are few; not with what sub-sampling is for, nor without groups."""
    rng, n = np.random.default_rng(5), 600
    t = pandas.DataFrame({"x": rng.standard_normal(n), "w": rng.uniform(0.5, 2.0, n), "g": np.arange(n) % 8})
    t["h"], t["many"] = np.arange(n) // 8 % 3, np.arange(n) % 150
    t["y"] = 2.0 + t.x + rng.standard_normal(8)[t.g] + rng.standard_normal(n)
    for formula, options, count in (
        ("y ~ x + (1 | g)", {}, 8 + 2 + 1),
        ("y ~ x + (1 + x | g)", {}, 16 + 2 + 1),
        ("y ~ x + (1 + x || g) + (1 | h)", {"weights": "w"}, 24 * 3 + 2 + 1),
        ("y ~ x + (1 | g)", {"offset": "w"}, 8 + 2 + 1),
        ("y ~ x + (1 | g) + (1 | many)", {}, None),
        ("y ~ x + (1 | g)", {"tempered": True}, None),
        ("y ~ x + (1 | g)", {"family": "student_t"}, None),
        ("y ~ x", {}, None),
    ):
        model = pdmp.regression(formula, t, sample=False, **options).model
        rows = innermost(model)
        assert getattr(rows, "rows_summed", None) == count, formula
        if count:
            x = model.initial + 0.1 * rng.standard_normal(model.dim)
            whole = rows.some_rows(np.arange(n)).potential(model.natural_draws(x))
            assert rows.rows_summed < rows.n_data and rows.potential(model.natural_draws(x)) == pytest.approx(
                whole, rel=1e-11
            )
    assert pdmp.regression("y ~ x + (1 | g)", t[:499], sample=False).model.has("data_sums") is False
    run = SimpleNamespace(info={})
    monkeypatch.setattr(general, "sample", lambda *_, **__: run)
    fit = pdmp.regression("y ~ x + (1 | g)", t, seed=1)
    assert "each gradient is of 11 rows, which have the sum of all 600" in fit.notes
    said = "effects of g are independent of each other, those of 1|g; x|g, as by ||"
    assert said not in fit.notes and pdmp.regression("y ~ x + (1 + x || g)", t, seed=1).notes.count(said) == 1


def of_effects(formula):
    """Columns of effects of groups, by name without the grouping."""
    t = table().assign(a=np.resize(["p", "q", "r"], N), b=np.resize(["s", "t", "t", "s", "s"], N))
    design = Design(describe(f"y ~ x + {formula}"), t, Environment.capture(0))
    return t, {g.name.partition("|")[0]: g.value for g in design.groups}


def test_rows_without_groups_need_no_column_that_groups_are_computed_of():
    t = table()
    design = Design(describe("y ~ x + (1 | np.floor(w / 10))"), t, Environment.capture(0))
    X, offset, groups = design.new(t[["x"]].iloc[:3], named=False)
    assert np.array_equal(X, np.column_stack([np.ones(3), t.x[:3]])) and not offset.any()
    assert [g.level.tolist() for g in groups] == [[-1, -1, -1]]


@pytest.mark.parametrize(
    "formula, names",
    [
        ("(a | g)", "1 a[q] a[r]"),
        ("(0 + a | g)", "a[p] a[q] a[r]"),
        ("(1 | g) + (0 + a | g)", "1 a[p] a[q] a[r]"),
        ("(x:a | g)", "1 x:a[p] x:a[q] x:a[r]"),
        ("(0 + x:a | g)", "x:a[p] x:a[q] x:a[r]"),
        ("(x + x:a | g)", "1 x x:a[q] x:a[r]"),
        ("(a / x | g)", "1 a[q] a[r] a[p]:x a[q]:x a[r]:x"),
        ("(a + b | g)", "1 a[q] a[r] b[t]"),
        ("(a * b | g)", "1 a[q] a[r] b[t] a[q]:b[t] a[r]:b[t]"),
        ("(a + a:b | g)", "1 a[q] a[r] a[p]:b[t] a[q]:b[t] a[r]:b[t]"),
        ("(0 + a:b | g)", "a[p]:b[s] a[p]:b[t] a[q]:b[s] a[q]:b[t] a[r]:b[s] a[r]:b[t]"),
        ("(0 + x:a + a:x | g)", "x:a[p] x:a[q] x:a[r]"),
    ],
)
def test_levels_of_effects_have_the_columns_that_others_leave_open(formula, names):
    """Whatever interactions there are; and the values of a column are those of its levels."""
    t, found = of_effects(formula)
    assert list(found) == names.split()
    for name, value in found.items():
        expected = np.ones(N)
        for part in name.split(":"):
            if part != "1":
                column, _, level = part.rstrip("]").partition("[")
                expected = expected * ((t[column] == level) if level else t[column])
        np.testing.assert_allclose(value, expected)


@pytest.mark.parametrize(
    "twice, once",
    [("a:b + b:a", "a:b"), ("a * b + b:a", "a * b"), ("x:a + a:x - 1", "x:a - 1"), ("(x + w)**2 + w:x", "(x + w)**2")],
)
def test_a_product_in_another_order_is_the_same_term(twice, once):
    """Its columns are there once, by the name that stands first."""
    t = table().assign(a=np.resize(["p", "q", "r"], N), b=np.resize(["s", "t", "t", "s", "s"], N))
    found, expected = (Design(describe(f"y ~ {one}"), t, Environment.capture(0)) for one in (twice, once))
    assert found.columns == expected.columns and len(set(found.columns)) == len(found.columns)
    np.testing.assert_array_equal(found.X, expected.X)


def test_effects_whose_margins_are_missing_are_refused():
    with pytest.raises(ValueError, match=r"\(a:b \| g\) needs the terms within it too: write \(a \* b \| g\)"):
        of_effects("(a:b | g)")


def test_what_formulae_does_not_do_is_refused():
    """Products of a sum with itself, differences that take nothing away, and groups with one name."""
    t = table()
    itself = r"multiplied by itself is read as the sum: write \(x \+ z\)\*\*2"
    for formula, said in (
        ("y ~ (x + w) * (x + w)", itself),
        ("y ~ e + ((x + w) * (w + x) | g)", itself),
        ("y ~ x * w - w:x", "what is taken away, w:x, stays, as it is written in another order"),
        ("y ~ (x + w + treated)**2 - treated:x", "what is taken away, treated:x, stays"),
        ("y ~ x + (x * w - w:x | g)", "what is taken away, w:x, stays"),
    ):
        with pytest.raises(ValueError, match=said):
            describe(formula)
    for formula, columns in (
        ("y ~ x * w - x:w", ["Intercept", "x", "w"]),
        ("y ~ (x + w)**2 - 1", ["x", "w", "x:w"]),
        ("y ~ x - w + I(x - w) + x * x", ["Intercept", "x", "I(x - w)"]),
        ("y ~ x * (x + w) + (x | g)", ["Intercept", "x", "w", "x:w"]),
    ):
        assert Design(describe(formula), t, Environment.capture(0)).columns == columns
    named = t.assign(p=np.resize(["i:j", "i", "k"], N), q=np.resize(["m", "j:m", "m"], N))
    with pytest.raises(ValueError, match=r"two groups of p:q are called 'i:j:m': rename levels with a colon"):
        Design(describe("y ~ x + (1 | p:q)"), named, Environment.capture(0))


def test_truth_values_that_would_be_categories_are_said():
    """In products, without an intercept and in effects of groups; beside an intercept it is the same."""
    t = table().assign(t=np.arange(N) % 3 == 0, s=np.arange(N) % 4 == 0)
    for formula, names in (
        ("y ~ x + t", []),
        ("y ~ t:x + s", ["t"]),
        ("y ~ 0 + s + x", ["s"]),
        ("y ~ x + (s | g) + t:w", ["s", "t"]),
        ("y ~ C(t):x", []),
    ):
        said = Design(describe(formula), t, Environment.capture(0)).baselines()
        assert [one for one in said if "counts" in one] == [
            f"{k} counts as 0 and 1: C({k}) is a category" for k in names
        ]


def test_a_formula_whose_coding_leaves_columns_out_is_refused():
    """Of three categories without their margins formulae codes 9 columns for 12 cells."""
    t = table().assign(a=np.resize(["p", "q", "r"], N), b=np.resize(["s", "t"], N), d=np.resize(list("uuvv"), N))
    for formula in ("y ~ a:b:d", "y ~ x + a:b:d:x", "y ~ C(a, Sum):C(b, Sum):C(d, Sum)"):
        with pytest.raises(
            ValueError, match=r"would be coded in \d+ columns, and its terms have \d+: write lower inter"
        ):
            Design(describe(formula), t, Environment.capture(0))
    for formula, p in (("y ~ 0 + a:b:d", 12), ("y ~ a * b * d", 12), ("y ~ a / x", 6), ("y ~ a * b * d - b", 12)):
        assert len(Design(describe(formula), t, Environment.capture(0)).columns) == p
    with pytest.raises(ValueError, match="coded in 9 columns, and its terms have 12"):
        Design(describe("y ~ a:b:d"), t, Environment.capture(0))


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ np.where(x < 50, x, np.mean(x))",
        "y ~ w + (1 + np.where(x < 50, x, np.mean(x)) | g)",
        "y ~ w + (1 | np.where(x < 50, np.sign(x), np.max(x)))",
    ],
)
def test_a_function_of_whole_columns_that_only_another_table_shows(formula):
    t, fit = table(), frozen(formula)
    later = t.assign(x=[60.0, 70.0, *t.x[2:]])
    assert fit.design.whole_column is None and fit.predict(t, draws=2).shape == (2, N)
    with pytest.raises(ValueError, match=r"'(np.where\(.*\)|.*\|g|1\|np.where.*)' is computed of the whole column"):
        fit.predict(later, draws=2)
    with pytest.raises(ValueError, match="is computed of the whole column"):
        fit.predict(later.assign(g="new"), draws=2)


def test_slopes_of_groups_that_a_table_does_not_name_are_looked_at_too():
    """Those of each term, behind one of intercepts."""
    t, fit = table(), frozen("y ~ w + (1 | g) + (0 + np.where(x < 50, x, np.mean(x)) | h)")
    assert len(fit.design.new(t.drop(columns=["g", "h"]), named=False)[0]) == N
    later = t.assign(x=[60.0, 70.0, *t.x[2:]]).drop(columns=["g", "h"])
    with pytest.raises(ValueError, match=r"np.where\(.*\)\|h' is computed of the whole column"):
        fit.design.new(later, named=False)


def test_a_number_without_an_axis_is_that_of_every_row():
    """As numpy has it: an array of shape ()."""
    t = {"y": [1.0, 2.0, 4.0], "x": np.array([0.0, 1.0, 2.5])}
    found, expected = (fitting.read_table(t | {"e": e}) for e in (np.array(2.0), np.full(3, 2.0)))
    pandas.testing.assert_frame_equal(found.astype(float), expected)


def test_rows_without_gaps_decide_the_coordinates(monkeypatch):
    """Correlated effects of fewer complete rows than `GroupIntercepts` asks for are left to sums of terms."""
    monkeypatch.setattr(fitting, "INTERCEPT_ROWS", 5)
    monkeypatch.setattr(fitting, "SLOPE_ROWS", 5)
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", np.inf)
    t = table()
    t.loc[:5, "w"] = np.nan
    for rows, kind in ((N - 6, GroupIntercepts), (N - 5, MixedRegression)):
        monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", rows)
        assert type(made("c ~ x + w + (x | g)", "poisson", t)[0]) is kind


def test_names_with_spaces_and_sums_of_levels():
    t = table().rename(columns={"w": "my col"})
    for formula in ("my col ~ x", "y ~ x + exp(my  col)"):
        with pytest.raises(ValueError, match="'my col' has spaces: write it in backticks, `my col`"):
            pdmp.regression(formula, t, sample=False)
    prepared = pdmp.regression("y ~ `my col` + C(h, Sum) + C(g, Treatment)", t, sample=False)
    of_mean = "the mean of its levels; minus the sum of the others is that of"
    assert {f"C(h, Sum()) is relative to {of_mean} 4", "C(g, Treatment()) is relative to a"} <= {*prepared.notes}
    x = np.zeros(prepared.model.dim)
    x[prepared.model.columns.index("C(h, Sum())[1]")] = 1.0
    eta = prepared.predicted(x[None], None, "link", "error", None)[0]
    assert np.allclose((eta - eta[0]) / (eta[1] - eta[0]), np.choose(t["h"], [0.0, 1.0, 0.0, 0.0, -1.0]))


def test_offsets_add_up():
    t = table()
    two, design = made("c ~ x + offset(w) + offset(2 * e)", "poisson")[:2]
    np.testing.assert_allclose(two.offset, table()["w"] + 2.0 * table()["e"])
    np.testing.assert_allclose(design.new(table())[1], two.offset)
    model = made("c ~ x + offset(w)", "poisson", offset="y", exposure="e")[0]
    assert np.allclose(model.offset, t.w + t.y + np.log(t.e))
    assert model.columns == ("Intercept", "x")


@pytest.mark.parametrize(
    "formula, family", [("y ~ x * treated + (x | g)", "gaussian"), ("c ~ scale(x) + (1 | g:h)", "poisson")]
)
def test_new_tables_are_coded_as_the_data(formula, family):
    t = table()
    model, design, _, _ = made(formula, family)
    new = t.iloc[[5, 2, 2]]
    X, offset, groups = design.new(new)
    x = model.initial + np.random.default_rng(0).standard_normal(model.dim)
    natural = model.constrain(x)
    z = X @ [natural[name] for name in model.columns] + offset
    z += sum(natural[g.name][g.level] * g.value for g in groups)
    assert np.allclose(z, model.margins(x)[[5, 2, 2]])
    needed = {"gaussian": {"g"}, "poisson": {"g", "h"}}[family]  # both columns of an interaction of groups
    assert design.names_of_columns()["groups"] == needed


@pytest.mark.parametrize("package", ["pyarrow", "narwhals"])
def test_tables_of_other_packages(package):
    module = pytest.importorskip(package)
    data = module.Table.from_pandas(table()) if package == "pyarrow" else module.from_native(table())
    x = np.array([0.1, 0.2, 0.3, 0.0])
    assert made("y ~ x + treated", data=data)[0].potential(x) == pytest.approx(made("y ~ x + treated")[0].potential(x))


MISTAKES = [
    ("y ~ xx", {}, "`formula` names 'xx', and `data` has no such column; did you mean 'x'?"),
    ("y ~ x +", {}, "`formula` 'y ~ x +' cannot be read"),
    ("y ~ x w", {}, "`formula` 'y ~ x w' cannot be read: 'w' has no meaning where it stands"),
    ("y ~ np.log(x w)", {}, "`formula` 'y ~ np.log(x w)' cannot be read: Expect ')' after arguments."),
    ("y ~ I(1e3*x)", {}, "cannot be read: 1e3 is no number here: write 1000 for 1e3"),
    ("y ~ I(2.5e-3 * x)", {}, "cannot be read: 2.5e is no number here: write 1000 for 1e3, and 0.001 for 1e-3"),
    ("y ~ x == w", {}, "cannot be read: '==' has no meaning where it stands; a test is written I"),
    ("y ~ I(0 < x < 1)", {}, "'0 < x < 1' compares twice: write the product of two tests, (a < x) * (x < b)"),
    ("y ~ np.abs(x > 0 == w)", {}, "'x > 0 == w' compares twice"),
    ("y ~ I(`x` // 2) + w", {}, "'`x` // 2' has an operator that is not read: write np.floor_divide(x, z)"),
    ("y ~ w + g['a']", {}, "g['a'] names a level, as a response can: write I(g == 'a')"),
    ("y ~ (x[b] | g)", {}, "x['b'] names a level"),
    ("y ~ I(2 * x['b'])", {}, "x['b'] names a level"),
    ("y ~ x, w", {}, "cannot be read: ',' has no meaning"),
    ("y ~ x > 0 + w", {}, "cannot be read: '>' has no meaning"),
    ("y ~ x + w)", {}, "cannot be read: ')' has no meaning"),
    ("y - w ~ x", {}, "`formula` 'y - w ~ x' cannot be read: a response that is computed is written I(y - w)."),
    ("(y**2) ~ x", {}, "`formula` '(y**2) ~ x' cannot be read: a response that is computed is written I((y**2))."),
    ("y ~ x + y", {}, "`formula` 'y ~ x + y' has its response 'y' on the right of ~ too"),
    ("x", {}, "`formula` must have a response on the left of ~"),
    ("y ~ x + foo(w)", {}, "names 'foo', which is not defined"),
    ("y ~ np.log(w)", {}, "the column 'np.log(w)' is not finite in row "),
    ("y ~ x + offset(np.log(w))", {}, "offset(...) is not finite in some rows"),
    ("np.log(w) ~ x", {}, "the response 'np.log(w)' is not finite in "),
    ("y ~ 0 + (1 | g)", {}, "`formula` must have an intercept or another fixed column"),
    ("c ~ x", {"family": "bernoulli"}, "the response 'c' must have two values for this family, got"),
    ("e ~ x", {"family": "poisson"}, "the response 'e' must hold counts"),
    ("b ~ x", {}, "the column 'b' must hold numbers"),
    ("y ~ x", {"family": "poison"}, "did you mean 'poisson'?"),
    ("y ~ x", {"exposure": "e"}, "`exposure` is for counts"),
    ("c ~ x", {"family": "poisson", "exposure": "w"}, "`exposure`: the column 'w' must be positive"),
    ("y ~ x", {"weights": "w"}, "`weights`: the column 'w' must not be negative"),
    ("y ~ x", {"offset": "ee"}, "`offset` names 'ee', and `data` has no such column; did you mean 'e'?"),
    ("y ~ x", {"priors": {"xx": Flat()}}, "`priors` names 'xx', which is no parameter; did you mean 'x'?"),
    ("y ~ (x | g)", {"priors": {"x|g": HalfNormal(1.0)}}, "'x|g', which is no parameter; did you mean 'sd(x|g)'?"),
    ("y ~ x", {"priors": {"sigma": Flat()}}, "'sigma' is a positive number, and Flat() is no prior of one"),
    (
        "y ~ x + (1 | g)",
        {"select": "all"},
        "`select` is for regressions without group effects, or with effects of one grouping, (1 | g)",
    ),
    ("b ~ x", {"family": "probit", "select": ["z"]}, "`select` names 'z', which is no column that can be left out"),
    ("y ~ 1", {"select": "all"}, "`select`: the formula 'y ~ 1' has no column that can be left out"),
    (
        "y ~ x + I(2 * x)",
        {"priors": {"x": Flat()}},
        "'I(2 * x)' is a sum of 'x', and with a Flat prior nothing decides",
    ),
]


@pytest.mark.parametrize("formula, options, says", MISTAKES, ids=[says[:40] for *_, says in MISTAKES])
def test_mistakes(formula, options, says):
    with pytest.raises(ValueError) as error:
        made(formula, **options)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("formula", "family", "name"),
    [
        ("y ~ sigma + x", "gaussian", "sigma"),
        ("y ~ x + sigma", "student_t", "sigma"),
        ("y ~ nu", "student_t", "nu"),
        ("c ~ alpha * x", "negative_binomial", "alpha"),
        ("y ~ chain", "gaussian", "chain"),
        ("c ~ x + draw", "poisson", "draw"),
        ("y ~ C(draw) + sigma", "gaussian", "sigma"),
        ("y ~ `sd(g)` + (1 | g)", "gaussian", "sd(g)"),
        ("y ~ x + `sd(w|g)` + (w | g)", "gaussian", "sd(w|g)"),
        ("y ~ `1|g` + (1 | g)", "gaussian", "1|g"),
        ("y ~ 0 + Intercept + x", "gaussian", "Intercept"),
        ("y ~ treated + `treated[yes]`", "gaussian", "treated[yes]"),
    ],
)
def test_columns_that_are_called_as_other_parameters(formula, family, name):
    """One of the two would have been reported, and predicted with, as the other."""
    t = table()
    rng = np.random.default_rng(5)
    for other in ("sigma", "nu", "alpha", "chain", "draw", "sd(g)", "sd(w|g)", "1|g", "Intercept", "treated[yes]"):
        t[other] = rng.integers(0, 3, N) + rng.standard_normal(N) * (other != "draw")
    with pytest.raises(ValueError, match="rename the column|has to be renamed") as error:
        made(formula, family, t)
    assert repr(name) in str(error.value) and "\n" not in str(error.value)


def test_names_of_parameters_that_a_family_does_not_have():
    """A coefficient may be called as a parameter of another family, and terms as a group's column."""
    t = table().assign(sigma=np.arange(N) % 7, nu=np.arange(N) % 5)
    model = made("c ~ sigma + nu + (1 | sigma)", "poisson", t)[0]
    assert model.columns == ("Intercept", "sigma", "nu") and len(set(model.constrain(model.initial))) == 5


def test_a_named_column_is_refused_before_the_table_is_read(tmp_path):
    with pytest.raises(ValueError, match="'sigma' cannot be told apart"):
        made("y ~ sigma", data=tmp_path / "none.csv")


def odd():
    """Columns that are neither numbers nor categories, and some that look so."""
    t = table()
    days = pandas.date_range("2026-01-01", periods=N)
    t["day"], t["date"], t["month"] = days, days.date, days.to_period("D")
    t["took"] = days - days[0]
    t["price"] = [decimal.Decimal(k) for k in range(N)]
    t["objects"] = t.x.astype(object)
    t["mixed"] = [k if k % 3 else "none" for k in range(N)]
    t["z"] = t.x + 1j * t.w
    t["sure"] = (t.x > 3.0).astype(object)
    t["lists"] = [[k % 3] for k in range(N)]
    t["level"] = pandas.Categorical(np.arange(N) % 3)
    t["one"], t["slip"], t["commas"] = "a", t.index.astype(str), [f"{k},500" if k else "0" for k in t.index]
    t["grouped"], t["arabic"], t["space"] = t["slip"], t["slip"], t["slip"]
    t.loc[7, "slip"] = "7o"
    t.loc[7, ["grouped", "arabic", "space"]] = "1_000", "\u0663\u0664", "\u00a012"
    return t


TYPES = [
    (
        "y ~ day",
        "the column 'day' holds dates (Timestamp): make it a number, such as (pandas.to_datetime(table['day'])",
    ),
    ("y ~ x + date", "the column 'date' holds dates (date): make it a number"),
    ("y ~ month", "the column 'month' holds dates (Period)"),
    (
        "y ~ took",
        "the column 'took' holds lengths of time (Timedelta): make it a number, table['took'] = table['took'] /",
    ),
    ("y ~ price", "'price' holds numbers as objects (Decimal): table['price'] = table['price'].astype(float)."),
    ("price ~ x", "the column 'price' holds numbers as objects (Decimal)"),
    ("y ~ objects * w", "the column 'objects' holds numbers as objects (float)"),
    ("y ~ mixed", "the column 'mixed' holds values of several types (int, str): make it one"),
    (
        "y ~ x + (1 | mixed)",
        "'mixed' holds values of several types (int, str): table['mixed'] = table['mixed'].astype('string')",
    ),
    ("y ~ x + (1 | date)", "the column 'date' holds dates (date): table['date'] = table['date'].astype('string')."),
    ("y ~ np.abs(z)", "the column 'z' holds complex numbers (complex): take np.real"),
    ("y ~ one + x", "`formula`: 'one' has one level only: leave it out."),
    ("y ~ I(price * price)", "evaluated: a function of columns gives objects, not numbers: make its columns floats"),
    ("y ~ np.cov(x)", "`formula`: np.cov(x) is one number, and not one for each row."),
    ("y ~ getattr(np, 'exp')(x)", "cannot be read: it calls what a function returns, or what stands in"),
    ("y ~ I((lambda: 1)())", "or what stands in brackets: name that before, f = ..., and write f(x)."),
    ("y ~ C(lists)", "the column 'lists' holds values of several types (list): table['lists'] = table['lists'].as"),
    ("y ~ s(lists)", "the column 'lists' holds values of several types (list)"),
    ("y ~ x + (x | C(lists))", "the column 'lists' holds values of several types (list)"),
    ("y ~ slip + x", "the column 'slip' holds numbers but for '7o', and so is text: correct that"),
    ("y ~ grouped", "the column 'grouped' holds numbers but for '1_000', and so is text: correct that"),
    ("y ~ arabic + x", "the column 'arabic' holds numbers but for '\u0663\u0664', and so is text: correct that"),
    ("y ~ space", "the column 'space' holds numbers but for '\\xa012', and so is text: correct that"),
    ("y ~ x + (0 + commas | g)", "the column 'commas' holds numbers but for '1,500'"),
]


@pytest.mark.parametrize(("formula", "says"), TYPES, ids=[formula for formula, _ in TYPES])
def test_columns_that_are_neither_numbers_nor_categories(formula, says):
    with pytest.raises(ValueError) as error:
        made(formula, data=odd())
    assert says in str(error.value) and "\n" not in str(error.value)


DATES = [
    ("y ~ s({}, k=4)", "gaussian", ""),
    ("y ~ t2({}, w, k=4)", "gaussian", ""),
    ("y ~ gp({})", "gaussian", ""),
    ("y ~ mo({})", "gaussian", ""),
    ("one | trials({}) ~ x", "binomial", ""),
    ("one ~ x", "poisson", "weights"),
    ("one ~ x", "poisson", "offset"),
    ("one ~ x", "poisson", "exposure"),
]


@pytest.mark.parametrize(("formula", "family", "role"), DATES, ids=[f"{one[0]} {one[2]}" for one in DATES])
def test_dates_are_no_numbers_of_seconds_wherever_a_column_is_one(formula, family, role):
    """Nanoseconds or days, by what a table has kept them in: of a fit, and of the new rows that it predicts."""
    t = odd().assign(one=1, number=np.arange(N) % 7 + 1)
    for name, held in (("day", "dates"), ("took", "lengths of time")):
        options = {role: name} if role else {}
        with pytest.raises(ValueError, match=f"the column '?{name}'?.* (must be numbers, got|holds) {held}"):
            pdmp.regression(formula.format(name), t, family, sample=False, **options)
    options = {role: "number"} if role else {}
    prior = pdmp.regression(formula.format("number"), t, family, sample=False, seed=1, **options)
    if role == "weights":  # which predictions do not need
        return
    with pytest.raises(ValueError, match="the column 'number' must be numbers, got dates"):
        prior.predict(t.assign(number=t.day))


def test_columns_that_can_be_used():
    """Truth values, numbers of pandas' own types, and categories of numbers."""
    for data in (odd(), odd().astype({"x": "Float64", "h": "Int64"})):
        assert made("y ~ sure + C(h) + x + treated", data=data)[0].n_data == N
        twice = pandas.concat([data, data], ignore_index=True)  # text with numbers is a grouping, or said to be labels
        with pytest.warns(UserWarning, match="a sum of the columns gives 'y' in every row"):  # each of the labels twice
            assert "C(slip)[7o]" in made("y ~ C(slip)", data=twice)[0].columns
        with pytest.warns(UserWarning, match="'y' is the same in all rows of each group of 'slip'"):
            made("y ~ x + (1 | slip)", data=twice)
        assert made("y ~ level", data=data)[0].columns == ("Intercept", "level[1]", "level[2]")


def test_values_that_are_too_large():
    for data, formula, name in [
        (table().assign(x=lambda t: 1e300 * t.x), "y ~ x", "x"),
        (table().assign(y=lambda t: 1e200 * t.y), "y ~ x", "y"),
        (table().assign(w=lambda t: 1e150 * t.w), "y ~ x + (0 + w | g)", "w|g"),
    ]:
        with pytest.raises(ValueError, match="has values of up to .*: give it in a larger unit") as error:
            made(formula, data=data)
        assert f"the column {name!r}" in str(error.value)


def test_whether_to_sample_is_true_or_false():
    with pytest.raises(TypeError, match="^`sample` must be True or False, got 'False'"):
        pdmp.regression("y ~ x", table(), sample="False")


def test_a_row_is_named_as_in_the_table_where_others_are_left_out():
    data = table().assign(e=lambda t: t.e.where(t.index != 7, np.inf)).drop(index=[2, 3])
    with pytest.raises(ValueError, match="the column 'e' is not finite in row 7"):
        table_module.numbers(data, "e", "`offset`")


def test_names_of_columns_may_be_numbers():
    data = table().rename(columns={"x": 1})
    assert pdmp.regression("y ~ `1` + w", data, sample=False).model.columns == ("Intercept", "1", "w")


def test_levels_that_would_fill_the_memory(monkeypatch):
    """8 bytes for each row and level, above a quarter of the memory; groups are no columns."""
    t = pandas.concat([table()] * 10, ignore_index=True)
    t["uid"] = [f"u{k % 100}" for k in range(len(t))]
    size = 8 * 240 * 100
    monkeypatch.setattr(design_module, "machine_memory", lambda: 4 * size)
    for formula in ("y ~ uid + x", "y ~ C(uid)", "y ~ treated:uid"):
        with pytest.raises(ValueError, match=r"the column 'uid' has 100 levels, .* \(1 \| uid\)"):
            made(formula, data=t)
    made("y ~ x + treated + (1 | uid)", data=t)
    monkeypatch.setattr(design_module, "machine_memory", lambda: 5 * size)
    made("y ~ uid + x", data=t)
    with pytest.raises(ValueError, match="the column 'uid' has 100 levels"):  # 200 columns
        made("y ~ treated:uid", data=t)
    monkeypatch.setattr(design_module, "machine_memory", lambda: 4 * 8 * 301 * 270)
    with pytest.raises(ValueError, match="the column 'uid' has 100 levels"):  # a matrix of 301 columns and rows
        made("y ~ g:uid", data=t)


@pytest.mark.parametrize("by", [0.0, 0.5])
def test_columns_of_a_term_are_compared_each_in_its_size(by):
    """A shift of the small column is seen beside a large one."""
    values = np.column_stack([np.arange(5.0), 1e12 * np.arange(5.0)])
    own = SimpleNamespace(_evaluate=lambda call: call())
    for shift in ([by, 0.0], [0.0, 1e12 * by]):
        found = Design.is_by_rows(own, values, lambda rows, shift=shift: values[rows.index] + shift, table()[:5])
        assert found is (by == 0.0)


def test_text_of_one_number_and_a_word_is_a_category():
    """Of two numbers and a word the word may be a slip."""
    text = np.where(np.arange(N) == 7, "a", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made("y ~ t", data=table().assign(t=text))[0].columns == ("Intercept", "t[a]")
    with pytest.warns(UserWarning, match="holds numbers but for 'a' in row 7, and so is taken for a category of 3"):
        made("y ~ t", data=table().assign(t=np.where(np.arange(N) == 3, "2", text)))


@pytest.mark.parametrize("size", [2**53, 2**53 + 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_that_floats_round_are_warned_of(size, sign):
    column = pandas.Series([sign * size, 0])
    with contextlib.nullcontext() if size == 2**53 else pytest.warns(UserWarning, match="numbers above 2\\^53"):
        design_module._check_whole("x", column)


def test_a_response_of_two_columns_is_none():
    with pytest.raises(ValueError, match=r"the response 'two\(y\)' must be one column, got 2"):
        made("two(y) ~ x", namespace={"two": lambda y: np.column_stack([y, y])})


def test_text_of_0_and_1_or_of_words_is_a_category():
    """In one way of writing: only of both it is not known what is meant."""
    for words in (["0", "1"], ["true", "False"]):
        text = np.array(words)[np.arange(N) % 2]
        assert made("y ~ a", data=table().assign(a=text))[0].columns == ("Intercept", f"a[{sorted(words)[1]}]")
    for words in (["0", "true"], ["1.0", "False"]):
        with pytest.raises(ValueError, match="^the column 'a' has truth values as words in some rows, and as 0 or"):
            made("y ~ a", data=table().assign(a=np.array(words)[np.arange(N) % 2]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"weights": np.ones(N)}, "`weights` must be the name of a column of `data`, got ndarray"),
        ({"offset": 2.0}, "`offset` must be the name of a column of `data`, got float"),
        ({"exposure": [1.0] * N}, "`exposure` must be the name of a column of `data`, got list"),
        ({"priors": [Flat()]}, "`priors` must be a dict such as"),
        ({"select": True}, '`select` must be "all", names of columns or terms, or a dict of them and prob'),
        ({"select": 0.5}, '`select` must be "all", names of columns or terms'),
        ({"select": [1, 2]}, '`select` must be "all", names of columns or terms'),
        ({"select": "x"}, '`select` must be "all", names of columns or terms'),
        ({"select": []}, "`select` names no column"),
        ({"select": {"x": "a"}}, "`select`: the probability of 'x' must be a number, got 'a'"),
        ({"select": {"x": True}}, "`select`: the probability of 'x' must be a number, got True"),
        ({"select": {"x": 1.0}}, "`select`: the probability of 'x' must be between 0 and 1, got 1.0"),
        ({"select": MappingProxyType({"x": 2.0})}, "`select`: the probability of 'x' must be between 0 and 1, got 2"),
        ({"chain": 3}, "`regression` has no option 'chain'; did you mean 'chains'?"),
        ({"process": 3}, "`regression` has no option 'process'"),
        ({"chains": 0}, "`chains` must be a whole number, at least 1, got 0"),
        ({"chains": 1, "rhat": 1.01}, "`rhat` compares chains"),
        ({"ess": -1}, "`ess` must be positive and finite"),
        ({"events": 2.5}, "`events` must be a whole number"),
        ({"warmup": 1.0}, "`warmup` must be a fraction in [0, 1), got 1.0"),
        ({"store": "moments"}, "`store` must keep draws for a regression"),
    ],
)
def test_arguments_are_looked_at_before_the_data(given, says, tmp_path):
    with pytest.raises((TypeError, ValueError)) as error:
        pdmp.regression("y ~ x", tmp_path / "none.csv", **given)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_columns_that_there_are_are_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age;y\n1;2\n2;3\n")
    with pytest.raises(ValueError, match=r"has no such column; it has 'age', 'y'\.$"):
        made("y ~ x", data=path)
    with pytest.raises(
        ValueError, match="no such column; it has 'x', 'w', 'treated', 'g', 'h', 'e', 'y', 'c', … .9 in"
    ):
        made("y ~ unlike_them_all")


@pytest.mark.parametrize("term", ["(1 | id)", "C(id)"])
def test_large_labels_do_not_merge(term, tmp_path):
    """With one of them missing, whole numbers are read as floats, which are the same from 2^53 on."""
    ids, path = 2**53 + np.arange(N) % 6, tmp_path / "t.csv"
    table().assign(id=ids).to_csv(path, index=False)
    made(f"y ~ x + {term}", data=path)
    table().assign(id=[None, *map(str, ids[1:])]).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"column 'id' of `data` has labels above 2\^53 as floats"):
        made(f"y ~ x + {term}", data=path)
    table().assign(id=[None, *(ids[1:] - 2**53)]).to_csv(path, index=False)
    made(f"y ~ x + {term}", data=path)


def test_labels_that_are_infinite_are_named_so():
    with pytest.raises(ValueError, match="the column 'e' of `data` has labels that are infinite: leave those rows out"):
        made("y ~ x + (1 | e)", data=table().assign(e=np.where(np.arange(N) == 3, -np.inf, 1.0)))


@pytest.mark.parametrize("formula", ["c ~ x + C(h)", "h ~ c:x + (x | c)"])
def test_numbers_of_the_other_byte_order_are_numbers(formula):
    swapped = {name: table()[name].dtype.newbyteorder() for name in "xch"}
    model, other = made(formula, "poisson")[0], made(formula, "poisson", data=table().astype(swapped))[0]
    at = model.initial + np.linspace(0.0, 0.3, model.dim)
    assert model.columns == other.columns and model.potential(at) == other.potential(at)


@pytest.mark.parametrize("ending", [",", ",,", ",5"])
def test_names_are_not_shifted_by_rows_that_are_longer(ending, tmp_path):
    """pandas takes the first values of such rows for an index."""
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n" + "".join(f"{k},{k * k},{k % 2}{ending}\n" for k in range(20)))
    with pytest.raises(ValueError, match="cannot be read: .* Expected 3 fields in line 2, saw"):
        made("y ~ x", data=path)


def test_mistakes_in_tables(tmp_path):
    t = table()
    with pytest.raises(TypeError, match="`data` must be a table"):
        made("y ~ x", data=3.0)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        made("y ~ x", data=tmp_path / "none.csv")
    with pytest.raises(ValueError, match="`data` has no rows"):
        made("y ~ x", data=t.iloc[:0])
    with pytest.raises(ValueError, match="every row has a missing value, in 'x'"):
        made("y ~ x", data=t.assign(x=np.nan))
    with pytest.raises(ValueError, match="'g' has one group only"):
        made("y ~ x + (1 | g)", data=t.assign(g="a"))
    with pytest.raises(TypeError, match="`formula` must be text"):
        made(3)
    with pytest.raises(ValueError, match="the response 'y' is 1 in every row"):
        made("y ~ x", data=t.assign(y=1.0))


def test_a_formula_of_many_terms_is_read():
    """Though it is a tree as deep as there are terms; what Python allows otherwise is as before, after an error too."""
    before, many = sys.getrecursionlimit(), [f"x{j}" for j in range(1_500)]
    found = describe(f"y ~ {' + '.join(many)} + (1 | g)")
    assert found.names == {"y", "g", *many} and sys.getrecursionlimit() == before
    with pytest.raises(ValueError, match="cannot be read"):
        describe("y ~ x +")
    assert sys.getrecursionlimit() == before


def test_collinear_and_separating_columns_are_named():
    t = table()
    with pytest.warns(UserWarning, match=r"the column 'I\(x \+ w\)' is a sum of 'x', 'w'"):
        made("y ~ x + w + I(x + w)")
    t["sure"] = (t.b == "up").astype(float) + 0.1 * (np.arange(N) % 2)
    with pytest.warns(UserWarning, match="'sure' separates the labels"):
        made("b ~ sure", "bernoulli", t)
    with pytest.raises(ValueError, match="'sure' separates the labels: a Flat prior leaves no posterior"):
        made("b ~ sure", "bernoulli", t, priors={"sure": Flat()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made("b ~ x + w", "bernoulli")


def bare():
    """A group, b, of nothing but 0, of all trials or of censored rows; and columns that tell nothing."""
    rng, n = np.random.default_rng(2), 200
    g, x = np.repeat(["a", "b", "c", "d"], n // 4), rng.normal(size=n)
    t = pandas.DataFrame({"g": g, "x": x, "far": 1.7e9 + 300.0 * rng.normal(size=n), "n": 5, "all": 1})
    b, counts = g == "b", rng.poisson(1.0, n)
    t["count"], t["none"], t["few"] = counts, np.where(b, 0, counts), np.where(b, counts > 0, counts)
    t["won"], t["ever"] = rng.binomial(5, 0.4, n), np.where(b, 5, rng.binomial(5, 0.4, n))
    t["place"], t["last"], t["by_x"] = rng.integers(0, 3, n), rng.integers(0, 3, n), 1 * (x > -0.4) + (x > 0.4)
    t.loc[b, "last"] = 2
    t["name"], t["missed"] = rng.choice(list("uvw"), n), rng.choice(list("uvw"), n)
    t.loc[b & (t.missed == "v"), "missed"] = "w"
    t["time"], t["lost"] = rng.exponential(size=n), 1 * (rng.random(n) < 0.3)
    t["gone"], t["y"], t["twice"] = np.where(b, 1, t.lost), x + 1e-6 * rng.normal(size=n), 2.0 * x
    t["moved"], t["m"], t["some"] = t.twice + t.time, np.where(b, 0, 5), np.where(b, 0, t.won)
    t["zero"], t["share"], t["step"] = 0, 1.0 / (1.0 + np.exp(-t.twice)), np.where(b, 0.3, 0.1)
    return t


BARE = [
    ("none ~ g + x + far", "poisson", "'g[b]' separates rows of 0"),
    ("none ~ 0 + g", "negative_binomial", "'g[b]' separates rows of 0"),
    ("none ~ g + x", "zero_inflated_poisson", "'g[b]' separates rows of 0"),
    ("few ~ g + x", "hurdle_poisson", "'g[b]' separates rows of 1"),
    ({"none": "none ~ x", "hu": "~ g"}, "hurdle_poisson", "'hu: g[b]' separates the rows of 0"),
    ("ever | trials(n) ~ g + far", "binomial", "'g[b]' separates rows of no success, or of no failure,"),
    ("missed ~ g + x", "categorical", "'g[b]' separates 'v' from"),
    ("by_x ~ x", "categorical", "'x' separate"),
    ("by_x ~ x + far", "acat", "'x'"),
    ("last ~ g + x", "cumulative", "'g[b]' separates the categories"),
    ("last ~ g + far", "sratio", "'g[b]' separates the categories"),
    ("time | cens(gone) ~ g + x", "weibull", "'g[b]' separates censored rows"),
    ("time | cens(all) ~ 1", "exponential", "each row fits better the larger the intercept is"),
    ("twice ~ x + g", "student_t", "a sum of the columns gives 'twice'"),
    *(("exp(twice) ~ x", one, "a sum of the columns gives 'exp(twice)'") for one in ("lognormal", "gamma", "weibull")),
    ("share ~ x + g", "beta", "a sum of the columns gives 'share'"),
    ("step ~ (1 | g)", "gaussian", "'step' is the same in all rows of each group of 'g'"),
    ("step ~ x + (1 | g)", "student_t", "'step' is the same in all rows of each group of 'g'"),
    ({"y": "twice ~ x", "sigma": "~ g"}, "gaussian", "a sum of the columns gives 'twice'"),
    ("moved ~ x + offset(time)", "gaussian", "a sum of the columns gives 'moved'"),
    ("none ~ g + x", "hurdle_poisson", "no row that could tell, of those with a positive response"),
    ({"some": "some | trials(m) ~ 1", "zi": "~ g"}, "zero_inflated_binomial", "no row that could tell"),
    ("zero ~ x", "poisson", "each row fits better the smaller the intercept is"),
]
PLAIN = [
    *(("count ~ g*x + far", f) for f in ("poisson", "negative_binomial", "zero_inflated_poisson", "hurdle_poisson")),
    ({"count": "count ~ x", "zi": "~ g + far"}, "zero_inflated_poisson"),
    ("none ~ x + far", "poisson"),
    ("won | trials(n) ~ g*x + far", "binomial"),
    ("name ~ g + x + far", "categorical"),
    ("place ~ g + x + far", "cumulative"),
    ("place ~ g + x + far", "sratio"),
    ("place ~ x*g", "acat"),
    ("time | cens(lost) ~ g*x + far", "weibull"),
    ("y ~ x + far", "gaussian"),
    ("twice | se(all, sigma=TRUE) ~ x", "gaussian"),
    ("lost ~ g*x + far", "bernoulli"),
]


@pytest.mark.parametrize(("formula", "family", "said"), BARE)
def test_a_likelihood_without_a_maximum_is_named_in_every_family(formula, family, said):
    with pytest.warns(UserWarning, match=f"^{re.escape(said)}"):
        pdmp.regression(formula, bare(), family, sample=False)


@pytest.mark.parametrize(("formula", "family"), PLAIN)
def test_a_likelihood_with_a_maximum_is_not_warned_of(formula, family):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdmp.regression(formula, bare(), family, sample=False)


def test_counts_of_0_leave_no_posterior_with_a_flat_prior():
    said = "(separates rows of 0 from others|each row fits better .*|says anything of 'g.b.'): a Flat prior leaves no "
    for name, formula, family in [
        ("g[b]", "none ~ g", "poisson"),
        ("Intercept", "zero ~ 1", "poisson"),
        ("g[b]", "none ~ 0 + g", "hurdle_poisson"),
    ]:
        with pytest.raises(ValueError, match=said):
            pdmp.regression(formula, bare(), family, sample=False, priors={name: Flat()})


@pytest.mark.parametrize(
    ("formula", "of_zero", "flat", "improper"),
    [
        ("n ~ 1", "abc", ["Intercept"], True),
        ("n ~ x", "abc", ["Intercept"], True),
        ("n ~ x", "abc", ["x"], True),
        ("n ~ x", "abc", [], False),
        ("n ~ g", "b", ["g[b]"], True),
        ("n ~ g", "b", ["Intercept"], False),
        ("n ~ g", "a", ["g"], False),  # the prior of the intercept holds them
        ("n ~ g", "a", ["Intercept"], False),
        ("n ~ g", "a", ["Intercept", "g"], True),
        ("n ~ 0 + g", "a", ["g[a]"], True),
        ("n ~ 0 + g", "a", ["g[b]"], False),
    ],
)
def test_what_no_row_says_anything_of_has_no_posterior_where_priors_are_flat(formula, of_zero, flat, improper):
    """Of a hurdle model: along a direction that no positive count sees some prior must fall off."""
    t = pandas.DataFrame({"g": list("abc") * 12, "x": np.arange(36.0) % 7.0, "n": 1 + np.arange(36) % 5})
    t.loc[t.g.isin(list(of_zero)), "n"] = 0
    priors = {name: Flat() for name in flat}
    with pytest.raises(ValueError, match="a Flat prior leaves no") if improper else pytest.warns(match="prior decides"):
        pdmp.regression(formula, t, "hurdle_poisson", priors=priors, sample=False)


def shifted():
    """Columns far from 0, in small units, and constant."""
    t = table()
    t["time"], t["small"] = 1.7e9 + 300.0 * t.x, 1e-300 * t.e
    t["late"], t["three"], t["zero"], t["yes"] = t.time + 60.0 * t.e, 3.1, 0.0, 1.0 * (t.treated == "yes")
    return t


DECIDES = "the data say nothing of it alone, and its prior decides."
SUMS = [
    ("y ~ time", None),
    ("y ~ small + time + treated", None),
    ("y ~ 0 + time + small", None),
    ("y ~ time + x", "the column 'x' is a sum of 'Intercept', 'time':"),
    ("y ~ time + e + late", "the column 'late' is a sum of 'time', 'e':"),
    ("y ~ x + w + e + I(x + 2 * e)", "the column 'I(x + 2 * e)' is a sum of 'x', 'e':"),
    (
        "y ~ w + three",
        f"the column 'three' is a sum of 'Intercept': {DECIDES} If it varies, the variation is lost",
    ),
    ("y ~ 0 + three + treated + yes", "the column 'treated[yes]' is a sum of 'three', 'treated[no]':"),
    ("y ~ 0 + three + w", None),
    ("y ~ small + I(small + small)", "the column 'I(small + small)' is a sum of 'small':"),
    ("y ~ x + zero", "the column 'zero' is 0 in every row:"),
    ("y ~ C(h) + I(2 * yes) + I(1 - yes)", "the column 'I(1 - yes)' is a sum of 'Intercept', 'I(2 * yes)':"),
]


@pytest.mark.parametrize(("formula", "says"), SUMS, ids=[formula for formula, _ in SUMS])
def test_columns_far_from_zero_or_in_small_units_are_no_constants(formula, says):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        columns = made(formula, data=shifted())[0].columns
    texts = [str(one.message) for one in said]
    assert len(texts) == (says is not None) and (says is None or texts[0].startswith(says))
    flat = dict.fromkeys(columns, Flat())
    if says is None:
        model = made(formula, data=shifted(), priors=flat)[0]
        assert np.all(np.isfinite(model.X)) and np.all(model.X.std(axis=0)[1:] > 0.05)
    else:
        with pytest.raises(ValueError, match="and with a Flat prior nothing decides"):
            made(formula, data=shifted(), priors=flat)


def test_limits_of_what_is_a_sum_a_constant_too_large_or_exact():
    """On both sides of 1e-10 of a variance, 1e-12 of a size, 1e140, and 1e-10 of a response's sd."""
    priors, rows = [Normal(0.0, 1.0)] * 2, 50

    def sums(products, intercept=None):
        design = SimpleNamespace(columns=["a", "b"], intercept=intercept)
        about = {"products": rows * np.array(products), "largest": np.ones(2), "mean": np.array([1.0, 0.5])}
        return checks.collinear(design, priors, SimpleNamespace(rows=rows, **about))

    for share, said in ((1.05e-10, False), (0.95e-10, True)):
        r = math.sqrt(1.0 - share)
        assert (sums([[1.0, r], [r, 1.0]]) is not None) == said
    for size, said in ((1.05e-12, False), (0.95e-12, True)):
        text = sums([[0.0, 0.0], [0.0, size**2]], intercept=0)
        assert (text is not None) == said and (not said or text.startswith("the column 'b' is a sum of 'a'"))
    plain = {"largest": [1.0], "y_largest": 1.0, "value_largest": [1.0], "weights": (0.5, 1.0)}
    design = SimpleNamespace(columns=["a"], response="y", groups=[SimpleNamespace(name="1|g")])
    for name, value in (
        ("largest", [1e140]),
        ("y_largest", 1e140),
        ("value_largest", [1e140]),
        ("weights", (0, 1e140)),
    ):
        for factor, is_refused in ((0.95, False), (1.05, True)):
            given = plain | {name: factor * value if name == "y_largest" else [factor * one for one in value]}
            refused = pytest.raises(ValueError, match="in a larger unit") if is_refused else contextlib.nullcontext()
            with refused:
                checks.check_sizes(design, SimpleNamespace(**given))
    for size, is_refused in ((0.0, False), (0.95e-140, True), (1.05e-140, False)):
        refused = pytest.raises(ValueError, match="in a smaller unit") if is_refused else contextlib.nullcontext()
        with refused:
            checks.check_sizes(design, SimpleNamespace(**plain | {"y_largest": size}))
    X = np.column_stack([np.ones(12), np.linspace(-1.0, 3.0, 12)])  # as many as are looked at first
    noise = np.where(np.arange(12) % 2, 1.0, -1.0)
    noise -= X @ np.linalg.lstsq(X, noise, rcond=None)[0]
    y, design = X @ [0.5, 2.0], SimpleNamespace(X=X, response="y")
    for share, said in ((0.8e-10, True), (1.2e-10, False)):
        found = checks.fitted_exactly(design, y + share * y.std() * noise / np.abs(noise).max())
        assert (found is not None) == said


@pytest.fixture(scope="module")
def fit():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "SUBSAMPLED_ROWS", 1)  # quicker than the warm-up of HMC
        data = table().iloc[:12]
        return pdmp.regression("b ~ x + treated", data, "probit", seed=1, events=500, chains=2, progress=False)


def test_a_fit(fit):
    expected = fit.predict(draws=200)
    assert np.allclose(fit.predict(table().iloc[:12], draws=200), expected)
    with pytest.raises(ValueError, match="levels"):
        fit.predict({"x": [1.0], "treated": ["maybe"]})
    with pytest.raises(ValueError, match="`formula` names 'treated', and `new` has no such column; it has 'x'"):
        fit.predict({"x": [1.0]})
    with pytest.raises(ValueError, match=r"`new`: the column 'x' must be a list or an array, such as \[1.0\]"):
        fit.predict({"x": 1.0, "treated": "yes"})
    with pytest.raises(ValueError, match="`new`: its columns must have one length, got 'x' of 2, 'treated' of 1 rows"):
        fit.predict({"x": [1.0, 2.0], "treated": ["yes"]})
    assert fit.predict({"x": [1.0, 2.0], "treated": "yes"}).shape == (1_000, 2)
    with pytest.raises(ValueError, match="inclusion is for a regression with"):
        fit.inclusion()


@pytest.mark.slow
def test_loo_is_of_the_full_likelihood(fit):
    arviz = pytest.importorskip("arviz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = fit.to_arviz(40)
        log_likelihood = np.asarray(data["log_likelihood"]["b"])
        wanted = arviz.loo(data)
        found = fit.loo(draws=40)
    assert found.n_data_points == 12 and found.n_samples == 80
    assert found.elpd_loo == pytest.approx(float(getattr(wanted, "elpd_loo", getattr(wanted, "elpd", None))), rel=1e-6)
    assert found.se == pytest.approx(float(wanted.se), rel=1e-6)
    expected = fit.model.pointwise_log_likelihood(fit.run.draws(40))
    assert np.allclose(log_likelihood, expected)


class Frozen:
    """A run that was at one point, for the arithmetic of predictions."""

    def __init__(self, x):
        self.x, self.chains, self.dim = x, 1, len(x)

    def draws(self, n):
        return np.broadcast_to(self.x, (self.chains, n, self.dim))


def frozen(formula, family="gaussian", shift=0.3, **options):
    """A fit whose run was at one point."""
    model, design, priors, notes = made(formula, family, **options)
    columns = {role: options.get(role) for role in ("offset", "exposure")}
    run = Frozen(model.initial + shift)
    return pdmp.formulas.Fit(formula, family_of(family), model, run, design, priors, notes, columns)


@pytest.mark.parametrize("unseen", ["error", "zero", "draw"])
def test_groups_of_another_type_are_no_unseen_ones(unseen):
    """Text for numbers: a wrong table, whatever is to be done with groups that are new."""
    data = table()
    data["g"] = np.arange(len(data)) % 5
    fit = frozen("c ~ x + (1 | g)", "poisson", data=data)
    with pytest.raises(ValueError, match="the group 4 of 'g' is no text in the data, and in the new table it is of"):
        fit.predict({"x": [1.0, 1.0], "g": ["9", "4"]}, unseen=unseen)
    assert np.isfinite(fit.predict({"x": [1.0, 1.0], "g": [4.0, 3.0]}, unseen=unseen).mean()).all()
    data["g"] = (np.arange(len(data)) % 5).astype(str)
    fit = frozen("c ~ x + (1 | g)", "poisson", data=data)
    with pytest.raises(ValueError, match="the group 4 of 'g' is text in the data, and in the new table it is of an"):
        fit.predict({"x": [1.0, 1.0], "g": [9, 4]}, unseen=unseen)


def test_a_response_is_read_as_other_tools_write_it():
    """A power by ^, and a name with spaces in Q(), as on the right of ~."""
    t = table().rename(columns={"y": "my y"})
    for formula, y in (("I(e^2) ~ x", t["e"] ** 2), ("Q('my y') ~ x", t["my y"])):
        model = pdmp.regression(formula, t, sample=False).model
        np.testing.assert_allclose(model.y, y, rtol=1e-14)


def test_the_first_tilde_is_that_of_the_formula():
    """Others stand in names between backticks."""
    t = table().rename(columns={"w": "a~b"})
    for formula in ("y | weights(e) ~ x + `a~b`", {"y": "y ~ x", "sigma": "~ `a~b`"}):
        prepared = pdmp.regression(formula, t, sample=False)
        assert "a~b" in {name.removeprefix("sigma: ") for name in prepared.priors}


def test_unseen_groups():
    fit = frozen("c ~ x + offset(2 * x) + (1 | g)", "poisson", exposure="e")
    new = {"x": [1.0, 1.0, 2.0], "g": ["a", "zz", "zz"], "e": [1.0, 1.0, 2.0]}
    with pytest.raises(ValueError, match="the group 'zz' of 'g' was not in the data"):
        fit.predict(new)
    with pytest.raises(ValueError, match="`exposure`: the column 'e' must be positive, got 0"):
        fit.predict(new | {"e": [1.0, 0.0, 1.0]})
    with pytest.raises(ValueError, match="`new`: the column 'g' has missing values"):
        fit.predict(new | {"g": ["a", None, "zz"]}, unseen="zero")
    natural = fit.model.constrain(fit.run.x)
    z = natural["Intercept"] + (natural["x"] + 2.0) * np.array([1.0, 1.0, 2.0]) + np.log([1.0, 1.0, 2.0])
    z[0] += natural["1|g"][0]
    assert np.allclose(fit.predict(new, unseen="zero", draws=3), np.exp(z))
    effects = np.log(fit.predict(new, unseen="draw", draws=4_000, seed=0)) - z
    assert np.allclose(effects[:, 0], 0.0) and np.allclose(effects[:, 1], effects[:, 2])
    assert effects[:, 1].std() == pytest.approx(natural["sd(g)"], rel=0.07)  # four standard errors are 4.5 %


def test_unseen_groups_differ_in_each_of_their_effects():
    """Of two new groups effects are independent, and so are intercept and slope, each with its own spread."""
    fit = frozen("y ~ x + (1 + x | g)", shift=0.0)
    fit.run.x[fit.model.n_fixed : fit.model.n_fixed + 2] = np.log([0.5, 6.0])
    new, natural = {"x": [0.0, 1.0] * 2 + [1.0], "g": ["zz", "zz", "yy", "yy", "a"]}, fit.model.constrain(fit.run.x)
    z = fit.predict(new, unseen="draw", draws=4_000, seed=0) - fit.predict(new, unseen="zero", draws=4_000)
    parts = np.column_stack([z[:, 0], z[:, 1] - z[:, 0], z[:, 2], z[:, 3] - z[:, 2]])
    assert parts.std(axis=0) == pytest.approx([natural["sd(g)"], natural["sd(x|g)"]] * 2, rel=0.07)
    assert np.abs(np.corrcoef(parts.T) - np.eye(4)).max() < 0.07  # four standard errors are 0.063
    assert np.array_equal(z[:, 4], np.zeros(4_000))


def test_groups_of_which_none_was_seen():
    """ "1" of a table is not "01" of the fit: said, unless some other row has a group that was seen."""
    data = table()
    data["clinic"] = np.array(["01", "02", "03"])[np.arange(N) % 3]
    fit = frozen("y ~ x + (1 | clinic)", data=data)
    for unseen in ("zero", "draw"):
        said = "`new`: the fit has seen none of the groups of 'clinic', such as '1'; it has '01', '02', '03'"
        with pytest.warns(UserWarning, match=said):
            fit.predict({"x": [1.0, 2.0], "clinic": [1, 2]}, unseen=unseen, draws=2)
        fit.predict({"x": [1.0, 2.0], "clinic": ["1", "02"]}, unseen=unseen, draws=2)  # without a warning


def test_predictions_of_too_many_rows(monkeypatch):
    """At most 20 million numbers; else fewer draws, or a part of the rows."""
    fit = frozen("y ~ x")
    assert fit_module.NUMBERS == 20_000_000
    monkeypatch.setattr(fit_module, "NUMBERS", 2_400)
    assert fit.predict(draws=100).shape == (100, N) and fit.predict(table().iloc[:5], draws=480).shape == (480, 5)
    said = "`draws` = 101 of 24 rows are 19,392 bytes, above 19,200 bytes: give draws=100, or some of the rows"
    with pytest.raises(ValueError, match=said):
        fit.predict(draws=101)
    with pytest.raises(ValueError, match="`draws` = 481 of 5 rows .* give draws=480"):
        fit.predict(table().iloc[:5], draws=481)


def test_responses_are_drawn_with_each_dispersion_in_its_place():
    """And as many as are asked for, of any number of chains."""
    fit = frozen("y ~ x", "student_t", shift=0.0)
    fit.run.x[-2:] = np.log([0.5, 30.0])  # sigma of the standardised response, and nu
    fit.run.chains = 2
    drawn = fit.predict({"x": [1.0, 2.0]}, kind="response", draws=4_001, seed=0)
    natural = fit.model.constrain(fit.run.x)
    assert drawn.shape == (4_001, 2) and natural["nu"] == pytest.approx(30.0)
    sd = natural["sigma"] * np.sqrt(30.0 / 28.0)  # four standard errors are 5 %
    assert drawn.std(axis=0) == pytest.approx(sd, rel=0.06)


def test_the_condition_number_is_that_of_correlations():
    model = made("c ~ x + w + I(x**2)", "poisson")[0]
    covariance = np.linalg.inv(model.hessian(model.mode()))
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert subsampling.condition(covariance) == pytest.approx(np.linalg.cond(correlation))


def test_rows_that_are_looked_at_by_selections_from_few_rows():
    """Of bounds that only grow with the square of the distance: speed times that, each √k of k coordinates."""
    model = made("y ~ x + w", select="all", priors={"inclusion": BetaBernoulli(1.0, 3.0)})[0]
    bouncing = subsampling.subsampled(model, True, "bps")[0].inner
    assert bouncing.expected_data_of(model.dim) == bouncing.expected_data
    bouncing.growth = Shells([math.inf], [1.0])
    assert [bouncing.expected_data_of(k) / bouncing.total for k in (1, 4, 9)] == pytest.approx([0.5, 4.0, 13.5])


def test_inclusion_probabilities_of_a_beta_bernoulli_law_have_its_mean():
    design = made("y ~ x + w")[1]
    assert list(fitting.inclusion_of("all", design, BetaBernoulli(1.0, 3.0))) == [1.0, 0.25, 0.25]


def test_warnings_of_other_modes_stay_with_the_fit(monkeypatch):
    monkeypatch.setattr(fitting, "other_modes", lambda *_: ["there is another mode"])
    monkeypatch.setattr(fitting, "with_pilot", lambda process, *_: (process, 0.0))  # of minutes in plain Python
    options = {"seed": 1, "chains": 1, "proposals": 3, "progress": False, "sampler": "zigzag"}
    fit = pdmp.regression("y ~ x", table(), "student_t", **options)
    assert "there is another mode" in fit.run.process.prepared.cautions


def test_a_run_that_is_too_short():
    fit = pdmp.regression("y ~ x + w", table(), select="all", seed=1, chains=1, proposals=3, progress=False)
    with pytest.raises(ValueError, match="the run is too short for a summary: sample longer"):
        fit.summary()
    with pytest.raises(ValueError, match="the run is too short for inclusion probabilities: sample longer"):
        fit.inclusion()


def test_samplers_that_have_no_version_for_a_model():
    options = {"seed": 1, "progress": False, "events": 10}
    with pytest.raises(ValueError, match="`sampler` must be one of 'auto', 'zigzag', 'bps', 'boomerang', got 'hmc'"):
        pdmp.regression("y ~ x", table(), sampler="hmc", **options)
    for sampler in ("bps", "boomerang"):
        with pytest.raises(ValueError, match=f"`sampler`: '{sampler}' is for regressions without group effects"):
            pdmp.regression("y ~ x + (1 | g)", table(), sampler=sampler, **options)
    with pytest.raises(ValueError, match="`sampler` cannot be 'zigzag': that is for effects of one grouping"):
        pdmp.regression("y ~ x + (1 + w || g)", table(), sampler="zigzag", **options)


@pytest.mark.parametrize(
    ("formula", "limits"),
    [
        ("c ~ x + (1 | g)", {"GROUPED_ROWS": N, "MANY_GROUPS": 3, "INTERCEPT_ROWS": 8}),
        ("c ~ x + (1 | g) + (1 | h)", {"SUBSAMPLED_ROWS": N, "INTERCEPT_ROWS": 5}),
    ],
)
def test_intercepts_of_many_groups_are_subsampled_from_fewer_rows_on(formula, limits, monkeypatch):
    """Where rows, groups and rows of a group are as many as asked, and not where one of them is one fewer."""
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", np.inf)  # these groups hardly differ
    for over in (None, *limits):
        for name, value in limits.items():
            monkeypatch.setattr(fitting, name, value + (name == over))
        assert isinstance(made(formula, "poisson")[0], GroupIntercepts) == (over is None)


def test_rows_are_counted_as_far_out_as_paths_go(monkeypatch):
    """Of other families: the mean of what the groups' bounds are over normal distances, against all rows' share."""
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    monkeypatch.setattr(fitting, "INTERCEPT_ROWS", 5)
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", np.inf)
    model = made("e ~ x + (1 | g)", "exponential")[0]
    monkeypatch.setattr(subsampling, "GROUPED_SHARE", np.inf)
    process = fitting.subsampled(model, False)[0]
    rng, found = np.random.default_rng(4), []
    for _ in range(1_000):
        shared = rng.standard_normal(len(process.shared)) * (process.speed / process.scale)[process.shared]
        r = np.hypot(np.linalg.norm(shared), rng.standard_normal())
        bounds = [process.multiple(process.growth.share(r, u), r, 0.0) for u in range(process.groups)]
        found.append(process.tables.totals @ bounds)
    rows = process.expected_data_far_out()
    assert rows == pytest.approx(np.mean(found), abs=5.0 * np.std(found) / 1_000**0.5) and rows > process.expected_data
    monkeypatch.setattr(subsampling, "GROUPED_SHARE", 0.9 * rows / N)
    process, _, said = fitting.subsampled(model, False)
    assert process is None and said == "they say too little for the number of groups"
    monkeypatch.setattr(subsampling, "ROOM", np.inf)  # paths would go farther than any bound
    assert "standard deviations from the mode only, and paths go farther" in fitting.subsampled(model, False)[2]


def test_squares_are_in_the_expansion_of_many_groups(monkeypatch):
    """Of more groups than the root of the number of rows."""
    for name, value in (("SUBSAMPLED_ROWS", N), ("INTERCEPT_ROWS", 1)):
        monkeypatch.setattr(fitting, name, value)
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", np.inf)
    monkeypatch.setattr(subsampling, "ROOM", -np.inf)  # groups have few rows
    data = pandas.concat([table()] * 8, ignore_index=True)
    for groups, family in ((3, "gamma"), (40, "gamma"), (40, "exponential")):
        model = made("e ~ x + (1 | k)", family, data.assign(k=np.arange(len(data)) % groups))[0]
        one = subsampling.candidates(model)["zigzag"]
        assert one.make().squares == (groups > len(data) ** 0.5)
        assert one.cost() == pytest.approx(one.make().expected_data_far_out(), rel=1e-12)


@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_correlated_coefficients_take_the_zigzag_process_longer(noise):
    """In proportion to the condition number beyond 10; the Boomerang is a candidate only there."""
    data = pandas.concat([table()] * 20, ignore_index=True)
    data["near"] = data["x"] + noise * np.random.default_rng(2).standard_normal(len(data))
    model = made("c ~ x + near", "poisson", data)[0]
    kappa = subsampling.condition(subsampling.laplace(model).covariance)
    offers = subsampling.candidates(model)
    rows, turning = offers["zigzag"].make().expected_data, offers["boomerang"].cost()
    assert (kappa > 100.0) == (noise == 0.1) and (kappa < 10.0) == (noise == 3.0)
    assert offers["zigzag"].cost() == pytest.approx(max(kappa / 10.0, 1.0) * rows, rel=1e-12)
    assert turning == (offers["boomerang"].make().expected_data if noise == 0.1 else np.inf)


#: And how often the table is repeated: rows must say something of a dispersion.
LARGE = [
    ("c ~ x", "poisson", 1),
    pytest.param("y ~ x", "gaussian", 8, marks=pytest.mark.slow),
    ("c ~ x + (1 | g)", "poisson", 1),
    ("e ~ x + (1 | g)", "exponential", 1),
    pytest.param("c ~ x + (1 + x || g)", "poisson", 4, marks=[pytest.mark.slow, pytest.mark.release]),
    pytest.param("c ~ x", "negative_binomial", 40, marks=[pytest.mark.slow, pytest.mark.release]),
]


@pytest.mark.parametrize(("formula", "family", "copies"), LARGE)
def test_large_tables_of_every_family_are_subsampled(formula, family, copies, monkeypatch):
    """Rows in any order have the same posterior, whose mean the fit has."""
    monkeypatch.setattr(fitting, "with_pilot", lambda process, *_: (process, 0.0))  # anchored at the mode
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", np.inf)  # these groups hardly differ
    monkeypatch.setattr(subsampling, "GROUPED_SHARE", np.inf)
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    monkeypatch.setattr(fitting, "INTERCEPT_ROWS", 5)
    monkeypatch.setattr(fitting, "SLOPE_ROWS", 5)
    data = pandas.concat([table()] * copies, ignore_index=True)
    if family == "negative_binomial":
        data["c"] *= 1 + data.index % 3
    # Two chains have some 30 effective draws of the fixed columns: five standard errors are one standard deviation.
    events = 3_000 if "1 + x" in formula else 150  # of all groups
    options = {"events": events, "chains": 2, "seed": 1, "progress": False}
    fit = pdmp.regression(formula, data, family, **options)
    process = fit.run.process
    assert isinstance(process, RegressionZigZag) and process.slots == formula.replace("1 + x ||", "1 |").count(
        "|"
    ) + formula.count("1 + x")
    (how,) = (note for note in fit.notes if "sampled by the Zig-Zag process, exact: one row a proposal" in note)
    rows = process.expected_data_far_out() if family == "exponential" else process.expected_data
    assert f"it looks at the fewest rows for an effective draw, about {rows:.2g} of {len(data):,}" in how
    assert fit.run.stats["bound_violations"] == 0
    assert fit.run.stats["data_terms"] <= fit.run.stats["proposals"]
    away = (fit.run.mean() - process.anchor) / process.speed
    assert np.abs(away[[*process.shared, *process.means]]).max() < 1.5
    again = pdmp.regression(formula, data, family, **options)
    assert np.array_equal(again.run.mean(), fit.run.mean())
    for column in ("x", "g", "c")[: 1 if copies == 40 else 3]:  # bounds of that many rows take long in plain Python
        other = pdmp.regression(formula, data.sort_values(column), family, **options | {"events": 2}).run.process
        assert np.allclose(other.anchor, process.anchor, atol=1e-6)
        assert np.allclose(other.inner, process.inner) and np.allclose(other.pull, process.pull, atol=1e-8)
        assert np.allclose(np.sort(other.tables.totals), np.sort(process.tables.totals))


@pytest.mark.skipif(int(pandas.__version__.partition(".")[0]) < 3, reason="before, tables change in place")
@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("b ~ x + np.exp(0.01 * w)", "bernoulli"),
        pytest.param("c ~ x * treated", "poisson", marks=pytest.mark.slow),
        ("y ~ 0 + w + x", "gaussian"),
    ],
)
def test_columns_of_large_tables_are_used_where_they_are(formula, family, monkeypatch):
    """Sums over rows, bounds and rows themselves are those of a copy; the model keeps its data if the table changes."""
    monkeypatch.setattr(threads, "CHUNK", 150)
    data = pandas.concat([table()] * 4, ignore_index=True)
    copied = made(formula, family, data=data)[0]
    monkeypatch.setattr(design_module, "LARGE", 1)
    model = made(formula, family, data=data)[0]
    assert isinstance(model.design, Columns) and model.X is model.design and not isinstance(copied.design, Columns)
    assert any(np.shares_memory(one, data["x"]) for one in model.design.columns)
    x, rows = copied.initial + 0.1, np.array([3, 0, 90])
    processes = RegressionZigZag(copied), RegressionZigZag(model)
    data.loc[:, ["x", "w", "y", "c"]] = 0.0
    for one in (model, pickle.loads(pickle.dumps(model)), model.some_rows(np.arange(model.n_data))):
        assert np.allclose(one.X[:], copied.X, atol=1e-13) and np.allclose(one.X[rows], copied.X[rows], atol=1e-13)
        assert np.allclose(np.asarray(one.X), copied.X, atol=1e-13) and len(one.X) == len(copied.X)
        assert np.allclose(one.gradient(x), copied.gradient(x)) and np.isclose(one.potential(x), copied.potential(x))
        assert np.allclose(one.margins(x), copied.margins(x)) and np.array_equal(one.y, copied.y)
    process, other = processes[1], processes[0]
    assert isinstance(process.tables, AliasBlocks) and len(process.tables.first) > 2
    for name in ("anchor", "speed", "pull", "inner"):
        assert np.allclose(getattr(process, name), getattr(other, name), atol=1e-7)
    assert np.allclose(process.tables.totals, other.tables.totals)
    run = pdmp.sample(process, initial=process.anchor, events=100, seed=1, progress=False, chains=2)
    assert run.stats["bound_violations"] == 0 and run.stats["data_terms"] > 0
    assert np.abs((run.mean() - process.anchor) / process.speed).max() < 2.0  # of some 20 draws


@pytest.mark.skipif(int(pandas.__version__.partition(".")[0]) < 3, reason="before, tables change in place")
@pytest.mark.parametrize(
    ("formula", "family", "options"),
    [
        ("c ~ x * treated + w", "poisson", {"offset": "o", "exposure": "e"}),
        ("y ~ x + w + offset(o) + C(h)", "gaussian", {"weights": "idle"}),
        ("b ~ x + np.exp(0.01 * w)", "bernoulli", {"offset": "o", "weights": "e"}),
    ],
)
def test_columns_where_they_are_beside_roles_and_rows_that_are_left_out(formula, family, options, monkeypatch):
    """Priors, notes, potential and mode are those of a copy, and rows in another order have the same potential."""
    monkeypatch.setattr(threads, "CHUNK", 10)
    data = table().assign(o=lambda t: 0.005 * t.w, idle=lambda t: t.e * (np.arange(N) % 5 > 0))
    data.loc[[2, 9], "x"], data.loc[17, "w"] = np.nan, np.nan
    given, found = [data, data.sort_values("w"), data.iloc[::-1]], []
    for size in (2**28, 1):
        monkeypatch.setattr(design_module, "LARGE", size)
        found.append([made(formula, family, rows, **options) for rows in given])
        assert {type(model.design) is Columns for model, *_ in found[-1]} == {size == 1}
    copied, where = found
    x = copied[0][0].initial + 0.1
    for (one, _, priors, notes), (other, _, same, said) in zip(copied, where, strict=True):
        assert notes == said and any("missing values, in " in note for note in notes)
        np.testing.assert_allclose(np.asarray(other.X), one.X, rtol=1e-12, atol=1e-13)
        assert np.array_equal(other.y, one.y) and one.n_data == 21 - 5 * ("idle" in options.values())
        codes = [[prior.coded() for prior in own.values()] for own in (priors, same)]
        np.testing.assert_allclose(*codes, rtol=1e-12)
        np.testing.assert_allclose(other.pointwise_log_likelihood(x), one.pointwise_log_likelihood(x), rtol=1e-11)
        for model in (one, other):
            assert model.potential(x) == pytest.approx(copied[0][0].potential(x), rel=1e-12)
            np.testing.assert_allclose(model.gradient(x), copied[0][0].gradient(x), rtol=1e-9, atol=1e-9)
    if family != "poisson":  # whose bounds take long in plain Python
        process, other = (RegressionZigZag(some[1][0]) for some in found)
        for name in ("anchor", "speed", "pull", "inner"):
            np.testing.assert_allclose(getattr(other, name), getattr(process, name), atol=1e-7)
        np.testing.assert_allclose(other.tables.totals, process.tables.totals, rtol=1e-9)


def test_rows_that_say_little_of_effects_are_not_subsampled(monkeypatch):
    """Labels of which next to all are 0, in groups of many rows; counts in the same groups are."""
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 100)
    rng, g, h = np.random.default_rng(1), np.repeat(np.arange(5), 24), np.arange(120) % 4
    data = pandas.DataFrame(
        {"g": g, "h": h, "x": rng.standard_normal(120), "rare": 1 * np.isin(np.arange(120), (9, 80))}
    )
    data["c"] = rng.poisson(np.exp(1.0 + 0.8 * rng.standard_normal(5)[g]))
    model = made("rare ~ x + (1 | g)", "bernoulli", data=data)[0]
    assert type(model) is GroupIntercepts
    process, _, said = subsampling.subsampled(model, False)
    assert process is None and said == "they say too little of the effects 1|g"
    assert subsampling.subsampled(model, False, "zigzag")[0] is not None  # which was asked for
    crossed = made("c ~ x + (1 | g) + (1 | h)", "poisson", data=data)[0]
    assert subsampling.subsampled(crossed, False)[2] == "they say too little of the effects 1|h"
    known = made("c ~ x + (1 | g)", "poisson", data=data)[0]
    assert subsampling.little_known(known, laplace(known)) == ""
    # Unless rows of a group are many for the time that log τ takes: its variance in that with all effects known.
    found = laplace(model)
    slower = 24.0 / (2 * 5 * found.sd[model.n_fixed] ** 2)
    for factor, text in ((0.99, ""), (1.01, "they say too little of the effects 1|g")):
        monkeypatch.setattr(subsampling, "WAITING_ROWS", factor * slower)
        assert subsampling.little_known(model, found) == text


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_effects_of_groups_that_fixed_columns_have_too_are_said(family):
    """Intercepts and slopes; but with a prior, or where a group's columns are not all there."""
    t = table().assign(y=np.arange(N) % 7 + 1.0)
    for formula, name, sd in (
        ("y ~ C(g) + (1 | g)", "1|g", "sd(g)"),
        ("y ~ 0 + C(g) + C(g):x + (0 + x | g)", "x|g", "sd(x|g)"),
    ):
        says = f"fixed columns have an effect of each group of {name} already: the data say nothing of {sd}, and its"
        with pytest.warns(UserWarning, match=re.escape(says)):
            prior = pdmp.regression(formula, t, family, sample=False)
        assert f"{says} prior decides" in prior.notes
        pdmp.regression(formula, t, family, priors={sd: HalfNormal(1.0)}, sample=False)
    for formula in ("y ~ I(g == 'a') + (1 | g)", "y ~ C(g) + (0 + x | g)", "y ~ C(g) + (1 | h)"):
        pdmp.regression(formula, t, family, sample=False)


def test_steps_that_columns_and_curves_have_too_are_said():
    """Numbers, categories, a category of two of the levels, another order, and curves; and not what is near it only."""
    level = np.arange(N) % 4
    t = table().assign(level=level, above=level > 1, backwards=7 - level, near=level + (np.arange(N) == 5))
    t["gap"], t["part"] = (
        np.where(level > 1, level + 2, level),
        np.where((level < 2) & (np.arange(N) % 8 < 4), "a", "b"),
    )
    for formula, names in (
        ("y ~ mo(level) + level", "'level'"),
        ("y ~ mo(level) + x + C(level)", "'C(level)[1]', 'C(level)[2]', 'C(level)[3]'"),
        ("y ~ x + mo(level) + above", "'above'"),
        ("y ~ mo(level) + s(level, k=4)", "'s(level).level', 's(level)'"),
        ("y ~ x + mo(backwards) + mo(level)", "'steps of mo(level)'"),
        ("y ~ mo(level):part + part:level", "'part[a]:level'"),
    ):
        size = "mo(backwards)" if "backwards" in formula else "mo(level)" + ":part[a]" * ("part" in formula)
        says = f"a sum of the steps of {size} is also one of {names}: the data cannot tell them apart, and their priors"
        with pytest.warns(UserWarning, match=f"^{re.escape(says)} decide\\.$"):
            prior = pdmp.regression(formula, t, sample=False)
        assert f"{says} decide" in prior.notes
    for formula in (
        "y ~ mo(level) + near + s(x, k=5)",
        "y ~ mo(level) + (1 | level)",
        "y ~ mo(level) + above:x + x",
        "y ~ mo(gap) + x",
        "y ~ mo(level):part + x",
        "y ~ mo(level) * x",
    ):
        pdmp.regression(formula, t, sample=False)


def test_groups_that_are_named_twice_are_refused():
    """In every row, of one grouping or of two; by the same numbers, in another order, or times another number."""
    t = table().assign(two=2.0, k=np.arange(N) % 3, m=np.arange(N) % 4, shifted=table().x + 3.0)
    t["half"], t["twice"] = t.x / 2.0, (np.arange(N) % 3) * 2 - 6
    for formula, says in (
        ("y ~ x + (1 | mm(k, k))", "two columns of mm(k, k) have the same group in every row: name each once"),
        ("y ~ x + (1 | mm(k, m, k))", "two columns of mm(k, m, k) have the same group in every row: name each once"),
        (
            "y ~ (1 | mm(k, m)) + (1 | mm(m, k))",
            "'mm(k, m)' and 'mm(m, k)' have the same groups, so that the data cannot",
        ),
        ("y ~ (1 | k) + (0 + two | k)", "'1|k' and 'two|k' have the same groups"),
        ("y ~ (0 + x | k) + (0 + half | twice)", "'k' and 'twice' have the same groups"),
        ("y ~ gp(x) + gp(shifted)", "'gp(x)' and 'gp(shifted)' have the same steps or functions"),
    ):
        with pytest.raises(ValueError, match=f"^`formula`: {re.escape(says)}"):
            pdmp.regression(formula, t, sample=False)
    says = "fixed columns have an effect of each group of 1|mm(k, m) already: the data say nothing of sd(mm(k, m))"
    with pytest.warns(UserWarning, match=re.escape(says)):
        pdmp.regression("y ~ C(k) + C(m) + (1 | mm(k, m))", t, sample=False)
    for formula in ("y ~ (1 | mm(k, m)) + (1 | k)", "y ~ (0 + x | k) + (0 + e | k)", "y ~ x + C(k) + (1 | mm(k, m))"):
        pdmp.regression(formula, t, sample=False)


def test_whole_numbers_that_are_no_floats_are_said():
    """As times in nanoseconds are; not where they are labels."""
    steps = np.arange(9)
    t = pandas.DataFrame({"y": steps**2.0, "time": 2**62 + 10**17 * steps, "g": 2**62 + 4096 * (steps // 2)})
    t["past"] = np.where(steps > 0, -t.time, 0)
    for formula, name in (("y ~ time", "time"), ("y ~ I(time - g)", "time"), ("y ~ past", "past")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            pdmp.regression(formula, t, sample=False)
        told = [str(one.message) for one in said]
        assert any(f"'{name}' has whole numbers above 2^53, which floats round" in text for text in told), formula
        assert all("to multiples of 1024: if differences matter" in text for text in told)
    assert str(pdmp.regression("y ~ C(g)", t, sample=False)).count("\nC(g)[") == 4


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_a_response_whose_squares_are_nothing_is_refused(family):
    t = {"y": [1e-201, 5e-201, 2e-201, 7e-201], "x": [1.0, 2.0, 4.0, 3.0]}
    with pytest.raises(ValueError, match="the response 'y' has values of at most 7e-201: give it in a smaller unit"):
        pdmp.regression("y ~ x", t, family, sample=False)


def test_one_slip_among_numbers_is_said_with_its_row():
    """Of a row in a hundred or a single one; not of codes, of labels, of C(...), nor of what groups are named by."""
    n = 24
    t = table().assign(y=np.arange(n) % 5 + 0.5, dose=(np.arange(n) % 4 / 2).astype(str))
    t.index = [f"row {k}" for k in range(n)]
    t.loc["row 7", "dose"] = "3.5x"
    says = (
        "the column 'dose' holds numbers but for '3.5x' in row row 7, and so is taken for a category of 5 levels: "
        "correct that, leave it empty if it is missing, or write C(dose) for a category."
    )
    left_out = t.assign(y=t.y.where(t.dose != "3.5x"), w=1.0 * (t.dose != "3.5x"))  # as a line of totals is
    for data, weights in ((t, None), (left_out, None), (left_out.assign(y=t.y), "w")):
        for family in ("gaussian", "gamma"):
            with pytest.warns(UserWarning, match=f"^{re.escape(says)}$"):
                pdmp.regression("y ~ x + dose", data, family, weights=weights, sample=False)
    large = pandas.concat([t.assign(dose=t.dose.replace("3.5x", "1.0"))] * 10, ignore_index=True)
    large.loc[[11, 40], "dose"] = ["n.k.", "1,5"]
    with pytest.warns(UserWarning, match="but for 'n.k.' in row 11, and 1 more such rows, and so"):
        pdmp.regression("y ~ dose", large, sample=False)
    large.loc[100, "dose"] = "n.k."  # more than one in a hundred
    pdmp.regression("y ~ dose", large, sample=False)
    for formula in ("y ~ C(dose)", "y ~ x + (1 | dose)", "y ~ treated + g"):
        pdmp.regression(formula, t, sample=False)
    for few, many in (("1", "A"), ("A", "1")):  # with one number among them
        pdmp.regression("y ~ dose", t.assign(dose=np.where(np.arange(n) == 3, few, many)), sample=False)


def test_standard_deviations_that_data_cannot_tell_apart():
    """They are refused, but where one of the two varies, where the law has a dispersion of its own, or with a prior."""
    data = table()
    data["row"], data["twin"], data["half"] = np.arange(N), data.g.map({"a": 2, "b": 0, "c": 1}), np.arange(N) % 23
    data["even"] = np.where(np.arange(N) % 2, 3e3, 1e4 * (0.1 + 0.2))  # but for rounding
    for term, said in (
        ("(1 | row)", "drop (1 | row)"),
        ("(1 | h / row)", "drop (1 | h:row)"),
        ("(0 + even | row)", "drop (even | row)"),
    ):
        with pytest.raises(ValueError, match="has one row, so that the data cannot tell sd") as caught:
            made(f"y ~ x + {term}", data=data)
        assert said in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="'g' and 'twin' have the same groups, so that the data cannot tell sd.g."):
        made("c ~ x + (1 | g) + (1 | twin)", "poisson", data=data)
    for name in ("sd(row)", "sigma"):
        made("y ~ x + (1 | row)", data=data, priors={name: HalfNormal(0.1)})
    made("c ~ x + (1 | g) + (1 | twin)", "poisson", data=data, priors={"sd(g)": HalfNormal(0.1)})
    made("y ~ x + (1 | row)", data=data, weights="e")
    for formula, family in (("y ~ x + (0 + x | row)", "gaussian"), ("y ~ x + (1 | half)", "gaussian")):
        made(formula, family, data=data)
    for family in ("poisson", "negative_binomial"):
        made("c ~ x + (1 | row)", family, data=data)


def test_what_the_pilot_took_is_counted(monkeypatch):
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    monkeypatch.setattr(fitting, "with_pilot", lambda process, starts, seed: (process, 2.3))
    monkeypatch.setattr(fitting, "INTERCEPT_ROWS", 5)
    monkeypatch.setattr(fitting, "other_modes", lambda model, process, seed: ["a mode: another one."])
    fit = pdmp.regression("c ~ x + (1 | g)", table(), "poisson", events=20, chains=1, seed=1, progress=False)
    assert fit.run.stats["preparation_gradients"] == 3
    assert "a mode: another one." in fit.run.info["cautions"]


def test_chains_start_apart(monkeypatch):
    """As far apart as the posterior is wide, for R-hat to see chains that do not meet; elsewhere from another seed."""
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 12)
    asked = {}
    monkeypatch.setattr(fitting, "sample", lambda process, **given: asked.update(given))
    monkeypatch.setattr(fitting, "with_pilot", lambda process, *_: (process, 0.0))
    data = table().iloc[:20].copy()
    data["w"] += 100.0 * data.x  # the posterior is correlated
    model = made("b ~ x + w", "bernoulli", data=data)[0]
    fitting.sample_model(model, 3, False, {"chains": 4_000}, "zigzag")
    starts, anchor = asked["initial"], model.mode()
    covariance = np.linalg.inv(model.hessian(anchor))
    # The variance of 4,000 draws has a standard error of 2.2 %, that of a mean is 1.6 % of a standard deviation.
    assert np.abs((starts.mean(axis=0) - anchor) / np.sqrt(np.diag(covariance))).max() < 0.08
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, (starts - anchor).T)
    np.testing.assert_allclose(np.cov(white), np.eye(model.dim), atol=0.12)
    fitting.sample_model(model, 4, False, {"chains": 4_000}, "zigzag")
    assert not np.any(asked["initial"] == starts)


def test_a_tempered_fit_says_whether_it_takes_all_rows(monkeypatch):
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    by_rows = fitting.TemperedRows.__new__(fitting.TemperedRows)
    model = made("b ~ x", "bernoulli")[0]
    for process, begins in ((None, "each gradient is from all rows: so"), (by_rows, "so")):
        made_run = {"process": process, "info": {"choice": "so"}}
        monkeypatch.setattr(
            fitting, "sample", lambda model, *, how=made_run, **given: SimpleNamespace(model=model, given=given, **how)
        )
        run, (said,) = fitting.sample_model(model, 1, False, {"tempered": True})
        assert run.model is model and run.given == {"seed": 1, "tempered": True} and said == begins
    for selects, sampler, match in (
        (True, "auto", "`select`: leave it out"),
        (False, "bps", "`sampler='bps'`, as its"),
    ):
        with pytest.raises(ValueError, match=f"`tempered` does not go with {match}"):
            fitting.sample_model(model, 1, selects, {"tempered": True}, sampler)


def test_options_come_before_those_of_sub_sampled_runs(monkeypatch):
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    asked = {}
    monkeypatch.setattr(fitting, "sample", lambda process, **given: asked.update(given))
    model = made("b ~ x", "bernoulli")[0]
    fitting.sample_model(model, 1, False, {"ess": None})
    usual = {"seed": 1, "warmup": 0.2, "chains": 4, "ess": fitting.ESS, "rhat": fitting.RHAT}
    assert len(asked.pop("initial")) == 4 and asked == usual
    asked.clear()
    fitting.sample_model(model, 1, False, {"chains": 1, "warmup": 0.4})
    assert len(asked.pop("initial")) == 1 and asked == usual | {"warmup": 0.4, "chains": 1, "rhat": None}
    asked.clear()
    fitting.sample_model(model, 1, False, {"ess": 100.0, "rhat": None})
    assert len(asked.pop("initial")) == 4 and asked == {"seed": 1, "warmup": 0.2, "chains": 4, "ess": 100.0}
    asked.clear()
    given = {"events": 50, "warmup": 0.0, "chains": 2, "initial": np.zeros(2)}
    fitting.sample_model(model, 1, False, given)
    assert asked == given | {"seed": 1}


@pytest.mark.filterwarnings("ignore:.*separates? the labels")
def test_priors_of_what_is_selected_that_contradict():
    for select in (None, {"x": 0.3}):
        with pytest.raises(ValueError, match=r"BetaBernoulli\(1, 3\) is for `select=\"all\"`"):
            made("b ~ x", "bernoulli", priors={"inclusion": BetaBernoulli(1.0, 3.0)}, select=select)
    with pytest.raises(ValueError, match="`select` names the term 'g', and its column 'g.c.' besides"):
        made("b ~ x + g + treated", "bernoulli", select=["g", "g[c]"])


@pytest.mark.filterwarnings("ignore:.*separates? the labels")
@pytest.mark.parametrize(("select", "w"), [("all", 0.5), ({"g": 0.2, "x": 0.7}, 0.2)])
def test_terms_of_several_columns_are_selected_as_a_whole(select, w):
    """Of "all", and where the term is named: by the odds of all of its columns, which start together."""
    model = made("b ~ x + g + treated", "bernoulli", select=select)[0]
    process, starts, _ = subsampling.subsampled(model, True)
    odds = np.log(w / (1.0 - w)) + np.log(model.slab_density()[[2, 3]]).sum()
    assert model.together == {"g": (2, 3)} and process.log_odds[0] == pytest.approx(odds)
    zero = starts(200, np.random.default_rng(0)) == 0.0
    assert np.array_equal(zero[:, 2], zero[:, 3])


class Recorded:
    """A run of two chains, of which only indicators of two units are known."""

    def __init__(self, moving):
        self.moving, length = np.asarray(moving, float), np.shape(moving)[1]
        self.records = [
            SimpleNamespace(length=float(length), accumulated={"included": one.sum(axis=0)}) for one in self.moving
        ]

        self.process, self.store = "loaded", "skeleton"
        self.chains, self.dim, self.events = *self.moving.shape[::2], np.full(2, length)

    def draws(self, n):
        return self.moving


def test_text_is_no_truth_value():
    """Any text is true for NumPy, "no" and "False" too: such a column would be the first choice in every row."""
    data = table().assign(smokes=np.where(np.arange(N) % 3 == 0, "yes", "no"), old=np.arange(N) % 4 == 0)
    data["kind"] = data.smokes.astype("category")
    data["object"] = data.old.astype(object)
    for term in ("np.where(smokes, x, w)", "np.where(kind, x, w)", "I(1 * np.logical_not(smokes))"):
        with pytest.raises(ValueError, match="for truth values, and text is always true: compare it, as in"):
            made(f"y ~ {term}", data=data)
    for term in ("np.where(smokes == 'yes', x, w)", "np.where(object, x, w)", "np.where(old, smokes, b)"):
        made(f"y ~ {term}", data=data)
    design = made("y ~ np.where(old, x, w)", data=data)[1]
    assert np.array_equal(design.new(data)[0][:, 1], np.where(data.old, data.x, data.w))


def chosen_by(x, rows):
    return np.where(rows, x, -x)


def test_other_types_than_those_of_the_fit_are_refused_or_made_the_same():
    """A function of the user's takes "no" for a truth value, and orders text by its letters."""
    is_old = np.arange(N) % 4 == 0
    order = pandas.CategoricalDtype(["lo", "mid", "hi"], ordered=True)
    texts = np.array(["hi", "lo", "mid"])[np.arange(N) % 3]
    data = table().assign(old=is_old, count=is_old.astype(int), size=texts, stage=pandas.Categorical(is_old))
    data = data.assign(ranked=pandas.Series(texts).astype(order))

    def refused(formula, name, column, held, was):
        with pytest.raises(
            ValueError, match=rf"^`new`: the column '{name}' holds {held}, and {was} in the data of the fit\.$"
        ):
            made(formula, data=data)[1].new(data.assign(**{name: column}))

    labels, truth, numbers = "text or categories", "truth values", "numbers"
    for formula in ("y ~ chosen_by(x, old)", "y ~ np.where(old, x, w)", "y ~ old", "y ~ x + (0 + old | g)"):
        refused(formula, "old", np.where(is_old, "yes", "no"), labels, truth)
    refused("y ~ chosen_by(x, count)", "count", is_old.astype(str), labels, numbers)
    refused("y ~ I(x * (size == 'lo'))", "size", np.arange(N), numbers, labels)
    same = [
        ("y ~ chosen_by(x, old)", "old", is_old.astype(float)),
        ("y ~ chosen_by(x, old)", "old", pandas.array(is_old, "boolean")),
        ("y ~ chosen_by(x, old)", "old", is_old.astype(object)),
        ("y ~ cube(count):x + (1 | count)", "count", is_old),
        ("y ~ cube(count)", "count", pandas.Categorical(is_old.astype(int))),
        ("y ~ I(1 * (size < 'lo'))", "size", pandas.Series(texts).astype(order)),
        ("y ~ I(1 * (ranked < 'mid'))", "ranked", texts),
        ("y ~ x + (0 + stage | g)", "stage", is_old),
        ("y ~ stage", "stage", pandas.Categorical(is_old, [True, False])),
    ]
    for formula, name, column in same:
        design = made(formula, data=data)[1]
        found, wanted = design.new(data.assign(**{name: column})), design.new(data)
        np.testing.assert_array_equal(found[0], wanted[0])
        for other, g in zip(found[2], wanted[2], strict=True):
            np.testing.assert_array_equal([other.level, other.value], [g.level, g.value])
    halves = made("y ~ cube(count)", data=data)[1].new(data.assign(count=pandas.Categorical(0.5 * is_old)))
    np.testing.assert_array_equal(halves[0][:, 1], 0.125 * is_old)
    groups = made("y ~ x + (1 | count)", data=data)[1].new(data.assign(count="another"))[2]
    assert set(groups[0].level) == {-1}  # groups may have other names


def test_the_table_of_inclusion_by_hand():
    rng = np.random.default_rng(0)
    moving = np.zeros((2, 1_000, 5))
    moving[0, :, 1], moving[1, :, 1] = rng.random(1_000) < 0.6, rng.random(1_000) < 0.9
    moving[:, :, 2], moving[:, :, 4] = 1.0, rng.random((2, 1_000)) < 0.5
    found = inclusion_of_units(Recorded(moving), ["a", "b", "c", "d"], [1, 2, 4, 0], [0.2, 0.5, 0.5, 0.5])
    p, row, certain = moving[:, :, 1].mean(), *found.rows[:2]
    assert dict(found) == {"a": p, "b": 1.0, "c": moving[:, :, 4].mean(), "d": 0.0}
    assert row["bayes factor"] == pytest.approx(p / (1.0 - p) / 0.25, rel=1e-12)
    assert (row["lowest"], row["highest"]) == tuple(moving[:, :, 1].mean(axis=1))
    ess = draws_ess(moving[..., 1:2], "mean")[0]  # chains that disagree are worth less than these say
    assert row["mcse"] == pytest.approx(abs(moving[0, :, 1].mean() - moving[1, :, 1].mean()) / 2.0) and row["ess"] < ess
    assert row["mcse"] == pytest.approx(np.sqrt(p * (1.0 - p) / row["ess"]), rel=1e-12)
    assert row["rhat"] == pytest.approx(draws_rhat(moving[..., 1:2], "rank")[0]) and row["rhat"] > 1.05
    assert certain["bayes factor"] == np.inf and all(np.isnan(certain[k]) for k in ("mcse", "ess", "rhat"))
    assert {"a", "b"} <= set(found.median_model) and "d" not in found.median_model
    text = repr(found)
    assert "median probability model: a, b" in text and "chains disagree, R-hat is above 1.05, " in text
    said = " ".join(found.warnings)
    assert "the probabilities of these: 'a'" in said and "'b'" not in said
    assert "the median model may be another, as these are within two Monte Carlo errors of 1/2: 'a', 'c'" in said
    assert found._repr_html_().count("<tr>") == 5
    apart = np.zeros((2, 1_000, 1))
    apart[0] = 1.0  # always in one chain, never in the other
    split = inclusion_of_units(Recorded(apart), ["z"], [0], [0.5])
    assert split.rows[0]["rhat"] == np.inf and split.rows[0]["mcse"] > 0.1
    assert any("chains disagree" in text for text in split.warnings) and len(split.warnings) == 3
    turns = np.array([[[0.0], [1.0], [1.0], [0.0]] * 250] * 2)  # in as often as out, in every part of each chain
    even = inclusion_of_units(Recorded(turns), ["z"], [0], [0.5])
    assert 0.99 < even.rows[0]["rhat"] < 1.01 and not any("disagree" in text for text in even.warnings)
    brief = Recorded(turns)
    brief.events = np.array([3, 1_000])
    with pytest.raises(ValueError, match="the run is too short for inclusion probabilities: sample longer"):
        inclusion_of_units(brief, ["z"], [0], [0.5])
    slow = np.zeros((2, 1_000, 1))
    slow[:, 500:] = 1.0
    few = inclusion_of_units(Recorded(slow), ["z"], [0], [0.5])
    assert few.rows[0]["mcse"] > 0.05 and "Monte Carlo error of these probabilities is above 0.05" in few.warnings[0]
    assert few.median_model == ("z",)


def test_which_inclusion_probabilities_are_warned_of():
    """Of errors above 0.05, R-hats above 1.05, and those within two errors of 1/2, which itself is in the model."""

    def found(p=0.9, mcse=0.01, rhat=1.0):
        names = ("name", "prior", "probability", "mcse", "bayes factor", "lowest", "highest", "ess", "rhat")
        sure = dict(zip(names, ("sure", 0.5, 0.1, math.nan, 0.0, 0.0, 0.0, math.nan, math.nan), strict=True))
        return Inclusion([sure, sure | {"name": "x", "probability": p, "mcse": mcse, "rhat": rhat}])

    for given, said in (
        ({"mcse": 0.0501}, ["the Monte Carlo error"]),
        ({"mcse": 0.0499}, []),
        ({"rhat": 1.0501}, ["chains disagree"]),
        ({"rhat": 1.0499}, []),
        ({"p": 0.5199}, ["the median model may"]),
        ({"p": 0.4801}, ["the median model may"]),
        ({"p": 0.5201}, []),
        ({"p": 0.4799}, []),
    ):
        assert [text[: len(one)] for text, one in zip(found(**given).warnings, said, strict=True)] == said
        assert all("'x'" in text and "'sure'" not in text for text in found(**given).warnings)
    assert [found(p).median_model for p in (0.5, 0.4999)] == [("x",), ()]


@pytest.mark.filterwarnings("ignore:.*separates? the labels")
def test_the_table_of_a_fit_that_selects():
    """Terms by their first coordinate, each with its own prior; single chains by their own lengths."""
    data = table()
    data["b"] = np.where(data.x > 0.0, "up", "down")
    model, design, priors, notes = made("b ~ x + g + w", "bernoulli", data=data, select={"g": 0.4, "w": 0.2})
    assert list(model.columns) == ["Intercept", "x", "g[b]", "g[c]", "w"]
    moving = 1.0 * (np.random.default_rng(1).random((2, 1_000, 5)) < [1.0, 1.0, 0.7, 0.1, 0.3])
    run, columns = Recorded(moving), {"offset": None, "exposure": None}
    run.records[1] = SimpleNamespace(length=250.0, accumulated={"included": 0.25 * moving[1].sum(axis=0)})
    found = pdmp.formulas.Fit("", family_of("bernoulli"), model, run, design, priors, notes, columns).inclusion()
    for row, name, j, prior in zip(found.rows, ["g", "w"], [2, 4], [0.4, 0.2], strict=True):
        each = moving[:, :, j].mean(axis=1)
        p = np.average(each, weights=[1_000.0, 250.0])
        assert (row["name"], row["prior"], row["probability"]) == (name, prior, pytest.approx(p, rel=1e-12))
        assert row["bayes factor"] == pytest.approx(p / (1.0 - p) * (1.0 - prior) / prior, rel=1e-12)
        assert (row["lowest"], row["highest"]) == pytest.approx((each.min(), each.max()), rel=1e-12)
        (line,) = (line.split() for line in str(found).splitlines() if line.startswith(name))
        assert line[1:3] == [f"{prior:.3g}", f"{p:.3f}"] and line[5:7] == [f"{each.min():.3f}", f"{each.max():.3f}"]
        assert line[-1] == f"{row['rhat']:.3f}"


def test_what_the_command_asks_for(tmp_path, monkeypatch):
    table().to_csv(tmp_path / "t.csv", index=False)
    asked = []

    def regression(*given, **options):
        asked.append((given, options))
        raise InterruptedError

    monkeypatch.setattr(cli.formulas, "regression", regression)
    roles = {"offset": "x", "exposure": "e", "weights": "h"}
    for select, names in (("x, w ,e", ["x", "w", "e"]), ("all", "all"), (None, None)):
        with pytest.raises(InterruptedError):
            cli.fit("c ~ x", tmp_path / "t.csv", "poisson", select=select, ess=90.0, chains=2, seed=7, **roles)
        wanted = {"select": names, "sampler": "auto", "ess": 90.0, "rhat": None, "chains": 2, "seed": 7}
        wanted |= {"link": None, "priors": None} | roles
        assert asked.pop() == (("c ~ x", tmp_path / "t.csv", "poisson"), wanted)
    words = (
        "--family negative_binomial --also 'shape ~ w' --link mu=log --link shape=identity --offset x --exposure e "
        "--weights h --select x,w --sampler bps --ess 80 --rhat 1.1 --chains 3 --seed 5 --prior 'w ~ Normal(1, 2)'"
    )
    with pytest.raises(SystemExit):  # of the error above, which is the user's
        cli.main(["fit", "c ~ x", str(tmp_path / "t.csv"), *shlex.split(words)])
    wanted = {"select": ["x", "w"], "sampler": "bps", "ess": 80.0, "rhat": 1.1, "chains": 3, "seed": 5} | roles
    formulas = {"c": "c ~ x", "shape": "~ w"}
    links, priors = {"mu": "log", "shape": "identity"}, {"priors": {"w": Normal(1.0, 2.0)}}
    assert asked.pop() == ((formulas, tmp_path / "t.csv", "negative_binomial"), wanted | {"link": links} | priors)


def fitted_by_the_command(monkeypatch, fit):
    """The command on a fit that exists, by its arguments."""

    def run(text, formula="b ~ x + treated"):
        asked = []
        monkeypatch.setattr(cli.formulas, "regression", lambda *given, **options: asked.append(options) or fit)
        with pytest.raises(SystemExit) as stop:
            cli.main(["fit", formula, "t.csv", *shlex.split(text)])
        return stop.value.code, len(asked)

    return run


def test_draws_and_predictions_of_the_command(fit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = fitted_by_the_command(monkeypatch, fit)
    new = table().iloc[12:]
    new[["treated", "x"]].to_csv("new.csv", index=False)
    monkeypatch.setattr(cli, "PREDICTED_ROWS", 5)
    assert run("--draws d.csv --predict new.csv --predictions p.csv") == (0, 1)
    draws, found = pandas.read_csv("d.csv"), pandas.read_csv("p.csv")
    assert list(draws) == ["chain", "draw", "Intercept", "x", "treated[yes]"] and len(draws) == 2 * 1_000
    natural = fit.run.constrain(fit.run.draws(1_000))
    assert np.allclose(draws["x"], natural["x"].ravel())
    assert draws["chain"].tolist() == [0] * 1_000 + [1] * 1_000 and draws["draw"].tolist() == 2 * [*range(1_000)]
    mean = fit.predict(new)
    assert list(found) == ["mean", "sd", "2.5%", "97.5%"] and len(found) == 12
    assert np.allclose(found["mean"], mean.mean(axis=0)) and np.allclose(found["sd"], mean.std(axis=0))
    assert np.allclose(found[["2.5%", "97.5%"]].T, np.quantile(mean, [0.025, 0.975], axis=0))
    new[["x"]].to_csv("less.csv", index=False)
    table().to_csv("t.csv", index=False)
    pandas.DataFrame({"x": [1.0, None], "treated": ["yes", "no"]}).to_csv("missing.csv", index=False)
    pandas.DataFrame({"x": [1.0], "treated": ["maybe"]}).to_csv("level.csv", index=False)
    pandas.DataFrame({"x": [1.0, 2.0], "g": ["a", "z"]}).to_csv("group.csv", index=False)
    said = "row 1 has g = 'z', and t.csv has no such row; --unseen zero or --unseen draw predicts for it."
    assert run("--predict group.csv", "c ~ x + (1 | g)") == (2, 0) and said in capsys.readouterr().err
    assert run("--predict group.csv --unseen draw", "c ~ x + (1 | g)")[1] == 1  # the fit at hand has no groups
    capsys.readouterr()
    for text, says in [
        ("--predict less.csv", "`formula` names 'treated', and --predict less.csv has no such column"),
        ("--predict new.csv --exposure e", "`formula` names 'e', and --predict new.csv has no such column"),
        ("--predict none.csv", "there is no file 'none.csv'"),
        ("--predict missing.csv", "--predict missing.csv: the column 'x' has no value in row 1."),
        ("--predict level.csv", "--predict level.csv: row 0 has treated = 'maybe', and t.csv has no such row."),
        ("--predict new.csv --predictions no/p.csv", "--predictions names a file in"),
        ("--draws no/d.csv", "--draws names a file in"),
        ("--predict new.csv --unseen maybe", "--unseen must be one of error, zero, draw"),
        ("--sampler nuts", "--sampler must be one of auto, zigzag, bps, boomerang, got 'nuts'."),
        ("--picture x.foo", "--picture must end in one of ."),
        ("--picture x", "--picture must end in one of ."),
    ]:
        capsys.readouterr()
        assert run(text) == (2, 0)  # before the fit
        assert says in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*Hamiltonian paths? diverged")  # the run is short
def test_draws_of_effects_are_named_by_their_groups(tmp_path, monkeypatch, capsys):
    """With those of all groups, if that is asked for; unseen groups as the command is told."""
    options = {"seed": 1, "events": 60, "chains": 2, "progress": False}
    fit = pdmp.regression("c ~ x + (1 | g)", table(), "poisson", **options)
    draws = fit.to_dataframe(5, effects=True)
    monkeypatch.chdir(tmp_path)
    run = fitted_by_the_command(monkeypatch, fit)
    for text, others in (("", []), ("--effects", list(draws)[5:])):
        assert run(f"--draws d.csv {text}", "c ~ x + (1 | g)")[1] == 1
        assert list(pandas.read_csv("d.csv")) == ["chain", "draw", "Intercept", "x", "sd(g)", *others]
        capsys.readouterr()
        assert run(f"--json {text}", "c ~ x + (1 | g)")[1] == 1
        said = json.loads(capsys.readouterr().out)["parameters"]
        assert [row["name"] for row in said] == ["Intercept", "x", "sd(g)", *others]
    new = pandas.DataFrame({"x": [0.0, 0.0], "g": ["a", "z"]})
    zero, drawn = (cli._predicted(fit, new, unseen, 3) for unseen in ("zero", "draw"))
    assert np.allclose(zero.iloc[0], drawn.iloc[0]) and drawn["sd"][1] > zero["sd"][1]
    assert cli._predicted(fit, new, "draw", 3).equals(drawn) and not cli._predicted(fit, new, "draw", 4).equals(drawn)


def test_the_command_on_files_that_cannot_be_read(tmp_path, monkeypatch, capsys):
    """One line and exit code 2: no traceback."""
    monkeypatch.chdir(tmp_path)
    for content, says in [
        (b"y,x\n1,2\n1,2,3\n", "`data`: 't.csv' cannot be read: Error tokenizing data"),
        (b"", "`data`: the file 't.csv' is empty."),
        (b"y,x\n1,caf\xe9\n", "`data`: the file 't.csv' is not encoded in UTF-8"),
        (b"PAR1 and no more", "`data`: 't.csv' cannot be read: "),
        (b"y;x\n1;0,5\n", "'t.csv' cannot be read: column 'x' of t.csv has numbers with decimal commas, such as '0,5'"),
    ]:
        if content.startswith(b"PAR1") and importlib.util.find_spec("pyarrow") is None:
            continue
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(SystemExit) as stop:
            cli.main(["fit", "y ~ x", "t.csv"])
        said = capsys.readouterr().err
        assert stop.value.code == 2 and says in said and said.count("\n") == 1


RUNS = "os.system('touch ran')"


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        (f"y ~ x + {RUNS}", "os.system"),
        (f"{RUNS} ~ x", "os.system"),
        (f"y ~ x + (1 | {RUNS})", "os.system"),
        (f"y ~ x + ({RUNS} | g)", "os.system"),
        (f"y ~ I(x + np.log({RUNS} * 2))", "os.system"),
        (f"y ~ scale(x={RUNS})", "os.system"),
        ("y ~ np.save('ran', x)", "np.save"),
        ("y ~ np.add.reduce(x)", "np.add.reduce"),
        ("y ~ np.lib.format.open_memmap('ran')", "np.lib.format.open_memmap"),
        ("y ~ np(x)", "np"),
        ("y ~ eval('1')", "eval"),
        ("y ~ x.mean()", "x.mean"),
    ],
)
def test_a_formula_on_the_command_line_runs_no_other_code(formula, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)
    with pytest.raises(SystemExit) as stop:
        cli.main(["fit", formula, "t.csv"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and f"`formula` calls {name!r}: on the command line" in said and said.count("\n") == 1
    assert not list(tmp_path.glob("ran*"))


def test_formulas_of_other_parameters_and_links_on_the_command_line(tmp_path, monkeypatch, capsys, fit):
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)
    asked = []
    monkeypatch.setattr(cli.formulas, "regression", lambda *given, **options: asked.append((given[0], options)) or fit)

    def said(*arguments):
        with pytest.raises(SystemExit) as stop:
            cli.main(["fit", "y ~ x", "t.csv", *arguments])
        return stop.value.code, capsys.readouterr().err.strip()

    assert said()[0] == 0 and asked[-1][0] == "y ~ x" and asked[-1][1]["link"] is None
    assert said("--also", "sigma ~ x + (1 | g)", "--also", "nu~1", "--link", "log")[0] == 0
    assert asked[-1][0] == {"y": "y ~ x", "sigma": "~ x + (1 | g)", "nu": "~ 1"} and asked[-1][1]["link"] == "log"
    assert said("--link", "mu=log", "--link", "sigma=identity")[0] == 0
    assert asked[-1][1]["link"] == {"mu": "log", "sigma": "identity"}
    table().drop(columns="e").to_csv("new.csv", index=False)
    design_module.check_predictable(describe("sigma ~ scale(w) + np.exp(x) + (1 | np.sign(x))"), table())
    count = len(asked)
    for arguments, says in [
        (("--also", "~ x"), """--also must name its parameter, such as "sigma ~ x", got '~ x'."""),
        (("--also", "sigma ~ x", "--also", "sigma ~ 1"), "--also gives sigma twice."),
        (("--also", f"sigma ~ {RUNS}"), "`formula` calls 'os.system'"),
        (("--link", "log", "--link", "sigma=log"), "--link log: of several, each names its parameter, such as mu=log."),
        (("--link", "mu=log", "--link", "mu=inverse"), "--link gives a parameter twice."),
        (("--also", "sigma ~ e", "--predict", "new.csv"), "names 'e', and --predict new.csv has no such column"),
        (("--also", "sigma ~ np.cumsum(w)", "--predict", "new.csv"), "'np.cumsum(w)' is computed of the whole column"),
    ]:
        code, text = said(*arguments)
        assert code == 2 and says in text and "\n" not in text, arguments
    assert len(asked) == count


def test_what_a_formula_on_the_command_line_may_call():
    for formula in (
        "y ~ x * treated + (1 + x | g:h)",
        "c ~ np.log(x) + I(np.where(x > 2, x, 0) ** 2) + {x / 2} + bs(x, df=5) + offset(np.exp(x))",
        "np.sqrt(y) ~ 0 + C(h, Treatment(2)) + T(h, ref=2) + scale(x) + poly(x, 2) + binary(g, 'a')",
        "b[down] ~ center(x) + (np.log(e) | C(g)) + I(x - np.mean(x)) + np.clip(x, 0, 1)",
    ):
        design_module.check_functions(formula)


def test_the_command_prints_what_is_selected(tmp_path, monkeypatch, capsys, fit):
    """The table of `inclusion`, with errors, Bayes factors and the median model; all of it as JSON too."""
    monkeypatch.chdir(tmp_path)
    rng, moving = np.random.default_rng(0), np.zeros((2, 1_000, 2))
    moving[:, :, 1] = rng.random((2, 1_000)) < 0.7
    found = inclusion_of_units(Recorded(moving), ["age", "w"], [1, 0], [0.5, 0.5])
    monkeypatch.setattr(fit, "inclusion", lambda: found)
    run = fitted_by_the_command(monkeypatch, fit)
    assert run("--select all") == (0, 1)
    out = capsys.readouterr().out
    assert repr(found) in out and "bayes factor" in out and "median probability model: age" in out
    assert run("--select all --json") == (0, 1)
    said = json.loads(capsys.readouterr().out)
    assert said["inclusion"] == dict(found) and said["selection"]["median_model"] == ["age"]
    assert said["selection"]["coefficients"][0] == found.rows[0] and said["selection"]["warnings"] == found.warnings
    assert run("--json --save run.npz") == (0, 1)
    assert pdmp.load("run.npz").dim == fit.run.dim
    said = json.loads(capsys.readouterr().out)
    assert said["inclusion"] == {} and "selection" not in said
    summary = fit.summary()
    assert said["warnings"] == summary.warnings and [row["mean"] for row in said["parameters"]] == [
        row["mean"] for row in summary.rows
    ]
    assert (said["stopped"], said["chains"], said["rows"]) == (fit.run.stopped, fit.run.chains, 12)
    assert said["stats"]["total_events"] == fit.run.stats["total_events"] and summary.warnings
    plain = {"a": np.inf, "b": [np.float64(-np.inf), np.nan, np.int64(3)], 4: (True, "x", np.float32(1.5), None)}
    assert json.loads(cli._as_json(plain)) == {"a": None, "b": [None, None, 3], "4": [True, "x", 1.5, None]}


@pytest.mark.slow
def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().iloc[:12].rename(columns={"b": "sick", "x": "age"}).to_csv("table.csv", index=False)

    def run(text):
        with pytest.raises(SystemExit) as stop:
            cli.main(shlex.split(text))
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    code, out, _ = run(
        'fit "sick ~ age" table.csv --family probit --ess 50 --chains 2 --save run.npz --picture fit.png'
    )
    assert code == 0 and "sick ~ age, bernoulli with the probit link, 12 rows" in out
    assert (tmp_path / "fit.png").stat().st_size > 1_000
    assert pdmp.load("run.npz").dim == 2
    for call, says in [
        (
            'fit "y ~ age" table.csv --exposure e',
            "--exposure is for counts with the log link, and this is gaussian with the identity link; use --offset.",
        ),
        ('fit "y ~ age" table.csv --save no/run.npz', "--save names a file in"),
        (
            'fit "y ~ age" table.csv --draws d.csv --predict table.csv --predictions d.csv',
            "--predictions would overwrite",
        ),
        ('fit "y ~ age" table.csv --predict new.csv --draws new.csv', "--draws would overwrite 'new.csv'"),
    ]:
        code, _, said = run(call)
        assert code == 2 and says in said and said.count("\n") == 1


@pytest.mark.exact
def test_a_spline_beyond_its_data_is_warned_of():
    """By the value that is farthest from them, on either side; not at the ends."""
    t = table()
    t["x"] = np.linspace(-1.0, 3.0, len(t))
    fit = pdmp.regression("y ~ bs(2 * x, df=4) + w", t, seed=1, sample=False)

    def at(*x):
        return t[: len(x)].assign(x=x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.predict(new=at(-1.0, 0.3, 3.0), draws=2)
    for x in (3.1, 3.0 + 1e-6), (0.0, 3.5, 7.25), (-5.0, 5.5), (1.0, -1.5):
        far = 2.0 * max(x, key=lambda one: abs(one - 1.0))
        with pytest.warns(
            UserWarning, match=rf"bs\(2 \* x, df=4\) had data from -2 to 6, and new rows go to {far:.4g}:"
        ):
            fit.predict(new=at(*x), draws=2)


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("scale", "scale(x)"),
        ("center", "np.tanh(center(x))"),
        ("poly", "e + poly(x, 2)"),
        ("offset", "x + offset(e)"),
        ("C", "x + (1 | C(h))"),
        ("B", "x + (B(h, 1) | g)"),
        ("s", "s(x)"),
        ("mo", "x + mo(k)"),
    ],
)
def test_a_function_of_the_users_whose_name_formulas_have_is_not_left_out_silently(name, term):
    """Theirs is called, whatever the user's code says; the same formula is fitted where there is none of that name."""
    data = pandas.DataFrame(table())
    data["k"] = np.arange(N) % 4
    call = f"regression('y ~ {term}', data, sample=False)"
    for own in ("def {0}(*args): return args[0]", "{0} = 3.0"):
        scope = {"regression": pdmp.regression, "data": data, "np": np}
        exec(own.format(name), scope)
        if own[:3] == "def":
            with pytest.raises(ValueError, match=f"`{name}` is a function of your code, and one of formulas"):
                exec(call, scope)
        else:
            exec(call, scope)
    exec("def response(values): return values\n" + call.replace("y ~", "response(y) ~"), scope)  # which is called
