"""Adam: gradient ascent whose steps are scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import numpy as np


def maximise(gradient, v, iterations, rate):
    """Adam for a maximum, from `v`.

    Kingma & Ba (2015), Adam: a method for stochastic optimization, ICLR, algorithm 1, with the published constants but
    for the step `rate`.
    """
    first, second, v = np.zeros_like(v), np.zeros_like(v), v.copy()
    for k in range(1, iterations + 1):
        g = gradient(v)
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g * g
        v += rate * (first / (1.0 - 0.9**k)) / (np.sqrt(second / (1.0 - 0.999**k)) + 1e-8)
    return v
