"""What can go wrong in a run."""

from __future__ import annotations

from typing import Any

import numpy as np


class SamplingError(RuntimeError):
    """A run that could not go on; everything sampled so far is kept.

    Parameters
    ----------
    message : str
        What went wrong, and what to do.

    Attributes
    ----------
    run : pdmp.Run
        The run up to the failure.
    chain, event, time, position
        Where it failed: number of the chain, events so far, process time, and the position x there.

    Examples
    --------
    >>> import pdmp
    >>> issubclass(pdmp.SamplingError, RuntimeError)
    True
    """

    def __init__(
        self,
        message: str,
        *,
        run: Any | None = None,
        chain: int | None = None,
        event: int | None = None,
        time: float | None = None,
        position: np.ndarray | None = None,
    ) -> None:
        super().__init__(message)
        self.run, self.chain, self.event, self.time, self.position = run, chain, event, time, position
