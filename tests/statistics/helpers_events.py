"""What `test_events.py` and other test modules share."""

import numpy as np

import pdmp

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)


def integral_of_positive_part(a, b, s):
    """∫₀ˢ max(0, a + b u) du, elementwise."""

    def primitive(value):  # of max(0, ·), with respect to its argument
        return 0.5 * np.maximum(value, 0.0) ** 2

    with np.errstate(divide="ignore", invalid="ignore"):
        slanted = (primitive(a + b * s) - primitive(a)) / b
    return np.where(np.abs(b) < 1e-12, np.maximum(a, 0.0) * s, slanted)


def gaps(path, hazards, kind):
    """Integrated hazard between successive events of `kind`; `hazards[k]` is that of segment k."""
    total = np.cumsum(hazards)
    return np.diff(total[np.flatnonzero(path.kinds == kind)])
