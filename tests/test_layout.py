"""The shape of the project: what lies where, what may import what, and that importing the package is cheap."""

import ast
import importlib
import pathlib
import pkgutil
import re
import struct
import subprocess
import sys
import tomllib

import networkx
import pytest

import pdmp

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "pdmp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
OTHER = "discrete"
PACKAGES = ["pdmp", OTHER]
PACKAGES += [m.name for p in ("pdmp", OTHER) for m in pkgutil.walk_packages([str(ROOT / p)], f"{p}.") if m.ispkg]
HEAVY = ("matplotlib", "networkx", "sklearn", "arviz", "arviz_stats", "arviz_base", "pandas", "statsmodels", "typer")


def test_top_level():
    allowed = {"pyproject.toml", "pdmp", OTHER, "tests", "examples", "docs", "README.md", "LICENSE", "CITATION.cff"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    found = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    assert {name for name in found if not name.startswith(".")} <= allowed


def test_the_root_of_the_package_holds_what_a_newcomer_reads_first():
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    shown = {"process.py", "flow.py", "metric.py", "errors.py", "comparison.py", "cli.py"}
    assert files == shown | {"__init__.py", "__main__.py", "py.typed"}


def test_the_framework_does_not_know_the_fixed_step_package():
    """Neither imports it nor speaks of it."""
    assert len(SOURCES) > 200
    for path in SOURCES:
        assert not re.search(rf"\b{OTHER}\b", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/*/conftest.py")), ids=lambda path: path.parent.name)
def test_files_that_are_read_before_workers_know_their_kind_import_no_numba(path):
    """Where pytest is given a path in their folder: plain workers would compile."""
    imported = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {ast.unparse(node) for node in imported} <= {"import pytest", "import numpy as np"}


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions are counted; the layers are contracts of import-linter, in pyproject.toml."""
    grimp = pytest.importorskip("grimp")
    found = grimp.build_graph("pdmp", OTHER, cache_dir=None, exclude_type_checking_imports=True)
    graph = networkx.DiGraph()
    graph.add_edges_from((a, b) for a in found.modules for b in found.find_modules_directly_imported_by(a))
    assert graph.number_of_edges() > 400
    assert [sorted(part) for part in networkx.strongly_connected_components(graph) if len(part) > 1] == []


@pytest.mark.parametrize("name", PACKAGES)
def test_no_module_is_shadowed(name):
    """A function named as a submodule of the same package would hide it."""
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            here = importlib.import_module(f"{name}.{module.name}")
            assert getattr(package, module.name) is here, f"{name}.{module.name} is not the module"


@pytest.mark.parametrize("name", ["pdmp", *(p for p in PACKAGES if p.startswith("pdmp.models"))])
def test_all_names_what_is_exported(name):
    package = importlib.import_module(name)
    bound = set()
    for node in ast.walk(ast.parse(pathlib.Path(package.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("pdmp", OTHER):
            bound |= {alias.asname or alias.name for alias in node.names} - {"*"}
            if node.names[0].name == "*":
                bound |= set(importlib.import_module(node.module).__all__)
    declared = getattr(package, "__all__", [])
    assert len(declared) == len(set(declared))
    assert set(declared) == {name for name in bound if not name.startswith("_")}
    for exported in declared:
        assert getattr(package, exported) is not None


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", pdmp.__version__)
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pdmp.__version__}\n" in text
    title = re.search(r'^title: "(.+)"$', text, re.MULTILINE)[1]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"To cite it: The pdmp authors, *{title}*" in " ".join(readme.split())
    sections = re.findall(r"^## (\S+)", (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [title for title in sections if title != "Unreleased"]
    assert sections in (released, ["Unreleased", *released]) and released[0] == pdmp.__version__
    assert released == sorted(released, key=lambda title: [int(k) for k in title.split(".")], reverse=True)


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (ROOT / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f'\n  version: "{pdmp.__version__}"\n' in recipe and f'summary: "{project["description"]}"' in recipe
    declared = [f"python{project['requires-python']}", *project["dependencies"]]
    wanted = [re.sub("([<>=])", r" \1", text, count=1).replace("matplotlib ", "matplotlib-base ") for text in declared]
    assert re.findall(r"- (\S+ >=.*)", recipe.partition("\n  run:\n")[2]) == wanted
    assert any(text.startswith("pyarrow") for text in project["optional-dependencies"]["test"])  # tests of batches
    assert "- pdmp = pdmp.cli:main" in recipe and project["scripts"] == {"pdmp": "pdmp.cli:main"}


def test_what_is_cached_takes_a_compiled_object():
    """The name of such an object's type holds a fingerprint: without it, machine code on disk would be out of date."""
    # A kernel is one of Stein's; `third` is a tape; a record has addresses of code that is cached by such a type.
    compiled = {"process", "model", "provider", "flow", "alias_table", "design", "kernel", "tape", "third", "record"}
    compiled |= {"triangles"}
    found = 0
    for path in [*SOURCES, *(ROOT / OTHER).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "@entry" in text else ():
            if not isinstance(node, ast.FunctionDef):
                continue
            names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            if "entry" in names:
                found += 1
                assert compiled & {a.arg for a in node.args.args}, f"{path.name}: {node.name}"
    assert found >= 3
    for path in SOURCES:
        assert "cache=True" not in path.read_text(encoding="utf-8"), path


def test_import_is_light_and_every_public_module_is_reachable():
    late = (*HEAVY, "xarray", "tqdm", "scipy.optimize", "pdmp.engine", "pdmp.models")
    code = (
        f"import sys, types, pdmp; print([m for m in {late!r} if m in sys.modules]); "
        "from pdmp.comparison import reference; "
        "assert callable(pdmp.compare) and pdmp.reference is reference; "
        "rooms = 'automatic cli comparison data diagnostics engine errors factors flow formulas gradients '; "
        "rooms += 'interfaces models native plots process processes shards thinning tuning validation'; "
        "assert all(isinstance(getattr(pdmp, m), types.ModuleType) for m in rooms.split()); "
        "assert set(pdmp.__all__) <= set(dir(pdmp))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'plotz'"):
        pdmp.plotz  # noqa: B018


def test_what_is_run_by_name_is_there():
    """A name that pytest does not find ends the step with no test run."""
    named = re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert len(named) > 10
    for path, test in named:
        assert f"def {test}" in (ROOT / path).read_text(encoding="utf-8"), (path, test)


def test_the_picture_of_the_readme_leaves_room_for_the_text():
    """Two panels side by side; its size is at the beginning of the PNG."""
    (place,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    width, height = struct.unpack(">II", (ROOT / place).read_bytes()[16:24])
    assert width > 2.5 * height
