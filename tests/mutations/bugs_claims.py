"""Bugs that make a sentence of the pages untrue: defaults, thresholds, columns, and how warnings are raised."""

from tests.mutations.bugs import Bug

CLAIMS, PAGES, IMAGES = "tests/site/test_claims.py", "tests/site/test_pages.py", "docs/images.py"
RUN, SUMMARY, CLI = "pdmp/engine/run.py", "pdmp/diagnostics/summary.py", "pdmp/cli.py"

BUGS = [
    Bug(f"claims: {name}", file, old, new, (f"{CLAIMS}::{test}",))
    for name, file, old, new, test in [
        ("half of the effective draws by default", "pdmp/automatic/sampling.py", "= 400, 1.05, 100_000", "= 200, 1.05, 100_000", "test_defaults_of_a_run"),
        ("another R-hat by default", "pdmp/automatic/sampling.py", "= 400, 1.05, 100_000", "= 400, 1.5, 100_000", "test_defaults_of_a_run"),
        ("fewer draws without a warning", SUMMARY, "FEW = 400.0", "FEW = 40.0", "test_thresholds_of_warnings"),
        ("a larger R-hat without a warning", SUMMARY, "LARGE = 1.05", "LARGE = 1.5", "test_thresholds_of_warnings"),
        ("columns of a summary in another order", SUMMARY, '("name", "mean", "sd", "2.5%", "97.5%", "mcse", "ess", "rhat")', '("name", "mean", "mcse", "2.5%", "97.5%", "sd", "ess", "rhat")', "test_columns_of_the_summary"),
        ("checkpoints every five minutes", "pdmp/engine/checkpoint.py", "CHECKPOINT_SECONDS = 30.0", "CHECKPOINT_SECONDS = 300.0", "test_seconds"),
        ("segments of a minute", "pdmp/engine/executors.py", "SEGMENT_SECONDS = 5.0", "SEGMENT_SECONDS = 60.0", "test_seconds"),
        ("tables are sub-sampled later", "pdmp/formulas/fitting.py", "SUBSAMPLED_ROWS = 50_000", "SUBSAMPLED_ROWS = 500_000", "test_sizes_of_tables"),
        ("larger files are read at once", "pdmp/formulas/batches.py", "LARGE_FILE = 2**28", "LARGE_FILE = 2**30", "test_sizes_of_tables"),
        ("automatic steps with twice the error", "discrete/schedules.py", "def automatic(error: float = 0.1)", "def automatic(error: float = 0.2)", "test_defaults_of_the_samplers"),
        ("SGHMC is explicit by default", "discrete/sghmc.py", 'scheme: str = "splitting",\n        refresh_every: int | None = None,\n        noise_estimate', 'scheme: str = "explicit",\n        refresh_every: int | None = None,\n        noise_estimate', "test_defaults_of_the_samplers"),
        ("a sampler more in comparisons", "pdmp/processes/boomerang.py", "recipe = Recipe(featured=False)", "recipe = Recipe()", "test_samplers_of_a_comparison"),
        ("steps of a comparison with half the error", "pdmp/comparison.py", "STEP_ERROR = 0.1", "STEP_ERROR = 0.05", "test_headline_and_settings_of_the_recorded_comparison"),
        ("fewer data passes by default", CLI, "TERMS / n_data, LEAST_PASSES", "0.1 * TERMS / n_data, LEAST_PASSES", "test_headline_and_settings_of_the_recorded_comparison"),
        ("fits have no seed", CLI, '    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,\n    save: Annotated[\n        pathlib.Path | None, typer.Option(metavar="RUN.npz", help="Keep the run; pdmp.load reads it.")\n    ] = None,\n    picture', '    sede: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,\n    save: Annotated[\n        pathlib.Path | None, typer.Option(metavar="RUN.npz", help="Keep the run; pdmp.load reads it.")\n    ] = None,\n    picture', "test_options_of_every_command"),
        ("what adapts is a deprecation", RUN, "stays as it starts; give warmup=0.2, say.\")", "stays as it starts; give warmup=0.2, say.\", DeprecationWarning)", "test_warnings_become_errors"),
        ("a run prints", "pdmp/automatic/sampling.py", "    started = perf_counter()\n", "    started = perf_counter()\n    print(process)\n", "test_the_package_prints_nothing"),
        ("mini-batches: a way of drawing has gone", "pdmp/gradients/minibatch.py", '("iid", "distinct", "reshuffle", "epoch"))', '("iid", "distinct", "epoch"))', "test_ways_of_drawing"),
        ("the discrepancy leaves out the pairs", "pdmp/diagnostics/stein/kernel_discrepancy.py", "off = 2.0 * float(np.dot(weights, pairs", "off = 0.0 * float(np.dot(weights, pairs", "test_a_discrepancy_hardly_sees_the_width_of_a_narrow_posterior"),
        ("importing takes matplotlib", "pdmp/errors.py", "import numpy as np\n", "import matplotlib  # noqa: F401\nimport numpy as np\n", "test_what_the_import_imports"),
        ("the picture of thinning with another seed", "docs/drawings.py", "THINNED = 15828", "THINNED = 7", "test_marks_of_the_picture_of_thinning_are_told_apart"),
        ("a bounce turns back", "pdmp/native/velocities.py", "        c = 2.0 * along / square\n        for j in range(v.shape[0]):\n            v[j] -= c * a[j]", "        c = 2.0 * along / square\n        for j in range(v.shape[0]):\n            v[j] = -v[j]", "test_without_refreshment_a_path_keeps_its_distance_from_the_centre"),
        ("other level sets of pairs", "pdmp/plots/densities.py", "MASSES = (0.99, 0.9, 0.5)", "MASSES = (0.95, 0.9, 0.5)", "test_level_sets_of_pairs"),
        ("a film of another target", "docs/drawings.py", '"zigzag": (pdmp.ZigZag(TARGET), 24.0)', '"zigzag": (pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 1.0])), 24.0)', "test_films_are_of_one_target"),
        ("NUTS is slower in the recorded seconds", "docs/evidence/speed.md", "| Gaussian | 10,000 | 3.2 | 1.5 |", "| Gaussian | 10,000 | 3.2 | 3.5 |", "test_what_is_said_of_the_table_beside_nuts"),
        ("a large table takes longer in the recorded seconds", "docs/evidence/speed.md", "| Bernoulli | 1,000,000 | 3.1 |", "| Bernoulli | 1,000,000 | 9.6 |", "test_what_is_said_of_the_table_beside_nuts"),
        ("the gallery's marginals over another density", "docs/gallery/plot_06_marginals.py", "precision=[1.0, 0.25]", "precision=[1.0, 0.5]", "test_marginals_of_the_gallery"),
        ("chains of the gallery start in one mode", "docs/gallery/plot_08_ranks.py", "[-6.0, 0.0], [6.0, 0.0]]\n", "[-6.0, 0.0], [-6.0, 0.0]]\n", "test_ranks_of_chains_in_two_modes"),
        ("a film tells the bounds that are to come", "docs/drawings.py", "for a, b in found.bounds if a[0] <= now", "for a, b in found.bounds", "test_a_film_shows_what_is_known_by_then"),
        ("a film shows proposals before they are made", "docs/drawings.py", "found.proposals <= now", "found.proposals <= now + 0.1", "test_a_film_shows_what_is_known_by_then"),
        ("the gallery searches among fewer steps", "docs/gallery/plot_13_tuning.py", "np.geomspace(1e-4, 1e-2, 9)", "np.geomspace(1e-4, 1e-2, 6)", "test_the_search_of_the_picture"),
    ]
] + [
    Bug(f"pages: {name}", file, old, new, (f"{PAGES}::{test}",))
    for name, file, old, new, test in [
        ("wide pictures are shrunk", IMAGES, "min-width: {LEAST * inches:.0f}px", "min-width: 0px", "test_wide_pictures_scroll_and_narrow_ones_do_not"),
        ("pictures with half the pixels", IMAGES, "NORMAL, LEAST = 110, 86", "NORMAL, LEAST = 110, 43", "test_wide_pictures_scroll_and_narrow_ones_do_not"),
        ("files that do not say their resolution are thought finer", IMAGES, "DPI = 110", "DPI = 220", "test_wide_pictures_scroll_and_narrow_ones_do_not"),
        ("films move for everybody", IMAGES, "prefers-reduced-motion: reduce", "prefers-reduced-motion: no-preference", "test_wide_pictures_scroll_and_narrow_ones_do_not"),
        ("pictures of one page have one description", IMAGES, 'GALLERY.get(found[1] + (found[2] or ""))', 'GALLERY.get(found[1] + "_001")', "test_pictures_of_the_gallery_are_described"),
        ("a picture's name stands for its description", "docs/scripts.py", "![{told[p.stem]}]", "![{p.stem}]", "test_every_script_of_the_examples_has_a_page"),
        ("the page of the papers links to files", "docs/scripts.py", 'r"](../scripts/\\1.md)"', 'rf"]({PAPERS}\\1.py)"', "test_the_page_of_the_papers_links_to_pages_of_scripts"),
        ("a line of a shell that nothing runs", "docs/howto/command.md", "python -m pdmp --version", "python3 -m pdmp --version", "test_every_line_of_a_shell_is_run"),
        ("a name without others beside it", "docs/related.py", "pdmp.thinning: Inversion RayInversion ProductInversion\n", "", "test_every_page_of_the_reference_leads_to_others"),
        ("what a docstring leads to is said twice", "docs/related.py", 'if "See Also" not in lines and (', "if (", "test_what_a_docstring_leads_to_is_kept"),
        ("a work that is cited is missing", "docs/reference/bibliography.md", "* Wu & Robert (2020)", "* Wu & Roberts (2020)", "test_the_bibliography_has_every_work_that_is_cited"),
        ("a work is out of its place", "docs/reference/bibliography.md", "* Rugh (1997)", "* Z. Rugh (1997)", "test_the_bibliography_is_in_order"),
        ("scripts in a list say nothing", "docs/scripts.py", "| {summary(path)} |", "| |", "test_every_script_of_the_examples_has_a_page"),
    ]
]  # fmt: skip
