"""`pdmp.sample(model)` on models of one's own: posteriors of posteriordb, written as plain classes.

    python -m tests.benchmarks.own_models FOLDER [--only NAME …] [--gradients N] [--seed 1]

FOLDER has `reference.json` (the mean and sd of each parameter, and the name of the data) and the data as JSON in
`data/`. Four chains run as `pdmp.sample(model)` does by default, or, with --gradients, for so many gradients each after
the warm-up. Columns: what was chosen; evaluations in the warm-up and gradients of the run, in thousands; the least
effective draws per 1,000 of both together, of means and of standard deviations; the largest errors of a mean, in
reference sds, and of an sd, relative; largest R-hat; gradients a proposal; share of proposals above their bound;
seconds of a second run, when everything is compiled; warnings.
"""

import argparse
import json
import math
import pathlib
import time
import warnings

import numpy as np

import pdmp
from pdmp.models.transforms import Interval, Log, Ordered


class Regression(pdmp.Model):
    """y ~ N(Xβ, σ); β_j ~ N or Student's t, σ ~ the half of one; x = (β, log σ). A prior of precision 0 is flat."""

    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    dof: np.ndarray

    def __init__(self, X, y, mean=0.0, sd=math.inf, dof=math.inf, sigma_sd=math.inf, sigma_dof=math.inf):
        n, p = X.shape
        super().__init__(dim=p + 1, variables={"beta": (p,), "sigma": ()}, transforms={"sigma": Log()})
        self.X, self.y = np.ascontiguousarray(X, float), np.ascontiguousarray(y, float)
        self.mean = np.append(np.broadcast_to(mean, p), 0.0)
        self.precision = np.append(np.broadcast_to(sd, p), sigma_sd) ** -2.0
        self.dof = np.append(np.broadcast_to(dof, p), sigma_dof)

    @pdmp.compiled
    def potential(self, x):
        p = self.dim - 1
        sigma = math.exp(x[p])
        total = 0.0
        for i in range(self.y.shape[0]):
            r = self.y[i]
            for j in range(p):
                r -= self.X[i, j] * x[j]
            total += r * r
        total = 0.5 * total / (sigma * sigma) + (self.y.shape[0] - 1) * x[p]
        for j in range(p + 1):
            r = (sigma if j == p else x[j]) - self.mean[j]
            square = self.precision[j] * r * r
            if math.isinf(self.dof[j]):
                total += 0.5 * square
            else:
                total += 0.5 * (self.dof[j] + 1.0) * math.log(1.0 + square / self.dof[j])
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        p = self.dim - 1
        sigma = math.exp(x[p])
        weight, total = 1.0 / (sigma * sigma), 0.0
        for i in range(self.y.shape[0]):
            r = self.y[i]
            for j in range(p):
                r -= self.X[i, j] * x[j]
            total += r * r
            for j in range(p):
                out[j] -= weight * r * self.X[i, j]
        out[p] += self.y.shape[0] - 1 - weight * total
        potential = 0.5 * weight * total + (self.y.shape[0] - 1) * x[p]
        for j in range(p + 1):
            r = (sigma if j == p else x[j]) - self.mean[j]
            slope = self.precision[j] * r
            if math.isinf(self.dof[j]):
                potential += 0.5 * slope * r
            else:
                potential += 0.5 * (self.dof[j] + 1.0) * math.log(1.0 + slope * r / self.dof[j])
                slope *= (self.dof[j] + 1.0) / (self.dof[j] + slope * r)
            out[j] += slope * sigma if j == p else slope
        return potential


class Schools(pdmp.Model):
    """y_j ~ N(μ + τ z_j, s_j), z ~ N(0, 1), μ ~ N(0, 5), τ ~ half-Cauchy(5); x = (z, μ, log τ).

    Centred: x = (θ, μ, log τ) with θ_j ~ N(μ, τ) and y_j ~ N(θ_j, s_j).
    """

    y: np.ndarray
    s: np.ndarray
    centred: bool

    def __init__(self, y, s, centred=False):
        name = "theta" if centred else "theta_trans"
        super().__init__(dim=len(y) + 2, variables={name: (len(y),), "mu": (), "tau": ()}, transforms={"tau": Log()})
        self.y, self.s, self.centred = np.array(y, float), np.array(s, float), centred

    @pdmp.compiled
    def potential(self, x):
        n = self.y.shape[0]
        mu, tau = x[n], math.exp(x[n + 1])
        total = 0.02 * mu * mu + math.log(1.0 + tau * tau / 25.0) - x[n + 1]
        for j in range(n):
            if self.centred:
                r, z = (self.y[j] - x[j]) / self.s[j], (x[j] - mu) / tau
                total += x[n + 1]
            else:
                r, z = (self.y[j] - mu - tau * x[j]) / self.s[j], x[j]
            total += 0.5 * (r * r + z * z)
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        n = self.y.shape[0]
        mu, tau = x[n], math.exp(x[n + 1])
        out[n] += 0.04 * mu
        out[n + 1] += 2.0 * tau * tau / (25.0 + tau * tau) - 1.0
        total = 0.02 * mu * mu + math.log(1.0 + tau * tau / 25.0) - x[n + 1]
        for j in range(n):
            if self.centred:
                r, z = (self.y[j] - x[j]) / self.s[j], (x[j] - mu) / tau
                total += x[n + 1] + 0.5 * (r * r + z * z)
                out[j] += z / tau - r / self.s[j]
                out[n] -= z / tau
                out[n + 1] += 1.0 - z * z
            else:
                r, z = (self.y[j] - mu - tau * x[j]) / self.s[j], x[j]
                total += 0.5 * (r * r + z * z)
                out[j] += z - r / self.s[j] * tau
                out[n] -= r / self.s[j]
                out[n + 1] -= r / self.s[j] * tau * z
        return total

    def constrain(self, draws):
        found = super().constrain(draws)
        if not self.centred:
            theta = found["mu"][..., None] + found["tau"][..., None] * found.pop("theta_trans")
            found = {"theta": theta, **found}
        return found


class Garch(pdmp.Model):
    """y_t ~ N(μ, s_t), s_t² = α₀ + α₁ (y_{t-1} - μ)² + β₁ s²_{t-1}; x = (μ, log α₀, logit α₁, logit β₁ / (1 - α₁))."""

    y: np.ndarray
    first: float

    def __init__(self, y, first):
        super().__init__(
            dim=4,
            variables={"mu": (), "alpha0": (), "alpha1": (), "share": ()},
            transforms={"alpha0": Log(), "alpha1": Interval(), "share": Interval()},
        )
        self.y, self.first = np.array(y, float), float(first)

    @pdmp.compiled
    def potential(self, x):
        mu, a0, a1, q = x[0], math.exp(x[1]), 1.0 / (1.0 + math.exp(-x[2])), 1.0 / (1.0 + math.exp(-x[3]))
        b1, s = q * (1.0 - a1), self.first * self.first
        # Jacobian: α₀ · α₁ (1 - α₁) · (1 - α₁) q (1 - q)
        total = -x[1] - math.log(a1) - 2.0 * math.log(1.0 - a1) - math.log(q) - math.log(1.0 - q)
        for t in range(self.y.shape[0]):
            if t > 0:
                r = self.y[t - 1] - mu
                s = a0 + a1 * r * r + b1 * s
            r = self.y[t] - mu
            total += 0.5 * (math.log(s) + r * r / s)
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        mu, a0, a1, q = x[0], math.exp(x[1]), 1.0 / (1.0 + math.exp(-x[2])), 1.0 / (1.0 + math.exp(-x[3]))
        b1, s = q * (1.0 - a1), self.first * self.first
        by_mu, by_a0, by_a1, by_b1 = 0.0, 0.0, 0.0, 0.0  # derivatives of s
        g_mu, g_a0, g_a1, g_b1 = 0.0, 0.0, 0.0, 0.0
        total = -x[1] - math.log(a1) - 2.0 * math.log(1.0 - a1) - math.log(q) - math.log(1.0 - q)
        for t in range(self.y.shape[0]):
            if t > 0:
                r = self.y[t - 1] - mu
                by_mu, by_a0 = b1 * by_mu - 2.0 * a1 * r, 1.0 + b1 * by_a0
                by_a1, by_b1 = r * r + b1 * by_a1, s + b1 * by_b1
                s = a0 + a1 * r * r + b1 * s
            r = self.y[t] - mu
            total += 0.5 * (math.log(s) + r * r / s)
            c = 0.5 * (1.0 - r * r / s) / s
            g_mu += c * by_mu - r / s
            g_a0 += c * by_a0
            g_a1 += c * by_a1
            g_b1 += c * by_b1
        out[0] += g_mu
        out[1] += g_a0 * a0 - 1.0
        out[2] += (g_a1 - q * g_b1) * a1 * (1.0 - a1) - (1.0 - a1) + 2.0 * a1
        out[3] += g_b1 * (1.0 - a1) * q * (1.0 - q) - 1.0 + 2.0 * q
        return total

    def constrain(self, draws):
        found = super().constrain(draws)
        found["beta1"] = found.pop("share") * (1.0 - found["alpha1"])
        return found


class Arma(pdmp.Model):
    """e_t = y_t - μ - φ y_{t-1} - θ e_{t-1} ~ N(0, σ), y₀ = μ and e₀ = 0; x = (μ, φ, θ, log σ)."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(dim=4, variables={"mu": (), "phi": (), "theta": (), "sigma": ()}, transforms={"sigma": Log()})
        self.y = np.array(y, float)

    @pdmp.compiled
    def potential(self, x):
        mu, phi, theta, sigma = x[0], x[1], x[2], math.exp(x[3])
        total, e = 0.0, 0.0
        for t in range(self.y.shape[0]):
            e = self.y[t] - mu - phi * (self.y[t - 1] if t > 0 else mu) - theta * e
            total += e * e
        total = 0.5 * total / (sigma * sigma) + (self.y.shape[0] - 1) * x[3] + math.log(1.0 + sigma * sigma / 6.25)
        return total + 0.005 * mu * mu + 0.125 * (phi * phi + theta * theta)

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        mu, phi, theta, sigma = x[0], x[1], x[2], math.exp(x[3])
        weight, total, e = 1.0 / (sigma * sigma), 0.0, 0.0
        by_mu, by_phi, by_theta = 0.0, 0.0, 0.0  # derivatives of e
        for t in range(self.y.shape[0]):
            before = self.y[t - 1] if t > 0 else mu
            by_theta = -e - theta * by_theta
            e = self.y[t] - mu - phi * before - theta * e
            by_mu = -1.0 - (phi if t == 0 else 0.0) - theta * by_mu
            by_phi = -before - theta * by_phi
            total += e * e
            out[0] += weight * e * by_mu
            out[1] += weight * e * by_phi
            out[2] += weight * e * by_theta
        out[0] += 0.01 * mu
        out[1] += 0.25 * phi
        out[2] += 0.25 * theta
        out[3] += self.y.shape[0] - 1 - weight * total + 2.0 * sigma * sigma / (6.25 + sigma * sigma)
        total = 0.5 * weight * total + (self.y.shape[0] - 1) * x[3] + math.log(1.0 + sigma * sigma / 6.25)
        return total + 0.005 * mu * mu + 0.125 * (phi * phi + theta * theta)


class Mixture(pdmp.Model):
    """y ~ θ N(μ₁, σ₁) + (1 - θ) N(μ₂, σ₂), μ₁ < μ₂; x = (μ₁, log(μ₂ - μ₁), log σ₁, log σ₂, logit θ)."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(
            dim=5,
            variables={"mu": (2,), "sigma": (2,), "theta": ()},
            transforms={"mu": Ordered(), "sigma": Log(), "theta": Interval()},
        )
        self.y = np.array(y, float)

    @pdmp.compiled
    def potential(self, x):
        m1, gap, s1, s2 = x[0], math.exp(x[1]), math.exp(x[2]), math.exp(x[3])
        m2, theta = m1 + gap, 1.0 / (1.0 + math.exp(-x[4]))
        total = 0.125 * (m1 * m1 + m2 * m2 + s1 * s1 + s2 * s2) - x[1] - x[2] - x[3]
        total -= 5.0 * (math.log(theta) + math.log(1.0 - theta))  # Beta(5, 5) and the Jacobian
        for i in range(self.y.shape[0]):
            z1, z2 = (self.y[i] - m1) / s1, (self.y[i] - m2) / s2
            a = math.log(theta) - x[2] - 0.5 * z1 * z1
            b = math.log(1.0 - theta) - x[3] - 0.5 * z2 * z2
            top = max(a, b)
            total -= top + math.log(math.exp(a - top) + math.exp(b - top))
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        m1, gap, s1, s2 = x[0], math.exp(x[1]), math.exp(x[2]), math.exp(x[3])
        m2, theta = m1 + gap, 1.0 / (1.0 + math.exp(-x[4]))
        by_m2 = 0.25 * m2
        total = 0.125 * (m1 * m1 + m2 * m2 + s1 * s1 + s2 * s2) - x[1] - x[2] - x[3]
        total -= 5.0 * (math.log(theta) + math.log(1.0 - theta))
        out[0] += 0.25 * m1
        out[2] += 0.25 * s1 * s1 - 1.0
        out[3] += 0.25 * s2 * s2 - 1.0
        out[4] += 5.0 * (2.0 * theta - 1.0)
        for i in range(self.y.shape[0]):
            z1, z2 = (self.y[i] - m1) / s1, (self.y[i] - m2) / s2
            a = math.log(theta) - x[2] - 0.5 * z1 * z1
            b = math.log(1.0 - theta) - x[3] - 0.5 * z2 * z2
            top = max(a, b)
            total -= top + math.log(math.exp(a - top) + math.exp(b - top))
            p = 1.0 / (1.0 + math.exp(b - a))
            out[0] -= p * z1 / s1
            by_m2 -= (1.0 - p) * z2 / s2
            out[2] += p * (1.0 - z1 * z1)
            out[3] += (1.0 - p) * (1.0 - z2 * z2)
            out[4] += theta - p
        out[0] += by_m2
        out[1] += by_m2 * gap - 1.0
        return total


def columns(data, *names):
    """The design matrix with an intercept and these columns."""
    n = len(data[names[0]])
    return np.column_stack([np.ones(n), *(np.array(data[name], float) for name in names)])


def kidscore(data, interaction=False):
    X = columns(data, "mom_hs", "mom_iq")
    if interaction:
        X = np.column_stack([X, X[:, 1] * X[:, 2]])
    return Regression(X, data["kid_score"], sigma_sd=2.5, sigma_dof=1.0)


def logearn(data):
    X = columns(data, "height", "male")
    return Regression(np.column_stack([X, X[:, 1] * X[:, 2]]), np.log(data["earn"]))


def logmesquite(data):
    d1, d2, canopy, total = (np.array(data[k], float) for k in ("diam1", "diam2", "canopy_height", "total_height"))
    X = [np.ones(len(d1)), np.log(d1 * d2 * canopy), np.log(d1 * d2), np.log(d1 / d2), np.log(total), data["group"]]
    return Regression(np.column_stack(X), np.log(data["weight"]))


def nes(data):
    age = np.array(data["age_discrete"])
    X = [
        columns(data, "real_ideo", "race_adj"),
        age == 2,
        age == 3,
        age == 4,
        columns(data, "educ1", "gender", "income"),
    ]
    X = np.column_stack([np.asarray(part, float) for part in X])
    return Regression(np.delete(X, 6, axis=1), data["partyid7"])  # the second intercept


def diamonds(data):
    X = np.array(data["X"], float)[:, 1:]
    X = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    p = X.shape[1]
    last = np.arange(p) == p - 1
    return Regression(
        X,
        data["Y"],
        mean=np.where(last, 8.0, 0.0),
        sd=np.where(last, 10.0, 1.0),
        dof=np.where(last, 3.0, math.inf),
        sigma_sd=10.0,
        sigma_dof=3.0,
    )


def autoregression(data):
    y, k = np.array(data["y"], float), data["K"]
    X = np.column_stack([np.ones(len(y) - k), *(y[k - 1 - j : len(y) - 1 - j] for j in range(k))])
    return Regression(X, y[k:], sd=10.0, sigma_sd=2.5, sigma_dof=1.0)


MESQUITE = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
#: For each posterior its model from the data; natural parameters are in the order of the reference.
POSTERIORS = {
    "earnings-earn_height": lambda data: Regression(columns(data, "height"), data["earn"]),
    "earnings-logearn_interaction": logearn,
    "kidiq-kidscore_momhsiq": kidscore,
    "kidiq-kidscore_interaction": lambda data: kidscore(data, interaction=True),
    "mesquite-mesquite": lambda data: Regression(columns(data, *MESQUITE), data["weight"]),
    "mesquite-logmesquite_logvash": logmesquite,
    "nes2000-nes": nes,
    "sblrc-blr": lambda data: Regression(np.array(data["X"], float), data["y"], sd=10.0, sigma_sd=10.0),
    "kilpisjarvi_mod-kilpisjarvi": lambda data: Regression(
        columns(data, "x"),
        data["y"],
        mean=np.array([data["pmualpha"], data["pmubeta"]], float),
        sd=np.array([data["psalpha"], data["psbeta"]], float),
    ),
    "diamonds-diamonds": diamonds,
    "arK-arK": autoregression,
    "arma-arma11": lambda data: Arma(data["y"]),
    "garch-garch11": lambda data: Garch(data["y"], data["sigma1"]),
    "eight_schools-eight_schools_noncentered": lambda data: Schools(data["y"], data["sigma"]),
    "low_dim_gauss_mix-low_dim_gauss_mix": lambda data: Mixture(data["y"]),
}


def measure(name, folder, gradients, seed):
    """One line of the table."""
    budget = {"ess": 400, "rhat": 1.05, "gradients": 100_000} if gradients is None else {"gradients": gradients}
    reference = json.loads((folder / "reference.json").read_text())[name]
    data = json.loads((folder / "data" / f"{reference['data']}.json").read_text())
    model = POSTERIORS[name](data)
    parameters = reference["parameters"].values()
    mean, sd = (np.array([p[key] for p in parameters]) for key in ("mean", "sd"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            said.clear()
            began = time.perf_counter()
            process = pdmp.auto(model, seed=seed)
            run = pdmp.sample(process, seed=seed, **budget)
            seconds = time.perf_counter() - began
    of_means, of_sds = run.effective_draws().values()
    spent = process.preparation_gradients, run.stats["data_terms"]
    draws = run.constrain(run.draws(2_000))
    draws = np.concatenate([part.reshape(8_000, -1) for part in draws.values()], axis=1)
    each = 1_000.0 / sum(spent)
    print(
        f"{name.partition('-')[2]:26s}{process.choice.split()[0].strip(':'):10s}"
        f"{spent[0] / 1e3:7.1f}{spent[1] / 1e3:7.1f}"
        f"{of_means.min() * each:8.1f}{of_sds.min() * each:8.1f}"
        f"{(np.abs(draws.mean(axis=0) - mean) / sd).max():8.3f}{np.abs(draws.std(axis=0) / sd - 1).max():8.3f}"
        f"{run.rhat().max():7.3f}{spent[1] / max(run.stats['thinned'], 1):6.2f}"
        f"{100 * run.stats['bound_violations'] / max(run.stats['thinned'], 1):6.2f}{seconds:7.2f}",
        flush=True,
    )
    print(f"    {process.choice}", *(f"    warned: {w.message}" for w in said), sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--gradients", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(
        "posterior                 chosen    warm-up    run   means     sds     err  err sd  R-hat g/prop  viol%      s"
    )
    for name in POSTERIORS:
        if not options.only or any(part in name for part in options.only):
            measure(name, options.folder, options.gradients, options.seed)


if __name__ == "__main__":
    main()
