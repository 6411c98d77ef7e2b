# SPDX-License-Identifier: Apache-2.0
"""Requests as queries of `GET /allocation_candidates`, for services without berth's own API.

Source: spec/beyond.md 2.3: `host.required` is `root_required`, `together` at `subtree` is
`same_subtree`, and `apart` of all named groups at `provider` is `group_policy=isolate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.filters import memberships
from berth.cli.fleet.references import Labels, uuid_of

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

Pairs = Iterator[tuple[str, str]]

_MEMBERS: Final = frozenset({"groups", "host", "together", "apart"})
_OF_GROUP: Final = frozenset({"resources", "required", "member_of", "in_tree"})


def old_query(client: Client, body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The query that asks a question, or as much of one as the old route can be asked.

    Raises:
        CommandFailed: the old route has no such condition (UNSUPPORTED).
        NotThere: a provider or an aggregate does not exist.
    """
    _refuse(set(body) - {"request", "limit"})
    request = body["request"]
    if "query" in request:
        pairs = parse_qsl(request["query"], keep_blank_values=True)
        query = [(name, value) for name, value in pairs if name != "limit"]
    else:
        query = list(_of_request(client, request))
    return [*query, ("limit", str(body["limit"]))] if "limit" in body else query


def _of_request(client: Client, request: Mapping[str, Any]) -> Pairs:
    _refuse(set(request) - _MEMBERS)
    labels = Labels(client)
    for name, group in request["groups"].items():
        yield from _of_group(client, labels, name, group)
    host = request.get("host", {})
    _refuse({f"host.{name}" for name in host if name != "required"})
    if traits := host.get("required"):
        _refuse({"alternatives of host.required" for item in traits if not isinstance(item, str)})
        yield "root_required", ",".join(traits)
    named = [name for name in request["groups"] if name]
    yield from _relations(request, named)


def _of_group(client: Client, labels: Labels, name: str, group: Mapping[str, Any]) -> Pairs:
    _refuse(set(group) - _OF_GROUP)
    if resources := group.get("resources"):
        pairs = (f"{resource_class}:{number}" for resource_class, number in resources.items())
        yield f"resources{name}", ",".join(pairs)
    for item in group.get("required", ()):
        yield f"required{name}", _written(item)
    for item in group.get("member_of", ()):
        for text in memberships(labels, [_written(item)]):
            yield f"member_of{name}", text
    trees = group.get("in_tree", ())
    _refuse({"several trees in in_tree"} if len(trees) > 1 else set())
    for reference in trees:
        yield f"in_tree{name}", uuid_of(client, reference)


def _relations(request: Mapping[str, Any], named: Sequence[str]) -> Pairs:
    for relation in request.get("together", ()):
        _refuse({"together"} if relation["at"] != "subtree" else set())
        yield "same_subtree", ",".join(relation["groups"])
    apart = request.get("apart", ())
    for relation in apart:
        is_isolation = relation["at"] == "provider" and set(relation["groups"]) == set(named)
        _refuse(set() if is_isolation else {"apart"})
    if len(named) > 1:
        yield "group_policy", "isolate" if apart else "none"


def _written(item: str | Sequence[str]) -> str:
    return item if isinstance(item, str) else f"in:{','.join(item)}"


def _refuse(members: set[str]) -> None:
    if members:
        raise CommandFailed(
            f"this service does not have berth's own API (/berth/v1), which "
            f"{', '.join(sorted(members))} needs",
            ExitCode.UNSUPPORTED,
        )
