"""The scripts of examples/papers: committed results give the criteria that are said, and they run."""

import dataclasses
import json
import warnings

import pytest
from numba.core.config import DISABLE_JIT

import pdmp
from tests.examples.helpers_papers import FOLDER, load

RESULTS = FOLDER / "results"
SCRIPTS = sorted(p for p in FOLDER.glob("*.py") if not p.name.startswith("_"))
LARGEST = 200_000  #: bytes of a committed file

#: Scripts of which no long run has been made yet: there are no numbers to check.
PENDING: set[str] = set()

scripts = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
finished = pytest.mark.parametrize("path", [p for p in SCRIPTS if p.stem not in PENDING], ids=lambda path: path.stem)


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
    assert {name for claim in page.CLAIMS for name in claim.criteria} | {page.OWN} == {path.stem for path in SCRIPTS}
    for claim in page.CLAIMS:
        for name, pattern in claim.criteria.items():
            about = page.results(name)
            assert about is None or page.rows(about, pattern), f"{claim.figure}: no criterion of {name} has this label"


@pytest.mark.exact
def test_what_is_not_met_is_said_to_be(monkeypatch):
    """In each row that is not reproduced, beside the criterion, whichever it is; and in no other."""
    page = load(FOLDER / "_page.py", monkeypatch)
    for claim in page.CLAIMS:
        *_, verdict, text, _, _ = page.entry(claim)
        assert (verdict == "reproduced") == ("**not met:**" not in text), claim.figure
        for name, pattern in claim.criteria.items():
            for row in page.rows(page.results(name), pattern):
                said = page.shown(row).replace("|", "\\|")
                for part in text.split("; "):
                    if part.removeprefix("**not met:** ") == said:
                        assert part.startswith("**not met:** ") == (row["passed"] is False), (claim.figure, said)


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


@pytest.mark.exact
def test_a_reduced_run_is_no_full_run(monkeypatch):
    page = load(FOLDER / "_page.py", monkeypatch)
    row = {"what": "F1 x", "measured": "1", "criterion": "", "passed": True}
    for preset, verdict in (("reduced", "no full run yet; 1 of 1 criteria met so far"), ("full", "reproduced")):
        about = {"preset": preset, "minutes": 1, "criteria": [row]}
        monkeypatch.setattr(page, "results", lambda name, about=about: about)
        assert page.entry(page.Claim("000-F1", "", {"sepsis": "F1"}, "x"))[2] == verdict


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A study whose third piece is interrupted, with what was called, and a function that runs it."""
    common, calls = load(FOLDER / "sgd.py", monkeypatch).common, []

    def piece(name):
        def add(table, work):
            calls.append(name)
            if name == "c":
                work.checkpoint().touch()
                if calls.count("c") == 1:
                    raise KeyboardInterrupt
            table.add("F", name, 0, len(calls))

        return add

    pieces = {name: piece(name) for name in "abc"}
    study = common.Study(
        "s",
        {"seed": 1},
        {"seed": 2},
        lambda settings: pieces,
        lambda table, settings: [common.Row("F seed", f"{settings['seed']}", "", True)],
        {},
    )
    return calls, lambda *options: common.main(study, "", [*options, "--output", str(tmp_path)])


@pytest.mark.exact
def test_an_interrupted_script_is_resumed(interrupted, tmp_path):
    calls, run = interrupted
    assert run("--quick") == 130 and run("--quick") == 0
    assert calls == ["a", "b", "c", "c"]
    numbers = (tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()
    assert numbers[1:] == ["F,a,0,1,", "F,b,0,2,", "F,c,0,4,"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s.csv", "s.json"]
    assert run("--redraw") == 0
    about = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert about["settings"] == {"seed": 1} and about["preset"] == "quick" and calls[4:] == []
    assert [row["measured"] for row in about["criteria"]] == ["1"]


@pytest.mark.exact
def test_pieces_of_other_settings_are_not_resumed(interrupted, tmp_path):
    calls, run = interrupted
    assert run("--quick") == 130 and [file.name for file in tmp_path.glob("s-*.npz")] == ["s-c.npz"]
    assert run("--quick", "--set", "seed=3") == 0
    assert calls == ["a", "b", "c", "a", "b", "c"] and not list(tmp_path.glob("s-*.npz"))
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["preset"] == "reduced"


#: Settings with which each script runs to its end in seconds of plain Python; what it then finds says nothing.
SMALLEST = {
    "arrhythmia": {"splits": 1, "steps": 20, "every": 20, "draws": 1_000, "reference_events": 3, "batches": 20},
    "barker": {"runs": 1, "steps": 20, "every": 5, "data sets": 1, "runs F10": 1},
    "bnn_mamba": {"n": 100, "hidden": 2, "test": 10, "every": 12, "descent": 4, "steps F4": 3, "kept F4": 2},
    "bpmf": {"steps": 4, "chains": 1, "kept": 4},
    "every_sampler": {
        **{"posteriors": 1, "ess": 20, "reference gradients": 100, "tuning": {"Sepsis": 1}},
        "passes": {"Sepsis": [20], "Arrhythmia": [], "films": []},
    },
    "hyperboloid": {"iterations": 60, "runs": 4},
    "logistic_mamba": {
        **{"n": 500, "runs": 1, "budget": 30, "grid passes": 8, "passes": 8, "kept": 10, "every": 14, "shares": [0.1]},
        **{"scored": 5, "steps F4": 5, "passes F5": 1},
    },
    "matrix_factorisation": {"steps": 20, "points": 4, "users": 20, "timed": 1},
    "meg": {"steps": 5, "chains": 2, "kept": 5, "mixture": 120},
    "modes": {"time": 30.0, "epochs": 1, "short runs": 1},
    "pmf_mamba": {"every": 12, "steps F4": 3, "kept": 2, "descent": 4},
    "ppmf": {"rank": 2, "steps": 4, "kept": 4, "sizes": 1},
    "richardson": {
        **{"runs": 2, "steps F1a": 42, "runs F1b": 2, "steps F1b": 21, "runs F2": 2, "points": 3, "steps F2": 10},
        **{"runs F4": 2, "points F4": 3, "steps F4": 20},
    },
    "sbps": {"data F4": 1e4, "passes F4": 3, "starts": 1, "points": 50},
    "sepsis": {"steps": 20, "chains": 2, "kept": 20, "reference_events": 4},
    "sgd": {"steps": 40, "short": 40, "runs": 1, "decreasing": 20, "replicates": 2},
}
#: Of the longest scripts some pieces run: what they share is tested with the logistic regression.
PIECES = {
    "bnn_mamba": ("start", "F4"),
    "every_sampler": ("Sepsis: reference", "Sepsis: BPS", "Sepsis: SGLD, rule", "Sepsis: SGLD, MAMBA"),
    "logistic_mamba": ("posterior", "F4", "M-KSD, whitened SGHMC", "grid SGLD-CV"),
    "pmf_mamba": ("F4",),
    "sbps": ("F4, n = 50",),
}


def few(*args, **options):
    """Ratings in place of MovieLens."""
    return pdmp.data.synthetic_ratings(120, 160, 1_200, stars=(1, 5, 1), seed=0)


#: Generated data in place of the published ones, of the same kind and fewer.
DATA = {
    "sepsis": lambda: pdmp.data.synthetic_sepsis(300),
    "arrhythmia": lambda seed: pdmp.data.synthetic_arrhythmia(120, 63, seed=seed),
    "meg": lambda: pdmp.data.synthetic_meg(200),
    "mnist": lambda: pdmp.data.synthetic_mnist(300, 20, side=4),
    "movielens_100k": few,
    "movielens_1m": few,
}


@pytest.mark.exact
@pytest.mark.slow
@pytest.mark.skipif(not DISABLE_JIT, reason="compiling takes minutes, and plain Python shows the same")
@scripts
def test_at_its_smallest(path, tmp_path, monkeypatch):
    """To its end, with its pictures; some of the pieces of the longest ones."""
    for name, generated in DATA.items():
        monkeypatch.setattr(pdmp.data, name, generated)
    module = load(path, monkeypatch)
    study, chosen = module.STUDY, PIECES.get(path.stem)
    if chosen:
        some = dataclasses.replace(study, pieces=lambda s: {name: study.pieces(s)[name] for name in chosen})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table, _ = module.common.run_pieces(some, study.quick | SMALLEST[path.stem], tmp_path)
        assert table.points
        return
    settings = [f"{name}={value}" for name, value in SMALLEST[path.stem].items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = module.common.main(study, "", ["--quick", "--output", str(tmp_path), "--set", *settings])
    assert code in (0, 1)
    written = {file.name for file in tmp_path.iterdir()}
    assert {f"{path.stem}.csv", f"{path.stem}.json"} <= written
    assert len([name for name in written if name.endswith(".png")]) == len(study.pictures)
    assert not any("partial" in name or name.endswith(".npz") for name in written)
