# SPDX-License-Identifier: Apache-2.0
"""Authentication: WSGI layers that identify the caller before the application runs.

A layer sets the identity headers of keystonemiddleware (`HTTP_X_USER_ID`, ...), from which
`berth.edge.auth.identity` makes the request's context. Any layer that sets them can be used;
`berth.edge.auth.layers` has berth's own. Nothing is imported here, so that commands can read the
files of users and tokens without loading the server.
"""
