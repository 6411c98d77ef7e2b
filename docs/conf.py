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

extensions = ["myst_parser", "reference_directives"]
exclude_patterns = ["_build", "_ext", "performance"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "berth"
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "native"
