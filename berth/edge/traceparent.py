# SPDX-License-Identifier: Apache-2.0
"""The `traceparent` header, with which callers pass on the trace that a request belongs to.

Source: W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context-1/), sections 3.2 and 4.
"""

from __future__ import annotations

import re
from typing import Final

#: Version, trace id, parent id and flags; later versions may append something.
_FORM: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-"
    r"[0-9a-f]{2}(?P<more>-.*)?"
)


def trace_id_of(header: str) -> str | None:
    """The trace id of a header; None if the header is invalid, and must be ignored."""
    form = _FORM.fullmatch(header.strip(" \t"))
    if form is None or (form["version"] == "00" and form["more"] is not None):
        return None
    return form["trace"]
