"""A run for other packages: draws for ArviZ, of a number that suits its estimates, and tables for pandas."""

from __future__ import annotations

import math
from importlib import metadata

import numpy as np

from pdmp.diagnostics.averages import draw_times, effective_draws
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.errors import silenced
from pdmp.models.transforms import flat

LEAST_DRAWS, MOST_DRAWS = 100, 10_000  #: of each chain, among which their number is chosen
COORDINATES = 20  #: most coordinates whose effective draws are compared for that
NUMBERS = 20_000_000  #: most numbers in the log-likelihoods, and most terms evaluated, unless they are asked for


def choose_draws(run):
    """How many equally spaced draws of each chain give ArviZ the effective draws that the path has, about.

    And ArviZ's bulk effective draws over those of the path for it, the median of the coordinates. Deviations of a
    bouncing path cancel each other. Of draws that are too close together ArviZ does not see this, since its sum of
    autocorrelations ends at the first negative one; and draws that are too far apart are fewer than the path is worth.
    So several numbers are tried, a factor √2 apart, for that whose effective draws of means and sds are nearest to the
    path's, by logarithms.
    """
    most = min(MOST_DRAWS, int(run.events.min()), max(NUMBERS // (run.chains * run.dim), 50))
    if run.store == "grid":
        most = min(most, min(int(r.grid.used[0]) for r in run.records))
    path = effective_draws(run)
    known = np.flatnonzero(np.all([np.isfinite(d) & (d > 0.0) for d in path.values()], axis=0))
    known = known[np.unique(np.linspace(0, len(known) - 1, COORDINATES).astype(int))] if len(known) else known
    if most <= LEAST_DRAWS or not len(known):
        return max(most, 1), math.nan
    count = math.ceil(2.0 * math.log2(most / LEAST_DRAWS)) + 1
    best = (math.inf, most, math.nan)
    for n in np.unique(np.geomspace(LEAST_DRAWS, most, count).round().astype(int)):
        draws = run.draws(int(n))[:, :, known]
        with np.errstate(all="ignore"), silenced():
            bulk, sd = (np.log(draws_ess(draws, m) / path[p][known]) for m, p in (("bulk", "mean"), ("sd", "sd")))
        misfit = float(np.mean(bulk**2) + np.mean(sd**2))
        if misfit < best[0]:
            best = (misfit, int(n), float(np.exp(np.median(bulk))))
    return best[1:]


def to_arviz(run, n, model, log_likelihood):
    """See `Run.to_arviz`."""
    with silenced():
        try:
            import arviz
        except ImportError:
            raise ImportError("`to_arviz` needs ArviZ: pip install 'pdmp[arviz]'.") from None
        model = getattr(run.process, "model", None) if model is None else model
        n, ratio = choose_draws(run) if n is None else (n, math.nan)
        draws = run.draws(n)
        groups = {"posterior": run.constrain(draws, model), "sample_stats": {"time": draw_times(run, n)}}
        for name, values in _of_model(model, draws, log_likelihood).items():
            if name == "lp":
                groups["sample_stats"]["lp"] = values
            elif values:
                groups[name] = values
        dims = {k: list(v) for k, v in getattr(model, "dims", {}).items()}
        coords = {k: list(v) for k, v in getattr(model, "coords", {}).items()}
        if int(arviz.__version__.split(".")[0]) >= 1:
            data = arviz.from_dict(groups, dims=dims, coords=coords)
        else:
            data = arviz.from_dict(**groups, dims=dims, coords=coords)
        data["posterior"].attrs.update(_attributes(run, n, ratio))
        return data


def _of_model(model, draws, log_likelihood):
    """Log densities, log-likelihoods and observed data of a model, as far as it has them and they are not too many."""
    if model is None or not hasattr(model, "potential"):
        return {}
    count, terms, found = draws.shape[0] * draws.shape[1], max(getattr(model, "n_data", 0), 1), {}
    terms = max(terms, getattr(model, "log_likelihood_size", 0))
    if count * terms <= NUMBERS:
        lp = np.array([-model.potential(x) for x in draws.reshape(count, -1)])
        found["lp"] = lp.reshape(draws.shape[:2])
    if hasattr(model, "log_likelihoods"):
        if log_likelihood or (log_likelihood is None and count * terms <= NUMBERS):
            found["log_likelihood"] = model.log_likelihoods(draws)
        found["observed_data"] = model.observed_data()
    return found


def _attributes(run, n, ratio):
    try:
        version = metadata.version("pdmp")
    except metadata.PackageNotFoundError:
        version = "unknown"
    attrs = {
        "inference_library": "pdmp",
        "inference_library_version": version,
        "sampler": run.info["sampler"],
        "process": run.info["process"],
        "sampling_time": run.info.get("wall_seconds", float("nan")),
        "seed": str(run.seed),
        "spacing": [float(r.length) / n for r in run.records],
        "ess_note": "ESS and MCSE that ArviZ computes are those of these draws; those of the exact path are in "
        "run.summary() and pdmp.diagnostics.effective_draws(run)",
    }
    if math.isfinite(ratio):
        attrs["ess_ratio"] = ratio
    if len(run.copies) > 1:
        attrs["draws_of"] = "the fine chain; run.mean() and run.expectation() extrapolate"
    return attrs


def to_dataframe(run, n, model):
    """See `Run.to_dataframe`."""
    try:
        import pandas
    except ImportError:
        raise ImportError("`to_dataframe` needs pandas: pip install pandas.") from None
    draws = run.draws(n)
    columns = {
        "chain": np.repeat(np.arange(run.chains), n),
        "draw": np.tile(np.arange(n), run.chains),
    }
    for name, values in flat(run.constrain(draws, model)).items():
        columns[name] = values.reshape(-1)
    return pandas.DataFrame(columns)
