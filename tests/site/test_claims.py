"""What the pages say of the package with figures that the code has: read from the pages, and compared with the code.

Figures that were measured stand in a paragraph with the command that measures them, which there must be.
"""

import ast
import functools
import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import warnings

import numpy as np
import pytest
import typer
from scipy import stats

import discrete
import pdmp
from pdmp import cli, comparison
from pdmp.automatic import metric, sampling
from pdmp.diagnostics import summary
from pdmp.engine import checkpoint, executors
from pdmp.formulas import families, fitting, kept, loo, sources
from pdmp.plots import densities
from tests.checks import assert_exponential
from tests.forked import program
from tests.registry import installed  # noqa: F401
from tests.site import pages

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(__file__).parents[2]
#: Pages that other tests look at, or that say what was, or cite.
ELSEWHERE = ("promises", "papers", "contributing", "changelog", "bibliography")
PAGES = {
    page.relative_to(ROOT / "docs").as_posix(): page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if not {"_build", "generated", "scripts", "pictures"} & set(page.parts) and page.stem not in ELSEWHERE
} | {"README.md": ROOT / "README.md"}
PAGES |= {f"gallery/{path.name}": path for path in sorted((ROOT / "docs" / "gallery").iterdir()) if path.is_file()}
COMMAND = re.compile(
    r"`(python -X importtime|python -m tests\.benchmarks\.\w+|python (?:examples|tests)/[\w/]+\.py|pdmp \w+)"
)


#: A blank line, or the beginning of a point of a list; the rows of a table are together.
BETWEEN = re.compile(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )")


def sections(page):
    """The text of a page without its blocks of code: [(heading, its paragraphs, each in one line)]."""
    text = PAGES[page].read_text(encoding="utf-8")
    if page.startswith("gallery/"):
        text = f"# {page}\n" + (text if page.endswith(".rst") else ast.get_docstring(ast.parse(text)))
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|^:+\{.*$|^:\w+.*$|^\|[-|]+\|\n", "", text, flags=re.MULTILINE)
    parts = re.split(r"^#{1,6} (.*)$", text, flags=re.MULTILINE)
    return [
        (heading, [" ".join(x.split()) for x in BETWEEN.split(part) if x.strip()])
        for heading, part in zip(parts[1::2], parts[2::2], strict=True)
    ]


def prose(page):
    """The text of a page in one line a section: {heading: text}."""
    found = {}
    for heading, paragraphs in sections(page):
        found[heading] = " ".join([found.get(heading, ""), *paragraphs]).strip()
    return found


def test_commands_that_measure_are_there():
    found = [(page, c) for page in PAGES for _, texts in sections(page) for t in texts for c in COMMAND.findall(t)]
    assert found
    for page, command in found:
        program = ROOT / (command.removeprefix("python -m ").removeprefix("python ").replace(".", "/") + ".py")
        known = command.startswith(("pdmp ", "python -X")) or program.is_file()
        assert known or (ROOT / command.removeprefix("python ")).is_file(), f"{page}: {command}"


def named_on(page):
    """The tests that a page names, in tables of promises or laws."""
    return re.findall(r"`([\w/]+\.py::\w+)`", (ROOT / "docs" / page).read_text(encoding="utf-8"))


@functools.cache
def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def exists(named):
    path, _, name = named.partition("::")
    return (ROOT / "tests" / path).is_file() and name in functions(ROOT / "tests" / path)


def test_tests_of_a_page_exist():
    """Of the laws, and of the promises."""
    for page in ("evidence/laws.md", "promises.md"):
        found = named_on(page)
        assert len(found) > 40 and all(exists(test) for test in found), [test for test in found if not exists(test)]
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", (ROOT / "docs" / "evidence" / "laws.md").read_text(), re.MULTILINE)
    assert len(rows) > 15
    for law, held in rows[1:]:
        assert law.endswith(".") and re.fullmatch(r"(`[\w/]+\.py::test_\w+`(, )?)+", held), law


# -- numbers of the pages, and of the code -------------------------------------------------------------------------


def read(page, pattern):
    """What a pattern finds on a page: numbers as numbers, lists of names as they are."""
    (found,) = re.findall(pattern, " ".join(prose(page).values()))
    found = (found,) if isinstance(found, str) else found
    return [float(x.replace(",", "")) if re.fullmatch(r"[\d,.]+", x) else x for x in found]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_python():
    for page in ("README.md", "start/index.md"):
        (version,) = re.findall(r"Python (3\.\d+) or later", " ".join(prose(page).values()))
        assert project()["requires-python"] == f">={version}"


def test_licence():
    assert project()["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")


def test_defaults_of_a_run():
    ess, rhat, gradients = read(
        "start/index.md",
        r"has ([\d,]+) effective draws and R-hat is at most ([\d.]+), or until a chain has spent ([\d,]+)",
    )
    assert (ess, rhat, gradients) == (sampling.ESS, sampling.RHAT, sampling.GRADIENTS)
    assert read("README.md", r"standard deviation has ([\d,]+) effective draws") == [sampling.ESS]
    accepted = read("choose/from_nuts.md", r"learnt with the metric, ([\d.]+) or ([\d.]+);")
    assert accepted == [metric.ACCEPTANCE, metric.FAR_ACCEPTANCE]
    text = inspect.getdoc(pdmp.sample)
    assert f"{ess:.0f} effective draws and R-hat is at most {rhat}" in " ".join(text.split())


def test_thresholds_of_warnings():
    assert read("start/index.md", r"\| R-hat above ([\d.]+) \|") == [summary.LARGE]
    assert read("howto/diagnosing.md", r"warns of fewer than ([\d,]+) effective draws") == [summary.FEW]


@pytest.mark.release
@pytest.mark.slow
def test_passes_of_three_samplers():
    """Effective draws of fifty passes over the data, as the page says them."""
    page = PAGES["choose/from_sgld.md"].read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    space = {"kept": []}
    exec(code.replace("print(run.ess())", "kept.append(run.ess().min())"), space)
    plain, anchored, single = space["kept"]
    assert plain < 20.0 and 200.0 < anchored < 900.0 and 700.0 < single < 1_500.0


def test_columns_of_the_summary():
    target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    found = pdmp.sample(pdmp.ZigZag(target), events=60, chains=2, seed=1).summary()
    said = read("start/index.md", r"The columns of the summary: (.*?), which compares the chains")[0]
    said = said.replace("R-hat", "rhat").replace("effective draws (`ess`)", "ess")
    said = said.replace("the Monte Carlo error of the mean (`mcse`)", "mcse")
    said = said.replace("the ends of an interval that has 95 % of the probability", "2.5% 97.5%")
    columns = re.findall(r"\b(?:mean|sd|mcse|ess|rhat)\b|\b97.5%|\b2.5%", said)
    assert columns == [name for name in found.COLUMNS if name != "name"]
    header, *_ = str(found).splitlines()
    assert header.split() == ["mean", "sd", "2.5%", "97.5%", "mcse", "ess", "rhat"]
    below = str(found).partition(found.rows[-1]["name"])[2]
    assert "\nleast ess " in below and " per event" in below and "\nWarning: " in below


def test_samplers_of_a_comparison(monkeypatch, installed):  # noqa: F811
    """Those of `pdmp compare` by default, and the automatic one; NUTS is there where nutpie is."""
    named, _ = cli._choose(None)
    labels = [label for cls in named.values() for label in cli._labels(cls)]
    assert len(labels) + 1 == 9 and cli._choose_extra(None) == (None, {"auto", "NUTS"})
    for page in ("README.md", "start/teaching.md"):
        assert re.search(r"\bnine samplers on ", " ".join(prose(page).values()), re.IGNORECASE)


def test_figures_are_said_alike():
    """The comparison with NUTS has one set of figures, of as many posteriors as its program has."""
    (ratio,) = read("evidence/speed.md", r"were ([\d,]+) times those of nutpie in their geometric mean")
    assert read("README.md", r"had ([\d,]+) times the effective draws per gradient of nutpie") == [ratio]
    number, again = read("choose/index.md", r"on (\d+) published posteriors ([\d,]+) times")
    tree = ast.parse((ROOT / "tests" / "benchmarks" / "own_models.py").read_text(encoding="utf-8"))
    (programs,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PROGRAMS"
    )
    assert again == ratio and number == len(programs.keys) == 17
    (low_rank,) = read("evidence/speed.md", r"([\d.]+) times those of nutpie with a low-rank metric")
    assert read("choose/index.md", r"([\d.]+) times those of its low-rank metric") == [low_rank]
    assert read("README.md", r"([\d.]+) times those of nutpie with a low-rank metric") == [low_rank]
    for page in ("README.md", "evidence/speed.md"):
        assert "n seventeen published posteriors" in " ".join(prose(page).values())


def test_extras():
    """Those that a page says to install, and the table of them."""
    extras = project()["optional-dependencies"]
    for page in [*PAGES.values(), ROOT / "docs" / "contributing.md"]:
        for named in re.findall(r"pip install (?:-e )?'\.\[([\w,]+)\]'", page.read_text(encoding="utf-8")):
            assert set(named.split(",")) <= extras.keys(), (page, named)
    text = (ROOT / "docs" / "evidence" / "dependencies.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", text, re.MULTILINE))
    names = {name for cell in listed for name in re.findall(r"`(\w+)`", cell)}
    assert names == extras.keys() - {"test", "bench", "docs", "dev"}
    for cell, packages in listed.items():
        for name in re.findall(r"`(\w+)`", cell):
            needed = {re.split("[<>=]", package)[0] for package in extras[name]}
            said = set(packages.lower().split(", ")) | ({name} if "of these names" in packages else set())
            assert needed & said or needed == {"stanli"}, name


def test_what_the_import_imports():
    """The table of dependencies is that of the project, and of it `import pdmp` imports what the page says."""
    text = (ROOT / "docs" / "evidence" / "dependencies.md").read_text(encoding="utf-8").partition("Extras")[0]
    listed = [
        name.lower() for name in re.findall(r"^\| ([\w-]+) \| [^|]+ \| [\d,-]+ \| [\d.]+ \|$", text, re.MULTILINE)
    ]
    assert listed == [re.split("[<>=]", package)[0] for package in project()["dependencies"]]
    modules = [{"scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in listed]
    code = f"import sys, pdmp; print(*[m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    (said,) = re.findall(r"it imports (.*?), and each of the others only", " ".join(text.split()))
    assert done.stdout.split() == said.lower().replace(" and ", ", ").split(", ")


def test_families():
    text = " ".join(prose("start/table.md").values())
    page = (
        (ROOT / "docs/start/table.md").read_text(encoding="utf-8").partition("## Families")[2].partition("Any par")[0]
    )
    assert re.findall(r"`(\w+)`[^`]*, the default", page) == [
        inspect.signature(pdmp.regression).parameters["family"].default
    ]
    said = {
        name: others
        for name, others in re.findall(r"`(\w+)`(?: \(([\w, ]+)\))?", page)
        if name in pdmp.families.FAMILIES
    }
    assert said == {
        name: ", ".join(one for one in found.named[1:] if one != "cuts")
        for name, found in pdmp.families.FAMILIES.items()
    }
    (own,) = read("start/table.md", r"(gaussian, [^.]*?) tables with one formula")
    assert own.replace(" and ", ", ").split(", ") == list(families.LAWS)
    for option in re.findall(r"`(\w+)=`", text):
        assert option in inspect.signature(pdmp.regression).parameters


def test_what_transforms_take_off():
    """The last column of the table is the logarithm of the Jacobian, up to a constant."""
    transforms, x = pdmp.models.transforms, np.array([[0.3, -0.7, 1.1], [-0.2, 0.4, 0.9]])
    share, p = 1.0 / (1.0 + np.exp(-x)), transforms.Simplex().constrain(x)
    for transform, natural, said in [
        (transforms.Log(2.0), 2.0 + np.exp(x), x),
        (transforms.Upper(2.0), 2.0 - np.exp(x), x),
        (transforms.Interval(-1.0, 4.0), -1.0 + 5.0 * share, np.log(share) + np.log(1.0 - share)),
        (transforms.Ordered(), np.cumsum(np.c_[x[:, :1], np.exp(x[:, 1:])], axis=1), x[:, 1:]),
        (transforms.Simplex(), p, np.log(p)),
    ]:
        assert np.allclose(transform.constrain(x), natural)
        one, other = transform.log_jacobian(x).sum(axis=1), said.sum(axis=1)
        assert one[0] - one[1] == pytest.approx(other[0] - other[1])
    assert p.shape == (2, 4) and np.allclose(p.sum(axis=1), 1.0)


def test_sizes_of_tables():
    assert read("start/table.md", r"From ([\d,]+) rows on gaussian") == [fitting.SUBSAMPLED_ROWS]
    assert read("start/table.md", r"file of (\d+) MB or more") == [sources.LARGE_FILE / 2**20]
    assert read("howto/large_data.md", r"files from (\d+) MB on") == [sources.LARGE_FILE / 2**20]


def test_shape_of_predictions():
    (draws,) = read("start/table.md", r"\(([\d,]+), rows\)")
    assert draws == inspect.signature(pdmp.formulas.fit.Fit.predict).parameters["draws"].default


def test_rows_after_a_fit():
    assert read("start/table.md", r"rows of the fit, ([\d,]+) of them") == [kept.ROWS]
    millions, draws, rows, some = read(
        "start/table.md",
        r"up to (\d+) million log-likelihoods of (\d+) draws a chain, with four chains ([\d,]+) rows. "
        r"Of more, ([\d,]+) rows",
    )
    assert (millions * 1_000_000, draws, some) == (loo.NUMBERS, loo.LEAST_DRAWS, loo.ROWS)
    assert rows == loo.NUMBERS // (4 * loo.LEAST_DRAWS)


def test_seconds():
    assert read("howto/checkpoint.md", r"written every (\d+) seconds") == [checkpoint.CHECKPOINT_SECONDS]
    (segment,) = read("howto/cluster.md", r"segments of (\d+) seconds")
    assert segment == executors.SEGMENT_SECONDS


def test_sgld_on_sepsis():
    results = (ROOT / "examples" / "papers" / "results" / "sepsis.json").read_text(encoding="utf-8")
    (found,) = [c for c in json.loads(results)["criteria"] if c["what"].startswith("F3 SGLD σ = 4e-4")]
    assert read("choose/from_sgld.md", r"\[([\d.]+) times\]\(\.\./evidence/papers\.md\)") == [float(found["measured"])]


def test_lines_of_the_telegraph_process():
    (code, *_) = (block.text for block in pages.blocks(PAGES["howto/new_sampler.md"]) if block.language == "python")
    (node,) = (node for node in ast.parse(code).body if isinstance(node, ast.ClassDef))
    lines = [line for line in code.splitlines()[node.lineno - 1 : node.end_lineno] if line.strip()]
    assert len(lines) == 13 and "[thirteen lines](../howto/new_sampler.md)" in prose("start/teaching.md").popitem()[1]


def test_models_of_the_example():
    code = (ROOT / "examples" / "variable_selection.py").read_text(encoding="utf-8")
    (covariates,) = re.findall(r"diabetes \(442 patients, (\d+) covariates\)", code)
    assert read("howto/selection.md", r"all ([\d,]+) models of a regression") == [2 ** int(covariates)]


def test_sizes_of_the_example():
    """The script goes to a million by itself, and its benchmark to ten."""
    code = (ROOT / "examples" / "super_efficiency.py").read_text(encoding="utf-8")
    assert "sizes = [10**3, 10**4, 10**5] + ([] if args.quick else [10**6])" in code
    code = (ROOT / "tests" / "benchmarks" / "subsampling.py").read_text(encoding="utf-8")
    assert "default=[10**k for k in range(3, 8)]" in code


def test_errors_of_shards():
    """Four factors Gamma(n, 5) each, whose product is Gamma(4 (n - 1) + 1, 20): the mean is off, in its sds."""
    ten, hundred = read(
        "howto/cluster.md", r"was off by ([\d.]+) of its standard deviations, with a hundred by ([\d.]+)\."
    )
    rng = np.random.default_rng(1)
    for n, said in ((10.0, ten), (100.0, hundred)):
        truth = stats.gamma(4.0 * (n - 1.0) + 1.0, scale=1.0 / 20.0)
        found = pdmp.shards.swiss([rng.gamma(n, 0.2, size=(40_000, 1)) for _ in range(4)])
        assert (found.mean[0] - truth.mean()) / truth.std() == pytest.approx(said, abs=0.03)


def test_power_of_the_event_counts():
    """What `assert_exponential` says of its own resolution is what the page says."""
    share, events = read("evidence/laws.md", r"off by (\w+) per cent in ([\d,]+) events")
    resolution = {"one": 0.01, "two": 0.02, "three": 0.03}[share]
    gaps = stats.expon.isf((np.arange(int(events)) + 0.5) / events)  # as even as they can be
    assert_exponential(gaps, resolution=resolution)
    with pytest.raises(AssertionError, match=r"z = "):
        assert_exponential(gaps / (1.0 - resolution), resolution=resolution)
    with pytest.raises(AssertionError, match="cannot show"):
        assert_exponential(gaps[::2], resolution=resolution)


# -- words of the pages, and names of the code ---------------------------------------------------------------------


def resolve(name):
    thing = importlib.import_module(name.partition(".")[0])
    for part in name.split(".")[1:]:
        if not hasattr(thing, part) and hasattr(thing, "__path__"):  # a module that nothing imports by itself
            importlib.import_module(f"{thing.__name__}.{part}")
        thing = getattr(thing, part)
    return thing


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_page_names_exists():
    for page, file in PAGES.items():
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"(?<![\w/\"'-])((?:pdmp|discrete)(?:\.[A-Za-z_]\w*)+)(?!\.?\w*\.(?:npz|csv))", text):
            assert resolve(name) is not None, f"{page}: {name}"
        for path in re.findall(r"`((?:pdmp|discrete|tests|examples|docs)/[\w/.]*)", text):
            assert (ROOT / path).exists() or f"{path}::" in text, f"{page}: {path}"


def table_names(page):
    """Names of classes in the first columns, or lists, of the tables of a page."""
    rows = [line for line in PAGES[page].read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`([A-Z]\w+)[`(]", row)}


def test_the_reference_lists_what_is_exported():
    """Each class and function, but for two that users get and do not make or call."""
    listed, module = set(), ""
    for line in PAGES["reference/index.md"].read_text(encoding="utf-8").splitlines():
        module = line.partition("currentmodule:: ")[2] or module
        if re.fullmatch(r"   [\w.]+", line):
            listed.add(f"{module}.{line.strip()}")
            resolve(f"{module}.{line.strip()}")
    for name in {name.rpartition(".")[0] for name in listed} - {"pdmp.interfaces"}:
        package = importlib.import_module(name)
        for exported in getattr(package, "__all__", ()):
            if callable(getattr(package, exported)) and f"{name}.{exported}" not in listed:
                assert f"{name}.{exported}" in ("pdmp.models.Mode", "pdmp.models.Model")


def test_lists_of_names():
    """The tables of samplers and targets name what is exported, and all of it."""
    samplers = {n for package in (pdmp, discrete) for n in package.__all__ if is_process(getattr(package, n))}
    assert table_names("choose/samplers.md") == samplers - {"Process", "Ticking", "Brownian"}
    targets = {n for n in pdmp.models.__all__ if n[0].isupper()} - {"Mode", "Model"}
    assert table_names("choose/models.md") == targets


def is_process(thing):
    return inspect.isclass(thing) and issubclass(thing, pdmp.Process)


def own_texts(cls):
    """The texts of a class, of its module, and of those that it derives from."""
    classes = [
        c for c in cls.__mro__ if c.__module__.partition(".")[0] in ("pdmp", "discrete") and c is not pdmp.Process
    ]
    return " ".join((sys.modules[c.__module__].__doc__ or "") + (c.__doc__ or "") for c in classes)


SAMPLERS = [
    getattr(package, name)
    for package in (pdmp, discrete)
    for name in package.__all__
    if is_process(getattr(package, name)) and name not in ("Process", "Ticking", "Brownian")
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda cls: cls.__name__)
def test_texts_of_the_samplers(sampler):
    """Flow, clock, rate and jump, as lines of a table; papers; of fixed steps the bias, or that there is none."""
    text = own_texts(sampler)
    for word in ("flow", "clock", "jump"):
        assert re.search(rf"^{word}s? ", text, re.MULTILINE), word
    assert "rate" in text and re.search(r"\b(19|20)\d\d\b", text)
    if sampler.__module__.startswith("discrete."):
        assert re.search(r"\bbias|\border\b|\berrors?\b|stationary|variance|exact|converge|mode\b", text)


def test_files_of_the_samplers():
    files = [cls.__module__ for cls in SAMPLERS if cls.__module__.startswith("pdmp.")]
    assert len(files) == len(set(files)) and all(name.startswith("pdmp.processes.") for name in files)


def test_defaults_of_the_samplers():
    """The automatic step, its error of 10 %, and the splitting of SGHMC."""
    error = inspect.signature(discrete.schedules.automatic).parameters["error"].default
    assert read("choose/from_sgld.md", r"predicted error above (\d+) %") == [100.0 * error]
    assert read("howto/tuning.md", r"predicted error is below (\d+) %") == [100.0 * error]
    for cls in (discrete.SGLD, discrete.SGHMC, discrete.BAOAB, discrete.UBU, discrete.SGNHT):
        assert inspect.signature(cls).parameters["step"].default == "auto"
    assert inspect.signature(discrete.SGHMC).parameters["scheme"].default == "splitting"


def test_ways_of_drawing():
    """The words for them on the page of large data are those that are taken; there are four of mini-batches."""
    model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    with pytest.raises(ValueError, match="`draw` must be one of") as caught:
        pdmp.gradients.Minibatch(model, size=2, draw="?")
    ways = re.findall(r"'(\w+)'", str(caught.value).partition(", got")[0])
    assert len(ways) == 4 and "drawn in four ways" in " ".join(prose("choose/samplers.md").values())
    (said,) = re.findall(
        r"`pdmp.gradients.Minibatch\(model, .*?, drawn (.*?)`\"importance\"`", all_prose("howto/large_data.md")
    )
    batches, variates = said.split("control variates")
    for name, provider in (("Minibatch", batches), ("ControlVariate", variates + '"importance"')):
        named = re.findall(r'"(\w+)"', provider)
        assert named
        for draw in named:
            getattr(pdmp.gradients, name)(model, size=1, draw=draw)


def all_prose(page):
    return " ".join(prose(page).values())


def test_notation():
    """What stands in its second column is an argument of a sampler, a field of a state, or a method of a model."""
    names = set().union(*(inspect.signature(cls).parameters for cls in SAMPLERS))
    names |= set(inspect.signature(pdmp.gradients.Minibatch).parameters) | {"x", "v", "rate", "n_data", "kappa"}
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]* \|$", PAGES["reference/notation.md"].read_text(), re.MULTILINE)
    found = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    assert len(found) > 15 and set(found) - names <= {"bound", "scale"}
    assert hasattr(discrete.SGHMC, "from_h") and hasattr(discrete.SGLD, "from_sigma")


def test_the_event_loop_knows_no_sampler():
    """No module of the engine imports one, also inside of functions."""
    for path in (ROOT / "pdmp" / "engine").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"^\s*(from|import) (pdmp\.(processes|thinning|gradients|factors)|discrete)\b", text, re.MULTILINE
        )


def test_the_package_prints_nothing():
    """But the command; and no logger is configured or used."""
    names = ("print", "basicConfig", "dictConfig", "addHandler", "setLevel")
    seen = 0
    for path in [*(ROOT / "pdmp").rglob("*.py"), *(ROOT / "discrete").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if path.name == "cli.py" or not any(f"{name}(" in text for name in names):
            continue
        seen += 1
        for node in ast.walk(ast.parse(text)):  # so that examples in docstrings do not count
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
                assert called not in names, path
    assert seen > 4


def test_warnings_become_errors():
    """By the lines on the page; and not by a filter of the package's modules, to which few warnings belong."""
    first, *_ = (block.text for block in pages.blocks(PAGES["howto/messages.md"]) if block.language == "python")
    target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    with warnings.catch_warnings():
        exec(first, {})
        with pytest.raises(UserWarning, match="adapts in the warm-up only"):
            pdmp.sample(pdmp.BPS(target, metric="diagonal"), events=20, seed=1)
        with pytest.raises(UserWarning, match="was not reached"):
            pdmp.sample(pdmp.BPS(target), ess=1e6, events=20, seed=1)


# -- the command and the benchmarks --------------------------------------------------------------------------------


def test_options_of_every_command():
    commands = typer.main.get_command(cli.app).commands
    text = all_prose("howto/command.md")
    assert set(re.findall(r"\| `pdmp (\w+)", text)) == set(commands)
    for name, command in commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--seed" in options) == (name != "list") and command.get_help_option(typer.Context(command)) is not None


def test_commands_in_the_text():
    """Each `pdmp NAME --option` within a sentence is one that the program takes."""
    commands = typer.main.get_command(cli.app).commands
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for line in re.findall(r"`pdmp ([a-z][^`]*)`", text):
        name, *rest = line.split()
        options = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, line


def named_programs():
    """Programs of tests/benchmarks and scripts of examples that a page names, with the options there."""
    found = set()
    for page in PAGES.values():
        text = page.read_text(encoding="utf-8")
        for line in re.findall(r"python (?:-m )?((?:tests[./]benchmarks|examples)[^`\n)]*)", text):
            name, *rest = line.split()
            path = name if name.endswith(".py") else name.replace(".", "/") + ".py"
            found |= {(path, tuple(word for word in rest if word.startswith("--")))}
    return sorted(found)


def test_programs_take_the_options_of_the_pages():
    for path, options in named_programs():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert 'if __name__ == "__main__":' in text or path.startswith("examples/"), path
        for option in options:
            assert f'"{option}"' in text, f"{path} {option}"


BENCHMARKS = sorted(path.stem for path in (ROOT / "tests" / "benchmarks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_start(name):
    """As far as their help; a package that is not installed, of those they compare with, is named."""
    done = program(f"tests.benchmarks.{name}", "--help", folder=ROOT)
    missing = re.search(r"ModuleNotFoundError: No module named '(jax|torch|nutpie|pymc|numpyro)", done.stderr)
    if missing:
        pytest.skip(f"{missing[1]} is not installed")
    assert done.returncode == 0 and "usage: " in done.stdout, done.stderr[-1_000:]


def test_pages_run():
    """The pages that say "write" have code that `tests.site.test_pages` runs."""
    for page in ("start/paper.md", "start/gradient.md", "howto/new_model.md"):
        assert any(b.language == "python" and b.condition != "not run" for b in pages.blocks(PAGES[page]))


# -- the recorded comparison ---------------------------------------------------------------------------------------


def recorded():
    """The two tables of the page: {problem: {sampler: {column: text}}}, and their texts."""
    text = PAGES["evidence/comparison.md"].read_text(encoding="utf-8")
    tables, texts = {}, {}
    for block in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        name = re.search(r"^(\w+), [\d,]+ data passes a chain$", block, re.MULTILINE)[1]
        rows = block.partition("\nsampler ")[2].splitlines()
        rows = [re.split(r"\s{2,}", line.strip()) for line in rows[2:]]
        columns = ["sampler", "verdict", "passes", "events", "violations", "min ESS", "med ESS", "ESS/pass", "mean err"]
        tables[name] = {row[0]: dict(zip(columns, row, strict=False)) | {"setting": row[-1]} for row in rows}
        texts[name] = block
    return tables, texts


def number(text):
    return float(text.replace(",", ""))


def test_what_is_said_of_the_recorded_comparison():
    """The sentences below the tables have their figures from them."""
    tables, texts = recorded()
    text, (cancer, health) = all_prose("evidence/comparison.md"), (tables["breast_cancer"], tables["randhie"])
    passes, draws = re.search(r"from ([\d,]+) full gradients Zig-Zag gets ([\d,]+) effective draws", text).groups()
    assert (passes, draws) == (cancer["ZigZag"]["passes"], cancer["ZigZag"]["min ESS"])
    assert "about ten updates at the cost of each" in text
    assert 9.0 < number(cancer["SGLD"]["events"]) / number(passes) < 11.0
    assert "the predicted bound at one event of SBPS in nine" in text and "SBPS: pdmp.SBPS lost" in text
    assert round(number(cancer["SBPS"]["events"]) / number(cancer["SBPS"]["violations"])) == 9
    assert (
        re.search(r"batches of (\d+) data", text)[1] == re.search(r"mini-batches of (\d+)", texts["breast_cancer"])[1]
    )
    data, held_out = re.search(r"N = ([\d,]+) \(and ([\d,]+) held out\), d = 10 ", texts["randhie"]).groups()
    assert f"with {data} data and ten coordinates" in text
    assert f"{number(data) + number(held_out):,.0f} rows (`pip install" in text
    assert "BPS with full gradients has the smallest errors of the means" in text
    assert min(number(row["mean err"]) for row in health.values() if row["mean err"] != "-") == number(
        health["BPS"]["mean err"]
    )
    for table in tables.values():
        words = ["fine", "too short", "biased", "failed"]
        places = [words.index(row["verdict"]) for row in table.values()]
        assert places == sorted(places)


def test_headline_and_settings_of_the_recorded_comparison(installed):  # noqa: F811
    """The steps that `pdmp compare` chooses today are those of the table; they need no run."""
    tables, texts = recorded()
    dataset = pdmp.data.problem("breast_cancer")
    model, mode = cli._model(dataset)
    processes = comparison.configured(model, mode, cli._choose(None)[0])
    size = processes["SGLD"].provider.size
    assert f"{cli._headline(dataset, model)}; mini-batches of {size}\n" in texts["breast_cancer"]
    assert f"{cli.default_passes(model.n_data):,.0f} data passes a chain" in texts["breast_cancer"]
    found = {label: process.recipe.setting(process) for label, process in processes.items()}
    assert {label for label in tables["breast_cancer"]} - {"auto", "NUTS"} == set(found)
    said = {label: text for label, text in found.items() if text}
    assert len(said) >= 5 and {label: tables["breast_cancer"][label]["setting"] for label in said} == said


def test_what_is_said_of_the_table_beside_nuts():
    """Of the seconds, and the limits that the pages read from them."""
    text = PAGES["evidence/speed.md"].read_text(encoding="utf-8").partition("### Beside NUTS")[2]
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]*)[^|]*\| ([\d.]*)[^|]*\|", text, re.MULTILINE)
    here = {(family, int(number(n))): float(own) for family, n, own, *_ in rows}
    nuts = {(family, int(number(n))): (float(a), float(b)) for family, n, _, a, b in rows if a and b}
    assert len(here) == 9 and len(nuts) == 6
    ratios = [min(nuts[key]) / here[key] for key in nuts if key[1] == 100_000]
    assert read("evidence/speed.md", r"that is (\d+) to (\d+) times less than the faster") == [
        int(min(ratios)),
        int(max(ratios)),
    ]
    ended = re.findall(r"\| 1,000,000 \| ([\d.]+) \| not in (\d+) \|", text)
    assert read("evidence/speed.md", r"it is more than (\d+) times less, where") == [
        int(min(float(limit) / float(own) for own, limit in ended))
    ]
    assert len(ended) == 3
    for (family, n), seconds in here.items():
        assert n != 100_000 or here[family, 1_000_000] <= 3.0 * seconds
        assert n != 10_000 or (nuts[family, n][0] <= seconds) == (family != "Bernoulli")


# -- what a few numbers show ---------------------------------------------------------------------------------------


def test_a_discrepancy_hardly_sees_the_width_of_a_narrow_posterior():
    """Of 200 even quantiles of N(0, 0.01²): a mean off by half an sd is seen much better than half the width."""
    sd, n = 0.01, 200
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    right, shifted, narrow = (
        pdmp.diagnostics.ksd(x[:, None], -x[:, None] / sd**2) for x in (sd * z, sd * (z + 0.5), 0.5 * sd * z)
    )
    assert shifted > 10.0 * narrow and shifted > 10.0 * right


def test_what_is_always_in():
    model = pdmp.models.LogisticRegression([[1.0, 0.5], [0.3, -1.0], [-0.7, 0.2]], [0, 1, 1])
    run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model), inclusion=0.3, always=[0]), time=60.0, seed=1)
    found = pdmp.diagnostics.inclusion(run)
    assert found[0] == 1.0 and 0.0 < found[1] < 1.0


def drawn(monkeypatch):
    """The module that draws the pictures of the pages."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("drawings")


def test_most_proposals_of_the_picture_are_thinned(monkeypatch):
    """Of the page's process, on the page's data."""
    found = pdmp.sample(drawn(monkeypatch).predicted_process(), proposals=700, seed=3).stats
    assert found["thinned"] > 300 and found["events"]["bounce"] < 0.4 * found["thinned"]


def test_a_film_shows_what_is_known_by_then(monkeypatch):
    """Of the predicted bound: the rate so far, the proposals made, and the bound as far as the next one."""
    drawings, X = drawn(monkeypatch), np.random.default_rng(1).standard_normal((30, 2))
    batches = pdmp.gradients.Minibatch(pdmp.models.LogisticRegression(X, X[:, 0] > 0.3, prior_scale=1.0), size=6)
    found = drawings.piece(pdmp.SBPS(batches, k=2.0), drawings.PROPOSALS, seed=3)
    assert len(found.proposals) == drawings.PROPOSALS and 0 < found.accepted.sum() < 9 and found.estimated
    for now in np.linspace(found.times[0], found.times[-1], 23)[1:]:
        (t, rate), (when, _), made = drawings.until(found, now)
        assert t[-1] == now and np.all(np.diff(t) >= 0.0) and np.allclose(rate, np.interp(t, found.times, found.rates))
        assert np.array_equal(made, found.proposals <= now)
        following = found.proposals[~made].min(initial=np.inf)
        assert now <= np.nanmax(when, initial=-np.inf) + (found.times[-1] - found.times[0]) / 23
        assert np.nanmax(when) <= min(following, found.times[-1])
    (_, _), (when, level), made = drawings.until(found, found.times[-1])
    assert made.all() and np.all(level[np.isin(when, found.proposals)] > 0.0)
    assert all(at in when for at in found.proposals)


def test_marks_of_the_picture_of_thinning_are_told_apart(monkeypatch):
    """Each is a tenth of the axis at least from the line that decides, the rate, and lies below the bound."""
    drawings = drawn(monkeypatch)
    t, rate, bound, places, levels = drawings.proposed(drawings.THINNED)
    there = np.interp(places, t, rate)
    assert np.all(rate <= bound) and np.all(levels < bound[np.searchsorted(t, places)])
    assert np.min(np.abs(levels - there)) > 0.1 and (levels < there).sum() > 4 and (levels > there).sum() > 4


def test_without_refreshment_a_path_keeps_its_distance_from_the_centre():
    """BPS on a round Gaussian: x₀v₁ - x₁v₀ is the same all along, and |x| at least that by |v|; not if refreshed."""
    around = pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])
    with pytest.warns(UserWarning, match="without refreshment"):
        run = pdmp.sample(pdmp.BPS(around, refresh_rate=0.0), events=40, initial=[1.5, 0.0], seed=4)
    path = run.trajectories[0]
    x, v = path.positions, path.velocities
    momentum = x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]
    radius = abs(momentum[0]) / np.hypot(*v[0])
    assert len(x) > 30 and radius > 1.0 and np.allclose(momentum, momentum[0], rtol=1e-10)
    distance = np.hypot(*path.at(np.linspace(0.0, path.end, 4_000)).T)
    assert radius * (1.0 - 1e-9) < distance.min() < 1.01 * radius
    run = pdmp.sample(pdmp.BPS(around, refresh_rate=0.5), events=150, initial=[1.5, 0.0], seed=4)
    path = run.trajectories[0]
    assert np.hypot(*path.at(np.linspace(0.0, path.end, 4_000)).T).min() < 0.3 * radius


def test_level_sets_of_pairs():
    (said,) = re.findall(r"level sets that hold (.*?) % of them", " ".join(prose("gallery/plot_07_pairs.py").values()))
    assert [float(x) / 100.0 for x in re.findall(r"\d+", said)] == sorted(densities.MASSES)


@pytest.mark.slow
def test_the_search_of_the_picture():
    """By the code of the gallery, without drawing: what the page says of the picture's dots and lines."""
    code = (ROOT / "docs" / "gallery" / "plot_13_tuning.py").read_text(encoding="utf-8")
    space = {}
    exec(code.replace("pdmp.plots.tuning(found)", "").replace("print(found)", ""), space)
    found = space["found"]
    rounds = {r: [row for row in found.table if row["round"] == r] for r in {row["round"] for row in found.table}}
    first, last = rounds[min(rounds)], rounds[max(rounds)]
    passes, whole = read("howto/tuning.md", r"after ([\d.]+) data passes: .* Three went on to (\d+) passes")
    assert len(rounds) == 2 and len(first) == 9 and len(last) == 3
    assert all(np.isclose(row["spent"], passes, rtol=0.01) for row in first)
    assert all(np.isclose(row["spent"], whole, rtol=0.01) for row in last)
    best = min(last, key=lambda row: row["score"])
    assert best["step"] == found.best["step"]
    before = {row["step"]: row["score"] for row in first}
    assert sum(before[row["step"]] < before[best["step"]] for row in last) >= 1
    assert best["score"] < before[best["step"]]
    assert all(row["score"] > before[row["step"]] for row in last if row is not best)


def test_films_are_of_one_target(monkeypatch, tmp_path):
    """And those of Zig-Zag go along the two diagonals."""
    drawings, films = drawn(monkeypatch), {}
    monkeypatch.setattr(drawings, "animate", lambda path, end, name, *_, **__: films.update({name: path}))
    of, sample = [], pdmp.sample
    monkeypatch.setattr(pdmp, "sample", lambda process, **options: of.append(process) or sample(process, **options))
    drawings.films(tmp_path)
    assert len(of) == len(films) == 4
    assert all(getattr(process, "model", None) is drawings.TARGET for process in of)
    assert np.array_equal(np.abs(films["zigzag"].velocities), np.ones_like(films["zigzag"].velocities))


def of_the_gallery(name, picture):
    """What the code of a page of the gallery has made, without drawing it."""
    code = (ROOT / "docs" / "gallery" / f"{name}.py").read_text(encoding="utf-8")
    assert picture in code
    space = {}
    exec(re.sub(r"^pdmp\.plots\.\w+\((?:.|\n)*?^\)$|^pdmp\.plots\..*$", "", code, flags=re.MULTILINE), space)
    return space


def test_ranks_of_chains_in_two_modes():
    """Two chains stay on the left, and one on the right."""
    apart = of_the_gallery("plot_08_ranks", "pdmp.plots.ranks(apart)")["apart"]
    sides = [np.sign(path.positions[:, 0]) for path in apart.trajectories]
    assert [set(side) for side in sides] == [{-1.0}, {-1.0}, {1.0}]


def test_marginals_of_the_gallery():
    """Two chains, over the density of the target."""
    space = of_the_gallery("plot_06_marginals", "[0.0, 1.0][k], [1.0, 2.0][k]")
    assert len(space["run"].trajectories) == 2
    x = np.array([[0.3, -0.7], [-1.1, 2.0]])
    found = [-space["target"].potential(row) for row in x]
    known = stats.norm.logpdf(x, [0.0, 1.0], [1.0, 2.0]).sum(axis=1)
    assert found[0] - found[1] == pytest.approx(known[0] - known[1])


def test_what_one_looks_at_first():
    """Four pictures a coordinate: path, marginal, ranks, autocorrelation."""
    run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=60, chains=4, seed=1)
    figure = run.plot([0, 1])
    assert len(figure.axes) == 8 and "run.plot([0, 1])" in PAGES["start/index.md"].read_text(encoding="utf-8")
