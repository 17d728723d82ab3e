"""The continuous-time processes, one file each."""

from pdmp.processes.boomerang import Boomerang
from pdmp.processes.bounded import Bounded
from pdmp.processes.bps import BPS
from pdmp.processes.coordinate_sampler import CoordinateSampler
from pdmp.processes.directional_bps import DirectionalBPS
from pdmp.processes.factorised_boomerang import FactorisedBoomerang
from pdmp.processes.forward_event_chain import ForwardEventChain
from pdmp.processes.generalised_bps import GeneralisedBPS
from pdmp.processes.hmc import HMC
from pdmp.processes.lipschitz_sbps import LipschitzSBPS
from pdmp.processes.local_bps import LocalBPS
from pdmp.processes.sbps import SBPS
from pdmp.processes.sticky import Sticky
from pdmp.processes.zigzag import ZigZag

__all__ = [
    "BPS",
    "HMC",
    "SBPS",
    "Boomerang",
    "Bounded",
    "CoordinateSampler",
    "DirectionalBPS",
    "FactorisedBoomerang",
    "ForwardEventChain",
    "GeneralisedBPS",
    "LipschitzSBPS",
    "LocalBPS",
    "Sticky",
    "ZigZag",
]

#: Of `StickyZigZag` and others, for one version: the options of what is inside `Sticky` instead.
_BEFORE = {"ZigZag": "", "BPS": ', velocities="gaussian"', "Boomerang": ', covariance="diagonal"'}


def __getattr__(name: str) -> None:
    kind = name.removeprefix("Sticky")
    if kind != name and kind in _BEFORE:
        raise AttributeError(f"pdmp.{name}(model, ...) is written pdmp.Sticky(pdmp.{kind}(model{_BEFORE[kind]}), ...).")
    raise AttributeError(f"module 'pdmp.processes' has no attribute {name!r}")
