# SPDX-License-Identifier: Apache-2.0
"""`GET /`: which versions are served, for clients that look before they speak."""

from __future__ import annotations

from berth.api.caching import stamp_now
from berth.api.microversion import VERSION_MAX, VERSION_MIN
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services

#: The link is empty: keystoneauth resolves it against the URL that it asked.
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


def show_versions(services: Services, request: Request, response: Response) -> None:
    """Answer the version document."""
    stamp_now(request, response)
    answer(response, VERSIONS)
