r"""Numbers with Monte Carlo errors, by a jackknife over stretches of the chains.

A measure is computed without each stretch of draws in turn, and its standard error follows from the spread of these
values. Stretches must be longer than the correlations of the draws.

References
----------
Efron (1982), The jackknife, the bootstrap and other resampling plans, SIAM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.effective_size import as_draws
from pdmp.native.arguments import count

STRETCHES = 16  #: of all chains together, for the jackknife


@dataclass(frozen=True)
class Estimate:
    """A value, a number or an array, and its Monte Carlo standard error.

    Parameters
    ----------
    value : float or ndarray
        The estimate.
    error : float or ndarray
        Its standard error, of the same shape.

    Examples
    --------
    >>> from pdmp.diagnostics import Estimate
    >>> one, other = Estimate(1.0, 0.3), Estimate(0.0, 0.4)
    >>> print(one - other)
    1 ± 0.5
    >>> bool(one.differs(other))
    False
    """

    value: float | np.ndarray
    error: float | np.ndarray

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference of two independent estimates."""
        return Estimate(self.value - other.value, np.hypot(self.error, other.error))

    def differs(self, other: Estimate, z: float = 3.0) -> bool | np.ndarray:
        """Whether two independent estimates differ by more than z standard errors of their difference."""
        difference = self - other
        return abs(difference.value) > z * difference.error

    def __str__(self):
        if np.ndim(self.value):
            return f"{self.value} ± {self.error}"
        return f"{self.value:.3g} ± {self.error:.1g}"


def jackknife(
    measure: Callable[[np.ndarray], float | np.ndarray], draws: ArrayLike, stretches: int = STRETCHES
) -> Estimate:
    """A measure of draws with its standard error.

    Parameters
    ----------
    measure : callable
        From draws (P, d) to a number or an array.
    draws : array_like, shape (chains, n, d) or (n, d)
        Draws of one or several chains.
    stretches : int, default 16
        Number of stretches of all chains together. Each chain is cut into equally many.

    Returns
    -------
    Estimate
        Its value is that of `measure` for all draws.

    Raises
    ------
    ValueError
        For draws of another shape or not finite, or stretches of fewer than two draws.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import jackknife
    >>> print(jackknife(lambda x: float(x.mean()), np.arange(64.0).reshape(1, 64, 1) % 4))
    1.5 ± 0
    """
    draws = as_draws(draws)
    chains, n, d = draws.shape
    each = max(-(-count("stretches", stretches, least=2) // chains), 1)
    if each > n // 2:
        raise ValueError(f"{n} draws of a chain are too few for {each} stretches of it.")
    pieces = [piece for chain in draws for piece in np.array_split(chain, each)]
    value = np.asarray(measure(draws.reshape(-1, d)), dtype=float)
    without = np.array([measure(np.concatenate(pieces[:k] + pieces[k + 1 :])) for k in range(len(pieces))])
    m = len(pieces)
    error = np.sqrt((m - 1.0) / m * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    return Estimate(float(value) if value.ndim == 0 else value, float(error) if value.ndim == 0 else error)
