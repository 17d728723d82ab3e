"""Whatever is given for whatever argument: a result, or an error of ours that names the argument, in one line.

Hypothesis takes a call that works, replaces an argument or two by something odd, and looks at what comes of it. An
error of ours is one that a `raise` in the package has made. 300 examples in the quick tier, 10,000 in `pytest --full`.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import math
import re
import shlex
import signal
import warnings

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from scipy import sparse  # noqa: E402

import discrete  # noqa: E402
import pdmp  # noqa: E402
from pdmp import cli, comparison  # noqa: E402
from pdmp.native.classes import Compiled  # noqa: E402
from tests.checks import plain_only  # noqa: E402
from tests.registry import declared, installed  # noqa: E402, F401

pytestmark = [pytest.mark.exact, plain_only]

SECONDS = 20  #: of computing, after which an example is taken for a hang

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((12, 2)), np.arange(12) % 2.0
GAUSSIAN = pdmp.models.Gaussian([0.5, -0.5], [1.0, 4.0])
LOGISTIC = pdmp.models.LogisticRegression(X, Y)
LINEAR = pdmp.models.LinearGaussian(X, X[:, 0])
NOISY = pdmp.gradients.Noisy(GAUSSIAN, 0.5)
BATCH = pdmp.gradients.Minibatch(LOGISTIC, 4)
RATINGS = {"users": [0, 0, 1, 1, 2], "items": [0, 1, 0, 1, 1], "ratings": [1.0, 2.0, 3.0, 4.0, 5.0], "rank": 2}

#: Calls that work: the arguments without a default. What is not here has none that is public, or needs more.
REQUIRED = {
    **{name: {"target": GAUSSIAN} for name in ("BPS", "CoordinateSampler", "DirectionalBPS", "HMC")},
    "ForwardEventChain": {"target": GAUSSIAN, "orthogonal": "refresh"},
    **{name: {"target": GAUSSIAN} for name in ("GeneralisedBPS", "LocalBPS", "MALA", "Barker")},
    **{name: {"provider": GAUSSIAN} for name in ("Boomerang", "FactorisedBoomerang", "ZigZag", "BPSSplitting")},
    **{name: {"provider": NOISY} for name in ("SBPS",)},
    **{name: {"provider": LOGISTIC} for name in ("LipschitzSBPS",)},
    "Sticky": {"process": pdmp.BPS(LOGISTIC, refresh_rate=1.0, velocities="gaussian")},
    **{name: {"provider": BATCH, "step": 0.01} for name in ("SGLD", "SGHMC", "SGNHT", "MSGNHT", "BADODAB", "SGRRLD")},
    **{name: {"provider": BATCH, "step": 0.01} for name in ("SGRRHMC", "SGZZ", "SGBPS", "SGD")},
    **{name: {"provider": GAUSSIAN, "step": 0.1} for name in ("BAOAB", "UBU", "ZigZagSplitting", "BPSSplitting")},
    "GD": {"target": GAUSSIAN, "step": 0.1},
    "SGBD": {"provider": BATCH, "scale": 0.1},
    "MALA": {"target": GAUSSIAN, "step": 0.5},
    "Barker": {"target": GAUSSIAN, "scale": 1.0},
    "Bounded": {"process": pdmp.BPS(GAUSSIAN, refresh_rate=1.0), "lower": -2.0},
    "Minibatch": {"model": LOGISTIC, "size": 3},
    "ControlVariate": {"model": LOGISTIC, "size": 3},
    "Noisy": {"model": GAUSSIAN, "scale": 0.5},
    "Full": {"model": LOGISTIC},
    "AliasTable": {"weights": [1.0, 2.0]},
    "Grid": {},
    "Maxima": {},
    "Predicted": {},
    "Constant": {"level": 1.0},
    "Lipschitz": {"constant": 4.0},
    "Hessian": {"matrix": [[1.0, 0.0], [0.0, 4.0]]},
    "Polynomial": {"degree": 2},
    "Gaussian": {"mean": [0.0, 1.0], "precision": [1.0, 4.0]},
    "GaussianMixture": {"means": [[0.0, 0.0], [3.0, 3.0]], "covariances": [1.0, 1.0]},
    **{name: {"X": X, "y": Y} for name in ("LogisticRegression", "PoissonRegression", "ProbitRegression")},
    **{name: {"X": X, "y": Y} for name in ("NegativeBinomialRegression", "StudentTRegression", "BayesianNN")},
    **{name: {"X": X, "y": Y} for name in ("NormalInverseGammaRegression", "SpikeAndSlabLinearRegression")},
    "SpikeAndSlabLogisticRegression": {"X": X, "y": Y},
    "LinearGaussian": {"A": X, "x": X[:, 0]},
    "ICA": {"X": X},
    "HalfCauchyLogistic": {"x": np.abs(X[:, 0])},
    "HierarchicalNormal": {"y": X[:, 0], "sigma": np.ones(12)},
    "Hyperboloid": {"y": X[:, 0]},
    "MixtureSum": {"centres": X},
    "LogGaussianCox": {"counts": [1, 0, 2], "precision": np.eye(3)},
    "NormalInverseGamma": {"mean": [0.0], "precision": [[1.0]], "shape": 3.0, "scale": 2.0},
    "SkewNormal": {"shape": 2.0},
    "Banana": {},
    "Funnel": {},
    **{name: RATINGS for name in ("BPMF", "PPMF", "MatrixFactorization")},
}


def classes():
    found = {}
    for room in (pdmp, discrete, pdmp.models, pdmp.gradients, pdmp.thinning):
        for name in room.__all__:
            if name in REQUIRED and issubclass(getattr(room, name), Compiled):
                found[name] = getattr(room, name)
    return found


CLASSES = classes()


class Odd:
    """An object of no use."""

    def __repr__(self):
        return "<something odd>"


NUMBERS = [0, 1, -1, 2, 3, 7, 0.5, -0.5, 1.5, 1e-300, 1e300, -1e300, 1e-12, 1e9, math.nan, math.inf, -math.inf]
NUMBERS += [
    10**400,
    2**70,
    10**18,
    -(10**18),
    True,
    False,
    np.float32(0.5),
    np.int8(3),
    np.float64(math.nan),
    1j,
    2**63,
]
WORDS = ["", "auto", "a", "none", "mean", "iid", "sphere", "adaptive", "dense", "ρ\n", "NaN", "1", "uniform", "\0"]
ARRAYS = [np.zeros(0), np.zeros(2), np.ones(2), np.ones(3), np.ones((2, 2)), np.eye(2), np.ones((1, 2, 3)), X, X[:3]]
ARRAYS += [np.full(2, math.nan), np.array([1.0, math.inf]), np.array(["a", "b"]), np.array([None, 1]), np.ones(2) * 1j]
ARRAYS += [np.array([1e300, 1e-300]), np.array(1.0), np.array([-1, 5]), np.ma.masked_array([1.0, 2.0], [0, 1])]
ARRAYS += [
    np.array(["2020-01-01"], "M8[D]"),
    np.array([True, False]),
    sparse.eye_array(2).tocsr(),
    np.ones((12, 2), "f2"),
]
OBJECTS = [None, [], (), {}, [1, "a"], [[1.0], [2.0, 3.0]], [0.5, 0.5], (1, 2), {"a": 1}, {1, 2}, b"x", Odd(), object]
OBJECTS += [lambda x: x, lambda: 1, GAUSSIAN, LOGISTIC, NOISY, BATCH, range(3), slice(2), np.float64, int, iter([1])]
OBJECTS += [pdmp.BPS, pdmp.ZigZag(GAUSSIAN), pdmp.thinning.Grid(), discrete.schedules.constant(0.1), Ellipsis]
ITSELF, DEEP = [], [1.0]
ITSELF.append(ITSELF)
for _ in range(3_000):
    DEEP = [DEEP]
OBJECTS += [ITSELF, (ITSELF, 1.0), np.array([ITSELF, None], object), DEEP]
odd_things = st.one_of(*(st.sampled_from(kind) for kind in (NUMBERS, WORDS, ARRAYS, OBJECTS)))


def by_us(error):
    """Whether the error comes from a `raise` in the package."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    package = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return package in ("pdmp", "discrete") and dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]].startswith("R")


FOREIGN_WORDS = re.compile(
    r"ufunc|ambiguous|broadcast|setting an array element|NoneType' object|has no attribute|not subscriptable|astype|"
    r"unhashable|not iterable|arviz|could not convert|Errno|unsupported operand|math domain",
)


@contextlib.contextmanager
def limited():
    """An example that takes too long is a failure, and not a hang of the suite."""

    def stop(*_):
        raise AssertionError(f"no end within {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(call, changed):
    """Call; a result is right, and so is an error of ours that names an argument.

    That may be one that the changed one is at odds with, or that of a base class or of a part, which it became.
    """
    with limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except pdmp.SamplingError as error:
            said = error
        except (TypeError, ValueError, KeyError, ImportError) as error:
            said = error
        except ArithmeticError as error:
            raise AssertionError(f"{type(error).__name__} for {changed!r}") from error
    text = said.args[0] if said.args else ""
    assert by_us(said), f"{type(said).__name__}: {text!r} for {changed!r}"
    assert "\n" not in text and not FOREIGN_WORDS.search(text), f"{text!r} for {changed!r}"
    if isinstance(said, (pdmp.SamplingError, KeyError, ImportError)):
        return None
    named = set(re.findall(r"`(\w+)", text))
    refuses = re.match(r"(pdmp|discrete)\.\w+ (needs|takes)", text)  # a class that says with what it works
    assert named or refuses, f"{text!r} for {changed!r}"
    return None


@pytest.fixture(params=[300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.release])])
def examples(request):
    """Runs a test with a share of the examples of all tests here."""
    many = request.param

    def run(share, test):
        checked = settings(
            max_examples=max(int(share * many), 1),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        checked(given(st.data())(test))()

    return run


def replaced(data, names, most=2):
    """One or two of the arguments, with what they are replaced by."""
    names = sorted(names)
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True), label="arguments")
    return {name: data.draw(odd_things, label=name) for name in chosen}


@functools.cache
def parameters(function):
    return [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self", "name")
    ]


# -- constructors, and what is done with what they make ---------------------------------------------------------------


def test_constructors(examples):
    """Any argument of any constructor; what comes of it is sampled, or evaluated."""

    def test(data):
        name = data.draw(st.sampled_from(sorted(CLASSES)), label="class")
        cls = CLASSES[name]
        changed = replaced(data, parameters(cls.__init__))

        def call():
            made = cls(**REQUIRED[name] | changed)
            repr(made)
            if isinstance(made, pdmp.Process):
                budget = {"steps": 4} if made.ticks else {"events": 4, "proposals": 40}
                pdmp.sample(made, **budget, seed=1, warmup=0.5, progress=False)
            elif isinstance(made, pdmp.Model) and made.dim <= 100:
                made.gradient(np.full(made.dim, 0.1))

        judge(call, changed)

    examples(0.5, test)


# -- runs -----------------------------------------------------------------------------------------------------------


CALL = {
    "initial",
    "time",
    "events",
    "steps",
    "proposals",
    "data_passes",
    "gradients",
    "ess",
    "rhat",
    "warmup",
    "chains",
}
CALL |= {"seed", "store", "draws", "covariance", "progress", "checkpoint", "executor"}


def test_sample(examples, tmp_path, monkeypatch):
    """Any argument of `pdmp.sample`; a budget of few events keeps what is allowed short."""
    monkeypatch.chdir(tmp_path)
    processes = (
        {"process": pdmp.ZigZag(GAUSSIAN)},
        {"process": discrete.SGLD(BATCH, 0.01)},
        {"process": pdmp.LocalBPS(LOGISTIC)},
    )
    few = {"events": 6, "proposals": 40, "seed": 1, "progress": False}

    def test(data):
        base = {"process": data.draw(st.sampled_from(processes), label="process")}
        changed = replaced(data, CALL | {"process"})
        if isinstance(changed.get("process"), pdmp.Model):  # sampled until a goal is reached, which takes its time
            changed["process"] = None
        if isinstance(changed.get("chains"), int) and 3 < changed["chains"] < 10**6:
            changed["chains"] = 3
        if isinstance(changed.get("checkpoint"), (str, bytes)):
            changed["checkpoint"] = ""
        if any(changed.get(name, None) is None and name in changed for name in ("events", "proposals")):
            changed |= {"events": "none"}
        judge(lambda: pdmp.sample(**base | few | changed), changed)

    examples(0.15, test)


def is_large(value):
    return isinstance(value, (int, float, np.number)) and 1e6 <= abs(value) < math.inf


def runs():
    return (
        pdmp.sample(pdmp.ZigZag(GAUSSIAN), events=60, chains=2, seed=1),
        pdmp.sample(discrete.SGRRLD(BATCH, 0.01), steps=30, seed=1),
        pdmp.sample(pdmp.BPS(GAUSSIAN), events=60, seed=1, store="grid", draws=40),
        pdmp.sample(pdmp.BPS(GAUSSIAN), events=60, seed=1, store="moments"),
    )


METHODS = {
    **{name: {"f": lambda x: x[0]} for name in ("expectation", "mcse", "running_mean")},
    **{name: {} for name in ("mean", "draws", "draw_times", "ess", "rhat", "hdi", "thin", "extend")},
    "quantile": {"q": 0.5},
    "at": {"t": 0.1},
    "constrain": {"draws": np.zeros((3, 2))},
    "to_dataframe": {"n": 5},
    "__getitem__": {"name": "x"},
}
OF_PATHS = {"at": {"t": 0.1}, "discretise": {"n": 4}, "integral": {}, "mean": {}, "var": {}, "cov": {}}


def test_methods_of_runs_and_paths(examples):
    made = runs()

    def test(data):
        run = data.draw(st.sampled_from(made), label="run")
        on_path = run.store == "skeleton" and data.draw(st.booleans(), label="of a path")
        methods = OF_PATHS if on_path else METHODS
        name = data.draw(st.sampled_from(sorted(methods)), label="method")
        method = getattr(run.trajectories[0] if on_path else run, name, None)
        method = method or functools.partial(getattr(pdmp.diagnostics, name), run)
        names = [n for n in parameters(method) if n not in ("executor", "checkpoint", "progress")]
        names += ["name"] * ("name" in inspect.signature(method).parameters)
        changed = replaced(data, names + (["events", "time", "nonsense"] if name == "extend" else []))
        if callable(changed.get("f")):
            return  # what it returns is the user's
        large = [n for n in ("events", "time", "n", "candidates") if n in changed and is_large(changed[n])]
        changed |= dict.fromkeys(large, 10**15 if name == "draws" else 7)  # what is allowed, and takes long
        judge(lambda: method(**methods[name] | changed), changed)

    examples(0.15, test)


MODEL_METHODS = {
    "potential": {"x": np.zeros(2)},
    "gradient": {"x": np.zeros(2)},
    "hessian": {"x": np.zeros(2)},
    "mode": {},
    "constrain": {"draws": np.zeros((3, 2))},
    "term_gradients": {"x": np.zeros(2), "rows": [0, 1]},
    "pointwise_log_likelihood": {"draws": np.zeros((1, 3, 2))},
    "check_gradient": {"points": 1, "data": 2},
}


def test_methods_of_models(examples):
    def test(data):
        model = data.draw(st.sampled_from([LOGISTIC, LINEAR, pdmp.models.PoissonRegression(X, Y)]), label="model")
        name = data.draw(st.sampled_from(sorted(MODEL_METHODS)), label="method")
        method = getattr(model, name)
        changed = replaced(data, parameters(method))
        for count in ("points", "data"):
            if isinstance(changed.get(count), int) and changed[count] > 10:
                changed[count] = 3
        judge(lambda: method(**MODEL_METHODS[name] | changed), changed)

    examples(0.1, test)


# -- the command ----------------------------------------------------------------------------------------------------


OPTIONS = ["--problem", "--data", "--target", "--positive", "--above", "--drop", "--index", "--sep", "--data-passes"]
OPTIONS += ["--gradients", "--ess", "--rhat", "--seed", "--save", "--samplers", "--budget", "--metric"]
FLAGS = [
    "--one-hot",
    "--drop-constant",
    "--drop-missing",
    "--no-intercept",
    "--as-is",
    "--quick",
    "--version",
    "--help",
]
VALUES = [
    "",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "x",
    "y",
    "a",
    "table.csv",
    "odd.csv",
    "absent",
    ".",
    "/",
    "SGLD",
    "1.5",
]
VALUES += [";", "\\t", ",", "ρ", "-", "--", "BPS,ZigZag", "SGBD vanilla", "99999999999999999999", "' '"]
CELLS = ["1", "2.5", "", "NA", "x", "1e999", "-", '"', "1_0", "nan", "True", "0x1", "ρ", "\0", " ", "a;b", "1,5"]


def test_the_command(examples, tmp_path, monkeypatch, capsys, installed):  # noqa: F811
    """Any options in any order, on any table: the answer, or one line on stderr and exit code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparison, "configured", lambda model, mode, classes: dict.fromkeys(classes))
    monkeypatch.setattr(cli, "_model", lambda dataset: (LOGISTIC, np.zeros(2)))
    (tmp_path / "table.csv").write_text("x,z,y\n" + "".join(f"{k},{k * 7 % 5},{k % 2}\n" for k in range(24)))

    class Sampled(cli.UserError):
        """All options were taken."""

    def sampled(*_, **__):
        raise Sampled("sampled")

    monkeypatch.setattr(cli, "_headline", sampled)

    def test(data):
        cells = data.draw(st.lists(st.lists(st.sampled_from(CELLS), max_size=4), max_size=6), label="odd.csv")
        sep = data.draw(st.sampled_from(",;\t |"), label="separator")
        (tmp_path / "odd.csv").write_text("\n".join(sep.join(row) for row in cells), encoding="utf-8")
        words = data.draw(st.sampled_from(["compare", "sample BPS", "sample", "tune SGLD", "list", "tune", "what"]))
        words = [
            *shlex.split(words),
            *data.draw(st.lists(st.sampled_from(["table.csv", "odd.csv", "absent"]), max_size=1)),
        ]
        if data.draw(st.booleans(), label="target"):
            words += ["--target", data.draw(st.sampled_from(["y", "x"]))]
        for _ in range(data.draw(st.integers(0, 3))):
            if data.draw(st.booleans()):
                words.append(data.draw(st.sampled_from(FLAGS)))
            else:
                words += [data.draw(st.sampled_from(OPTIONS)), data.draw(st.sampled_from(VALUES))]
        with limited(), warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            warnings.simplefilter("ignore")
            cli.main(words)
        said = capsys.readouterr()
        assert stop.value.code in (0, 2), words
        if stop.value.code == 2 and said.err:
            assert said.err.startswith("pdmp: ") and said.err.count("\n") == 1, (words, said.err)
            assert not FOREIGN_WORDS.search(said.err), (words, said.err)

    examples(0.1, test)


def test_every_sampler_and_model_is_among_these():
    """What the package has and this file does not know."""
    assert {cls.__name__ for cls in declared().values()} <= set(CLASSES)
    models = {
        n for n in pdmp.models.__all__ if inspect.isclass(c := getattr(pdmp.models, n)) and issubclass(c, pdmp.Model)
    }
    assert models - {"Model"} <= set(CLASSES)
