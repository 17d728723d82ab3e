"""Positive definite matrices: checks, and the Cholesky factor of a sparse one, by SuperLU of scipy."""

from __future__ import annotations

import numpy as np

#: A pivot smaller than this share of its diagonal entry is a zero and its rounding: the matrix is singular.
ROUNDING = 4.0 * np.finfo(float).eps


def symmetric(name, matrix):
    """The symmetric part of a matrix, dense or sparse, or a `ValueError` where that is another one."""
    difference = abs(matrix - matrix.T).max()
    if difference > 1e-8 * abs(matrix).max():
        raise ValueError(f"`{name}` must be symmetric; it differs from its transpose by up to {difference:.3g}.")
    return 0.5 * (matrix + matrix.T)


def is_definite(matrix: np.ndarray, rounding: float = ROUNDING) -> bool:
    """Whether a symmetric matrix is positive definite, and not by the `rounding` of its entries alone."""
    try:
        return bool(np.all(np.linalg.cholesky(matrix).diagonal() ** 2 > rounding * matrix.diagonal()))
    except np.linalg.LinAlgError:
        return False


def definite(name, matrix, rounding=ROUNDING):
    """The symmetric part of a dense matrix, positive definite, or a `ValueError`."""
    matrix = symmetric(name, matrix)
    if not is_definite(matrix, rounding):
        low = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(f"`{name}` must be positive definite; its smallest eigenvalue is {low:.3g}.")
    return matrix


def factor_of(name, matrix):
    """`factorised` of a matrix that must be positive definite, or a `ValueError`."""
    found = factorised(matrix)
    if found is None:
        raise ValueError(f"`{name}` must be positive definite; a pivot of its factorisation is not positive.")
    return found


def factorised(matrix):
    """The Cholesky factor R of a symmetric sparse matrix Q, P Q Pᵀ = R Rᵀ, in an order P in which it is sparse.

    Order, and starts, columns and values of R in compressed rows, as the fields of `pdmp.metric.Sparse`; None where Q
    is not positive definite, beyond rounding. Pivots stay on the diagonal.
    """
    from scipy import sparse
    from scipy.sparse import linalg

    matrix = sparse.csc_matrix(matrix)
    try:
        found = linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        return None
    if not np.array_equal(found.perm_r, found.perm_c):  # a zero on the diagonal was stepped around
        return None
    order, pivots = np.argsort(found.perm_r), found.U.diagonal()
    # What is left of each coordinate, those before it given, is about rounding's size of a singular matrix.
    if not np.all(pivots > ROUNDING * matrix.diagonal()[order]):
        return None
    root = (found.L @ sparse.diags(np.sqrt(pivots))).tocsr()
    root.sort_indices()
    return order.astype(np.int64), root.indptr.astype(np.int64), root.indices.astype(np.int64), root.data
