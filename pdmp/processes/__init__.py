"""The continuous-time processes, one file each."""

from typing import TYPE_CHECKING

from pdmp.native.lazy import lazily as _lazily

if TYPE_CHECKING:
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
    from pdmp.processes.sticky_boomerang import StickyBoomerang
    from pdmp.processes.sticky_bps import StickyBPS
    from pdmp.processes.sticky_zigzag import StickyZigZag
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
    "StickyBPS",
    "StickyBoomerang",
    "StickyZigZag",
    "ZigZag",
]

__getattr__, __dir__ = _lazily(
    __name__,
    {
        "pdmp.processes.boomerang": "Boomerang",
        "pdmp.processes.bounded": "Bounded",
        "pdmp.processes.bps": "BPS",
        "pdmp.processes.coordinate_sampler": "CoordinateSampler",
        "pdmp.processes.directional_bps": "DirectionalBPS",
        "pdmp.processes.factorised_boomerang": "FactorisedBoomerang",
        "pdmp.processes.forward_event_chain": "ForwardEventChain",
        "pdmp.processes.generalised_bps": "GeneralisedBPS",
        "pdmp.processes.hmc": "HMC",
        "pdmp.processes.lipschitz_sbps": "LipschitzSBPS",
        "pdmp.processes.local_bps": "LocalBPS",
        "pdmp.processes.sbps": "SBPS",
        "pdmp.processes.sticky_boomerang": "StickyBoomerang",
        "pdmp.processes.sticky_bps": "StickyBPS",
        "pdmp.processes.sticky_zigzag": "StickyZigZag",
        "pdmp.processes.zigzag": "ZigZag",
    },
)
