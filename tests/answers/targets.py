"""Models that are no regressions: targets, hierarchies, factorisations, and what is read from other packages."""

from __future__ import annotations

import functools
import inspect

import numpy as np
from scipy import sparse

import pdmp
from pdmp.models import factorisations, targets
from pdmp.models.capabilities import CAPABILITIES
from tests.answers import case
from tests.recorded import moved

ROWS, WEIGHTS = np.array([2, 0, 2, 1]), np.array([0.7, -1.2, 0.4, 2.0])
#: Methods of compiled code, whose arguments `compiled_methods` knows by their names.
COMPILED = [
    *(name for name, known in CAPABILITIES.items() if known.compiled and not name.startswith("ray_")),
    *"prior_potential add_prior_gradient term_potential add_term_gradient add_gradient total_potential".split(),
    *"total_rise block_potential add_block_gradient add_batch_gradient batch_difference weighted_difference".split(),
    *"add_batch_projection add_batch_squares term_partial term_partial_difference".split(),
    *"remainder_along remainder_rates directional_derivative_bound combined slope_along".split(),
]
#: Methods of Python without arguments, and at one point.
PLAIN = "observed_data omitted neighbours hessian_bounds prior_hessian_bounds largest_term_gradient factors".split()
PLAIN += "prior_inclusion slab_density row_width moments ray_room covariance".split()
AT = "potential gradient hessian curvatures curvature gradient_and_hessian sparse_hessian".split()
AT_SEVERAL = "constrain pointwise_log_likelihood log_likelihoods predict responsibilities".split()


def moving(d, k=0):
    """A point of d coordinates."""
    return moved(np.cos(1.7 * np.arange(d) + 0.9 * k) + 0.1 * k)


def everything(model, x=None, without=()):
    """What a model answers at a few points, by method."""
    x = moving(model.dim) if x is None else moved(x)
    y = x + 0.3 * moving(model.dim, 1)
    found = {key: getattr(model, key) for key in ("dim", "n_data", "variables", "initial", "knows_constants")}
    found["searches by batches"] = model.searches_by_batches
    for name in set(PLAIN) - set(without):
        if callable(getattr(type(model), name, None)) and (name != "moments" or model.dim < 8):
            found[name] = getattr(model, name)()
    for name in set(AT) - set(without):
        if name in ("potential", "gradient") or model.has(name):
            found[name] = getattr(model, name)(x)
    if (model.has("term_potential") or not model.n_data) and model.divisible:
        for name in set(AT_SEVERAL) - set(without):
            if callable(getattr(type(model), name, None)):
                found[name] = [getattr(model, name)(np.array([x, y])), getattr(model, name)(x)]
    if model.n_data > 2 and model.divisible:
        found["term_gradients"] = model.term_gradients(x, ROWS)
    if callable(getattr(type(model), "exact_draws", None)):
        found["exact_draws"] = model.exact_draws(4, seed=3)
    if model.divisible:
        found |= {name: compiled_methods(model, name, x, y) for name in COMPILED if name not in without}
    if model.has("ray_begin"):
        found["ray"] = along_ray(model, x, y - x)
    return {name: found[name] for name in sorted(found) if found[name] is not None}


def along_ray(model, x, v):
    """What is derived along a ray, and after a turn of it."""
    native, ray, found = model.native, np.zeros(model.ray_room()), []
    native.ray_begin(x, v, ray)
    for s in (0.4, 1.1):
        out = np.zeros(model.dim)
        slopes = native.ray_derivatives(s, ray)
        bounds = [native.ray_bound(s, h, ray) for h in (0.5, 2.0, np.inf)]
        native.ray_gradient(x + s * v, s, ray, out)
        found.append([slopes, bounds, out])
        if s == 0.4:
            x, v = x + s * v, v[::-1].copy()
            native.ray_turn(x, s, v, ray)
    return found


def compiled_methods(model, name, x, y):
    """What a compiled method returns and adds, for each index that it may be given; None without it."""
    method = getattr(model.native, name, None)
    if method is None or (name in CAPABILITIES and not model.has(name)):
        return None
    d, n, names = model.dim, model.n_data, list(inspect.signature(method).parameters)
    if n == 0 and {"i", "rows", "first"} & set(names):
        return None
    rows = ROWS % max(n, 1)
    known = dict(x=x, y=y, v=y - x, there=y, rows=rows, n=len(rows), weights=WEIGHTS, s=0.7, h=0.4, first=min(1, n - 1))
    known |= dict(z=x, scratch=model.scratch() if "rho" in names else np.zeros(d))
    known |= dict(last=n, times=0.1 * np.arange(d), now=1.3, scale=1.0 + np.abs(y), a=0, b=d // 2)
    if "f" in names:
        factors = model.factors()
        if factors is None:
            return None
        each = [dict(f=f) for f in range(len(factors[0]) - 1 if isinstance(factors, tuple) else len(factors))]
    else:
        each = [dict(i=i) for i in (range(d) if name == "affine_partial" else range(n))] if "i" in names else [{}]
    if "j" in names:
        each = [one | dict(j=j) for one in each for j in range(d)]
    if "sign" in names:
        each = [one | dict(sign=sign) for one in each for sign in (1.0, -1.0)]
    shapes = [(d,)]
    if name.endswith(("_parts", "_coefficients")):
        shapes = [(d, 4), (1, 4)]
    found = []
    for one in each[:: 1 + len(each) // 40]:
        for shape in shapes:
            written = {key: np.full(shape, 0.25) for key in names if key in ("out", "squares")}
            written |= {"rho": np.zeros(model.n_functionals)} if "rho" in names else {}
            answer = method(*({**known, **one, **written}[key] for key in names))
            found.append({"returned": answer, **written})
    kept = {}
    for key in found[0]:
        part = [one[key] for one in found]
        if part[0] is not None:
            kept[key] = np.array([np.ravel(one) for one in part]) if len(shapes) == 1 else list(part)
    return kept


# -- targets ----------------------------------------------------------------------------------------------------------


def tridiagonal(d, off=-0.4):
    """A sparse precision, and its dense form, which is not dominated by its diagonal where d > 2."""
    main = 1.0 + 0.1 * np.arange(d)
    return sparse.diags_array([moved(np.full(d - 1, off)), moved(main), np.full(d - 1, off)], offsets=[-1, 0, 1])


def full(d):
    """A dense precision."""
    root = np.cos(np.arange(d * d) * 1.3).reshape(d, d)
    return moved(root @ root.T / d + np.eye(d))


def mixture(kind):
    """Three components in the plane, with covariances of each form that is taken."""
    covariances = {
        "a number": 0.5,
        "of each": [0.5, 1.0, 2.0],
        "diagonals": [[0.5, 1.0], [2.0, 0.3], [1.5, 0.7]],
        "matrices": [np.array([[1.0, r], [r, 0.6]]) for r in (0.2, -0.5, 0.1)],
    }[kind]
    weights = None if kind == "of each" else [1.0, 3.0, 0.5]
    return targets.GaussianMixture(moved([[-1.0, 0.5], [1.0, 0.0], [0.3, 2.0]]), covariances, weights)


TARGETS = {
    "banana": targets.Banana,
    "banana of four": lambda: targets.Banana(4, 2.0, -0.3, 0.7),
    "funnel": targets.Funnel,
    "funnel of three": lambda: targets.Funnel(3, 1.2),
    "gaussian of one": lambda: targets.Gaussian([0.3], [2.0]),
    "gaussian, diagonal": lambda: targets.Gaussian(0.4, moved([1.0, 4.0, 2.5])),
    "gaussian, diagonal matrix": lambda: targets.Gaussian(0.4, np.diag([1.0, 4.0, 2.5, 1.0, 0.2])),
    "gaussian, full": lambda: targets.Gaussian(moving(7, 3), full(7)),
    "gaussian, dense with zeros": lambda: targets.Gaussian(moving(13, 3), tridiagonal(13).toarray()),
    "gaussian, sparse": lambda: targets.Gaussian(moving(13, 3), tridiagonal(13, -0.6)),
    "gaussian, sparse and full": lambda: targets.Gaussian(0.0, sparse.csc_array(full(5))),
    **{f"mixture, {kind}": functools.partial(mixture, kind) for kind in ("a number", "of each", "diagonals")},
    "mixture, matrices": functools.partial(mixture, "matrices"),
    "hyperboloid": lambda: targets.Hyperboloid(moved([0.9, 1.4, -0.3, 0.8])),
    "hyperboloid, scales": lambda: targets.Hyperboloid(moved([-0.9, -1.4, 0.3, -0.8]), 0.5, 2.0),
    "hyperboloid, generated": lambda: targets.Hyperboloid.generated(12, 0.6, 5, noise_scale=0.8, prior_scale=3.0),
    "hyperboloid, generated by default": targets.Hyperboloid.generated,
    "mixture sum": lambda: targets.MixtureSum.generated(7, 3, 0.4, 2),
    "mixture sum, scales": lambda: targets.MixtureSum.generated(5, spread=0.4, seed=2, width=0.6, scale="sum"),
    "skew normal": lambda: targets.SkewNormal(-1.7),
}
MANY = ("hyperboloid, generated by default",)


for name, make in TARGETS.items():
    if name not in MANY:
        case(lambda make=make: everything(make()), f"target: {name}")


@case
def targets_by_themselves():
    made = {name: TARGETS[name]() for name in TARGETS}
    sums = {name: made[name] for name in made if name.startswith("mixture sum")}
    return {
        "modes": {name: model.mode() for name, model in made.items() if model.has("mode")},
        "products": {name: made[name].product_moments for name in made if name.startswith("hyperboloid")},
        "marginals": {
            name: [model.marginal(k, moved([[-1.3, 0.2], [1.1, 0.9]])) for k in (0, 1)] for name, model in sums.items()
        },
        "crossings": {name: [model.crossing_rate(k, 1.5) for k in (0, 1)] for name, model in sums.items()},
        "skew": [[t.exact_mean, t.exact_variance] for t in map(targets.SkewNormal, moved([0.0, 2.0, -1.7]))],
        "draws of mixtures": {name: made[name].exact_draws(6, 2) for name in made if "mixture, " in name},
        "default of the sum": targets.MixtureSum.generated(6).centres,
        "no mode": targets.Hyperboloid(moved([0.01, 0.02]), 1.0, 0.3).mode(),
    }


# -- hierarchies ------------------------------------------------------------------------------------------------------

ESTIMATES, ERRORS = moved([1.2, -0.4, 2.5]), moved([0.7, 1.5, 1.1])


def cox(**options):
    """Counts on a grid of two rows and three columns with a sparse field."""
    precision = sparse.csr_array(tridiagonal(6, -0.4))
    return pdmp.models.LogGaussianCox([[3, 1, 0], [4, 0, 2]], precision, **options)


for centred in (False, True):
    word = "centred" if centred else "not centred"
    case(
        lambda centred=centred: everything(
            pdmp.models.HierarchicalNormal(ESTIMATES, ERRORS, 3.0, 0.8, centred=centred), without=["moments"]
        ),
        f"hierarchy: normal, {word}",
    )
    case(
        lambda centred=centred: everything(pdmp.models.EightSchools(centred), without=["moments"]),
        f"hierarchy: schools, {word}",
    )
    case(
        lambda centred=centred: pdmp.models.HierarchicalNormal(ESTIMATES, ERRORS, 3.0, 0.8, centred).moments(301),
        f"hierarchy: moments, {word}",
    )


case(lambda: everything(cox()), "hierarchy: cox process")
case(lambda: everything(cox(mean=moving(6, 2), area=0.5)), "hierarchy: cox process with a mean")
case(lambda: everything(pdmp.models.LogGaussianCox([3, 1, 4], [1.0, 2.0, 1.5])), "hierarchy: cox process, independent")


@case
def cox_process_generated():
    model, x = pdmp.models.LogGaussianCox.generated(3, 1.2, 0.2, 40.0, seed=4)
    other = pdmp.models.LogGaussianCox.generated(2)
    point = moving(9)
    return {
        "counts": model.counts.reshape(3, 3),
        "field": [model.field.mean, model.field.hessian(), x, model.area],
        "likelihood": [model.log_likelihood(point), model.log_likelihood(point, np.arange(9))],
        "by default": [other[0].counts, other[0].field.hessian(), other[0].field.mean, other[1]],
    }


@case
def markov_random_fields():
    import networkx as nx

    weighted = nx.Graph()
    weighted.add_nodes_from("dacb")
    weighted.add_edge("d", "b", weight=2.0, cost=0.5)
    weighted.add_edge("a", "c", cost=3.0)
    weighted.add_edge("a", "a", weight=4.0)
    both = nx.MultiDiGraph([(0, 1), (1, 0), (1, 2), (1, 2)])
    make = pdmp.models.GaussianMarkovRandomField
    by_node = dict(zip("abcd", moving(4).tolist(), strict=True))
    made = {
        "by default": make(weighted),
        "options": make(weighted, moving(4), 1.5, 0.7, "cost"),
        "no weights": make(weighted, 0.3, weight=None),
        "means by node": make(weighted, by_node, tau=2.0, kappa=0.4),
        "both ways": make(both, weight=None),
        "no edges": make(nx.empty_graph(3), kappa=2.0),
    }
    return {name: [field.nodes, field.mean, field.hessian(), field.dim] for name, field in made.items()}


# -- factorisations ---------------------------------------------------------------------------------------------------

USERS, ITEMS = np.array([2, 0, 0, 3, 1, 2, 0]), [1.0, 0.0, 2.0, 1.0, 2.0, 0.0, 2.0]
RATINGS, COUNTS = [3.5, 1.0, 4.25, -2.0, 0.5, 2.75, 1.5], [3, 0, 4, 1, 0, 2, 7]
OF = dict(users=USERS, items=ITEMS)
FACTORISATIONS = {
    "gaussian": lambda: factorisations.MatrixFactorization(ratings=RATINGS, rank=2, **OF),
    "gaussian, scales": lambda: factorisations.MatrixFactorization(
        ratings=np.float32(RATINGS), rank=3, n_users=5, n_items=4, noise_scale=0.6, user_scale=2.0, item_scale=0.5, **OF
    ),
    "gaussian of default rank": lambda: factorisations.MatrixFactorization(ratings=RATINGS, **OF),
    "bpmf": lambda: factorisations.BPMF(ratings=RATINGS, rank=2, **OF),
    "bpmf, options": lambda: factorisations.BPMF(
        ratings=RATINGS, rank=1, n_users=6, n_items=5, noise_precision=1.4, shape=2.5, rate=0.7, centre=False, **OF
    ),
    "poisson": lambda: factorisations.PPMF(ratings=COUNTS, rank=2, **OF),
    "poisson, options": lambda: factorisations.PPMF(
        ratings=COUNTS, rank=3, n_users=5, n_items=4, user_shape=0.5, item_shape=1.2, activity_shape=0.8,
        popularity_shape=2.0, activity_mean=1.5, popularity_mean=0.6, **OF,
    ),
}  # fmt: skip
NEW = dict(users=[1, 0, 3], items=np.array([2, 1, 0]))


def factorised(name):
    """What a factorisation answers, also of other ratings, and in another order of them."""
    model = FACTORISATIONS[name]()
    x = moving(model.dim)
    both, held = np.array([x, 0.5 * x]), dict(NEW, ratings=[2, 0, 5])
    clipped = [model.log_likelihood(x, lowest=1.0, highest=5.0)] if "poisson" in name else []
    clipped += [model.log_likelihood(both, **held, lowest=0.2)] if clipped else []
    return everything(model) | {
        "new": [model.predict(x, **NEW), model.predict(both, **NEW)],
        "of new": [model.log_likelihood(x, **held), model.log_likelihood(both, **held), clipped],
        "of old": model.log_likelihood(both),
        "curvatures": [model.curvatures(x), model.curvature(x), model.curvature(-3.0 * x)],
        "in another order": model.rearranged(np.array([6, 1, 0, 2, 5, 4, 3])).data.tolist(),
        "tables": [model.tables(x), model.offset, model.data.tolist(), model.initial],
    }


for name in FACTORISATIONS:
    if "default" not in name:
        case(lambda name=name: factorised(name), f"factorisation: {name}")


@case
def factorisations_by_default():
    poisson = factorisations.PPMF(USERS, ITEMS, COUNTS)
    model = FACTORISATIONS["gaussian of default rank"]()
    return [poisson.variables, poisson.initial, model.variables, model.initial]


INPUTS = moved(np.cos(np.arange(60) ** 1.3).reshape(20, 3) + 0.2 * np.sin(np.arange(60)).reshape(20, 3))
LABELS = np.arange(20) * 7 % 5 % 3
NETWORKS = {
    "softmax": dict(hidden=4),
    "sigmoid": dict(hidden=[3, 2], activation="sigmoid", prior_scale=2.0),
    "relu": dict(hidden=(2, 3), activation="relu", n_classes=4),
    "tanh": dict(hidden=[2, 3, 2], activation="tanh"),
}


def network(name):
    """What a network answers, also of other data."""
    model = factorisations.BayesianNN(INPUTS, LABELS, **NETWORKS[name])
    x = model.initial + 0.3 * moving(model.dim)
    several, X = np.array([[x, 0.5 * x]]), INPUTS[:4] * 0.7
    single = factorisations.BayesianNN(INPUTS, LABELS, **NETWORKS[name], dtype=np.float32)
    many = factorisations.BayesianNN(np.tile(INPUTS, (53, 1)), np.tile(LABELS, 53), **NETWORKS[name])
    return everything(model, x) | {
        "new": [model.predict(x, X), model.predict(several, X), model.predict(x)],
        "of new": [model.log_likelihood(x, X, [2, 0, 1, 1]), model.log_likelihood(several, X, np.array([0, 2, 1, 1]))],
        "in single precision": [
            single.data.dtype.name,
            bool(np.allclose(single.gradient(x), model.gradient(x), rtol=1e-4, atol=1e-4)),
            bool(np.isclose(single.potential(x), model.potential(x), rtol=1e-5)),
            bool(np.array_equal(single.gradient(x), model.gradient(x))),
        ],
        "many": [many.potential(x), many.gradient(x), many.searches_by_batches],
        "in another order": [model.rearranged(np.arange(20)[::-1]).data, model.rearranged(np.arange(20)[::-1]).labels],
    }


for name in NETWORKS:
    case(lambda name=name: network(name), f"network: {name}")


@case
def network_by_default():
    model = factorisations.BayesianNN(INPUTS[:3], [0, 1, 0])
    return [model.variables, model.initial, model.gradient(moving(model.dim)), model.activation, model.data.dtype.name]


def unmixed(d, n, **options):
    """What independent components answer, also of other data; of more rows than are taken together."""
    X = moved(np.sin(np.arange(n * d) ** 1.2).reshape(n, d) ** 3)
    model = factorisations.ICA(X, **options)
    x, Y = model.initial + 0.2 * moving(d * d), 0.5 * X[:3]
    y, singular = np.array([x, -0.4 * x]), np.ones(d * d)
    return everything(model, x) | {
        "new": [model.predict(x, Y), model.predict(y, Y), model.log_likelihood(x, Y), model.log_likelihood(y, Y)],
        "of old": [model.predict(y), model.log_likelihood(y)],
        "singular": [model.potential(singular), model.gradient(singular)] if d > 1 else None,
        "in another order": model.rearranged(np.arange(n)[::-1]).data,
    }


for d, n, options in ((3, 140, {}), (2, 5, {"prior_scale": 0.7}), (1, 4, {})):
    case(lambda d=d, n=n, options=options: unmixed(d, n, **options), f"components: {d} of {n}")
