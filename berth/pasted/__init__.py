# SPDX-License-Identifier: Apache-2.0
"""What people paste to ask about it: a line of a log, a URL, a query, a command, or JSON.

One reader for `berth why`, the API's member `query` and the operator's page. It finds a request in
a text; the API checks the request.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from berth.pasted.command import command_in
from berth.pasted.query import NotReadable, is_query, query_in, query_of_groups

__all__ = ["NotReadable", "request_in"]

#: The members of a request, and those of which it has at least one.
_MEMBERS: Final = frozenset(
    {*("groups", "flavor", "query", "alternatives"), *("host", "together", "apart", "tolerate")}
)
_NEEDED: Final = ("groups", "flavor", "query", "alternatives")
#: JSON objects of a text that are tried.
_OBJECTS_MAX: Final = 3
#: A query string whose parameters the API does not have.
_NAMED: Final = re.compile(r"[^\s\"'`{}=:]+[=:][^\s\"'`{}]*")
_OBJECT: Final = re.compile(r"\{\s*\"")
_DECODER: Final = json.JSONDecoder()


def request_in(text: str) -> dict[str, Any]:
    """The request in a text: `{"query": ...}` for a query string, without all around it.

    `a=b` without a space or a quote is a query string even if nothing in it looks like one, so that
    the refusal names what is wrong with it.

    Raises:
        NotReadable: there is none; the error says what there could be.
    """
    pasted = text.strip(" \t\r\n")
    if is_query(pasted):
        return {"query": pasted}
    if request := _json_in(pasted) or command_in(pasted):
        return request
    query = query_of_groups(pasted) or query_in(pasted)
    if query is None and _NAMED.fullmatch(pasted):
        query = pasted
    if query is None:
        raise NotReadable(
            "There is no query in it. Paste a line of a log with GET /allocation_candidates?..., "
            "a line of berth.explain, a query string, a berth command, or a request in JSON"
        )
    return {"query": query}


def _json_in(text: str) -> dict[str, Any] | None:
    """The request that a JSON object in a text is, or has as `request`."""
    for match in islice(_OBJECT.finditer(text), _OBJECTS_MAX):
        with suppress(ValueError, RecursionError):
            value, _ = _DECODER.raw_decode(text, match.start())
            request = value.get("request", value)
            # Objects in logs have other members.
            if isinstance(request, dict) and _MEMBERS.issuperset(request):
                return _request_of(request)
    return None


def _request_of(request: dict[str, Any]) -> dict[str, Any] | None:
    if not any(each in request for each in _NEEDED):
        return None
    query = request.get("query")
    if not isinstance(query, str) or request.keys() - {"query", "tolerate"}:
        return request
    # What is pasted may have been pasted before.
    return {**{name: request[name] for name in request if name != "query"}, **request_in(query)}
