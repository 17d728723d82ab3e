"""Every block of code on every page runs, and every command on it is one that the program takes."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import pdmp
from tests.forked import program
from tests.site import pages

ROOT = pathlib.Path(__file__).parents[2]
WRITTEN = {"_build", "generated", "scripts", "pictures"}  #: by the build
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if not WRITTEN & set(p.relative_to(ROOT).parts))
OWN = "contributing"  #: its code has tests of its own
CODE = [
    page
    for page in [*PAGES, ROOT / "README.md"]
    if any(b.language == "python" for b in pages.blocks(page)) and page.stem != OWN
]
SHELL = [(page, line) for page in [*PAGES, ROOT / "README.md"] for b in pages.blocks(page) if b.language == "sh"
         for line in b.text.splitlines()]  # fmt: skip
COMMANDS = [(page, line) for page, line in SHELL if line.startswith(("pdmp ", "python -m pdmp "))]


def names(page):
    return page.relative_to(ROOT / "docs").as_posix() if page.is_relative_to(ROOT / "docs") else page.name


@pytest.mark.exact
@pytest.mark.slow
@pytest.mark.parametrize("page", CODE, ids=names)
def test_its_code_runs(page, tmp_path):
    """In a process of its own, in plain Python, with small numbers."""
    done = program("tests.site.pages", page, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]
    skip_what_was_left_out(done.stdout)


def skip_what_was_left_out(said):
    """The rest of the page has run; that a block has not, as its package is absent, is seen in the report."""
    absent = re.findall(r"[\w.]+:\d+: needs [\w.]+", said)
    if absent:
        pytest.skip("; ".join(absent))


def test_the_first_posterior():
    """The table on the first page is that of its code, compiled, up to the Monte Carlo errors on another processor."""
    blocks, space = pages.blocks(ROOT / "docs" / "start" / "index.md"), {}
    code, said = (next(b.text for b in blocks if b.language == kind) for kind in ("python", "text"))
    exec(code.replace("run.plot([0, 1])", ""), space)
    head, *rows = (line.split() for line in said.splitlines())
    found = space["run"].summary()
    assert ["name", *head] == list(found.COLUMNS) and [row[0] for row in rows] == [row["name"] for row in found.rows]
    for row, one in zip(rows, found.rows, strict=True):
        shown = dict(zip(head, map(float, row[1:]), strict=True))
        for name, width in (("mean", 4.0), ("2.5%", 15.0), ("97.5%", 15.0)):
            assert abs(shown[name] - one[name]) < width * one["mcse"]
        assert shown["sd"] == pytest.approx(one["sd"], rel=0.15) and 400 <= shown["ess"] < 4.0 * one["ess"]
        assert shown["mcse"] == pytest.approx(one["mcse"], rel=0.5) and shown["rhat"] <= 1.05


@pytest.mark.exact
def test_what_is_left_out_is_skipped():
    with pytest.raises(pytest.skip.Exception, match=r"^jax.md:5: needs jax; jax.md:24: needs numpyro$"):
        skip_what_was_left_out(
            "docs/start/jax.md: jax.md:5: needs jax; jax.md:24: needs numpyro; a.md:3: not run slow\n"
        )
    skip_what_was_left_out("docs/start/jax.md: a.md:3: not run slow\n")
    skip_what_was_left_out("docs/start/jax.md: all\n")


@pytest.mark.exact
def test_pages_that_need_a_package_run_where_it_is():
    """Each in the step of the checks that has it; Stan is among the packages of the tests."""
    checks = ROOT / ".ci" / "run"  # not in the copies in which bugs are planted
    if not checks.exists():
        pytest.skip("no .ci here")
    text = checks.read_text(encoding="utf-8")
    installed = set(re.search(r'install "\$work/extras/bin/python" "\$wheel\[([\w,]+)\]"', text)[1].split(","))
    extras = text.partition('"$work/extras/bin/python" -m pytest')[2].partition("\n}")[0]
    run = re.search(r'test_pages\.py::test_its_code_runs\[start/"\{([\w,]+)\}"\.md\]', extras)[1].split(",")
    needing = {b.value: names(page) for page in CODE for b in pages.blocks(page) if b.condition == "needs"}
    assert needing.pop("stanli") and {"pymc", "jax", "numpyro"} == needing.keys() <= installed
    assert set(needing.values()) == {f"start/{name}.md" for name in run}


@pytest.mark.exact
def test_blocks_are_found_with_their_conditions(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "text\n```python\na = 1\n```\n<!-- needs: no_such_package -->\n```python\na = 2\n```\n```sh\npdmp\n```\n"
    )
    assert [(b.language, b.condition, b.value, b.line) for b in pages.blocks(page)] == [
        ("python", "", "", 3),
        ("python", "needs", "no_such_package", 7),
        ("sh", "", "", 10),
    ]
    assert pages.run(page) == ["page.md:7: needs no_such_package"]


@pytest.mark.exact
def test_an_error_on_a_page_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nundefined\n```\n")
    with pytest.raises(NameError):
        pages.run(page)


@pytest.mark.exact
@pytest.mark.parametrize("page, command", COMMANDS, ids=lambda value: value if isinstance(value, str) else names(value))
def test_its_commands_have_these_options(page, command):
    """Each option on the page is one of the command's."""
    import typer

    from pdmp.cli import app

    _, name, *rest = shlex.split(command.removeprefix("python -m "))
    group = typer.main.get_command(app)
    known = group if name.startswith("-") else group.commands[name]
    rest += [name] if known is group else []
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def write_tables(folder):
    """What the commands on the pages read."""
    rng = np.random.default_rng(1)
    age, clinic, treated = rng.normal(40.0, 10.0, 300), rng.integers(0, 8, 300), rng.integers(0, 2, 300)
    effects = rng.normal(0.0, 0.3, 8)
    visits = rng.poisson(np.exp(0.2 + 0.01 * age + 0.2 * treated + effects[clinic]))
    rows = zip(visits, age, treated, clinic, strict=True)
    lines = "".join(f"{v},{a:.1f},{t},c{c}\n" for v, a, t, c in rows)
    (folder / "visits.csv").write_text("visits,age,treated,clinic\n" + lines)
    lines = "".join(f"{a:.1f},{v},{t}\n" for v, a, t in zip(visits, age, treated, strict=True))
    (folder / "table.csv").write_text("age,visits,column\n" + lines)
    (folder / "new.csv").write_text("age,treated,clinic\n30,0,c1\n50,1,c2\n")


#: `pdmp compare` without options is run by `.ci/run` itself; the others repeat a command with other options.
FOR_RELEASES = ("pdmp compare", "pdmp sample BPS", 'pdmp fit "visits ~ age" ')


def compiled_command(page, line):
    marks = [pytest.mark.release] * line.startswith(FOR_RELEASES)
    return pytest.param(page, line, id=f"{names(page)}: {line}", marks=marks)


@pytest.mark.parametrize(("page", "command"), [compiled_command(page, line) for page, line in COMMANDS])
def test_its_commands_run(page, command, tmp_path):
    """As they are written, in a shell; compiled."""
    if " fit " in command:
        pytest.importorskip("formulae")
    write_tables(tmp_path)
    done = subprocess.run(
        re.sub("^(python -m )?pdmp", f"{shlex.quote(sys.executable)} -m pdmp", command),
        shell=True,
        cwd=tmp_path,
        env=os.environ
        | {"MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    for file in re.findall(r"\S+\.(?:npz|html|json)\b", command):
        assert (tmp_path / file).stat().st_size > 1_000


@pytest.mark.exact
def test_every_line_of_a_shell_is_run():
    """Here; what installs by `.ci/run`. The README has no block whose language is not said."""
    others = [line for page, line in SHELL if (page, line) not in COMMANDS]
    assert "python -m pdmp --version" in [line for _, line in COMMANDS]
    assert any("pdmp compare" in line for line in others) and all(line.startswith("pip install ") for line in others)
    fences = re.findall(r"^```(.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert fences and all(fences[::2]) and not any(fences[1::2])


@pytest.mark.exact
def test_every_page_is_reached():
    """Each page is in the table of contents of another."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for page in PAGES:
        if page.name != "index.md":
            assert f"\n{page.stem}\n" in text or f"/{page.stem}\n" in text, f"{page} is in no table of contents"


#: "Welling & Teh (2011)", "(Li et al., 2016": the last author, or the first of several, and the year.
CITED = re.compile(r"([A-Z][\w’'-]+)( et al\.)?,? \(?((?:19|20)\d\d)\b(?!-)")
JOURNALS = ("Xpress",)  #: with a year behind them


def works():
    """The entries of the bibliography: (authors, year)."""
    text = (ROOT / "docs" / "reference" / "bibliography.md").read_text(encoding="utf-8")
    return re.findall(r"^\* (.*?) \(((?:19|20)\d\d)\), [^\n]+\.$|^\* (.*)$", text, re.MULTILINE)


@pytest.mark.exact
def test_the_bibliography_has_every_work_that_is_cited():
    """In a docstring or a comment of a module."""
    listed, missing, seen = works(), set(), 0
    for path in [*(ROOT / "pdmp").rglob("*.py"), *(ROOT / "discrete").rglob("*.py")]:
        text = " ".join(re.sub(r"^\s*#:?", "", line) for line in path.read_text(encoding="utf-8").splitlines())
        for name, several, year in CITED.findall(" ".join(text.split())):
            seen += 1
            place = rf"^(?:\w\. )*{name}\b" if several else rf"\b{name}$"
            if name not in JOURNALS and not any(re.search(place, who) and when == year for who, when, _ in listed):
                missing.add(f"{path.relative_to(ROOT)}: {name}{several} ({year})")
    assert seen > 150 and not missing, "\n".join(sorted(missing))


@pytest.mark.exact
def test_the_bibliography_is_in_order():
    """Each with authors, year and title, once, by the name of the first author."""
    listed = works()
    assert len(listed) > 100 and not [rest for *_, rest in listed if rest]
    assert len(set(listed)) == len(listed)
    firsts = [re.sub(r"\W", "", re.split(r", | & | et al", who)[0].replace("ø", "o")).lower() for who, *_ in listed]
    assert firsts == sorted(firsts)


@pytest.mark.exact
def test_the_gallery_has_every_picture():
    """Of `pdmp.plots`; the pages are run when the site is built, and an error there ends the build."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "gallery").glob("plot_*.py"))
    text = text.replace("run.plot(", "pdmp.plots.overview(")
    assert [name for name in pdmp.plots.__all__ if f"pdmp.plots.{name}(" not in text] == ["report"]


@pytest.mark.exact
def test_every_script_of_the_examples_has_a_page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import scripts

    (tmp_path / "gone.md").touch()
    scripts.write_all(tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert len(scripts.scripts()) > 20 and not (tmp_path / "gone.md").exists()
    for path in scripts.scripts():
        (told,) = re.findall(rf"^\| \[{path.stem}\]\({path.stem}\.md\) \| (.*) \|$", index, re.MULTILINE)
        assert len(told) > 20
        page = (tmp_path / f"{path.stem}.md").read_text(encoding="utf-8")
        assert f"\n{path.stem}\n" in index and f"literalinclude}} ../../{path.relative_to(ROOT)}\n" in page
        first = int(page.partition(":lines: ")[2].partition("-")[0])
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[first - 3].endswith('"""') and lines[first - 1].startswith(("import ", "from "))
    shown = (tmp_path / "sepsis.md").read_text(encoding="utf-8")
    assert (
        len(re.findall(r"^!\[.{40,}\]\(.*sepsis_\w+\.png\)$", shown, re.MULTILINE)) == 3
        and "\n```sh\npython examples/papers/sepsis.py" in shown
    )
    assert "![" not in (tmp_path / "own_model.md").read_text(encoding="utf-8")  # it draws nothing


@pytest.mark.exact
def test_the_page_of_the_papers_links_to_pages_of_scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import scripts

    folder = ROOT / "examples" / "papers"
    text = scripts.linked((folder / "README.md").read_text(encoding="utf-8"))
    to = re.findall(r"\]\(([^)]*)\)", text)
    named = {link.removeprefix("../scripts/").removesuffix(".md") for link in to if link.startswith("../scripts/")}
    assert named == {path.stem for path in folder.glob("[!_]*.py")} and ".py)" not in text
    others = {link for link in to if not link.startswith("../scripts/")}
    assert others and all((ROOT / "docs" / "evidence" / link).is_file() for link in others)


@pytest.mark.exact
def test_pictures_of_scripts_are_described(monkeypatch):
    """All of them, each in words of its own, and nothing that is not there any more."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import scripts

    there = {picture.stem for path in scripts.scripts() for picture in scripts.pictures(path)}
    told = scripts.descriptions()
    assert set(told) == there and len(set(told.values())) == len(told)
    assert all(len(text.split()) > 8 and "]" not in text for text in told.values())


@pytest.fixture
def related(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import related

    return related


@pytest.mark.exact
def test_every_page_of_the_reference_leads_to_others(related):
    """By its docstring, or to two to five names of its groups; all of them have pages."""
    listed = related.listed()
    assert len(listed) == len(set(listed)) > 240
    of_groups = [name for group in related.groups() for name in group]
    assert set(of_groups) <= set(listed) and all(len(group) == len(set(group)) > 1 for group in related.groups())
    for name in listed:
        found = related.beside(name)
        assert 2 <= len(found) == len(set(found)) <= related.MOST and name not in found, name


@pytest.mark.exact
def test_what_a_docstring_leads_to_is_kept(related):
    lines = ["Bouncy.", "", "See Also", "--------", "pdmp.ZigZag : Another."]
    related.add(None, "class", "pdmp.BPS", None, None, lines)
    assert len(lines) == 5
    lines = ["Bouncy."]
    related.add(None, "class", "pdmp.BPS", None, None, lines)
    assert lines[1:4] == ["", "See Also", "--------"] and lines[4].split(", ") == related.beside("pdmp.BPS")
    lines = ["A method."]
    related.add(None, "method", "pdmp.BPS.clock", None, None, lines)
    assert lines == ["A method."]


@pytest.fixture
def images(monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import images

    return images


@pytest.mark.exact
def test_pictures_of_the_gallery_are_described(images):
    names = {path.stem.removeprefix("plot_") for path in (ROOT / "docs" / "gallery").glob("plot_*.py")}
    assert {re.sub(r"_\d{3}$", "", name) for name in images.GALLERY} == names
    first = images.described("../_images/sphx_glr_plot_12_comparison_001.png")
    second = images.described("../_images/sphx_glr_plot_12_comparison_002.png")
    assert first.startswith("Errors of the means") and second.startswith("Paths of three samplers")
    assert images.described("../_images/sphx_glr_plot_07_pairs_001.png") == images.GALLERY["07_pairs"]
    assert images.described("../_images/thinning.png") == ""


@pytest.mark.exact
def test_wide_pictures_scroll_and_narrow_ones_do_not(images, tmp_path):
    """At 110 pixels an inch where there is room, and 86 at least, at which 7.5 points are 9 pixels."""
    from PIL import Image

    for name, pixels, dpi in (("wide", 2_000, 200), ("narrow", 800, 200), ("sphx_glr_plot_07_pairs_001", 1_100, None)):
        Image.new("RGB", (pixels, 10)).save(tmp_path / f"{name}.png", **({"dpi": (dpi, dpi)} if dpi else {}))
    wide, narrow, pairs = (
        images.improved(f'<img alt="a" src="_images/{name}.png" />', tmp_path / f"{name}.png")
        for name in ("wide", "narrow", "sphx_glr_plot_07_pairs_001")
    )
    assert wide.startswith('<a class="scrolls" href="_images/wide.png"><img style="width: min(100%, 1100px); min-')
    assert "; min-width: 860px; max-width: none" in wide and images.LEAST * 7.5 / 72.0 > 8.9
    assert narrow == '<img style="width: min(100%, 440px)" alt="a" src="_images/narrow.png" />'
    assert images.GALLERY["07_pairs"].split(",")[0] in pairs and "min-width: 860px" in pairs
    film = images.improved('<img alt="a" src="_images/bps.gif" />', tmp_path / "bps.gif")
    assert 'reduce)" srcset="_images/bps.png" /><img' in film and film.startswith("<picture>")
    assert images.improved('<img alt="" src="x_thumb.png" />', tmp_path / "x.png") == '<img alt="" src="x_thumb.png" />'
