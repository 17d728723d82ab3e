"""What `test_regression_boomerang.py` and other test modules share."""

import numpy as np


def state_at(process, x, v):
    state = process.begin(x, np.random.default_rng(0))
    state.v[:] = v
    return state


def along(process, x, v, i, loss=None):
    """v·Rᵢ(x)."""
    loss = np.zeros(3) if loss is None else loss
    return process.native.model.remainder_along(process.anchor, x, v, i, process.model.scratch(), loss)


def remainders(process, x):
    """Rᵢ(x) of each row, (N, d), and K(x)."""
    native, d = process.native, process.dim
    found, known, loss = np.zeros((process.model.n_data, d)), np.zeros(d), np.zeros(3)
    for i, out in enumerate(found):
        along(process, x, np.zeros(d), i, loss)
        native.model.add_remainder(i, loss, out)
    native.known(x, known)
    return found, known
