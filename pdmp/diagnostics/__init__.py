"""How good samples are."""

from pdmp.diagnostics import stein as stein
from pdmp.diagnostics.effective_size import ess as ess
from pdmp.diagnostics.effective_size import rhat as rhat
from pdmp.diagnostics.events import acf as acf
from pdmp.diagnostics.events import bounce_rate as bounce_rate
from pdmp.diagnostics.events import bounds as bounds
from pdmp.diagnostics.events import configurational_temperature as configurational_temperature
from pdmp.diagnostics.events import event_rates as event_rates
from pdmp.diagnostics.events import flip_rates as flip_rates
from pdmp.diagnostics.events import gaussian_bounce_rate as gaussian_bounce_rate
from pdmp.diagnostics.events import gaussian_flip_rates as gaussian_flip_rates
from pdmp.diagnostics.events import time_between as time_between
from pdmp.diagnostics.monte_carlo_error import asymptotic_variance as asymptotic_variance
from pdmp.diagnostics.monte_carlo_error import efficiency as efficiency
from pdmp.diagnostics.predictive import accuracy as accuracy
from pdmp.diagnostics.predictive import ece as ece
from pdmp.diagnostics.predictive import log_likelihood as log_likelihood
from pdmp.diagnostics.predictive import log_loss as log_loss
from pdmp.diagnostics.predictive import mce as mce
from pdmp.diagnostics.predictive import reliability as reliability
from pdmp.diagnostics.predictive import rmse as rmse
from pdmp.diagnostics.predictive import running_log_loss as running_log_loss
from pdmp.diagnostics.reference import Estimate as Estimate
from pdmp.diagnostics.reference import jackknife as jackknife
from pdmp.diagnostics.reference import mean_error as mean_error
from pdmp.diagnostics.reference import mmd as mmd
from pdmp.diagnostics.reference import report as report
from pdmp.diagnostics.reference import sd_error as sd_error
from pdmp.diagnostics.reference import sliced_wasserstein as sliced_wasserstein
from pdmp.diagnostics.reference import variance_error as variance_error
from pdmp.diagnostics.reference import wasserstein as wasserstein
from pdmp.diagnostics.stein import fssd as fssd
from pdmp.diagnostics.stein import ksd as ksd
from pdmp.diagnostics.stein import scores as scores
from pdmp.diagnostics.stein import sliced_ksd as sliced_ksd
from pdmp.diagnostics.stein import stein_thin as stein_thin
from pdmp.diagnostics.variable_selection import inclusion as inclusion
from pdmp.diagnostics.variable_selection import sparsity as sparsity

#: What runs samplers has moved to `pdmp.validation`; the names stay good here.
_MOVED = ("check_clocks", "calibration")


def __getattr__(name):
    if name in _MOVED:
        import importlib

        return getattr(importlib.import_module("pdmp.validation"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
