"""A regression before it is sampled: its priors, and what they expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pdmp.formulas.fit import Fit
from pdmp.formulas.predictive_checks import PredictiveCheck
from pdmp.models.priors import CORRELATION, FLAT, GAMMA, HALF_NORMAL, HALF_STUDENT_T, NORMAL, STUDENT_T
from pdmp.models.regressions.mixed import MixedRegression


def draw_prior(kind: int, numbers: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws of a coordinate whose prior has this code: of the logarithm of a positive number."""
    a, b, c = (float(number) for number in numbers)
    if kind == NORMAL:
        return a + b * rng.standard_normal(n)
    if kind == STUDENT_T:
        return b + c * rng.standard_t(a, n)
    if kind == HALF_NORMAL:
        return np.log(a * np.abs(rng.standard_normal(n)))
    if kind == HALF_STUDENT_T:
        return np.log(b * np.abs(rng.standard_t(a, n)))
    if kind == GAMMA:
        return np.log(b) + np.log(rng.gamma(a, 1.0, n))
    if kind == CORRELATION:
        return np.arctanh(2.0 * rng.beta(a, a, n) - 1.0)
    raise ValueError(f"priors of the kind {kind} have no draws.")


class PriorDraws:
    """Independent draws of the prior in place of a run, one chain, the same ones whenever they are asked for.

    Parameters
    ----------
    model : MixedRegression
        Whose coordinates are effects of groups.
    names : sequence of str
        Of the parameters, in the order of the model's priors.
    seed : int, optional
    """

    chains = 1

    def __init__(self, model: MixedRegression, names: Any, seed: int | None) -> None:
        self.model, self.names, self.dim = model, list(names), model.dim
        self.seed = np.random.SeedSequence(seed).entropy

    def draws(self, n: int) -> np.ndarray:
        """n draws, (1, n, dim)."""
        model, rng = self.model, np.random.default_rng(self.seed)
        if model.inclusion is not None:
            raise ValueError("draws of the prior are not made for a regression with `select`.")
        x = rng.standard_normal((n, model.dim))  # of effects, which are multiplied by their standard deviation
        for q, kind in enumerate(model.kinds):
            if kind == FLAT:
                raise ValueError(f"the prior of {self.names[q]!r} is Flat: it has no draws; give a proper one.")
            x[:, model.place(q)] = draw_prior(int(kind), model.numbers[q], n, rng)
        for k in np.flatnonzero(model.centred):
            x[:, model.first[k] : model.first[k + 1]] *= np.exp(x[:, model.n_fixed + k, None])
        return x[None]

    def diagnostic_draws(self) -> np.ndarray:
        """1,000 draws."""
        return self.draws(1_000)

    def constrain(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Natural parameters."""
        return self.model.constrain(draws)


class Prepared(Fit):
    """A regression that was not sampled, what ``pdmp.regression(..., sample=False)`` returns; it prints its priors.

    Its draws are those of the prior, so that `predict`, `conditional_effects`, `contrasts`, `slopes`, `to_dataframe`
    and `pp_check` say what the priors expect.

    Parameters
    ----------
    fit : Fit
        Whose run is None.
    seed : int, optional
        Of the draws of the prior.
    sampled : callable
        () -> the fit, sampled.

    Examples
    --------
    >>> prepared = pdmp.regression("visits ~ age", table, "poisson", sample=False)  # doctest: +SKIP
    >>> prepared  # doctest: +SKIP
    visits ~ age, poisson with the log link, 2,000 rows, not sampled
    Intercept  Normal(-0.4, 2.5), at the means of the other columns
    age        Normal(0, 0.21)
    >>> prepared.prior_predictive().plot()  # doctest: +SKIP
    >>> fit = prepared.sample()  # doctest: +SKIP
    """

    def __init__(self, fit: Fit, seed: int | None, sampled: Callable[[], Fit]) -> None:
        model = fit.model.as_effects()
        if model is None:
            raise ValueError("`sample` = False is not for effects of groups in data that are read in batches.")
        draws: Any = PriorDraws(model, fit.priors, seed)
        roles: Mapping[str, str | None] = fit.columns
        super().__init__(fit.formula, fit.family, model, draws, fit.design, fit.priors, fit.notes, roles)
        self._sampled = sampled

    def __repr__(self) -> str:
        lines = [f"{self.formula}, {self.family.described}, {self.n_rows:,} rows, not sampled"]
        width = max(map(len, self.priors))
        for j, (name, prior) in enumerate(self.priors.items()):
            lines.append(
                f"{name:{width}}  {prior}" + ", at the means of the other columns" * (j == self.model.intercept)
            )
        return "\n".join([*lines, *(f"{note}." for note in self.notes)])

    def sample(self) -> Fit:
        """Sample it, with the options that `pdmp.regression` was given."""
        return self._sampled()

    def prior_predictive(
        self,
        kind: str | None = None,
        *,
        by: str | None = None,
        statistic: str | Callable[[np.ndarray], float] = "mean",
        probability: float = 0.95,
        draws: int = 200,
        seed: int | None = None,
    ) -> PredictiveCheck:
        """Responses that the priors expect, beside those observed.

        Parameters
        ----------
        kind, by, statistic, probability, draws, seed
            As of `Fit.pp_check`.

        Returns
        -------
        PredictiveCheck
            ``.replicated`` has the draws, (draws, n).

        Raises
        ------
        ValueError
            For a flat prior, which has no draws, and with `select`.
        """
        return self.pp_check(kind, by=by, statistic=statistic, probability=probability, draws=draws, seed=seed)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ValueError("the regression was not sampled: call `.sample()`, which returns the fit.")

    summary = hypothesis = inclusion = loo = compare = to_arviz = __getitem__ = _refuse
