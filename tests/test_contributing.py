"""The skeletons of the pages on samplers, models and bounds are run as they stand, and sample the law they should."""

import inspect
import pathlib
import pkgutil
import re
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from tests import conftest
from tests.checks import assert_unbiased, plain_only

pytestmark = [pytest.mark.exact, plain_only]

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
MEAN, PRECISION = np.array([1.0, -1.0]), np.array([4.0, 1.0])


def blocks(page, heading, language="python"):
    """Code blocks of one section of a page, in order."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    section = re.split(r"^#+ (?=[A-Z])", text, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("marks", "quick_tier", "full", "release"),
    [
        ({"exact"}, {"plain"}, {"plain"}, {"plain"}),
        ({"exact", "slow"}, set(), {"plain"}, {"plain"}),
        ({"exact", "slow", "release"}, set(), set(), {"plain"}),
        ({"exact", "compiled"}, {"plain"}, {"plain", "compiled"}, {"plain", "compiled"}),
        ({"exact", "compiled", "release"}, {"plain"}, {"plain"}, {"plain", "compiled"}),
        ({"exact", "quick"}, {"plain", "compiled"}, {"plain", "compiled"}, {"plain", "compiled"}),
        ({"quick"}, {"compiled"}, {"compiled"}, {"compiled"}),
        (set(), set(), {"compiled"}, {"compiled"}),
        ({"release"}, set(), set(), {"compiled"}),
        ({"exact", "repeated release"}, set(), set(), {"plain"}),
        ({"exact", "repeated release", "compiled"}, set(), {"compiled"}, {"plain", "compiled"}),
        ({"exact", "repeated full"}, set(), {"plain"}, {"plain"}),
    ],
)
def test_where_a_test_runs_by_its_marks(marks, quick_tier, full, release):
    """As the section on testing says; the rest of the full tier is what the quick one has not run."""
    tiers = [tier for tier in conftest.REPEATED if f"repeated {tier}" in marks]
    name = min(conftest.REPEATED[tiers[0]]) if tiers else "tests/test_it.py::test_it"
    item = SimpleNamespace(get_closest_marker=lambda name: name if name in marks else None, nodeid=name)
    empty = {"full": False, "rest": False, "release": False, "keyword": "", "markexpr": ""}

    def kinds(**chosen):
        option = SimpleNamespace(**empty | chosen)
        configs = (SimpleNamespace(option=option, args=["tests"], workerinput={"plain": k}) for k in (True, False))
        return {
            name for name, config in zip(("plain", "compiled"), configs, strict=True) if conftest.wanted(item, config)
        }

    assert kinds() == quick_tier and kinds(full=True) == full and kinds(release=True) == release
    assert kinds(full=True, rest=True) == full - quick_tier
    assert set() < kinds(keyword="it") <= release


def test_files_that_a_process_has_no_tests_in_are_not_read(tmp_path, monkeypatch):
    def ignored(text, plain, full=False, args=("tests",), name="test_it.py", rest=False):
        (tmp_path / name).write_text(text)
        option = SimpleNamespace(full=full, rest=rest, release=False, keyword="", markexpr="")
        config = SimpleNamespace(option=option, args=args, workerinput={} if plain is None else {"plain": plain})
        return bool(conftest.pytest_ignore_collect(tmp_path / name, config))

    assert [ignored("pytest.mark.exact", plain) for plain in (True, False, None)] == [False, True, False]
    assert [ignored("pytest.mark.quick", plain) for plain in (True, False, None)] == [True, False, False]
    whole = "pytestmark = [\n    pytest.mark.exact,\n]\n"
    for text, rest, full in (
        ("pytest.mark.exact", (True, False), (False, False)),
        ("pytest.mark.exact, pytest.mark.slow", (False, False), (False, False)),
        ("", (True, False), (True, False)),
        (whole, (True, True), (False, True)),
        (f"{whole}\npytest.mark.slow", (False, True), (False, True)),
        (f"{whole}\nin_quick(", (False, True), (False, True)),
        (f"{whole}\npytest.mark.compiled", (True, False), (False, False)),
        (f"{whole}\npytest.mark.quick", (True, True), (False, False)),
        ("pytestmark = needs_compiler\n\npytest.mark.exact", (True, False), (False, False)),
    ):
        assert tuple(ignored(text, plain, full=True, rest=True) for plain in (True, False)) == rest, text
        assert tuple(ignored(text, plain, full=True) for plain in (True, False)) == full, text
    config = SimpleNamespace(
        option=SimpleNamespace(full=True, rest=True, release=False, keyword="", markexpr=""),
        args=("tests",),
        workerinput={"plain": True},
    )
    listed = ROOT / min(conftest.MODULES)  # by the list of what is repeated, whatever marks stand there
    monkeypatch.setattr(type(listed), "read_text", lambda *_, **__: "pytest.mark.exact")
    assert conftest.pytest_ignore_collect(listed, config) is None
    assert conftest.pytest_ignore_collect(listed.with_name("test_other.py"), config) is True
    monkeypatch.undo()
    assert not ignored("", True, args=["tests/test_it.py"]) and not ignored("", True, name="conftest.py")
    helpers = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    mark = re.compile(r"= pytest\.mark\.(exact|quick|slow|compiled)")
    marked = [path.name for path in helpers if mark.search(path.read_text())]
    assert not marked  # a mark that is imported would not be seen in the file


def skeleton(page, heading):
    """What the section's code defines, and what its example computes."""
    space = {"__name__": "skeleton"}
    for code in blocks(page, heading):
        exec(compile(code, heading, "exec"), space)
    return space


@pytest.mark.slow
def test_continuous_time_sampler(capsys):
    space = skeleton("new_sampler", "A continuous-time sampler")
    target = pdmp.models.Gaussian(MEAN, PRECISION)
    assert_law(space["GaussianBPS"](target), MEAN, 1.0 / PRECISION, time=150.0)
    with pytest.raises(ValueError, match="`refresh_rate` must be a positive number, got -1"):
        space["GaussianBPS"](target, refresh_rate=-1)


def assert_law(process, mean, variance, resolution=0.4, replicates=30, **budget):
    """Means and variances of independent chains are those of the law."""
    means, variances = [], []
    for seed in range(replicates):
        run = pdmp.sample(process, seed=seed, warmup=0.1, progress=False, **budget)
        means.append(run.mean())
        variances.append(run.var())
    assert_unbiased(means, mean, resolution=resolution * np.sqrt(variance))
    assert_unbiased(variances, variance, resolution=2.0 * resolution * variance)


def test_fixed_step_sampler(capsys):
    space = skeleton("new_sampler", "A fixed-step sampler")
    step = 0.1
    process = space["Langevin"](pdmp.models.Gaussian(MEAN, PRECISION), step=step)
    assert_law(process, MEAN, 1.0 / (PRECISION * (1.0 - 0.5 * step * PRECISION)), steps=450)
    assert isinstance(discrete.RichardsonRomberg(process), pdmp.Process)


def test_model(capsys):
    space = skeleton("new_model", "With exact clocks")
    y = np.random.default_rng(3).normal(MEAN, 1.0, (10, 2))
    model = space["NormalMean"](y)
    for process in (pdmp.ZigZag(model), pdmp.BPS(model)):
        assert_law(process, y.sum(axis=0) / 11.0, np.full(2, 1.0 / 11.0), time=65.0)
    x = np.array([0.3, -0.2])
    assert np.allclose(model.gradient(x), 10.0 * x - y.sum(axis=0) + x)
    with pytest.raises(ValueError, match="`y` must be finite numbers of shape"):
        space["NormalMean"](np.ones(3))


@pytest.mark.slow
def test_bound(capsys):
    space = skeleton("new_bound", "A bound of your own")
    target = pdmp.models.Gaussian(MEAN, PRECISION)
    assert_law(pdmp.BPS(target, refresh_rate=1.0, thinning=space["Steepest"](4.0)), MEAN, 1.0 / PRECISION, time=200.0)
    with pytest.raises(pdmp.SamplingError, match="the steepest slope"):
        pdmp.sample(pdmp.BPS(target, refresh_rate=1.0, thinning=space["Steepest"](0.5)), time=500.0, seed=1)


def test_entry_point():
    (text,) = blocks("new_sampler", "A continuous-time sampler", "toml")
    ((group, points),) = tomllib.loads(text)["project"]["entry-points"].items()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert group in declared
    code, _ = blocks("new_sampler", "A continuous-time sampler")
    for name, place in points.items():
        module, _, attribute = place.partition(":")
        assert f"\nclass {attribute}(" in code and name == attribute
        assert code.startswith(f"# {module.replace('.', '/')}.py\n")


def test_what_the_page_names_exists():
    for path in re.findall(r"`((?:pdmp|discrete|tests|examples|docs)/[\w/.]*)`", PAGE):
        assert (ROOT / path).exists(), path
    lines = (line.rpartition("|")[0].rpartition("|")[0] if line.startswith("|") else line for line in PAGE.splitlines())
    text = "\n".join(lines)
    for name in re.findall(r"`((?:pdmp|discrete)(?:\.\w+)+)", text):
        if name == "pdmp.processes":  # the group of entry points
            continue
        pkgutil.resolve_name(name)  # modules that nothing has imported yet, too


def test_marks_tiers_and_pythons():
    """The page lists the marks of pytest, the resolution of the quick tier, its false alarms and the Pythons of nox."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    marks = {line.partition(":")[0] for line in options["markers"]}
    listed = PAGE.partition("Five marks say where a test belongs")[2].partition("Half of the workers")[0]
    assert set(re.findall(r"^- `(\w+)`:", listed, re.MULTILINE)) == marks and len(marks) == 5
    text = " ".join(PAGE.split())
    assert "fails with a probability of one in a million" in text
    assert inspect.signature(assert_unbiased).parameters["alpha"].default == 1e-6
    found = re.search(
        r"means off by ([\d.]+) standard deviations and variances off by (\d+) % \(([\d.]+) and (\d+) %", text
    )
    plain, percent, compiled, percent_compiled = map(float, found.groups())
    law = (ROOT / "tests" / "statistics" / "test_each_sampler.py").read_text(encoding="utf-8")
    assert f"RESOLUTION = {plain} if PLAIN else {compiled}\n" in law
    assert (percent, percent_compiled) == (100 * plain, 100 * compiled)
    first, last = re.search(r"of 3\.(\d+) to 3\.(\d+), and with the oldest", text).groups()
    sessions = ", ".join(f'"3.{k}"' for k in range(int(first), int(last) + 1))
    nox = ROOT / ".ci" / "noxfile.py"  # not in the copies in which bugs are planted
    assert not nox.exists() or f"python=[{sessions}]" in nox.read_text(encoding="utf-8")
