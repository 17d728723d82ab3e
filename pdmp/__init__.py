"""Continuous-time Monte Carlo: piecewise-deterministic Markov processes, and fixed-step samplers as a special case."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pdmp import (
    automatic,
    diagnostics,
    engine,
    errors,
    expressions,
    factors,
    flow,
    gradients,
    interfaces,
    models,
    native,
    process,
    processes,
    thinning,
    validation,
)
from pdmp.automatic import auto
from pdmp.engine.run import Run, load, sample
from pdmp.engine.trajectory import Trajectory
from pdmp.errors import SamplingError
from pdmp.expressions import Parameters
from pdmp.factors import graph
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
    StickyBoomerang,
    StickyBPS,
    StickyZigZag,
    ZigZag,
)

if TYPE_CHECKING:
    from pdmp import cli, comparison, data, formulas, plots, shards, tuning
    from pdmp.comparison import compare, reference
    from pdmp.formulas import regression

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
    "Model",
    "Parameters",
    "Process",
    "Run",
    "SamplingError",
    "StickyBPS",
    "StickyBoomerang",
    "StickyZigZag",
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

#: Imported at their first use, so that ``import pdmp`` is fast: modules, and functions with their modules.
_LAZY = {
    "cli": None,
    "compare": "comparison",
    "comparison": None,
    "data": None,
    "formulas": None,
    "plots": None,
    "reference": "comparison",
    "regression": "formulas",
    "shards": None,
    "tuning": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pdmp' has no attribute {name!r}")
    if _LAZY[name] is None:
        return importlib.import_module(f"pdmp.{name}")
    return getattr(importlib.import_module(f"pdmp.{_LAZY[name]}"), name)


def _overview(*args: Any) -> Any:
    return importlib.import_module("pdmp.plots").overview(*args)


Run._plot = staticmethod(_overview)  # which the engine does not know


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
