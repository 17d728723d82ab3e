"""Samplers with a fixed time step and stochastic gradients, as processes of `pdmp`.

=========================================================  ====================================================
`GD`, `SGD`                                                descent to the mode
`SGLD`, `SGBD`                                             overdamped: Langevin, Barker
`SGHMC`, `BAOAB`, `UBU`                                    underdamped Langevin, by several integrators
`SGNHT`, `MSGNHT`, `BADODAB`                               with thermostats, for gradient noise of unknown size
`RichardsonRomberg`, `SGRRLD`, `SGRRHMC`                   extrapolation of two coupled chains
`SGZZ`, `SGBPS`, `ZigZagSplitting`, `BPSSplitting`         discretised piecewise-deterministic processes
`MALA`, `Barker`                                           with a Metropolis correction, for exact gradients
`schedules`, `preconditioners`                             of steps, and of Langevin dynamics
`Ticking`, `Brownian`, `finite`                            for samplers of your own: the bases, and a check
=========================================================  ====================================================
"""

from discrete import preconditioners, schedules
from discrete.badodab import BADODAB
from discrete.baoab import BAOAB
from discrete.barker import Barker, breaking_point
from discrete.mala import MALA
from discrete.msgnht import MSGNHT
from discrete.richardson_romberg import SGRRHMC, SGRRLD, RichardsonRomberg
from discrete.sgbd import SGBD
from discrete.sgbps import SGBPS
from discrete.sgd import GD, SGD
from discrete.sghmc import SGHMC
from discrete.sgld import SGLD
from discrete.sgnht import SGNHT
from discrete.sgzz import SGZZ
from discrete.splitting import BPSSplitting, ZigZagSplitting
from discrete.tick import Brownian, Ticking, finite
from discrete.ubu import UBU
from pdmp.engine.preflight import trust

__all__ = [
    "BADODAB",
    "BAOAB",
    "GD",
    "MALA",
    "MSGNHT",
    "SGBD",
    "SGBPS",
    "SGD",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SGRRHMC",
    "SGRRLD",
    "SGZZ",
    "UBU",
    "BPSSplitting",
    "Barker",
    "Brownian",
    "RichardsonRomberg",
    "Ticking",
    "ZigZagSplitting",
    "breaking_point",
    "finite",
    "preconditioners",
    "schedules",
]

trust(__name__)  # the tests of this package call every method of its classes
