# SPDX-License-Identifier: Apache-2.0
"""What the layers of the application leave for each other in the WSGI environment."""

from __future__ import annotations

from typing import Final

#: The key under which the router leaves the template of the path.
ROUTE: Final = "berth.route"
#: What stands for it where a request was refused before, or no route has its path.
NO_ROUTE: Final = "none"
#: The key under which `berth.api.auth.identity.identify` leaves who is asking.
CONTEXT: Final = "berth.context"
