"""Posteriors of parts of the data that may not leave their machines, combined into one; an approximation."""

from pdmp.native.explanations import explained_functions
from pdmp.shards.combining import Combined, consensus, prior_share, swiss

__all__ = ["Combined", "consensus", "prior_share", "swiss"]

explained_functions(globals())
