"""What a sampler's class defines besides the process: a recipe for comparisons, and a report of its runs."""

from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report

__all__ = [
    "Recipe",
    "Report",
]
