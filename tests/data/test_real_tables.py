"""Tables as packages carry them, written by pandas, go through the command in one call each, and what was done is said.

Those of scikit-learn and statsmodels are the real ones. Those of seaborn are not in its wheel: here are tables with the
same columns, kinds of cells and shares of missing values.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import warnings

import numpy as np
import pytest

from pdmp import cli
from tests.registry import installed  # noqa: F401

pandas = pytest.importorskip("pandas")
pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("installed")]

MOST_LEVELS = 20


def missing(values, share, rng):
    return np.where(rng.random(len(values)) < share, None, values)


def titanic(rng, n=300):
    age = rng.uniform(0.4, 80.0, n).round(1)
    sex, where = rng.choice(["male", "female"], n), rng.integers(0, 3, n)
    alive = rng.random(n) < np.where(sex == "male", 0.2, 0.7)
    return {
        "survived": alive.astype(int),
        "pclass": where + 1,
        "sex": sex,
        "age": missing(age, 0.2, rng),
        "sibsp": rng.integers(0, 4, n),
        "fare": rng.exponential(30.0, n).round(4),
        "embarked": missing(rng.choice(["S", "C", "Q"], n), 0.01, rng),
        "class": np.array(["First", "Second", "Third"])[where],
        "who": np.where(age < 16, "child", np.where(sex == "male", "man", "woman")),
        "adult_male": (age >= 16) & (sex == "male"),
        "deck": missing(rng.choice(list("ABCDEFG"), n), 0.77, rng),
        "alive": np.where(alive, "yes", "no"),
        "alone": rng.random(n) < 0.6,
    }


def penguins(rng, n=200):
    species = rng.integers(0, 3, n)
    return {
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[species],
        "island": rng.choice(["Torgersen", "Biscoe", "Dream"], n),
        "bill_length_mm": missing((40.0 + 5.0 * species + rng.standard_normal(n)).round(1), 0.01, rng),
        "body_mass_g": missing((3700 + 700 * (species == 2) + 300 * rng.standard_normal(n)).round(), 0.01, rng),
        "sex": missing(rng.choice(["Male", "Female"], n), 0.03, rng),
    }


def exercise(rng, n=90):
    return {
        "Unnamed: 0": np.arange(n),
        "id": np.arange(n) // 3 + 1,
        "diet": np.where(np.arange(n) % 30 < 15, "low fat", "no fat"),
        "pulse": rng.integers(80, 150, n),
        "time": np.array(["1 min", "15 min", "30 min"])[np.arange(n) % 3],
        "kind": rng.choice(["rest", "walking", "running"], n),
    }


SEABORN = {
    "titanic": (titanic, "--target survived --drop deck --drop alive"),
    "penguins": (penguins, "--target species --positive Gentoo"),
    "exercise": (exercise, "--target diet --index 'Unnamed: 0'"),
}
SKLEARN = ["breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine"]
try:
    import statsmodels.datasets

    STATSMODELS = [m.name for m in pkgutil.iter_modules(statsmodels.datasets.__path__) if m.ispkg and m.name != "tests"]
except ImportError:
    STATSMODELS = []


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    """Writes a table and runs ``pdmp sample`` on it; returns what it printed."""

    def run(frame, options, index):
        frame.to_csv(tmp_path / "table.csv", index=index)
        call = f"sample BPS {tmp_path / 'table.csv'} {options} --one-hot --drop-missing --drop-constant"
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            warnings.simplefilter("ignore")  # so few events reach nothing
            cli.main(shlex.split(f"{call} --gradients 5 --chains 1"))
        said = capsys.readouterr()
        assert stop.value.code == 0, said.err
        return said.out

    return run


def options_for(frame):
    """A target with two values or else a number, divided at its median; text of many values is left out."""
    levels = {name: frame[name].nunique() for name in frame}
    two = [name for name in frame if levels[name] == 2 and frame[name].value_counts().min() >= 8]
    numbers = [name for name in frame if frame[name].dtype.kind in "fiu"]
    text = [name for name in frame if name not in numbers and levels[name] > MOST_LEVELS]
    target = (two or numbers)[-1]
    index = [f"--index '{frame.index.name}'"] if frame.index.name else []
    options = [f"--target '{target}'", *index, *(f"--drop '{name}'" for name in text if name != target)]
    return " ".join(options + ([] if two else [f"--above {float(frame[target].median())!r}"]))


@pytest.mark.parametrize("name", SEABORN)
def test_tables_as_seaborn_has_them(name, ran):
    make, options = SEABORN[name]
    frame = pandas.DataFrame(make(np.random.default_rng(3)))
    out = ran(frame, options, index=name != "exercise")
    assert ("as the index of the rows" in out) and "Bayesian logistic regression: N = " in out
    rows = len(frame.drop(columns=["deck"] if name == "titanic" else []).dropna())
    if rows < len(frame):
        assert f"left out: {len(frame) - rows} of {len(frame)} rows, with missing values in " in out
    if name == "titanic":
        assert "coded: columns 'adult_male', 'alone', true as 1 and false as 0" in out
        assert "encoded: 'who', 3 values, as 2 columns of zeros and ones" in out
    if name == "penguins":
        gentoo = int((frame.dropna()["species"] == "Gentoo").sum())
        assert f"label 1 of 'species': Gentoo, {gentoo} of {rows} rows" in out


@pytest.mark.slow
@pytest.mark.parametrize("name", SKLEARN)
def test_tables_of_scikit_learn(name, ran):
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    frame = frame.iloc[:300, -20:]  # of digits the lower lines alone
    assert "priors N(0, 1²)" in ran(frame, options_for(frame), index=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATSMODELS)
def test_tables_of_statsmodels(name, ran):
    source = importlib.import_module(f"statsmodels.datasets.{name}")
    try:
        frame = source.load_pandas().data
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"statsmodels does not load it here: {type(error).__name__}")
    frame = frame.iloc[:300]
    if len(frame.columns) < 2 or len(frame.dropna()) < 12:
        pytest.skip("no column beside the target, or too few rows")
    assert "priors N(0, 1²)" in ran(frame, options_for(frame), index=name != "cancer")
