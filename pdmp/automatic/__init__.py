"""From a model to a process that is ready to sample it: where chains start, and its metric."""

from pdmp.automatic.preparing import auto
from pdmp.automatic.tempering.answers import evidence
from pdmp.native.lazy import given_up as _given_up

__all__ = [
    "auto",
    "evidence",
]

__getattr__ = _given_up(
    __name__,
    {
        "PyMCSampler": "pdmp.automatic.PyMCSampler was left out, as no release of PyMC takes samplers: "
        "pdmp.sample(model).to_arviz() gives the same."
    },
)
