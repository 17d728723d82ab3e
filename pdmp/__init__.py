"""Continuous-time Monte Carlo: piecewise-deterministic Markov processes, and fixed-step samplers as a special case."""

from pdmp import gradients as gradients
from pdmp import models as models
from pdmp.compiled import compiled as compiled
from pdmp.errors import SamplingError as SamplingError
from pdmp.models.base import Model as Model
from pdmp.process import CERTAIN as CERTAIN
from pdmp.process import HORIZON as HORIZON
from pdmp.process import Process as Process
