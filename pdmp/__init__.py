"""Continuous-time Monte Carlo: piecewise-deterministic Markov processes, and fixed-step samplers as a special case."""

from pdmp import diagnostics as diagnostics
from pdmp import gradients as gradients
from pdmp import models as models
from pdmp import validation as validation
from pdmp.engine.run import Run as Run
from pdmp.engine.run import load as load
from pdmp.engine.run import sample as sample
from pdmp.engine.trajectory import Trajectory as Trajectory
from pdmp.errors import SamplingError as SamplingError
from pdmp.factors import graph as graph
from pdmp.models.base import Model as Model
from pdmp.native.classes import compiled as compiled
from pdmp.process import CERTAIN as CERTAIN
from pdmp.process import HORIZON as HORIZON
from pdmp.process import Process as Process
from pdmp.processes import BPS as BPS
from pdmp.processes import SBPS as SBPS
from pdmp.processes import Boomerang as Boomerang
from pdmp.processes import Bounded as Bounded
from pdmp.processes import CoordinateSampler as CoordinateSampler
from pdmp.processes import DirectionalBPS as DirectionalBPS
from pdmp.processes import FactorisedBoomerang as FactorisedBoomerang
from pdmp.processes import ForwardEventChain as ForwardEventChain
from pdmp.processes import GeneralisedBPS as GeneralisedBPS
from pdmp.processes import LipschitzSBPS as LipschitzSBPS
from pdmp.processes import LocalBPS as LocalBPS
from pdmp.processes import StickyBoomerang as StickyBoomerang
from pdmp.processes import StickyBPS as StickyBPS
from pdmp.processes import StickyZigZag as StickyZigZag
from pdmp.processes import ZigZag as ZigZag

#: Imported when they are first asked for, so that ``import pdmp`` stays light.
_LAZY = {
    "compare": "comparison",
    "reference": "comparison",
    "comparison": None,
    "data": None,
    "plots": None,
    "tuning": None,
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'pdmp' has no attribute {name!r}")
    import importlib

    if _LAZY[name] is None:
        return importlib.import_module(f"pdmp.{name}")
    return getattr(importlib.import_module(f"pdmp.{_LAZY[name]}"), name)


def __dir__():
    return sorted([*globals(), *_LAZY])
