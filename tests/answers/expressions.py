"""Expressions and functionals; factors of a model; estimates of gradients and tables to draw from; arrivals."""

from __future__ import annotations

import math

import networkx
import numpy as np
from scipy import sparse

import pdmp
from pdmp.expressions import nodes, straight, tape
from pdmp.expressions.derivatives import Derivatives
from pdmp.expressions.nodes import FUNCTION_NAMES, UFUNCS, trace
from pdmp.factors import FactorGraph, from_model, from_networkx
from pdmp.factors.graph import some_of
from pdmp.factors.terms import divide
from pdmp.gradients import AliasTable, ControlVariate, Full, Minibatch, Noisy, as_provider
from pdmp.gradients.alias import AliasBlocks, AliasTables, table_of_block
from pdmp.gradients.anchors import Anchors
from pdmp.thinning import affine_proposal, first_arrival, piecewise, sinusoid
from tests.answers import case
from tests.answers.targets import FACTORISATIONS, TARGETS, cox, full, moving, tridiagonal
from tests.answers.terms import SUMS
from tests.recorded import moved

# -- expressions ------------------------------------------------------------------------------------------------------

ALL = moved([-800.0, -45.3, -31.0, -21.7, -8.3, -1.31, -0.31, 0.17, 0.83, 1.9, 9.3, 31.0, 45.3, 800.0])
ABOVE = moved([1e-3, 0.21, 0.69, 0.8, 1.46, 2.7, 9.9, 10.4, 29.0, 31.0, 47.0, 640.0])
BOXES = moved([[-9.5, -9.0], [-2.5, -0.4], [-0.9, -0.8], [-0.3, 0.2], [0.4, 1.1], [0.8, 3.3], [1.2, 6.0], [29.0, 31.0]])


class Traced(Derivatives):
    """An expression of data and functionals."""

    def __init__(self, function, n_data, n):
        self.expression, self.m = trace(function, n_data, n)


def table(operation):
    """Values and ranges of one operation of tapes."""
    at = np.concatenate([ALL, ABOVE])
    with np.errstate(all="ignore"):
        values = [value(operation, x) for x in at]
    boxes = [*BOXES.tolist(), [-math.inf, 0.3], [0.2, math.inf], [0.3, 0.2]]
    return {"values": values, "ranges": [enclosed(operation, a, b) for a, b in boxes]}


def value(operation, x):
    try:
        return tape.value_of(operation, float(x))
    except OverflowError:  # of plain Python; compiled it is infinite
        return math.inf


def enclosed(operation, a, b):
    try:
        return tape.enclosure_of(operation, float(a), float(b))
    except OverflowError:
        return -math.inf, math.inf


for name, operation in tape.OPERATIONS.items():
    case(lambda operation=operation: table(operation), f"operation: {name}")


def derived(function, data, eta, boxes=None):
    """An expression's value and derivatives to the fourth order, at columns, and its ranges over boxes of functionals.

    The ranges are those of third derivatives, within a distance too.
    """
    made = Traced(function, len(data), len(eta))
    found = {"at": [tape_(data, eta) for tape_ in made.tapes], "third": made.third(data, eta), "m": made.m}
    if made.third_and_fourth is not None:
        found["fourth"] = made.third_and_fourth(data, eta)[len(made.third.results) :]
    n, third = eta.shape[1], made.third
    for radius in (math.inf, 0.1):
        low, high = third.room(n), third.room(n)
        square = np.tile(full(len(eta))[:, :, None], n)
        tape.enclose(
            third.code, third.number, third.fixed, n, data, eta - 0.3, eta + 0.2, eta, square, radius, low, high
        )
        found[f"range {radius}"] = [low[third.results], high[third.results]]
    rho, scratch = np.zeros(made.m), [eta[:, :1].copy() + 0.1, eta[:, :1].copy()]
    code = np.concatenate([one.code for one in made.tapes])
    starts = np.cumsum([0, *(len(one.code) for one in made.tapes)])
    results = np.cumsum([0, *(len(one.results) for one in made.tapes)])
    places = np.array([[starts[k], starts[k + 1], results[k]] for k in range(4)])
    room = np.zeros((max(one.registers for one in made.tapes), 1))
    number = np.concatenate([one.number[: len(one.code)] for one in made.tapes])
    of_all = np.concatenate([one.results for one in made.tapes])
    tape.expand(code, number, of_all, places, made.m, data[:, :1].copy(), *scratch, room, rho)
    return found | {"remainder": rho}


DATA = np.array([[0.5, 2.0, 3.0, 0.0], [1.5, -0.7, 0.0, 1.0]])
ETA = moved([[0.3, 1.2, -0.8, 0.6], [0.4, -0.2, 0.9, 1.1]])
e = pdmp.terms
LOSSES = {
    "normal": lambda y, w, m, s: s + 0.5 * (y - m) ** 2 * e.exp(-2.0 * s) + w,
    "powers": lambda y, w, a, b: (a**2 + 1.3) ** -1.5 * b**3 / (2.0 + b**2) - 2.0**a + y * (a + 2.0) ** b,
    "where": lambda y, w, a, b: e.where((y > 1.0) & (w != 0.0) | (y == 0.5), a * b, e.exp(a - b))
    + e.where(w >= 1.0, a, 2.0),
    "tests": lambda y, w, a, b: (y >= 2.0) * a + (y < 1.0) * b**2 + (w <= 0.0) * a * b + ~(y == 3.0) * (a - b) ** 3
    + ((y > 1.0) | (y > 2.5)) * b,
    "affine": lambda y, w, a, b: e.softplus(2.0 * a - b + 0.3 * y) + e.sin(a + b + 1.0) * e.cos(0.5 * a - b),
    "gammas": lambda y, w, a, b: e.lgamma(y + e.exp(a)) - e.digamma(e.exp(b) + 1.0) * w + e.xlogy(y, e.exp(a) + 1.0),
    "tails": lambda y, w, a, b: -e.log_ndtr(a - y) + e.log1mexp(e.exp(b) + 0.1) - e.erf(a * b) + e.tanh(a),
    "logs": lambda y, w, a, b: e.log1p(a**2) + e.sqrt(1.0 + b**2) + e.logaddexp(a, b) - e.expm1(a) + abs(a - 3.0),
    "directions": lambda y, w, a, b: e.log_i0(e.exp(a)) - e.exp(a) * e.cos(y - b) + e.expit(-a) / (1.0 + w**2),
    "of numpy": lambda y, w, a, b: np.exp(a) / np.float64(2.0) + np.square(b)
    - np.logaddexp(a, np.negative(b)) * np.power(2.0, y)
    + np.where(np.less(1.0, y), np.multiply(3.0, a), np.subtract(1.0, b))
    + np.divide(1.0, 1.0 + np.square(a)),
    "reversed": lambda y, w, a, b: (1.0 - a) * (2.0 / (1.0 + b**2)) + (+b) - (-a) * 3.0 + 2.0 ** (y * 0.1)
    + a * a / (a * a),
    "constant tests": lambda y, w, a, b: e.where(y - y == 0.0, a, b) * e.where(0.0 * w > 0.0, a, b)
    + ((w - w) >= 1.0) * b,
    "two of one": lambda y, w, a, b: e.softplus(a + b) + e.softplus(a - 1e-3 * b) + e.exp(a * y + w),
    "cancelled": lambda y, w, a, b: e.exp(a) * e.exp(-a) * b + (a + 1.0) - a + 0.0 * y + b**0 + e.exp(0.0 * a) * a,
}  # fmt: skip
for name, loss in LOSSES.items():
    case(lambda loss=loss: derived(loss, DATA, ETA), f"expression: {name}")


@case
def functions_of_numbers():
    """Those of `pdmp.terms`, of plain numbers and arrays; and what NumPy's protocols make of traced values."""
    u, v = moved([0.3, 1.7, 2.2]), moved([0.9, 0.4, 3.1])
    two = ("logaddexp", "xlogy")
    found = {name: getattr(e, name)(u, v) if name in two else getattr(e, name)(u) for name in FUNCTION_NAMES
             if name != "where"}  # fmt: skip
    found |= {"where": [e.where(u > 1.0, u, v), e.where(True, 1.0, 2.0), e.where(False, 1.0, 2.0)]}
    found["0 log"] = e.xlogy(0.0, 2.0)
    binary = "add subtract multiply divide power equal not_equal greater less greater_equal less_equal logaddexp xlogy"
    for name, take in UFUNCS.items():
        if name not in binary.split():
            found[f"traced {name}"] = at_points(lambda y, a, take=take: take(a), u)
            continue
        given = [lambda y, a, take=take: take(y, 2.0) + a, lambda y, a, take=take: take(2.0, y) + a]
        if name in ("add", "subtract", "multiply", "divide", "power", "logaddexp"):
            given += [lambda y, a, take=take: take(a, 1.5), lambda y, a, take=take: take(1.5, a)]
        found[f"traced {name}"] = [at_points(one, u) for one in given if name != "xlogy" or one is given[0]]
    return found


def at_points(function, u):
    expression = trace(function, 1, 1)[0]
    return tape.Tape([expression, expression.derivative(0)])(np.array([[1.0, 2.0, 3.0]]), u[None])


@case
def intervals():
    """Powers, products and roots of intervals."""
    pairs = [(-2.0, -0.5), (-0.7, 1.1), (0.4, 1.5), (0.0, 2.0), (-1.0, 0.0), (0.0, 0.0), (1.0, -1.0), (-math.inf, 2.0)]
    found = {f"power {n}": np.array([tape.interval_power(a, b, n) for a, b in pairs]) for n in (-3, -2, -1, 1, 2, 3)}
    found["times"] = np.array([tape.times(*p, *q) for p in pairs for q in pairs])
    found["wide"] = np.array([tape.wide(a, b, 0.1) for a, b in pairs])
    root = tape.Tape([trace(lambda a: (a + 0.0) ** 0.5 + a**-1.5 + a**1.5, 0, 1)[0]])
    n = 5
    low, high = root.room(n), root.room(n)
    ends = np.array([[0.4, 0.0, -1.0, 2.0, 1.0]]), np.array([[1.5, 2.0, 1.0, 2.5, 0.5]])
    tape.enclose(
        root.code, root.number, root.fixed, n, np.zeros((1, n)), *ends, ends[0], np.ones((1, 1, n)), math.inf, low, high
    )
    return found | {
        "roots": [low[root.results], high[root.results]],
        "whole": [tape.whole_power(1.3, k) for k in (-2, 0, 5)],
    }


@case
def functionals():
    """Products, look-ups, sums and multiples of every kind, at two points."""
    p = pdmp.Parameters(rate=2, effect=3, shape=1)
    X, g, c = moved(np.cos(np.arange(8.0)).reshape(4, 2)), np.array([2, 0, 1, 2]), moved([1.0, -2.0, 0.5, 3.0])
    wide = sparse.coo_array((c, ([0, 2, 2, 0], [1, 0, 2, 1])), shape=(4, 3))
    made = {
        "dense": X @ p.rate,
        "list": X.tolist() @ p.rate,
        "single precision": X.astype(np.float32).astype(float) @ p.rate,
        "sparse": wide @ p.effect,
        "sparse and nearly full": sparse.csr_array(full(3)) @ p.effect,
        "sparse of one row": sparse.csc_array(np.r_[np.ones((1, 3)), np.zeros((30, 3))]) @ p.effect,
        "look-up": p.effect[g],
        "look-up of one": p.effect[1] + p.effect[[0]],
        "coordinate": p.shape,
        "multiple": 2.0 * p.shape,
        "by rows": c * p.shape - p.effect[g],
        "by an array on the left": np.asarray(c) + p.effect[g] * c,
        "of numpy": np.subtract(c, np.multiply(p.effect[g], 2.0)) + np.divide(p.shape, 4.0),
        "offsets": (X @ p.rate + c) * 0.5 + (p.shape + 1.0) - 3.0,
        "one of two offsets": X @ p.rate + (p.shape - c),
        "reversed": 1.0 - (X @ p.rate) / c,
        "negative": -(p.effect[g] + c),
        "divided": (p.effect[g] - 0.3) / 2,
    }
    x = np.array([moving(6), moving(6, 1)])
    found = {name: [f.at(x), f.columns, f.values, f.offset, f.n, f.dim] for name, f in made.items()}
    blocks = [
        repr(p),
        repr(p.effect),
        p.dim,
        p.sizes,
        p.effect.first,
        p.shape.is_of(p.sizes),
        p.shape.is_of({"rate": 2}),
    ]
    return found | {"blocks": blocks}


@case
def generated_methods():
    """Derivatives, bounds over all z, and numbers of dispersions, of losses as classes of regressions name them."""
    losses = {
        "poisson": (lambda y, z: nodes.exp(z) - y * z, ()),
        "negative binomial": (
            lambda y, z, s: (y + nodes.exp(s)) * nodes.softplus(z - s) + nodes.lgamma(nodes.exp(s)),
            (0.4,),
        ),
        "logistic": (lambda y, z: nodes.softplus(-y * z), ()),
        "probit": (lambda y, z: -nodes.log_ndtr(y * z), ()),
        "student": (
            lambda y, z, n, s: 0.5 * (n + 1.0) * nodes.log1p((y - z) ** 2 / (n * s**2)) + nodes.log(s),
            (3.0, 0.7),
        ),
        "where": (lambda y, z: nodes.where(y > 0.0, z**2, z + z**4) + nodes.expm1(z) / 2.0 + (1.0 + z**2) ** -0.5, ()),
    }
    found, bounded = {}, {"negative binomial": 2, "logistic": 2}
    for name, (loss, dispersions) in losses.items():
        expression = trace(loss, 1, 1 + len(dispersions))[0]
        made, constants = straight.methods(expression, __name__, name, bounded.get(name, 0))
        own = straight.numbers(constants, dispersions)
        held = type("Held", (), own)()
        z, y = moved([-1.3, 0.4, 2.2]), [1.0, -1.0, 3.0]
        found[name] = {"numbers": own} | {
            method: [function(held, *(y[k : k + 1] if "bounds" in method else (z[k], y[k]))) for k in range(3)]
            for method, function in made.items()
        }
    return found


# -- factors ----------------------------------------------------------------------------------------------------------


def graph_of(graph):
    """What a factor graph says."""
    net = graph.to_networkx()
    return {
        "rows": [graph.indptr, graph.indices, graph.term_start, graph.terms, graph.dim, len(graph)],
        "scopes": [graph.scope(f) for f in range(len(graph))],
        "neighbours": [graph.factors_of, graph.neighbours],
        "net": [[str(node), attributes] for node, attributes in net.nodes(data=True)],
        "edges": sorted([str(a), str(b)] for a, b in net.edges),
        "said": repr(graph).replace(" ", ""),
    }


@case
def graphs():
    """Of models, of rows, of a graph that merges factors."""
    chain = pdmp.models.Gaussian(moving(5), tridiagonal(5))
    merged = networkx.Graph()
    merged.add_nodes_from((f"x{j}", {"bipartite": 1, "index": 4 - j}) for j in range(5))
    merged.add_node("b", bipartite=0, terms=[3, 0])
    merged.add_node("a", bipartite=0, terms=np.int64(1))
    merged.add_node("c", bipartite=0, terms=np.array([2]))
    merged.add_edges_from([("b", "x0"), ("b", "x3"), ("a", "x1"), ("a", "x2"), ("c", "x4"), ("x0", "c")])
    made = {
        "edges": from_model(chain),
        "rows": from_model(chain, by="rows"),
        "alone": from_model(pdmp.models.Gaussian(0.0, [[1.0, 0.0, 0.2], [0.0, 2.0, 0.0], [0.2, 0.0, 1.0]])),
        "cox": from_model(cox()),
        "banana": from_model(TARGETS["banana of four"]()),
        "terms": from_model(SUMS["shared"]()),
        "factorisation": from_model(FACTORISATIONS["gaussian"]()),
        "merged": from_networkx(merged, 5, 4),
        "without terms": from_networkx(merged, 5),
        "lists": FactorGraph([[2, 0], [1]], 3, terms=[[1], [0, 2]]),
        "compressed": FactorGraph((np.array([0, 1, 3]), np.array([1, 2, 0])), 3),
    }
    shares = [divide(chain, made["edges"]), divide(chain, made["rows"])]
    dense = pdmp.models.Gaussian(moving(3), full(3))
    shares.append(divide(dense, FactorGraph([[0, 1, 2], [1, 2], [0]], 3)))
    return {name: graph_of(graph) for name, graph in made.items()} | {
        "shares": shares,
        "some": [some_of(range(3)).split(), some_of(range(9)).split()],
    }


# -- estimates of gradients -------------------------------------------------------------------------------------------

LABELS = (np.arange(11) * 5 % 7 < 3).astype(float)
X = moved(np.cos(np.arange(22.0) * 1.1).reshape(11, 2))


def logistic():
    return pdmp.models.LogisticRegression(X, LABELS, prior_scale=2.0)


PROVIDERS = {
    "full": lambda: Full(logistic()),
    "full, no data": lambda: as_provider(TARGETS["banana"]()),
    "noisy": lambda: Noisy(logistic(), [0.5, 2.0]),
    "noisy, a number": lambda: Noisy(logistic(), 0.3),
    **{draw: lambda draw=draw: Minibatch(logistic(), 3, draw) for draw in ("iid", "distinct", "epoch", "reshuffle")},
    "reshuffle, another seed": lambda: Minibatch(logistic(), 4, "reshuffle", seed=5),
    "reshuffle, listed": lambda: Minibatch(SUMS["shared"](), 4, "reshuffle"),
    "all at once": lambda: Minibatch(logistic(), 11, "distinct"),
    "one": lambda: Minibatch(logistic(), 1),
    "anchored": lambda: ControlVariate(logistic(), 3),
    "anchored at a point": lambda: ControlVariate(logistic(), 3, [0.3, -0.2]),
    "importance": lambda: ControlVariate(logistic(), 3, draw="importance"),
    "importance, scale": lambda: ControlVariate(logistic(), 2, [0.3, -0.2], "importance", [0.5, 2.0]),
    "several anchors": lambda: ControlVariate(logistic(), 3, [[0.3, -0.2], [2.0, 1.0]], scale=[1.0, 0.2]),
    "moving anchors": lambda: ControlVariate(logistic(), 3, [[0.3, -0.2], [2.0, 1.0]], renew=True),
    "rescaled": lambda: ControlVariate(logistic(), 3, draw="importance").rescaled([0.3, 1.0]),
}


def estimated(provider):
    """Estimates of a gradient in a row, with what is kept between them."""
    rng, counts, d = np.random.default_rng(7), np.zeros(20, np.int64), provider.dim
    native, memory, found = provider.native, provider.memory(rng), []
    counts[pdmp.process.ADAPTING] = 1
    for k in range(9):
        x = 0.4 * moving(d, 0.3 * k)
        out, sd = np.full(d, 0.25), np.full(d, 0.25)
        native.gradient(x, memory, rng, out, counts)
        again, once = np.zeros(d), np.zeros(d)
        native.gradient_again(x + 0.1, memory, again, counts)
        native.gradient_again(x - 0.1, memory, once, counts)
        found.append([out.copy(), again, once, memory.rows.copy()])
        if provider.has_variance:
            found.append([native.gradient_and_projection(x, moving(d, 2), memory, rng, out, counts), out.copy()])
            native.gradient_and_sd(x, memory, rng, out, sd, counts)
            found.append([out, sd])
    kept = {name: getattr(provider, name, None) for name in ("blocks", "size", "draw", "waits_for_warmup", "n_data")}
    said = [provider.exact, provider.independent, provider.has_variance, provider.terms_per_call, provider.dim]
    bank = [
        getattr(memory.bank, key) for key in ("points", "gradients", "renewals", "due") if hasattr(memory.bank, key)
    ]
    anchored = isinstance(provider, ControlVariate)
    more = []
    if anchored:
        more = [provider.anchor, provider.anchor_gradient, provider.anchor_distances(np.ones(d), np.full(d, 2.0))]
        more += [provider.contributions(), provider.largest()]
    return {"estimates": found, "counts": counts, "kept": kept, "said": said, "bank": bank, "anchor": more}


for name, make in PROVIDERS.items():
    case(lambda make=make: estimated(make()), f"gradient: {name}")


@case
def alias_tables():
    """Probabilities, draws and weights; several tables; blocks of one with draws that are made ahead."""
    weights = moved([0.5, 1.0, 3.0, 1.2, 0.7]) * [1.0, 0.0, 1.0, 1.0, 1.0]
    alias, rng = AliasTable(weights), np.random.default_rng(3)
    draws = [alias.native.draw(rng) for _ in range(12)]
    tables = AliasTables([5, 7, 9, 4], [0, 1, 3, 4], [2.0, 1.0, 3.0, 0.5])
    model, rng = logistic().native, np.random.default_rng(4)
    several = [tables.native.next(g, tables.queue(), model, rng) for g in (1, 0, 2, 1, 1, 1, 0, 1)]
    parts = [table_of_block(weights[:2]), table_of_block(weights[2:])]
    blocks = AliasBlocks(np.concatenate([part for part, _ in parts]), [0, 2, 5], [total for _, total in parts])
    queue, rng = blocks.queue(), np.random.default_rng(5)
    ahead = [blocks.native.next(0, queue, model, rng) for _ in range(30)]
    return {
        "one": [
            alias.table,
            alias.total,
            alias.size,
            alias.probabilities(),
            [alias.native.inverse(i) for i in range(5)],
        ],
        "draws": draws,
        "several": [tables.table, tables.totals, tables.first, several],
        "blocks": [[part for part, _ in parts], blocks.totals, ahead, queue.turn],
    }


@case
def anchors_along_a_path():
    """Anchors that follow a straight path, and are moved to its mean."""
    model = logistic()
    points = moved([[0.0, 0.0], [2.0, 1.0]])
    gradients = np.array([model.gradient(x) for x in points])
    anchors = Anchors(points, gradients, np.array([1.0, 0.5]), 11, True)
    bank, counts, native, found = anchors.memory(), np.zeros(20, np.int64), anchors.native, []
    counts[pdmp.process.ADAPTING] = 1
    for k in range(14):
        x = moved([0.5 + 0.1 * k, 1.0 - 0.2 * k])
        native.follow(model.native, bank, x, 0.5 * k, counts)
        native.evaluated(bank, 4)
        found.append([bank.nearest, bank.points, bank.weights, bank.squares, bank.due, native.closest(points, x)])
        found[-1] = [np.array(part, copy=True) for part in found[-1]]
    largest = [native.largest(bank, j, v, 0.3) for j in (0, 1) for v in (1.0, -1.0)]
    return [found, bank.gradients, bank.renewals, counts, largest]


# -- arrivals ---------------------------------------------------------------------------------------------------------


@case
def arrivals():
    """First arrivals of affine, piecewise and sinusoidal intensities."""
    lines = [
        (1.0, 0.5),
        (-1.0, 0.5),
        (1.0, -0.5),
        (2.0, -0.1),
        (0.0, 1.0),
        (-1.0, -1.0),
        (1.5, 0.0),
        (-0.5, 0.0),
        (0.0, 0.0),
    ]
    waits = moved([0.013, 0.71, 3.1, 36.6])
    segments = [(0.5, 2.0, 1.5), (2.0, 0.5, 1.5), (1.0, 1.0, 2.0), (0.0, 3.0, 0.7), (3.0, 0.0, 0.7), (0.0, 0.0, 1.0)]
    signed = [*segments, (-1.0, 2.0, 1.5), (2.0, -1.0, 1.5), (-1.0, -2.0, 1.0)]
    waves = [(1.0, 0.4), (-1.0, 0.4), (0.3, -1.2), (-0.7, -0.9), (0.0, 0.0), (0.0, 1.0)]
    products = [
        (v, y, *c)
        for v, y in ((1.0, 0.3), (-0.8, 0.5), (0.2, -1.1))
        for c in ((0.5, 1.0, -0.3), (2.0, 0.4, 0.1), (-2.0, 0.3, 0.2), (0.0, 0.0, 0.0))
    ]
    rng = np.random.default_rng(2)
    rates = moved([[0.5, -1.0, 2.0], [0.2, 0.4, -0.3]])
    proposals = [affine_proposal(*rates, 1.5, rng) for _ in range(5)]
    proposals += [
        affine_proposal(-(rates[0] ** 2), -(rates[1] ** 2), 1.5, rng),
        affine_proposal(*rates * np.nan, 1.5, rng),
    ]
    return {
        "affine": np.array([[first_arrival(a, b, w) for w in waits] for a, b in lines]),
        "segments": np.array([[piecewise.segment_arrival(*part, w) for w in waits] for part in segments]),
        "signed": np.array([[piecewise.positive_arrival(*part, w) for w in waits] for part in signed]),
        "waves": np.array([[sinusoid.sinusoid_arrival(a, b, k, w) for w in waits for k in (1, 2)] for a, b in waves]),
        "products": np.array([[sinusoid.product_arrival(*part, w) for w in waits] for part in products]),
        "proposals": np.array(proposals),
    }
