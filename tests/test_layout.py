"""The shape of the project: what lies where, what may import what, and that importing the package is cheap."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "pdmp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
OTHER = "discrete"
HEAVY = ("matplotlib", "networkx", "sklearn", "arviz", "arviz_stats", "arviz_base", "pandas", "statsmodels", "typer")


def imported(path):
    """Names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_top_level():
    allowed = {"pyproject.toml", "pdmp", OTHER, "tests", "examples", "README.md", "LICENSE"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    found = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    assert {name for name in found if not name.startswith(".")} <= allowed


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_framework_does_not_know_the_fixed_step_package(path):
    assert not any(name.split(".")[0] == OTHER for name in imported(path))
    assert not re.search(rf"\b{OTHER}\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["engine/scheduler", "process", "native/classes", "engine/recording", "engine/chain"])
def test_the_core_imports_no_sampler_and_no_model(name):
    modules = set(imported(PACKAGE / f"{name}.py"))
    assert not any(m.startswith(("pdmp.processes", "pdmp.models", "pdmp.thinning")) for m in modules)


def test_what_is_cached_takes_a_kernel():
    """The name of a kernel's type holds the fingerprint without which the disk cache would go stale."""
    kernels = {"process", "model", "provider", "flow", "kernel"}
    found = 0
    for path in [*SOURCES, *(ROOT / OTHER).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            if "entry" in names:
                found += 1
                assert kernels & {a.arg for a in node.args.args}, f"{path.name}: {node.name}"
    assert found >= 3
    for path in SOURCES:
        if path != PACKAGE / "native" / "classes.py":
            assert "cache=True" not in path.read_text(encoding="utf-8"), path


def test_import_is_light():
    code = f"import sys, pdmp; print([m for m in {(*HEAVY, 'scipy.optimize')!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_lazy_attributes():
    code = (
        "import pdmp; from pdmp.comparison import reference; import types; "
        "assert callable(pdmp.compare) and callable(pdmp.reference) and pdmp.reference is reference; "
        "assert all(isinstance(getattr(pdmp, m), types.ModuleType) for m in ('plots', 'data', 'diagnostics')); "
        "assert {'plots', 'compare'} <= set(dir(pdmp))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_unknown_attribute():
    import pdmp

    with pytest.raises(AttributeError, match="no attribute 'plotz'"):
        pdmp.plotz  # noqa: B018


def test_files_outside_the_fingerprint_are_imported_by_nothing_compiled():
    from pdmp.native.classes import NEVER_COMPILED

    assert {path.name for path in PACKAGE.iterdir()} >= NEVER_COMPILED
    outside = {f"pdmp.{name.removesuffix('.py')}" for name in NEVER_COMPILED}
    for path in SOURCES:
        part = path.relative_to(PACKAGE).parts[0]
        if part not in NEVER_COMPILED | {"__init__.py"}:
            assert not any(name == o or name.startswith(f"{o}.") for name in imported(path) for o in outside), path
        elif part in NEVER_COMPILED:
            assert "pdmp.native.classes" not in set(imported(path)), path
