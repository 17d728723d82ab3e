"""Small runs that pictures are drawn of."""

import numpy as np
import pytest

import discrete
import pdmp
from tests.toys import Walls

COVARIANCE = np.array([[1.0, 0.6], [0.6, 4.0]])
PLANE = pdmp.models.Gaussian([0.0, 1.0], np.linalg.inv(COVARIANCE))


@pytest.fixture(scope="package")
def plane():
    """Two chains in two dimensions, with two kinds of event."""
    return pdmp.sample(pdmp.BPS(PLANE, refresh_rate=0.5), events=150, chains=2, seed=1, warmup=0.2)


@pytest.fixture(scope="package")
def line():
    """One chain in one dimension."""
    return pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.5], [2.0])), events=120, seed=2)


@pytest.fixture(scope="package")
def wide():
    """Two chains of a local process in fifty dimensions, with names."""
    return pdmp.sample(Walls(50), initial=np.zeros(50), events=3_000, chains=2, seed=3)


@pytest.fixture(scope="package")
def ticks():
    """Two chains that stand still between events."""
    return pdmp.sample(discrete.SGLD(PLANE, step=0.1), steps=300, chains=2, seed=4)
