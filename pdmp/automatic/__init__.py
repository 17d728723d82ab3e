"""From a model to a process that is ready to sample it: where chains start, and its metric."""

from pdmp.automatic.preparing import auto
from pdmp.automatic.pymc_sampler import PyMCSampler
from pdmp.automatic.tempering.answers import evidence

__all__ = [
    "PyMCSampler",
    "auto",
    "evidence",
]
