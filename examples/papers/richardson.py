"""Figures 1 to 4 of "Stochastic gradient Richardson-Romberg Markov chain Monte Carlo" (Durmus et al., NeurIPS 2016).

The posterior of a linear Gaussian model, N = 1,000 observations in batches of 100 without replacement: its covariance
as SGLD and SGHMC estimate it and as their extrapolations do, next to what the second moments of the chains are
exactly. All moments are about the true mean.

What is reproduced: the order of the bias, γ for SGLD and γ² for SGRRLD, the smaller bias and mean squared error, and
the exponents of the optimal steps. What is not:

- "A bias of about 10⁻⁴" of SGRRLD at γ = 10⁻³ (on figure 1a). The exact bias there is -9 10⁻⁴, and that is what the
  runs show; SGLD's, 7 10⁻³, agrees with the text.
- That SGRRLD's mean squared error is the square of SGLD's (figure 1b, by dimension): it is between a twentieth
  and a fiftieth of it, and the slope of the logarithm of one on the other is near 1.2, not 2.
- The splitting of SGHMC has a bias of second order only with exact gradients. The noise of mini-batches adds one of
  first order, which only extrapolation removes (figure 4).
- That SGRRHMC is worse than SGHMC for small steps (figure 4): not with a friction of 10 and ε from 10⁻³ on; the paper
  does not state its friction.

    python examples/papers/richardson.py [--quick] [--output FOLDER] [--set NAME=VALUE ...]

Writes a table, pictures and what was found, and ends with exit code 1 if a criterion fails. Time: `--quick` less than a
minute, half of it compilation; otherwise less than ten.
"""

import functools
import math
import sys
import warnings

import _common as common
import matplotlib.pyplot as plt
import numpy as np
from _common import BLUE, DARK_RED, GREEN, GREY, Row
from scipy import optimize, stats

import discrete
import pdmp

N, BATCH = 1_000, 100
DIMENSIONS = (1, 2, 5, 10, 20)
COLOURS = {"SGLD": DARK_RED, "SGRRLD": BLUE, "SGHMC": DARK_RED, "SGRRHMC": BLUE, "SGHMC-s": GREEN}
GAMMA = 1e-3  #: of figure 1
EXPONENTS = (0.1, 0.15, 0.2, 0.25, 0.3, 1 / 3, 0.4, 0.5)
FRICTION = 10.0
#: SGLD and SGRRLD: exponents of K in the optimal step and in the least value.
OPTIMAL = {
    ("SGLD", "bias"): (-1 / 2, -1 / 2),
    ("SGLD", "MSE"): (-1 / 3, -2 / 3),
    ("SGRRLD", "bias"): (-1 / 3, -2 / 3),
    ("SGRRLD", "MSE"): (-1 / 5, -4 / 5),
}
#: Figure 3: the scale of the step, and the exponent that must be best.
FIGURE_3 = {"bias": (2.3e-3, 1 / 3), "MSE": (1.23e-3, 0.2)}
#: Figure 4: splitting or not, and the order of the bias with exact gradients and with mini-batches.
KINETIC = {"SGHMC": (False, 1, (1, 1)), "SGRRHMC": (False, 2, (2, 2)), "SGHMC-s": (True, 1, (2, 1))}
SLOPE = "the mean squared error of SGRRLD is a twentieth to a fiftieth of SGLD's in every dimension, not its square"
FRICTION_UNKNOWN = "not with a friction of 10 and ε from 10⁻³ on; the paper does not state its friction"
LIMIT = "the exact bias of SGRRLD at this step is -9 10⁻⁴, and that is what the runs show"


def model(d, seed=0):
    """Observations x of a·θ with a ~ N(0, I/2), noise N(0, 1), and θ ~ N(0, 10 I)."""
    rng = np.random.default_rng(seed)
    a = math.sqrt(0.5) * rng.standard_normal((N, d))
    return pdmp.models.LinearGaussian(a, a @ np.full(d, 2.0) + rng.standard_normal(N), prior_scale=math.sqrt(10.0))


def batches(target):
    return pdmp.gradients.Minibatch(target, BATCH, draw="distinct")


def second_moment(run, centre):
    """The estimate of E (θ - m)(θ - m)ᵀ, m the true mean."""
    mean = run.mean() - centre
    if run.dim == 1:
        with warnings.catch_warnings():  # a negative extrapolated variance is an estimate like others
            warnings.simplefilter("ignore", UserWarning)
            return run.var().reshape(1, 1) + np.outer(mean, mean)
    return run.cov() + np.outer(mean, mean)


def repeated(process, runs, steps, start, centre, warmup=0.0):
    """The estimates of independent runs, (runs, d, d)."""
    options = {"steps": steps, "initial": start, "warmup": warmup, "store": "moments"}
    return np.array([second_moment(pdmp.sample(process, seed=seed, **options), centre) for seed in range(runs)])


# ---------------------------------------------------------------------------------------------------------------
# Exact second moments. One step maps s = (1, θ - m) or (1, θ - m, p) to T s + noise, T the mean of the batch's maps.


class Moments:
    """Exact averages of E (θ - m)² over the steps of a chain in one dimension.

    Parameters
    ----------
    one_step : callable
        From arrays a, b (N,) with the gradients N (aᵢ θ - bᵢ) of single terms to their maps (N, m, m), and the noise's
        covariance (m, m).
    exact : bool
        With the full gradient in place of batches.
    """

    def __init__(self, target, one_step, exact=False):
        centre = target.law.mean[0]
        u = target.A[:, 0] ** 2 * target.noise_precision
        w = target.A[:, 0] * target.y * target.noise_precision - u * centre  # about m
        prior = target.prior_precision
        maps, noise = one_step(N * u + prior, N * w - prior * centre)
        mean = maps.mean(axis=0)
        m = len(mean)
        square = np.einsum("nij,nkl->ikjl", maps, maps).reshape(m * m, m * m) / N
        whole = np.kron(mean, mean)
        if exact:
            self.map = whole
        else:  # two different terms of a batch without replacement are not independent
            self.map = square / BATCH + (1.0 - 1.0 / BATCH) * (N * whole - square) / (N - 1)
        self.noise, self.m = noise.ravel(), m
        self.map[:, 0] += self.noise  # s₀ s₀ = 1

    def stationary(self):
        rest = np.eye(self.m**2 - 1) - self.map[1:, 1:]
        second = np.linalg.solve(rest, self.map[1:, 0])
        return second[self.m]  # E s₁ s₁ is entry m + 1 of all

    def average(self, steps, start):
        """Over the states 0 … steps - 1 of a chain that starts at m + `start`."""
        s = np.zeros(self.m)
        s[:2] = 1.0, start
        size = self.m**2
        both = np.block([[self.map, np.zeros((size, size))], [np.eye(size), np.eye(size)]])
        total = np.linalg.matrix_power(both, steps)[size:, :size] @ np.kron(s, s)
        return total[self.m + 1] / steps


def langevin(gamma):
    def one_step(a, b):
        maps = np.zeros((len(a), 2, 2))
        maps[:, 0, 0], maps[:, 1, 0], maps[:, 1, 1] = 1.0, gamma * b, 1.0 - gamma * a
        return maps, np.diag([0.0, 2.0 * gamma])

    return one_step


def hamiltonian(eps, friction, splitting):
    def one_step(a, b):
        maps, noise = np.zeros((len(a), 3, 3)), np.diag([0.0, 0.0, 2.0 * friction * eps])
        maps[:, 0, 0] = 1.0
        maps[:, 2, 0], maps[:, 2, 1] = eps * b, -eps * a
        if not splitting:
            maps[:, 1, 1], maps[:, 1, 2], maps[:, 2, 2] = 1.0, eps, 1.0 - eps * friction
            return maps, noise
        maps[:, 1, 1] = maps[:, 2, 2] = 1.0
        drift = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5 * eps], [0.0, 0.0, 1.0]])
        after = drift @ np.diag([1.0, 1.0, math.exp(-0.5 * friction * eps)])
        before = np.diag([1.0, 1.0, math.exp(-0.5 * friction * eps)]) @ drift
        return after @ maps @ before, after @ noise @ after.T

    return one_step


class Oracle:
    """Exact biases of the variance's estimates by SGLD and SGRRLD in one dimension."""

    def __init__(self, target):
        self.target, self.truth = target, 1.0 / target.hessian(np.zeros(1))[0, 0]

    def plain(self, gamma, steps=None, start=0.0):
        moments = Moments(self.target, langevin(gamma))
        return (moments.stationary() if steps is None else moments.average(steps, start)) - self.truth

    def extrapolated(self, gamma, steps=None, start=0.0):
        twice = None if steps is None else 2 * steps
        return 2.0 * self.plain(0.5 * gamma, twice, start) - self.plain(gamma, steps, start)


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(np.abs(y)), 1)[0])


def minimum(function):
    """The step below 10⁻³ where a function is least, and its value there."""
    found = optimize.minimize_scalar(
        lambda t: math.log(function(math.exp(t))),
        bounds=(math.log(1e-9), math.log(1e-3)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return math.exp(found.x), math.exp(found.fun)


@functools.cache
def one():
    """The model in one dimension, and its oracle."""
    target = model(1)
    return target, Oracle(target)


def running(x, burn):
    x = x[burn:]
    return np.cumsum(x) / np.arange(1, len(x) + 1)


def add_errors(table, figure, name, x, found, exact):
    """Of runs (n,): the mean error with its standard error, the mean squared error, and the exact bias."""
    table.add(f"{figure} bias", name, x, found.mean(), found.std(ddof=1) / math.sqrt(len(found)))
    table.add(f"{figure} MSE", name, x, np.mean(found**2))
    table.add(f"{figure} exact", name, x, exact)


# ---------------------------------------------------------------------------------------------------------------
# The figures' numbers


def f1a(s):
    """The posterior and its estimates in one dimension; the bias of the variance as the runs get longer."""

    def piece(table, work):
        target, oracle = one()
        centre, found, paths = target.law.mean, [], {"SGLD": [], "SGRRLD": []}
        burn = s["steps F1a"] // 21  # 500 steps of the coarse chain
        for seed in range(s["runs"]):
            options = {"initial": centre, "seed": seed, "warmup": 1 / 21}
            plain = pdmp.sample(discrete.SGLD(batches(target), GAMMA), steps=2 * s["steps F1a"], **options)
            both = pdmp.sample(discrete.SGRRLD(batches(target), GAMMA), steps=s["steps F1a"], **options)
            found.append([second_moment(run, centre)[0, 0] for run in (plain, both)])
            if seed == 0:
                for name, run in (("SGLD", plain), ("SGRRLD", both)):
                    table.add("F1a one run", name, run.mean()[0], math.sqrt(run.var()[0]))
            # Running averages, at equal numbers of gradients one after the other: two in a step of SGRRLD.
            x = (plain.trajectories[0].positions[:-1, 0] - centre) ** 2
            path = both.trajectories[0]
            fine, coarse = ((x[:-1, 0] - centre) ** 2 for x in (path.positions, path.coarse))
            paths["SGLD"].append(running(x, 2 * burn))
            paths["SGRRLD"].append(running(fine.reshape(-1, 2).sum(axis=1) - coarse, burn))
        found = np.array(found) - oracle.truth
        for k, (name, exact, every) in enumerate((("SGLD", oracle.plain, 1), ("SGRRLD", oracle.extrapolated, 2))):
            add_errors(table, "F1a", name, GAMMA, found[:, k], exact(GAMMA))
            average = np.mean(paths[name], axis=0) - oracle.truth
            at = np.unique(np.geomspace(20, len(average), 120).astype(int)) - 1
            table.add("F1a along the runs", name, every * (at + 1), np.abs(average[at]))

    return piece


def f1b(s, d):
    """The mean squared error (Frobenius) of the covariance as the dimension grows, γ and the number of steps fixed."""

    def piece(table, work):
        target = model(d)
        truth, centre = np.linalg.inv(target.hessian(np.zeros(d))), target.law.mean
        for process, n in ((discrete.SGLD, 2 * s["steps F1b"]), (discrete.SGRRLD, s["steps F1b"])):
            found = repeated(process(batches(target), GAMMA), s["runs F1b"], n, centre, centre, warmup=1 / 21)
            table.add("F1b", process.__name__, d, np.mean(np.sum((found - truth) ** 2, axis=(1, 2))))

    return piece


def f2(s, name):
    """|Bias| and mean squared error of the variance against γ."""

    def piece(table, work):
        target, oracle = one()
        centre, steps = target.law.mean, s["steps F2"]
        exact = oracle.plain if name == "SGLD" else oracle.extrapolated
        for gamma in np.geomspace(5e-6, 1e-3, s["points"]):
            process = getattr(discrete, name)(batches(target), gamma)
            found = repeated(process, s["runs F2"], steps, centre, centre)[:, 0, 0] - oracle.truth
            add_errors(table, "F2", name, gamma, found, exact(gamma, steps))
        curve, small = np.geomspace(5e-6, 1e-3, 60), np.geomspace(1e-5, 2e-4, 7)
        table.add("F2 exact, from the mode", name, curve, [abs(exact(g, steps)) for g in curve])
        away = 3.0 * math.sqrt(oracle.truth)
        table.add("F2 exact, from 3 sd away", name, curve, [abs(exact(g, steps, away)) for g in curve])
        table.add("F2 slope of log |bias|, exact", name, 0, slope(small, [exact(g) for g in small]))

    return piece


def f3(table, work):
    """Optimal steps: bounds on bias and mean squared error for γ = c K^-a, from the exact biases.

    λ the posterior precision. The bias is bounded by its limit and the effect of a start three standard deviations
    from the mean, 9 / (2λ²γK); the variance of an average of squares is 2 / (λ³γK) to leading order.
    """
    oracle = one()[1]
    precision = 1.0 / oracle.truth

    def bias(function, gamma, steps):
        return abs(function(gamma)) + 9.0 * oracle.truth / (2.0 * precision * gamma * steps)

    def mse(function, gamma, steps):
        return function(gamma) ** 2 + 2.0 * oracle.truth**2 / (precision * gamma * steps)

    counts, values = 10.0 ** np.arange(5, 10), {"bias": bias, "MSE": mse}
    for name, what in OPTIMAL:
        function, value = oracle.plain if name == "SGLD" else oracle.extrapolated, values[what]
        best = np.array([minimum(lambda g, k=k, f=function, of=value: of(f, g, k)) for k in counts])
        for j, label in enumerate(("optimal γ", "least value")):
            table.add(f"F3 {what}: {label}", name, counts, best[:, j])
    steps = np.geomspace(1e3, 1e6, 25)
    for what, (scale, _) in FIGURE_3.items():
        for a in EXPONENTS:
            table.add(
                f"F3 {what}", f"{a:.3g}", steps, [values[what](oracle.extrapolated, scale * k**-a, k) for k in steps]
            )


def kinetic_bias(name, eps, noise=True):
    target, oracle = one()
    splitting, order, _ = KINETIC[name]

    def at(e):
        return Moments(target, hamiltonian(e, FRICTION, splitting), exact=not noise).stationary() - oracle.truth

    return 2.0 * at(0.5 * eps) - at(eps) if order == 2 else at(eps)


def f4(s, name):
    """The same with momentum: SGHMC explicit, as extrapolated, and by splitting, against its step."""

    def piece(table, work):
        target, oracle = one()
        make = {
            "SGHMC": lambda e: discrete.SGHMC(batches(target), e, FRICTION, "explicit"),
            "SGRRHMC": lambda e: discrete.SGRRHMC(batches(target), e, FRICTION, scheme="explicit"),
            "SGHMC-s": lambda e: discrete.SGHMC(batches(target), e, FRICTION, "splitting"),
        }[name]
        for eps in np.geomspace(1e-3, 1.2e-2, s["points F4"]):
            centre = target.law.mean
            found = repeated(make(eps), s["runs F4"], s["steps F4"], centre, centre, 0.05)[:, 0, 0] - oracle.truth
            add_errors(table, "F4", name, eps, found, kinetic_bias(name, eps))
        curve, small = np.geomspace(1e-3, 1.2e-2, 40), np.geomspace(1e-4, 1e-3, 6)
        table.add("F4 exact, in the limit", name, curve, [abs(kinetic_bias(name, e)) for e in curve])
        for noise in (False, True):
            table.add(f"F4 slope, noise {noise}", name, 0, slope(small, [kinetic_bias(name, e, noise) for e in small]))

    return piece


def pieces(s):
    found = {"F1a": f1a(s)} | {f"F1b, d = {d}": f1b(s, d) for d in DIMENSIONS}
    found |= {f"F2, {name}": f2(s, name) for name in ("SGLD", "SGRRLD")} | {"F3": f3}
    return found | {f"F4, {name}": f4(s, name) for name in KINETIC}


# ---------------------------------------------------------------------------------------------------------------
# Criteria


def largest_z(table, figure, name, runs):
    """Of the runs' bias against the exact one, and what it may be at all the steps together."""
    x, bias, error = table.get(f"{figure} bias", name)
    z = np.abs(bias - table.y(f"{figure} exact", name)) / error
    return z.max(), float(stats.t.isf(1e-3 / (2 * len(x)), runs - 1))


def criteria(table, s):
    rows, found = [], {}
    for name in ("SGLD", "SGRRLD"):
        (bias,), (error,) = table.get("F1a bias", name)[1:]
        exact = table.value("F1a exact", name)
        found[name] = bias
        rows.append(
            Row(f"F1a {name}: exact bias", f"{exact:.2e}", "4 standard errors", abs(bias - exact) < 4.0 * error)
        )
    sgld, rr = found.values()
    rows.append(Row("F1a SGLD: bias of the variance", f"{sgld:.2e}", "in [5e-3, 1e-2]", 5e-3 < sgld < 1e-2))
    rows.append(Row("F1a SGRRLD: bias of the variance", f"{rr:.2e}", "< 0.2 of SGLD's", abs(rr) < 0.2 * sgld))
    rows.append(Row("F1a SGRRLD: bias of the variance, the paper's", f"{rr:.2e}", "about 1e-4", abs(rr) < 2e-4, LIMIT))
    one, two = table.y("F1b", "SGLD"), table.y("F1b", "SGRRLD")
    for d, ratio in zip(DIMENSIONS, two / one, strict=True):
        rows.append(Row(f"F1b d = {d}: MSE of SGRRLD / of SGLD", f"{ratio:.3f}", "< 0.2", ratio < 0.2))
    fitted = slope(one, two)
    what = "F1b slope of log MSE, SGRRLD on SGLD"
    rows.append(Row(what, f"{fitted:.2f}", "2, as in the paper, ± 0.3", abs(fitted - 2.0) < 0.3, SLOPE))
    for name, order, low, high in (("SGLD", 1, 1e-5, 6e-5), ("SGRRLD", 2, 1e-4, 5e-4)):
        z, worst = largest_z(table, "F2", name, s["runs F2"])
        rows.append(Row(f"F2 {name}: largest |z| of the runs' bias", f"{z:.1f}", f"< {worst:.1f}", z < worst))
        fitted, allowed = table.value("F2 slope of log |bias|, exact", name), 0.15 * order
        what = f"F2 {name}: slope of log |bias| on log γ, exact, γ ≤ 2e-4"
        rows.append(Row(what, f"{fitted:.2f}", f"{order} ± {allowed:g}", abs(fitted - order) < allowed))
        x, y, _ = table.get("F2 MSE", name)
        best = x[y.argmin()]
        what = f"F2 {name}: γ of the least MSE"
        rows.append(Row(what, f"{best:.1e}", f"[{low:.0e}, {high:.0e}]", low <= best <= high))
        x, y, _ = table.get("F2 exact, from 3 sd away", name)
        rows.append(Row(f"F2 {name}: γ of the least |bias| from 3 sd away (the paper: 8e-5)", f"{x[y.argmin()]:.1e}"))
    top = -(s["points"] // 3)
    ratio = np.max(np.abs(table.y("F2 bias", "SGRRLD")[top:] / table.y("F2 bias", "SGLD")[top:]))
    rows.append(Row("F2 |bias| SGRRLD / SGLD, top third of γ, worst", f"{ratio:.2f}", "< 0.5", ratio < 0.5))
    for (name, what), exponents in OPTIMAL.items():
        for label, wanted, allowed in zip(("optimal γ", "least value"), exponents, (0.02, 0.03), strict=True):
            got = slope(*table.get(f"F3 {what}: {label}", name)[:2])
            text = f"F3 {name}, {what}: exponent of K in the {label}"
            rows.append(Row(text, f"{got:.3f}", f"{wanted:.3f} ± {allowed}", abs(got - wanted) < allowed))
    for what, (scale, wanted) in FIGURE_3.items():
        last = {a: table.y(f"F3 {what}", f"{a:.3g}")[-1] for a in EXPONENTS}
        best = min(last, key=last.get)
        text = f"F3 SGRRLD, {what}: best a at K = 10⁶ with γ = {scale:g} K^-a"
        rows.append(Row(text, f"{best:.3g}", f"{wanted:.3g}", best == wanted))
    for name, (_, _, orders) in KINETIC.items():
        for noise, wanted in zip((False, True), orders, strict=True):
            fitted = table.value(f"F4 slope, noise {noise}", name)
            text = f"F4 {name}, {'mini-batches' if noise else 'exact gradients'}: slope of log |bias|, exact"
            rows.append(Row(text, f"{fitted:.2f}", f"{wanted} ± 0.15", abs(fitted - wanted) < 0.15))
        z, worst = largest_z(table, "F4", name, s["runs F4"])
        rows.append(Row(f"F4 {name}: largest |z| of the runs' bias", f"{z:.1f}", f"< {worst:.1f}", z < worst))
    ratios = table.y("F4 MSE", "SGRRHMC") / table.y("F4 MSE", "SGHMC")
    worst = ratios[-(s["points F4"] // 3) :].max()
    rows.append(Row("F4 MSE SGRRHMC / SGHMC, top third of ε, worst", f"{worst:.3f}", "< 1", worst < 1.0))
    what = "F4 MSE SGRRHMC / SGHMC at the smallest ε"
    return [*rows, Row(what, f"{ratios[0]:.2f}", "> 1, as in the paper", ratios[0] > 1.0, FRICTION_UNKNOWN)]


# ---------------------------------------------------------------------------------------------------------------
# Pictures


def figure_1(table, s):
    target, oracle = one()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 3.8), layout="constrained")
    sd = math.sqrt(oracle.truth)
    x = target.law.mean[0] + np.linspace(-7.0, 7.0, 400) * sd
    left.fill_between(x, stats.norm.pdf(x, target.law.mean[0], sd), color="0.85", label="posterior")
    for name in ("SGLD", "SGRRLD"):
        (mean,), (spread,) = table.get("F1a one run", name)[:2]
        left.plot(x, stats.norm.pdf(x, mean, spread), color=COLOURS[name], label=f"{name}: N(mean, variance)")
        middle.loglog(
            *table.get("F1a along the runs", name)[:2], color=COLOURS[name], label=f"{name}, {s['runs']} runs"
        )
        middle.axhline(abs(table.value("F1a exact", name)), color=COLOURS[name], ls=":", lw=1)
        right.loglog(*table.get("F1b", name)[:2], "o-", color=COLOURS[name], label=name)
    right.loglog(DIMENSIONS, np.square(table.y("F1b", "SGLD")), ":", color=DARK_RED, lw=1, label="SGLD, squared")
    middle.axhline(np.nan, color=GREY, ls=":", lw=1, label="exact, in the limit")
    left.set(xlabel="θ", ylabel="density", title=f"one run, γ = {GAMMA:g}", ylim=(0, 17.5))
    middle.set(xlabel="gradients one after the other", ylabel="|bias| of the variance", title="after the burn-in")
    right.set(xlabel="dimension", ylabel="mean squared error of the covariance", title=f"{s['runs F1b']} runs")
    right.set_xticks(DIMENSIONS, DIMENSIONS)
    right.minorticks_off()
    for axis in (left, middle, right):
        axis.legend(fontsize=8)
    return figure


def against_step(table, figure, names, exact, label, title):
    """|Bias| with two standard errors and mean squared error against the step."""
    picture, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for name in names:
        x, bias, error = table.get(f"{figure} bias", name)
        left.errorbar(x, np.abs(bias), 2.0 * error, fmt="o", ms=4, color=COLOURS[name], label=name)
        right.loglog(*table.get(f"{figure} MSE", name)[:2], "o-", color=COLOURS[name], label=name)
        for what, style in exact.items():
            left.loglog(*table.get(what, name)[:2], color=COLOURS[name], lw=1, ls=style)
    for what, style in exact.items():
        left.plot([], [], color=GREY, lw=1, ls=style, label=what.partition(" ")[2])
    left.set(xlabel=label, ylabel="|bias| of the variance", ylim=(1e-7, 1e-1), title=title)
    right.set(xlabel=label, ylabel="mean squared error of the variance")
    for axis in (left, right):
        axis.legend(fontsize=8)
    return picture


def figure_2(table, s):
    title = f"{s['runs F2']} runs of {s['steps F2']:,} steps"
    exact = {"F2 exact, from the mode": "-", "F2 exact, from 3 sd away": "--"}
    return against_step(table, "F2", ("SGLD", "SGRRLD"), exact, "γ", title)


def figure_3(table, s):
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, len(EXPONENTS)))
    for axis, (what, (scale, wanted)) in zip(axes, FIGURE_3.items(), strict=True):
        for a, colour in zip(EXPONENTS, colours, strict=True):
            style = {"lw": 2.5} if a == wanted else {"lw": 1, "ls": "--"}
            label = "1/3" if a == 1 / 3 else f"{a:g}"
            axis.loglog(*table.get(f"F3 {what}", f"{a:.3g}")[:2], color=colour, label=label, **style)
        axis.set(xlabel="steps K", ylabel=f"bound on the {what} of SGRRLD", title=f"γ = {scale:g} $K^{{-a}}$")
        axis.legend(title="a", ncol=2, fontsize=8)
    return figure


def figure_4(table, s):
    title = f"friction {FRICTION:g}, {s['runs F4']} runs of {s['steps F4']:,} steps"
    return against_step(table, "F4", KINETIC, {"F4 exact, in the limit": "-"}, "ε", title)


STUDY = common.Study(
    name="richardson",
    quick={
        "seed": 0, "runs": 8, "steps F1a": 10_500, "runs F1b": 6, "steps F1b": 2_500, "runs F2": 12, "points": 9,
        "steps F2": 10_000, "runs F4": 12, "points F4": 5, "steps F4": 8_000,
    },
    full={
        "seed": 0, "runs": 100, "steps F1a": 10_500, "runs F1b": 100, "steps F1b": 10_500, "runs F2": 100, "points": 15,
        "steps F2": 10_000, "runs F4": 100, "points F4": 10, "steps F4": 20_000,
    },
    pieces=pieces,
    criteria=criteria,
    pictures={"f1": figure_1, "f2": figure_2, "f3": figure_3, "f4": figure_4},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(common.main(STUDY, __doc__))
