# SPDX-License-Identifier: Apache-2.0
"""A Sphinx directive for each renderer of `reference_text`."""

from typing import Any, ClassVar

from docutils import nodes
from reference_text import RENDERERS
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Reference(SphinxDirective):
    """Inserts the Markdown of a renderer into the page."""

    renderer: ClassVar[str]

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the rendered text, including its headings."""
        return self.parse_text_to_nodes(RENDERERS[self.renderer](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives with Sphinx."""
    for name in RENDERERS:
        app.add_directive(name, type(name, (Reference,), {"renderer": name}))
    return {"version": "1", "parallel_read_safe": True}
