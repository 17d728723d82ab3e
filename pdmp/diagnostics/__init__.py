"""Diagnostics of draws and of paths. Checks that run samplers themselves are in `pdmp.validation`."""

from pdmp.diagnostics import stein
from pdmp.diagnostics.averages import draw_times, effective_draws, running_mean, split
from pdmp.diagnostics.distances import (
    mean_error,
    mmd,
    report,
    sd_error,
    sliced_wasserstein,
    variance_error,
    wasserstein,
)
from pdmp.diagnostics.effective_size import ess, rhat
from pdmp.diagnostics.estimates import Estimate, jackknife
from pdmp.diagnostics.events import (
    acf,
    bounce_rate,
    bounds,
    configurational_temperature,
    event_rates,
    flip_rates,
    gaussian_bounce_rate,
    gaussian_flip_rates,
    integrated_time,
)
from pdmp.diagnostics.monte_carlo_error import asymptotic_variance, efficiency
from pdmp.diagnostics.predictive import (
    accuracy,
    ece,
    log_likelihood,
    log_loss,
    mce,
    reliability,
    rmse,
    running_log_loss,
)
from pdmp.diagnostics.stein import fssd, ksd, scores, sliced_ksd, stein_thin
from pdmp.diagnostics.variable_selection import inclusion, sparsity
from pdmp.native.explanations import explained_functions
from pdmp.native.lazy import given_up as _given_up

__all__ = [
    "Estimate",
    "accuracy",
    "acf",
    "asymptotic_variance",
    "bounce_rate",
    "bounds",
    "configurational_temperature",
    "draw_times",
    "ece",
    "effective_draws",
    "efficiency",
    "ess",
    "event_rates",
    "flip_rates",
    "fssd",
    "gaussian_bounce_rate",
    "gaussian_flip_rates",
    "inclusion",
    "integrated_time",
    "jackknife",
    "ksd",
    "log_likelihood",
    "log_loss",
    "mce",
    "mean_error",
    "mmd",
    "reliability",
    "report",
    "rhat",
    "rmse",
    "running_log_loss",
    "running_mean",
    "scores",
    "sd_error",
    "sliced_ksd",
    "sliced_wasserstein",
    "sparsity",
    "split",
    "stein",
    "stein_thin",
    "variance_error",
    "wasserstein",
]

explained_functions(globals())

__getattr__ = _given_up(
    __name__, {"time_between": f"{__name__}.time_between was left out: numpy.diff(path.times) of run.trajectories."}
)
