"""Choosing hyper-parameters by a measure of sample quality: successive halving (MAMBA), and grid search."""

from pdmp.native.explanations import explained_functions
from pdmp.native.lazy import given_up as _given_up
from pdmp.tuning.competition import Tuning, grid, grid_search, held_out, heuristic_step, mamba
from pdmp.tuning.halving import schedule, successive_halving

__all__ = [
    "Tuning",
    "grid",
    "grid_search",
    "held_out",
    "heuristic_step",
    "mamba",
    "schedule",
    "successive_halving",
]

explained_functions(globals())

__getattr__ = _given_up(
    __name__, {"failure_bound": "pdmp.tuning.failure_bound was left out: see theorem 1 of Coullon et al. (2023)."}
)
