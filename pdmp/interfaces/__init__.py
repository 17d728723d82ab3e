"""What a sampler offers beside its path: a recipe for comparisons, and a report of its run."""

from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report

__all__ = [
    "Recipe",
    "Report",
]
