# SPDX-License-Identifier: Apache-2.0
"""Waits until the page knows of a change that no view needs to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.page.browser import Browser

_ANSWERS = """
    return performance.getEntriesByType("resource")
        .filter(({ name }) => name.includes("/changes")).length
"""


@contextmanager
def known_to(browser: Browser) -> Iterator[None]:
    """Wait until the page has had an answer about a change that was made in the block."""
    before: int = browser.script(_ANSWERS)
    yield
    browser.until(lambda: browser.script(_ANSWERS) > before or None, "the page knows of a change")
