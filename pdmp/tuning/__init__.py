"""Choosing hyper-parameters: successive halving by a measure of sample quality (MAMBA), and grid search."""

from pdmp.tuning.competition import Tuning as Tuning
from pdmp.tuning.competition import grid as grid
from pdmp.tuning.competition import grid_search as grid_search
from pdmp.tuning.competition import heuristic_step as heuristic_step
from pdmp.tuning.competition import mamba as mamba
from pdmp.tuning.halving import failure_bound as failure_bound
from pdmp.tuning.halving import schedule as schedule
from pdmp.tuning.halving import successive_halving as successive_halving
