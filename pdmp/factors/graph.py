r"""Factor graphs: which coordinates each factor U_f of a potential U = Σ U_f depends on.

For users they are bipartite networkx graphs, for the event loop arrays of compressed rows.

==============  ==============================  =====================================================================
node            attribute                       meaning
==============  ==============================  =====================================================================
factor          ``bipartite=0``                 networkx's convention for the one side
..              ``terms``                       an integer or a list: the factors of the model, by number, whose sum
                                                this node is. Not for a `Gaussian`, whose precision matrix is divided
                                                among whatever factors there are
variable        ``bipartite=1``                 the other side
..              ``index``                       the coordinate j of x, 0 … dim - 1
==============  ==============================  =====================================================================

An edge says that the factor depends on the coordinate. ``from_model(model).to_networkx()`` is the graph that a model
stands for; merging two of its factor nodes gives one factor with one clock, which bounces less often and costs more for
each event.

A model says what its factors are by a method ``factors()``, see `pdmp.Model`; those of a Gaussian are the non-zeros of
its precision matrix.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pdmp.native.arguments import one_of

if TYPE_CHECKING:
    import networkx as nx

    from pdmp.models.base import Model

    Lists = Sequence[Sequence[int]] | tuple[np.ndarray, np.ndarray]  # lists of numbers, or compressed rows

#: Largest number of pairs of neighbouring factors for which the lists of neighbours are made.
LARGEST = 50_000_000


class FactorGraph:
    """A factor graph in compressed rows.

    Parameters
    ----------
    scopes : sequence of sequences of int, or a pair of arrays (indptr, indices)
        The coordinates that each factor depends on.
    dim : int
        Number of coordinates.
    terms : sequence of sequences of int, or a pair of arrays, optional
        The factors of the model whose sum each factor is; factor f itself when omitted.

    Attributes
    ----------
    indptr, indices : ndarray of int64, shapes (factors + 1,) and (m,)
        The coordinates of factor f are ``indices[indptr[f]:indptr[f + 1]]``, ascending.
    term_start, terms : ndarray of int64
        The model's factors whose sum is factor f, likewise: ``terms[term_start[f]:term_start[f + 1]]``.

    Raises
    ------
    ValueError
        If a coordinate is out of range or twice in a factor, a factor has no coordinate, or a coordinate no factor:
        the graph then does not cover the coordinates of the potential. If `terms` has another length.

    Examples
    --------
    >>> from pdmp.factors import FactorGraph
    >>> FactorGraph([[0, 1], [1, 2]], dim=3).neighbours[1]  # of factors 0 and 1, one after the other
    array([0, 1, 0, 1])
    """

    def __init__(self, scopes: Lists, dim: int, terms: Lists | None = None):
        self.dim = int(dim)
        self.indptr, self.indices = _compressed(scopes, "scopes")
        size = len(self)
        owner = np.repeat(np.arange(size), np.diff(self.indptr))
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < self.dim:
            wrong = self.indices[(self.indices < 0) | (self.indices >= self.dim)][0]
            raise ValueError(f"the factor graph has a coordinate {wrong}, but the potential has 0 … {self.dim - 1}.")
        if np.any(np.diff(self.indptr) == 0):
            f = int(np.argmin(np.diff(self.indptr)))
            raise ValueError(f"factor {f} of the graph depends on no coordinate.")
        order = np.lexsort((self.indices, owner))
        self.indices = self.indices[order]
        twice = (np.diff(self.indices) == 0) & (np.diff(owner) == 0)
        if np.any(twice):
            k = int(np.argmax(twice))
            raise ValueError(f"factor {owner[k]} of the graph has the coordinate {self.indices[k]} twice.")
        missing = np.setdiff1d(np.arange(self.dim), self.indices)
        if len(missing):
            raise ValueError(
                f"the factor graph does not cover the potential's coordinates: {some_of(missing)} in no factor. Give "
                "every coordinate a factor; a flat one has no density."
            )
        if terms is None:
            self.term_start, self.terms = np.arange(size + 1), np.arange(size)
        else:
            self.term_start, self.terms = _compressed(terms, "terms")
            if len(self.term_start) != size + 1:
                raise ValueError(
                    f"`terms` must have a row for each of the {size} factors, got {len(self.term_start) - 1}."
                )

    def __len__(self):
        return len(self.indptr) - 1

    def __repr__(self):
        return f"FactorGraph({len(self)} factors, {self.dim} coordinates, {len(self.indices)} edges)"

    def scope(self, f: int) -> np.ndarray:
        """The coordinates that factor f depends on, ascending."""
        return self.indices[self.indptr[f] : self.indptr[f + 1]]

    @cached_property
    def _matrix(self):
        from scipy import sparse

        ones = np.ones(len(self.indices), np.int8)
        return sparse.csr_array((ones, self.indices, self.indptr), shape=(len(self), self.dim))

    @cached_property
    def factors_of(self) -> tuple[np.ndarray, np.ndarray]:
        """The factors that depend on each coordinate: (indptr, indices)."""
        transposed = self._matrix.T.tocsr()
        transposed.sort_indices()
        return transposed.indptr.astype(np.int64), transposed.indices.astype(np.int64)

    @cached_property
    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """The factors that share a coordinate with each factor, itself included, ascending: (indptr, indices).

        Raises
        ------
        ValueError
            When some coordinates are in so many factors that these lists would fill the memory.
        """
        each = np.diff(self.factors_of[0]).astype(float)
        if np.sum(each**2) > LARGEST:
            j = int(np.argmax(each))
            raise ValueError(
                f"coordinate {j} is in {int(each[j])} of the {len(self)} factors: at each bounce all of their clocks "
                "would be drawn anew. Merge factors (`terms` of a node, see pdmp.graph), or give a regression without "
                "`graph`, so that its data share one clock."
            )
        ones = self._matrix.astype(np.int32)
        product = (ones @ ones.T).tocsr()
        product.sort_indices()
        return product.indptr.astype(np.int64), product.indices.astype(np.int64)

    def to_networkx(self) -> nx.Graph:
        """The bipartite `networkx.Graph`, with nodes ("U", f) and ("x", j); see the module's text."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from((("x", j), {"bipartite": 1, "index": j}) for j in range(self.dim))
        for f in range(len(self)):
            terms = self.terms[self.term_start[f] : self.term_start[f + 1]].tolist()
            graph.add_node(("U", f), bipartite=0, terms=terms)
            graph.add_edges_from((("U", f), ("x", j)) for j in self.scope(f).tolist())
        return graph


def from_networkx(graph: nx.Graph, dim: int, factors: int | None = None) -> FactorGraph:
    """A `FactorGraph` from a bipartite networkx graph.

    Parameters
    ----------
    graph : networkx.Graph
        With the nodes' attributes of the module's text.
    dim : int
        Number of coordinates of the potential.
    factors : int, optional
        Number of factors of the model, each of which must be in exactly one factor node; None when the nodes need no
        ``terms``.

    Returns
    -------
    FactorGraph
        Its factors are in the order of the factor nodes in `graph`.

    Raises
    ------
    TypeError
        If `graph` is not an undirected networkx graph.
    ValueError
        For a node without its attributes, an edge between two factors or two variables, coordinates that are missing,
        repeated or too large, and factors of the model that are missing, repeated or without a gradient.

    Examples
    --------
    >>> import networkx, pdmp
    >>> graph = networkx.Graph()
    >>> for j in range(3):
    ...     graph.add_node(f"x{j}", bipartite=1, index=j)
    >>> for f in range(2):
    ...     graph.add_node(f"f{f}", bipartite=0, terms=[f])
    ...     graph.add_edges_from([(f"f{f}", f"x{f}"), (f"f{f}", f"x{f + 1}")])
    >>> pdmp.factors.from_networkx(graph, dim=3).scope(1)
    array([1, 2])
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise TypeError(f"`graph` must be an undirected networkx.Graph, got {type(graph).__name__}.")
    index, nodes = {}, []
    for node, attributes in graph.nodes(data=True):
        side = attributes.get("bipartite")
        if side not in (0, 1):
            raise ValueError(
                f"node {node!r} of `graph` needs the attribute `bipartite`: 0 for a factor, 1 for a variable; it has "
                f"{attributes}."
            )
        if side == 0:
            nodes.append(node)
            continue
        j = attributes.get("index")
        if not _is_index(j) or not 0 <= j < dim:
            raise ValueError(
                f"variable {node!r} of `graph` needs the attribute `index`, its coordinate 0 … {dim - 1}; got {j!r}."
            )
        if j in index.values():
            raise ValueError(f"coordinate {j} has two variable nodes in `graph`, {node!r} is the second.")
        index[node] = int(j)
    for node, other in graph.edges:
        if (node in index) == (other in index):
            sides = "variables" if node in index else "factors"
            raise ValueError(f"`graph` has an edge between two {sides}, {node!r} and {other!r}: it is not bipartite.")
    scopes, terms = [], []
    for node in nodes:
        scopes.append(sorted(index[other] for other in graph[node]))
        if factors is not None:
            terms.append(_terms_of(node, graph.nodes[node].get("terms"), factors))
    if factors is None:
        return FactorGraph(scopes, dim)
    given = np.bincount([t for row in terms for t in row], minlength=factors)
    if np.any(given > 1):
        raise ValueError(
            f"`graph` has factors of the model in more than one node: {some_of(np.flatnonzero(given > 1))}."
        )
    if np.any(given == 0):
        missing = some_of(np.flatnonzero(given == 0))
        raise ValueError(f"`graph` does not cover the potential: factors of the model in no node: {missing}.")
    return FactorGraph(scopes, dim, terms)


def _is_index(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _terms_of(node, terms, factors):
    """The model's factors in a node, checked."""
    rows = [terms] if _is_index(terms) else terms
    if not isinstance(rows, (list, tuple, np.ndarray)) or len(rows) == 0 or not all(_is_index(t) for t in rows):
        raise ValueError(
            f"factor {node!r} of `graph` needs the attribute `terms`, a list of the model's factors 0 … {factors - 1} "
            f"whose sum it is; got {terms!r}."
        )
    for t in rows:
        if not 0 <= t < factors:
            raise ValueError(
                f"factor {node!r} of `graph` is without a gradient: it names factor {t}, but the model has factors "
                f"0 … {factors - 1}."
            )
    return [int(t) for t in rows]


def from_model(model: Model, by: str = "edges") -> FactorGraph:
    """The factor graph that a model stands for.

    Parameters
    ----------
    model : pdmp.Model
        A `Gaussian`, or one with a method ``factors()``.
    by : {"edges", "rows"}, default "edges"
        For a Gaussian: a factor for each off-diagonal non-zero of the precision matrix, or for each of its rows (fewer,
        larger factors); a coordinate that is independent of all others has one of its own either way.

    Returns
    -------
    FactorGraph

    Raises
    ------
    ValueError
        For a model that does not say what its factors are.

    Examples
    --------
    >>> import pdmp
    >>> chain = pdmp.models.Gaussian([0.0, 0.0, 0.0], [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    >>> graph = pdmp.graph.from_model(chain)
    >>> graph
    FactorGraph(2 factors, 3 coordinates, 4 edges)
    >>> graph.scope(1)
    array([1, 2])
    """
    from pdmp.models.targets.gaussian import Gaussian

    if isinstance(model, Gaussian):
        return _of_precision(model, by)
    scopes = model.factors()
    if scopes is None:
        raise ValueError(
            f"{type(model).__name__} does not say what its factors are: give it a method `factors()` that returns the "
            "coordinates of each of its terms, see pdmp.Model."
        )
    graph = FactorGraph(scopes, model.dim)
    least = model.n_data + int(model.has("add_prior_gradient"))
    if not model.has("add_factor_gradient") and len(graph) != least:
        prior = ", and one for the prior, the last" if model.has("add_prior_gradient") else ""
        raise ValueError(
            f"`factors()` of {type(model).__name__} must list {least} factors, one for each of its {model.n_data} "
            f"terms{prior}, got {len(graph)}. With others it needs its own `add_factor_gradient`."
        )
    return graph


def _of_precision(model, by):
    d = model.dim
    one_of("by", by, ("edges", "rows"))
    if by == "rows":
        return FactorGraph((model.indptr, model.indices), d)
    rows = np.repeat(np.arange(d), np.diff(model.indptr))
    upper = rows < model.indices
    i, j = rows[upper], model.indices[upper]
    alone = np.setdiff1d(np.arange(d), np.concatenate([i, j]))
    sizes = np.concatenate([np.full(len(i), 2), np.ones(len(alone), np.int64)])
    # Factors in the order of their first coordinate, so that neighbours lie close together in memory.
    first = np.concatenate([i, alone])
    order = np.argsort(first, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(sizes[order])])
    indices = np.empty(indptr[-1], np.int64)
    indices[indptr[:-1]] = first[order]
    second = np.concatenate([j, np.full(len(alone), -1)])[order]
    pairs = second >= 0
    indices[indptr[:-1][pairs] + 1] = second[pairs]
    return FactorGraph((indptr, indices), d)


def _compressed(rows, name):
    """Compressed rows (indptr, indices), from lists of rows or from such a pair."""
    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[0], np.ndarray):
        indptr, indices = (np.asarray(part, np.int64) for part in rows)
        if indptr.ndim != 1 or len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError(f"`{name}` are not compressed rows: indptr must run from 0 to {len(indices)}.")
        if np.any(np.diff(indptr) < 0):
            raise ValueError(f"`{name}` are not compressed rows: indptr must not decrease.")
        return indptr, indices.copy()
    rows = [np.asarray(row) for row in rows]
    if any(row.ndim != 1 or (len(row) and row.dtype.kind not in "iu") for row in rows):
        raise ValueError(f"`{name}` must be lists of integers, one for each factor.")
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.concatenate(rows).astype(np.int64) if indptr[-1] else np.zeros(0, np.int64)
    return indptr, indices


def some_of(values):
    """The first five of `values`, and how many more, as text."""
    shown = ", ".join(str(int(k)) for k in values[:5])
    return shown + (f" and {len(values) - 5} more" if len(values) > 5 else "")
