"""Samplers whose models are called by address, beside the same ones compiled for the model.

    python -m tests.benchmarks.addresses

Each row is measured in a process of its own: nanoseconds for a gradient of the whole target (the least of five runs,
with all that the sampler does), and the CPU seconds to the first events with nothing of the model compiled; "known" are
those by address where another model has been sampled on the machine, "cold" those for the model.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import discrete
import pdmp
from pdmp.gradients import Full
from pdmp.native.classes import Compiled, compiled
from pdmp.process import DATA


class Inlined(Full):
    """Compiled for the model."""

    @property
    def by_address(self):
        return self


class Itself(Compiled):
    """A model in code that is compiled for it, with what `pdmp.HMC` asks of one by address."""

    model: object

    def __init__(self, model):
        self.model = model

    @compiled
    def total_potential(self, x):
        return self.model.total_potential(x)

    @compiled
    def add_gradient(self, x, out):
        self.model.add_gradient(x, out)

    @compiled
    def potential_and_gradient(self, x, out):
        return self.model.potential_and_gradient(x, out)

    @compiled
    def standardise(self, x, z):
        for j in range(x.shape[0]):
            z[j] = x[j]

    @compiled
    def natural(self, z, x):
        for j in range(x.shape[0]):
            x[j] = z[j]


class InlinedHMC(pdmp.HMC):
    """Compiled for the model."""

    target: object

    @property
    def target(self):
        return Itself(self.provider.packed)


MODELS = {
    "funnel, d = 5": lambda: pdmp.models.Funnel(5),
    "normal, d = 50": lambda: pdmp.models.Gaussian(np.zeros(50), np.ones(50)),
    "probit, 100 rows": lambda: pdmp.models.ProbitRegression(*_data(100), prior_scale=1.0),
    "probit, 1,000 rows": lambda: pdmp.models.ProbitRegression(*_data(1_000), prior_scale=1.0),
}
SAMPLERS = {
    "HMC": lambda model: pdmp.HMC(model, step=0.1),
    "BPS": lambda target: pdmp.BPS(target, refresh_rate=0.5, thinning="grid"),
    "BPS, predicted": lambda target: pdmp.BPS(target, refresh_rate=0.5, thinning="predicted"),
    "ZigZag": lambda target: pdmp.ZigZag(target, thinning="grid"),
    "SGLD": lambda target: discrete.SGLD(target, step=1e-3),
    "MALA": lambda target: discrete.MALA(target, step=0.01),
}


def _data(n):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 5))
    return X, (X[:, 0] + rng.standard_normal(n) > 0.0).astype(float)


def measured(model, sampler, inlined):
    """Nanoseconds for a gradient, and CPU seconds to the first events."""
    warnings.simplefilter("ignore")
    target = MODELS[model]()
    make, given = SAMPLERS[sampler], Inlined(target) if inlined else target
    if inlined and sampler == "HMC":
        make, given = lambda model: InlinedHMC(model, step=0.1), target
    options = {"initial": np.full(target.dim, 0.1), "seed": 1, "store": "moments", "progress": False}
    began = time.process_time()
    pdmp.sample(make(given), events=50, **options)
    first, least = time.process_time() - began, np.inf
    for _ in range(5):
        (record,) = pdmp.sample(make(given), seconds=0.5, **options).records
        least = min(least, record.seconds / record.counts[DATA] * max(target.n_data, 1))
    return 1e9 * least, first


def _elsewhere(folder, *arguments):
    command = [sys.executable, "-m", "tests.benchmarks.addresses", "--one", *arguments]
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in out.split()[-2:]]


def main():
    print(f"{'':36}{'ns by address':>14}{'for the model':>15}{'ratio':>7}{'known, CPU s':>14}{'cold, CPU s':>13}")
    for sampler in SAMPLERS:
        with tempfile.TemporaryDirectory() as folder:
            _elsewhere(folder, "funnel, d = 5", sampler, "")  # compiles the sampler
            for model in MODELS:
                by, known = _elsewhere(folder, model, sampler, "")
                inlined, cold = _elsewhere(folder, model, sampler, "inlined")
                print(
                    f"{sampler + ', ' + model:36}{by:14.1f}{inlined:15.1f}{by / inlined:7.2f}{known:14.2f}{cold:13.2f}"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "SAMPLER", "HOW"), help="one figure, in this process")
    one = parser.parse_args().one
    print(*measured(*one)) if one else main()
