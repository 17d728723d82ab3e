"""The scripts of examples/papers: committed results give the criteria that are said, and ``--quick`` runs."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "papers"
RESULTS = FOLDER / "results"
SCRIPTS = sorted(p for p in FOLDER.glob("*.py") if not p.name.startswith("_"))
LARGEST = 200_000  #: bytes of a committed file

#: Scripts of which no long run has been made yet: there are no numbers to check.
PENDING = {
    "barker", "bnn_mamba", "hyperboloid", "logistic_mamba", "matrix_factorisation", "meg", "modes", "pmf_mamba", "ppmf",
    "richardson", "sbps", "sgd",
}  # fmt: skip

scripts = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
finished = pytest.mark.parametrize("path", [p for p in SCRIPTS if p.stem not in PENDING], ids=lambda path: path.stem)


def load(path, monkeypatch):
    """The script as a module; its folder is where it imports from, as when it runs by itself."""
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"paper_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(path):
    about = json.loads((RESULTS / f"{path.stem}.json").read_text(encoding="utf-8"))
    return about, RESULTS / f"{path.stem}.csv"


@pytest.mark.exact
def test_what_is_pending_is_a_script_without_results():
    assert PENDING <= {path.stem for path in SCRIPTS}
    assert not [name for name in PENDING if (RESULTS / f"{name}.json").exists()]


@pytest.mark.exact
@finished
def test_criteria_follow_from_the_committed_numbers(path, monkeypatch):
    module = load(path, monkeypatch)
    about, numbers = results(path)
    table = module.common.Table.read(numbers)
    rows = [row._asdict() for row in module.common.criteria(module.STUDY, table, about["settings"])]
    assert rows == about["criteria"]
    for row in rows:
        assert row["passed"] is not False or row["evidence"], f"{row['what']}: failed, and nothing says why"
    assert any(row["passed"] is not None for row in rows)


@pytest.mark.exact
@finished
def test_results_say_where_they_are_from(path, monkeypatch):
    study = load(path, monkeypatch).STUDY
    about, numbers = results(path)
    assert about["script"] == path.name and study.name == path.stem
    assert about["preset"] in ("full", "reduced"), "results of --quick are not results"
    assert set(about["settings"]) == set(study.full) and "seed" in study.quick
    assert (about["preset"] == "full") == (about["settings"] == json.loads(json.dumps(study.full)))
    for what in ("commit", "machine", "date", "versions", "minutes"):
        assert about[what]
    pictures = [RESULTS / f"{path.stem}{'_' if suffix else ''}{suffix}.png" for suffix in study.pictures]
    assert all(1_000 < file.stat().st_size < LARGEST for file in [numbers, *pictures])


@pytest.mark.exact
def test_the_page_says_what_the_results_say(monkeypatch):
    page = load(FOLDER / "_page.py", monkeypatch)
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python examples/papers/_page.py"
    figures = [claim.figure for claim in page.CLAIMS]
    assert len(figures) == len(set(figures)) == 45 and {name[:3] for name in figures} == set(page.PAPERS)
    assert {name for claim in page.CLAIMS for name in claim.criteria} == {path.stem for path in SCRIPTS}
    for claim in page.CLAIMS:
        for name, pattern in claim.criteria.items():
            about = page.results(name)
            assert about is None or page.rows(about, pattern), f"{claim.figure}: no criterion of {name} has this label"


@pytest.mark.exact
@pytest.mark.parametrize(
    "judged, missing, expected",
    [
        ([True, True], [], "reproduced"),
        ([True, False], [], "partly: 1 of 2"),
        ([False], [], "not reproduced"),
        ([], [], "no verdict"),
        ([True, False], ["a", "b"], "no full run yet; 1 of 2 criteria met so far"),
        ([True], ["b"], "no full run yet of b; 1 of 1 criteria met so far"),
        ([], ["a", "b"], "no full run yet"),
    ],
)
def test_outcomes_of_the_page(judged, missing, expected, monkeypatch):
    assert load(FOLDER / "_page.py", monkeypatch).outcome(judged, missing, 2) == expected


@scripts
def test_quick(path, tmp_path):
    """To its end, with its pictures; a criterion may fail only where the script says why."""
    if not os.environ.get("PDMP_DATA"):
        pytest.skip("needs PDMP_DATA")
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "0",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path), "--quick", "--output", str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1_800,
    )
    failed = [line for line in done.stdout.splitlines() if line.rstrip().endswith(("FAIL", "not reproduced"))]
    assert not any(line.rstrip().endswith("FAIL") for line in failed), done.stdout[-4_000:]
    assert done.returncode == int(bool(failed)), done.stdout[-2_000:] + done.stderr[-2_000:]
    written = {file.name for file in tmp_path.iterdir()}
    assert {f"{path.stem}.csv", f"{path.stem}.json"} <= written
    assert any(name.endswith(".png") for name in written)
    assert not any("partial" in name for name in written)
