"""Bugs that make a sentence of the pages untrue: defaults, thresholds, columns, and how warnings are raised."""

from tests.mutations.bugs import Bug

CLAIMS, PAGES = "tests/site/test_claims.py", "tests/site/test_pages.py"

BUGS = [
    Bug(f"claims: {name}", file, old, new, (f"{CLAIMS}::{test}",))
    for name, file, old, new, test in [
        ("a film of another target", "docs/drawings.py", '"zigzag": (pdmp.ZigZag(TARGET), 24.0)', '"zigzag": (pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])), 24.0)', "test_films_are_of_one_target"),
        ("NUTS is slower in the recorded seconds", "docs/evidence/speed.md", "| Gaussian | 10,000 | 3.2 | 1.5 |", "| Gaussian | 10,000 | 3.2 | 3.5 |", "test_what_is_said_of_the_table_beside_nuts"),
        ("a large table takes longer in the recorded seconds", "docs/evidence/speed.md", "| Bernoulli | 1,000,000 | 3.1 |", "| Bernoulli | 1,000,000 | 9.6 |", "test_what_is_said_of_the_table_beside_nuts"),
    ]
] + [
    Bug(f"pages: {name}", file, old, new, (f"{PAGES}::{test}",))
    for name, file, old, new, test in [
        ("a line of a shell that nothing runs", "docs/howto/command.md", "python -m pdmp --version", "python3 -m pdmp --version", "test_every_line_of_a_shell_is_run"),
        ("a name without others beside it", "docs/related.py", "pdmp.thinning: Inversion RayInversion ProductInversion\n", "", "test_every_page_of_the_reference_leads_to_others"),
        ("a work that is cited is missing", "docs/reference/bibliography.md", "* Wu & Robert (2020)", "* Wu & Roberts (2020)", "test_the_bibliography_has_every_work_that_is_cited"),
        ("a work is out of its place", "docs/reference/bibliography.md", "* Rugh (1997)", "* Z. Rugh (1997)", "test_the_bibliography_is_in_order"),
    ]
]  # fmt: skip
