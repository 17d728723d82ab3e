"""What `test_moving_regressions.py` and other test modules share."""

import numpy as np

from pdmp.processes.regression_boomerang import RegressionBoomerang


def diagonal_boomerang(model, anchor=None, refresh_rate=1.0, metric="diagonal"):
    """Under whose reference coordinates may be frozen."""
    return RegressionBoomerang(model, anchor, refresh_rate, metric=metric)


class Late:
    """A generator of one exponential number; rows are drawn by another one."""

    def __init__(self, exponential):
        self.exponential, self.rng = exponential, np.random.default_rng(0)

    def standard_exponential(self):
        return self.exponential

    def __getattr__(self, name):
        return getattr(self.rng, name)
