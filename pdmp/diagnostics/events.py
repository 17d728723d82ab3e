r"""Diagnostics of the events of a path: their rates, the bounds, the times between them, and autocorrelations.

Rates
-----
In stationarity a bounce of BPS comes at the rate E (v·∇U)₊, with v uniform on the unit sphere and independent of x: at
E|∇U| c_d, c_d = Γ(d/2) / (2 √π Γ((d+1)/2)). On a normal law of precision Λ that is E √(vᵀΛv) / √(2π). Zig-Zag's
coordinate j flips at the rate E|∂ⱼU| / 2, on a normal law √(Λⱼⱼ / (2π)).

Bounds that were exceeded
-------------------------
Where a rate λ exceeds its bound b the event loop simulates the rate
min(λ, b). Couple this process with the right one, so that their paths agree until the first event that this one misses.
Missed events come at the rate (λ - b)₊, so that the laws of the two paths up to time T differ in total variation by at
most

    1 - exp(-S),    S = E ∫₀ᵀ (λ - b)₊ dt

(Jensen: the probability of no such event is E exp(-∫) ≥ exp(-S)). Proposals come at the rate b, so by Campbell's
formula S is the mean of the sum of (λ/b - 1)₊ over the proposals, which is what a run adds up (``stats["mean_excess"]``
times ``stats["bound_violations"]``). For the invariant law π' of the process that runs, π' - π = ∫ π'(L' - L) Pₜ dt, so
that

    TV(π', π) ≤ (S / T) ∫₀^∞ sup TV(Pₜ(z, ·), Pₜ(z', ·)) dt :

missed events per unit of time, times the time for which the effect of one lasts. The second factor is rarely known.
`bounds` replaces it by the longest correlation time of a coordinate, so that its ``law_distance`` is only a guess.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics import monte_carlo_error
from pdmp.diagnostics.effective_size import as_draws
from pdmp.diagnostics.estimates import Estimate, jackknife
from pdmp.errors import warn
from pdmp.models.base import Model


def event_rates(run: Any) -> dict[str, Estimate]:
    """Events of each kind per unit of process time after the warm-up.

    For runs that kept no skeleton, the rates are those of the whole run, without an error (NaN).

    Parameters
    ----------
    run : Run
        Of any process.

    Returns
    -------
    dict of str to Estimate

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=2_000, seed=1)
    >>> list(pdmp.diagnostics.event_rates(run))
    ['flip']
    """
    if run.store != "skeleton":
        time = float(np.sum(run.end))
        return {name: Estimate(count / time, math.nan) for name, count in run.stats["events"].items()}
    found, lengths = {}, []
    series = {name: [] for name in run.stats["events"]}
    stretches = []
    for path in (one.whole for one in run.trajectories):
        if path.end <= path.warmup:
            continue
        n = max(min(1_024, int(np.sum(path.times > path.warmup)) // 8), 1)
        ends = np.linspace(path.warmup, path.end, n + 1)
        lengths.append(path.end - path.warmup)
        stretches.append(lengths[-1] / n)
        for kind, name in enumerate(series):
            times = path.times[1:][path.kinds == kind]
            series[name].append(np.histogram(times[times > path.warmup], ends)[0] / stretches[-1])
    if not lengths:
        raise ValueError("there is no path after the warm-up.")
    for name, counts in series.items():
        value = float(np.average([c.mean() for c in counts], weights=lengths))
        found[name] = monte_carlo_error.estimate(value, counts, stretches, lengths)
    return found


def bounce_rate(model: Model, draws: ArrayLike) -> Estimate:
    """Rate of bounces of BPS at unit speed, E|∇U| c_d, estimated from draws of the target.

    Parameters
    ----------
    model : Model
        With the exact gradient.
    draws : array_like, shape (chains, n, d) or (n, d)
        Draws from exp(-U).

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])
    >>> draws = np.random.default_rng(0).standard_normal((2_000, 2))
    >>> rate = pdmp.diagnostics.bounce_rate(model, draws)
    >>> bool(abs(rate.value - pdmp.diagnostics.gaussian_bounce_rate(np.eye(2))) < 5 * rate.error)
    True
    """
    gradients = _gradients(model, draws)
    d = gradients.shape[2]
    constant = math.exp(math.lgamma(0.5 * d) - math.lgamma(0.5 * (d + 1))) / (2.0 * math.sqrt(math.pi))
    return jackknife(lambda g: constant * float(np.linalg.norm(g, axis=1).mean()), gradients)


def flip_rates(model: Model, draws: ArrayLike) -> Estimate:
    """Rates of flips of Zig-Zag, E|∂ⱼU| / 2, estimated from draws of the target.

    Parameters
    ----------
    model, draws
        As of `bounce_rate`.

    Returns
    -------
    Estimate
        Of arrays of shape (d,).

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> draws = np.random.default_rng(0).standard_normal((2_000, 2)) / [1.0, 2.0]
    >>> pdmp.diagnostics.flip_rates(model, draws).value.round(1)
    array([0.4, 0.8])
    """
    return jackknife(lambda g: 0.5 * np.abs(g).mean(axis=0), _gradients(model, draws))


def _gradients(model, draws):
    draws = as_draws(draws)
    if draws.shape[2] != model.dim:
        raise ValueError(f"`draws` must have {model.dim} coordinates, those of the model, got {draws.shape[2]}.")
    return np.array([[model.gradient(x) for x in chain] for chain in draws])


def _precision(precision):
    precision = np.atleast_1d(np.asarray(precision, dtype=float))
    precision = np.diag(precision) if precision.ndim == 1 else precision
    if precision.ndim != 2 or not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0.0:
        raise ValueError("`precision` must be (d,) and positive, or (d, d), symmetric and positive definite.")
    return precision


def gaussian_bounce_rate(precision: ArrayLike) -> float:
    """`bounce_rate` on a normal law: E √(vᵀΛv) / √(2π) over the unit sphere, by quadrature.

    With g standard normal and Q = gᵀΛg, E √(vᵀΛv) = E √Q / E|g|, and E √Q = (2√π)⁻¹ ∫ (1 - E exp(-tQ)) t^(-3/2) dt with
    E exp(-tQ) = Π (1 + 2tλⱼ)^-½.

    Parameters
    ----------
    precision : array_like, shape (d,) or (d, d)
        Λ; a vector is its diagonal.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> round(pdmp.diagnostics.gaussian_bounce_rate(np.eye(3)), 4)
    0.3989
    """
    from scipy.integrate import quad

    values = np.linalg.eigvalsh(_precision(precision))
    d, scale = len(values), float(np.sum(values))

    def integrand(u):  # t = exp(u) / scale
        return -math.expm1(-0.5 * float(np.sum(np.log1p(2.0 * math.exp(u) * values / scale)))) * math.exp(-0.5 * u)

    root = math.sqrt(scale) / (2.0 * math.sqrt(math.pi)) * quad(integrand, -80.0, 80.0, limit=500, points=[0.0])[0]
    length = math.sqrt(2.0) * math.exp(math.lgamma(0.5 * (d + 1)) - math.lgamma(0.5 * d))
    return root / length / math.sqrt(2.0 * math.pi)


def gaussian_flip_rates(precision: ArrayLike) -> np.ndarray:
    """`flip_rates` on a normal law: √(Λⱼⱼ / (2π)), (d,).

    Parameters
    ----------
    precision
        As of `gaussian_bounce_rate`.

    Returns
    -------
    ndarray, shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> pdmp.diagnostics.gaussian_flip_rates(np.diag([1.0, 4.0])).round(4)
    array([0.3989, 0.7979])
    """
    return np.sqrt(np.diag(_precision(precision)) / (2.0 * math.pi))


def bounds(run: Any) -> dict[str, float]:
    """How tight the bounds of a run were, and the effect of rates that exceeded them.

    ``acceptance``
        Fraction of the thinned proposals that became events; NaN if nothing was thinned.
    ``violations``, ``violation_rate``
        Proposals whose rate exceeded the bound, and their fraction of the thinned ones.
    ``missed``
        The sum of (rate / bound - 1)₊ over the proposals of all chains: an unbiased estimate of how many events the
        right process would have had and this one missed.
    ``path_distance``
        The bound 1 - exp(-missed / chains) on the total variation distance of a chain's path from the right law.
    ``law_distance``
        Missed events per unit of time, times the longest correlation time of a coordinate: a guess at the distance of
        the invariant law from the target, see the module's text.

    Parameters
    ----------
    run : Run
        Of a process with thinned clocks.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=2_000, seed=1)
    >>> pdmp.diagnostics.bounds(run)['violations']
    0
    """
    stats = run.stats
    thinned, rejected = stats["thinned"], stats["proposals"] - stats["total_events"]
    missed = stats["bound_violations"] * stats["mean_excess"]
    guess = 0.0
    if missed > 0.0:
        with np.errstate(all="ignore"):
            correlation = run.mcse() ** 2 * float(np.sum(run.end - run.warmup)) / run.var()
        guess = float(missed / np.sum(run.end) * np.max(correlation, where=np.isfinite(correlation), initial=0.0))
    return {
        "acceptance": 1.0 - rejected / thinned if thinned else math.nan,
        "violations": stats["bound_violations"],
        "violation_rate": stats["bound_violations"] / thinned if thinned else 0.0,
        "missed": missed,
        "path_distance": -math.expm1(-missed / run.chains),
        "law_distance": guess,
    }


def acf(run: Any, lags: int = 100, directions: ArrayLike | None = None, draws: int = 4_000) -> dict[str, np.ndarray]:
    """Autocorrelation along the widest and the narrowest direction of the posterior, against the number of data used.

    Parameters
    ----------
    run : pdmp.Run
    lags : int, default 100
        Number of lags, from 0 on.
    directions : array_like, shape (k, d), optional
        By default the eigenvectors of the run's covariance with the largest and the smallest eigenvalue.
    draws : int, default 4000
        Equally spaced draws of each chain; one lag is the distance of two.

    Returns
    -------
    dict of ndarray
        ``acf`` (k, lags), ``time``, ``data_terms`` and ``data_passes`` (lags,): the lags in process time, and in data
        used during them, on average over the run; and ``directions`` (k, d).

    Raises
    ------
    ValueError
        For directions or lags that do not fit, or no more draws than dimensions.

    Warns
    -----
    UserWarning
        Along a direction in which nothing moved, where the correlation is NaN.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=2_000, seed=1)
    >>> pdmp.diagnostics.acf(run, lags=5, draws=500)['acf'].shape
    (2, 5)
    """
    x = run.draws(draws)
    if directions is None:
        if run.chains * draws <= run.dim:
            raise ValueError(
                f"{run.chains * draws:,} draws in {run.dim:,} dimensions have no widest and no narrowest direction: "
                "take more `draws`, or give `directions`."
            )
        vectors = np.linalg.eigh(np.atleast_2d(np.cov(x.reshape(-1, run.dim).T)))[1]
        directions = vectors[:, [-1, 0]].T
    directions = np.atleast_2d(np.asarray(directions, dtype=float))
    if directions.shape[1] != run.dim or not np.all(np.isfinite(directions)) or np.any(~directions.any(axis=1)):
        raise ValueError(f"`directions` must be rows of {run.dim} numbers that are not all zero.")
    if not 1 <= lags <= draws // 2:
        raise ValueError(f"`lags` must be in 1 … {draws // 2}, half the draws, got {lags!r}.")
    z = np.einsum("cnd,kd->kcn", x - x.mean(axis=(0, 1)), directions)
    spectrum = np.abs(np.fft.rfft(z, 2 * draws)) ** 2  # twice as long, so that the end does not meet the beginning
    covariance = np.fft.irfft(spectrum.mean(axis=1))[:, :lags] / (draws - np.arange(lags))
    spacing = float(np.mean(run.end - run.warmup)) / draws
    time = spacing * np.arange(lags)
    terms = time * run.stats["data_terms"] / float(np.sum(run.end))
    passes = time * run.stats["data_passes"] / float(np.sum(run.end))
    still = np.flatnonzero(~(covariance[:, 0] > 0.0))
    if len(still):
        warn(f"nothing moved along directions {still.tolist()}: they have no correlation.")
    with np.errstate(all="ignore"):
        correlation = covariance / covariance[:, :1]
    return {"acf": correlation, "time": time, "data_terms": terms, "data_passes": passes, "directions": directions}


def integrated_time(acf: ArrayLike) -> np.ndarray | float:
    """Integrated autocorrelation time: the sum of an autocorrelation function over the lags of both signs, 0 once.

    The number of draws, divided by it, is that of effective draws.

    Parameters
    ----------
    acf : array_like, shape (..., lags)
        From lag 0 on, such as those of `acf`. The sum ends where a pair of neighbours, 2m and 2m + 1, is not positive:
        what follows is noise [1]_.

    Returns
    -------
    ndarray, shape (...)
        In units of a lag; a float of one function.

    Raises
    ------
    ValueError
        For fewer than two lags.

    Warns
    -----
    UserWarning
        If all pairs are positive: the sum is too small then, as further lags would add to it.

    References
    ----------
    .. [1] Geyer (1992), Practical Markov chain Monte Carlo, Statist. Sci. 7, section 3.3.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> round(pdmp.diagnostics.integrated_time(np.r_[0.9 ** np.arange(200), 0.0, 0.0]), 3)
    19.0
    """
    values = np.asarray(acf, dtype=float)
    if values.ndim < 1 or values.shape[-1] < 2:
        raise ValueError(f"`acf` must have two lags or more, got the shape {values.shape}.")
    even = values.shape[-1] // 2 * 2
    pairs = values[..., :even].reshape(*values.shape[:-1], -1, 2).sum(axis=-1)
    positive = np.logical_and.accumulate(pairs > 0.0, axis=-1)
    if np.any(positive[..., -1]):
        warn("correlated at the last lag still: the time is too small, take more lags.")
    total = 2.0 * np.sum(np.where(positive, pairs, 0.0), axis=-1) - values[..., 0]
    total = np.where(np.isnan(values).any(axis=-1), np.nan, total)
    return total if total.ndim else float(total)


def configurational_temperature(model: Model, draws: ArrayLike, form: str = "virial") -> Estimate:
    r"""The temperature of positions, 1 for draws from exp(-U): an `Estimate`.

    Parameters
    ----------
    model : Model
        With the exact gradient.
    draws : array_like, shape (chains, n, d) or (n, d)
    form : {"virial", "gradient"}
        "virial": <(x - x̄)·∇U> / d, because E (x - m)·∇U = d for any m. "gradient": <|∇U|²> / <ΔU>, the Laplacian by
        central differences, 2 d gradients for each draw; steep directions dominate it.

    Returns
    -------
    Estimate

    Notes
    -----
    Gradient noise raises the temperature of a fixed-step sampler: with noise of variance V, that of SGLD with step γ is
    about 1 + γV/2. Rugh (1997), Dynamical approach to temperature, Phys. Rev. Lett. 78; Leimkuhler & Matthews (2015),
    Molecular dynamics, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0], [1.0])
    >>> draws = 2.0 ** 0.5 * np.random.default_rng(0).standard_normal((10_000, 1))
    >>> round(pdmp.diagnostics.configurational_temperature(model, draws).value)
    2
    """
    x, gradients = as_draws(draws), _gradients(model, draws)
    d = x.shape[2]
    if form == "virial":

        def measure(both):
            here = both[:, :d] - both[:, :d].mean(axis=0)
            return float(np.einsum("ij,ij->", here, both[:, d:])) / ((len(both) - 1) * d)

        return jackknife(measure, np.concatenate([x, gradients], axis=2))
    if form != "gradient":
        raise ValueError(f'`form` must be "virial" or "gradient", got {form!r}.')
    widths = 1e-4 * np.maximum(x.reshape(-1, d).std(axis=0), 1e-12)
    laplacian = np.zeros(x.shape[:2])
    for place in np.ndindex(laplacian.shape):
        for j, h in enumerate(widths):
            step = np.zeros(d)
            step[j] = h
            laplacian[place] += (model.gradient(x[place] + step)[j] - model.gradient(x[place] - step)[j]) / (2.0 * h)
    both = np.stack([np.einsum("cnd,cnd->cn", gradients, gradients), laplacian], axis=2)
    return jackknife(lambda pair: float(pair[:, 0].mean() / pair[:, 1].mean()), both)
