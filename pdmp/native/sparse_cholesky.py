"""The Cholesky factor of a sparse matrix, by SuperLU of scipy, whose pivots stay on the diagonal here."""

from __future__ import annotations

import numpy as np

#: A pivot smaller than this share of its diagonal entry is a zero and its rounding: the matrix is singular.
ROUNDING = 4.0 * np.finfo(float).eps


def factorised(matrix):
    """The Cholesky factor R of a symmetric sparse matrix Q, P Q Pᵀ = R Rᵀ, in an order P in which it is sparse.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array, shape (d, d)

    Returns
    -------
    tuple of ndarray, or None
        Order, and starts, columns and values of R in compressed rows, as the fields of `pdmp.metric.Sparse`. None where
        Q is not positive definite, beyond rounding.
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
