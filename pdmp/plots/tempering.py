"""A picture of the rungs of a tempered run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.automatic.tempering.answers import of_tempered, traces
from pdmp.plots.style import COLOURS, many_axes, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdmp.engine.result import Run

INNER = (0.05, 0.95)  #: quantiles between which W is shown


@styled
def rungs(run: Run, axes: ArrayLike | None = None) -> Figure | np.ndarray:
    """Plot how replicas pass the rungs of a tempered run.

    Left: the mean probability that a swap of two neighbours is rejected, of each chain, and in grey the mean of all
    pairs; a pair that stands out is where the way from the reference to the target is narrow. Right: W = U - U₀ at each
    inverse temperature, mean and 90 % of the scans, all chains; log Z is minus the area under the mean.

    Parameters
    ----------
    run : Run
        Of ``pdmp.sample(model, tempered=True)``.
    axes : array_like of matplotlib.axes.Axes, optional
        Two.

    Returns
    -------
    matplotlib.figure.Figure or ndarray of matplotlib.axes.Axes, shape (2,)
        The axes if `axes` is given.

    Raises
    ------
    ValueError
        For a run that is not tempered.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.GaussianMixture([[-5.0], [5.0]], [1.0, 1.0], [0.3, 0.7])
    >>> len(pdmp.plots.rungs(pdmp.sample(model, tempered=True, seed=1)).axes)  # doctest: +SKIP
    2
    """
    betas = of_tempered(run, "rungs")["rungs/betas"]
    works = np.concatenate(traces(run, "works"))
    panels = many_axes(axes, 1, 2, 3.6, 2.4)[0]
    pairs, rejections = np.arange(1, len(betas)), [r.accumulated["rungs/rejections"] for r in run.records]
    panels[0].axhline(np.mean(rejections), color="0.8", lw=4.0, zorder=0)
    for c, one in enumerate(rejections):
        panels[0].plot(pairs, one, "o-", color=COLOURS[c % len(COLOURS)], ms=3.0, lw=0.8)
    panels[0].set(xlabel="pair of neighbours, from the reference", ylabel="rejected swaps", xticks=pairs)
    panels[0].set_ylim(0.0, 1.0)
    finite = [w[np.isfinite(w)] for w in works.T]
    low, high = np.transpose([np.quantile(w, INNER) for w in finite])
    mean = np.array([w.mean() for w in finite])
    panels[1].vlines(betas, low, high, color="0.75", lw=4.0)
    panels[1].plot(betas, mean, "o-", color=COLOURS[0], ms=3.0, lw=0.8)
    panels[1].set(xlabel="inverse temperature β", ylabel="W = U - U₀")
    return panels[0].figure if axes is None else panels
