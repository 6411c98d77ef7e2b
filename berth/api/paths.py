# SPDX-License-Identifier: Apache-2.0
"""What a path means: the uuids in it, whether it is public, and whether it is a search.

Any spelling of a uuid works; other text is looked up as it is, and not found.
Source: spec/rest-api.md 1.9.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple
from wsgiref.types import WSGIEnvironment

from berth.api.environ import KIND
from berth.api.errors import Refused
from berth.api.namespaces import NAMESPACES
from berth.api.operation import DRY_RUN
from berth.api.query_string import parse_pairs
from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax

#: Paths about the API alone: the version and OpenAPI documents.
PUBLIC = frozenset(
    namespace.path_of(operation)
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.rule is None
)
#: An application mounted under a prefix also serves the bare prefix.
PUBLIC_OR_EMPTY = PUBLIC | {"", None}

#: Methods that change nothing on any path.
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Kind(NamedTuple):
    """What a request is, by its method and path.

    Attributes:
        is_read: it changes nothing; some searches are POST requests.
        is_watch: it may wait for changes.
        search_seconds: for which it may use the CPU, infinite for the operator's budget; None if it
            is no search.
        may_be_dry: with `dry_run=true` it changes nothing.
    """

    is_read: bool
    is_watch: bool = False
    search_seconds: float | None = None
    may_be_dry: bool = False


_READ: Final = Kind(is_read=True)
_WRITE: Final = Kind(is_read=False)
_DRY_RUN: Final = Kind(is_read=True, search_seconds=math.inf)


def _unusual_kinds() -> dict[str, dict[str, Kind]]:
    """The kinds that the method alone does not tell, by path and method."""
    kinds: dict[str, dict[str, Kind]] = {}
    for namespace in NAMESPACES:
        for operation in namespace.operations:
            may_be_dry = operation.query is not None and DRY_RUN in operation.query.parameters
            if not (operation.is_search or operation.is_watch or may_be_dry):
                continue
            seconds = operation.search_seconds if operation.is_search else None
            kind = Kind(operation.is_read, operation.is_watch, seconds, may_be_dry)
            for method in {operation.method, "HEAD"} if operation.is_read else {operation.method}:
                kinds.setdefault(namespace.path_of(operation), {})[method] = kind
    return kinds


_UNUSUAL: Final = _unusual_kinds()


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)


def is_public(environ: WSGIEnvironment) -> bool:
    """Whether the path describes the API alone, and nothing of the fleet: a request for it needs
    no token and does not queue."""
    return environ.get("PATH_INFO") in PUBLIC_OR_EMPTY


def kind_of(environ: WSGIEnvironment) -> Kind:
    """What a request is, which is found out once."""
    # PERF bench, fixed_cost: nearly every request is told by one look at its path.
    kind: Kind | None = environ.get(KIND)
    if kind is None:
        method = environ["REQUEST_METHOD"]
        usual = _READ if method in _READING else _WRITE
        kind = _UNUSUAL.get(environ["PATH_INFO"], {}).get(method, usual)
        if kind.may_be_dry and is_dry_run(environ):
            kind = _DRY_RUN
        environ[KIND] = kind
    return kind


def is_dry_run(environ: WSGIEnvironment) -> bool:
    """Whether a request, of an operation that may, only asks what it would do."""
    try:
        pairs = parse_pairs(environ.get("QUERY_STRING", ""))
    except Refused:
        return False
    return dict(pairs).get(DRY_RUN) == "true"
