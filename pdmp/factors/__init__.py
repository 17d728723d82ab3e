"""Sums of factors U = Σ U_f, for local samplers: which coordinates a factor has, its gradient, and its clock."""

from pdmp.factors.bounds import FactorAffine, FactorGrid, FactorInversion
from pdmp.factors.graph import FactorGraph, from_model, from_networkx

__all__ = ["FactorAffine", "FactorGraph", "FactorGrid", "FactorInversion", "from_model", "from_networkx"]
