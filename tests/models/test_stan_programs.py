"""Stan programs, compiled and evaluated by stanli."""

import importlib.util
import json
import math
import os
import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.models import EightSchools, from_stan
from pdmp.models.adapters import stan_model
from pdmp.models.transforms import Interval, Log, Ordered, Upper
from tests.checks import plain_only
from tests.models.helpers_models import compiled_both

needs_stanli = pytest.mark.skipif(
    importlib.util.find_spec("stanli") is None, reason="stanli is not installed: pip install 'pdmp[stan]'"
)
pytestmark = [pytest.mark.exact, pytest.mark.compiled, needs_stanli]
JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

SCHOOLS = """
data { int J; array[J] real y; vector[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] z; }
transformed parameters { vector[J] theta = mu + tau * z; }
model { mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ normal(0, 1); y ~ normal(theta, sigma); }
generated quantities {
  vector[J] log_lik;
  array[J] real y_rep = normal_rng(theta, sigma);
  for (j in 1:J) log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
}
"""
#: Parameters of every kind of transform, arrays in rows and matrices in columns.
KINDS = """
parameters {
  array[2] vector[3] a; matrix[2, 3] B; array[2, 3] real<lower=-1.5> c; real<upper=3> u;
  vector<lower=-1, upper=2.5>[2] p; array[2] ordered[3] o; real<lower=u> above; simplex[3] w; cov_matrix[2] S;
  real<offset=1, multiplier=2> m;
}
model { }
"""
COIN = "data { int n; int k; } parameters { real<lower=0, upper=1> p; } model { k ~ binomial(n, p); }"


def schools_data():
    model = EightSchools()
    return {"J": 8, "y": model.y, "sigma": model.sigma}


def test_density_is_that_of_the_package():
    program, own = from_stan(SCHOOLS, schools_data()), EightSchools()
    assert program.callback.compiled is JIT
    xs = np.random.default_rng(0).standard_normal((4, 10))
    gaps = [program.potential(x) - own.potential(x) for x in xs]
    assert np.allclose(gaps, gaps[0], rtol=1e-12)
    for x in xs:
        potential, gradient = compiled_both(program, x)
        assert potential == program.potential(x) and np.array_equal(gradient, program.gradient(x))
        assert np.allclose(gradient, own.gradient(x), rtol=1e-11, atol=1e-12)


@plain_only
def test_quantities_by_name():
    program, x = from_stan(SCHOOLS, schools_data()), np.random.default_rng(1).standard_normal((2, 3, 10))
    natural, own = program.constrain(x), EightSchools()
    assert list(natural) == ["mu", "tau", "z", "theta"] and program.transforms == {"tau": Log()}
    assert np.allclose(natural["theta"], own.constrain(x)["theta"], rtol=1e-13)
    expected = stats.norm.logpdf(own.y, natural["theta"], own.sigma)
    assert np.allclose(program.log_likelihoods(x)["log_lik"], expected, rtol=1e-12)
    more = from_stan(SCHOOLS, schools_data(), generated_quantities=True)
    assert list(more.constrain(x)) == ["mu", "tau", "z", "theta", "y_rep"]
    pulls = (more.constrain(np.tile(x[0, 0], (500, 1)))["y_rep"] - natural["theta"][0, 0]) / own.sigma
    assert stats.kstest(pulls.ravel(), "norm").pvalue > 1e-6


@plain_only
def test_transforms_are_recognised():
    model = from_stan(KINDS)
    assert model.transforms == {
        "c": Log(-1.5),
        "u": Upper(3.0),
        "p": Interval(-1.0, 2.5),
        "o": Ordered(),
    }
    expected = {"a": (2, 3), "B": (6,), "c": (2, 3), "u": (), "p": (2,), "o": (2, 3)}
    assert model.variables == {**expected, "above_unc": (), "w_unc": (2,), "S_unc": (3,), "m_unc": ()}
    x = np.random.default_rng(2).standard_normal((2, model.dim))
    natural, own = model.constrain(x), pdmp.Model.constrain(model, x)
    for name in ("a", "c", "u", "p", "o"):
        assert np.allclose(natural[name], own[name], rtol=1e-12)
    assert np.array_equal(natural["B"], own["B"].reshape(2, 3, 2).transpose(0, 2, 1))  # down the columns
    assert np.allclose(natural["w"].sum(axis=-1), 1.0) and np.allclose(natural["m"], 1.0 + 2.0 * own["m_unc"])
    assert np.allclose(natural["above"], natural["u"] + np.exp(own["above_unc"]))
    assert np.array_equal(natural["S"], natural["S"].transpose(0, 2, 1))
    assert pdmp.sample(pdmp.BPS(from_stan(COIN, {"n": 3, "k": 1})), events=5, seed=1).names() == ["logit(p)"]


@plain_only
def test_program_and_data_by_file(tmp_path):
    (tmp_path / "coin.stan").write_text(COIN)
    (tmp_path / "data.json").write_text('{"n": 10, "k": 7}')
    expected = from_stan(COIN, {"n": 10, "k": 7})
    x = np.array([0.3])
    share = Interval().constrain(x[0])
    assert math.isclose(expected.potential(x), -8.0 * math.log(share) - 4.0 * math.log(1.0 - share), rel_tol=1e-12)
    for data in (tmp_path / "data.json", str(tmp_path / "data.json"), '{"n": 10, "k": 7}', {"n": np.int64(10), "k": 7}):
        assert from_stan(tmp_path / "coin.stan", data).potential(x) == expected.potential(x)
    assert from_stan(str(tmp_path / "coin.stan"), {"n": 10, "k": 6}).potential(x) != expected.potential(x)
    (tmp_path / "shared.stan").write_text("real half(real x) { return 0.5 * x; }")
    (tmp_path / "main.stan").write_text(
        "functions {\n#include shared.stan\n}\nparameters { real x; } model { target += -half(x ^ 2); }"
    )
    assert from_stan(tmp_path / "main.stan").potential([3.0]) == 4.5


@plain_only
def test_data_of_python():
    program = (
        "data { int N; array[N] int b; matrix[2, 2] A; int one; } parameters { real x; } "
        "model { x ~ normal(sum(b) + one + A[1, 2], 1); }"
    )
    data = {"N": 3, "b": np.array([True, False, True]), "A": [[0.0, 5.0], [7.0, 0.0]], "one": True}
    assert from_stan(program, data).gradient([0.0])[0] == -8.0
    with pytest.raises(ValueError, match=r"`data\['A'\]` has 1 masked entries"):
        from_stan(program, {**data, "A": np.ma.masked_equal([[0.0, 5.0], [7.0, 8.0]], 5.0)})
    with pytest.raises(TypeError, match="`data` must be a dict, a path to a JSON file, or JSON, got list"):
        from_stan(program, [1])
    with pytest.raises(ValueError, match="`data` cannot be read: .*nowhere.json"):
        from_stan(program, "nowhere.json")


@plain_only
def test_errors_are_stans(tmp_path):
    message = r"`program` does not compile: Syntax error in model.stan, line 1, .*: Ill-formed declaration. Expected"
    with pytest.raises(ValueError, match=message) as caught:
        from_stan("parameters { real x }")
    assert "\n" not in str(caught.value)
    (tmp_path / "wrong.stan").write_text("parameters { real x; } model { x ~ normal(y, 1); }")
    with pytest.raises(ValueError, match='Semantic error in wrong.stan, line 1, .*: Identifier "y" not in scope'):
        from_stan(tmp_path / "wrong.stan")
    with pytest.raises(ValueError, match="`program` refuses the data: .*unknown data variable n"):
        from_stan(COIN)
    with pytest.raises(ValueError, match="`program` cannot be read: .*nowhere.stan"):
        from_stan("nowhere.stan")
    with pytest.raises(TypeError, match="`program` must be a path, or the text of a Stan program, got int"):
        from_stan(1)
    with pytest.raises(ValueError, match="has no parameters"):
        from_stan("model { }")


@plain_only
def test_missing_stanli_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stanli", None)
    with pytest.raises(ImportError, match=r"`from_stan` needs stanli for a Stan program: pip install 'pdmp\[stan\]'"):
        from_stan(COIN)


@plain_only
def test_pickled_and_told_apart(tmp_path):
    model = from_stan(COIN, {"n": 10, "k": 7})
    other = pickle.loads(pickle.dumps(model))
    assert other.potential([0.3]) == model.potential([0.3]) and other.identity() == model.identity()
    squared = COIN.replace("binomial(n, p)", "binomial(n, p ^ 2)")
    for different in (from_stan(COIN, {"n": 10, "k": 6}), from_stan(squared, {"n": 10, "k": 7})):
        assert different.identity() != model.identity()
        saved = tmp_path / "coin.npz"
        pdmp.sample(pdmp.ZigZag(model), events=30, seed=1, checkpoint=saved)
        pdmp.sample(pdmp.ZigZag(other), events=40, seed=1, checkpoint=saved)  # the same model goes on
        with pytest.raises(ValueError, match="checkpoint"):
            pdmp.sample(pdmp.ZigZag(different), events=50, seed=1, checkpoint=saved)
        saved.unlink()


@plain_only
def test_run_for_arviz():
    model = from_stan(SCHOOLS, schools_data(), generated_quantities=True)
    run = pdmp.sample(pdmp.BPS(model), events=60, chains=2, seed=3)
    data = run.to_arviz(20)
    assert data.posterior["theta"].shape == (2, 20, 8) and "log_lik" not in data.posterior
    assert data.log_likelihood["log_lik"].shape == (2, 20, 8) and data.posterior["y_rep"].shape == (2, 20, 8)
    assert run["tau"].shape == (2, 1_000) and np.all(run["tau"] > 0.0)
    rows = {row["name"]: row for row in run.summary().rows}
    assert {"log(tau)", "tau", "theta[7]", "y_rep[0]"} <= set(rows)
    assert rows["tau"]["mcse"] > 0.0 and rows["tau"]["ess"] > 0.0
    assert "log_likelihood" not in run.to_arviz(20, log_likelihood=False)


@plain_only
def test_one_call_on_a_program():
    """p ~ Beta(8, 4) has mean 2/3 and sd √(2/9 / 13); the sampler chooses itself what to do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(from_stan(COIN, json.dumps({"n": 10, "k": 7})), ess=200, seed=1, gradients=20_000)
    p = run["p"]
    assert abs(p.mean() - 2.0 / 3.0) < 0.04 and abs(p.std() / math.sqrt(2.0 / 9.0 / 13.0) - 1.0) < 0.25


def test_data_that_are_no_numbers_are_refused(tmp_path):
    """As NaN in a list, an array, a file or JSON; infinity is a bound, and text may be anything."""
    path = tmp_path / "data.json"
    path.write_text('{"n": 2, "y": [[1.0], [NaN]]}')
    for data in ({"n": 2, "y": [1.0, math.nan]}, {"y": np.array([[1.0, np.nan]])}, path, str(path), path.read_text()):
        with pytest.raises(
            ValueError, match=r"^`data\['y'\]` has NaN, which no Stan program can use: leave out what is m"
        ):
            stan_model._as_json(data)
    assert json.loads(stan_model._as_json({"y": [math.inf], "n": True, "z": "NaN"}))["n"] == 1
    assert stan_model._as_json('{"nan": [1]}') == '{"nan": [1]}' and stan_model._as_json(None) is None
