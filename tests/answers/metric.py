"""Metrics: every form in which one is given, what it makes of velocities and gradients, and how it learns."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import pdmp
from pdmp import metric as m
from tests.answers import case, once
from tests.recorded import moved

RNG = np.random.default_rng(3)
MATRIX = moved([[2.0, 0.6, 0.0, 0.1], [0.6, 1.5, -0.4, 0.0], [0.0, -0.4, 1.0, 0.3], [0.1, 0.0, 0.3, 0.8]])
SPARSE = np.array([[2.0, 0.6, 0.0, 0.0], [0.6, 1.5, 0.0, -0.4], [0.0, 0.0, 1.0, 0.3], [0.0, -0.4, 0.3, 0.8]])
VECTOR = moved([1.0, 2.0, 0.5, 3.0])
DIRECTIONS = np.linalg.qr(RNG.standard_normal((4, 2)))[0]
Z = moved(RNG.standard_normal((3, 4)))
X = moved([0.4, -0.2, 0.1, 0.6])


def forms():
    """Arguments of `Metric` by name."""
    import pandas as pd

    return {
        "number": {"precision": 2.0},
        "whole number": {"precision": 3},
        "list": {"precision": [1, 2, 3, 4]},
        "vector": {"precision": VECTOR},
        "series": {"precision": pd.Series(VECTOR, index=list("abcd"))},
        "matrix": {"precision": MATRIX},
        "frame": {"precision": pd.DataFrame(MATRIX)},
        "single": {"precision": MATRIX.astype(np.float32)},
        "sparse": {"precision": sparse.csr_matrix(SPARSE)},
        "sparse array": {"precision": sparse.csc_array(SPARSE)},
        "sparse coordinates": {"precision": sparse.coo_array(SPARSE)},
        "covariance number": {"covariance": 2.0},
        "covariance vector": {"covariance": VECTOR},
        "covariance matrix": {"covariance": MATRIX},
        "scales number": {"scales": 2.0},
        "scales vector": {"scales": VECTOR},
        "directions": {"scales": VECTOR, "directions": DIRECTIONS, "variances": [3.0, 0.2]},
        "direction": {"scales": 2.0, "directions": DIRECTIONS[:, :1], "variances": 3.0},
    }


@once
def made(name):
    return pdmp.Metric(**forms()[name]).made(4)


def used(metric):
    """What a metric does to vectors, one and several, in Python and by its compiled methods."""
    memory, found = metric.memory(X), {"identity": metric.identity()}
    if metric.adaptive is False and not isinstance(metric, m.Identity):
        memory.u[:] = Z[0]
        out = np.zeros(4)
        metric.push(memory, out)
        metric.pull(memory, Z[1].copy())
        state = State(Z[2].copy(), memory)
        found["pushed"], found["pulled"] = out, memory.pulled.copy()
        metric.velocity_changed(state)
        found["from a velocity"], found["square"] = memory.u.copy(), metric.square(state)
        found["dense"] = [m.dense(metric).root, m.covariance_of(metric)]
    found["vector"] = [metric.transform(Z[0]), metric.inverse(Z[0]), metric.transposed(Z[0])]
    rows = not isinstance(metric, m.Dense)
    found["rows"] = [metric.transform(Z), metric.inverse(Z), metric.transposed(Z)] if rows else None
    return found | {"trace": metric.trace(quartic(), X)}


class State:
    """A state of a velocity and the memory of its metric."""

    def __init__(self, v, memory, adapting=1):
        self.v, self.x, self.counts = v, X, np.full(20, adapting)
        self.memory = type("Memory", (), {"metric": memory})()


@once
def quartic():
    """A quadratic, and more far out."""

    def both(x):
        return 0.5 * x @ MATRIX @ x + 0.1 * np.sum(x**4), MATRIX @ x + 0.4 * x**3

    return pdmp.models.from_function(both, 4)


def given(name):
    metric = pdmp.Metric(**forms()[name])
    found = {"root": None if name.startswith("direction") else metric.root(4), "covariance": metric.covariance(4)}
    return found | {"says": repr(metric), "used": used(metric.made(4)), "kind": type(metric.made(4)).__name__}


for name in (
    *("number", "whole number", "list", "vector", "series", "matrix", "frame", "single", "sparse", "sparse array"),
    *("sparse coordinates", "covariance number", "covariance vector", "covariance matrix", "scales number"),
    *("scales vector", "directions", "direction"),
):
    case(lambda name=name: given(name), name)


@case
def identity():
    return used(m.Identity())


@case
def said():
    """Entries of what is shown, of metrics short and long."""
    long = pdmp.Metric(scales=np.linspace(1.0, 9.0, 50))
    return [repr(long).split(), repr(pdmp.Metric(MATRIX)).split(), repr(pdmp.Metric(2.5)).split()]


@case
def checked():
    """What stands for a metric among the arguments of a sampler."""
    found = {"none": m.check_metric(None, 4, "pdmp.BPS"), "word": m.check_metric("dense", 4, "pdmp.BPS", m.WORDS)}
    values = {"number": 2.0, "vector": VECTOR, "matrix": MATRIX, "sparse": sparse.csc_array(SPARSE)}
    values |= {"made": m.Diagonal(VECTOR), "metric": pdmp.Metric(scales=VECTOR)}
    for name, value in values.items():
        metric = m.check_metric(value, 4, "pdmp.BPS", diagonal=name in ("number", "vector"))
        found[name] = [type(metric).__name__, metric.identity()]
    return found


@case
def roots():
    return {
        "precision": [m.root_of(MATRIX), m.root_of(VECTOR)],
        "lower": m.lower(MATRIX @ np.diag(VECTOR)),
        "from_root": [m.from_root(MATRIX).root, m.from_root(VECTOR).root],
        "adapting": [
            *(m.adapting(word) for word in (None, "auto", "diagonal", "dense", MATRIX)),
            *(m.adapting(metric) for metric in (m.Dense(MATRIX, True), m.Dense(MATRIX), m.Diagonal(VECTOR, True))),
        ],
    }


@case
def words():
    """The metric of each word at a point, where the Hessian is positive definite and where it is not."""
    found, saddle = {}, hollow()
    logistic = pdmp.models.LogisticRegression(Z[:, :3], [1, 0, 1])
    for word in m.WORDS:
        for name, model, x in (("quartic", quartic(), X), ("logistic", logistic, X[:3]), ("hollow", saddle, X[:2])):
            if (word, name) != ("auto", "hollow"):
                metric = m.make_metric(word, model, x)
                found[f"{word} {name}"] = [type(metric).__name__, metric.root, metric.adaptive]
    wide = pdmp.models.Gaussian(np.zeros(201), np.linspace(1.0, 6.0, 201))
    return found | {word: m.make_metric(word, wide, np.zeros(201)).root[-1] for word in ("diagonal", "dense")}


@once
def hollow():
    """A potential with a negative curvature in the middle, and one that is positive."""

    def both(x):
        return x[1] ** 4 - x[1] ** 2 + x[0] ** 2 + 0.2 * x[0] * x[1], np.array(
            [2.0 * x[0] + 0.2 * x[1], 4.0 * x[1] ** 3 - 2.0 * x[1] + 0.2 * x[0]]
        )

    return pdmp.models.from_function(both, 2)


@case
def curvatures():
    """The mean curvature, also over a kink, whose difference quotients grow as they are taken nearer to it."""
    kinked = pdmp.models.from_function(
        lambda x: (float(np.sum(np.abs(x))) + 0.5 * x @ x, np.sign(x) + x), 2, initial=[0.5, 0.5]
    )
    x = np.zeros(2)
    found = [m.differences(kinked, x, width) for width in (1e-5, 1e-4, 0.3)]
    found += [
        m.differences(quartic(), X, 1e-3),
        m.mean_curvature(quartic(), X),
        m.mean_curvature(hollow(), np.zeros(2)),
    ]
    found += [m.over_kink(kinked, x, m.differences(kinked, x, 1e-5)), m.over_kink(quartic(), X, 5.0)]
    return found + [
        m._probed_trace(made("directions"), quartic(), X),
        m._probed_trace(m.Diagonal(VECTOR), quartic(), X, 5),
    ]


def learnt(metric):
    """Roots after each of some events, whose window is made short, and the sums in between."""
    memory = metric.memory(X)
    memory.window.length[:] = 3
    now, found, rng = 0.4, [], np.random.default_rng(7)
    for k in range(10):
        x, v = moved(rng.standard_normal(4)), moved(rng.standard_normal(4))
        times = metric.learn_from(memory, x, v, now)
        window = [float(part[0]) for part in memory.window]
        found.append(
            [times, memory.root.copy(), memory.first.copy(), memory.second.copy(), [*memory.columns.copy()], window]
        )
        now += 0.3 + 0.1 * k
    return found


for name, metric in {
    "diagonal": lambda: m.Diagonal(VECTOR, True),
    "dense": lambda: m.Dense(m.root_of(MATRIX), True),
}.items():
    case(lambda metric=metric: learnt(metric()), f"learnt {name}")


@case
def windows():
    """Lengths of first windows, and what a metric that was given learns: nothing."""
    given = [m.Diagonal(VECTOR), m.Dense(MATRIX), m.Diagonal(VECTOR, True), made("directions"), made("sparse")]
    found = [[metric.window(), metric.learns, metric.adaptive] for metric in given[:3]]
    return [found, [metric.learn_from(metric.memory(X), X, X, 0.4) for metric in given[3:]]]


@case
def bounces():
    """A bounce and a refreshment in each metric, while it learns and after."""
    found = {}
    metrics = {name: made(name) for name in ("vector", "matrix", "directions", "sparse")}
    metrics |= {"learning": m.Diagonal(VECTOR, True), "learning dense": m.Dense(m.root_of(MATRIX), True)}
    for name, metric in metrics.items():
        for adapting in (0, 1):
            memory = metric.memory(X)
            state = State(Z[2].copy(), memory, adapting)
            state.memory.gradient = Z[1].copy()
            metric.velocity_changed(state)
            metric.bounce(Turning(), state, 0.7, None)
            one = state.v.copy()
            metric.refresh(Turning(), state, 0.9, None)
            found[f"{name} {adapting}"] = [one, state.v.copy(), metric.square(state)]
            if hasattr(memory, "window"):
                found[f"{name} {adapting}"] += [memory.first.copy(), memory.window.events.copy()]
    return found


class Turning:
    """What a process does with a velocity in the coordinates of the metric."""

    def bounce(self, u, gradient, scratch, rng):
        u -= 2.0 * (u @ gradient) / (gradient @ gradient) * gradient

    def refresh(self, u, scratch, rng):
        u[:] = u[::-1]


@case
def factors():
    """A Cholesky factor in place, and of a matrix that is not positive definite."""
    good, bad = MATRIX.copy(), MATRIX - 1.2 * np.eye(4)
    return [m.cholesky(good), np.tril(good), m.cholesky(bad)]


@case
def products():
    metric = made("sparse")
    return [metric.product(Z), metric.product(Z[0]), metric.factor()]
