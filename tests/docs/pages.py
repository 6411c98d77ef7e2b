# SPDX-License-Identifier: Apache-2.0
"""The documentation as text: its pages, their fenced blocks and their links."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"

sys.path.insert(0, str(DOCS / "_ext"))

from reference_text import RENDERERS as RENDERERS  # noqa: E402
from reference_text import expand  # noqa: E402

#: Every page: those of the site, and those at the top of the tree.
PAGES = sorted(
    [
        *DOCS.glob("*.md"),
        *DOCS.glob("how-to/*.md"),
        *DOCS.glob("operating/*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "changes").glob("README.md"),
    ]
)

FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind and its text."""

    kind: str
    text: str


def blocks(page: str, *kinds: str) -> list[Block]:
    """Return the fenced blocks of some kinds, in order."""
    found = (Block(match["kind"].strip(), match["text"]) for match in FENCE.finditer(page))
    return [block for block in found if block.kind in kinds]


def section(page: str, title: str) -> str:
    """Return the text under the heading `## title`, up to the next heading of that level."""
    (_, _, after) = page.partition(f"\n## {title}\n")
    assert after, f"no section {title!r}"
    return after.partition("\n## ")[0]


def links(page: str) -> Iterator[str]:
    """Yield the targets of all links and images outside fenced blocks."""
    yield from (match["target"] for match in LINK.finditer(FENCE.sub("", page)))


def anchors(page: str) -> set[str]:
    """Return the link fragments of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def published(name: str) -> str:
    """Return a page as the site shows it, including its generated parts."""
    return expand((DOCS / name).read_text())
