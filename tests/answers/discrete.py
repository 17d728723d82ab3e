"""Samplers of fixed steps: what they are made of, what they choose, their stationary laws, paths and reports."""

from __future__ import annotations

import itertools

import numpy as np

import discrete
import pdmp
from discrete import barker, curvature, laws, momenta
from discrete import schedules as s
from discrete.clipping import as_safeguard
from tests.answers import case, once
from tests.recorded import moved

PRECISION = moved([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
NOISE = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.0]])
COVARIANCE = np.linalg.inv(PRECISION)
SAMPLERS = ("SGLD", "SGBD", "SGHMC", "BAOAB", "UBU", "SGNHT", "MSGNHT", "BADODAB")
START = np.array([0.4, -0.2, 0.1])
METRICS = {
    "number": 2.0,
    "vector": [1.0, 2.0, 0.5],
    "matrix": PRECISION,
    "covariance": pdmp.Metric(covariance=[[0.6, -0.2, 0.1], [-0.2, 0.9, 0.3], [0.1, 0.3, 1.2]]),
    "scales": pdmp.Metric(scales=[1.0, 2.0, 0.5]),
    "directions": pdmp.Metric(scales=[1.0, 2.0, 0.5], directions=[[0.6], [0.8], [0.0]], variances=[3.0]),
}
d, g = discrete, pdmp.gradients


@once
def logistic():
    """A logistic regression of forty rows."""
    rng = np.random.default_rng(2024)
    x = moved(rng.standard_normal((40, 3)))
    return pdmp.models.LogisticRegression(
        x, (rng.random(40) < 1.0 / (1.0 + np.exp(-x @ [1.0, -0.5, 0.3]))).astype(float)
    )


@once
def normal():
    return pdmp.models.Gaussian([1.0, 0.0, -1.0], PRECISION)


@once
def providers():
    """One of each kind of gradient."""
    model, anchor = logistic(), moved([0.9, -0.4, 0.2])
    return {
        "full": g.Full(model),
        "noisy": g.Noisy(model, [0.5, 1.0, 2.0]),
        "iid": g.Minibatch(model, 5),
        "one": g.Minibatch(model, 1),
        "distinct": g.Minibatch(model, 7, draw="distinct"),
        "reshuffle": g.Minibatch(model, 7, draw="reshuffle"),
        "epoch": g.Minibatch(model, 8, draw="epoch"),
        "control variate": g.ControlVariate(model, 3, anchor),
        "importance": g.ControlVariate(model, 3, anchor, draw="importance"),
    }


def batch(kind="iid"):
    return providers()[kind]


def parts(value):
    """What a process or a part of it is made of: names of classes, and numbers."""
    if isinstance(value, pdmp.Model):
        return type(value).__name__
    if type(value).__name__ == "_ByAddress" or isinstance(value, np.ndarray) and value.size == 0:
        return [type(value).__name__, *getattr(value, "shape", ())]
    if isinstance(value, np.ndarray | list | tuple | dict | str | int | float | bool | None):
        return value
    return {"is": type(value).__name__, **{k: parts(v) for k, v in vars(value).items() if not k.startswith("_")}}


def steps_of(schedule, most=12):
    return [[schedule.step(k), float(schedule.explores(k))] for k in range(most)]


def ran(process, steps=12, start=START, warmup=0.25, **options):
    """The positions of two unequal chains of a run, its averages, and what it says of itself."""
    starts = np.array([start, start + 0.3])
    run = pdmp.sample(process, initial=starts, chains=2, steps=steps, seed=3, warmup=warmup, progress=False, **options)
    found = {"stats": {k: v for k, v in run.stats.items() if "second" not in k}, "warm-up": run.warmup}
    if options.get("store") != "moments":
        found["paths"] = [[path.times, path.positions] for path in run.trajectories]
    return found | {"mean": run.mean(), "var": run.var(), "doubts": process.report.doubts(run, None)}


# -- schedules ----------------------------------------------------------------------------------------------------


class Falling(s.Schedule):
    """Steps of one's own, whose sum is finite for exponents above 1."""

    exponent: float

    def __init__(self, exponent):
        self.exponent = exponent

    @pdmp.compiled
    def step(self, k):
        return 0.1 * (k + 2.0) ** -self.exponent


SCHEDULES = {
    "constant": lambda: s.constant(0.2),
    "automatic": lambda: s.automatic(),
    "automatic of an error": lambda: s.automatic(0.3),
    "polynomial": lambda: s.polynomial(0.04, 2.0, 0.6),
    "polynomial, b alone": lambda: s.polynomial(0.04, 3.0),
    "polynomial, kappa alone": lambda: s.polynomial(0.04, kappa=0.7),
    "polynomial, finite sum": lambda: s.polynomial(0.04, kappa=1.2),
    "power": lambda: s.power(0.02, 0.3),
    "power of 1": lambda: s.power(0.02, 1),
    "power, finite sum": lambda: s.power(0.02, 1.5),
    "cyclical": lambda: s.cyclical(0.02, 5),
    "cyclical, exploring": lambda: s.cyclical(0.02, 5, exploration=0.4),
    "cyclical, nearly all": lambda: s.cyclical(0.02, 5, 0.99),
    "cyclical, rounded up": lambda: s.cyclical(0.02, 10, 0.31),
    "own": lambda: Falling(0.7),
    "own, finite sum": lambda: Falling(1.4),
    "halved": lambda: s.Halved(s.power(0.02, 0.5)),
    "repeated": lambda: s.Repeated(s.power(0.02, 0.5)),
    "number": lambda: s.as_schedule(0.3),
    "word": lambda: s.as_schedule("auto"),
    "temperature": lambda: s.as_temperature(0.0),
    "temperature that falls": lambda: s.as_temperature(s.power(2.0, 0.3)),
}


def schedule(name):
    made = SCHEDULES[name]()
    if not isinstance(made, s.Automatic) and made.step(0) > 0.0:
        made.check("step")
    return {"parts": parts(made), "steps": steps_of(made), "explores": made.exploring}


for name in SCHEDULES:
    case(lambda name=name: schedule(name), f"schedule {name}")


@case
def checks_of_sums():
    """Which exponents of a schedule of one's own are taken to have a finite sum."""
    return [Falling(e)._sum_seems_finite() for e in (0.0, 0.5, 0.9, 0.97, 1.0, 1.03, 1.06, 1.1, 2.0, 9.0, 30.0)]


# -- laws ---------------------------------------------------------------------------------------------------------


@case
def langevin_covariance():
    one = laws.langevin_covariance(PRECISION, NOISE, 0.1)
    preconditioned = laws.langevin_covariance(PRECISION, NOISE, 0.1, preconditioner=COVARIANCE)
    limits = [laws.langevin_covariance(PRECISION, NOISE, step) is None for step in (0.7, 0.76, 0.78, 0.9)]
    return [one, laws.langevin_covariance(PRECISION, NOISE, 0.1, 0.3 * np.eye(3)), preconditioned, limits]


#: Estimator, increment, gradient and sd of its noise.
SIGNS = [*itertools.product((0, 1, 2), (0.4, -0.7), (1.5, -2.0), (0.3, 9.0)), (2, 0.4, 0.0, 1.0), (1, 0.4, 0.0, 9.0)]


@case
def barker_covariance():
    found = {}
    for kind, noise in itertools.product(("vanilla", "corrected", "extreme"), (1.0, 60.0, 0.0)):
        for scale in (0.2, np.array([0.1, 0.3, 0.4])):
            found[f"{kind} {noise:g} {np.ndim(scale)}"] = laws.barker_covariance(PRECISION, noise * NOISE, scale, kind)
    broken = [
        laws.barker_covariance(PRECISION, NOISE, 9.0, "vanilla"),
        laws.barker_covariance(PRECISION, 0 * NOISE, 0.2, "extreme"),
    ]
    return found | {"none": broken, "signs": [barker.probability(*args) for args in SIGNS]}


@case
def barker_response():
    sigma, tau = moved([0.1, 0.3, 0.5, 1.0]), np.array([0.0, 2.0, 5.0, 1.7])
    return {kind: laws._barker_response(sigma, tau, kind) for kind in d.sgbd.ESTIMATORS}


LINEAR = {
    "SGHMC": d.SGHMC.linear_step,
    "BAOAB": d.BAOAB.linear_step,
    "UBU": d.UBU.linear_step,
    "SGNHT": lambda *args: d.SGNHT.linear_step(None, *args),
}


def linear(name):
    """One step on a quadratic, and the covariance that follows: also where its two eigenvalues meet."""
    step, found = LINEAR[name], {}
    for friction, eps in ((0.7, 0.2), (3.0, 0.4), (2.0, 0.3)):
        found[f"{friction} {eps}"] = [
            *step(eps, friction, moved([0.5, 1.0, 2.0])),
            laws.kinetic_covariance(PRECISION, NOISE, lambda c, e=eps, f=friction: step(e, f, c)),
        ]
    critical = np.diag([1.0, 1.0, 2.5])
    found["critical"] = laws.kinetic_covariance(critical, NOISE, lambda c: step(0.05, 2.0, c))
    found["unstable"] = [
        laws.kinetic_covariance(PRECISION, NOISE, lambda c, e=e: step(e, 1.0, c)) is None for e in (0.5, 1.2, 1.35, 3.0)
    ]
    return found


for name in LINEAR:
    case(lambda name=name: linear(name), f"linear step of {name}")


@case
def largest_step():
    law = lambda noise: lambda step: laws.langevin_covariance(PRECISION, noise * NOISE, step)  # noqa: E731
    return [
        laws.largest_step(law(0.0), COVARIANCE, 0.8),
        laws.largest_step(law(1.0), COVARIANCE, 0.8, 0.02),
        laws.largest_step(law(1.0), COVARIANCE, 0.8, 0.3, points=11),
        laws.largest_step(lambda step: (1.0 + step + 0.2 / step) * COVARIANCE, COVARIANCE, 0.8),
    ]


# -- what is chosen -----------------------------------------------------------------------------------------------


def chosen_by(process, hessian=PRECISION, noise=NOISE, error=0.1):
    settings, worst = process.choose_settings(hessian, noise, error)
    return {"worst": worst, **{k: parts(v) for k, v in settings.items()}}


def settings(name):
    """The largest stable step, what is chosen for a covariance that is given, and the bias left."""
    process = getattr(discrete, name)(batch(), 0.01)
    limits = [process.stability_limit(c) for c in (4.0, 0.3, 0.0)]
    found = {"limit": limits, "order": process.bias_order, "error": chosen_by(process, error=0.02)}
    exact = getattr(discrete, name)(logistic(), 0.01)
    return found | {"noisy": chosen_by(process), "exact": chosen_by(exact), "order, exact": exact.bias_order}


for name in SAMPLERS:
    case(lambda name=name: settings(name), f"settings of {name}")

#: Processes with an automatic step and an option each, which have a rule of their own.
AUTOMATIC = {
    "SGLD temperature": lambda: d.SGLD(batch(), temperature=0.4),
    "SGLD cold": lambda: d.SGLD(batch(), temperature=0.0),
    "SGLD corrected": lambda: d.SGLD(batch(), correction="corrected", metric=[1.0, 2.0, 0.5]),
    "SGLD modified": lambda: d.SGLD(batch(), correction="modified", coefficient=0.2, temperature=1.5),
    "SGLD extreme": lambda: d.SGLD(batch(), correction="extreme"),
    "SGLD error": lambda: d.SGLD(batch(), s.automatic(0.02)),
    "SGBD corrected": lambda: d.SGBD(batch(), estimator="corrected"),
    "SGBD extreme": lambda: d.SGBD(batch(), estimator="extreme"),
    "SGBD shape": lambda: d.SGBD(batch(), shape=[1.0, 0.5, 2.0]),
    "SGHMC friction": lambda: d.SGHMC(batch(), friction=3.0),
    "UBU friction": lambda: d.UBU(logistic(), friction=3.0),
    "BAOAB friction": lambda: d.BAOAB(logistic(), friction=3.0),
    "SGNHT diffusion": lambda: d.SGNHT(batch(), diffusion=3.0),
    "SGNHT blocks": lambda: d.SGNHT(batch(), thermostat="per_block"),
    "MSGNHT euler": lambda: d.MSGNHT(batch(), scheme="euler"),
    "BADODAB diffusion": lambda: d.BADODAB(logistic(), diffusion=3.0),
    "SGRRLD": lambda: d.SGRRLD(batch()),
    "SGRRLD error": lambda: d.SGRRLD(batch(), s.automatic(0.003)),
    "SGRRLD order": lambda: d.SGRRLD(logistic(), order=2, metric=[1.0, 2.0, 0.5]),
    "RichardsonRomberg UBU": lambda: d.RichardsonRomberg(d.UBU(logistic())),
    "RichardsonRomberg BAOAB": lambda: d.RichardsonRomberg(d.BAOAB(batch())),
}
for kind in ("noisy", "distinct", "control variate", "importance", "epoch"):
    AUTOMATIC[f"SGLD {kind}"] = lambda kind=kind: d.SGLD(batch(kind))
    AUTOMATIC[f"UBU {kind}"] = lambda kind=kind: d.UBU(batch(kind))
for kind, metric in METRICS.items():
    AUTOMATIC[f"SGLD metric {kind}"] = lambda metric=metric: d.SGLD(batch(), metric=metric)
    AUTOMATIC[f"BAOAB metric {kind}"] = lambda metric=metric: d.BAOAB(batch(), metric=metric)
    AUTOMATIC[f"MALA metric {kind}"] = lambda metric=metric: d.MALA(logistic(), metric=metric)
    AUTOMATIC[f"Barker metric {kind}"] = lambda metric=metric: d.Barker(logistic(), metric=metric)


def resolved(make):
    """What an automatic process is where a run starts, and what it is warned of."""
    process = make().resolve(START)
    own = {k: parts(v) for k, v in vars(process).items() if k in ("friction", "diffusion", "energy_error", "duration")}
    return {
        "steps": steps_of(process.schedule, 2),
        "length": process.tick_length(),
        **own,
        "order": process_order(process),
    }


def process_order(process):
    return getattr(process, "bias_order", None) or process.copies


for name, make in AUTOMATIC.items():
    case(lambda make=make: resolved(make), f"automatic {name}")


def wide():
    """A target of more dimensions than have a Hessian as a matrix."""
    return pdmp.models.Gaussian(np.zeros(501), np.linspace(1.0, 6.0, 501))


@case
def many_dimensions():
    """The direction of the largest curvature alone."""
    x = np.zeros(501)
    found = {"noisy": curvature.local_law(g.Noisy(wide(), np.linspace(0.1, 2.0, 501)), x)}
    for kind, provider in providers().items():
        found[kind] = [curvature._along_largest_curvature(provider, START, rows=rows) for rows in (25, 2_000)]
    processes = [d.SGLD(wide()), d.MALA(wide(), metric=np.linspace(1.0, 3.0, 501)), d.Barker(wide()), d.SGBD(wide())]
    return found | {"steps": [process.resolve(x).schedule.step(0) for process in processes]}


@case
def curvatures():
    found = {kind: curvature.noise_covariance(provider, START) for kind, provider in providers().items()}
    found["law"] = {kind: curvature.local_law(batch(kind), START) for kind in ("iid", "control variate")}
    found["mode"] = [curvature.mode_near(batch(kind), START) for kind in ("iid", "importance")]
    found["largest"] = [
        curvature.largest_curvature(batch(), START, logistic().hessian(START)),
        curvature.largest_curvature(batch(), START, logistic().hessian(START), lambda h: 0.5 * h),
        curvature.largest_curvature(g.Full(normal()), START, PRECISION),
        curvature.largest_curvature(batch(), START, np.array([[5.0]])),
    ]
    found["along"] = [curvature.curvature_along(logistic(), x, 10) for x in (START, 9.0 * START)]
    saddle = pdmp.models.from_function(
        lambda x: (0.5 * (x[0] ** 2 - 3.0 * x[1] ** 2) + 0.3 * x[0] * x[1] + x[1] ** 4, saddle_gradient(x)), 2
    )
    saddle.mode = lambda x=None: None
    return found | {"saddle": curvature.local_law(g.Full(saddle), np.array([0.1, 0.05]))}


def saddle_gradient(x):
    return np.array([x[0] + 0.3 * x[1], -3.0 * x[1] + 0.3 * x[0] + 4.0 * x[1] ** 3])


@case
def limits():
    """Stability limits of every scheme, by curvature and friction, and refreshed momenta."""
    found = {}
    for scheme, friction in itertools.product(("splitting", "semi_implicit", "explicit"), (0.5, 1.0, 4.5)):
        for every in (None, 1, 3):
            process = d.SGHMC(logistic(), 0.01, friction, scheme, refresh_every=every)
            found[f"SGHMC {scheme} {friction} {every}"] = [process.stability_limit(c) for c in (0.0, 0.5, 4.0)]
    for name, friction in itertools.product(("UBU", "BAOAB"), (0.5, 4.5)):
        process = getattr(discrete, name)(logistic(), 0.01, friction)
        found[f"{name} {friction}"] = [process.stability_limit(c) for c in (-1.0, 0.5, 4.0)]
    return found


# -- what they are made of ----------------------------------------------------------------------------------------

#: Constructors in the terms of papers, and options, each with what it is by default left out.
MADE = {
    "SGLD": lambda: d.SGLD(batch()),
    "SGLD from_h": lambda: d.SGLD.from_h(batch(), 0.02, temperature=0.5, clip_norm=3.0),
    "SGLD from_sigma": lambda: d.SGLD.from_sigma(batch(), 0.3, clip_value=2.0),
    "SGLD mean gradient": lambda: d.SGLD.from_mean_gradient_step(batch(), 0.4, correction="corrected"),
    "SGLD mean gradient of a model": lambda: d.SGLD.from_mean_gradient_step(logistic(), 0.4, normalise=2.0),
    "SGLD corrected": lambda: d.SGLD(batch(), 0.1, correction="corrected", beta=0.3, average="sd"),
    "SGLD modified": lambda: d.SGLD(batch(), 0.1, correction="modified", coefficient=0.2),
    "SGLD modified, as it is": lambda: d.SGLD(batch(), 0.1, correction="modified"),
    "SGLD cold": lambda: d.SGLD(batch(), 0.1, 0.0, correction="corrected"),
    "SGLD RMSprop": lambda: d.SGLD(batch(), 0.1, metric=d.preconditioners.RMSprop()),
    "SGLD RMSprop, options": lambda: d.SGLD(batch(), 0.1, metric=d.preconditioners.RMSprop(0.9, 0.1, True)),
    "SGLD epoch": lambda: d.SGLD(batch("epoch"), 0.1, correction="corrected"),
    "SGBD": lambda: d.SGBD(batch()),
    "SGBD from_h": lambda: d.SGBD.from_h(batch(), 0.04, estimator="corrected", beta=0.2),
    "SGBD from_h of an array": lambda: d.SGBD.from_h(batch(), [0.04, 0.01, 0.09], estimator="extreme"),
    "SGBD adaptive": lambda: d.SGBD(batch(), "adaptive", max_scale=[0.3, 0.2, 0.1], noise="current"),
    "SGBD adaptive, one number": lambda: d.SGBD(batch(), "adaptive", max_scale=0.3),
    "SGBD shape": lambda: d.SGBD(batch(), s.power(0.3, 0.2), shape=[1.0, 0.5, 2.0]),
    "SGHMC": lambda: d.SGHMC(batch()),
    "SGHMC of a step": lambda: d.SGHMC(batch(), 0.1),
    "SGHMC from_h": lambda: d.SGHMC.from_h(batch(), 0.04, 0.2, 0.02, batch_every=2),
    "SGHMC from_h, as it is": lambda: d.SGHMC.from_h(batch(), 0.04),
    "SGHMC much friction": lambda: d.SGHMC(batch(), 0.5, 5.0),
    "SGHMC refreshed": lambda: d.SGHMC(batch(), 0.1, scheme="explicit", refresh_every=5),
    "SGHMC always refreshed": lambda: d.SGHMC(batch(), 0.1, scheme="semi_implicit", refresh_every=1),
    "UBU": lambda: d.UBU(batch(), 0.1),
    "UBU from_c": lambda: d.UBU.from_c(batch(), 0.2, 3.0, 0.25),
    "UBU from_c, as it is": lambda: d.UBU.from_c(batch(), 0.2),
    "BAOAB": lambda: d.BAOAB(batch(), 0.1),
    "SGNHT": lambda: d.SGNHT(batch(), 0.1),
    "SGNHT from_h": lambda: d.SGNHT.from_h(batch(), 0.04, 0.3, thermostat="per_block", blocks=[2, 1]),
    "SGNHT from_h, as it is": lambda: d.SGNHT.from_h(batch(), 0.04),
    "SGNHT numbered blocks": lambda: d.SGNHT(batch(), 0.1, thermostat="per_block", blocks=[1, 0, 1]),
    "SGNHT blocks of variables": lambda: d.SGNHT(
        pdmp.models.MatrixFactorization([0, 1, 1], [1, 0, 1], [1.0, 2.0, 3.0], rank=1), 0.1, thermostat="per_block"
    ),
    "MSGNHT": lambda: d.MSGNHT(batch(), 0.1),
    "MSGNHT from_h": lambda: d.MSGNHT.from_h(batch(), 0.04, 0.3, scheme="euler"),
    "MSGNHT exact": lambda: d.MSGNHT(logistic(), 0.1, scheme="euler"),
    "SGHMC exact": lambda: d.SGHMC(logistic(), 0.1, scheme="semi_implicit"),
    "SGHMC exact, refreshed": lambda: d.SGHMC(logistic(), 0.1, scheme="semi_implicit", refresh_every=4),
    "SGRRHMC exact": lambda: d.SGRRHMC(logistic(), 0.1),
    "BADODAB": lambda: d.BADODAB(batch(), 0.1),
    "BADODAB mass": lambda: d.BADODAB(batch(), 0.1, 2.0, thermal_mass=5.0),
    "MALA": lambda: d.MALA(logistic()),
    "MALA from_h": lambda: d.MALA.from_h(logistic(), 0.3, adapt=False, target_acceptance=0.7),
    "Barker": lambda: d.Barker(logistic(), 0.3),
    "Barker options": lambda: d.Barker(logistic(), [0.3, 0.2, 0.1], "gaussian", "single", False, 0.5),
    "GD": lambda: d.GD(logistic(), 0.1, clip_norm=2.0),
    "SGD": lambda: d.SGD(batch(), 0.1, normalise=2.0),
    "SGD values": lambda: d.SGD(batch(), 0.1, clip_value=(-1.0, 2.0)),
    "SGD, slow": lambda: d.SGD(batch(), s.polynomial(0.1, kappa=0.4)),
    "SGD exact, slow": lambda: d.SGD(logistic(), s.polynomial(0.1, kappa=0.4)),
    "SGRRLD": lambda: d.SGRRLD(batch(), s.power(0.1, 0.3), temperature=s.power(2.0, 0.2)),
    "SGRRLD of periods": lambda: d.SGRRLD(batch(), 0.1, metric=d.preconditioners.Scheduled([1.0, 2.0], [0, 5])),
    "SGRRLD matrix": lambda: d.SGRRLD(batch(), 0.1, 0.4 * PRECISION, 2, "paper", 2),
    "SGRRLD apart": lambda: d.SGRRLD(batch(), 0.1, None),
    "SGRRLD against": lambda: d.SGRRLD(batch(), 0.1, -0.5),
    "SGRRHMC": lambda: d.SGRRHMC(batch(), 0.1),
    "SGRRHMC options": lambda: d.SGRRHMC(batch(), 0.1, 2.0, 0.3, "semi_implicit", 3, "paper", refresh_every=4),
    "SGRRHMC from_h": lambda: d.SGRRHMC.from_h(batch(), 0.04, 0.3, 0.02, order=2),
    "SGRRHMC from_h, as it is": lambda: d.SGRRHMC.from_h(batch(), 0.04),
    "SGZZ": lambda: d.SGZZ(batch(), 0.1),
    "SGBPS": lambda: d.SGBPS(batch(), 0.1),
    "SGBPS options": lambda: d.SGBPS(batch(), 0.1, 0.7, "look"),
    "ZigZagSplitting": lambda: d.ZigZagSplitting(batch(), 0.1),
    "BPSSplitting": lambda: d.BPSSplitting(batch(), 0.1),
    "BPSSplitting options": lambda: d.BPSSplitting(logistic(), 0.1, 0.7, True),
}


def made(make):
    """What a process is made of, what it has at the start of a run, and what is said of a smaller step."""
    process = make()
    found = {"parts": parts(process), "length": process.tick_length(), "said": process.recipe.setting(process)}
    found["order"] = [getattr(process, name, None) for name in ("bias_order", "copies")]
    if not isinstance(process.schedule, s.Automatic):
        process = process.resolve(START if process.dim % 3 == 0 else np.full(process.model.dim, 0.1))
        found["resolved"] = {
            k: v for k, v in vars(process).items() if k in ("refresh_rate", "friction", "energy_error")
        }
        found["smaller"] = [process.smaller_step(off) for off in (0.3, 1.4, 900.0)]
    return found


for name, make in MADE.items():
    case(lambda make=make: made(make), f"made {name}")


@case
def warnings_above_limits():
    """Every sampler on a quadratic with a step beyond its limit, in its metric."""
    found = []
    for name in SAMPLERS:
        if name != "SGBD":
            found += [getattr(discrete, name)(normal(), 4.1).resolve(START).schedule.step(0)]
            getattr(discrete, name)(normal(), 4.1, metric=[1.0, 2.0, 0.5]).resolve(START)
            getattr(discrete, name)(normal(), 0.1, metric=[1.0, 2.0, 0.5]).resolve(START)
    d.SGLD(normal(), 4.1, metric=pdmp.Metric(covariance=NOISE)).resolve(START)
    d.SGD(g.Noisy(normal(), 0.5), 4.1).resolve(START)
    return found


@case
def recipes():
    """Settings for comparisons and for tuning."""
    found, mode = {}, logistic().mode()
    for name in (*SAMPLERS, "SGRRLD", "SGZZ", "MALA", "ZigZagSplitting", "SGD"):
        sampler = getattr(discrete, name)
        made = sampler.recipe.processes(sampler, logistic(), batch(), mode, 0.2)
        found[name] = {key: [parts(p.schedule), p.recipe.setting(p)] for key, p in made.items()}
    return found


@case
def arms():
    found = {}
    for name, model in itertools.product(("SGLD", "UBU", "SGNHT", "SGRRLD"), (logistic(), normal())):
        sampler = getattr(discrete, name)
        make, settings = sampler.recipe.arms(sampler, model, model.mode())
        some = make(**settings[3])
        found[f"{name} {type(model).__name__}"] = [settings, parts(some.schedule), parts(some.provider)]
    return found


@case
def settings_said():
    return [
        process.recipe.setting(process)
        for process in (
            d.SGBD(batch(), "adaptive", max_scale=0.25),
            d.SGBD(batch(), 0.25),
            d.MALA(logistic(), 0.25, adapt=False),
            d.Barker(logistic(), 0.25),
            d.UBU(batch(), 0.125, 3.0),
            d.SGNHT(batch(), 0.125),
            d.ZigZagSplitting(logistic(), 0.25, True),
            d.BPSSplitting(batch(), 0.25),
            d.SGZZ(batch(), 0.25),
        )
    ]


@case
def in_metrics():
    """Samplers in a metric that was learnt, dense or of variances."""

    class Learnt:
        def __init__(self, root):
            self.root, self.mass = root, pdmp.metric.from_root(root)
            self.covariance = root**2 if root.ndim == 1 else root @ root.T

    found, low = {}, np.linalg.cholesky(COVARIANCE)
    for name, root in itertools.product((*SAMPLERS, "MALA", "Barker", "SGRRLD"), (low, np.array([1.0, 2.0, 0.5]))):
        if name != "SGBD":
            step = {"scale" if name == "Barker" else "step": 0.1}
            process = getattr(discrete, name).in_metric(logistic(), Learnt(root), **step)
            kept = ("metric", "preconditioner", "schedule", "coarse")
            found[f"{name} {root.ndim}"] = {k: parts(v) for k, v in vars(process).items() if k in kept}
    return found


@case
def adapted():
    """Metropolised samplers after a run, with the geometric mean of its steps."""
    process = d.Barker(logistic(), [0.3, 0.2, 0.1]).adapted([{"mean_scale": 0.2}, {"mean_scale": 0.8}])
    fixed = d.MALA(logistic(), 0.1, adapt=False).adapted([{"mean_step": 0.2}])
    other = d.MALA(logistic(), 0.1).adapted([{"mean_step": 0.2}, {"mean_step": 0.3}])
    return [[parts(p.schedule), p.duration, p.adapt] for p in (process, fixed, other)]


@case
def breaking_points():
    z, gradient = np.append(0.0, moved([0.1, 0.5, -2.0])), np.array([[0.0], [1.0], [-3.0], [30.0], [900.0], [np.inf]])
    return [d.breaking_point(gradient, z), d.breaking_point(2.0, 1.5), d.breaking_point([0.0, 1.0], 0.5)]


@case
def safeguards():
    """What each does to vectors, and whether it says that it has acted."""
    found = []
    for options in (
        (None, None, None),
        (2.0, None, None),
        (None, 1.5, None),
        (None, (-1.0, 2.5), None),
        (None, None, 2.0),
    ):
        guard = as_safeguard(*options)
        for v in ([0.0, 0.0, 0.0], [0.5, -0.3, 1.0], [3.0, -2.0, 0.5]):
            v = moved(v) if np.any(v) else np.zeros(3)
            found.append([guard.apply(v), v])
    return found


@case
def pulled_back():
    made = [pdmp.metric.as_metric(METRICS[kind]).made(3) for kind in ("vector", "matrix", "directions")]
    return [momenta.pulled_back(metric, NOISE) for metric in made]


# -- runs ---------------------------------------------------------------------------------------------------------

FULL = np.array([[0.6, -0.2, 0.1], [-0.2, 0.9, 0.3], [0.1, 0.3, 1.2]])
RUN = {
    "SGLD temperature": lambda: d.SGLD(batch(), 0.01, s.power(2.0, 0.5)),
    "SGLD RMSprop": lambda: d.SGLD(batch(), 0.01, metric=d.preconditioners.RMSprop(0.7, 0.1)),
    "SGLD RMSprop with gamma": lambda: d.SGLD(
        batch(), 0.01, 2.0, metric=d.preconditioners.RMSprop(0.7, 0.1, include_gamma=True)
    ),
    "SGLD RMSprop corrected": lambda: d.SGLD(
        batch(), 0.01, metric=d.preconditioners.RMSprop(0.7, 0.1), correction="corrected"
    ),
    "SGLD periods": lambda: d.SGLD(batch(), 0.01, metric=d.preconditioners.Scheduled([1.0, [2.0, 1.0, 0.5]], [0, 5])),
    "SGLD periods of matrices": lambda: d.SGLD(
        batch(),
        0.01,
        metric=d.preconditioners.Scheduled(lambda k: FULL / (1 + k) if k < 7 else [1.0, 2.0, 3.0], [0, 3, 7]),
    ),
    "SGLD periods corrected": lambda: d.SGLD(
        batch(),
        0.01,
        metric=d.preconditioners.Scheduled([1.0, [2.0, 1.0, 0.5]], [0, 5]),
        correction="modified",
        coefficient=0.2,
    ),
    "SGLD sd": lambda: d.SGLD(batch(), 0.05, correction="corrected", average="sd", beta=0.4),
    "SGLD modified sd": lambda: d.SGLD(batch(), 0.03, 0.6, correction="modified", average="sd", beta=0.4),
    "SGLD clipped": lambda: d.SGLD(batch(), 0.01, clip_norm=6.0),
    "SGLD clipped values": lambda: d.SGLD(batch(), 0.01, clip_value=(-3.0, 5.0)),
    "SGLD normalised": lambda: d.SGLD(batch(), 0.01, normalise=3.0),
    "SGLD cold": lambda: d.SGLD(batch(), 0.01, 0.0),
    "SGLD exploring": lambda: d.SGLD(batch(), s.cyclical(0.02, 6, exploration=0.4), 2.0),
    "SGD exploring": lambda: d.SGD(batch(), s.cyclical(0.02, 6, exploration=0.4)),
    "GD clipped": lambda: d.GD(logistic(), 0.01, clip_value=1.5),
    "SGBD array": lambda: d.SGBD(batch(), [0.3, 0.2, 0.1], "extreme"),
    "SGBD adaptive": lambda: d.SGBD(batch(), "adaptive", max_scale=[0.3, 0.2, 0.1], beta=0.3),
    "SGBD adaptive, current": lambda: d.SGBD(
        batch(), "adaptive", max_scale=0.3, estimator="corrected", noise="current"
    ),
    "SGBD shape": lambda: d.SGBD(batch(), s.power(0.3, 0.2), "corrected", shape=[1.0, 0.5, 2.0]),
    "SGHMC noise estimate": lambda: d.SGHMC(batch(), 0.05, 2.0, noise_estimate=0.5, batch_every=3),
    "SGHMC repeated batches": lambda: d.SGHMC(batch("reshuffle"), 0.05, scheme="explicit", batch_every=2),
    "SGHMC refreshed, semi-implicit": lambda: d.SGHMC(batch(), 0.05, scheme="semi_implicit", refresh_every=3),
    "SGHMC repeated batches in a metric": lambda: d.SGHMC(batch(), 0.05, metric=PRECISION, batch_every=2),
    "SGLD corrected, noiseless": lambda: d.SGLD(batch(), 0.2, correction="corrected"),
    "SGLD modified, noiseless": lambda: d.SGLD(batch(), 0.1, correction="modified", coefficient=0.3),
    "MSGNHT euler": lambda: d.MSGNHT(batch(), 0.05, scheme="euler"),
    "UBU falling": lambda: d.UBU(batch(), s.power(0.05, 0.4), 2.0),
    "BAOAB falling": lambda: d.BAOAB(batch(), s.power(0.05, 0.4), 2.0),
    "SGNHT blocks": lambda: d.SGNHT(batch(), 0.05, thermostat="per_block", blocks=[1, 0, 1]),
    "SGNHT metric": lambda: d.SGNHT(batch(), 0.05, 2.0, metric=PRECISION),
    "MSGNHT metric": lambda: d.MSGNHT(batch(), s.power(0.05, 0.4), 2.0, metric=METRICS["directions"]),
    "BADODAB mass": lambda: d.BADODAB(batch(), 0.05, 2.0, thermal_mass=1.5),
    "SGRRLD matrix": lambda: d.SGRRLD(batch(), 0.01, 0.4 * PRECISION, weights="paper"),
    "SGRRLD falling": lambda: d.SGRRLD(batch(), s.power(0.02, 0.4), 0.5, order=2, temperature=s.power(2.0, 0.2)),
    "SGRRLD falling, paper": lambda: d.SGRRLD(batch(), s.power(0.02, 0.4), weights="paper", correction="corrected"),
    "SGRRLD periods": lambda: d.SGRRLD(batch(), 0.01, metric=d.preconditioners.Scheduled([1.0, FULL], [0, 5])),
    "SGRRHMC matrix": lambda: d.SGRRHMC(batch(), 0.05, 2.0, 0.4 * PRECISION, refresh_every=4),
    "RichardsonRomberg UBU": lambda: d.RichardsonRomberg(d.UBU(batch(), 0.05), 0.4 * PRECISION, 2),
    "RichardsonRomberg SGNHT": lambda: d.RichardsonRomberg(d.SGNHT(batch(), 0.05), -0.5),
    "SGZZ falling": lambda: d.SGZZ(batch(), s.power(0.1, 0.4)),
    "SGBPS look": lambda: d.SGBPS(batch(), 0.05, 2.0, "look"),
    "SGBPS falling": lambda: d.SGBPS(batch(), s.power(0.1, 0.4), 2.0),
    "SGBPS alone": lambda: d.SGBPS(batch(), 0.05, 0.0),
    "ZigZagSplitting falling": lambda: d.ZigZagSplitting(batch(), s.power(0.1, 0.4)),
    "ZigZagSplitting adjusted": lambda: d.ZigZagSplitting(normal(), 0.9, True),
    "BPSSplitting refreshed": lambda: d.BPSSplitting(batch(), s.power(0.1, 0.4), 3.0),
    "BPSSplitting adjusted": lambda: d.BPSSplitting(normal(), 1.5, 2.0, True),
    "MALA adapted": lambda: d.MALA(logistic(), 0.3, metric=METRICS["directions"], target_acceptance=0.9),
    "MALA falling": lambda: d.MALA(logistic(), s.power(0.3, 0.2), adapt=False),
    "MALA on its own": lambda: d.MALA(normal(), 0.5, metric=PRECISION),
    "Barker coordinates": lambda: d.Barker(logistic(), [0.9, 0.6, 0.3], "gaussian", target_acceptance=0.9),
    "Barker single": lambda: d.Barker(logistic(), 0.6, signs="single", metric=PRECISION, adapt=False),
    "Barker within a support": lambda: d.Barker(half(), 1.5, adapt=False),
    "MALA within a support": lambda: d.MALA(half(), 1.5, adapt=False),
}


@once
def half():
    """A gamma law of each of three coordinates: its density is zero below 0."""

    def potential(x):
        return float(np.sum(x - 0.5 * np.log(x))) if np.all(x > 0.0) else np.inf, 1.0 - 0.5 / x

    return pdmp.models.from_function(potential, 3, initial=[0.4, 0.8, 0.6])


def run_of(make):
    process = make()
    return ran(process, start=np.array([0.4, 0.8, 0.6]) if process.model is half() else START)


for name, make in RUN.items():
    case(lambda make=make: run_of(make), f"run {name}")


@case
def run_beyond_a_support():
    """Steps that end where the density is zero, though it is positive in their middle."""
    return ran(d.ZigZagSplitting(half(), 0.7, True), 3, start=np.array([0.4, 0.8, 0.6]), warmup=0)


@case
def runs_of_warm_up_alone():
    """Their averages of steps after it are of none."""
    found = {}
    for name in ("SGNHT", "UBU", "MALA", "ZigZagSplitting"):
        process = getattr(discrete, name)(logistic(), 0.05, **({"adjusted": True} if name == "ZigZagSplitting" else {}))
        state = Held(process)
        found[name] = process.report.statistics(process, state)
    return found


class Held:
    """A state before the first step."""

    def __init__(self, process):
        self.memory = process.memory(START, np.random.default_rng(0))


@case
def descent_doubts():
    """A step above the limit where the path ends up, which a run with few passes or moments does not look for."""
    model, found = logistic(), []
    for step, steps in ((0.9, 420), (0.02, 420), (0.9, 300), (s.power(0.9, 0.2), 405)):
        run = pdmp.sample(d.GD(model, step), initial=[START], chains=1, steps=steps, seed=3, progress=False)
        found.append(run.process.report.doubts(run, None))
    process = d.GD(model, 0.9, clip_norm=1.0)
    return [*found, process.report.doubts(run, None)]


@case
def step_acceptance():
    """Of how many automatic steps a Metropolis test would accept, in each metric and of none."""
    x, found = START + 0.3 * np.random.default_rng(4).standard_normal((5, 3)), []
    for metric in (None, [1.0, 2.0, 0.5], PRECISION):
        process = d.UBU(logistic(), metric=metric).resolve(START)
        found.append(process.report.step_acceptance(process, x, np.random.default_rng(5)))
    process = d.UBU(logistic(), 0.1)
    return [*found, process.report.step_acceptance(process, x, np.random.default_rng(5))]
