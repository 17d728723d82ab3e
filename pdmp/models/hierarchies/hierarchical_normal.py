"""The normal hierarchy of groups with known errors, and its best-known data, the eight schools."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.transforms import Log
from pdmp.native.arguments import real
from pdmp.native.classes import compiled

SCHOOLS_Y = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)  #: effects of coaching, by school
SCHOOLS_SIGMA = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)  #: their standard errors


class HierarchicalNormal(Model):
    r"""yⱼ ~ N(θⱼ, σⱼ²) with known σⱼ, θⱼ ~ N(μ, τ²), μ ~ N(0, mu_scale²), τ ~ half-Cauchy(tau_scale) [1]_.

    x = (μ, log τ, z₁, …, z_J). Centred, z = θ, which is a funnel where the data say little; not centred,
    θⱼ = μ + τ zⱼ with zⱼ ~ N(0, 1) beforehand. With s = log τ, and its Jacobian,

        U = μ²/(2 mu_scale²) + log(1 + e²ˢ/tau_scale²) - s + Σⱼ (yⱼ - θⱼ)²/(2 σⱼ²) + Σⱼ [(zⱼ - μ)² e⁻²ˢ/2 + s]

    where the last bracket is zⱼ²/2 when not centred. `constrain`, and so ``run.to_arviz()``, give μ, τ and θ.

    Parameters
    ----------
    y, sigma : array_like, shape (J,)
        Estimates of the groups and their standard errors.
    mu_scale, tau_scale : float, default 5.0
    centred : bool, default False

    Raises
    ------
    ValueError
        If shapes do not fit, or a scale or an error is not positive and finite.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 5.5.

    Examples
    --------
    >>> import pdmp
    >>> schools = pdmp.models.EightSchools()
    >>> schools.dim, list(schools.variables)
    (10, ['mu', 'tau', 'z'])
    """

    knows_constants = False

    y: np.ndarray
    precision: np.ndarray  #: (J,) 1/σⱼ²
    mu_precision: float
    tau_precision: float
    centred: bool

    def __init__(
        self, y: ArrayLike, sigma: ArrayLike, mu_scale: float = 5.0, tau_scale: float = 5.0, centred: bool = False
    ) -> None:
        self.y, self.sigma = np.array(real("y", y)), np.array(real("sigma", sigma))
        if self.y.ndim != 1 or len(self.y) == 0 or self.sigma.shape != self.y.shape:
            raise ValueError(f"`y` and `sigma` must have one shape (J,), got {self.y.shape} and {self.sigma.shape}.")
        if not np.all(np.isfinite(self.y)):
            raise ValueError("`y` must be finite.")
        for name, value in (("sigma", self.sigma), ("mu_scale", mu_scale), ("tau_scale", tau_scale)):
            if not np.all(np.isfinite(value)) or not np.all(np.asarray(value) > 0.0):
                raise ValueError(f"`{name}` must be positive and finite, got {value}.")
        groups = len(self.y)
        self.centred = bool(centred)
        variables = {"mu": (), "tau": (), "theta" if self.centred else "z": (groups,)}
        start = np.zeros(groups + 2)
        if self.centred:
            start[0], start[1], start[2:] = self.y.mean(), math.log(tau_scale), self.y
        super().__init__(dim=groups + 2, n_data=groups, variables=variables, initial=start, transforms={"tau": Log()})
        self.precision = 1.0 / self.sigma**2
        self.mu_precision, self.tau_precision = 1.0 / float(mu_scale) ** 2, 1.0 / float(tau_scale) ** 2

    @compiled
    def _effect(self, x, i):
        """θᵢ."""
        return x[2 + i] if self.centred else x[0] + math.exp(x[1]) * x[2 + i]

    @compiled
    def term_potential(self, x, i):
        r = self.y[i] - self._effect(x, i)
        return 0.5 * self.precision[i] * (r * r)

    @compiled
    def add_term_gradient(self, x, i, out):
        pull = self.precision[i] * (self._effect(x, i) - self.y[i])
        if self.centred:
            out[2 + i] += pull
        else:
            tau = math.exp(x[1])
            out[0] += pull
            out[1] += pull * tau * x[2 + i]
            out[2 + i] += pull * tau

    @compiled
    def prior_potential(self, x):
        total = 0.5 * self.mu_precision * (x[0] * x[0]) - x[1]
        total += math.log1p(self.tau_precision * math.exp(2.0 * x[1]))
        for i in range(self.n_data):
            if self.centred:
                r = (x[2 + i] - x[0]) * math.exp(-x[1])
                total += 0.5 * (r * r) + x[1]
            else:
                total += 0.5 * (x[2 + i] * x[2 + i])
        return total

    @compiled
    def _add_group_gradient(self, x, i, out):
        """Of the prior of zᵢ."""
        if self.centred:
            precision, away = math.exp(-2.0 * x[1]), x[2 + i] - x[0]
            out[0] -= precision * away
            out[1] += 1.0 - precision * (away * away)
            out[2 + i] += precision * away
        else:
            out[2 + i] += x[2 + i]

    @compiled
    def _add_top_gradient(self, x, out):
        """Of the priors of μ and τ."""
        out[0] += self.mu_precision * x[0]
        u = self.tau_precision * math.exp(2.0 * x[1])
        out[1] += 1.0 - 2.0 / (1.0 + u)

    @compiled
    def add_prior_gradient(self, x, out):
        self._add_top_gradient(x, out)
        for i in range(self.n_data):
            self._add_group_gradient(x, i, out)

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of datum f, of the prior of z of group f - J, or, at the end, of the priors of μ and τ."""
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        elif f < 2 * self.n_data:
            self._add_group_gradient(x, f - self.n_data, out)
        else:
            self._add_top_gradient(x, out)

    def factors(self) -> list | tuple | None:
        """A factor for each datum, one for the prior of each group's z, and one for the priors of μ and τ."""
        alone = [[2 + i] for i in range(self.n_data)]
        joint = [[0, 1, 2 + i] for i in range(self.n_data)]
        return [*alone, *joint, [0, 1]] if self.centred else [*joint, *alone, [0, 1]]

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """μ, τ and θ of draws of x (..., dim): arrays (...), (...) and (..., J); also z when not centred."""
        natural = super().constrain(draws)
        if not self.centred:
            natural["theta"] = natural["mu"][..., None] + natural["tau"][..., None] * natural["z"]
        return natural

    def hessian(self, x: ArrayLike) -> np.ndarray:
        x = self.check(x)
        mu, tau, z = x[0], math.exp(x[1]), x[2:]
        h, p = np.zeros((self.dim, self.dim)), self.precision
        u = self.tau_precision * tau * tau
        h[0, 0], h[1, 1] = self.mu_precision, 4.0 * u / (1.0 + u) ** 2
        group = np.arange(2, self.dim)
        if self.centred:
            q, away = 1.0 / (tau * tau), z - mu
            h[0, 0] += len(z) * q
            h[0, 1] = h[1, 0] = 2.0 * q * away.sum()
            h[1, 1] += 2.0 * q * float(away @ away)
            h[0, 2:] = h[2:, 0] = -q
            h[1, 2:] = h[2:, 1] = -2.0 * q * away
            h[group, group] = p + q
        else:
            r = mu + tau * z - self.y
            h[0, 0] += p.sum()
            h[0, 1] = h[1, 0] = tau * float(p @ z)
            h[1, 1] += tau * float((p * z) @ (r + tau * z))
            h[0, 2:] = h[2:, 0] = tau * p
            h[1, 2:] = h[2:, 1] = tau * p * (r + tau * z)
            h[group, group] = 1.0 + tau * tau * p
        return h

    def moments(self, n: int = 2_001) -> tuple[np.ndarray, np.ndarray]:
        """Mean (dim,) and covariance (dim, dim) of x: in closed form given τ, by the trapezium rule over log τ.

        Given τ everything else is normal. The rule's `n` nodes lie where the prior of log τ, whose tails fall as
        e^-|s|, has all but 10⁻¹¹ of its mass.
        """
        groups, d = self.n_data, self.dim
        s = np.linspace(-26.0, 26.0, n) - 0.5 * math.log(self.tau_precision)
        weight, first, second = np.empty(n), np.empty((n, d)), np.empty((n, d, d))
        rest, of_priors = np.delete(np.arange(d), 1), np.append(self.mu_precision, np.ones(groups))
        for k, tau in enumerate(np.exp(s)):
            # Not centred, U = ½ wᵀQw - b·w + c of w = (μ, z); θ = effects w.
            effects = np.column_stack([np.ones(groups), tau * np.eye(groups)])
            Q = effects.T @ (self.precision[:, None] * effects) + np.diag(of_priors)
            b = effects.T @ (self.precision * self.y)
            covariance = np.linalg.inv(Q)
            mean = covariance @ b
            weight[k] = s[k] - math.log1p(self.tau_precision * tau * tau)
            weight[k] += 0.5 * b @ mean - 0.5 * np.linalg.slogdet(Q)[1]
            if self.centred:
                to_theta = np.vstack([np.eye(d - 1)[:1], effects])
                mean, covariance = to_theta @ mean, to_theta @ covariance @ to_theta.T
            first[k, rest], first[k, 1] = mean, s[k]
            second[k] = np.outer(first[k], first[k])
            second[k][np.ix_(rest, rest)] += covariance
        weight = np.exp(weight - weight.max())
        weight /= weight.sum()
        mean = weight @ first
        return mean, np.tensordot(weight, second, 1) - np.outer(mean, mean)

    def predict(self, x: ArrayLike) -> np.ndarray:
        """The groups' θ at parameters `x` (..., dim): (..., J)."""
        return self.constrain(x)["theta"]

    def log_likelihood(self, x: ArrayLike) -> np.ndarray:
        """log p(yⱼ | x) of each group at parameters `x` (..., dim): (..., J)."""
        z = (self.y - self.predict(x)) / self.sigma
        return -0.5 * z * z - np.log(self.sigma) - 0.5 * math.log(2.0 * math.pi)

    def observed_data(self) -> dict[str, np.ndarray]:
        return {"y": self.y}

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return self.log_likelihood(draws)


def EightSchools(centred: bool = False, mu_scale: float = 5.0, tau_scale: float = 5.0) -> HierarchicalNormal:
    """`HierarchicalNormal` on the eight schools of Rubin (1981), Journal of Educational Statistics 6.

    Parameters
    ----------
    centred : bool, default False
        Whether the parameters are the schools' effects themselves.
    mu_scale, tau_scale : float, default 5.0
        Of the priors, see `HierarchicalNormal`.

    Returns
    -------
    HierarchicalNormal

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.EightSchools().dim
    10
    """
    return HierarchicalNormal(SCHOOLS_Y, SCHOOLS_SIGMA, mu_scale, tau_scale, centred)
