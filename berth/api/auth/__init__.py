# SPDX-License-Identifier: Apache-2.0
"""Authentication: WSGI layers that establish who is asking, before the application is entered.

A layer leaves its findings as the identity headers of keystonemiddleware (`HTTP_X_USER_ID`, ...),
from which `berth.api.auth.identity` makes the request's context. Any layer that does so may take
its place; `berth.api.auth.layers` has berth's own. Nothing is imported here: commands read the
files of users and tokens without what serves requests.
"""
