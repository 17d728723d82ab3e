"""Models that are no regressions: targets, hierarchies, factorisations, and what is read from other packages."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
import threading
import types
import warnings
from unittest import mock

import numpy as np
from scipy import sparse

import pdmp
from pdmp.models import factorisations, targets
from pdmp.models.adapters import function, numpyro_model, pymc_model, stan_model
from pdmp.models.adapters.function import Callback
from pdmp.models.capabilities import CAPABILITIES
from pdmp.models.transforms import Log
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
        if callable(getattr(model, name, None)) and (name != "moments" or model.dim < 8):
            found[name] = getattr(model, name)()
    for name in set(AT) - set(without):
        if name in ("potential", "gradient") or model.has(name):
            found[name] = getattr(model, name)(x)
    if (model.has("term_potential") or not model.n_data) and model.divisible:
        for name in set(AT_SEVERAL) - set(without):
            if callable(getattr(model, name, None)):
                found[name] = [getattr(model, name)(np.array([x, y])), getattr(model, name)(x)]
    if model.n_data > 2 and model.divisible:
        found["term_gradients"] = model.term_gradients(x, ROWS)
    if callable(getattr(model, "exact_draws", None)):
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
        "of many data": targets.MixtureSum.generated(250, 1, 0.4).marginal(0, moved([-0.8, 0.1])),
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
        lambda centred=centred: everything(pdmp.models.EightSchools(centred, 4.0, 0.7), without=["moments"]),
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
        "curvatures": [model.curvatures(x), model.curvature(x), model.curvature(np.full(model.dim, -3.0))],
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


@case
def components_found_by_others():
    """FastICA's sources have the variance of the logistic law, and its seed does something."""
    model = factorisations.ICA(moved(np.random.default_rng(1).laplace(size=(60, 2))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = model.fast_ica(), model.fast_ica(seed=3)
    return [model.predict(first).var(axis=0), bool(np.array_equal(first, second)), np.shape(first)]


@case
def components_with_a_pivot():
    """A matrix of which the first pivot is not on the diagonal, and one without an inverse."""
    model = factorisations.ICA(INPUTS)
    turned = moved([0.1, 2.0, -0.4, 1.5, 0.3, 0.7, -0.2, 0.6, 1.1])
    found = {"turned": everything(model, turned)}
    for method in ("add_batch_projection", "add_batch_squares", "add_batch_gradient", "term_potential"):
        found[method] = compiled_methods(model, method, np.ones(9), moving(9))
    return found


# -- models of other packages -----------------------------------------------------------------------------------------


class Dual:
    """A number or an array with its derivatives by x: as much of a tensor of PyTorch as a density here asks for."""

    requires_grad = True

    def __init__(self, value, slope=None):
        self.value, self.slope = np.asarray(value), np.eye(len(value)) if slope is None else slope
        self.ndim, self.shape = self.value.ndim, self.value.shape

    def requires_grad_(self, wanted):
        self.requires_grad = wanted
        return self

    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.value[:, None] + other.slope * self.value[:, None])

    def sum(self):
        return Dual(self.value.sum(), self.slope.sum(axis=0))

    def __rmul__(self, c):
        return Dual(c * self.value, c * self.slope)

    def item(self):
        return float(self.value)

    def numpy(self):
        return self.value


def module(name, **members):
    found = types.ModuleType(name)
    vars(found).update(members)
    return found


TORCH = module(
    "torch",
    Tensor=Dual,
    enable_grad=contextlib.nullcontext,
    from_numpy=Dual,
    autograd=types.SimpleNamespace(grad=lambda found, here: (Dual(found.slope, 0.0),)),
)


def by_complex_steps(function):
    """A function and its gradient, as of JAX."""

    def both(x):
        steps = x + 1e-20j * np.eye(len(x))
        return np.real(function(x)), np.array([np.imag(function(step)) / 1e-20 for step in steps])

    return both


JAX = module(
    "jax",
    config=types.SimpleNamespace(jax_enable_x64=True),
    ShapeDtypeStruct=lambda shape, dtype: np.zeros(shape, dtype),
    eval_shape=lambda function, x: np.asarray(function(x)),
    value_and_grad=by_complex_steps,
    jit=lambda function: function,
)


@case
def differentiated_densities():
    """Log densities of PyTorch and JAX, and what a model of a function keeps of options."""
    options = dict(initial=[0.3, -0.2], variables={"a": (), "b": ()}, transforms={"b": Log(0.5)}, n_data=4)
    x, found = moved([0.7, -0.4]), {}
    with mock.patch.dict(sys.modules, torch=TORCH, jax=JAX):
        for name, make, density in (
            ("torch", pdmp.models.from_torch, lambda x: -0.75 * (x * x * x * x).sum()),
            ("jax", pdmp.models.from_jax, lambda x: -0.75 * (x**4).sum()),
        ):
            plain, named = make(density, 2), make(density, 2, **options)
            draws = named.constrain(np.array([x, 2.0 * x]))
            found[name] = [plain.potential(x), plain.gradient(x), plain.initial, named.initial, named.n_data, draws]
            found[name] += [named.of_log_density, named.resolution, named.is_compared]
        single = pdmp.models.from_jax(lambda x: -0.5 * (x**2).sum(), 2, single_precision=True)
        found["single"] = [single.is_compared, single.callback.function.single, named.callback.function.single]
    return found


class Reporting(Callback):
    """A function that also tells of its quantities and data."""

    log_likelihood_size, said = 3, "why"

    def __init__(self):
        super().__init__(lambda x: (0.5 * x @ x, x), 2)

    def constrain(self, draws):
        return {"a": np.exp(draws[:, 0]), "both": draws[:, None, :] * [[1.0], [2.0]]}

    def observed_data(self):
        return {"y": np.arange(3.0)}

    def log_likelihoods(self, draws):
        return {"y": draws[:, :1] - np.arange(3.0)}


@case
def functions_that_report():
    model = function.FunctionModel(Reporting(), 2)
    x = moved(np.arange(8.0).reshape(2, 2, 2) / 5.0)
    found = [model.constrain(x), model.constrain(x[0, 0]), model.log_likelihoods(x), model.observed_data()]
    return [*found, model.constrains, model.log_likelihood_size, model.said, model.potential(x[0, 1])]


def numpyro_function():
    """The adapter of NumPyro around functions that stand for compiled ones."""
    made = numpyro_model.NumPyroFunction.__new__(numpyro_model.NumPyroFunction)
    made.parts = {"mu": (), "tau": (), "w": (2,), "odd": ()}
    frame = lambda dim, name: types.SimpleNamespace(dim=dim, name=name)  # noqa: E731
    law = lambda *shape: types.SimpleNamespace(batch_shape=shape)  # noqa: E731

    def site(fn=None, kind="sample", frames=(), observed=False, value=None):
        return dict(type=kind, fn=fn, cond_indep_stack=list(frames), is_observed=observed, value=value)

    rows, columns = frame(-1, "rows"), frame(-2, "columns")
    made.trace = {
        "rows": site(kind="plate"),
        "mu": site(law()),
        "w": site(law(2), frames=[rows]),
        "y": site(law(3, 2), frames=[rows, columns], observed=True, value=np.arange(6.0).reshape(3, 2)),
        "z": site(law(3, 2), frames=[rows], observed=True, value=np.zeros((3, 2))),
        "tau": site(law()),
        "odd": site(law()),
        "theta": site(kind="deterministic"),
    }
    made._natural = lambda x: {
        "theta": x[:, :1] + 0.5, "mu": x[:, 0], "tau": np.exp(x[:, 1]), "w": 1.0 / (1.0 + np.exp(-x[:, 2:4])),
        "odd": np.sinh(x[:, 4]), "rows": x[:, 0],
    }  # fmt: skip
    made._packed = lambda x: np.r_[0.5 * x @ x, x]
    Callback.__init__(made, made._evaluate, 5)
    return made


@case
def adapters_of_programs():
    """What adapters of probabilistic programs make of names, shapes, transforms and data."""
    made = numpyro_function()
    x = moved(np.arange(15.0).reshape(3, 5) / 7.0)
    with mock.patch.object(numpyro_model, "ROWS", 2):
        variables, transforms = made.variables()
        natural = made.constrain(x)
    found = {
        "numpyro": [variables, {name: str(kind) for name, kind in transforms.items()}, list(natural), natural],
        "parts": [made._named(x[0]), made.evaluate(x[1]), made.dims(), made.observed_data()],
    }
    bounded = lambda low, high: lambda *inputs: (low, high)  # noqa: E731
    kinds = [(name, None) for name in ("LogTransform", "LogOddsTransform", "SimplexTransform", "Ordered", "Other")]
    constant = types.SimpleNamespace(data=np.array(1.5))
    computed = types.SimpleNamespace(name="x")
    bounds = [(0.5, None), (None, 2.0), (-1.0, constant), (None, None), (computed, 1.0), (np.zeros(2), None)]
    kinds += [("Interval", bounded(*pair)) for pair in bounds]
    rv = types.SimpleNamespace(owner=types.SimpleNamespace(inputs=()))
    found["pymc"] = [
        [name, str(pymc_model._known(type(name, (), {"args_fn": staticmethod(args)})(), rv))] for name, args in kinds
    ]
    density = pymc_model.PyMCFunction.__new__(pymc_model.PyMCFunction)
    density._density, density._lock = (lambda x: (-0.5 * x @ x, -x)), threading.Lock()
    found["evaluated"] = density._evaluate(x[0])
    batch, inner, plain = type("MinibatchOp", (), {}), type("Node", (), {}), type("Variable", (), {"owner": None})
    batch.op, batch.inputs, inner.op, inner.inputs = batch(), [], None, [plain, type("Variable", (), {"owner": batch})]
    found["batches"] = [pymc_model._has_batches(None, type("Variable", (), {"owner": o})) for o in (inner, batch, None)]
    data = {"n": True, "y": np.array([[1.0, 2.0]]), "k": np.array([True, False]), "z": np.int64(3), "w": [0.5]}
    found["stan"] = [
        json.loads(stan_model._as_json(data)),
        len(stan_model._as_json(data)),
        stan_model._as_json(None),
        stan_model._is_text("a.stan"),
    ]
    stanli = module("stanli", build_id=lambda: "b7", _runtime_lib_path=lambda: "lib.so")
    with mock.patch.dict(sys.modules, stanli=stanli):
        program = stan_model.Program("coin", "text")
        found["program"] = [program.library(), *(json.loads(program.with_data(own)) for own in (None, '{"n": 3}'))]
    return found


@case
def fitted_estimators():
    """Models of fitted estimators of scikit-learn: priors, intercepts, classes, and where runs start."""
    from sklearn import linear_model as sk

    X = np.column_stack([np.cos(np.arange(30.0)), np.sin(1.3 * np.arange(30.0)) + 0.5])
    classes = np.where(np.arange(30) * 7 % 11 < 5, "yes", "no")
    numbers = X @ [1.0, -0.5] + 0.3 * np.cos(5.0 * np.arange(30.0)) + 2.0
    counts = np.arange(30) * 5 % 7
    fine = dict(tol=1e-12, max_iter=20_000)
    made = {
        "logistic": (sk.LogisticRegression(C=0.5, **fine), classes),
        "logistic, no intercept": (sk.LogisticRegression(C=2.0, fit_intercept=False, **fine), classes),
        "logistic, no penalty": (sk.LogisticRegression(C=np.inf, **fine), classes),
        "liblinear": (sk.LogisticRegression(C=0.7, solver="liblinear", intercept_scaling=2.0, **fine), classes),
        "ridge": (sk.Ridge(alpha=0.8), numbers),
        "ridge, no intercept": (sk.Ridge(alpha=0.8, fit_intercept=False), numbers[:, None]),
        "ridge, no penalty": (sk.Ridge(alpha=0.0), numbers),
        "poisson": (sk.PoissonRegressor(alpha=0.1, **fine), counts),
        "poisson, no penalty": (sk.PoissonRegressor(alpha=0.0, fit_intercept=False, **fine), counts),
    }
    found = {}
    for name, (estimator, y) in made.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = pdmp.models.from_sklearn(estimator.fit(X, y), X, y)
        x = 0.3 * moving(model.dim)
        at_mode = bool(np.allclose(model.initial, model.mode(), atol=1e-4))
        found[name] = [type(model).__name__, model.variables, model.mode(), at_mode, model.gradient(x)]
        found[name] += [model.hessian(x), model.predict(x, X[:3])]
    return found


class Part(types.SimpleNamespace):
    """What has a name; a key of dictionaries, as variables of PyTensor are."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def part(name, **more):
    return Part(name=name, **more)


def of_pymc():
    """A model of PyMC with a transformed variable, a vector, one whose transform is not known, and two observed."""
    tau, mu, odd, y, z = (part(name, owner=part("owner", inputs=())) for name in ("tau", "mu", "odd", "y", "z"))
    values = {tau: part("tau_log__"), mu: part("mu"), odd: part("odd_zero__")}
    held = {y: part("y", eval=lambda: [1.0, 2.0, 3.0]), z: part("z", eval=lambda: 4.0)}
    start = {"tau_log__": 0.3, "mu": np.array([0.1, -0.2]), "odd_zero__": 0.7}
    names = ("tau", "theta", "mu", "odd")
    unobserved = {name: part(name) for name in names}
    frozen = part(
        "frozen",
        value_vars=[values[odd], values[mu], values[tau]],
        values_to_rvs={value: rv for rv, value in values.items()},
        rvs_to_values=values | held,
        rvs_to_transforms={tau: type("LogTransform", (), {})(), odd: type("ZeroSumTransform", (), {})()},
        unobserved_value_vars=[*values.values(), *(unobserved[name] for name in ("mu", "odd", "theta", "tau"))],
        observed_RVs=[z, y],
        logp=lambda **options: options,
    )
    model = part(
        "model",
        value_vars=[values[tau], values[mu], values[odd]],
        initial_point=lambda: start,
        named_vars_to_dims={"mu": ("school", 2)},
        coords={"school": ("a", "b"), "none": None},
        unobserved_value_vars=[unobserved[name] for name in names],
        str_repr=lambda: "tau",
    )
    return model, frozen


def compiled_by_pytensor(self, outputs, gradient=False):
    """What PyTensor would compile, told by what is asked for."""
    if gradient:
        return lambda x: (-0.5 * float(x @ x), -x)
    if isinstance(outputs, dict):
        return lambda x: [x[0] + 4.0, x[:3] - 1.0]
    several = {"tau": lambda x: np.exp(x[0]), "mu": lambda x: x[1:3], "odd": lambda x: x[3], "theta": lambda x: x * 2.0}
    return lambda x: [several[v.name](x) for v in outputs]


@case
def programs_of_pymc():
    """Names, transforms, coordinates, draws and data of a model of PyMC, as its parts say."""
    model, frozen = of_pymc()
    of = pymc_model.PyMCFunction
    with (
        mock.patch.multiple(pymc_model, _check=lambda model: None, _frozen=lambda model: frozen),
        mock.patch.object(of, "_compile", compiled_by_pytensor),
    ):
        made = pdmp.models.from_pymc(model)
        x = moved(np.arange(12.0).reshape(3, 4) / 5.0)
        natural = made.constrain(x)
        likelihoods = made.log_likelihoods(x[None])
    kinds = {name: str(kind) for name, kind in made.transforms.items()}
    return {
        "names": [
            made.variables,
            kinds,
            made.dims,
            made.coords,
            made.initial,
            made.is_compared,
            made.callback.compiled,
        ],
        "draws": [list(natural), natural, list(likelihoods), likelihoods, made.observed_data()],
        "values": [made.potential(x[0]), made.gradient(x[1]), made.of_log_density],
    }


def numpyro_modules(sites, start):
    """Modules that answer as JAX and NumPyro would for a model with these sites."""
    found = types.SimpleNamespace(
        param_info=types.SimpleNamespace(z=start),
        potential_fn=lambda parts: sum((k + 1.0) * (part**2).sum() for k, part in enumerate(parts.values())),
        postprocess_fn=lambda parts: {"mu": parts["mu"], "tau": np.exp(parts["tau"]), "theta": 2.0 * parts["mu"]},
    )

    def likelihood(model, natural, *args, **kwargs):
        return {"y": natural["tau"][:, None] * args[0] + kwargs["shift"] + 0.0 * natural["mu"][:, :1]}

    def vmap(function):
        return lambda x: {key: np.array([function(row)[key] for row in x]) for key in function(x[0])}

    jnp = module("jax.numpy", concatenate=np.concatenate, asarray=np.asarray)
    random = types.SimpleNamespace(PRNGKey=lambda seed: seed)
    value_and_grad = lambda f: lambda x: tuple(map(np.asarray, by_complex_steps(f)(x)))  # noqa: E731
    jax = module(
        "jax", config=JAX.config, numpy=jnp, random=random, vmap=vmap, jit=JAX.jit, value_and_grad=value_and_grad
    )
    util = module("numpyro.infer.util", initialize_model=lambda *a, **k: found, log_likelihood=likelihood)
    infer = module("numpyro.infer", init_to_median=lambda: None, util=util)
    trace = types.SimpleNamespace(get_trace=lambda *args, **kwargs: sites)
    handlers = module("numpyro.handlers", seed=lambda model, seed: model, trace=lambda model: trace)
    names = {"jax": jax, "jax.numpy": jnp, "numpyro.infer": infer, "numpyro.infer.util": util}
    return names | {"numpyro": module("numpyro", infer=infer, handlers=handlers), "numpyro.handlers": handlers}


@case
def programs_of_numpyro():
    """A model of NumPyro, by functions that stand for its own."""
    law = types.SimpleNamespace(batch_shape=(), support=types.SimpleNamespace(is_discrete=False))
    sites = {
        name: dict(type="sample", fn=law, cond_indep_stack=[], is_observed=name == "y", value=np.arange(3.0))
        for name in ("mu", "tau", "y")
    } | {"theta": dict(type="deterministic")}
    start = {"mu": np.array([0.2, 0.4]), "tau": np.array(-0.3)}
    with mock.patch.dict(sys.modules, numpyro_modules(sites, start)):
        made = pdmp.models.from_numpyro(lambda *args, **kwargs: None, np.arange(3.0), shift=0.5)
        x = moved(np.arange(6.0).reshape(2, 3) / 5.0)
        natural, likelihoods = made.constrain(x), made.log_likelihoods(x[0])
        values = [made.potential(x[0]), made.gradient(x[1])]
    kinds = {name: str(kind) for name, kind in made.transforms.items()}
    found = [made.variables, kinds, made.initial, list(natural), natural, likelihoods, made.observed_data()]
    return [*found, *values, made.dims, made.is_compared, made.of_log_density]
