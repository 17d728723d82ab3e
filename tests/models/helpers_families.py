"""What `test_families.py` and other test modules share."""

import numpy as np
from scipy import special, stats

exp, expit = np.exp, special.expit


def of_category(law):
    def density(y, h, g):
        return np.where(y == 0, law.logcdf(h), np.where(y == 3, law.logsf(h), np.log(law.cdf(h) - law.cdf(h - g))))

    return density


def by_steps(y, z, *cuts):
    """Continuation: the chance to stop at each category, if it was reached."""
    stop = np.stack([expit(cut - z) for cut in np.broadcast_arrays(*cuts)] + [np.ones_like(z)])
    reached = np.cumprod(np.vstack([np.ones((1, len(z))), 1.0 - stop[:-1]]), axis=0)
    return np.log((stop * reached)[y.astype(int), np.arange(len(z))])


def adjacent(y, z, *cuts):
    """log p(k + 1) / p(k) = z - cut."""
    odds = np.cumsum(np.stack([0.0 * z, *(z - cut for cut in cuts)]), axis=0)
    return special.log_softmax(odds, axis=0)[y.astype(int), np.arange(len(z))]


def inflated(law, y, w):
    return np.where(y == 0, np.log(expit(w) + expit(-w) * law.pmf(0)), law.logpmf(y) - np.logaddexp(0, w))


def hurdle(law, y, w):
    return np.where(y == 0, -np.logaddexp(0, -w), law.logpmf(y) - np.logaddexp(0, w) - np.log(law.sf(0)))


def beside(density, y, w):
    """Of numbers above 0 by their log density, and 0."""
    return np.where(y == 0, -np.logaddexp(0, -w), density - np.logaddexp(0, w))


def nb(z, a):
    return stats.nbinom(exp(a), exp(a) / (exp(a) + exp(z)))


def mixed(a, b, w):
    return np.logaddexp(a - np.logaddexp(0, -w), b - np.logaddexp(0, w))


#: log p by SciPy, of y, the functionals and further data.
ORACLES = {
    "gaussian": lambda y, z, a: stats.norm.logpdf(y, z, exp(a)),
    "student_t": lambda y, z, a, b: stats.t.logpdf(y, exp(b), z, exp(a)),
    "bernoulli": lambda y, z: stats.bernoulli.logpmf(y, expit(z)),
    "probit": lambda y, z: stats.bernoulli.logpmf(y, special.ndtr(z)),
    "item_response": lambda y, z, a: stats.bernoulli.logpmf(y, expit(exp(a) * z)),
    "poisson": lambda y, z: stats.poisson.logpmf(y, exp(z)),
    "negative_binomial": lambda y, z, a: nb(z, a).logpmf(y),
    "zero_inflated_poisson": lambda y, z, w: inflated(stats.poisson(exp(z)), y, w),
    "zero_inflated_negative_binomial": lambda y, z, a, w: inflated(nb(z, a), y, w),
    "hurdle_poisson": lambda y, z, w: hurdle(stats.poisson(exp(z)), y, w),
    "hurdle_negative_binomial": lambda y, z, a, w: hurdle(nb(z, a), y, w),
    "binomial": lambda y, z, n: stats.binom.logpmf(y, n, expit(z)),
    "zero_inflated_binomial": lambda y, z, w, n: inflated(stats.binom(n, expit(z)), y, w),
    "hurdle_gamma": lambda y, z, a, w: beside(stats.gamma.logpdf(y, exp(a), scale=exp(z - a)), y, w),
    "hurdle_lognormal": lambda y, z, a, w: beside(stats.lognorm.logpdf(y, exp(a), scale=exp(z)), y, w),
    "zero_inflated_beta": lambda y, z, a, w: beside(stats.beta.logpdf(y, exp(a) * expit(z), exp(a) * expit(-z)), y, w),
    "beta_binomial": lambda y, z, a, n: stats.betabinom.logpmf(y, n, exp(a) * expit(z), exp(a) * expit(-z)),
    "gamma": lambda y, z, a: stats.gamma.logpdf(y, exp(a), scale=exp(z - a)),
    "inverse_gaussian": lambda y, z, a: stats.invgauss.logpdf(y, exp(z - a), scale=exp(a)),
    "beta": lambda y, z, a: stats.beta.logpdf(y, exp(a) * expit(z), exp(a) * expit(-z)),
    "skew_normal": lambda y, z, a, b: stats.skewnorm.logpdf(y, b, z, exp(a)),
    "exgaussian": lambda y, z, a, b: stats.exponnorm.logpdf(y, exp(b - a), z - exp(b), exp(a)),
    "geometric": lambda y, z: stats.geom.logpmf(y + 1, expit(-z)),
    "von_mises": lambda y, z, a: stats.vonmises.logpdf(y, exp(a), 2.0 * np.arctan(z)),
    "weibull": lambda y, z, a: stats.weibull_min.logpdf(y, exp(a), scale=exp(z)),
    "exponential": lambda y, z: stats.expon.logpdf(y, scale=exp(z)),
    "lognormal": lambda y, z, a: stats.lognorm.logpdf(y, exp(a), scale=exp(z)),
    "cumulative": of_category(stats.logistic),
    "cumulative_probit": of_category(stats.norm),
    "sratio": by_steps,
    "acat": adjacent,
    "mixture_gaussian": lambda y, m, s, n, t, w: mixed(
        stats.norm.logpdf(y, m, exp(s)), stats.norm.logpdf(y, n, exp(t)), w
    ),
    "mixture_poisson": lambda y, a, b, w: mixed(stats.poisson.logpmf(y, exp(a)), stats.poisson.logpmf(y, exp(b)), w),
}
CENSORED = {"weibull": stats.weibull_min, "lognormal": stats.lognorm, "exponential": stats.expon}


def censored_density(name, y, eta, censored, upper):
    """log p by SciPy of times that are seen, or censored: right 1, left -1, or 2 between y and `upper`."""
    law = CENSORED[name](*exp(eta[1:]), scale=exp(eta[0]))
    between = np.maximum(law.cdf(upper) - law.cdf(y), law.sf(y) - law.sf(upper))
    by_kind = [law.logpdf(y), law.logsf(y), np.log(between), law.logcdf(y)]
    return np.choose(censored.astype(int) % 4, by_kind)
