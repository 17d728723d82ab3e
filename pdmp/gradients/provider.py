"""The base of all gradient providers, and what they share.

In compiled code a provider has four methods. All write an unbiased estimate of ∇U(x), of the whole sum and the
prior, into `out`, and add the number of terms that they used to ``counts[DATA]`` (`pdmp.process.count_data`)::

    gradient(x, memory, rng, out, counts)
    gradient_again(x, memory, out, counts)            at any x, with the batch or the noise of the last call
    gradient_and_projection(x, v, memory, rng, out, counts) -> G, c2    G = v·out, c2 an estimate of its variance
    gradient_and_sd(x, memory, rng, out, sd, counts)  sd: that of the estimate, coordinate by coordinate

`memory` is what ``provider.memory(rng)`` returns: all that changes from call to call, one for each chain, because a
provider is shared between the chains and their threads. To add a provider, derive from `Provider` and write these.

The variances. A batch of n from N terms gives ĝ = (N/n) Σ ∇Uᵢ, whose variance is (N²/n) S² with replacement and
(N²/n) (1 - n/N) S² without, S² the variance of one ∇Uᵢ; it is estimated by the variance (n - 1 in the denominator)
within the batch, which needs n >= 2. The prior is a constant and drops out.

References
----------
Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC, Stat. Comput. 29;
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler, ICML (the variance of G);
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS (the sd).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.native.classes import Compiled, inlined
from pdmp.native.records import Count, Flag, Vector, zeros

#: Least variance of a projection G, relative to 1 + G²: regressions on G divide by it.
LEAST_VARIANCE = 1e-12


class Memory(NamedTuple):
    """What a provider changes from call to call. Numbers that change are arrays of one element."""

    rows: np.ndarray  #: (size,) the batch
    columns: np.ndarray  #: (size,) the column of the alias table of each draw of the batch
    weights: np.ndarray  #: (size,) 1 / (n pᵢ) of each datum, where probabilities differ
    order: np.ndarray  #: (N,) or (blocks,) what is being permuted
    place: Count  #: number of the next block in the epoch
    first: Count  #: first datum of the block drawn last
    stop: Count  #: one after its last datum
    is_copied: Flag  #: whether `copied` holds the batch drawn last
    copied: np.ndarray  #: the data of the batch, as `Derived.copy_batch` arranges them, for a second use
    noise: Vector  #: the noise that was added last, where it is added on purpose
    scratch: Vector
    anchor_scratch: Vector  #: for gradients at an anchor
    bank: tuple = ()  #: of control variates: `Point` or `Bank` of `pdmp.gradients.anchors`


@inlined
def clear(out):
    """Set every entry to 0."""
    for j in range(out.shape[0]):
        out[j] = 0.0


@inlined
def dot(v, out):
    """v·out."""
    total = 0.0
    for j in range(out.shape[0]):
        total += v[j] * out[j]
    return total


@inlined
def at_least(variance, g):
    """The larger of `variance` and `LEAST_VARIANCE` (1 + g²); NaN stays NaN."""
    least = LEAST_VARIANCE * (1.0 + g * g)
    return least if variance < least else variance


@inlined
def sample_variance(first, second, n):
    """Variance from the sums of n values and of their squares; never negative."""
    variance = (second - first * first / n) / (n - 1)
    return 0.0 if variance < 0.0 else variance


class Provider(Compiled):
    """Base of the gradient providers; see the text of `pdmp.gradients.provider` for the compiled methods.

    Parameters
    ----------
    model : pdmp.Model
        The target.

    Attributes
    ----------
    model : pdmp.Model
        The target.
    dim, n_data : int
        Those of the model.
    exact : bool
        Whether the gradient has no noise.
    independent : bool
        Whether the noise of different calls is independent.
    has_variance : bool
        Whether `gradient_and_projection` and `gradient_and_sd` can estimate the variance, which takes two terms.
    terms_per_call : int
        Most data terms that one call uses.
    anchor : ndarray of shape (dim,) or None
        Where runs start by default; None: the model's mode.

    Raises
    ------
    TypeError
        If `model` is not a model.

    Examples
    --------
    >>> import pdmp
    >>> provider = pdmp.gradients.Minibatch(pdmp.models.LogisticRegression([[1.0], [2.0]], [0, 1]), size=1)
    >>> isinstance(provider, pdmp.gradients.Provider), provider.exact, provider.dim, provider.n_data
    (True, False, 1, 2)
    """

    model: Model

    _set_by_base, _kind = "model", "provider"
    exact = False
    independent = True
    has_variance = True
    anchor = None
    waits_for_warmup = None

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise TypeError(f"`model` must be a pdmp.Model, got {type(model).__name__}.")
        self.model = model

    @property
    def dim(self) -> int:
        """Dimension of the target."""
        return self.model.dim

    @property
    def n_data(self) -> int:
        """Number N of the target's terms."""
        return self.model.n_data

    @property
    def terms_per_call(self) -> int:
        """Most data terms that one call uses."""
        return max(self.n_data, 1)

    def memory(self, rng: np.random.Generator | None) -> Memory:
        """The arrays of one chain; `rng` is for providers whose arrays start at random."""
        return self.make_memory()

    def make_memory(self, rows: int = 1, order: int = 1, copied: np.ndarray | None = None) -> Memory:
        """A `Memory` for batches of at most `rows` terms.

        Parameters
        ----------
        rows : int, default 1
            Most terms in a batch.
        order : int, default 1
            Length of what is being permuted.
        copied : ndarray, optional
            Room for the data of a batch (`Derived.batch_room`); empty where batches are not copied.
        """
        return zeros(
            Memory,
            self.dim,
            rows=np.zeros(rows, np.int64),
            columns=np.zeros(rows, np.int64),
            weights=np.ones(rows),
            order=np.arange(order),
            copied=np.zeros(0) if copied is None else copied,
        )
