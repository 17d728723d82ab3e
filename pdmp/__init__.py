"""Continuous-time Monte Carlo: piecewise-deterministic Markov processes, and fixed-step samplers as a special case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba  # noqa: F401 - first of all: deep in a chain of imports Python 3.11 takes four times as long for it

from pdmp.native.lazy import lazily as _lazily
from pdmp.processes import RENAMED as _RENAMED

if TYPE_CHECKING:
    from pdmp import (
        automatic,
        cli,
        comparison,
        data,
        diagnostics,
        engine,
        errors,
        expressions,
        factors,
        flow,
        formulas,
        gradients,
        interfaces,
        models,
        native,
        plots,
        process,
        processes,
        shards,
        thinning,
        tuning,
        validation,
    )
    from pdmp.automatic import auto, evidence
    from pdmp.automatic.sampling import sample
    from pdmp.comparison import compare, reference
    from pdmp.engine.result import Run
    from pdmp.engine.run import load
    from pdmp.engine.trajectory import Trajectory
    from pdmp.errors import SamplingError
    from pdmp.expressions import Parameters
    from pdmp.factors import graph
    from pdmp.formulas import regression
    from pdmp.metric import Metric
    from pdmp.models import families
    from pdmp.models.base import Model
    from pdmp.models.families import Family
    from pdmp.models.sums_of_terms import terms
    from pdmp.native.classes import compiled
    from pdmp.process import CERTAIN, HORIZON, Process
    from pdmp.processes import (
        BPS,
        HMC,
        SBPS,
        Boomerang,
        Bounded,
        CoordinateSampler,
        DirectionalBPS,
        FactorisedBoomerang,
        ForwardEventChain,
        GeneralisedBPS,
        LipschitzSBPS,
        LocalBPS,
        Sticky,
        ZigZag,
    )

__version__ = "0.1.0"

__all__ = [
    "BPS",
    "CERTAIN",
    "HMC",
    "HORIZON",
    "SBPS",
    "Boomerang",
    "Bounded",
    "CoordinateSampler",
    "DirectionalBPS",
    "FactorisedBoomerang",
    "Family",
    "ForwardEventChain",
    "GeneralisedBPS",
    "LipschitzSBPS",
    "LocalBPS",
    "Metric",
    "Model",
    "Parameters",
    "Process",
    "Run",
    "SamplingError",
    "Sticky",
    "Trajectory",
    "ZigZag",
    "auto",
    "automatic",
    "cli",
    "compare",
    "comparison",
    "compiled",
    "data",
    "diagnostics",
    "engine",
    "errors",
    "evidence",
    "expressions",
    "factors",
    "families",
    "flow",
    "formulas",
    "gradients",
    "graph",
    "interfaces",
    "load",
    "models",
    "native",
    "plots",
    "process",
    "processes",
    "reference",
    "regression",
    "sample",
    "shards",
    "terms",
    "thinning",
    "tuning",
    "validation",
]

#: Imported at their first use, so that ``import pdmp`` is fast.
__getattr__, __dir__ = _lazily(
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
