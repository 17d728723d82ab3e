"""A regression before it is sampled: its priors, and what they expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pdmp.engine.export import NUMBERS
from pdmp.formulas import predictive_checks
from pdmp.formulas.fit import Fit
from pdmp.formulas.general import FamilyFit
from pdmp.models.priors import CORRELATION, FLAT, GAMMA, HALF_NORMAL, HALF_STUDENT_T, NORMAL, STUDENT_T
from pdmp.native.arguments import count


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
    """Independent draws of the prior in place of a run, one chain, the same ones whenever they are asked for."""

    chains = 1

    def __init__(self, fit: Fit, seed: int | None) -> None:
        self.fit, self.dim = fit, fit.model.dim
        self.seed = np.random.SeedSequence(seed).entropy

    def natural(self, n: int) -> dict[str, np.ndarray]:
        """Natural parameters, n draws of each, in the units of the data."""
        rng, values = np.random.default_rng(self.seed), {}
        if getattr(self.fit.model, "inclusion", None) is not None:
            raise ValueError("draws of the prior are not made for a regression with `select`.")
        if isinstance(self.fit, FamilyFit) and self.fit.coding.imputed:
            raise ValueError("draws of the prior are not made for a regression with imputed columns.")
        for name, prior in self.fit.laws.items():
            kind, *numbers = prior.coded()
            if kind == FLAT:
                raise ValueError(f"the prior of {name!r} is Flat: it has no draws; give a proper one.")
            drawn = draw_prior(kind, np.array(numbers), n, rng)
            values[name] = np.exp(drawn) if prior.positive else drawn
        natural = self.fit.from_priors(values)
        sizes = {prefix + g.name: len(g.levels) for prefix, g in self.fit.group_columns}
        standard = {name: rng.standard_normal((n, size)) for name, size in sizes.items()}
        return natural | self.fit.effects_of_law(natural, standard)

    def draws(self, n: int) -> np.ndarray:
        """n draws of coordinates, (1, n, dim)."""
        return self.fit.unconstrained(self.natural(n))[None]

    def diagnostic_draws(self) -> np.ndarray:
        """1,000 draws."""
        return self.draws(1_000)

    def constrain(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Natural parameters."""
        return self.fit.model.constrain(draws)


class Prepared(Fit):
    """A regression that was not sampled, what ``pdmp.regression(..., sample=False)`` returns; it prints its priors.

    Its draws are those of the prior, so that `predict`, `conditional_effects`, `contrasts`, `slopes`, `to_dataframe`
    and `pp_check`, which `prior_predictive` is, say what the priors expect. A flat prior has no draws, and `select`
    leaves none either.

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
        self.__dict__.update(fit.__dict__)
        # That of a sum of terms without coordinates of its own lacks the laws of effects.
        self.model = fit.model if isinstance(self, FamilyFit) else fit.model.as_effects()
        if self.model is None:
            raise ValueError("`sample` = False is not for effects of groups in data that are read in batches.")
        draws: Any = PriorDraws(self, seed)
        self.run, self._sampled = draws, sampled

    def __repr__(self) -> str:
        lines = [f"{self.formula}, {self.family.described}, {self.n_rows:,} rows, not sampled"]
        named = [(name, self.prior_name(name), prior) for name, prior in self.priors.items()]
        width = max(len(called) for _, called, _ in named)
        for name, called, prior in named:
            at_means = name in self.intercepts or name.startswith("cut[")
            lines.append(f"{called:{width}}  {prior}" + ", at the means of the other columns" * at_means)
        return "\n".join([*lines, *(f"{note}." for note in self.notes)])

    def sample(self) -> Fit:
        """Sample it, with the options that `pdmp.regression` was given."""
        return self._sampled()

    prior_predictive = predictive_checks.pp_check  #: of responses that the priors expect

    def to_arviz(self, n: int | None = None, seed: int | None = None) -> Any:
        """Draws of the prior for ArviZ: parameters, "prior", responses, "prior_predictive", and "observed_data".

        ``data.extend(prepared.to_arviz())`` adds them to those of the fit.

        Parameters
        ----------
        n : int, optional
            Draws, 500 by default.
        seed : int, optional
            Of the noise of responses.
        """
        import arviz

        n = count("n", 500 if n is None else n)
        x = self.run.draws(n)
        groups: dict[str, Any] = {"prior": dict(self.run.constrain(x))}
        if n * self.n_rows <= NUMBERS and "censored" not in self.beside:
            y = self.predicted(x[0], None, "response", "error", np.random.default_rng(seed))
            groups["prior_predictive"] = {self.design.response: y[None]}
        groups["observed_data"] = {self.design.response: np.asarray(self.observed, dtype=float)}
        return arviz.from_dict(groups) if int(arviz.__version__.split(".")[0]) >= 1 else arviz.from_dict(**groups)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ValueError("the regression was not sampled: call `.sample()`, which returns the fit.")

    summary = hypothesis = inclusion = loo = compare = update = __getitem__ = _refuse
    log_evidence = property(_refuse)


class PreparedFamily(Prepared, FamilyFit):
    """The same of a family whose model is a sum of terms."""
