# SPDX-License-Identifier: Apache-2.0
"""What a path means: the uuids in it, whether it is public, and whether it is a search.

Any spelling of a uuid works; other text is looked up as it is, and not found.
Source: spec/rest-api.md 1.9.
"""

from __future__ import annotations

from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.api.namespaces import NAMESPACES
from berth.api.operation import DRY_RUN
from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax

#: Paths about the API alone: the version and OpenAPI documents.
PUBLIC = frozenset(
    namespace.path_of(operation)
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.rule is None
)
#: An application mounted under a prefix also serves the bare prefix.
_PUBLIC_OR_EMPTY = PUBLIC | {"", None}

#: Methods that change nothing on any path.
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

#: Method and path of each search, which may use the CPU for seconds.
SEARCHES: Final = frozenset(
    (method, namespace.path_of(operation))
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.is_search
    for method in (operation.method, "HEAD")
)


#: Method and path of each operation that waits for changes.
_WATCHES: Final = frozenset(
    (method, namespace.path_of(operation))
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.is_watch
    for method in (operation.method, "HEAD")
)


#: Method and path of each operation that changes nothing with `dry_run=true`.
_WITH_DRY_RUN: Final = frozenset(
    (operation.method, namespace.path_of(operation))
    for namespace in NAMESPACES
    for operation in namespace.operations
    if operation.query is not None and DRY_RUN in operation.query.parameters
)


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)


def is_public(environ: WSGIEnvironment) -> bool:
    """Whether the path describes the API alone, and nothing of the fleet: a request for it needs
    no token and does not queue."""
    return environ.get("PATH_INFO") in _PUBLIC_OR_EMPTY


def is_search(environ: WSGIEnvironment) -> bool:
    """Whether the request searches the fleet; such a request changes nothing."""
    operation = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    return operation in SEARCHES or (operation in _WITH_DRY_RUN and is_dry_run(environ))


def is_watch(environ: WSGIEnvironment) -> bool:
    """Whether the request may wait for changes."""
    return (environ["REQUEST_METHOD"], environ["PATH_INFO"]) in _WATCHES


def is_dry_run(environ: WSGIEnvironment) -> bool:
    """Whether a request, of an operation that may, only asks what it would do."""
    pairs = environ.get("QUERY_STRING", "").replace(";", "&").split("&")
    return next((pair for pair in reversed(pairs) if pair.startswith(f"{DRY_RUN}=")), None) == (
        f"{DRY_RUN}=true"
    )


def is_read(method: str, path: str) -> bool:
    """Whether a request changes nothing: by its route, because some searches are POST requests."""
    return method in _READING or (method, path) in SEARCHES
