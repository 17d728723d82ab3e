"""Simulation-based calibration of `pdmp.sample` from one call."""

import importlib.util
import warnings

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp import errors
from pdmp.validation import calibrate, calibration, simulation
from pdmp.validation.simulation import Calibration
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, plain_only]
NOISE = np.array([0.5, 2.0])


class NormalMeans(pdmp.Model):
    """y_j ~ N(x_j, noise_j), x_j ~ N(0, prior_scale); a model of one's own that simulates its data."""

    y: np.ndarray
    prior_scale: float

    def __init__(self, y, prior_scale=1.0):
        super().__init__(dim=2)
        self.y, self.prior_scale = np.array(y, float), float(prior_scale)

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            noise = 0.5 if j == 0 else 2.0
            total += 0.5 * ((self.y[j] - x[j]) / noise) ** 2 + 0.5 * (x[j] / self.prior_scale) ** 2
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            noise = 0.5 if j == 0 else 2.0
            out[j] += (x[j] - self.y[j]) / noise**2 + x[j] / self.prior_scale**2

    def simulate(self, x, rng):
        """The model of data drawn at x."""
        return NormalMeans(x + NOISE * rng.standard_normal(2), self.prior_scale)


@pytest.fixture
def exact_posterior(monkeypatch):
    """`sample` in closed form, and what it was asked: as many independent draws as there are to be."""
    asked = []

    class Run:
        def __init__(self, model, rng, options):
            precision = 1.0 / NOISE**2 + 1.0 / model.prior_scale**2
            self.rng, self.mean, self.sd = rng, model.y / NOISE**2 / precision, precision**-0.5
            self.chains = options["chains"]

        def draws(self, n):
            return self.mean + self.sd * self.rng.standard_normal((self.chains, n, 2))

        def names(self):
            return ["x[0]", "x[1]"]

    def sample(model, **options):
        asked.append(options)
        return Run(model, np.random.default_rng(options["seed"]), options)

    monkeypatch.setattr("pdmp.validation.simulation.sample", sample)
    return asked


def test_ranks_of_exact_draws(exact_posterior):
    found = calibrate(NormalMeans([0.0, 0.0]), draw, replicates=400, seed=1)
    assert found.ranks.shape == (400, 2) and found.draws == 20 and found.names == ("x[0]", "x[1]")
    assert found.p > 1e-3 and 0 <= found.ranks.min() and found.ranks.max() == 20
    assert len(exact_posterior) == 400 and len({o["seed"] for o in exact_posterior}) == 400
    assert {k: v for k, v in exact_posterior[0].items() if k != "seed"} == {
        "chains": 4,
        "ess": 200,
        "gradients": 20_000,
    }
    again = calibrate(NormalMeans([0.0, 0.0]), draw, replicates=400, seed=1)
    assert np.array_equal(again.ranks, found.ranks)
    other = calibrate(NormalMeans([0.0, 0.0]), draw, replicates=400, seed=2, ess=50, chains=2, gradients=10)
    assert not np.array_equal(other.ranks, found.ranks) and exact_posterior[-1]["chains"] == 2
    assert exact_posterior[-1]["ess"] == 50 and exact_posterior[-1]["gradients"] == 10


def draw(rng):
    return rng.standard_normal(2)


def test_what_a_hundred_replicates_show(exact_posterior):
    """A prior that is too wide by 2.5, which shows where the datum says little; each of ten times with p < 0.01."""
    for seed in range(10):
        found = calibrate(NormalMeans([0.0, 0.0], prior_scale=0.4), draw, seed=seed)
        assert found.p < 0.01 and np.argmin(found.p_values()) == 1
        assert "smallest for x[1]: " in str(found)


def test_priors_and_functions_of_data(exact_posterior):
    law = stats.multivariate_normal([0.0, 0.0])
    by_law = calibrate(NormalMeans([0.0, 0.0]), law, replicates=300, seed=3)
    by_data = calibrate(NormalMeans, draw, lambda x, rng: x + NOISE * rng.standard_normal(2), replicates=300, seed=3)
    assert by_law.p > 1e-3 and by_data.p > 1e-3
    shifted = calibrate(NormalMeans, lambda rng: draw(rng) + 1.0, lambda x, rng: NOISE * draw(rng) + x, seed=3)
    assert shifted.p < 1e-4


def test_the_sampler_itself():
    """Twelve replicates of the whole: the ranks are what its draws say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calibrate(NormalMeans([0.0, 0.0]), draw, replicates=12, draws=8, chains=2, ess=40, seed=5)
    assert found.ranks.shape == (12, 2) and found.p > 1e-4
    child = np.random.SeedSequence(5).spawn(12)[3]
    rng = np.random.default_rng(child)
    x = draw(rng)
    posterior = NormalMeans([0.0, 0.0]).simulate(x, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(posterior, chains=2, ess=40, gradients=20_000, seed=int(rng.integers(2**62)))
    assert found.ranks[3].tolist() == (run.draws(4).reshape(8, 2) < x).sum(axis=0).tolist()


def test_warnings_are_said_once(exact_posterior, monkeypatch):
    quiet, warned = pdmp.validation.simulation.sample, []

    def loud(model, **options):
        if model.y[0] > 0.0:
            warned.append(model)
            errors.warn(f"it did not mix: {len(warned)}")
            errors.warn("nor was it long")
        return quiet(model, **options)

    monkeypatch.setattr("pdmp.validation.simulation.sample", loud)
    with pytest.warns(UserWarning, match=r"^\d+ of 20 runs warned, the first: it did not mix: 1$") as said:
        calibrate(NormalMeans([0.0, 0.0]), draw, replicates=20, seed=1)
    assert len(said) == 1 and str(said[0].message).startswith(f"{len(warned)} of 20") and 0 < len(warned) < 20


def test_warnings_are_counted_whatever_the_filters_are(exact_posterior, monkeypatch):
    quiet, said = simulation.sample, []

    def loud(model, **options):
        errors.warn("it did not mix")
        return quiet(model, **options)

    monkeypatch.setattr(simulation, "sample", loud)
    monkeypatch.setattr(simulation, "warn", said.append)
    for chosen in ("error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(chosen, UserWarning)
            calibrate(NormalMeans([0.0, 0.0]), draw, replicates=3, seed=1)
    assert said == ["3 of 3 runs warned, the first: it did not mix"] * 2


@pytest.mark.parametrize("call", [calibrate, calibration])
def test_draws_that_are_the_parameter_count_at_random(call, monkeypatch):
    """As coefficients of 0 do: of eight draws two are below it and three are it, so that its rank is 2, 3, 4 or 5."""
    asked = []

    class Run:
        def draws(self, n):
            return np.array([[-2.0, 9.0], [-1.0, 9.0], [0.0, 9.0], [0.0, 9.0], [0.0, -9.0], *[[4.0, -9.0]] * 3])[None]

        def names(self):
            return ["a", "b"]

    monkeypatch.setattr("pdmp.validation.simulation.sample", lambda process, **options: asked.append(options) or Run())
    monkeypatch.setattr("pdmp.validation.simulation._effective", lambda run: 8.0)
    own = {"chains": 1, "ess": 50, "gradients": 70} if call is calibrate else {"events": 30, "warmup": 0.3}
    found = call(
        lambda y: pdmp.models.Gaussian(y, np.ones(2)),
        lambda rng: np.array([0.0, rng.standard_normal()]),
        lambda x, rng: x,
        **{"replicates": 400, "draws": 8, "seed": 5, **own},
    )
    counts = np.bincount(found.ranks[:, 0], minlength=9)
    assert counts[2:6].sum() == 400 and stats.chisquare(counts[2:6]).pvalue > 1e-4
    assert np.all(found.ranks[:, 1] == 4) and found.draws == 8
    assert all({k: v for k, v in one.items() if k != "seed"} == own for one in asked)
    assert len({one["seed"] for one in asked}) == 400


def test_the_fewest_effective_draws_of_a_run_and_the_median_of_all(monkeypatch):
    x = np.random.default_rng(0).standard_normal((1, 90, 3)) * [1.0, 1.0, 0.0]
    x[..., 1] = np.cumsum(x[..., 1])
    monkeypatch.setattr("pdmp.validation.simulation.diagnostic_draws", lambda run: x)
    with pytest.warns(UserWarning, match="constant"):
        each = pdmp.diagnostics.ess(x)
    assert simulation._effective(None) == each[1] < 30.0 < each[0] and np.isnan(each[2])
    with monkeypatch.context() as patched:  # where no coordinate moved
        patched.setattr(simulation, "diagnostic_draws", lambda run: 0.0 * x + 1.0)
        assert simulation._effective(None) == 0.0

    def asked(draws):
        effective = iter([500.0, 2.0, 30.0, 1.0, 40.0])
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patch.setattr(simulation, "_effective", lambda run: next(effective))
            calibration(
                lambda y: pdmp.ZigZag(pdmp.models.Gaussian([y], [1.0])),
                lambda rng: rng.standard_normal(1),
                lambda x, rng: float(x[0]),
                replicates=5,
                draws=draws,
                events=10,
            )
        return [str(one.message) for one in said if "effective draws or fewer" in str(one.message)]

    assert asked(30) == [] and asked(31)[0].startswith("half of the runs have 30 effective draws or fewer, and 31 ")


def test_bad_input():
    own = NormalMeans([0.0, 0.0])
    with pytest.raises(
        TypeError, match="`model` must have a method simulate.*Banana has none: give a function data ->"
    ):
        calibrate(pdmp.models.Banana(), draw)
    with pytest.raises(TypeError, match="`simulate` is for a `model` that is a function"):
        calibrate(own, draw, lambda x, rng: x)
    with pytest.raises(TypeError, match="`prior` must be a function rng -> x or a distribution of .*, got None"):
        calibrate(own)
    with pytest.raises(
        TypeError, match="`model` must be a Model, or a function data -> model together with `simulate`"
    ):
        calibrate(NormalMeans, draw)
    with pytest.raises(TypeError, match="`model` must give a Model of the simulated data, got float"):
        calibrate(lambda y: 1.0, draw, lambda x, rng: x)
    with pytest.raises(ValueError, match="`draws` must be a multiple of `chains`, got 10 and 4"):
        calibrate(own, draw, draws=10)
    with pytest.raises(ValueError, match="`replicates` must be a whole number, at least 2"):
        calibrate(own, draw, replicates=1)
    with pytest.raises(ValueError, match="`prior` gave a point of dimension 3, the model has 2"):
        calibrate(NormalMeans, lambda rng: np.zeros(3), lambda x, rng: x[:2], replicates=2, chains=1, ess=10)
    assert "smallest" not in str(Calibration(np.zeros((4, 1), int), 9))


PRIORS = pytest.mark.parametrize(
    ("prior", "says"),
    [
        (lambda rng: np.array([rng.normal(), np.nan]), r"gave a point that is not finite: \[.* nan\]"),
        (lambda rng: np.array([np.inf, rng.normal()]), r"gave a point that is not finite: \[ *inf"),
        (lambda rng: np.random.default_rng(0).normal(size=2), r"gave \[.*\] in two replicates, the same number"),
        (lambda rng: np.array([rng.normal(), 0.3]), r"gave \[.*\] in two replicates, the same number"),
    ],
)


@PRIORS
def test_priors_that_are_none(exact_posterior, prior, says):
    """Ranks of one and the same point, or of none, would say nothing of the sampler, whatever their p value."""
    with pytest.raises(ValueError, match=f"`prior` {says}"):
        calibrate(NormalMeans, prior, lambda x, rng: x, replicates=3)


@PRIORS
def test_priors_of_a_process_that_are_none(prior, says):
    with pytest.raises(ValueError, match=f"`prior_draw` {says}"):
        calibration(
            lambda y: pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])), prior, lambda x, rng: x, events=50
        )


def test_ranks_of_runs_that_are_too_short_are_said():
    def ranks(**budget):
        return calibration(
            lambda y: pdmp.ZigZag(pdmp.models.Gaussian([0.5 * y], [2.0])),
            lambda rng: rng.standard_normal(1),
            lambda x, rng: x[0] + rng.standard_normal(),
            replicates=5,
            draws=4,
            seed=1,
            **budget,
        )

    with pytest.warns(UserWarning, match="half of the runs have .* effective draws or fewer, and 4 draws were taken"):
        ranks(events=3)
    assert ranks(events=100).ranks.shape == (5, 1)


@pytest.mark.parametrize(("bins", "says"), [(1, "at least 2"), (6, "at most 5, the number of ranks, got 6")])
def test_bins_of_which_no_p_value_can_be_told(bins, says):
    with pytest.raises(ValueError, match=f"`bins` must be .*{says}"):
        Calibration(np.arange(20)[:, None] % 5, 4).p_values(bins)


# -- PyMC ---------------------------------------------------------------------------------------------------------


def coin(pymc):
    with pymc.Model() as model:
        p = pymc.Beta("p", 1.0, 1.0)
        pymc.Deterministic("odds", p / (1.0 - p))
        pymc.Binomial("heads", 10, p, observed=7)
    return model


@pytest.mark.skipif(importlib.util.find_spec("pymc") is None, reason="pymc is not installed: pip install 'pdmp[pymc]'")
def test_a_pymc_model_holds_its_prior(monkeypatch):
    import pymc

    posteriors = []

    class Run:
        """Draws of the posterior Beta(1 + heads, 11 - heads)."""

        def __init__(self, model, seed):
            heads = int(model.rvs_to_values[model["heads"]].eval())
            posteriors.append(heads)
            self.p = np.random.default_rng(seed).beta(1 + heads, 11 - heads, (4, 5, 1))

        def draws(self, n):
            return self.p

        def constrain(self, draws):
            return {"p": draws[..., 0], "odds": draws[..., 0] / (1.0 - draws[..., 0])}

    monkeypatch.setattr(
        "pdmp.validation.simulation.sample", lambda model, chains, ess, gradients, seed: Run(model, seed)
    )
    found = calibrate(coin(pymc), replicates=300, seed=1)
    assert found.ranks.shape == (300, 1) and found.names == ("p",) and found.p > 1e-3
    assert np.bincount(posteriors, minlength=11).min() > 5  # heads are uniform on 0 … 10 beforehand
    with pytest.raises(TypeError, match="`prior` and `simulate` are those of the PyMC model"):
        calibrate(coin(pymc), draw)
    with coin(pymc) as model:
        pymc.Potential("bonus", -(model["p"] ** 2))
    with pytest.raises(ValueError, match=r"`model` has Potentials \(bonus\), from which nothing can be drawn"):
        calibrate(model)
    with pymc.Model() as empty:
        pymc.Normal("x")
    with pytest.raises(ValueError, match="`model` has no observed variables to simulate"):
        calibrate(empty)
