"""What `test_discretised_pdmps.py` and other test modules share."""

import math

from scipy import special


def skew(x):
    """∇U of the skew-normal distribution with shape 3."""
    z = 3.0 * x
    return x - 3.0 * math.sqrt(2.0 / math.pi) / special.erfcx(-z / math.sqrt(2.0))
