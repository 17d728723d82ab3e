"""What `test_models.py` and other test modules share."""

import numpy as np

from pdmp.native.classes import entry


@entry
def both(model, x, out):
    model.add_gradient(x, out)
    return model.total_potential(x)


def compiled_both(model, x):
    out = np.zeros(model.dim)
    return both(model.native, x, out), out
