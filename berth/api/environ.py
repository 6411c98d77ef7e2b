# SPDX-License-Identifier: Apache-2.0
"""WSGI environment keys through which the application's layers pass values."""

from __future__ import annotations

from typing import Final

#: Set by the router: the template of the path.
ROUTE: Final = "berth.route"
#: Its value if a request was refused earlier, or if no route matches its path.
NO_ROUTE: Final = "none"
#: Set by `berth.edge.layers`: the context, in which `berth.edge.auth.identity.identify` notes
#: who sent the request.
CONTEXT: Final = "berth.context"
#: Set by `berth.edge.auth` if the caller is bound to a host: the name or the UUID of its root.
HOST: Final = "berth.host"
#: Set by `berth.edge.receiving`: the bytes of the request's body.
BODY: Final = "berth.body"
#: Set by `berth.edge.admission` for requests that wait for changes, or search: their place in the
#: queue.
PLACE: Final = "berth.place"
#: Set for requests that have searched for long, and may have freed much memory.
WORKED_LONG: Final = "berth.worked_long"
#: Set by `berth.api.paths`: the route and the kind of the request.
MATCH: Final = "berth.match"
#: Set by `berth.edge.admission`: when the request came to its queue, by `time.monotonic`.
ARRIVED: Final = "berth.arrived"
#: May be set by the server: a function that returns whether the client has disconnected; absent if
#: the server cannot tell.
CLIENT_GONE: Final = "berth.client_gone"
#: May be set by `berth.edge.auth` for requests that wait for changes: a function that returns
#: whether the caller's credentials would still be accepted; absent if they do not end.
STILL_VALID: Final = "berth.still_valid"
