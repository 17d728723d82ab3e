"""How good samples are."""

from pdmp.diagnostics.ess import ess as ess
from pdmp.diagnostics.ess import rhat as rhat
