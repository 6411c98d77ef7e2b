# SPDX-License-Identifier: Apache-2.0
"""The service's own documents: the microversions, and the OpenAPI document."""

from __future__ import annotations

from berth.api.microversion import VERSION_MAX, VERSION_MIN
from berth.api.operation import Dated, Operation, component, shows
from berth.api.operations.fragments import TEXT, exact_object, links, list_of

TAG = "Service"

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
_DESCRIPTION = component(
    "Description", {"type": "object", "required": ["openapi", "info", "paths"]}
)

#: Every namespace of the API has one.
DESCRIPTION = Operation(
    "GET",
    "/openapi.json",
    handler="openapi.handler:show_description",
    rule=None,
    tag=TAG,
    summary="Show this document",
    details="For the microversion in the header, or the newest without the header.",
    answers=shows(_DESCRIPTION, Dated.NO),
)

OPERATIONS = (
    Operation(
        "GET",
        "/",
        handler="root:show_versions",
        rule=None,
        tag=TAG,
        summary="Show the supported microversions",
        answers=shows(_VERSION_DOCUMENT),
    ),
    DESCRIPTION,
)
