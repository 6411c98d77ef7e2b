# SPDX-License-Identifier: Apache-2.0
"""`GET /openapi.json` of each namespace: the OpenAPI document, for users' tools."""

from __future__ import annotations

import msgspec

from berth.api.microversion import MINOR_MAX, SERVICE_TYPE, names_version
from berth.api.namespaces import namespace_of
from berth.api.openapi.document import describe
from berth.api.operation import Namespace
from berth.api.rendering import answer_bytes
from berth.api.request import Request, Response, Services


def show_description(services: Services, request: Request, response: Response) -> None:
    """Show the document of the requested microversion, or of the newest if none is.

    A namespace with a version of its own has one document.
    """
    namespace = namespace_of(request.path, services.namespaces)
    if namespace.version:
        minor = MINOR_MAX
    else:
        asked = names_version(request.env.get("HTTP_OPENSTACK_API_VERSION"))
        minor = request.microversion if asked else MINOR_MAX
        response.set_header("openstack-api-version", f"{SERVICE_TYPE} 1.{minor}")
    answer_bytes(response, _rendered(services, namespace, minor, request.mount))


def _rendered(services: Services, namespace: Namespace, microversion: int, mount: str) -> bytes:
    """The document, kept in the index's memory: describing takes long."""
    auth_strategy = services.settings.auth_strategy
    memory = services.index.memory
    key = "openapi", namespace.prefix, microversion, auth_strategy, mount
    document: bytes | None = memory.get(key)
    if document is None:
        document = msgspec.json.encode(
            describe(microversion, auth_strategy=auth_strategy, mount=mount, namespace=namespace)
        )
        memory.keep(key, document, len(document) + len(mount), is_lasting=True)
    return document
