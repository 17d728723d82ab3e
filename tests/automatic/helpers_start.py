"""Targets of which the starts and the modes are known."""

import math

import numpy as np

import pdmp

MEAN = np.array([300.0, -2.0, 0.5])
PRECISION = np.array([[2e-4, 0.01, 0.0], [0.01, 1.5, 0.3], [0.0, 0.3, 50.0]])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)


def rng(seed=0):
    return np.random.default_rng(seed)


def function(potential, gradient, dim=2, initial=None):
    return pdmp.models.from_function(
        lambda x: (potential(*x), np.array(gradient(*x))), dim, initial=initial, check_gradient=False
    )


def two_modes(weight, apart=6.0):
    """Two standard normal laws on either side of the origin, the left one with exp(weight) times the mass."""

    def parts(a):
        left, right = weight - 0.5 * (a + apart) ** 2, -0.5 * (a - apart) ** 2
        top = max(left, right)
        return top + math.log(math.exp(left - top) + math.exp(right - top)), left, right

    def gradient(a, b):
        total, left, right = parts(a)
        return math.exp(left - total) * (a + apart) + math.exp(right - total) * (a - apart), b

    return function(lambda a, b: 0.5 * b * b - parts(a)[0], gradient, initial=[0.1, 0.0])
