# SPDX-License-Identifier: Apache-2.0
"""The service's own documents: the versions, for clients that discover them first, and the OpenAPI
document of each namespace, for users' tools."""

from __future__ import annotations

import msgspec

from berth.api.answers import stamp_now
from berth.api.contract import Contract, Dated, component, shows
from berth.api.microversion import MINOR_MAX, SERVICE_TYPE, VERSION_MAX, VERSION_MIN, names_version
from berth.api.openapi.document import describe
from berth.api.request import Call
from berth.api.shapes import TEXT, exact_object, links, list_of

#: The link is empty: keystoneauth resolves it against the URL it requested.
VERSIONS = {
    "versions": [
        {
            "id": "v1.0",
            "min_version": VERSION_MIN,
            "max_version": VERSION_MAX,
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}

_VERSION_DOCUMENT = component(
    "VersionDocument",
    exact_object(
        {
            "versions": list_of(
                exact_object(
                    {
                        "id": TEXT,
                        "min_version": {"const": VERSION_MIN},
                        "max_version": {"const": VERSION_MAX},
                        "status": {"const": "CURRENT"},
                        "links": links("self"),
                    }
                )
            )
        }
    ),
    example=VERSIONS,
)
DESCRIPTION = component("Description", {"type": "object", "required": ["openapi", "info", "paths"]})


@Contract(summary="Show the supported microversions", answers=shows(_VERSION_DOCUMENT))
def show_versions(call: Call) -> object:
    """Show the version document."""
    stamp_now(call)
    return VERSIONS


@Contract(
    summary="Show this document",
    details="For the microversion in the header, or the newest without the header.",
    answers=shows(DESCRIPTION, Dated.NO),
)
def show_description(call: Call) -> bytes:
    """Show the document of the requested microversion, or of the newest if none is."""
    asked = names_version(call.env.get("HTTP_OPENSTACK_API_VERSION"))
    minor = call.microversion if asked else MINOR_MAX
    call.headers["openstack-api-version"] = f"{SERVICE_TYPE} 1.{minor}"
    return document_at(call, minor)


def document_at(call: Call, microversion: int) -> bytes:
    """The OpenAPI document of a request's namespace.

    It is kept in the index's memory, because it takes long to make.
    """
    namespace, mount = call.match.route.namespace, call.mount
    auth_strategy = call.services.settings.auth_strategy
    memory = call.services.index.memory
    key = "openapi", namespace.prefix, microversion, auth_strategy, mount
    document: bytes | None = memory.get(key)
    if document is None:
        document = msgspec.json.encode(
            describe(microversion, auth_strategy=auth_strategy, mount=mount, namespace=namespace)
        )
        memory.keep(key, document, len(document) + len(mount), is_lasting=True)
    return document
