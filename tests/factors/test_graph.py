"""Factor graphs: networkx in, arrays out, and what is refused."""

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import pdmp
from pdmp.factors.graph import FactorGraph, from_model, from_networkx
from pdmp.factors.terms import Quadratic, Terms, compiled_factors, divide
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression, SkewNormal
from pdmp.models.derived import Derived

pytestmark = pytest.mark.exact


def rng(seed=0):
    return np.random.default_rng(seed)


def chain(d, diagonal=2.1):
    return Gaussian(
        np.arange(float(d)), sparse.diags([-np.ones(d - 1), np.full(d, diagonal), -np.ones(d - 1)], [-1, 0, 1])
    )


class Pairs(pdmp.Model):
    """U = Σ (x_{i+1} - x_i²)² / 2 over a chain, and a prior that ties no coordinates."""

    def __init__(self, dim=4, scopes=None):
        super().__init__(dim=dim, n_data=dim - 1)
        self._scopes = scopes

    @pdmp.compiled
    def term_potential(self, x, i):
        r = x[i + 1] - x[i] * x[i]
        return 0.5 * r * r

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        r = x[i + 1] - x[i] * x[i]
        out[i] -= 2.0 * x[i] * r
        out[i + 1] += r

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.5 * x[j] * x[j]
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j]

    @pdmp.compiled
    def add_factor_gradient(self, x, f, out):
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            out[f - self.n_data] += x[f - self.n_data]

    def factors(self):
        if self._scopes is not None:
            return self._scopes
        return [[i, i + 1] for i in range(self.dim - 1)] + [[j] for j in range(self.dim)]


def test_there_and_back_through_networkx():
    model = Pairs()
    graph = from_model(model)
    again = from_networkx(graph.to_networkx(), 4, len(graph))
    for name in ("indptr", "indices", "term_start", "terms"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(again, name))
    assert nx.is_bipartite(graph.to_networkx())


def test_a_regression_has_a_factor_for_each_datum_and_each_prior():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    for model in (LinearGaussian(X, [0.0, 1.0]), LogisticRegression(X, [0, 1])):
        graph = from_model(model)
        assert [graph.scope(f).tolist() for f in range(5)] == [[0, 2], [1], [0], [1], [2]]


GRAPHS = {
    "edges": lambda model: from_model(model),
    "rows": lambda model: from_model(model, by="rows"),
    "one": lambda model: FactorGraph([range(model.dim)], model.dim),
    "overlapping": lambda model: FactorGraph([[0, 1, 2], [1, 2, 3], [3, 4], [4]], 5),
}


@pytest.mark.parametrize("tied", [5, 3], ids=["all", "some alone"])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_blocks_add_up_to_the_precision_whatever_the_graph(name, tied):
    precision = chain(5).hessian() * np.outer([1.0, 2.0, 0.5, 1.5, 3.0], [1.0, 2.0, 0.5, 1.5, 3.0])
    alone = np.arange(5) >= tied
    precision[(alone[:, None] | alone) & ~np.eye(5, dtype=bool)] = 0.0
    model = Gaussian([1.0, -2.0, 0.5, 3.0, -0.3], precision)
    graph = GRAPHS[name](model)
    blocks, start, force = divide(model, graph)
    total = np.zeros((5, 5))
    for f in range(len(graph)):
        scope = graph.scope(f)
        block = blocks[start[f] : start[f + 1]].reshape(len(scope), -1)
        np.testing.assert_array_equal(block, block.T)
        total[np.ix_(scope, scope)] += block
    np.testing.assert_allclose(total, model.hessian(), atol=1e-15)
    np.testing.assert_allclose(np.bincount(graph.indices, force), total @ model.mean, atol=1e-13)


def test_the_factors_of_a_dominant_precision_are_convex():
    """Each gets the diagonal in proportion to what is beside it; a coordinate that it does not tie gets nothing."""
    precision = np.diag([1.2, 3.5, 2.6]) + np.array([[0.0, 1.0, 0.0], [1.0, 0.0, -2.0], [0.0, -2.0, 0.0]])
    model = Gaussian(0.0, precision)
    blocks, start, _ = divide(model, from_model(model))
    one, two = (blocks[a:b].reshape(2, 2) for a, b in zip(start[:-1], start[1:], strict=True))
    np.testing.assert_allclose(one, [[1.2, 1.0], [1.0, 3.5 / 3.0]])
    np.testing.assert_allclose(two, [[3.5 * 2.0 / 3.0, -2.0], [-2.0, 2.6]])
    assert min(np.linalg.eigvalsh(one)[0], np.linalg.eigvalsh(two)[0]) > 0.0


def merged(graph, nodes):
    """The networkx graph with these factors as one."""
    graph = graph.to_networkx()
    first, *others = (("U", f) for f in nodes)
    for other in others:
        graph.add_edges_from((first, x) for x in graph[other])
        graph.nodes[first]["terms"] = graph.nodes[first]["terms"] + graph.nodes[other]["terms"]
        graph.remove_node(other)
    return graph


X = rng(1).standard_normal((6, 3)) * (rng(2).random((6, 3)) < 0.7)
X[np.arange(3), np.arange(3)] = 1.0
X[5] = [1.0, 0.0, -1.0]
MODELS = {
    "chain": chain(5),
    "pairs": Pairs(),
    "linear": LinearGaussian(X, rng(3).standard_normal(6)),
    "logistic": LogisticRegression(X, [0, 1, 1, 0, 1, 0]),
    "skew": SkewNormal(2.0),
}


def graphs_of(name):
    model = MODELS[name]
    if name == "skew":
        return [FactorGraph([[0]], 1).to_networkx()]
    graph = from_model(model)
    given = [graph, graph.to_networkx(), merged(graph, (0, 1))]
    return given if name == "logistic" else [None, *given]  # without a graph its data share a clock


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_factors_add_up_wherever_and_whenever_coordinates_were_last_seen(name):
    """On a lazily moved state, of each graph; those of factors along the path are v·∇U."""
    model = MODELS[name]
    d = model.dim
    x, v, moved = rng(4).standard_normal(d), rng(5).standard_normal(d), rng(6).random(d)
    time = 1.3
    here = x + v * (time - moved)
    for graph in graphs_of(name):
        process = pdmp.LocalBPS(model, graph)
        factors, state = process.factors, process.begin(x, rng())
        assert isinstance(factors, Quadratic if name == "chain" else Terms)
        state.x[:], state.v[:], state.moved[:] = x, v, moved
        total, along = np.zeros(d), 0.0
        for f in range(len(factors.graph)):
            scope = factors.graph.scope(f)
            along += factors.native.along(state, f, time)
            total[scope] += state.memory.gradient[: len(scope)]
        np.testing.assert_allclose(total, model.gradient(here), rtol=1e-11, atol=1e-13)
        assert along == pytest.approx(v @ model.gradient(here), rel=1e-11)


def test_terms_are_counted_where_data_are_looked_at():
    process = pdmp.LocalBPS(MODELS["logistic"], merged(from_model(MODELS["logistic"]), (0, 1, 6)))
    state = process.begin(np.zeros(3), rng())
    process.factors.native.along(state, 0, 0.0)
    assert state.counts[pdmp.process.DATA] == 2  # two data and a prior
    process.factors.native.along(state, 5, 0.0)
    assert state.counts[pdmp.process.DATA] == 2  # a prior
    process = pdmp.LocalBPS(MODELS["skew"], FactorGraph([[0]], 1))
    state = process.begin(np.zeros(1), rng())
    process.factors.native.along(state, 0, 0.0)
    assert state.counts[pdmp.process.DATA] == 1


# ---------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    "scopes, text",
    [
        ([[0, 1], [1]], "does not cover the potential's coordinates: 2 in no factor"),
        ([[0, 1], [2, 3]], "a coordinate 3, but the potential has 0 … 2"),
        ([[0, 1, 2], [-1]], "a coordinate -1"),
        ([[0, 1, 2], []], "factor 1 of the graph depends on no coordinate"),
        ([[0, 1, 1], [2]], "factor 0 of the graph has the coordinate 1 twice"),
        ([[0, 1.5, 2]], "lists of integers"),
        ((np.array([0, 2]), np.array([0, 1, 2])), "not compressed rows"),
        ((np.array([0, 3, 2, 3]), np.array([0, 1, 2])), "must not decrease"),
    ],
)
def test_scopes_that_make_no_graph(scopes, text):
    with pytest.raises(ValueError, match=text):
        FactorGraph(scopes, 3)
    with pytest.raises(ValueError, match="`terms` must have a row for each of the 2 factors"):
        FactorGraph([[0], [1, 2]], 3, terms=[[0]])
    with pytest.raises(ValueError, match="`terms` must have a row for each of the 2 factors, got 3"):
        FactorGraph([[0], [1, 2]], 3, terms=[[0], [1], [2]])


def test_compressed_rows_may_be_empty():
    """A factor without terms, as one of the prior alone."""
    rows = np.array([0, 0, 1]), np.array([0])
    one, other = (FactorGraph([[0], [0, 1]], 2, terms=terms) for terms in (rows, [[], [0]]))
    np.testing.assert_array_equal(one.term_start, other.term_start)
    np.testing.assert_array_equal(one.terms, other.terms)


def changed(what):
    """The graph of `Pairs` with something wrong."""
    graph = from_model(MODELS["pairs"]).to_networkx()
    match what:
        case "side":
            del graph.nodes[("U", 1)]["bipartite"]
        case "index":
            graph.nodes[("x", 2)]["idx"] = graph.nodes[("x", 2)].pop("index")
        case "large":
            graph.nodes[("x", 2)]["index"] = 4
        case "twins":
            graph.nodes[("x", 2)]["index"] = 1
        case "factors":
            graph.add_edge(("U", 0), ("U", 1))
        case "variables":
            graph.add_edge(("x", 0), ("x", 1))
        case "uncovered":
            graph.remove_edge(("U", 6), ("x", 3))
            graph.remove_edge(("U", 2), ("x", 3))
            graph.add_edge(("U", 6), ("x", 0))
        case "empty":
            graph.remove_edges_from([(("U", 1), x) for x in list(graph[("U", 1)])])
        case "unnamed":
            del graph.nodes[("U", 3)]["terms"]
        case "unknown":
            graph.nodes[("U", 3)]["terms"] = [7]
        case "twice":
            graph.nodes[("U", 3)]["terms"] = [3, 2]
        case "lost":
            graph.remove_node(("U", 5))
            graph.add_edge(("U", 1), ("x", 0))
    return graph


@pytest.mark.parametrize(
    "what, text",
    [
        ("side", "needs the attribute `bipartite`: 0 for a factor, 1 for a variable"),
        ("index", r"variable \('x', 2\) of `graph` needs the attribute `index`, its coordinate 0 … 3; got None"),
        ("large", "needs the attribute `index`, its coordinate 0 … 3; got 4"),
        ("twins", "coordinate 1 has two variable nodes"),
        ("factors", "edge between two factors"),
        ("variables", "edge between two variables"),
        ("uncovered", "does not cover the potential's coordinates: 3 in no factor"),
        ("empty", "factor 1 of the graph depends on no coordinate"),
        ("unnamed", "needs the attribute `terms`"),
        ("unknown", "without a gradient: it names factor 7, but the model has factors 0 … 6"),
        ("twice", "factors of the model in more than one node: 2"),
        ("lost", "does not cover the potential: factors of the model in no node: 5"),
    ],
)
def test_networkx_graphs_that_are_refused(what, text):
    with pytest.raises(ValueError, match=text):
        pdmp.LocalBPS(MODELS["pairs"], changed(what))


@pytest.mark.parametrize("graph", [3, "edges", nx.DiGraph(), nx.MultiGraph(), [[0, 1]]])
def test_what_is_no_graph(graph):
    with pytest.raises(TypeError, match="undirected networkx.Graph"):
        pdmp.LocalBPS(MODELS["pairs"], graph)


def test_a_gaussian_needs_factors_for_all_of_its_edges():
    graph = from_model(chain(4)).to_networkx()
    graph.remove_node(("U", 1))
    with pytest.raises(ValueError, match="coordinates 1 and 2 interact, but no factor has both"):
        pdmp.LocalBPS(chain(4), graph)
    with pytest.raises(ValueError, match="`graph` has 4 coordinates, Gaussian has 5"):
        compiled_factors(chain(5), from_model(chain(4)))
    with pytest.raises(ValueError, match="`by` must be one of 'edges', 'rows'"):
        from_model(chain(4), by="columns")


def test_models_that_do_not_say_what_their_factors_are():
    with pytest.raises(ValueError, match=r"SkewNormal does not say what its factors are.*`factors\(\)`"):
        pdmp.LocalBPS(MODELS["skew"])

    class Unlisted(Pairs):
        add_factor_gradient = Derived.add_factor_gradient

    with pytest.raises(ValueError, match="must list 4 factors, one for each of its 3 terms, and one for the prior"):
        pdmp.LocalBPS(Unlisted())
    with pytest.raises(ValueError, match="row 1 of the features is zero"):
        from_model(LinearGaussian([[1.0, 2.0], [0.0, 0.0]], [0.0, 1.0]))


@pytest.mark.parametrize(
    "scopes, text",
    [
        (
            [[0], [1, 2], [2, 3], [0], [1], [2], [3]],
            r"factor 0 of Pairs does not vanish outside its .* 0: .* 1 ",
        ),
        (
            [[0, 1], [1, 2], [2, 3], [0], [1], [2]],
            "factors of Pairs do not add up to its potential: in coordinate 3",
        ),
    ],
)
def test_factors_that_are_not_what_they_claim_are_found_before_a_run(scopes, text):
    process = pdmp.LocalBPS(Pairs(scopes=scopes))
    with pytest.raises(ValueError, match=text):
        pdmp.sample(process, events=10, seed=1, initial=np.ones(4))


def test_a_factor_that_reads_more_than_its_coordinates_is_found_before_a_run():
    class Reads(pdmp.Model):
        def __init__(self):
            super().__init__(dim=2)

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * (x[0] * x[0] + x[1] * x[1])

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0]
            out[1] += x[1]

        @pdmp.compiled
        def add_factor_gradient(self, x, f, out):
            if f == 2:
                out[1] += x[1]
            else:
                out[0] += 0.5 * x[0] + (0.1 * x[1] if f == 0 else -0.1 * x[1])

        def factors(self):
            return [[0], [0], [1]]

    with pytest.raises(ValueError, match="factor 1 of Reads changes with coordinates that are not among its own, 0"):
        pdmp.sample(pdmp.LocalBPS(Reads()), events=10, seed=1, initial=np.ones(2))


def test_a_coordinate_that_is_in_every_factor_is_refused_with_a_way_out():
    n = 10_000
    with pytest.raises(ValueError, match=f"coordinate 0 is in {n} of the {n} factors.*Merge factors"):
        FactorGraph([[0, j] for j in range(1, n + 1)], n + 1).neighbours  # noqa: B018
