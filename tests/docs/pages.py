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

from reference_text import expand  # noqa: E402

#: Every page that people read: the site's, and those at the top of the tree.
PAGES = sorted(
    [
        *DOCS.glob("*.md"),
        *DOCS.glob("how-to/*.md"),
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
    """A fenced block: what kind of text it holds, and the text."""

    kind: str
    text: str


def blocks(page: str, *kinds: str) -> list[Block]:
    """The fenced blocks of some kinds, in order."""
    found = (Block(match["kind"].strip(), match["text"]) for match in FENCE.finditer(page))
    return [block for block in found if block.kind in kinds]


def section(page: str, title: str) -> str:
    """The text under the heading `## title`, to the next heading of that level."""
    (_, _, after) = page.partition(f"\n## {title}\n")
    assert after, f"no section {title!r}"
    return after.partition("\n## ")[0]


def links(page: str) -> Iterator[str]:
    """The targets of all links and pictures outside of fenced blocks."""
    yield from (match["target"] for match in LINK.finditer(FENCE.sub("", page)))


def anchors(page: str) -> set[str]:
    """The fragments by which the headings of a page are linked to."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def published(name: str) -> str:
    """A page of the site as it is shown, the parts made from the program included."""
    return expand((DOCS / name).read_text())
