"""Checks that run samplers: clocks against their rates, and ranks of simulated parameters."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
from scipy import stats

import pdmp
from pdmp import validation
from pdmp.flow import Elliptic
from pdmp.validation import clocks, simulation
from tests import toys
from tests.answers import case
from tests.checks import plain
from tests.recorded import moved

TARGET = pdmp.models.Gaussian(moved([1.0, -2.0]), [[2.0, 0.8], [0.8, 1.5]])


# -- clocks ---------------------------------------------------------------------------------------------------------


class Switches(toys.Telegraph):
    """Rates of 1 and of 0.6 under a bound of 1, or of 1.5 after a while; it claims the first, and 0.66."""

    first: float
    exact_bounds = False

    def __init__(self, first=1.0, trouble=toys.NO_TROUBLE):
        super().__init__(trouble)
        self.first = first

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = self.first
        out[1] = 0.66


class Slopes(pdmp.Process):
    """Signed rates, and one that jumps, along lines or ellipses; never run."""

    _required = ()

    def __init__(self, flow=None):
        super().__init__(2, 3, flow=flow)

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = math.sin(3.0 * x[0]) + 0.2 * v[1]
        out[1] = x[0] * x[0] * x[0] - x[1]
        out[2] = 2.0 if x[0] > 0.1 else -1.0


CLOCKS = {
    "BPS, grid": (lambda: pdmp.BPS(TARGET, refresh_rate=0.7, thinning="grid"), {}),
    "Zig-Zag": (lambda: pdmp.ZigZag(TARGET), {"initial": [1.3, 0.4], "seed": 1, "tolerance": 1e-3}),
    "Zig-Zag, one clock": (lambda: pdmp.ZigZag(TARGET, thinning="affine"), {"tolerance": 0.05}),
    "Boomerang": (lambda: pdmp.Boomerang(TARGET, metric=pdmp.Metric(covariance=[0.3, 0.6])), {}),
    "thinned": (Switches, {"initial": [0.0, 0.0], "events": 300, "seed": 2}),
    "not Poisson": (lambda: Switches(math.nan), {"initial": [0.0, 0.0], "events": 120}),
    "exceeded": (lambda: Switches(1.0, toys.ABOVE_BOUND), {"initial": [0.0, 0.0], "events": 120}),
}


def table(found):
    """A check, and the words of its table."""
    more = [[clock.p, clock.resolution] for clock in found.clocks], found.p, found.resolution
    return found, more, [line.split() for line in str(found).splitlines()]


for name, (make, options) in CLOCKS.items():
    case(
        lambda make=make, options=options: table(validation.check_clocks(make(), **{"events": 100, **options})),
        f"clocks, {name}",
    )


@case
def integrals_of_rates():
    found = []
    for flow in (None, Elliptic([0.4, -1.5])):
        process = Slopes(flow)
        state = process.begin(np.array([-0.5, 1.0]), np.random.default_rng(0))
        state.v[:] = [0.8, -1.1]
        work = clocks._new_work(process, state, 3, 1)
        for length, tolerance in ((0.3, 1e-3), (2.0, 1e-3), (5.0, 1e-2), (2.0, 1.0), (0.9, 0.02)):
            plain(clocks._integrate)(process.native, process.flow.native, work, length, tolerance)
            found.append([work.hazards.copy(), work.error.copy()])
    return found


@case
def what_is_reported():
    """Of gaps that are given: three channels of two clocks, one of which has had a single event, and few are good."""
    gaps = moved(np.random.default_rng(4).standard_exponential(41) * np.where(np.arange(41) % 3, 1.2, 0.3))
    process = pdmp.ZigZag(TARGET)
    found = []
    for channel in (np.arange(41) % 3, np.where(np.arange(41) == 7, 1, 2 * (np.arange(41) % 2))):
        work = SimpleNamespace(gaps=gaps, gap_channel=channel, clock=np.array([1, 0, 1]), done=np.array([41]))
        work.error = np.array([0.1, 0.2, 0.7])
        work.thinned, work.accepted, work.violated = np.array([20, 0]), np.array([15, 0]), np.array([3, 0])
        found.append(table(clocks._report(process, work, ["a", "b", "c"])))
    return found


# -- calibration ----------------------------------------------------------------------------------------------------

RANKS = np.stack([np.random.default_rng(6).integers(0, 10, 73), np.arange(73) % 7, (np.arange(73) ** 2) % 10], axis=1)


@case
def uniformity_of_ranks():
    few, some = simulation.Calibration(RANKS[:13], 9), simulation.Calibration(RANKS, 9, ("a", "b", "c"))
    alone = simulation.Calibration(RANKS[:, :1], 9, ("a",))
    found = [one.p_values(bins) for one in (some, few) for bins in (None, 2, 3, 10)]
    return found, [[one.p, str(one).replace(";", " ;").split()] for one in (some, few, alone)]


class NormalMeans(pdmp.Model):
    """y_j ~ N(x_j, noise_j), x_j ~ N(0, 1)."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(dim=2)
        self.y = np.array(y, float)

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.5 * ((self.y[j] - x[j]) / (0.5 + 1.5 * j)) ** 2 + 0.5 * x[j] ** 2
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += (x[j] - self.y[j]) / (0.5 + 1.5 * j) ** 2 + x[j]

    def simulate(self, x, rng):
        """The model of data drawn at x."""
        return NormalMeans(x + np.array([0.5, 2.0]) * rng.standard_normal(2))


def spiked(rng):
    """A parameter of which a part is 0 now and then."""
    return np.where(rng.random(2) < 0.6, rng.standard_normal(2), 0.0)


def process_of(data):
    return pdmp.BPS(pdmp.models.Gaussian(0.5 * moved(data), [2.0, 2.0]), refresh_rate=1.0)


@case
def calibration():
    def simulate(x, rng):
        return x + rng.standard_normal(2)

    def rest(data):
        return pdmp.Sticky(pdmp.ZigZag(pdmp.models.Gaussian(0.5 * moved(data), [2.0, 2.0])), kappa=0.5)

    v = validation.calibration
    return [
        v(process_of, lambda rng: rng.standard_normal(2), simulate, replicates=4, draws=3, events=30, seed=1),
        v(process_of, lambda rng: rng.standard_normal(2), simulate, replicates=3, events=20, warmup=0.5),
        v(rest, spiked, simulate, replicates=5, draws=6, time=6.0, seed=2),
        v(process_of, lambda rng: rng.standard_normal(2), simulate, replicates=3, draws=7, events=3),
    ]


@case
def calibrate():
    """A model that simulates, functions of data, distributions of SciPy, and what was warned of."""

    def datum(x, rng):
        return x[0] + rng.standard_normal()

    def of(y):
        return pdmp.models.Gaussian(moved([0.5 * y]), [2.0])

    call = {"replicates": 2, "draws": 4, "chains": 2, "ess": 10, "gradients": 400, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            validation.calibrate(NormalMeans([0.0, 0.0]), lambda rng: rng.standard_normal(2), **call),
            validation.calibrate(of, stats.norm(0.0, 1.0), datum, **call | {"chains": 1}),
        ]
    return found, validation.calibrate(
        of, lambda rng: rng.standard_normal(1), datum, **call | {"gradients": 20, "replicates": 4}
    )
