r"""Scores of predicted probabilities and numbers, and calibration of probabilities.

The scores are scikit-learn's where it has them. Probabilities are arrays of shape (n,), of the second of two classes,
or (n, classes). Arrays of shape (P, n) or (P, n, classes) hold the probabilities of P draws, which are averaged first:
the posterior predictive probability is the mean of the draws' probabilities.

References
----------
Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning, AAAI; Guo, Pleiss,
Sun & Weinberger (2017), On calibration of modern neural networks, ICML (ECE and MCE).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native import arguments

#: Probabilities are clipped to this distance from 0 and 1 before their logarithm is taken.
LEAST_PROBABILITY = 1e-12


def _labels_and_probabilities(y, p, geometric=False):
    """Labels (n,) as integers and probabilities (n, classes), the mean over draws or their geometric mean."""
    arguments.refuse_unreal("y", y)
    arguments.refuse_unreal("p", p)
    arguments.same_rows(y=y, p=p)
    y, p = np.asarray(y), np.asarray(p, dtype=float)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"`y` must be labels of shape (n,), got {y.shape}.")
    if not np.all(np.isfinite(p)) or np.any(p < 0.0) or np.any(p > 1.0 + 1e-9):
        raise ValueError("`p` must hold probabilities in [0, 1].")
    if p.ndim == 1 or p.ndim == 2 and p.shape[1] == len(y) and p.shape[0] != len(y):
        p = np.atleast_2d(p)
        p = np.stack([1.0 - p, p], axis=-1)
    if p.ndim == 3:
        p = np.exp(np.log(np.maximum(p, LEAST_PROBABILITY)).mean(axis=0)) if geometric else p.mean(axis=0)
    if p.ndim != 2 or len(p) != len(y):
        raise ValueError(
            f"`p` must have shape ({len(y)},), ({len(y)}, classes), (draws, {len(y)}) or (draws, {len(y)}, classes), "
            f"got {p.shape}."
        )
    if p.shape[1] == 1:
        p = np.column_stack([1.0 - p, p])
    if not geometric and not np.allclose(p.sum(axis=1), 1.0, atol=1e-6):
        said = "; of as many draws as labels give both classes, (draws, n, 2)" if p.shape[1] == len(y) else ""
        raise ValueError(f"`p` must sum to 1 over the classes{said}.")
    labels = y.astype(np.int64)
    if np.any(labels != y) or labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"`y` must hold the numbers 0 … {p.shape[1] - 1} of the classes.")
    return labels, p


def log_loss(y: ArrayLike, p: ArrayLike) -> float:
    """Mean of -log p(label) under the mean probabilities of the draws.

    Parameters
    ----------
    y : array_like, shape (n,)
        Labels 0, 1, ….
    p : array_like
        Probabilities, see the module's text.

    Returns
    -------
    float

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> round(diagnostics.log_loss([0, 1], [0.25, 0.75]), 4)
    0.2877
    """
    from sklearn import metrics

    y, p = _labels_and_probabilities(y, p)
    p = np.clip(p, LEAST_PROBABILITY, 1.0)
    return float(metrics.log_loss(y, p / p.sum(axis=1, keepdims=True), labels=np.arange(p.shape[1])))


def accuracy(y: ArrayLike, p: ArrayLike) -> float:
    """Fraction of the labels that have the largest probability.

    Parameters
    ----------
    y, p
        As of `log_loss`.

    Returns
    -------
    float

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> diagnostics.accuracy([0, 1, 1], [0.2, 0.9, 0.4])
    0.6666666666666666
    """
    y, p = _labels_and_probabilities(y, p)
    return float(np.mean(np.argmax(p, axis=1) == y))


def log_likelihood(y: ArrayLike, p: ArrayLike) -> float:
    """Test log-likelihood Σ log p(label) under the posterior predictive probabilities.

    Parameters
    ----------
    y, p
        As of `log_loss`.

    Returns
    -------
    float

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> round(diagnostics.log_likelihood([0, 1], [0.25, 0.75]), 4)
    -0.5754
    """
    return -len(np.asarray(y)) * log_loss(y, p)


def running_log_loss(y: ArrayLike, p: ArrayLike) -> np.ndarray:
    """Log-loss of the mean probabilities of the first 1, 2, …, P draws.

    Parameters
    ----------
    y : array_like, shape (n,)
        Labels 0, 1, ….
    p : array_like, shape (P, n)
        Probabilities of label 1, by draw.

    Returns
    -------
    ndarray, shape (P,)

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> diagnostics.running_log_loss([1], [[0.5], [1.0]]).round(4)
    array([0.6931, 0.2877])
    """
    p = np.asarray(p, dtype=float)
    if p.ndim != 2 or p.shape[1] != len(y):
        raise ValueError(f"`p` must have shape (draws, {len(y)}), got {p.shape}.")
    _labels_and_probabilities(y, p[:1])
    if not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)):
        raise ValueError("`p` must hold probabilities in [0, 1].")
    mean = np.cumsum(p, axis=0) / np.arange(1, len(p) + 1)[:, None]
    mean = np.clip(np.where(np.asarray(y) == 1, mean, 1.0 - mean), LEAST_PROBABILITY, 1.0)
    return -np.log(mean).mean(axis=1)


def rmse(
    y: ArrayLike, predictions: ArrayLike, lowest: float = -np.inf, highest: float = np.inf
) -> tuple[np.ndarray, float]:
    """Root mean squared errors of the draws and of their mean.

    Parameters
    ----------
    y : array_like, shape (n,)
        The true values.
    predictions : array_like, shape (P, n) or (n,)
        Predicted values, by draw.
    lowest, highest : float
        Limits to which predictions are clipped after averaging, such as 1 and 5 for ratings.

    Returns
    -------
    of_draws : ndarray, shape (P,)
        Error of each draw's predictions.
    of_mean : float
        Error of the mean prediction.

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> of_draws, of_mean = diagnostics.rmse([1.0, 2.0], [[1.0, 1.0], [1.0, 3.0]])
    >>> round(of_mean, 3)
    0.0
    """
    from sklearn import metrics

    arguments.refuse_unreal("y", y)
    arguments.refuse_unreal("predictions", predictions)
    arguments.same_rows(y=y, predictions=predictions)
    y, predictions = np.asarray(y, dtype=float), np.atleast_2d(np.asarray(predictions, dtype=float))
    if predictions.shape[1:] != y.shape:
        raise ValueError(f"`predictions` must have shape (draws, {len(y)}), got {predictions.shape}.")
    for name, array in (("y", y), ("predictions", predictions)):
        if not np.all(np.isfinite(array)):
            raise ValueError(f"`{name}` must be finite.")
    each = np.sqrt(np.mean((np.clip(predictions, lowest, highest) - y) ** 2, axis=1))
    mean = np.clip(predictions.mean(axis=0), lowest, highest)
    return each, float(metrics.root_mean_squared_error(y, mean))


# ---------------------------------------------------------------------------------------------------------------
# Calibration


def reliability(y: ArrayLike, p: ArrayLike, bins: int = 10, convention: str = "standard") -> dict[str, np.ndarray]:
    """Confidence and accuracy of the predicted class, bin by bin.

    Parameters
    ----------
    y, p : array_like
        As of `log_loss`. The confidence of a prediction is the largest of its probabilities.
    bins : int, default 10
        Number of bins.
    convention : {"standard", "mamba"}
        "standard": equal bins of [0, 1], the right edge in the last one, mean probabilities of the draws. "mamba", as
        in the code of Coullon, South & Nemeth (2023): equal bins of the range of the confidences, whose largest is left
        out, and geometric means over the draws, which do not sum to 1.

    Returns
    -------
    dict of ndarray, shape (bins,)
        ``left``, ``right``, ``count``, ``confidence`` (mean) and ``accuracy``, NaN for an empty bin.

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> table = diagnostics.reliability([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.6], bins=2)
    >>> table['count']
    array([0, 4])
    """
    arguments.one_of("convention", convention, ("standard", "mamba"))
    y, p = _labels_and_probabilities(y, p, geometric=convention == "mamba")
    bins = arguments.count("bins", bins)
    confidence, right = p.max(axis=1), np.argmax(p, axis=1) == y
    if convention == "standard":
        edges = np.linspace(0.0, 1.0, bins + 1)
        place = np.minimum(np.searchsorted(edges, confidence, side="right") - 1, bins - 1)
    else:
        edges = np.linspace(confidence.min(), confidence.max(), bins + 1)
        place = np.searchsorted(edges, confidence, side="right") - 1
    used = place < bins
    count = np.bincount(place[used], minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place[used], confidence[used], minlength=bins) / count
        share = np.bincount(place[used], right[used].astype(float), minlength=bins) / count
    return {"left": edges[:-1], "right": edges[1:], "count": count, "confidence": mean, "accuracy": share}


def ece(y: ArrayLike, p: ArrayLike, bins: int = 10, convention: str = "standard") -> float:
    """Expected calibration error: Σ (count / n) |accuracy - confidence| over the bins of `reliability`.

    Parameters
    ----------
    y, p, bins, convention
        As of `reliability`.

    Returns
    -------
    float

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> round(diagnostics.ece([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.9]), 3)
    0.1
    """
    found = reliability(y, p, bins, convention)
    gap = np.abs(found["accuracy"] - found["confidence"])
    return float(np.nansum(found["count"] * gap) / len(np.asarray(y)))


def mce(y: ArrayLike, p: ArrayLike, bins: int = 10, convention: str = "standard") -> float:
    """Maximum calibration error: the largest |accuracy - confidence| over the bins of `reliability`.

    Parameters
    ----------
    y, p, bins, convention
        As of `reliability`.

    Returns
    -------
    float

    Examples
    --------
    >>> from pdmp import diagnostics
    >>> round(diagnostics.mce([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.6]), 3)
    0.4
    """
    found = reliability(y, p, bins, convention)
    return float(np.nanmax(np.abs(found["accuracy"] - found["confidence"])))
