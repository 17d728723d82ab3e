"""Fixed-time-step samplers with stochastic gradients, on the process abstraction of `pdmp`."""

from discrete import preconditioners as preconditioners
from discrete import schedules as schedules
from discrete.badodab import BADODAB as BADODAB
from discrete.baoab import BAOAB as BAOAB
from discrete.barker import Barker as Barker
from discrete.barker import breaking_point as breaking_point
from discrete.mala import MALA as MALA
from discrete.msgnht import MSGNHT as MSGNHT
from discrete.richardson_romberg import SGRRHMC as SGRRHMC
from discrete.richardson_romberg import SGRRLD as SGRRLD
from discrete.richardson_romberg import RichardsonRomberg as RichardsonRomberg
from discrete.sgbd import SGBD as SGBD
from discrete.sgbps import SGBPS as SGBPS
from discrete.sgd import GD as GD
from discrete.sgd import SGD as SGD
from discrete.sghmc import SGHMC as SGHMC
from discrete.sgld import SGLD as SGLD
from discrete.sgnht import SGNHT as SGNHT
from discrete.sgzz import SGZZ as SGZZ
from discrete.splitting import BPSSplitting as BPSSplitting
from discrete.splitting import ZigZagSplitting as ZigZagSplitting
from discrete.ubu import UBU as UBU
from pdmp.engine.preflight import trust

trust(__name__)  # the tests of this package call every method of its classes
