"""Hierarchies and random fields."""

from pdmp.models.hierarchies.hierarchical_normal import EightSchools, HierarchicalNormal
from pdmp.models.hierarchies.log_gaussian_cox import LogGaussianCox
from pdmp.models.hierarchies.markov_random_field import GaussianMarkovRandomField

__all__ = ["EightSchools", "GaussianMarkovRandomField", "HierarchicalNormal", "LogGaussianCox"]
