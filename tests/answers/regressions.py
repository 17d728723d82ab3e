"""Regressions: everything that a model answers, in every layout of its features and of its groups."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import tempfile
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse

from pdmp import models
from pdmp.expressions.functionals import Parameters
from pdmp.formulas.sources import Here
from pdmp.models import families, numerical, sum_of_terms, transforms
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.priors import LKJ, BetaBernoulli, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from pdmp.models.regressions import (
    blocks,
    design,
    effect_information,
    group_information,
    laplace,
    spread_coordinate,
)
from pdmp.models.regressions.effect_information import standardised
from pdmp.models.regressions.group_intercepts import GroupIntercepts, means_of
from pdmp.models.regressions.likelihoods import FAMILIES as LAWS
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.models.regressions.monotonic_effects import MonotonicEffects, Steps
from pdmp.models.regressions.standardised_effects import EffectSet
from pdmp.models.sums_of_terms import Terms
from pdmp.native import threads
from tests.answers import case, once
from tests.recorded import moved

N = 70  # a block of rows, and some
ATTRIBUTES = ("dim", "n_data", "variables", "initial", "dims", "coords", "divisible", "usual_thinning", "in_file")
FURTHER = ("everywhere", "knows_constants", "constrains", "searches_by_batches")
PYTHON = ("observed_data", "omitted", "row_width", "prior_inclusion", "slab_density", "largest_term_gradient")
PAIRS = ("hessian_bounds", "prior_hessian_bounds", "factors", "neighbours", "posterior")


def into(method, *arguments, of):
    """What a compiled method returns, and what it leaves in an array that was not empty."""
    out = np.linspace(0.5, 1.5, np.prod(of)).reshape(of)
    return method(*arguments, out), out


def everything(model, far=0.4, own=True):
    """What each method of a model gives, at points off its mode and for rows in no order."""
    d, n = model.dim, model.n_data
    rng = np.random.default_rng(3)
    x, y, v, w = far * rng.standard_normal((4, d))
    x, y, times = x + model.initial, y + model.initial, rng.random(d)
    rows, weights = rng.integers(0, n, N if n > 1 else 1), rng.uniform(0.5, 2.0, N)
    m, few, scratch, i = len(rows), len(rows) if own else 5, np.zeros(d), n // 3
    found = {name: getattr(model, name) for name in (*ATTRIBUTES, *FURTHER)}
    found |= {name: getattr(model, name)() for name in PYTHON}
    found |= {name: getattr(model, name)() for name in PAIRS if hasattr(model, name)}
    found["has"] = [name for name in CAPABILITIES if model.has(name)]
    found["names"] = transforms.coordinate_names(model.variables, model.transforms)
    found["transforms"] = {name: one.to_json() for name, one in model.transforms.items()}
    found["values"] = [model.potential(x), model.total_rise(x, y), model.prior_potential(x)]
    found["parts"] = [model.block_potential(x, n // 4, n - 1), [model.term_potential(x, k) for k in {0, i, n - 1}]]
    found["gradient"] = [model.gradient(x), *(into(method, x, of=d) for method in (model.add_gradient,))]
    found["both"] = into(model.potential_and_gradient, x, of=d)
    if own:  # not by differences
        found["second"] = [model.gradient_and_hessian(x), model.hessian(y), model.curvatures(y), model.curvature(x)]
    found["prior"] = into(model.add_prior_gradient, x, of=d)[1]
    found["prior of each"] = [
        [model.prior_partial(x, j), model.prior_partial_curvature_bound(v, j)] for j in (0, d - 1)
    ]
    found["prior bound"] = model.prior_curvature_bound(v)
    found["terms"] = [model.term_gradients(x, rows[:4]), model.pointwise_log_likelihood([[x, y]])]
    found["log likelihoods"] = model.log_likelihoods(y)
    found["term"] = [into(model.add_term_gradient, x, i, of=d), into(model.add_factor_gradient, x, n, of=d)]
    found["block"] = into(model.add_block_gradient, x, n // 4, n - 1, of=d)
    found["batch"] = into(model.add_batch_gradient, x, rows, m, of=d)
    found["difference"] = into(functools.partial(model.batch_difference, x, y, rows, few), scratch, of=d)
    found["weighted"] = into(functools.partial(model.weighted_difference, x, y, rows, weights, few), scratch, of=d)
    found["projection"] = into(functools.partial(model.add_batch_projection, x, v, rows, few), scratch, of=d)
    found["squares"] = into(functools.partial(model.add_batch_squares, x, rows, few, scratch), np.ones(d), of=d)
    found["partial"] = [
        [model.term_partial(x, i, j, scratch), model.term_partial_difference(x, y, i, j, scratch)] for j in (0, d - 1)
    ]
    found["bounds"] = bounds(model, x, v, times)
    found["clocks"] = clocks(model, x, y, v, w, times)
    return found | of_python(model, x, y, own)


def bounds(model, x, v, times):
    """What is known of single terms."""
    d, n = model.dim, model.n_data
    root, scale, found = np.diag(times + 0.5) + 0.1, times + 0.5, {}
    root = root + np.tri(d)
    for name, last in (("term_gradient_norms", n), ("term_lipschitz_norms", n)):
        found[name] = getattr(model, name)(root, 1, last)
    found["term_partial_bounds"] = numerical.term_partial_bounds(model, 1, n)
    found["term_partial_lipschitz"] = numerical.term_partial_lipschitz(model, 1, n, scale)
    if model.has("signed_term_bound"):
        found["signed"] = [[model.signed_term_bound(i, j, s) for j in (0, d - 1)] for i in (0, n - 1) for s in (-1, 1)]
    if model.has("factor_rate_bound"):
        found["factor"] = [model.factor_rate_bound(x, v, f) for f in (0, n // 2, n, n + d - 1)]
    if model.has("affine_factor"):
        found["affine factor"] = [model.affine_factor(x, v, times, 1.5, f) for f in (0, n // 2, n, n + d - 1)]
    for of in (1, d):
        for name in ("add_prior_parts", "add_prior_coefficients"):
            found[f"{name} {of}"] = into(getattr(model, name), x, v, of=(of, 3))
        for name in ("add_term_parts", "add_term_coefficients"):
            found[f"{name} {of}"] = [
                into(getattr(model, name), x, s * v, i, of=(of, 3)) for s in (1, -1) for i in (0, 1)
            ]
    return found


def clocks(model, x, y, v, w, times):
    """What is known of the whole potential along paths."""
    d, found = model.dim, {}
    for name, arguments in (("curvature_bound", (v,)), ("curvature_bound_within", (x, v, 0.7))):
        if model.has(name):
            found[name] = getattr(model, name)(*arguments)
    for name, arguments in (
        ("partial_curvature_bounds", (v,)),
        ("partial_curvature_bounds_within", (x, v, 0.7)),
        ("hessian_product", (v,)),
    ):
        if model.has(name):
            found[name] = into(getattr(model, name), *arguments, of=d)[1]
    if model.has("affine_partial"):
        found["affine_partial"] = [model.affine_partial(x, v, times, 1.5, j) for j in (0, d - 1)]
    if model.has("ray_begin"):
        ray = np.zeros(model.ray_room())
        model.ray_begin(x, v, ray)
        there = x + 0.6 * v
        found["ray"] = [model.ray_derivatives(s, ray) for s in (0.0, 0.6)]
        found["ray bound"] = [model.ray_bound(0.6, h, ray) for h in (0.3, np.inf)]
        found["ray gradient"] = into(model.ray_gradient, there, 0.6, ray, of=d)[1] if d else None
        model.ray_turn(there, 0.6, w, ray)
        found["turned"] = [model.ray_derivatives(0.2, ray), model.ray_bound(0.2, 0.5, ray)]
        found["turned gradient"] = into(model.ray_gradient, there + 0.5 * w, 0.5, ray, of=d)[1]
    return found


def of_python(model, x, y, own):
    """Natural parameters, the mode, other orders of the rows and some of them."""
    draws, n = np.array([[x, y], [y, 0.5 * x]]), model.n_data
    order, found = np.random.default_rng(4).permutation(n), {"constrain": model.constrain(draws)}
    found["mode"] = model.mode() if own else None
    called, out, back = model.by_address, np.zeros(model.dim), np.zeros(model.dim)
    found["called"] = [called.dim, called.n_data, called.total_potential(y), into(called.add_gradient, y, of=model.dim)]
    found["both called"] = into(called.potential_and_gradient, y, of=model.dim)
    called.standardise(x, out)
    called.natural(out, back)
    found["there and back"] = [out, back, called.separate, called.moved]
    other = model.rearranged(order)
    if other is not None:
        found["rearranged"] = [other.term_gradients(x, [0, n - 1]), other.gradient(y), other.potential(y)]
        found["its features"] = other.X
        found["rearranged block"] = into(other.add_block_gradient, x, 3, n - 2, of=model.dim)
    some = model.some_rows(order[: n // 2])
    if some is not None:
        found["some"] = [
            some.n_data,
            some.gradient(x),
            some.term_gradients(y, [0, 1]),
            some.pointwise_log_likelihood(y),
        ]
        found["some of"] = [some.potential(y), some.observed_data()]
    room = model.batch_room(9)
    if room.size:
        model.copy_batch(order, min(n, 9), room)
        found["copied"] = [room, into(model.add_copied_gradient, x, room, min(n, 9), of=model.dim)]
    return found


# ---------------------------------------------------------------------------------------------------------------
# Of one linear predictor


@once
def features(d, n=N):
    X = np.random.default_rng(1).standard_normal((n, d)) * np.linspace(0.5, 1.5, d)
    X[np.abs(X) < 0.3] = 0.0
    X[:, 0] += 0.3
    return np.where(X == 0.0, 0.0, moved(X))


def targets(kind, X):
    rng, z = np.random.default_rng(2), X @ np.linspace(0.6, -0.4, X.shape[1]) / np.sqrt(X.shape[1] / 3.0)
    if kind == "labels":
        return (z + rng.standard_normal(len(z)) > 0.1).astype(int)
    return rng.poisson(np.exp(z)) if kind == "counts" else z + 0.7 * rng.standard_t(3.0, len(z))


@once
def folder():
    return tempfile.TemporaryDirectory()


def mapped(X, kind):
    path = pathlib.Path(folder().name) / f"{len(list(pathlib.Path(folder().name).iterdir()))}.npy"
    np.save(path, np.asarray(X, kind))
    return np.load(path, mmap_mode="r")


def table(X):
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])


def doubled(X):
    """Sparse, of entries that come twice, and zeros that are stored."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    values = np.r_[0.25 * X.ravel(), 0.75 * X.ravel()]
    return sparse.coo_array((values, (np.r_[rows, rows], np.r_[columns, columns])), shape=X.shape)


LAYOUTS = {
    "dense": lambda X: X,
    "sparse": sparse.csc_array,
    "doubled": doubled,
    "mapped single": lambda X: mapped(X, np.float32),
    "mapped double": lambda X: mapped(X, np.float64),
    "table": table,
    "list": lambda X: X.tolist(),
}
SCALES, OFFSET = [2.0, 0.5, 1.2], moved(np.linspace(-1.0, 0.7, N) ** 3)
REGRESSIONS = {
    "logistic": (models.LogisticRegression, "labels", {}),
    "probit": (models.ProbitRegression, "labels", {}),
    "poisson": (models.PoissonRegression, "counts", {}),
    "negative binomial": (models.NegativeBinomialRegression, "counts", {"size": 2.5}),
    "student": (models.StudentTRegression, "numbers", {"degrees": 3.0, "noise_scale": 0.7}),
    "spiked logistic": (models.SpikeAndSlabLogisticRegression, "labels", {"inclusion": 0.3, "always": [1]}),
    "normal inverse gamma": (models.NormalInverseGammaRegression, "numbers", {"shape": 2.0, "scale": 0.5}),
    "linear": (models.LinearGaussian, "numbers", {"noise_scale": 0.7, "prior_scale": 2.0}),
    "spiked linear": (models.SpikeAndSlabLinearRegression, "numbers", {"noise_scale": 0.7, "inclusion": [0.2, 0.4, 1]}),
}
FLAT = ("linear", "spiked linear", "normal inverse gamma")  # without offsets, and scales of each coefficient


def regression(name, layout="dense", d=3, n=N, **options):
    """A regression with what it answers, of its own rows and of others."""
    cls, kind, own = REGRESSIONS[name]
    X = features(d, n)
    y = targets(kind, X)
    model = cls(LAYOUTS[layout](X), moved(y) if kind == "numbers" else y, **own | options)
    found = everything(model, 0.4 if d < 9 else 0.05)
    found["stored"] = [type(model.design).__name__, str(model.design.data.dtype)]
    x = np.array([[0.5], [1.0], [-0.7]]) * np.linspace(-0.6, 0.4, model.dim)
    if name.endswith("linear"):
        others = [LAYOUTS[layout](X)[:9] if layout == "sparse" else X[:9], y[:9] + 0.1]
        found["predicted"] = [model.predict(x, others[0]), model.predict(x[0], X[:9]), model.log_likelihood(x, *others)]
    else:
        new = LAYOUTS[layout](X) if layout in ("sparse", "table") else X
        found["said"] = predictions(model, x, new[:11] if layout != "table" else new.iloc[:11], y, "offset" in options)
    if hasattr(model, "law") and hasattr(model.law, "variance_law"):
        found["law"] = [model.law.mode(), model.law.posterior(), model.law.potential(x[1])]
        found["laws"] = [model.law.coefficients_law().logpdf(x[:, :-1]), model.law.variance_law().logpdf([0.3, 1.1])]
    return found


def predictions(model, x, X, y, offset):
    """What a regression says of new data, and of its own."""
    X = X.tocsr() if sparse.issparse(X) else X
    rest = (OFFSET[:11],) if offset else ()
    found = {"margins": [model.margins(x), model.margins(x[0]), model.margins(x, X, *rest)]}
    found["predict"] = [model.predict(x, X, *rest), model.predict(x[:, None], X)]
    found["sums"] = [model.log_likelihood(x), model.log_likelihood(x[1]), model.log_likelihood(x, X, y[:11], *rest)]
    return found | {"rows": [model.log_likelihood(p, X, y[:11], *rest, pointwise=True) for p in (x, x[0])]}


def in_pieces(make):
    """With sums over rows in several parts."""
    with contextlib.ExitStack() as stack:
        for module, name in ((threads, "CHUNK"), (design, "PIECE"), (design, "IN_CACHE")):
            stack.enter_context(mock.patch.object(module, name, 60))
        return make()


for name in REGRESSIONS:
    for layout in LAYOUTS if name in ("logistic", "normal inverse gamma", "linear") else ("dense", "sparse"):
        if not (name == "spiked linear" and layout == "sparse"):
            case(lambda name=name, layout=layout: regression(name, layout), f"{name}, {layout}")
    if name not in FLAT:
        scale = "slab_scale" if name.startswith("spiked") else "prior_scale"
        given = {} if name.startswith("spiked") else {"offset": OFFSET}
        for said, layout, option in (
            ("scales and offset", "dense", {scale: SCALES} | given),
            ("intercept and offset", "dense", {"intercept": True} | given),
            ("intercept, scales and offset", "sparse", {"intercept": True, scale: [*SCALES, 3.0]} | given),
        ):
            made = functools.partial(regression, name, layout, **option)
            case(lambda made=made: made(), f"{name}, {layout}, {said}")
    if not name.endswith("linear"):
        case(lambda name=name: regression(name, dtype=np.float32), f"{name}, single")
        case(lambda name=name: regression(name, "sparse", dtype=np.float32, intercept=True), f"{name}, sparse single")
    given = {"inclusion": 0.4} if name == "spiked linear" else {}
    case(lambda name=name, given=given: regression(name, d=9, n=8, **given), f"{name}, few rows")
    if name in ("logistic", "normal inverse gamma", "linear"):
        case(lambda name=name: regression(name, d=67, n=68), f"{name}, wide")
    for layout in ("dense", "sparse", "mapped single")[: 1 if name.startswith("spiked") else 3]:
        case(
            lambda name=name, layout=layout: in_pieces(lambda: regression(name, layout)), f"{name}, {layout}, in pieces"
        )


@case
def scales_of_each_law():
    """Numbers of likelihoods that are not their defaults, and priors that are flat or of any covariance."""
    X, found = features(3), {}
    for name, options in (
        ("negative binomial", {}),
        ("student", {}),
        ("linear", {}),
        ("probit", {"prior_scale": np.inf, "intercept": True}),
        ("normal inverse gamma", {"prior_covariance": np.diag([1.0, 2.0, 3.0]) + 0.5, "prior_mean": 0.3}),
        ("normal inverse gamma", {"prior_covariance": [1.0, np.inf, 3.0], "prior_mean": [0.3, 0.0, 1.0]}),
        ("normal inverse gamma", {"prior_covariance": [1.0, 4.0, 3.0, 2.0], "intercept": True}),
        ("normal inverse gamma", {"prior_covariance": np.inf, "shape": 0.0, "scale": 0.0, "intercept": True}),
    ):
        cls, kind, _ = REGRESSIONS[name]
        model = cls(X, targets(kind, X), **options)
        x = np.linspace(-0.3, 0.4, model.dim)
        found[f"{name} {list(options)}"] = [
            model.potential(x), model.gradient(x), model.hessian(x), model.mode(), model.omitted(),
            model.prior_hessian_bounds() if model.has("prior_hessian_bounds") else None,
            model.posterior() if hasattr(model, "posterior") else model.slab_density(),
        ]  # fmt: skip
    return found


@case
def laws_of_their_own():
    """Targets that regressions make: the data in tiles, with derivatives along rays, and posteriors without data."""
    X = features(3)
    logistic = models.LogisticRegression(X, targets("labels", X), SCALES)
    order = np.random.default_rng(4).permutation(N)
    normal = models.NormalInverseGammaRegression(X, moved(targets("numbers", X)), 0.2, SCALES, 2.0, 0.5)
    given = models.NormalInverseGamma([0.5, -1.0], [[2.0, 0.3], [0.3, 1.0]], 3.0, 2.0)
    tiled = logistic.rearranged(order)
    x, y, v, w = 0.4 * np.random.default_rng(3).standard_normal((4, 3))
    rays = [clocks(tiled, x, y, s * v, w, np.abs(w)) for s in (1.0, -1.0)]
    tiles = [tiled.potential(x), tiled.gradient(y), tiled.hessian(x), tiled.term_gradients(x, [0, 69])]
    return [rays, tiles, tiled.row_width(), whole_target(normal.law), whole_target(given), given.posterior()]


def whole_target(model):
    """What a target without data answers."""
    x, y, v, w = 0.4 * np.random.default_rng(3).standard_normal((4, model.dim))
    found = {"values": [model.potential(x), model.total_rise(x, y), model.gradient(x), model.hessian(x), model.mode()]}
    found["more"] = [into(model.add_gradient, x, of=model.dim), model.omitted(), model.constrain([x, y])]
    return found | {"clocks": [clocks(model, x, y, s * v, w, np.abs(w)) for s in (1.0, -1.0)]}


@case
def forms_of_labels():
    """Labels of any kind, and what a model is told of them."""
    X = features(3)
    y, found = targets("labels", X), []
    for given in (y, 2 * y - 1, y.astype(bool), y.astype(float).tolist(), (2.0 * y - 1.0).astype(np.float32)):
        for cls in (models.LogisticRegression, models.ProbitRegression):
            model = cls(X, given)
            found.append([model.y, model.potential([0.1, 0.2, -0.3])])
    return found


@case
def half_cauchy_logistic():
    model = models.HalfCauchyLogistic.generated(2.0, 12, 1.5, seed=3)
    usual, drawn = models.HalfCauchyLogistic([0.5, 1.0, 20.0]), models.HalfCauchyLogistic.generated(n_data=3)
    return [everything(model), model.posterior(), usual.prior_scale, drawn.X, drawn.prior_scale]


@case
def half_cauchy_logistic_by_default():
    model = models.HalfCauchyLogistic.generated()
    return [model.n_data, model.X, model.potential([0.3])]


@case
def enumeration_of_models():
    X = features(4, 30)
    y = targets("numbers", X)
    found = []
    for options in ({}, {"inclusion": [0.2, 0.9, 0.4, 1.0], "slab_scale": 0.7}, {"always": [1, 3], "noise_scale": 2.0}):
        model = models.SpikeAndSlabLinearRegression(X, y, **options)
        found.append([model.enumerate(), model.posterior(), model.prior_inclusion()])
    masked = models.SpikeAndSlabLinearRegression(X, y, always=[False, True, False, False], inclusion=0.25)
    logistic = [
        models.SpikeAndSlabLogisticRegression(X, y > 0.0, intercept=True, inclusion=inclusion)
        for inclusion in (0.5, [0.2, 0.3, 0.4, 0.5, 0.6])
    ]
    return [*found, masked.prior_inclusion(), [model.prior_inclusion() for model in logistic], masked.enumerate()]


# ---------------------------------------------------------------------------------------------------------------
# With effects of groups

ROWS = 23
DISPERSIONS = {"sigma": HalfStudentT(4.0, 2.0), "nu": Gamma(2.0, 10.0), "alpha": HalfCauchy(1.0)}
LEVELS = {"g": ("b", "a", "c"), "h": (3, 1, 7, 5)}


@once
def numbers():
    """Three columns, offset, weights, and groups that are not sorted and of unequal sizes."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(ROWS), rng.normal(3.0, 2.0, ROWS), rng.normal(0.0, 40.0, ROWS)])
    level = {"g": rng.integers(0, 3, ROWS), "h": rng.integers(0, 4, ROWS)}
    return moved(X), moved(rng.standard_normal(ROWS)), moved(rng.uniform(0.5, 1.5, ROWS)), level


def responses(law, X):
    rng = np.random.default_rng(6)
    z = 0.3 * (X[:, 1] - 3.0) + 0.6 * rng.standard_normal(ROWS)
    if law.family.response == "label":
        return (z + rng.standard_normal(ROWS) > 0.0).astype(int)
    return rng.poisson(np.exp(z) + 1.0) if law.family.response == "count" else moved(10.0 + 5.0 * z)


def groups_of(text, X, level):
    """Group columns "1|g", "x|g", …"""
    found = []
    for k, one in enumerate(text.split()):
        name, _, grouping = one.partition("|")
        value = np.ones(ROWS) if name == "1" else X[:, {"x": 1, "w": 2}[name]].copy()
        prior = HalfStudentT(3.0, 1.0) if k % 2 else HalfNormal(1.5)
        found.append(GroupColumn(one, grouping, LEVELS[grouping], level[grouping], value, prior))
    return found


def mixed(law, groups="1|g x|g", kind=MixedRegression, centred=False, columns=3, X=None, **options):
    own, offset, weights, level = numbers()
    law = LAWS[law]
    model = kind(
        own[:, :columns] if X is None else X,
        responses(law, own),
        law(),
        ["Intercept", "x", "w"][:columns],
        [Normal(1.0, 2.0), StudentT(3.0, 0.5, 1.0), Normal(0.1, 0.2)][:columns],
        groups_of(groups, own, level),
        [DISPERSIONS[name] for name in law.dispersions],
        **{
            "intercept": 0,
            "offset": offset,
            "weights": weights,
            "scale_response": "sigma" in law.dispersions,
            "response": "yield",
        }
        | options,
    )
    if centred is not False:
        model.centred[:] = centred
    return model


def mixed_answers(model):
    """Beside `everything`, what bounds of rows and normal approximations ask, and what is said of draws."""
    found = everything(model, own=False)
    d, n, m = model.dim, model.n_data, model.n_functionals
    rng = np.random.default_rng(8)
    x, there = model.initial + 0.3 * rng.standard_normal((2, d))
    v, rho, scratch = rng.standard_normal(d), np.zeros(3), model.scratch()
    draws = there + 0.2 * rng.standard_normal((2, 3, d))
    natural = model.constrain(draws)
    found["unconstrained"] = model.unconstrained(natural)
    found["draws"] = [model.margins(draws), model.margins(x), model.dispersions(draws), model.dispersions(x)]
    found["said"] = [model.centring(), model.pieces(), model.name_of_row(3)]
    found["groups"] = [[g.label, g.sizes, g.usual_rows, g.sd_name] for g in model.groups]
    found["units"] = [model.centre, model.scale, model.response_centre, model.response_scale, model.group_scale]
    found["stored"] = [model.kinds, model.numbers, model.target, model.X[:4], model.inclusion, model.together]
    root = rng.uniform(0.2, 1.0, d)
    found["block"] = model.row_block(0, 2, n - 3, x, root)
    if not model.n_groups:
        found["block of a matrix"] = model.row_block(0, 2, n - 3, x, np.diag(root) + 0.1 * np.tri(d))
        places, support = np.arange(model.n_fixed), np.arange(model.n_fixed)
        found["places"] = model.remainder_along_places(there, x, v, 4, places, len(places), support, scratch, rho)
    found["along"] = [model.remainder_along(there, x, v, i, scratch, rho) for i in (0, 4)]
    found["remainder"] = [
        rho[:m].copy(),
        into(model.add_remainder, 4, rho, of=d),
        model.remainder_rates(there, x, v),
    ]
    near = laplace.laplace(model) if not model.n_groups or isinstance(model, GroupIntercepts) else None
    found["laplace"] = near and [near, near.draws(3, np.random.default_rng(1))]
    return found


SELECTED = {"inclusion": [1.0, 1.0, 0.3], "model_prior": BetaBernoulli(2.0, 3.0), "together": {"both": [1, 2]}}
MIXED = [
    ("StudentTLaw", {"groups": ""}),
    ("NegativeBinomialLaw", {"groups": "", "offset": None, "weights": None}),
    ("LogitLaw", {"groups": "", "weights": None, "columns": 2}),
    ("ProbitLaw", {"groups": "", "offset": None, "intercept": None}),
    ("PoissonLaw", {"groups": "", **SELECTED}),
    ("NormalLaw", {"groups": "x|g", "intercept": None}),
    ("StudentTLaw", {"groups": "1|g x|g"}),
    ("LogitLaw", {"groups": "1|g x|g"}),
    ("NormalLaw", {"groups": "1|g x|g", "centred": 1}),
    ("NegativeBinomialLaw", {"groups": "1|g 1|h", "centred": [1, 0], "columns": 2}),
    ("NormalLaw", {"groups": "1|g", "kind": GroupIntercepts, "columns": 1, "weights": None}),
    ("PoissonLaw", {"groups": "1|h x|h", "kind": GroupIntercepts}),
    ("StudentTLaw", {"groups": "1|g w|g x|g", "kind": GroupIntercepts}),
    ("NormalLaw", {"groups": "1|g 1|h", "kind": GroupIntercepts}),
    ("NegativeBinomialLaw", {"groups": "1|g x|g 1|h w|h", "kind": GroupIntercepts}),
]


def called(law, options):
    return " ".join([law, *(f"{k}={getattr(v, '__name__', v)}" for k, v in options.items() if k not in SELECTED)])


for law, options in MIXED:
    case(lambda law=law, options=options: mixed_answers(mixed(law, **options)), called(law, options))


def partly(law, together=32, **options):
    """Partly centred, and what the data are found to say of effects."""
    usual = mixed(law, **options)
    with mock.patch.object(effect_information, "TOGETHER", together):
        found = group_information.group_information(usual)
        model = group_information.in_their_coordinates(usual)
    return [found, moved_answers(model), model.centring(), model.pointwise_log_likelihood(model.initial)]


PARTLY = [
    ("StudentTLaw", {"groups": "1|g x|g"}),
    ("NegativeBinomialLaw", {"groups": "1|h x|g", "together": 6}),
    ("LogitLaw", {"groups": "1|h", "columns": 2, "weights": None}),
    ("NormalLaw", {"groups": "1|g 1|h", "offset": None}),
]
for law, options in PARTLY:
    case(lambda law=law, options=options: partly(law, **options), f"partly centred {called(law, options)}")


@case
def of_a_likelihood():
    """Results of each tape, means and draws of each law, and bounds that sub-sampling takes."""
    found = {}
    for name, law in LAWS.items():
        y, z = np.array([[-1.0 if law.family.response == "label" else 3.0]]), np.array([-0.7, 0.4, 1.1])
        at = [tape(y, np.array([[0.4], [0.3], [0.8]]))[:, 0] for tape in law.tapes]
        draws = law.draw(np.tile(z, (4, 1)), np.full((4, 1), 0.3), np.full((4, 1), 1.5), np.random.default_rng(0))
        found[name] = [at, law.mean(z), draws, law.dispersions, law.stored(np.array([0.0, 1.0]))]
    return found


@case
def means_of_groups():
    """Which fixed columns are the means of group columns; the precision of effects."""
    X, *_, level = numbers()
    names, found = ["Intercept", "x", "w"], []
    for text in ("1|g", "1|g x|g", "1|g x|g 1|h w|h", "x|g", "1|g x|g 1|h x|h", "1|g 1|h 1|g", "1|g 1|h w|h"):
        found.append(means_of(groups_of(text, X, level), 0, names))
    found += [means_of(groups_of("1|g x|g", X, level), *given) for given in ((None, names), (0, names[:1]), (1, names))]
    model = mixed("NormalLaw", "1|g x|g 1|h", GroupIntercepts)
    x = model.initial + np.linspace(-0.4, 0.4, model.dim)
    return [found, [model.effect_precision(x, k) for k in range(3)], model.means, model.mixing, model.groupings()]


@case
def spread_coordinates():
    """Far below, around and far above the least spread that data tell from 0."""
    theta, c = moved([-40.0, -9.0, -7.4, -1.0, -0.1, 0.0, 0.3, 2.0, 30.0]), spread_coordinate
    each = [[c.soft(t), c.log_spread(t), c.rise(t), c.log_rise_derivative(t)] for t in theta]
    middles = [
        c.middle_of(t, np.array(known)) for t in (-3.0, 0.5) for known in ([0.0, 4.0, 9.0, 1.0], [0.0], [1e-9], [1e9])
    ]
    return [each, c.log_spreads(theta), [c.coordinate_of(t) for t in c.log_spreads(theta)], middles]


@case
def information_on_many_effects():
    """Where no matrix of all is inverted."""
    with mock.patch.object(group_information, "INVERTED", 0):
        return group_information.group_information(mixed("NormalLaw", "1|h x|g"))


def in_files(law, **options):
    """A regression of rows in files, of a model in memory; in blocks of a few rows."""
    usual = mixed(law, **options)
    files = blocks.Files(tempfile.mkdtemp(dir=folder().name))
    arrays = {"X": usual.X, "y": usual.y, "target": usual.target, "offset": usual.offset, "weight": usual.weight}
    arrays |= {"level": usual.level, "value": usual.value} if usual.n_groups else {}
    for name, array in arrays.items():
        if len(array):
            files.create(name, array.shape, array.dtype)
            files.write(name, 0, array[:7])
            files.write(name, 7, array[7:])
    units = usual.centre, usual.scale, usual.response_centre, usual.response_scale, usual.group_scale
    with mock.patch.object(blocks, "ENTRIES", 60):
        model = mixed(law, coded=blocks.Coded(files, ROWS, *units, Here()), **options)
        x, rows = usual.initial + np.linspace(-0.3, 0.4, usual.dim), model.blocks
        found = [rows.potential(x), rows.gradient(x), rows.curvature(x), list(rows.differences(x, 1e-3))]
        near = laplace.laplace(model)
    return {
        "rows": found,
        "spans": blocks.spans(ROWS, 9),
        "files": [
            files.unused("X"),
            "X" in files,
            "others" in files,
            files.read("X", 3, 8),
            files.read("others", 0, 3),
        ],
        "laplace": near,
        "at": [model.potential(x), model.gradient(x), model.pointwise_log_likelihood(x), model.constrain(x)],
        "shell": [model.centring(), model.in_file, model.row_width(), model.as_effects() is None, model.initial],
        "some": model.some_rows(np.array([9, 2, 5])).gradient(x),
    }


for law, options in (
    ("StudentTLaw", {"groups": ""}),
    ("NegativeBinomialLaw", {"groups": "", "offset": None, "weights": None}),
    ("NormalLaw", {"groups": "1|g x|g", "kind": GroupIntercepts}),
    ("PoissonLaw", {"groups": "1|h", "columns": 2, "kind": GroupIntercepts, "weights": None}),
):
    case(lambda law=law, options=options: in_files(law, **options), f"in files {called(law, options)}")


@case
def as_effects():
    """The models in whose coordinates effects are, of those that have coefficients of groups."""
    found = []
    for text in ("1|g x|g", "1|g 1|h"):
        other = mixed("StudentTLaw", text, GroupIntercepts).as_effects()
        x = other.initial + np.linspace(-0.3, 0.4, other.dim)
        found.append([other.variables, other.initial, other.potential(x), other.gradient(x), other.constrain(x)])
    return found


@case
def further_rows():
    """Rows after those of a model in memory, whose units are kept."""
    X, offset, weights, level = numbers()
    found = []
    for given in ((True, True), (True, False), (False, True), (False, False)):
        parts, before = [slice(0, 14), slice(14, ROWS)], None
        for part, has in zip(parts, given, strict=True):
            columns = [
                g._replace(level=g.level[: part.stop], value=g.value[: part.stop])
                for g in groups_of("1|g x|g", X, level)
            ]
            before = MixedRegression(
                X[part], responses(LAWS["NormalLaw"], X)[part], LAWS["NormalLaw"](), ["Intercept", "x", "w"],
                [Normal(1.0, 2.0)] * 3, columns, [HalfNormal(2.0)], 0, offset[part] if has else None,
                weights[part], True, before=before,
            )  # fmt: skip
        x = before.initial + np.linspace(-0.3, 0.4, before.dim)
        found.append([before.potential(x), before.gradient(x), before.pointwise_log_likelihood(x), before.centre])
    return found


@case
def columns_in_a_file():
    X, found = numbers()[0], []
    for intercept in (0, None):
        with mock.patch.object(design, "PIECE", 12):
            path = pathlib.Path(folder().name) / f"columns {intercept}.npy"
            np.save(path, X * [1.0 if intercept == 0 else 3.0, 1.0, 1.0])
            model = mixed("StudentTLaw", "1|g", X=np.load(path, mmap_mode="r+"), intercept=intercept)
        x = model.initial + 0.2
        found.append([model.X[:5], model.centre, model.scale, model.potential(x), model.gradient(x), model.in_file])
    return found


# ---------------------------------------------------------------------------------------------------------------
# Sums of terms in other coordinates


def effects_of(groups=4, d=2, length=False):
    """Rows y ~ N(β v + Σ uₖ vₖ, e^s), with d columns of effects of groups in no order."""
    rng, n, pairs = np.random.default_rng(3), 21, d * (d - 1) // 2
    level, v = rng.integers(0, groups, n), moved(np.column_stack([np.ones(n), rng.standard_normal((n, d))]))
    y = moved(rng.standard_normal(n) + 0.5 * level)
    sizes = {"beta": 2, "t": d} | ({"w": pairs} if pairs else {}) | {f"u{k}": groups for k in range(d)}
    p = Parameters(**sizes, s=1, **({"r": 1} if length else {}))
    eta = v[:, :2] @ p.beta
    for k in range(d):
        eta = eta + getattr(p, f"u{k}")[level] * v[:, k]
    rows = Terms(lambda y, z, s: 0.5 * (y - z) ** 2 * np.exp(-2.0 * s) + s, [y], [eta, p.s])
    priors = {"beta": Normal(0.3, 2.0), "t": Normal(0.0, 1.5), "s": HalfNormal(1.0)}
    priors |= {"w": LKJ(2.0).partial(d)} if pairs else {}
    priors |= {"r": Normal(-0.5, 1.0)} if length else {}
    base = sum_of_terms(p, [rows], priors)
    first = 2 + d + pairs
    effects = first + np.arange(d * groups).reshape(d, groups).T
    further = (np.array([base.dim - 1]), np.linspace(0.5, 4.0, groups)[:, None]) if length else ()
    return base, [EffectSet(2 + np.arange(d), 2 + d + np.arange(pairs), effects, *further)]


def moved_answers(model):
    """Beside `everything`, there and back, and sums of the data."""
    x = model.initial + np.linspace(-0.5, 0.6, model.dim)
    draws = np.array([[x, 0.5 * x], [model.initial, -x]])
    natural, out, slopes = model.natural_draws(draws), np.zeros(model.dim), np.linspace(-1.0, 1.0, model.dim)
    found = everything(model, own=False)
    room = model.room()
    found["there"] = [natural, model.natural(x, out, room), out, model.coordinates(natural)]
    found["pulled"] = [into(model.pull_back, x, out, room, slopes, 0.7, of=model.dim), slopes]
    return found


@once
def known_of(together, d, length):
    base, sets = effects_of(d=d, length=length)
    with mock.patch.object(effect_information, "TOGETHER", together):
        return base, sets, effect_information.effect_information(base, sets, base.initial, [0, 1])


def standardised_answers(together=32, d=2, length=False):
    base, sets, known = known_of(together, d, length)
    model = standardised(base, sets, known)
    return [known, known.shares(sets), known.middle(sets), model.centring(), model.middle, moved_answers(model)]


for together, d, length in ((32, 1, False), (32, 2, False), (9, 2, False), (0, 3, False), (32, 1, True), (0, 1, True)):
    name = f"standardised effects, {together} together, {d} columns{', of a length' if length else ''}"
    case(lambda together=together, d=d, length=length: standardised_answers(together, d, length), name)


@case
def monotonic_effects():
    rng, n = np.random.default_rng(7), 19
    p = Parameters(b=2, one=3, size=1, other=2, width=1)
    X, v, w = moved(rng.standard_normal((n, 2))), rng.integers(0, 2, (n, 3)), rng.integers(0, 2, (n, 2))
    rows = families.gaussian.rows(moved(rng.standard_normal(n)), mu=X @ p.b + v @ p.one + w @ p.other, sigma=p.width)
    base = sum_of_terms(p, [rows], {"b": Normal(0.0, 2.0), "one": Normal(0.0, 1.0), "other": Normal(0.0, 1.0)})
    model = MonotonicEffects(base, [Steps(np.arange(2, 5), 5), Steps(np.arange(6, 8), 8)])
    x = np.linspace(-0.6, 0.7, model.dim)
    said = [model.predict(x), model.predict([x, -x], kind="response", seed=3), model.observed[0].y, model.reported]
    return [moved_answers(model), said, model.data_sums(x), model.kinds, model.numbers]
