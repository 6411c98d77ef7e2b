# SPDX-License-Identifier: Apache-2.0
"""What a handler gets: the request with what the layers found out, and the parts to call."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import quote

import falcon
from oslo_context.context import RequestContext

from berth.api.environ import CONTEXT
from berth.api.errors import MICROVERSION
from berth.api.microversion import negotiate
from berth.candidates.request import SearchSettings
from berth.config import Settings
from berth.index import Index
from berth.store.engine.database import Database

if TYPE_CHECKING:
    from berth.api.admission import Line
    from berth.api.instruments import Instruments

#: What may stand in a path as it is (RFC 3986).
_PATH_SAFE = "/~!$&'()*+,;=:@"

Response = falcon.Response


@dataclass(frozen=True, slots=True)
class Services:
    """The layers below, and the few options that handlers pass on to them."""

    settings: Settings
    database: Database
    index: Index
    instruments: Instruments
    search: SearchSettings
    #: For `randomize_allocation_candidates`.
    rng: Random
    #: Who may search for candidates now.
    searching: Line


class Request(falcon.Request):
    """A falcon request that knows its microversion and who sent it."""

    @property
    def microversion(self) -> int:
        """The minor number of the microversion in force."""
        minor: int = self.env[MICROVERSION]
        return minor

    @property
    def caller(self) -> RequestContext:
        """Who is asking, as the authentication in front has established."""
        context: RequestContext = self.env[CONTEXT]
        return context

    @property
    def mount(self) -> str:
        """The prefix of a URL's path under which the application is mounted, "" when it is not."""
        prefix: str = self.env.get("SCRIPT_NAME", "")
        return quote(prefix.encode("latin-1", "replace"), safe=_PATH_SAFE) if prefix else ""

    def negotiate(self) -> None:
        """Settle the microversion from the request's header.

        Raises:
            Refused: 400 or 406.
        """
        self.env[MICROVERSION] = negotiate(self.env.get("HTTP_OPENSTACK_API_VERSION"))

    def location(self, path: str) -> str:
        """The absolute URL of a path of this application."""
        return f"{self.scheme}://{self.netloc}{self.mount}{path}"
