"""The continuous-time processes, one file each."""

from pdmp.processes.boomerang import Boomerang as Boomerang
from pdmp.processes.bounded import Bounded as Bounded
from pdmp.processes.bps import BPS as BPS
from pdmp.processes.coordinate_sampler import CoordinateSampler as CoordinateSampler
from pdmp.processes.directional_bps import DirectionalBPS as DirectionalBPS
from pdmp.processes.factorised_boomerang import FactorisedBoomerang as FactorisedBoomerang
from pdmp.processes.forward_event_chain import ForwardEventChain as ForwardEventChain
from pdmp.processes.generalised_bps import GeneralisedBPS as GeneralisedBPS
from pdmp.processes.lipschitz_sbps import LipschitzSBPS as LipschitzSBPS
from pdmp.processes.local_bps import LocalBPS as LocalBPS
from pdmp.processes.sbps import SBPS as SBPS
from pdmp.processes.sticky_boomerang import StickyBoomerang as StickyBoomerang
from pdmp.processes.sticky_bps import StickyBPS as StickyBPS
from pdmp.processes.sticky_zigzag import StickyZigZag as StickyZigZag
from pdmp.processes.zigzag import ZigZag as ZigZag
