"""Families of responses, priors, transforms and linear functionals: each form of what they are given."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import pdmp
from pdmp.models import families, priors, sum_of_terms, transforms
from pdmp.models.families import FAMILIES, Family
from pdmp.models.priors import Exponential, Flat, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from tests.answers import case
from tests.recorded import moved

N, CUTS = 13, np.array([-1.0, 0.3, 1.4])
P = pdmp.Parameters(a=2, s=1, b=2, u=1, cut=3)
POINTS = moved([[0.2, -0.3, 0.3, 0.1, 0.2, -0.1, *CUTS], [-0.4, 0.1, -0.2, 0.5, -0.3, 0.6, *(1.3 * CUTS + 0.2)]])
PRIORS = {name: Normal(0.1, 1.0) for name in ("a", "s", "b", "u")}


def data(family):
    """Responses of the family's range, and its further data."""
    rng = np.random.default_rng(3)
    numbers, counts = rng.normal(0.0, 1.5, N), np.minimum(rng.poisson(1.2, N), 3)
    counts[:4] = np.arange(4)
    y = {
        "number": moved(numbers),
        "positive": moved(rng.gamma(1.5, 1.0, N)),
        "share": moved(rng.uniform(0.05, 0.95, N)),
        "count": counts,
        "label": rng.integers(0, 2, N).astype(bool),
        "angle": moved(2.0 * np.arctan(numbers)),
    }[family.response.removesuffix(" or 0")]
    y = np.where(np.arange(N) % 4 == 1, 0.0, y) if family.response.endswith(" or 0") else y
    return y, {"trials": counts + rng.integers(1, 6, N)} if "trials" in family.data else {}


def functionals(family):
    """A functional of each parameter, in the order in which they are not."""
    rng = np.random.default_rng(4)
    X, Z = moved(0.5 * rng.standard_normal((2, N, 2)))
    if family.arrange:
        return {"cuts": P.cut, "mu": X @ P.a}
    kinds = [X @ P.a + 0.2, 0.4 * P.s + 0.3, Z @ P.b + X[:, 0], P.u - 0.2, Z @ P.b + P.s]
    return dict(reversed(list(zip(family.links, kinds, strict=False))))


def answers(family, **more):
    """The density, means, draws and constants of rows at functionals, and what the family says of itself."""
    y, given = data(family)
    y = np.clip(y, *family.ends) if family.response == "count" else y
    rows = family.rows(y, **(given | functionals(family) | more))
    model, new = sum_of_terms(P, [rows], PRIORS), family.rows(y[::-1][:3], **few(family, given | more))
    found = {"values": [model.potential(x) for x in POINTS], "gradient": model.gradient(POINTS[0])}
    found |= {"likelihood": model.pointwise_log_likelihood(POINTS), "omitted": model.omitted(), "start": model.initial}
    draws = np.stack([POINTS, POINTS[::-1] + 0.1])
    if family.mean is not None:
        found["mean"] = [model.predict(draws), model.predict(POINTS[1], new)]
    if family.draw is not None and family.name != "multinomial":
        found["draws"] = [model.predict(draws, kind="response", seed=s) for s in (1, 2)]
        found["new"] = model.predict(draws, new, kind="response", seed=3)
    said = (family.name, family.described, family.parameters, family.named, family.units, family.response)
    laws = {name: [type(law).__name__, str(law)] for name, law in family.priors.items()}
    kind = family.has_ascending_cuts, family.is_nominal, dict(family.links), list(family.data)
    return found | {"said": said, "priors": laws, "kind": kind, "needs": list(family.needs)}


def few(family, given):
    """What three rows more have."""
    rows = {name: value[:3] if np.size(value) > 1 else value for name, value in given.items()}
    X = np.array([[0.5, -1.0], [1.5, 0.2], [0.0, 0.7]])
    if family.arrange:
        return rows | {"mu": X @ P.a, "cuts": P.cut}
    at = [X @ P.a, P.s, X @ P.b, P.u, X[:, :1] @ P.s]
    return rows | dict(zip(family.links, at, strict=False))


def density(family):
    """Of arrays that broadcast, far out as well; and the inverse of each link."""
    y, given = data(family)
    y = np.asarray(y, float)
    far = np.array([[-1.2], [0.4], [3.0]])
    if family.has_ascending_cuts:
        eta, further = (far, 0.7 + 0.1 * far), (3.0,)
    else:
        count = 4 if family.arrange else len(family.links)
        eta, further = [far * (1.0 - 0.3 * k) + 0.1 * k for k in range(count)], tuple(given.values())
    known = family.inverse([far] * len(family.links)) if not family.arrange else None
    return [family.log_density(y, *eta, data=further), known]


for name, family in FAMILIES.items():
    case(lambda family=family: answers(family), f"{name}")
    case(lambda family=family: density(family), f"density of {name}")
CENSORED = np.arange(N) % 4 - 1
for name in ("weibull", "exponential", "lognormal"):
    more = {"censored": CENSORED, "upper": np.full(N, 12.0)}
    case(lambda name=name, more=more: answers(FAMILIES[name], **more), f"{name}, censored")
    case(lambda name=name: answers(FAMILIES[name], censored=CENSORED % 3 - 1), f"{name}, without intervals")
LINKED = {
    "gamma": ({"mu": "identity", "shape": "sqrt"}, {"mu": "inverse"}),
    "gaussian": ({"mu": "log"}, {"sigma": "sqrt"}),
    "binomial": ({"mu": "probit"}, {"mu": "log"}),
    "beta": ({"mu": "probit", "phi": "inverse"},),
    "von_mises": ({"mu": "identity"},),
    "poisson": ({"mu": "sqrt"}, {"mu": "identity"}),
    "bernoulli": ({"mu": "probit"},),
}


@case
def other_links():
    found, mu = {}, np.array([0.3, 0.7, 0.45])
    for name, several in LINKED.items():
        y, given = data(FAMILIES[name])
        for links in several:
            family = FAMILIES[name].linked(**links)
            eta = [mu + 0.1 * k for k in range(len(family.links))]
            further = [value[:3] for value in given.values()]
            twice = family.linked(**{family.parameters[0]: "identity"})
            found[f"{name} {links}"] = [
                family.log_density(y[:3], *eta, data=further),
                family.inverse(eta),
                family.mean(*family.inverse(eta), *further),
                family.described,
                twice.log_density(y[:3], *eta, data=further),
                twice.described,
                list(twice.links.values()),
            ]
    return found


@case
def links():
    u = np.array([0.2, 0.5, 0.9])
    return {name: [link.forward(u), link.inverse(u), link.inverse(-u)] for name, link in families.LINKS.items()}


@case
def categories():
    """Without an order, one of a row or counts of each; numbers and text as their names."""
    one = families.categorical(["bus", "car"])
    counts, y = families.multinomial(["bus", 3]), np.array([0, 2, 1, 1, 2, 0, 2])
    given = {"count of bus": np.array([3, 0, 2, 1, 0, 4, 1]), "count of 3": np.array([0, 2, 5, 1, 1, 0, 2])}
    X = moved(np.random.default_rng(1).standard_normal((7, 2)))
    models = [
        sum_of_terms(P, [one.rows(y, bus=X @ P.a, car=P.s)], PRIORS),
        sum_of_terms(P, [counts.rows(y, **{"bus": X @ P.a, "3": P.s}, **given)], PRIORS),
    ]
    found = [
        [m.potential(x), m.gradient(x), m.pointwise_log_likelihood(x), m.omitted()] for m in models for x in POINTS
    ]
    found.append([models[0].predict(POINTS, kind="response", seed=4), models[0].observed_data()])
    chances = [family.chances(np.array([0.3, -1.0]), np.array([0.2, 2.0])) for family in (one, counts)]
    known = [[f.name, f.parameters, f.is_nominal, str(f.priors[f.parameters[1]]), f.described] for f in (one, counts)]
    return [found, chances, known, list(counts.data)]


LOWER, UPPER = np.linspace(-5.0, -4.0, N), np.linspace(4.0, 6.0, N)


def truncated(name, lower, upper):
    """Cut off on either side, numbers or one for each row."""
    family, positive = families.truncated(FAMILIES[name], lower, upper), FAMILIES[name].response == "positive"
    ends = {"lb": 0.02 if positive else LOWER} if lower else {}
    ends |= {"ub": UPPER + 3.0 if positive else 7.0} if upper else {}
    return answers(family, **ends)


for name in families.TAILS:
    for lower, upper in ((True, False), (False, True), (True, True)):
        case(lambda name=name, lower=lower, upper=upper: truncated(name, lower, upper), f"{name} cut {lower} {upper}")


def truncated_counts(name, lower, upper):
    """Of families of counts, the bounds of which they have themselves."""
    family = families.truncated(FAMILIES[name], lower, upper)
    return [answers(family), family.ends]


for name in families.COUNTS:
    for lower, upper in ((1, False), (2, False), (0, 3), (2, 7)):
        case(lambda name=name, ends=(lower, upper): truncated_counts(name, *ends), f"{name} from {lower} to {upper}")


@case
def far_tails():
    """Quantiles and means of intervals that are far out, on either side."""
    u, found = np.array([0.1, 0.5, 0.97]), {}
    for name, tails in families.TAILS.items():
        parameters = {"exponential": (2.0,), "weibull": (2.0, 1.3)}.get(name, (0.3, 0.8))
        ends = [(-np.inf, 1.0), (0.5, np.inf), (0.2, 0.9), (9.0, 9.5), (40.0, 41.0)]
        ends += [(-9.0, -8.5), (-30.0, -8.0)] if name == "gaussian" else [(1e-4, 2e-4), (900.0, 930.0)]
        found[name] = [[tails.quantile(u, a, b, *parameters), tails.mean(a, b, *parameters)] for a, b in ends]
    return found


@case
def known_errors():
    se = np.linspace(0.3, 1.4, N)
    return [answers(families.known_errors(families.gaussian, sigma), se=se) for sigma in (False, True)]


@case
def known_errors_by_default():
    return families.known_errors(families.gaussian).parameters


@case
def a_mixture_of_others():
    family = families.mixture("two", families.student_t, families.student_t)
    y = moved([0.3, -1.0, 2.0])
    eta = [np.array([0.1, 0.5, -0.2]) * k for k in range(1, 8)]
    values = family.inverse(eta)
    drawn = family.draw(np.random.default_rng(2), *values)
    return [
        family.log_density(y, *eta),
        family.mean(*values),
        drawn,
        list(family.links),
        family.units,
        list(family.needs),
    ]


@case
def a_family_of_ones_own():
    """With all that has a default left out, and with none of it."""
    plain = Family("plain", lambda y, z, w: z + y * np.exp(-z) + w**2)
    full = Family(
        "full",
        lambda y, k, z, a: k * z + y * np.exp(-z) + a,
        draw=lambda rng, mu, phi, k: rng.gamma(phi, mu) * k,
        mean=lambda mu, phi, k: k * mu * phi,
        links={"mu": "log", "phi": "sqrt"},
        constant=lambda y, k: -np.log(y) * k,
        response="positive",
        data={"k": 2.0},
        stored=np.sqrt,
        priors={"phi": HalfNormal(2.0)},
        units=("phi",),
        needs={"phi": "it is not known"},
    )
    y = moved([0.5, 1.5, 2.5])
    rows = [
        plain.rows(y, z=P.s, w=P.u),
        full.rows(y, mu=P.s, phi=P.u),
        full.rows(y, mu=P.s, phi=P.u, k=[1.0, 3.0, 2.0]),
    ]
    models = [sum_of_terms(P, [row], PRIORS) for row in rows]
    found = [[m.potential(POINTS[0]), m.pointwise_log_likelihood(POINTS)] for m in models]
    found += [[m.predict(POINTS), m.predict(POINTS, kind="response", seed=1)] for m in models[1:]]
    known = [[f.parameters, f.units, dict(f.links), f.response, list(f.needs), f.described] for f in (plain, full)]
    return [found, known]


# ---------------------------------------------------------------------------------------------------------------
# Priors and transforms

LAWS = (
    Flat(), Normal(0.5, 2.0), StudentT(3.0, 0.2, 2.5), HalfNormal(0.7), HalfStudentT(4.0, 1.7), HalfCauchy(2.0),
    Exponential(0.4), Gamma(2.5, 3.0), priors.LKJ(), priors.LKJ(1.5),
)  # fmt: skip


@case
def laws():
    """Each prior, of another unit and shifted, and its derivatives with their bounds."""
    found = []
    of_x = priors.potential, priors.derivative, priors.second_derivative, priors.second_derivative_bound_until
    for law in LAWS:
        code = law.coded()
        known = [str(law), code, law.positive, law.typical(), priors.log_mass(*code)]
        each = [[function(*code, z) for function in of_x] for z in (-1.3, 0.0, 0.4, 2.2)]
        others = [str(law.scaled(3.0)), law.scaled(0.5).coded(), law.shifted(-2.0).coded()]
        found.append([known, priors.second_derivative_bound(*code), each, others])
    return found


@case
def laws_of_several():
    pairs = [str(one) for one in priors.LKJ(4.0).partial(4)]
    kinds, numbers = np.array([law.coded()[0] for law in LAWS]), np.array([law.coded()[1:] for law in LAWS])
    bends = priors.second_derivatives(kinds, numbers, np.linspace(-1.0, 2.0, len(LAWS)))
    beta = priors.BetaBernoulli(2.0, 0.5)
    return [pairs, len(pairs), bends, str(beta), beta, priors.BetaBernoulli(), priors.LKJ().partial(2)]


MAPS = (
    transforms.Transform(), transforms.Identity(), transforms.Log(), transforms.Log(-2.5), transforms.Log(1.25),
    transforms.Upper(), transforms.Upper(3.0), transforms.Interval(), transforms.Interval(-1.0, 4.0),
    transforms.Interval(0.0, 2.0), transforms.Ordered(), transforms.Simplex(),
)  # fmt: skip


@case
def maps():
    """Each transform, there and back, of vectors and of arrays of them."""
    x, found = moved(np.random.default_rng(5).normal(0.0, 1.4, (3, 2, 4))), []
    for one in MAPS:
        several, single = one.constrain(x), one.constrain(x[0, 0])
        back = [one.unconstrain(several), one.unconstrain(single.tolist())]
        volume = [one.log_jacobian(x), one.log_jacobian_gradient(x), one.log_jacobian([0.3, -2.0])]
        again = transforms.from_json(one.to_json()) if type(one) is not transforms.Transform else None
        known = None if isinstance(one, transforms.Simplex) else transforms.recognised(x, several)
        said = [one.label("a"), one.shape((2, 3)), one.to_json(), str(again), str(known)]
        found.append([several, single, back, volume, said])
    return found


@case
def parts_of_draws():
    """Variables in their order, each through its transform, and what each number of them is called."""
    variables = {"mu": (), "tau": (), "p": (2,), "cuts": (3,), "weights": (2,), "table": (2, 2)}
    kinds = {"tau": transforms.Log(), "p": transforms.Interval(), "cuts": transforms.Ordered()}
    kinds |= {"weights": transforms.Simplex(), "table": transforms.Upper(1.0)}
    x = moved(np.random.default_rng(6).standard_normal((2, 3, 13)))
    natural = transforms.split(x, variables, kinds)
    names = [transforms.coordinate_names(variables, kinds), transforms.coordinate_names(variables)]
    return [natural, transforms.split(x[0, 0], variables), transforms.flat(natural), names]


@case
def models_in_natural_parameters():
    """A model of one's own with transforms, and one without anything but a potential."""

    class Own(pdmp.Model):
        precision: float

        def __init__(self, **options):
            super().__init__(dim=4, **options)
            self.precision = 3.0

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * self.precision * (x[0] * x[0] + x[1] * x[3])

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += self.precision * x[0]
            out[1] += 0.5 * self.precision * x[3]
            out[3] += 0.5 * self.precision * x[1]

    named = Own(variables={"a": (3,), "b": ()}, transforms={"b": transforms.Log()}, initial=[0.1, 0.2, 0.3, 0.4])
    found, draws = [], moved([[0.1, 0.2, -0.3, 0.5], [1.0, 0.0, 2.0, -1.0]])
    for model in (named, Own()):
        x, out = draws[0], np.ones(4)
        model.add_gradient(x, out)
        kinds = {name: str(one) for name, one in model.transforms.items()}
        found.append([model.variables, model.initial, kinds, model.constrain(draws), model.constrains, model.omitted()])
        found.append([model.potential(x), model.gradient(x), out, model.total_rise(x, draws[1]), model.by_address.dim])
        found.append(
            [model.n_data, model.factors(), model.log_likelihoods(x), model.observed_data(), model.slab_density()]
        )
        found.append([model.hessian_bounds(), model.prior_hessian_bounds(), model.largest_term_gradient()])
        found.append(
            [model.has("prior_partial"), model.has("add_term_parts"), model.has("hessian"), model.has("factors")]
        )
    return found


@case
def called_by_address():
    """A model in coordinates of its own, with a potential together with its gradient, as samplers call it."""

    class Doubled(pdmp.Model):
        scale: float

        def __init__(self):
            super().__init__(dim=2)
            self.scale = 2.0

        @pdmp.compiled
        def potential(self, z):
            return self.scale * (z[0] * z[0] + z[0] * z[1])

        @pdmp.compiled
        def add_gradient(self, z, out):
            out[0] += self.scale * (2.0 * z[0] + z[1])
            out[1] += self.scale * z[0]

        @pdmp.compiled
        def potential_and_gradient(self, z, out):
            self.add_gradient(z, out)
            return self.total_potential(z) + 100.0  # to tell which is called

        @pdmp.compiled
        def standardise(self, x, z):
            for j in range(2):
                z[j] = x[j] / self.scale

        @pdmp.compiled
        def natural(self, z, x):
            for j in range(2):
                x[j] = self.scale * z[j] + 1.0

    one, x = Doubled().by_address, np.array([0.3, -0.7])
    out = np.array([np.ones(2), np.ones(2), np.zeros(2), np.zeros(2)])
    one.add_gradient(x, out[0])
    both = one.potential_and_gradient(x, out[1])
    one.standardise(x, out[2])
    one.natural(x, out[3])
    return [one.dim, one.n_data, one.separate, one.moved, one.total_potential(x), both, out]


# ---------------------------------------------------------------------------------------------------------------
# Linear functionals


def told(functional):
    """All that a functional is, and what it is at two draws."""
    at = functional.at(POINTS)
    return [functional.columns, functional.values, functional.offset, functional.n, functional.dim, at]


@case
def products():
    """Of dense and sparse features, in several forms, some of them with few entries."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.5)
    X[1], X[3] = 0.0, [1.0, 2.0, -1.0]
    wide = sparse.csr_array((np.r_[np.ones(3), np.full(9, 0.5)], ([0, 1, 2, *[3] * 9], [0, 2, 1, *range(9)])), (60, 9))
    q, found = pdmp.Parameters(x=2, y=9), []
    twice = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 3))
    for one in (
        X,
        X.astype(np.float32),
        X.tolist() and np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        twice,
    ):
        found.append(told(one @ P.cut))
    x = np.linspace(-1.0, 1.0, 22).reshape(2, 11)
    return [
        found,
        (wide @ q.y).at(x),
        (wide @ q.y).columns.shape,
        (wide[:4] @ q.y).columns,
        P.dim,
        P.sizes,
        repr(P.cut),
    ]


@case
def combinations():
    """Sums, differences and multiples of functionals, numbers and arrays, on either side."""
    rows, each = np.array([0, 2, 1, 1]), np.array([0.5, -1.0, 2.0, 3.0])
    X = np.arange(8.0).reshape(4, 2) / 3.0
    eta, one, look = X @ P.a, P.s, P.cut[rows]
    made = {
        "sum": eta + look, "three": eta + look + one, "number": 2.0 + eta, "array": eta + each, "left": each + look,
        "minus": eta - look, "less": eta - 0.5, "from": 1.5 - eta, "array from": each - one, "negative": -(eta + each),
        "times": 3.0 * (eta + 1.0), "by each": (look + 2.0) * each, "each by": each * one, "divided": (eta + 1.0) / 4.0,
        "by an array": (eta + each) / each, "both": (eta + each) + (look + 2.0 * each), "one look": P.cut[2] + one,
        "same": eta + eta, "alone": one + 0.0, "whole": P.a[1] - P.b[np.array([0, 1, 1])], "integers": eta * 2 + rows,
        "by NumPy": np.add(eta, each), "less by NumPy": np.subtract(each, eta), "product": np.multiply(each, eta),
        "ratio": np.divide(eta, 2.0), "matrix": np.matmul(X, P.b), "further": one - eta, "of one": each * (one + 1.0),
    }  # fmt: skip
    return {name: told(functional) for name, functional in made.items()}
