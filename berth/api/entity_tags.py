# SPDX-License-Identifier: Apache-2.0
"""Entity tags: the preconditions `If-Match` and `If-None-Match` (RFC 9110, 13.1)."""

from __future__ import annotations

from berth.api.request import Request


def holds_if_none_match(request: Request, tag: str | None) -> bool:
    """Whether the client has not this one already; weak tags count.

    Args:
        tag: of what the path names; None if it does not exist.
    """
    header = request.env.get("HTTP_IF_NONE_MATCH")
    return not header or tag is None or not matches(header, tag, is_weak_equal=True)


def holds_if_match(request: Request, tag: str | None) -> bool:
    """Whether this is the one that the client has seen, if it says; weak tags do not count."""
    header = request.env.get("HTTP_IF_MATCH")
    if header is None:
        return True
    return tag is not None and matches(header, tag, is_weak_equal=False)


def matches(header: str, tag: str, *, is_weak_equal: bool) -> bool:
    """Whether a list of entity tags has one, or is `*`."""
    tags = [item.strip() for item in header.split(",")]
    if is_weak_equal:
        tags = [item.removeprefix("W/") for item in tags]
    return "*" in tags or tag in tags


def insists_on_new(request: Request) -> bool:
    """Whether the client wants to create, and to replace nothing: `If-None-Match: *`."""
    return not holds_if_none_match(request, "*")
