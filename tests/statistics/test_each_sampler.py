"""One stationary law of each exported sampler: the statistical tests that `pytest` runs without ``--full``.

Mean and variance of chains against the target's, or for a fixed-step sampler against those of the law that it has at
its step, gradient noise included. Each case promises to see means that are off by `RESOLUTION` standard deviations and
variances that are off by that part: 0.3 in plain Python, where compilation costs nothing and a chain is short, and 0.1
compiled. ``pytest`` runs the law of `QUICK` compiled and the others plain, but for those of `LATER`, plain by
``pytest --full``, and those of `FULL`, compiled by it. The other files of this folder look more closely, compiled.
"""

import inspect

import numba
import numpy as np
import pytest
from scipy import special, stats

import discrete
import pdmp
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression
from pdmp.process import Process
from tests.checks import assert_unbiased, barker_law, replicate, run_chain
from tests.kinetics import additive
from tests.lattice_laws import frozen_law, noisy, splitting_law
from tests.native.processes import needs_compiler, python
from tests.statistics.helpers_thermostat_laws import gaussian_kicks, kernel_law

PLAIN = bool(numba.config.DISABLE_JIT)
RESOLUTION = 0.3 if PLAIN else 0.1
EVENTS = 700 if PLAIN else 40_000
STEPS = 1_700 if PLAIN else 60_000
#: Samplers that need more events or steps to see a bias of that size, or fewer, by what factor.
LENGTHS = {"Sticky, BPS": 3.0}
if PLAIN:
    LENGTHS = (
        dict.fromkeys(("Sticky, ZigZag", "SGNHT", "SGBPS"), 1.5)
        | dict.fromkeys(("HMC", "Bounded", "SGD"), 0.15)
        | dict.fromkeys(("ZigZag", "CoordinateSampler", "ForwardEventChain", "MALA"), 0.3)
        | dict.fromkeys(("SGHMC", "ZigZagSplitting"), 0.4)
        | {"BPSSplitting": 0.5, "BADODAB": 0.6}
        | dict.fromkeys(("LocalBPS", "DirectionalBPS", "GeneralisedBPS", "SGBD", "SGZZ"), 0.7)
    )
#: The longest in plain Python; of each of their families a shorter one is quick.
LATER = ("SGBPS", "BPSSplitting", "SGNHT")
#: Shows that this machine compiles; compilation costs more than the law.
QUICK = ("BPS",)
#: Costly in plain Python, where one of each family is tested; their paths are those that `tests/test_paths.py` holds.
FULL = (
    *("SBPS", "SGLD", "Boomerang", "FactorisedBoomerang", "RichardsonRomberg", "Barker", "MSGNHT", "UBU", "BAOAB"),
    *("Sticky, batches", "Sticky, BPS", "Sticky, Boomerang"),
    *("ZigZag, mass", "Barker, preconditioner", "BAOAB, preconditioner", "LipschitzSBPS", "SGRRLD", "SGRRHMC"),
)
#: Of these, what others show of another metric or estimator.
RELEASE = ("Sticky, batches", "ZigZag, mass", "Barker, preconditioner", "BAOAB, preconditioner")

# ---------------------------------------------------------------------------------------------------------------
# Targets: mean and variances (d,) beside each

PAIR = Gaussian([1.0, -0.5], np.linalg.inv([[1.0, 0.5], [0.5, 0.8]]))
PAIR_LAW = [1.0, -0.5], [1.0, 0.8]
PART = [[1.5, -0.2], [-0.2, 0.4]]  # a preconditioner that is not the covariance of `PAIR`

TAU = 2.0  # standard deviation of the gradient noise
ONE = Gaussian([1.5], [1.0])
NOISY = Noisy(ONE, TAU)

X, Y = np.array([[1.0], [-0.5], [2.0], [0.7]]), np.array([1.0, 1.0, 0.0, 1.0])
LOGISTIC = LogisticRegression(X, Y, prior_scale=1.0)

A = np.array([[1.0, 0.4], [0.2, 1.1], [-0.6, 0.5]])
LINEAR = LinearGaussian(A, np.array([1.2, 0.1, -0.4]), prior_scale=1.3)
INCLUSION = np.array([0.6, 0.4])


def logistic_law():
    theta = np.linspace(-8.0, 8.0, 4001)
    weights = np.exp(-0.5 * theta**2) * special.expit((2.0 * Y[:, None] - 1.0) * X * theta).prod(axis=0)
    mean = np.average(theta, weights=weights)
    return mean, np.average((theta - mean) ** 2, weights=weights)


def spike_and_slab_law():
    """Of θ, zero where it is excluded, over the four models of `LINEAR`."""
    found = []
    for included in np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool):
        part = A[:, included]
        covariance = np.linalg.inv(part.T @ part + np.eye(part.shape[1]) / 1.3**2)
        first, second = np.zeros(2), np.zeros(2)
        first[included] = covariance @ part.T @ LINEAR.y
        second[included] = np.diag(covariance) + first[included] ** 2
        marginal = stats.multivariate_normal(np.zeros(3), np.eye(3) + 1.3**2 * part @ part.T).pdf(LINEAR.y)
        found.append((marginal * np.prod(np.where(included, INCLUSION, 1.0 - INCLUSION)), first, second))
    weights, first, second = (np.array(values) for values in zip(*found, strict=True))
    mean = np.average(first, axis=0, weights=weights)
    return mean, np.average(second, axis=0, weights=weights) - mean**2


def truncated_law():
    """Of `ONE` between 1 and 2.5."""
    mean, variance = stats.truncnorm.stats(-0.5, 1.0, moments="mv")
    return 1.5 + mean, variance


# ---------------------------------------------------------------------------------------------------------------
# Laws of fixed-step samplers with noise N(0, `TAU`²) on the gradient of `ONE`


def langevin_variance(step):
    return (2.0 + step * TAU**2) / (2.0 - step)


def kinetic(scheme, step=0.4, friction=1.5):
    law = additive(scheme, step, friction, 1.0, [1.5], TAU)
    return law.mean, np.diag(law.cov)


def extrapolated(coarse, fine):
    return 1.5, 2.0 * np.asarray(fine) - np.asarray(coarse)


def thermostat(scheme, step):
    return 1.5, kernel_law(scheme, step, 1.0, gaussian_kicks(1.0, TAU))[1]


def frozen(step, refresh_rate=0.0):
    return 1.5, frozen_law(noisy(lambda x: x, TAU), step, refresh_rate)[1]


def splitting(refresh_rate=0.0):
    return 1.5, splitting_law(noisy(lambda x: x, TAU), 0.4, refresh_rate)[1]


#: Of every exported sampler, with some of their options, a process, and the mean and the variances that it must have.
LAWS = {
    "BPS": (lambda: pdmp.BPS(PAIR, 0.5), PAIR_LAW),
    "ZigZag": (lambda: pdmp.ZigZag(PAIR), PAIR_LAW),
    "ZigZag, mass": (lambda: pdmp.ZigZag(PAIR, metric=[[1.5, 0.4], [0.4, 0.8]]), PAIR_LAW),
    "SBPS": (lambda: pdmp.SBPS(Noisy(PAIR, 0.5), k=5.0, refresh_rate=0.5), PAIR_LAW),
    "LipschitzSBPS": (lambda: pdmp.LipschitzSBPS(Minibatch(LOGISTIC, 2), refresh_rate=0.5), logistic_law),
    "DirectionalBPS": (lambda: pdmp.DirectionalBPS(PAIR, 0.5), PAIR_LAW),
    "GeneralisedBPS": (lambda: pdmp.GeneralisedBPS(PAIR), PAIR_LAW),
    "ForwardEventChain": (lambda: pdmp.ForwardEventChain(PAIR, "refresh", 0.5), PAIR_LAW),
    "CoordinateSampler": (lambda: pdmp.CoordinateSampler(PAIR), PAIR_LAW),
    "HMC": (lambda: pdmp.HMC(PAIR, step=0.8), PAIR_LAW),
    "LocalBPS": (lambda: pdmp.LocalBPS(PAIR), PAIR_LAW),
    "Boomerang": (
        lambda: pdmp.Boomerang(PAIR, [0.5, 0.0], metric=pdmp.Metric(covariance=[[1.2, 0.0], [0.0, 0.6]])),
        PAIR_LAW,
    ),
    "FactorisedBoomerang": (lambda: pdmp.FactorisedBoomerang(PAIR, [0.5, 0.0]), PAIR_LAW),
    "Sticky, ZigZag": (lambda: pdmp.Sticky(pdmp.ZigZag(LINEAR), INCLUSION), spike_and_slab_law),
    "Sticky, batches": (lambda: pdmp.Sticky(pdmp.ZigZag(ControlVariate(LINEAR, 1)), INCLUSION), spike_and_slab_law),
    "Sticky, BPS": (lambda: pdmp.Sticky(pdmp.BPS(LINEAR, velocities="gaussian"), INCLUSION), spike_and_slab_law),
    "Sticky, Boomerang": (
        lambda: pdmp.Sticky(pdmp.Boomerang(LINEAR, metric="diagonal"), INCLUSION),
        spike_and_slab_law,
    ),
    "Bounded": (lambda: pdmp.Bounded(pdmp.ZigZag(ONE), lower=1.0, upper=2.5), truncated_law),
    "GD": (lambda: discrete.GD(ONE, 0.4), (1.5, 0.0)),
    "SGD": (lambda: discrete.SGD(NOISY, 0.4), (1.5, 0.4 * TAU**2 / (2.0 - 0.4))),
    "SGLD": (lambda: discrete.SGLD(NOISY, 0.4), (1.5, langevin_variance(0.4))),
    "SGBD": (lambda: discrete.SGBD(NOISY, 0.5), lambda: (1.5, barker_law("vanilla", 0.5, 1.0, TAU)[0, 0])),
    "Barker": (lambda: discrete.Barker(ONE, 1.8, adapt=False), (1.5, 1.0)),
    "Barker, preconditioner": (
        lambda: discrete.Barker(PAIR, 1.2, adapt=False, metric=pdmp.Metric(covariance=PART)),
        PAIR_LAW,
    ),
    "MALA": (lambda: discrete.MALA(ONE, 1.2, adapt=False), (1.5, 1.0)),
    "SGHMC": (lambda: discrete.SGHMC(NOISY, 0.4, 1.5), lambda: kinetic("splitting")),
    "BAOAB": (lambda: discrete.BAOAB(NOISY, 0.4, 1.5), lambda: kinetic("BAOAB")),
    "BAOAB, preconditioner": (lambda: discrete.BAOAB(PAIR, 0.8, 1.5, metric=pdmp.Metric(covariance=PART)), PAIR_LAW),
    "UBU": (lambda: discrete.UBU(NOISY, 0.4, 1.5), lambda: kinetic("UBU")),
    "SGNHT": (lambda: discrete.SGNHT(NOISY, 0.1), lambda: thermostat("euler", 0.1)),
    "MSGNHT": (lambda: discrete.MSGNHT(NOISY, 0.2), lambda: thermostat("splitting", 0.2)),
    "BADODAB": (lambda: discrete.BADODAB(NOISY, 0.2), lambda: thermostat("badodab", 0.2)),
    "RichardsonRomberg": (
        lambda: discrete.RichardsonRomberg(discrete.SGLD(NOISY, 0.4)),
        extrapolated(langevin_variance(0.4), langevin_variance(0.2)),
    ),
    "SGRRLD": (lambda: discrete.SGRRLD(NOISY, 0.3), extrapolated(langevin_variance(0.3), langevin_variance(0.15))),
    "SGRRHMC": (
        lambda: discrete.SGRRHMC(NOISY, 0.4, 1.5, order=1),
        lambda: extrapolated(kinetic("splitting")[1], kinetic("splitting", 0.2)[1]),
    ),
    "SGZZ": (lambda: discrete.SGZZ(NOISY, 0.2), lambda: frozen(0.2)),
    "SGBPS": (lambda: discrete.SGBPS(NOISY, 0.2, refresh_rate=0.5), lambda: frozen(0.2, 0.5)),
    "ZigZagSplitting": (lambda: discrete.ZigZagSplitting(NOISY, 0.4), splitting),
    "BPSSplitting": (lambda: discrete.BPSSplitting(NOISY, 0.4, refresh_rate=0.5), lambda: splitting(0.5)),
}


BASES = (Process, discrete.Ticking, discrete.Brownian)


def exported():
    """Names of the samplers of both packages."""
    return {
        name
        for package in (pdmp, discrete)
        for name in dir(package)
        if inspect.isclass(value := getattr(package, name)) and issubclass(value, Process) and value not in BASES
    }


@pytest.mark.exact
def test_every_exported_sampler_has_a_law():
    assert {name.partition(",")[0] for name in LAWS} == exported()


def marks_of(name):
    """In which tier its law is tested beside `pytest --full`."""
    exact = [pytest.mark.exact, pytest.mark.slow] if name in LATER else pytest.mark.exact
    if name in RELEASE:
        return pytest.mark.release
    return () if name in FULL else pytest.mark.quick if name in QUICK else exact


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in LAWS])
def test_its_law(name):
    make, law = LAWS[name]
    mean, var = np.broadcast_arrays(*map(np.atleast_1d, law() if callable(law) else law))
    process = make()
    if name == "GD":  # its law is one point
        found = replicate(process, [9.0], 2, seed=1, warmup=0.9, steps=1_000)
        np.testing.assert_allclose(found.mean - mean, 0.0, atol=1e-12)
        return
    length = LENGTHS.get(name, 1.0)
    budget = {"steps": int(STEPS * length)} if process.ticks else {"events": int(EVENTS * length)}
    found = replicate(process, mean, 32, seed=101, warmup=0.05, **budget)
    assert_unbiased((found.mean - mean) / np.sqrt(var), 0.0, resolution=RESOLUTION)
    assert_unbiased(found.var / var, 1.0, resolution=RESOLUTION)


COMPILED = (*QUICK, *FULL)


def paths():
    """The first events of those whose laws are tested compiled, with the machine code of the laws."""
    found = {}
    for name in COMPILED:
        make, law = LAWS[name]
        process, start = make(), np.atleast_1d((law() if callable(law) else law)[0])
        budget = {"steps": 300} if process.ticks else {"events": 1_000}
        record = run_chain(process, np.broadcast_to(start, process.model.dim), 62, **budget).finish()
        found |= {f"{name}/{part}": getattr(record, part) for part in ("times", "kinds", "which", "xs", "vs")}
    return found


@needs_compiler
def test_compiled_paths_are_those_of_plain_python(tmp_path):
    """Bitwise, for rounding differences grow exponentially along a path; a batch's sum may be reordered."""
    script = "import numpy as np; from tests.statistics.test_each_sampler import paths; "
    python("-c", f"{script}np.savez({str(tmp_path / 'p.npz')!r}, **paths())", NUMBA_DISABLE_JIT=1)
    different, ours = [], paths()
    with np.load(tmp_path / "p.npz") as theirs:
        for key, value in ours.items():
            close = np.allclose if key.startswith("LipschitzSBPS") else np.array_equal
            if value.shape != theirs[key].shape or not close(value, theirs[key]):
                different.append(key)
    assert min(len(ours[f"{name}/times"]) for name in COMPILED) >= 300 and not different, different
