"""Formulas as MathML, which browsers draw by themselves: no script is fetched."""

from docutils import nodes
from latex2mathml.converter import convert


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
