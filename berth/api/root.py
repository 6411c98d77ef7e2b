# SPDX-License-Identifier: Apache-2.0
"""`GET /`: the versions served, for clients that discover them first."""

from __future__ import annotations

from berth.api.caching import stamp_now
from berth.api.operations.service import VERSIONS
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services


def show_versions(services: Services, request: Request, response: Response) -> None:
    """Show the version document."""
    stamp_now(services, request, response)
    answer(response, VERSIONS)
