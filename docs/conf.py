"""Settings of Sphinx: ``sphinx-build -W docs docs/_build``. Nothing is fetched; pictures are drawn in the build."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import drawings  # noqa: E402 - it is beside this file
import notebooks  # noqa: E402
import pdmp  # noqa: E402
import related  # noqa: E402
import scripts  # noqa: E402

project = "pdmp"
author = "the pdmp developers"
release = version = pdmp.__version__

extensions = [
    "images",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_generated", "gallery"]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "pictures",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "min_reported_time": 10_000,
}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
templates_path = ["_templates"]
default_role = (
    "py:obj"  # a name between backticks is code, and a link where it is one of ours
)
autodoc_typehints = "none"  # numpydoc's Parameters have the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True

#: Pages with their headings beside them. The others, of pictures, code and the papers' wide tables, want the room.
CONTENTS = (
    "*",
    "start/*",
    "ideas/*",
    "choose/*",
    "howto/*",
    "reference/**",
    "evidence/[!p]*",
)

smartquotes_action = "qe"  # two dashes are those of an option
html_theme = "pydata_sphinx_theme"
html_title = "pdmp"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {pages: ["page-toc"] for pages in CONTENTS},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
html_sidebars = {"index": []}
html_math_renderer = "mathml"


def _escaped(app, what, name, obj, options, lines):
    """Bars of |v| are bars: docutils takes them for substitutions."""
    literal = False
    for k, line in enumerate(lines):
        if literal and line.strip() and not line.startswith(" "):
            literal = False
        if not literal and not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[k] = "``".join(parts)
        literal = literal or line.endswith("::")


def _linked(app, docname, source):
    """The page of the papers is written beside its scripts, and pages of Start are notebooks too."""
    if docname == "evidence/papers":
        text = (HERE.parent / "examples" / "papers" / "README.md").read_text(
            encoding="utf-8"
        )
        source[0] = scripts.linked(text)
    folder, _, name = docname.partition("/")
    if folder == "start" and (HERE / "_generated" / f"{name}.ipynb").exists():
        source[0] = notebooks.offered(source[0], name)


def setup(app):
    drawings.draw_all(HERE / "_generated")
    notebooks.write_all(HERE / "_generated")
    scripts.write_all(HERE / "scripts")
    app.connect("autodoc-process-docstring", related.add, priority=100)
    app.connect("autodoc-process-docstring", _escaped)
    app.connect("source-read", _linked)
