"""Whether the posterior of a sum of terms is sampled at one row a proposal, exactly, and by which process."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.process import Prepared, Process

FEWEST_ROWS = 1_000  #: below, all rows are looked at in a few microseconds
LARGEST_DIM = 1_000  #: a bounce multiplies a vector with the matrix of the reference
#: Rows of a unit of time, over all rows, up to which sub-sampling takes less: a row drawn at random costs about five
#: times as much as one of a pass, and HMC takes about five passes where the process takes two units of time.
SHARE = 0.3
#: Bounds must be finite so much farther from the mode than a usual distance there, in posterior standard deviations.
ROOM = 6.0
#: It refreshes so often that means and standard deviations are known about equally well.
REFRESH_RATE = math.sqrt(2.0)


class Subsampled(NamedTuple):
    """What was decided."""

    process: Process | None  #: with starts and a choice; None where all rows are looked at
    said: str  #: why


def known_until(reach: float) -> str:
    """Why rows are not sub-sampled where bounds end too early."""
    return (
        f"bounds on single rows are finite up to {reach:.3g} standard deviations from the mode only, and paths go "
        "farther"
    )


def subsampled(model: Model, chains: int, rng: np.random.Generator) -> Subsampled:
    """The process for a model, and why.

    Parameters
    ----------
    model : Model
        Only a sum of terms.
    chains : int
    rng : numpy.random.Generator
        For the starts, from the normal approximation at the mode.
    """
    if not isinstance(model, SumOfTerms):
        return Subsampled(None, "")
    if model.n_data < FEWEST_ROWS:
        return Subsampled(None, f"each gradient is from all {model.n_data:,} rows, which are few")
    if model.dim > LARGEST_DIM:
        return Subsampled(
            None, f"each gradient is from all rows, as {model.dim:,} dimensions are many for an expansion"
        )
    from pdmp.processes.regression_boomerang import RegressionBoomerang

    mode = model.mode()
    if mode is None:
        return Subsampled(None, "each gradient is from all rows, as the mode was not found: give proper priors")
    try:
        process = RegressionBoomerang(model, mode, REFRESH_RATE)
    except ValueError as error:
        return Subsampled(None, f"each gradient is from all rows: {str(error).rstrip('.')}")
    reach = float(process.growth.radii[-1])
    if reach < math.sqrt(model.dim) + ROOM:
        return Subsampled(None, f"each gradient is from all rows: {known_until(reach)}")
    share = process.expected_data / model.n_data
    if not share <= SHARE:
        return Subsampled(
            None,
            f"each gradient is from all rows: in a unit of time single rows would be looked at {share:.2g} times as "
            f"often as there are rows, above {SHARE}",
        )
    starts = mode + rng.standard_normal((chains, model.dim)) @ process.reference.root.T
    choice = (
        f"the Boomerang sampler, exact at one row a proposal: about {process.expected_data:.2g} of {model.n_data:,} "
        "rows are looked at in a unit of time, by bounds derived from the expression beyond its expansion at the mode"
    )
    # The search for the mode, and passes for the expansion and the bounds.
    process.prepared = Prepared(starts, choice, 10 * chains)
    return Subsampled(process, choice)
