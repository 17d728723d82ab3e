"""`pdmp.sample(model)` on targets that are hard: what it gets right, and whether it says so where it does not.

    python -m tests.benchmarks.hard_targets [--only NAME …] [--seeds 1 2] [--gradients 50000]
    python -m tests.benchmarks.hard_targets --to-error [--only NAME …] [--seeds 1 2] [--events 4000]

Of each target in `HARD`: shares of draws in sets whose probabilities are known. They are right if all are within 0.05
and a factor of two of these. Else the run is "warned" if it, its warm-up or its summary says so in the words of the
table, "other" if it says something else, and "SILENT" if it says nothing. Columns: that for each seed; the set that is
farthest off in any, its probability and its shares; gradients of the warm-up, all chains, medians; divergent paths.
Exit code 1 if anything is silent.

--to-error: gradients of one chain until the worst second moment is right, for the targets in `TARGETS`. Right is as in
"Metropolis Adjusted Microcanonical Hamiltonian Monte Carlo" (2025, arXiv:2503.01707) and its authors' code: of each
chain the squared error of the mean of z² so far, over the variance of z², at its worst coordinate; the median of these
over the chains, four of each seed, is below 0.01 from there to the end. z is x, or what the table makes of it.
Columns: gradients of the warm-up of four chains, the median over the seeds; those of one chain to the error, inf where
it is not reached, nan where the moments are not known; effective draws of z and of z² per 1,000 gradients of a run, in
the seeds with the fewest and the most; the step; divergences.
"""

import argparse
import re
import sys
import warnings

import numpy as np
import scipy.sparse
from scipy import stats

import pdmp
from pdmp.process import DATA
from tests.benchmarks import tempering
from tests.models.helpers_propriety import curve, student, target


class Banana(pdmp.Model):
    """x₀ ~ N(0, 100), x₁ | x₀ ~ N(0.03 (x₀² - 100), 1)."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        r = x[1] - 0.03 * (x[0] * x[0] - 100.0)
        return 0.005 * x[0] * x[0] + 0.5 * r * r

    @pdmp.compiled
    def add_gradient(self, x, out):
        r = x[1] - 0.03 * (x[0] * x[0] - 100.0)
        out[0] += 0.01 * x[0] - 0.06 * r * x[0]
        out[1] += r


def gaussian(d, condition):
    """Independent normal coordinates, the ratio of whose variances is the condition."""
    variances = np.geomspace(condition**-0.5, condition**0.5, d)
    precision = scipy.sparse.diags(1.0 / variances).tocsr()
    return pdmp.models.Gaussian(0.0, precision), lambda x: x, variances, 2.0 * variances**2


def banana():
    return Banana(), lambda x: x, np.array([100.0, 19.0]), np.array([20_000.0, 4_600.898])


def funnel(d=20):
    """The last coordinate N(0, 9), the others N(0, exp of it)."""

    def both(x):
        square, precision = x[:-1] @ x[:-1], np.exp(-x[-1])
        gradient = np.append(precision * x[:-1], x[-1] / 9.0 + 0.5 * (d - 1) - 0.5 * precision * square)
        return x[-1] ** 2 / 18.0 + 0.5 * (d - 1) * x[-1] + 0.5 * precision * square, gradient

    def standardised(x):
        return np.concatenate([x[:, :-1] * np.exp(-0.5 * x[:, -1:]), x[:, -1:] / 3.0], axis=1)

    return pdmp.models.from_function(both, d), standardised, np.ones(d), np.full(d, 2.0)


def funnel_of_terms(d=20):
    """The same, whose scale `pdmp.sample` finds in the expression."""
    p, e = pdmp.Parameters(x=d - 1, t=1), pdmp.terms
    rows = [e(lambda x, t: 0.5 * t + 0.5 * x**2 * e.exp(-t), at=[p.x[np.arange(d - 1)], p.t])]
    _, *rest = funnel(d)
    return pdmp.models.sum_of_terms(p, rows, priors={"t": pdmp.models.priors.Normal(0.0, 3.0)}), *rest


def volatility(n=2_427):
    """Log volatilities s of n days, a random walk with steps N(0, σ²), and returns exp(s) t_ν: d = n + 2, as terms.

    U has no lower bound: it falls without end along s = 0, σ → 0. Moments are not known, so that the error is not.
    """
    rng, days, e = np.random.default_rng(1), np.arange(n), pdmp.terms
    returns = np.exp(np.cumsum(0.08 * rng.standard_normal(n))) * rng.standard_t(12.0, n)
    p = pdmp.Parameters(s=n, log_scale=1, log_nu=1)
    step = scipy.sparse.csr_array(scipy.sparse.eye_array(n) - scipy.sparse.eye_array(n, k=-1))

    def walk(change, log_scale):
        return log_scale + 0.5 * (change / 0.02 * e.exp(-log_scale)) ** 2

    def student(y, s, log_nu):
        nu = 10.0 * e.exp(log_nu)
        constant = e.lgamma(0.5 * nu) - e.lgamma(0.5 * nu + 0.5) + 0.5 * e.log(nu)
        return constant + s + 0.5 * (nu + 1.0) * e.log1p((y * e.exp(-s)) ** 2 / nu)

    def exponential(log_x):
        return e.exp(log_x) - log_x

    rows = [e(walk, at=[step @ p.s, p.log_scale]), e(student, [returns], [p.s[days], p.log_nu])]
    rows += [e(exponential, at=[part]) for part in (p.log_scale, p.log_nu)]
    return pdmp.models.sum_of_terms(p, rows), lambda x: x, np.full(n + 2, np.nan), np.ones(n + 2)


TARGETS = {
    "volatility": volatility,
    "Gaussian, d = 100": lambda: gaussian(100, 1_000.0),
    "Gaussian, d = 10,000": lambda: gaussian(10_000, 100.0),
    "banana": banana,
    "funnel, d = 20": funnel,
    "the same, as terms": funnel_of_terms,
}


def reached(z, square, variance):
    """How many draws of each chain (chains, n, d) it takes until the error is small and stays so, or inf."""
    n = z.shape[1]
    if np.isnan(square).any():
        return np.nan
    means = np.cumsum(z**2, axis=1) / np.arange(1.0, n + 1.0)[:, None]
    large = np.flatnonzero(np.median(np.max((means - square) ** 2 / variance, axis=2), axis=0) > 0.01)
    return 1.0 if len(large) == 0 else large[-1] + 2.0 if large[-1] + 1 < n else np.inf


def measure(target, seeds, events):
    """One line of the table: of the chains of all seeds, each seed with a warm-up of its own."""
    z, each, ess, warm_up = [], [], [], []
    for seed in seeds:
        model, natural, square, variance = target()
        process = pdmp.auto(model, seed=seed)
        run = pdmp.sample(process, events=events, chains=4, seed=seed, progress=False)
        gradients = sum(record.counts[DATA] for record in run.records) / max(model.n_data, 1)
        part = np.array([natural(path.positions[1:]) for path in run.trajectories])
        both = part, (part - part.mean(axis=(0, 1))) ** 2
        stats = [record.statistics for record in run.records]
        z += list(part)
        each += [gradients / (4 * events)]
        ess += [[1e3 * pdmp.diagnostics.ess(one).min() / gradients for one in both]]
        warm_up += [(process.prepared.gradients, process.step, sum(s["divergences"] for s in stats))]
    to = reached(np.array(z), square, variance) * np.mean(each)
    low, high = np.min(ess, axis=0), np.max(ess, axis=0)
    spent, step, divergences = np.array(warm_up).T
    return (
        f"{np.median(spent):8,.0f} {to:9,.0f} {low[0]:7.3g} to {high[0]:<5.3g} {low[1]:7.3g} to {high[1]:<5.3g}"
        f" {np.median(step):6.2g} {divergences.sum():6.0f}"
    )


# -- right, warned or silent ------------------------------------------------------------------------------------------


def beyond(nu, d, correlation=0.0):
    """Outside of radii of a multivariate t, whose coordinates are 1 to 30 wide where they are correlated."""
    if not correlation:
        model, radii = student(nu, d), lambda x: (x**2).sum(axis=1)
    else:
        widths = np.geomspace(1.0, 30.0, d)
        matrix = np.linalg.inv(((1.0 - correlation) * np.eye(d) + correlation) * np.outer(widths, widths))
        radii = lambda x: np.einsum("ni,ij,nj->n", x, matrix, x)  # noqa: E731
        model = target(
            lambda x: 0.5 * (nu + d) * np.log1p(x @ matrix @ x / nu),
            lambda x: (nu + d) * (matrix @ x) / (nu + x @ matrix @ x),
            d,
        )

    def outside(p):
        return lambda x: radii(x) > d * stats.f.isf(p, d, nu), p

    return model, {f"beyond the {1 - p:.0%} radius": outside(p) for p in (0.1, 0.01)}


def independent(nu, d):
    """Outside of quantiles of independent t."""

    def outside(p):
        return lambda x: np.abs(x[:, 0]) > stats.t.isf(0.5 * p, nu), p

    return student(nu, d, together=False), {f"beyond the {1 - p:.0%} radius": outside(p) for p in (0.1, 0.01)}


def rosenbrock():
    """x₀ ~ N(1, 10), x₁ ~ N(x₀², 1/10)."""

    def gradient(x):
        r = x[1] - x[0] ** 2
        return [(x[0] - 1.0) / 10.0 - 20.0 * x[0] * r, 10.0 * r]

    model = target(lambda x: (x[0] - 1.0) ** 2 / 20.0 + 5.0 * (x[1] - x[0] ** 2) ** 2, gradient, 2)
    far = 2.0 * stats.norm.sf(2.0)
    return model, {
        "x₀ > 1": (lambda x: x[:, 0] > 1.0, 0.5),
        "|x₀ - 1| > 2 sds": (lambda x: np.abs(x[:, 0] - 1.0) > 2.0 * 10.0**0.5, far),
    }


def horseshoe(d=80, tau=0.05):
    """d means β = τ e^l z, half-Cauchy scales e^l, each seen once; five of them are 3, the others noise."""
    y = np.random.default_rng(1).standard_normal(d) * 0.3
    y[:5] += 3.0

    def gradient(x):
        z, scale = x[:d], tau * np.exp(x[d:])
        pull, wide = (scale * z - y) / 0.09, np.exp(2.0 * x[d:])
        return np.concatenate([z + pull * scale, pull * scale * z + 2.0 * wide / (1.0 + wide) - 1.0])

    def potential(x):
        z, r = x[:d], tau * np.exp(x[d:]) * x[:d] - y
        return 0.5 * z @ z + 0.5 * r @ r / 0.09 + np.log1p(np.exp(2.0 * x[d:])).sum() - x[d:].sum()

    level = np.linspace(-15.0, 20.0, 20_001)
    sets = {}
    for j in (0, int(np.argmax(y[5:])) + 5, int(np.argmin(np.abs(y)))):
        variance = (tau * np.exp(level)) ** 2
        weights = stats.norm.pdf(y[j], 0.0, np.sqrt(variance + 0.09)) / np.cosh(level)
        gain = variance / (variance + 0.09)
        above = np.sum(weights * stats.norm.sf((0.5 * y[j] - gain * y[j]) / (0.3 * np.sqrt(gain)))) / weights.sum()
        sets[f"β{j} > {0.5 * y[j]:.2g}"] = lambda x, j=j: tau * np.exp(x[:, d + j]) * x[:, j] > 0.5 * y[j], above
    return target(potential, gradient, 2 * d), sets


def necked(t):
    """Sets of a scale whose log is N(0, 9)."""
    return {f"t {'<' if q < 0 else '>'} {q} sds": (
        lambda x, q=q: (x[:, t] - 3.0 * q) * np.sign(q) > 0.0, float(stats.norm.sf(abs(q)))
    ) for q in (-2, -1, 1, 2)}  # fmt: skip


def bent():
    both = {"x₀ > 0": (lambda x: x[:, 0] > 0.0, 0.5)}
    return Banana(), both | {"|x₀| > 2 sds": (lambda x: np.abs(x[:, 0]) > 20.0, 2.0 * stats.norm.sf(2.0))}


def improper(potential, gradient, d):
    return lambda: (target(potential, gradient, d), {})


MODES, NECK, TAIL = "no chain is in|R-hat|apart", "diverged|held at one place|paths were lost|neck", "no variance"
IMPROPER = "improper|does not grow|no lower bound|falls without end|flat"
HARD = {name: ((lambda make=make: (make().model, make().sets)), MODES) for name, make in tempering.TARGETS.items()
        if re.match("two|four|mirrored|ring|spike|sds", name)} | {
    "banana": (bent, NECK),
    "Rosenbrock": (rosenbrock, NECK),
    "funnel, d = 20": (lambda: (funnel()[0], necked(19)), NECK),
    "funnel of terms, d = 20": (lambda: (funnel_of_terms()[0], necked(19)), NECK),
    "t of 1.5, d = 5": (lambda: beyond(1.5, 5), TAIL),
    "t of 3, d = 5": (lambda: beyond(3.0, 5), TAIL),
    "Cauchy, d = 5": (lambda: beyond(1.0, 5), TAIL),
    "t of 3, d = 1": (lambda: beyond(3.0, 1), TAIL),
    "Cauchy, d = 1": (lambda: beyond(1.0, 1), TAIL),
    "Cauchy, d = 10": (lambda: beyond(1.0, 10), TAIL),
    "Cauchy, three independent": (lambda: independent(1.0, 3), TAIL),
    "t of 1.5, a ridge, d = 5": (lambda: beyond(1.5, 5, 0.999), TAIL),
    "horseshoe of 80": (horseshoe, NECK),
    "improper: a flat coordinate": (improper(lambda x: 0.5 * x[0] ** 2, lambda x: [x[0], 0.0], 2), IMPROPER),
    "improper: flat on one side": (
        improper(lambda x: np.logaddexp(0.0, x[0]), lambda x: [0.5 + 0.5 * np.tanh(0.5 * x[0])], 1), IMPROPER
    ),
    "improper: falls on one side": (improper(lambda x: np.exp(-x[0]), lambda x: [-np.exp(-x[0])], 1), IMPROPER),
    "improper: along a curve": (lambda: (curve(0.0), {}), IMPROPER),
}  # fmt: skip


RARE = 0.005  #: probabilities below which a factor of two is not asked for


def verdict(model, sets, words, seed, gradients):
    """right, warned, other or SILENT; the shares; gradients of the warm-up, and divergences."""
    with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            process = pdmp.auto(model, seed=seed)
            run = pdmp.sample(process, gradients=gradients, chains=4, seed=seed, progress=False)
            texts = [*run.summary().warnings, *process.prepared.cautions]
        except (pdmp.SamplingError, ValueError) as error:
            run, texts = None, [str(error)]
    texts += [str(w.message) for w in said if issubclass(w.category, UserWarning)]
    if run is None:
        return "warned" if re.search(words, " ".join(texts)) else "other", {}, 0, 0
    x = run.draws(5_000).reshape(-1, run.dim)
    shares = {name: (float(np.mean(which(x))), p) for name, (which, p) in sets.items()}
    good = all(abs(q - p) <= 0.05 and (p < RARE or 0.5 * p <= q <= 2.0 * p) for q, p in shares.values())
    divergences = sum(record.statistics.get("divergences", 0) for record in run.records)
    word = (
        "right" if good and sets else "warned" if re.search(words, " ".join(texts)) else "other" if texts else "SILENT"
    )
    return word, shares, process.prepared.gradients, divergences


def table(only, seeds, gradients):
    """Print it; whether anything was silent."""
    silent = False
    for name in only:
        make, words = HARD[name]
        rows = [verdict(*make(), words, seed, gradients) for seed in seeds]
        off = {key: max(abs(np.log(max(row[1][key][0], 1e-9) / row[1][key][1])) for row in rows if row[1])
               for key in max((row[1] for row in rows), key=len)}  # fmt: skip
        worst = max(off, key=off.get) if off else None
        line = "".join(f"{row[0]:8}" for row in rows)
        if worst is not None:
            shares = " ".join(f"{row[1][worst][0]:.2g}" for row in rows if row[1])
            line += f" {worst}, {next(row[1][worst][1] for row in rows if row[1]):.3g}: {shares};"
        print(
            f"{name:30}{line} {np.median([row[2] for row in rows]):,.0f}; {sum(row[3] for row in rows):.0f}", flush=True
        )
        silent |= any(row[0] == "SILENT" for row in rows)
    return silent


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to-error", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--events", type=int, default=4_000)
    parser.add_argument("--gradients", type=int, default=50_000, help="of each chain")
    args = parser.parse_args()
    names = [n for n in (TARGETS if args.to_error else HARD) if not args.only or any(part in n for part in args.only)]
    if not args.to_error:
        sys.exit(int(table(names, args.seeds, args.gradients)))
    warnings.simplefilter("ignore")
    print(f"{'':21}  warm-up   to 0.01            ESS           of z²   step   div.")
    for name in names:
        events = 2_000 if "10,000" in name else args.events
        print(f"{name:21} {measure(TARGETS[name], args.seeds, events)}", flush=True)


if __name__ == "__main__":
    main()
