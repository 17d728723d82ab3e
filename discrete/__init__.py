"""Fixed-time-step samplers with stochastic gradients, on the process abstraction of `pdmp`."""

from discrete import schedules as schedules
from discrete.sgbd import SGBD as SGBD
from discrete.sgld import SGLD as SGLD
from discrete.sgrrld import SGRRLD as SGRRLD

#: The samplers need no trial run before they are compiled: their tests do that.
TESTED = True
