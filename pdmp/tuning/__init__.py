"""Choosing hyper-parameters by a measure of sample quality: successive halving (MAMBA), and grid search."""

from pdmp.native.explanations import explained_functions
from pdmp.tuning.competition import Tuning, grid, grid_search, held_out, heuristic_step, mamba
from pdmp.tuning.halving import failure_bound, schedule, successive_halving

__all__ = [
    "Tuning",
    "failure_bound",
    "grid",
    "grid_search",
    "held_out",
    "heuristic_step",
    "mamba",
    "schedule",
    "successive_halving",
]

explained_functions(globals())
