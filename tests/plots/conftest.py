"""Small runs that pictures are drawn of.

Where a path is given this file is read before `pytest_configure` says whether numba compiles, so imports are inside.
"""

import pytest


@pytest.fixture(scope="package")
def plane():
    """Two chains in two dimensions, with two kinds of event."""
    import pdmp
    from tests.plots.helpers_plane import PLANE

    return pdmp.sample(pdmp.BPS(PLANE, refresh_rate=0.5), events=150, chains=2, seed=1, warmup=0.2)


@pytest.fixture(scope="package")
def line():
    """One chain in one dimension."""
    import pdmp

    return pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.5], [2.0])), events=120, seed=2)


@pytest.fixture(scope="package")
def wide():
    """Two chains of a local process in fifty dimensions, with names."""
    import numpy as np

    import pdmp
    from tests.toys import Walls

    return pdmp.sample(Walls(50), initial=np.zeros(50), events=3_000, chains=2, seed=3)


@pytest.fixture(scope="package")
def ticks():
    """Two chains that stand still between events."""
    import discrete
    import pdmp
    from tests.plots.helpers_plane import PLANE

    return pdmp.sample(discrete.SGLD(PLANE, step=0.1), steps=300, chains=2, seed=4)
