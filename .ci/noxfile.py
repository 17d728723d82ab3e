"""The tests on other Pythons and with the oldest dependencies: ``nox -f .ci/noxfile.py``."""

import pathlib

import nox

ROOT = pathlib.Path(__file__).parents[1]
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session):
    """What a newcomer runs."""
    session.chdir(ROOT)
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11")
def oldest(session):
    """The same with the oldest version of each dependency; its deprecations are of newer ones and no errors."""
    session.chdir(ROOT)
    constraints = pathlib.Path(session.create_tmp()) / "oldest.txt"
    constraints.write_text(session.run("python", ROOT / ".ci" / "oldest.py", silent=True), encoding="utf-8")
    session.install("--constraint", str(constraints), ".[test]")
    session.run("pytest", "-W", "ignore::DeprecationWarning", *session.posargs)
