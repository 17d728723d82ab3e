"""Gaussian Markov random fields: normal distributions that are given by a graph of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.targets.gaussian import Gaussian
from pdmp.native.arguments import positive


def GaussianMarkovRandomField(
    graph: Any,
    mean: ArrayLike | None = 0.0,
    tau: float = 1.0,
    kappa: ArrayLike | None = 1.0,
    weight: str | None = "weight",
) -> Gaussian:
    r"""A `Gaussian` with a coordinate for each node of a graph, and neighbours that attract each other.

    U(x) = τ/2 [Σ_{i~j} wᵢⱼ (yᵢ - yⱼ)² + κ² Σᵢ yᵢ²], y = x - mean [1]_: the precision matrix is τ (L + κ² I), L the
    graph's Laplacian. It is sparse, so that a local Zig-Zag, which inverts its clocks exactly, and `pdmp.LocalBPS`,
    with a factor for each edge, pay for a node's neighbours and not for the graph.

    Parameters
    ----------
    graph : networkx.Graph
        Directions are ignored; edges in both directions, and parallel ones, add up.
    mean : float, array_like of shape (nodes,), or dict, default 0.0
        By node, in the order of ``graph.nodes`` unless it is a dict.
    tau : float, default 1.0
        τ, the precision of the whole field.
    kappa : float, default 1.0
        κ > 0; without it the field's level would have no density.
    weight : str, default "weight"
        The edge attribute that holds wᵢⱼ; 1 for edges without it.

    Returns
    -------
    Gaussian
        With the attribute ``nodes``: the list of the nodes, in the order of the coordinates.

    Raises
    ------
    ValueError
        If the graph has no nodes, `tau` or `kappa` is not positive, or negative weights leave the precision matrix
        without positive definiteness.

    References
    ----------
    .. [1] Rue & Held (2005), Gaussian Markov Random Fields, chapter 3.

    Examples
    --------
    >>> import networkx as nx, pdmp
    >>> field = pdmp.models.GaussianMarkovRandomField(nx.grid_2d_graph(3, 3))
    >>> field.dim, field.nodes[1], len(field.neighbours()[1])
    (9, (0, 1), 33)
    """
    from scipy import sparse

    if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
        raise TypeError(f"`graph` must be a networkx graph, got {type(graph).__name__}.")
    tau, kappa = positive("tau", tau), positive("kappa", kappa)
    nodes = list(graph.nodes)
    if not nodes:
        raise ValueError("`graph` must have at least one node.")
    place, d = {node: i for i, node in enumerate(nodes)}, len(nodes)
    edges = [(place[a], place[b], w) for a, b, w in graph.edges(data=weight, default=1.0) if a != b]
    i, j, w = (np.array(column) for column in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
    off = sparse.coo_array((w.astype(float), (i, j)), shape=(d, d)).tocsr()
    off = off + off.T
    laplacian = sparse.diags_array(np.asarray(off.sum(axis=1)).ravel() + kappa**2) - off
    if isinstance(mean, dict):
        missing = [node for node in nodes if node not in mean]
        if missing:
            raise ValueError(f"`mean` has no value for the node {missing[0]!r}.")
        mean = [mean[node] for node in nodes]
    field = Gaussian(mean, sparse.csr_array(tau * laplacian))
    field.nodes = nodes
    return field
