"""Continuous-time Monte Carlo: piecewise-deterministic Markov processes, and fixed-step samplers as a special case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba  # noqa: F401 - first of all: deep in a chain of imports Python 3.11 takes four times as long for it

from pdmp.native.lazy import lazily as _lazily
from pdmp.processes import RENAMED as _RENAMED

if TYPE_CHECKING:
    from pdmp import automatic as automatic
    from pdmp import cli as cli
    from pdmp import comparison as comparison
    from pdmp import data as data
    from pdmp import diagnostics as diagnostics
    from pdmp import engine as engine
    from pdmp import errors as errors
    from pdmp import expressions as expressions
    from pdmp import factors as factors
    from pdmp import flow as flow
    from pdmp import formulas as formulas
    from pdmp import gradients as gradients
    from pdmp import interfaces as interfaces
    from pdmp import models as models
    from pdmp import native as native
    from pdmp import plots as plots
    from pdmp import process as process
    from pdmp import processes as processes
    from pdmp import shards as shards
    from pdmp import thinning as thinning
    from pdmp import tuning as tuning
    from pdmp import validation as validation
    from pdmp.automatic import auto as auto
    from pdmp.automatic import evidence as evidence
    from pdmp.automatic.sampling import sample as sample
    from pdmp.comparison import compare as compare
    from pdmp.comparison import reference as reference
    from pdmp.engine.result import Run as Run
    from pdmp.engine.run import load as load
    from pdmp.engine.trajectory import Trajectory as Trajectory
    from pdmp.errors import SamplingError as SamplingError
    from pdmp.expressions import Parameters as Parameters
    from pdmp.factors import graph as graph
    from pdmp.formulas import regression as regression
    from pdmp.metric import Metric as Metric
    from pdmp.models import families as families
    from pdmp.models.base import Model as Model
    from pdmp.models.families import Family as Family
    from pdmp.models.sums_of_terms import terms as terms
    from pdmp.native.classes import compiled as compiled
    from pdmp.process import CERTAIN as CERTAIN
    from pdmp.process import HORIZON as HORIZON
    from pdmp.process import Process as Process
    from pdmp.processes import *

__version__ = "0.1.0"

#: Imported at their first use, so that ``import pdmp`` is fast.
__getattr__, __dir__, __all__ = _lazily(
    __name__,
    {
        **{f"pdmp.{room}": "." for room in ("cli", "data", "diagnostics", "engine", "flow", "gradients", "interfaces")},
        **{f"pdmp.{room}": "." for room in ("models", "native", "plots", "shards", "thinning", "tuning", "validation")},
        "pdmp.automatic": ". auto evidence",
        "pdmp.automatic.sampling": "sample",
        "pdmp.comparison": ". compare reference",
        "pdmp.engine.result": "Run",
        "pdmp.engine.run": "load",
        "pdmp.engine.trajectory": "Trajectory",
        "pdmp.errors": ". SamplingError",
        "pdmp.expressions": ". Parameters",
        "pdmp.factors": ". graph",
        "pdmp.formulas": ". regression",
        "pdmp.metric": "Metric",
        "pdmp.models.base": "Model",
        "pdmp.models.families": ". Family",
        "pdmp.models.sums_of_terms": "terms",
        "pdmp.native.classes": "compiled",
        "pdmp.process": ". CERTAIN HORIZON Process",
        "pdmp.processes": ". BPS HMC SBPS Boomerang Bounded CoordinateSampler DirectionalBPS FactorisedBoomerang "
        "ForwardEventChain GeneralisedBPS LipschitzSBPS LocalBPS Sticky ZigZag",
    },
    _RENAMED,
)
