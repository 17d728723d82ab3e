"""Bugs in what the command says to scripts: JSON, exit codes, completion."""

from tests.mutations.bugs import Bug

BUGS = [
    Bug(f"scripts: {name}", "pdmp/cli.py", old, new, ("tests/test_scripts.py",))
    for name, old, new in [
        ("numbers that are not finite are not JSON", "isinstance(value, float) and not math.isfinite(value)", "isinstance(value, float) and math.isnan(value)"),
        ("letters are escaped", "ensure_ascii=False", "ensure_ascii=True"),
        ("an interrupted run ends well", 'if run.stopped == "interrupted":', 'if run.stopped == "failed":'),
        ("another exit code", "raise typer.Exit(130)", "raise typer.Exit(1)"),
        ("warnings are left out", '"warnings": summary.warnings,', '"warnings": [],'),
        ("inclusion is left out", '{"inclusion": inclusion or {}}', '{"inclusion": {}}'),
        ("no samplers are offered", "autocompletion=lambda: sorted(comparison.registered())", "autocompletion=lambda: []"),
        ("no problems are offered", "autocompletion=lambda: list(data.PROBLEMS)", "autocompletion=lambda: []"),
        ("lists of names alone", "first = {name: _first_line(cls) for", "first = {name: name for"),
        ("the best setting is left out", '"best": result.best, "table"', '"best": {}, "table"'),
    ]
]  # fmt: skip
