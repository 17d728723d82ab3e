"""A Gaussian that pictures are drawn of."""

import numpy as np

import pdmp

COVARIANCE = np.array([[1.0, 0.6], [0.6, 4.0]])
PLANE = pdmp.models.Gaussian([0.0, 1.0], np.linalg.inv(COVARIANCE))
