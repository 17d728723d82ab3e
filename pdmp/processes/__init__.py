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

#: Names of the version before, and what is written now.
RENAMED = {
    f"Sticky{kind}": f"pdmp.Sticky{kind}(model, ...) is written pdmp.Sticky(pdmp.{kind}(model{option}), ...)."
    for kind, option in (("ZigZag", ""), ("BPS", ', velocities="gaussian"'), ("Boomerang", ', metric="diagonal"'))
}

__getattr__, __dir__, _ = _lazily(
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
        "pdmp.processes.sticky": "Sticky",
        "pdmp.processes.zigzag": "ZigZag",
    },
    RENAMED,
)
