"""Logistic regression with a spike-and-slab prior whose features stay where they are: sparse, or in a file."""

from __future__ import annotations

from pdmp.models.regressions.logistic_rows import LogisticRows
from pdmp.models.regressions.spike_and_slab import SpikeAndSlabLogisticRegression


class SpikeAndSlabLogisticRows(SpikeAndSlabLogisticRegression, LogisticRows):
    """What `SpikeAndSlabLogisticRegression` is for a sparse or memory-mapped `X`; see there."""
