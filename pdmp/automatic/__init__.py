"""From a model to a process that is ready to sample it: where chains start, and its metric.

`pdmp.sample` gets `preparing` by way of `pdmp.engine.run.automatic`, as the engine imports no sampler.
"""

from pdmp.automatic import preparing
from pdmp.automatic.preparing import auto
from pdmp.automatic.pymc_sampler import PyMCSampler
from pdmp.automatic.tempering.answers import evidence
from pdmp.engine import run

run.automatic = preparing

__all__ = [
    "PyMCSampler",
    "auto",
    "evidence",
]
