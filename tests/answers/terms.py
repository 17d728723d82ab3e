"""Sums of terms, models in other coordinates, and what is found out about a model: its mode, its errors, its tails."""

from __future__ import annotations

import functools
import math
import re
from unittest import mock

import numpy as np
import scipy.sparse

import pdmp
from pdmp.models import light_tails, numerical, priors, propriety, sum_of_terms, verification
from pdmp.models.noncentred import noncentred, scaled_rows
from pdmp.models.sums_of_terms import COUNT, DATA_STEP
from pdmp.models.transforms import Interval, Log
from tests.answers import case, once
from tests.answers.targets import everything, full, moving
from tests.recorded import moved
from tests.targets import Cone, Plane, Quartic

e = pdmp.terms
Normal = priors.Normal

# -- sums of terms ----------------------------------------------------------------------------------------------------

X = moved(np.cos(np.arange(140) * 1.1).reshape(70, 2) / 2)
SPARSE = scipy.sparse.random_array((70, 3), density=0.3, rng=np.random.default_rng(1), format="csr")
GROUP, OFFSET = np.arange(70) * 5 % 7 % 3, moved(np.sin(np.arange(70)) / 3)
COUNTS, Y = np.arange(70) * 11 % 13 % 5, moved(np.cos(np.arange(70) * 2.3))


def poisson(y, z):
    return e.exp(z) - y * z


def normal(y, m, t):
    return t + 0.5 * (y - m) ** 2 * e.exp(-2.0 * t)


def bent(a, b):
    return a**2 * e.cos(b)


def several(n=70):
    """Kinds that look up, multiply by a sparse matrix, and have no data; more rows than are taken together."""
    p = pdmp.Parameters(rate=2, effect=3, log_tau=1, slope=3)
    g = p.effect[np.arange(3)]
    rows = [
        e(poisson, [COUNTS[:n]], [X[:n] @ p.rate + 2.0 * p.effect[GROUP[:n]] + OFFSET[:n]]),
        e(normal, [Y[:n]], [SPARSE[:n] @ p.slope - p.effect[GROUP[:n]], p.log_tau]),
        e(bent, at=[g, 0.5 * g + p.log_tau]),
    ]
    laws = {"rate": Normal(0.5, 2.0), "effect": [Normal(0.0, 1.0 + g) for g in range(3)], "slope": priors.Flat()}
    return sum_of_terms(p, rows, laws)


def dense():
    """One kind whose rows share their columns, in two functionals of which one is a matrix and one a coordinate."""
    p = pdmp.Parameters(beta=2, log_sigma=1)
    rows = e(normal, [Y[:9]], [X[:9] @ p.beta / 0.5, -p.log_sigma + 0.1])
    laws = {"beta": priors.StudentT(3.0, 0.2, 1.5), "log_sigma": priors.HalfNormal(1.5)}
    return sum_of_terms(p, [rows], laws, initial={"beta": [0.3, -0.2]})


def shared():
    """Rows that are alike but for their data, beside one that weighs them by a number for each."""
    p = pdmp.Parameters(level=1, shape=1)
    weighed = np.arange(1.0, 6.0) * p.level + p.shape
    rows = [e(poisson, [COUNTS[:5]], [p.level]), e(normal, [Y[:5]], [weighed, p.shape - 2.0])]
    laws = {"level": priors.Gamma(2.0, 0.7), "shape": Normal(0.3, 0.8)}
    return sum_of_terms(p, rows, laws, transforms={"shape": Interval(0.0, 2.0)}, initial=[0.2, 0.4])


def families():
    """Rows of families: counts, and shares with a precision, beside a term of one's own and positive coordinates."""
    p = pdmp.Parameters(beta=2, log_phi=1, scale=2)
    shares = 0.1 + 0.8 * (np.arange(12) * 5 % 11) / 11.0
    rows = [
        pdmp.families.poisson.rows(COUNTS[:20], mu=X[:20] @ p.beta + OFFSET[:20]),
        e(bent, at=[p.scale[[0]], p.log_phi]),
        pdmp.families.beta.rows(shares, mu=X[:12] @ p.beta - p.scale[[1] * 12], phi=p.log_phi),
    ]
    laws = {"log_phi": priors.HalfStudentT(4.0, 1.2), "scale": [priors.Exponential(1.5), priors.HalfCauchy(0.8)]}
    return sum_of_terms(p, rows, laws)


def ordered():
    """A cumulative family, whose cuts are a whole block."""
    p = pdmp.Parameters(beta=2, cuts=3)
    rows = pdmp.families.cumulative.rows(np.arange(20) * 7 % 4, mu=X[:20] @ p.beta, cuts=p.cuts)
    return sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, 2.0)))


SUMS = {
    "several kinds": several,
    "several kinds, few rows": lambda: several(3),
    "dense": dense,
    "shared": shared,
    "families": families,
    "ordered": ordered,
}


def of_terms(model):
    """What a sum of terms answers besides what every model does."""
    x = 0.4 * model.initial + 0.3 * moving(model.dim)
    root = full(model.dim)
    rows = np.unique(np.linspace(1, model.n_data - 1, 6).astype(int))
    some = model.some_rows(rows)
    found = everything(model, x, without=[] if model.observed_data() else ["predict"])
    blocks = []
    for k, first, stop in model.pieces():
        middle = (first + stop) // 2
        for part in (root, np.diag(root).copy()):
            one = model.row_block(k, first, middle + 1, x, part)
            blocks.append(one._replace(data=list(one.data[: model.layout[k, DATA_STEP]]))._asdict())
            blocks.append(model.row_block(k, middle, stop, x, part).square)
        blocks.append([model.matrix_of(k, f, first, stop) for f in range(int(model.layout[k, COUNT]))])
    data, used = model.terms_with_data(3) if any(model.own_data) else (some, {})
    whole = model.terms_with_data(2, range(len(model.own_data)))[0]
    return found | {
        "pieces": [model.pieces(), blocks, [model.name_of_row(i) for i in rows], model.names, model.own_data],
        "some rows": [some.potential(x), some.gradient(x), some.sparse_hessian(x), some.n_data, some.observed_data()],
        "with data": [data.potential(x), used, data.n_data, whole.potential(x), whole.gradient(x), whole.n_data],
        "factors": model.factors(),
        "pair": model.gradient_and_hessian(x),
        "sums": model.data_sums(x),
        "transforms": {name: str(transform) for name, transform in model.transforms.items()},
        "parts": [model.prior_hessian_bounds(), model.constrains, model.usual_thinning],
    }


for name, make in SUMS.items():
    case(lambda make=make: of_terms(make()), f"sum of terms: {name}")


@case
def predictions_of_families():
    model, cumulative = families(), ordered()
    x = np.array([model.initial, moving(5)])
    p = pdmp.Parameters(beta=2, log_phi=1, scale=2)
    other = pdmp.families.poisson.rows([0.0, 0.0], mu=3.0 * X[:2] @ p.beta + 0.5)
    return {
        "mean": [model.predict(x), model.predict(x[1])],
        "response": [model.predict(x, kind="response", seed=4), model.predict(x[1], kind="response", seed=4)],
        "other rows": [model.predict(x, other), model.predict(x, other, kind="response", seed=2)],
        "ordered": cumulative.predict(cumulative.initial),
        "likelihood": model.pointwise_log_likelihood(x),
        "constants": [model.omitted(), cumulative.omitted(), dense().omitted(), several().omitted()],
    }


# -- models in other coordinates --------------------------------------------------------------------------------------


def effect(u, m, t):
    return t + 0.5 * ((u - m) * e.exp(-t)) ** 2


def hierarchy(groups=4, n=9):
    """Effects of groups, with a mean, a scale and a scale of the noise."""
    p = pdmp.Parameters(u=groups, mu=1, log_tau=1, log_sigma=1)
    group = np.arange(n) % groups
    rows = [
        e(effect, at=[p.u[np.arange(groups)], p.mu, p.log_tau]),
        e(lambda y, u, s: s + 0.5 * ((y - u) * e.exp(-s)) ** 2, [Y[:n]], [p.u[group], p.log_sigma]),
        e(lambda t: 0.5 * (t + 1.0) ** 2, at=[p.log_tau]),
    ]
    return sum_of_terms(p, rows, {"mu": Normal(0.3, 2.0), "log_sigma": Normal(0.0, 1.0)})


def horseshoe(k=3):
    """Weights with two scales each, one of its own, of different powers."""
    p = pdmp.Parameters(w=k, log_local=k, log_all=1)
    i = np.arange(k)
    rows = [
        e(lambda w, a, t: a + t + 0.5 * w**2 * e.exp(-2.0 * a - 2.0 * t), at=[p.w[i], p.log_local[i], 0.5 * p.log_all]),
        e(lambda y, w: 0.5 * (y - w) ** 2, [Y[:k]], [p.w[i]]),
    ]
    return sum_of_terms(p, rows, {"log_local": Normal(0.0, 1.0), "log_all": Normal(-1.0, 1.0)})


def walk(n=5):
    """Counts whose log rates are a random walk, with a coordinate that all of them have."""
    p = pdmp.Parameters(s=n, log_scale=1, shift=1)
    step = scipy.sparse.csr_array(scipy.sparse.eye_array(n) - scipy.sparse.eye_array(n, k=-1))
    rows = [
        e(lambda c, t: t + 0.5 * (c / 0.3 * e.exp(-t)) ** 2, at=[step @ p.s, p.log_scale]),
        e(lambda y, s: e.exp(s) - y * s, [COUNTS[:n]], [p.s[np.arange(n)] + p.shift]),
    ]
    return sum_of_terms(p, rows, {"log_scale": Normal(0.0, 1.0), "shift": Normal(0.0, 0.5)})


def points(model, n=6):
    """Where the mass of a model is about."""
    return moved(0.4 * np.random.default_rng(2).normal(size=(n, model.dim)) + 0.1)


def there_and_back(model, others):
    """What a model in other coordinates answers, and where points are."""
    return everything(model, 0.5 * moving(model.dim)) | {
        "natural": model.natural_points(others),
        "standardised": model.standardised(0.3 * others),
        "both": potential_and_gradient(model, others[0]),
    }


def potential_and_gradient(model, x):
    out = np.full(model.dim, 0.25)
    return [model.native.potential_and_gradient(x, out), out]


for make in (hierarchy, horseshoe, walk):

    @functools.partial(case, name=f"not centred: {make.__name__}")
    def not_centred(make=make):
        model = make()
        parts = scaled_rows(model)
        moved_model = noncentred(model, parts, points(model))
        return {"scales": [part._asdict() for part in parts]} | there_and_back(moved_model, points(model, 3))


@case
def no_scales():
    """Rows without a scale, and a model without rows."""
    return [scaled_rows(several(3)), scaled_rows(pdmp.models.Funnel(3)), [p.rows for p in scaled_rows(hierarchy(2, 5))]]


def lighter(model, *tails):
    """A model with light tails, at points near and far."""
    tails = [light_tails.Tail(np.array(members), *rest) for members, *rest in tails]
    moved_model = light_tails.LightTailed(model, tails)
    d = model.dim
    far = [potential_and_gradient(moved_model, s * np.ones(d)) for s in (5.0, 60.0)]
    here = 3.0 * moving(2 * d, 2).reshape(2, d)
    return there_and_back(moved_model, here) | {"far": far, "out": moved_model.standardised(1e5 * here)}


ROOT = np.linalg.cholesky(full(3))
case(
    lambda: lighter(
        pdmp.models.Banana(4, 2.0), ([3], 1.5, np.array([0.2]), 0.7 * np.eye(1)), ([2, 0], 3.0, moving(2), ROOT[:2, :2])
    ),
    "light tails of two groups",
)
case(lambda: lighter(cauchy(3), ([0, 1, 2], 1.0, np.zeros(3), ROOT)), "light tails of one group")


def cauchy(d, nu=1.0):
    """A multivariate Student's t."""
    return target(
        lambda x: 0.5 * (nu + d) * np.log1p(x @ x / nu), lambda x: (nu + d) * x / (nu + x @ x), d, check_gradient=True
    )


def target(potential, gradient, dim, check_gradient=False, **options):
    return pdmp.models.from_function(
        lambda x: (float(potential(x)), np.array(gradient(x), float)), dim, check_gradient=check_gradient, **options
    )


# -- what is found out about a model ----------------------------------------------------------------------------------


def told(text):
    """A sentence: its numbers, and the coordinates, directions and methods that it names."""
    if text is None:
        return None
    named = re.findall(r"`[^`]*`|\S+ → [-±]?∞|[+-][\d.e+-]+ [\w(]\S*|coordinate \S+|datum \d+|entry \d+", text)
    verbs = ("falls", "grows", "grow", "beyond", "tends", "spike", "narrower", "hide", "overwrites", "differs", "hold")
    return {"text": text, "named": named, "verbs": [verb for verb in verbs if f" {verb} " in text]}


def refused(function, *arguments, **options):
    """What is told by the error of a call, or "nothing"."""
    try:
        function(*arguments, **options)
    except (ValueError, TypeError) as error:
        return told(str(error))
    return "nothing"


def off(function, share=0.01):
    """The function, with what it returns or writes off by a share of it."""

    def wrong(*arguments):
        out = arguments[-1] if isinstance(arguments[-1], np.ndarray) else np.zeros(0)
        before = out.copy()
        answer = function(*arguments)
        out += share * (out - before)
        if isinstance(answer, tuple):
            return tuple((1.0 + share) * a for a in answer)
        return None if answer is None else (1.0 + share) * answer

    return wrong


def wrongly(model, method, share=0.01):
    """The model's class has a method that is off meanwhile."""
    return mock.patch.object(type(model)._tuple, method, off(type(model)._methods[method], share))


@once
def known():
    """Small models, one of which has each capability."""
    labels = (np.arange(12) * 5 % 7 < 3).astype(float)
    rates = pdmp.models.PoissonRegression(X[:12], COUNTS[:12])
    return {
        "gaussian": pdmp.models.Gaussian(moving(5, 3), full(5)),
        "banana": pdmp.models.Banana(3),
        "linear": pdmp.models.LinearGaussian(X[:12], Y[:12]),
        "logistic": pdmp.models.LogisticRegression(X[:12], labels),
        "poisson": rates,
        "packed": pdmp.gradients.Full(pdmp.models.LogisticRegression(X[:12], labels)).packed,
        "cox": pdmp.models.LogGaussianCox([3, 1, 4], [1.0, 2.0, 1.5]),
        "cone": Cone(2),
        "factors": pdmp.models.MatrixFactorization([0, 1, 1], [0, 0, 1], [1.0, 2.0, 0.5], 2),
        "terms": dense(),
    }


def checked(name):
    """Claims of a model on its capabilities and what was found, at a point; and what is told where they are wrong."""
    model, found = known()[name], {}
    rng = np.random.default_rng(1)
    tries = [verification.Case(model, rng, moved(0.3 * moving(model.dim, k))) for k in range(2)]
    tries.append(tries[0].moved(rng, 0.3))
    for capability, (check, relation) in verification.CHECKS.items():
        if model.has(capability):
            answers = [check(model, one) for one in tries]
            claims = [answer and [np.hstack([np.ravel(part) for part in np.atleast_1d(answer[k])]) for k in (0, 1)]
                      for answer in answers]  # fmt: skip
            wrong = None
            if capability in type(model)._methods:
                with wrongly(model, capability, 0.01 if relation == "=" else -0.3):
                    wrong = refused(model.check_bounds, points=3, steps=4, seed=2)
            found[capability] = [claims, wrong]
    return found


for name in ("gaussian", "banana", "linear", "logistic", "poisson", "packed", "cox", "cone", "factors", "terms"):
    case(lambda name=name: checked(name), f"checks: {name}")


class Slip(pdmp.Model):
    """A regression with a smoothed absolute loss and a normal prior, one part of which is wrong."""

    X: np.ndarray
    part: int
    row: int
    constant: float

    def __init__(self, part=-1, row=-1, constant=0.0, n=70):
        super().__init__(dim=3, n_data=n, variables={"beta": (2,), "tau": ()}, transforms={"tau": Log()})
        self.X = np.cos(1.3 * np.arange(3.0 * n)).reshape(n, 3)
        self.part, self.row, self.constant = part, row, constant

    @pdmp.compiled
    def prior_potential(self, x):
        return self.constant + 0.5 * (x[0] * x[0] + 2.0 * x[1] * x[1] + 3.0 * x[2] * x[2])

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            if self.part == 0 and j == 1:
                out[j] = (j + 1.0) * x[j]
            else:
                out[j] += (j + 1.0) * x[j] * (1.5 if self.part == 1 and j == 2 else 1.0)

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
            sign = -1.0 if self.part == 2 and i == self.row and j == 1 else 1.0
            out[j] += sign * w * self.X[i, j]


@case
def wrong_gradients():
    wide = Slip(0, n=0)
    return {
        "right": refused(Slip().check_gradient),
        "overwritten": refused(Slip(0).check_gradient),
        "of the prior": [refused(Slip(1).check_gradient, seed=seed) for seed in (0, 3)],
        "of a datum": [refused(Slip(2, row).check_gradient, points=2, data=3) for row in (69, 41)],
        "without data": refused(wide.check_gradient, 1),
        "hidden": refused(Slip(constant=1e12).check_gradient, points=1, data=2),
        "nowhere finite": refused(Slip(constant=math.inf).check_gradient, 2),
        "equations": [verification.check_equations(model, most_data=10) for model in known().values()],
    }


@case
def wrong_ways():
    """A faster way that is off by a hundredth."""
    model, found = known()["logistic"], {}
    ways = "total_potential add_block_gradient add_batch_gradient batch_difference weighted_difference"
    for method in f"{ways} add_batch_projection add_batch_squares term_partial term_partial_difference".split():
        with wrongly(model, method):
            found[method] = refused(model.check_gradient, points=2, data=3)
    return found


@case
def slopes():
    """Groups of coordinates, lengths, and difference quotients where a slope is wrong, on kinks and with rounding."""
    x = np.array([0.3, -40.0, 7.0, 0.0, 1e3])
    gradient = x * [1.0, 1.5, 1.0, 1.0, 1.0] + [0.0, 0.0, 0.0, 1e-9, 0.0]
    eps = float(np.finfo(float).eps)

    def smooth(y):
        return 0.5 * float(y @ y)

    def kinked(y):
        return 3.0 * max(y[0] - 0.31, 0.0) + float(np.abs(y[1:]).sum())

    found = {}
    for most in (2, 12):
        for scale in (None, 2.0 + np.arange(5.0)):
            groups, lengths = verification.directions(gradient, x, most, eps, scale)
            found[f"{most} {scale is None}"] = [groups, lengths]
            for name, value in (("smooth", smooth), ("kinked", kinked)):
                for resolution in (eps, 1e-7):
                    seen = np.zeros(5, np.int8)
                    differs = functools.partial(
                        verification.slopes_differ, value, x, value(x), gradient, lengths, resolution, seen=seen
                    )
                    wrong = verification.first_of(differs, groups)
                    found[f"{most} {scale is None} {name} {resolution > eps}"] = [wrong, seen]
    return found


@case
def functions_of_python():
    """What a function's model is, says and refuses."""
    state = {"calls": 0}

    def quadratic(x):
        return 0.5 * x @ x + 1.0, x

    def random(x):
        state["calls"] += 1
        return 0.5 * x @ x + 1e-3 * state["calls"], x

    def walled(x):
        return (math.inf, np.full(2, math.nan)) if x[0] < -0.4 else (0.5 * x @ x, x)

    def raising(x):
        if abs(x[0]) > 0.5:
            raise RuntimeError("no such place")
        return 1.0 - 2.0 * x[0], np.array([-2.0, 0.0])

    make = pdmp.models.from_function
    options = dict(variables={"a": (), "b": (2,)}, transforms={"a": Log(0.5)}, initial=[0.3, 0.1, -0.2], n_data=7)
    named, wall, loose = make(quadratic, 3, **options), make(walled, 2), make(random, 2, check_gradient=False)
    single = make(lambda x: (np.float32(0.5 * x @ x), x.astype(np.float32)), 2)
    x = moved([0.3, -0.7, 0.4])
    out = np.full(3, 0.25)
    found = {
        "plain": everything(make(quadratic, 2)),
        "named": [named.initial, named.variables, named.n_data, named.constrain(np.array([x, 2.0 * x])), named.mode()],
        "compiled": [named.native.potential_and_gradient(x, out), out, named.native.prior_potential(x)],
        "wall": [wall.potential([-0.5, 0.0]), wall.gradient([-0.5, 0.0]), wall.potential([0.5, 0.1]), wall.everywhere],
        "said": [named.of_log_density, named.divisible, named.is_compared, loose.is_compared, named.failure],
        "known": [named.known, loose.known, named.changed(), named.log_likelihoods(x), named.log_likelihood_size],
        "no gradient": make(lambda x: (0.5 * x @ x, x if x[0] < 1.0 else x * math.nan), 2).potential([1.5, 0.1]),
        "beyond an end": along_end(make(lambda x: (0.25 * x @ x if x[0] < 1.0 else math.inf, 0.5 * x), 2), [1.5, 0.1]),
        "resolution": [named.resolution, single.resolution],
        "reused": [named.callback.reuses, loose.callback.reuses],
        "raises": make(raising, 2, check_gradient=False).mode(),
        "wrong slope": refused(make, lambda x: (0.5 * x @ x, x * [1.0, 1.02]), 2),
        "wrong far": refused(make, lambda x: (0.5 * x @ x, x * [1.0, 1.0, 3.0]), 3, **options),
        "random": refused(make, random, 2),
        "another gradient": refused(make, lambda x: (0.5 * x @ x, x + random(x)[0]), 2),
        "of a log density": refused(make, LogDensity(1.03), 2),
        "pair": refused(make, lambda x: 0.5 * x @ x, 2),
        "shape": refused(make, lambda x: (0.5 * x @ x, x[:1]), 2),
        "by itself": named.wrong_slope(x, np.random.default_rng(0), 3),
        "blind": make(lambda x: (1e12 + x[0], np.array([1.0])), 1).known,
    }
    wrong = make(lambda x: (0.5 * x @ x, x * [1.0, 1.5, 1.0]), 3, check_gradient=False)
    found["slope"] = [wrong.wrong_slope(x, np.random.default_rng(0), most) for most in (1, 6)]
    state["shift"], changing = 0.0, None

    def shifted(x):
        return 0.5 * x @ x + state["shift"], x

    changing = make(shifted, 2)
    state["shift"] = 0.5
    return found | {"changed": told(changing.changed())}


def along_end(model, x):
    out = np.zeros(2)
    model.native.add_prior_gradient(np.array(x), out)
    return [out, model.potential(x), model.gradient(x)]


class LogDensity:
    """(U, ∇U) as of a log density, whose gradient is off by a factor."""

    of_log_density = True

    def __init__(self, share=1.0):
        self.share = share

    def __call__(self, x):
        return 0.5 * x @ x, self.share * x


# -- whether a density can be normalised ------------------------------------------------------------------------------


def counts_of(p):
    """Student's t with unknown degrees of freedom, whose likelihood tends to a limit."""
    return pdmp.families.student_t.rows(Y[:12], mu=X[:12] @ p.b, sigma=p.sigma, nu=p.nu)


def limits(flat):
    p = pdmp.Parameters(b=2, sigma=1, nu=1)
    return sum_of_terms(p, [counts_of(p)], {"b": Normal(0.0, 2.5), "sigma": Normal(0.0, 2.5)} | flat)


def schools(top):
    """Groups, centred, with minus the log prior density of log τ."""
    y, sd = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def potential(x):
        away = 0.5 * ((x[:8] - x[8]) ** 2).sum() * math.exp(-2.0 * x[9])
        return 0.5 * (((y - x[:8]) / sd) ** 2).sum() + away + 8.0 * x[9] + top * x[9]

    def gradient(x):
        r = (x[:8] - x[8]) * math.exp(-2.0 * x[9])
        return [*((x[:8] - y) / sd**2 + r), -r.sum(), 8.0 - r @ (x[:8] - x[8]) + top]

    return target(potential, gradient, 10, variables={"theta": (8,), "mu": (), "tau": ()}, transforms={"tau": Log()})


def power(c, d):
    """|x|^-2c exp(-|x|²/2)."""
    return target(
        lambda x: c * np.log(x @ x) + 0.5 * x @ x, lambda x: 2 * c * x / (x @ x) + x, d, initial=np.full(d, 0.5)
    )


def quadratic(matrix):
    matrix = np.array(matrix)
    return target(lambda x: 0.5 * x @ matrix @ x, lambda x: matrix @ x, len(matrix))


def barrier(share, d):
    """|x|²/2 - share Σ x⁴."""
    return target(lambda x: 0.5 * x @ x - share * (x**4).sum(), lambda x: x - 4.0 * share * x**3, d)


TAILS = {
    "proper": lambda: quadratic(full(4)),
    "flat": lambda: target(lambda x: 0.5 * x[0] ** 2, lambda x: [x[0], 0.0], 2, variables={"a": (), "b": ()}),
    "one side": lambda: target(
        lambda x: math.exp(-x[0]) + 0.5 * x[1] ** 2, lambda x: [-math.exp(-x[0]), x[1]], 2, transforms=None
    ),
    "a sum": lambda: quadratic([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]),
    "separable": lambda: pdmp.models.LogisticRegression([[1.0], [2.0], [-1.0]], [1, 1, 0], prior_scale=np.inf),
    "heavy": lambda: target(lambda x: 0.5 * np.log1p(x @ x), lambda x: x / (1.0 + x @ x), 1),
    "heavy in the plane": lambda: target(lambda x: np.log1p(x @ x), lambda x: 2.0 * x / (1.0 + x @ x), 2),
    "t": lambda: cauchy(2, 0.5),
    "minus a t": lambda: target(
        lambda x: -2.5 * np.log1p(x @ x / 3.0), lambda x: -5.0 * x / (3.0 + x @ x), 2
    ),
    "indefinite": lambda: quadratic([[1.0, 2.0], [2.0, 1.0]]),
    "a log density": lambda: target(lambda x: -0.5 * x @ x, lambda x: -x, 3),
    "spike": lambda: power(1.2, 1),
    "spike in the plane": lambda: power(1.3, 2),
    "spike that is none": lambda: power(0.9, 2),
    "spike along an axis": lambda: target(
        lambda x: 1.1 * math.log(abs(x[1])) + 0.5 * x @ x, lambda x: [x[0], 1.1 / x[1] + x[1]], 2, initial=[0.5, 0.5]
    ),
    "neck": lambda: schools(0.0),
    "no neck": lambda: schools(-1.0),
    "barrier": lambda: barrier(1e-3, 1),
    "barrier in space": lambda: barrier(1e-5, 3),
    "limit": lambda: limits({}),
    "no limit": lambda: limits({"nu": Normal(0.0, 3.0)}),
    "kink": lambda: Plane(4),
    "quartic with a wall": lambda: Quartic(2, 0.0),
    "funnel": lambda: pdmp.models.Funnel(4),
    "many": lambda: pdmp.models.Gaussian(0.0, np.arange(1.0, 251.0)),
    "a step": lambda: target(lambda x: 0.0 if np.abs(x).max() < 1.0 else math.inf, lambda x: 0.0 * x, 2),
    "a fall at an edge": lambda: target(lambda x: 0.0 if abs(x[0]) < 2.0 else -math.inf, lambda x: [0.0], 1),
}  # fmt: skip


def judged(name):
    """What is said of the tails of a model, from two starts, and within walls."""
    model = TAILS[name]()
    found = []
    for start, inside in ((model.initial, None), (model.initial + 2.0, None), (model.initial, inside_a_ball)):
        improper, count = propriety.find_improper(model, moved(start), inside)
        found.append([None if improper is None else [told(improper.text), improper.certain]])
        if name != "limit":  # where rounding decides how far it is looked at
            found[-1].append(count)
    return found


def inside_a_ball(x):
    return float(x @ x) < 1e6


for name in TAILS:
    case(lambda name=name: judged(name), f"tails: {name}")


@case
def signs_of_data():
    """Parts of a sum with the sign of a log density, hidden by others or not."""
    p = pdmp.Parameters(b=2, c=1, log_s=1)
    labels = (COUNTS[:20] > 1).astype(float)
    prior = e(lambda b: 0.5 * b**2, at=[p.b[[0, 1]]])

    def mean(sign):
        return e(lambda y, m: sign * 0.5 * (y - m) ** 2, [Y[:20]], [X[:20] @ p.b])

    def label(sign):
        return e(lambda y, m: sign * (e.softplus(m) - y * m), [labels], [X[:20] @ p.b + p.c])

    def noise(sign):
        return e(lambda y, m, s: sign * s + 0.5 * (y - m) ** 2 * e.exp(-2.0 * s), [Y[:20]], [X[:20] @ p.b, p.log_s])

    laws = dict.fromkeys(p.sizes, Normal(0.0, 1.0))
    found = {}
    for key, rows in {
        "right": [prior, mean(1.0), label(1.0), noise(1.0)],
        "all": [prior, label(-1.0)],
        "one of two": [label(1.0), mean(-1.0), noise(1.0)],
        "constant": [prior, noise(-1.0)],
        "without data": [prior],
    }.items():
        model = sum_of_terms(p, rows, laws)
        wrong = propriety.find_wrong_sign(model, moved(model.initial))
        found[key] = wrong and [told(wrong.text), wrong.certain]
    for key, parts in {
        "data": (-1.0, 1.0, 0.0),
        "prior": (1.0, -1.0, 0.0),
        "side": (1.0, 1.0, 1.1),
        "none": (1,) * 2 + (0.9,),
    }.items():
        model = Parts(*parts)
        wrong = propriety.find_wrong_sign(model, moved(model.initial))
        found[f"of a class, {key}"] = wrong and [told(wrong.text), wrong.certain]
    return found


class Parts(pdmp.Model):
    """|x₀ - 1| + |x₁| three times, with a prior, either of another sign; or with a slope along x₁."""

    data: float
    prior: float
    slope: float

    def __init__(self, data, prior, slope):
        super().__init__(dim=2, n_data=3, variables={"place": (), "log_scale": ()})
        self.data, self.prior, self.slope = float(data), float(prior), float(slope)

    @pdmp.compiled
    def term_potential(self, x, i):
        return self.data * (abs(x[0] - 1.0) + abs(x[1])) + self.slope * x[1]

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += self.data * (1.0 if x[0] > 1.0 else -1.0)
        out[1] += self.data * (1.0 if x[1] > 0.0 else -1.0) + self.slope

    @pdmp.compiled
    def prior_potential(self, x):
        return self.prior * (0.5 * x[0] * x[0] + abs(x[1]))

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += self.prior * x[0]
        out[1] += self.prior * (1.0 if x[1] > 0.0 else -1.0)


# -- modes and bounds of single terms ---------------------------------------------------------------------------------


def searched(**options):
    """Where a search for a mode ends, and what it says."""
    found = pdmp.models.find_mode(known()["logistic"], **options)
    return [found.x, found.potential, found.error, found.data_passes, found.reached, told(str(found))]


@case
def searches_for_modes():
    wide = pdmp.models.LogisticRegression(moved(np.cos(np.arange(660.0)).reshape(3, 220)), [0, 1, 1])
    mode = pdmp.models.find_mode(wide, data_passes=30, seed=2)
    return {
        "by default": searched(data_passes=60),
        "options": [
            searched(data_passes=40, tolerance=1e-3, size=4, step=0.1, seed=3),
            searched(data_passes=40, tolerance=1e-3, size=4, step=0.1, seed=4),
            searched(data_passes=3, tolerance=1e-9, initial=[1.5, -0.4]),
            searched(data_passes=3, tolerance=0.5, initial=[1.5, -0.4]),
        ],
        "of many": [mode.x, mode.error, mode.data_passes],
        "without data": pdmp.models.find_mode(pdmp.models.Banana(), [0.4, 0.2], data_passes=40).x,
        "nowhere": pdmp.models.find_mode(Slip(constant=math.inf), data_passes=5),
    }


@case
def modes():
    """By all rows, and by some of many first; none where there is none."""
    labels = (np.arange(70) * 5 % 7 < 3).astype(float)
    logistic = pdmp.models.LogisticRegression(X, labels)
    separable = pdmp.models.LogisticRegression([[1.0], [2.0], [-1.0]], [1, 1, 0], prior_scale=np.inf)
    found = [logistic.mode(), logistic.mode([1.0, -2.0]), dense().mode(), separable.mode()]
    with mock.patch.multiple(numerical, MANY_ROWS=9, SOME_ROWS=6):
        found += [
            logistic.mode(),
            dense().mode(),
            numerical.mode_by_rows(logistic, np.zeros(2)),
            numerical._spread_rows(4_000),
        ]
    found += [numerical._spread_rows(50_000)[::500], numerical._spread_rows(3_000_000)[::1_000]]
    lines = target(lambda x: -x[0], lambda x: [-1.0], 1)
    return [*found, lines.mode(), numerical.quick_mode(logistic), numerical.quick_mode(pdmp.models.Banana())]


@case
def derivatives_by_differences():
    """Of models that know none, in a few coordinates and in many; where they are not positive."""
    model = Slip(n=9)
    x = moved([0.3, -0.7, 0.4])
    wide = target(lambda x: np.log(np.cosh(x)).sum(), np.tanh, 210)
    hollow = target(lambda x: 0.25 * x @ x - 0.6 * x[0] ** 2, lambda x: x * [-0.7, 0.5], 2)
    return {
        "hessian": [model.hessian(x), model.curvatures(x), model.curvature(x), model.gradient_and_hessian(x)],
        "many": [wide.curvature(moving(210)), wide.curvature(moving(210), probes=3)],
        "hollow": hollow.curvature([0.1, 0.2]),
        "likelihood": [model.pointwise_log_likelihood([[x, 2 * x]]), model.log_likelihoods(x), model.observed_data()],
    }


@case
def bounds_of_single_terms():
    found, root = {}, full(2)
    for name in ("linear", "logistic", "poisson"):
        model = known()[name]
        scale = moved([0.5, 2.0])
        found[name] = [
            numerical.term_partial_bounds(model, 2, 7),
            numerical.term_partial_lipschitz(model, 2, 7),
            numerical.term_partial_lipschitz(model, 2, 7, scale),
            model.term_gradient_norms(root, 1, 5),
            model.term_lipschitz_norms(root, 1, 5),
            numerical.data_gradient(model, moving(2)),
            numerical.row_chunks(model),
        ]
    return found


@case
def odd_coordinates():
    """Without rows but those that show a scale; where others are no normal law's; and where there are none."""
    p = pdmp.Parameters(u=3, log_tau=1)
    i = np.arange(3)
    scaled = e(lambda u, t: t + 0.5 * (u * e.exp(-t)) ** 2, at=[p.u[i], p.log_tau])
    two = e(lambda u, y: 0.25 * (u**2 - y) ** 2, at=[p.u[i], p.u[[1, 2, 0]] + 1.0])
    laws = {"u": Normal(0.2, 1.5), "log_tau": Normal(0.0, 1.0)}
    found = []
    for rows in ([scaled], [scaled, two]):
        model = sum_of_terms(p, rows, laws)
        parts = scaled_rows(model)
        other = noncentred(model, parts, points(model))
        found.append([[part._asdict() for part in parts], there_and_back(other, points(model, 2))])
        far = np.array([0.1, 0.2, 0.3, 900.0])
        found.append([other.potential(far), other.gradient(far), potential_and_gradient(other, far)])
    none = noncentred(model, parts, np.full((1, 4), 1e200))
    return [*found, none is None]


@case
def rows_beyond_expansions():
    """What the gradients of rows are beyond their expansions, and a law of prior of which nothing moves."""
    model = several(4)
    x, there, v, out = 0.3 * moving(9), 0.2 * moving(9, 1), moving(9, 2), np.full(9, 0.25)
    native, found = model.native, []
    for i in range(model.n_data):
        rho = np.zeros(model.n_functionals)
        along = native.remainder_along_places(there, x, v, i, None, 0, None, model.scratch(), rho)
        native.add_remainder(i, rho, out)
        found.append([along, rho])
    v[[0, 3]] = 0.0
    bounds = np.zeros(9)
    native.partial_curvature_bounds_within(x, v, 0.7, bounds)
    priors_alone = [native.prior_curvature_within(x, v, 0.7, j) for j in range(9)]
    return [found, out, native.curvature_bound_within(x, v, 0.7), bounds, priors_alone]


@case
def parts_of_checks():
    """Values where methods raise, and of models whose gradient overwrites or that are checked as a whole."""
    whole = pdmp.models.from_function(lambda x: (0.5 * x @ x, 1.1 * x), 2, check_gradient=False)
    wall = Quartic(2, 0.0)
    improper = target(lambda x: -0.5 * x @ x, lambda x: -x, 3)
    improper.of_log_density = True
    slip = Slip(1, n=4)
    return {
        "as a whole": refused(whole.check_gradient, points=2),
        "evaluated": [verification.evaluated(model, -0.2 * np.ones(2)) for model in (whole, wall)],
        "from a wall": refused(wall.check_gradient, points=4),
        "of a log density": told(propriety.find_improper(improper, moved(np.zeros(3)))[0].text),
        "sum": refused(verification._compare_sum, slip, np.random.default_rng(0), moved([0.4, -0.3, 5.0]), np.zeros(3)),
        "slope": verification.wrong_slope(slip, moved([0.4, -0.3, 5.0]), np.random.default_rng(0), 2),
        "few data": [refused(Slip(2, 3, n=5).check_gradient, points=1, data=1)],
        "equations": refused(verification.check_equations, Slanted(), most_data=10),
    }


class Slanted(pdmp.Model):
    """A plane quadratic that says the wrong Hessian."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * (x[0] * x[0] + 3.0 * x[1] * x[1])

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0]
        out[1] += 3.0 * x[1]

    @pdmp.compiled
    def hessian_product(self, v, out):
        out[0], out[1] = v[0], 3.1 * v[1]


LEVELS = {
    "a plateau": lambda h: target(
        lambda x: h * (1.0 - np.exp(-0.5 * x @ x)), lambda x: h * x * np.exp(-0.5 * x @ x), 2
    ),
    "a ridge": lambda h: target(
        lambda x: h * np.tanh((x[0] - x[1]) ** 2) + 1e-3 * x[0] ** 2,
        lambda x: np.array([1.0, -1.0]) * 2 * h * (x[0] - x[1]) / np.cosh((x[0] - x[1]) ** 2) ** 2 + [2e-3 * x[0], 0],
        2,
    ),
    "cancelling": lambda h: target(
        lambda x: h * (np.log1p(np.exp(x[0])) - np.log(np.exp(x[0]))) + 0.5 * x[1] ** 2,
        lambda x: [h * (1.0 / (1.0 + np.exp(-x[0])) - 1.0), x[1]],
        2,
    ),
    "not computed": lambda h: target(
        lambda x: 0.5 * x @ x if abs(x[0]) < 50.0 * h else math.nan,
        lambda x: x if abs(x[0]) < 50.0 * h else x * np.nan,
        2,
    ),
}
for name, make in LEVELS.items():

    @functools.partial(case, name=f"tails of two heights: {name}")
    def heights(make=make):
        found = []
        for h in (2.0, 50.0):
            model = make(h)
            improper = propriety.find_improper(model, moved(model.initial + 0.1))[0]
            found.append(improper and [told(improper.text), improper.certain])
        return found
