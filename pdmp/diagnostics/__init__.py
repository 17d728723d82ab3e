"""How good samples are."""

from pdmp.diagnostics import stein as stein
from pdmp.diagnostics.clocks import check_clocks as check_clocks
from pdmp.diagnostics.ess import ess as ess
from pdmp.diagnostics.ess import rhat as rhat
from pdmp.diagnostics.inclusion import inclusion as inclusion
from pdmp.diagnostics.inclusion import sparsity as sparsity
from pdmp.diagnostics.predictive import accuracy as accuracy
from pdmp.diagnostics.predictive import ece as ece
from pdmp.diagnostics.predictive import log_loss as log_loss
from pdmp.diagnostics.predictive import mce as mce
from pdmp.diagnostics.predictive import reliability as reliability
from pdmp.diagnostics.predictive import rmse as rmse
from pdmp.diagnostics.reference import jackknife as jackknife
from pdmp.diagnostics.reference import mean_error as mean_error
from pdmp.diagnostics.reference import mmd as mmd
from pdmp.diagnostics.reference import sd_error as sd_error
from pdmp.diagnostics.reference import sliced_wasserstein as sliced_wasserstein
from pdmp.diagnostics.reference import variance_error as variance_error
from pdmp.diagnostics.reference import wasserstein as wasserstein
from pdmp.diagnostics.stein import fssd as fssd
from pdmp.diagnostics.stein import ksd as ksd
from pdmp.diagnostics.stein import scores as scores
from pdmp.diagnostics.stein import sliced_ksd as sliced_ksd
from pdmp.diagnostics.stein import stein_thin as stein_thin
