# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation: MyST Markdown, nothing fetched from elsewhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import berth

project = "berth"
author = "the berth authors"
project_copyright = "the berth authors, Apache License 2.0"
version = release = berth.__version__

extensions = [
    "myst_parser",
    "reference_directives",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_ext", "performance", "scaling"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Docstrings put code between single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

# Only commands have a copy button, and a copy leaves out the prompt and the output.
copybutton_selector = ":not(.highlight-text):not(.highlight-http) > div.highlight > pre"
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

html_static_path = ["_static"]
html_css_files = ["berth.css"]
html_theme = "furo"
html_title = "berth"
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "native"
