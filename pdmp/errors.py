"""The error of a run that fails."""

from __future__ import annotations

from typing import Any

import numpy as np


class SamplingError(RuntimeError):
    """A failed run; everything sampled so far is kept.

    Parameters
    ----------
    message : str
        What went wrong, and what to do.

    Attributes
    ----------
    run : pdmp.Run or None
        The run up to the failure.
    chain, event, time, position : int, int, float, ndarray of shape (d,); each may be None
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
