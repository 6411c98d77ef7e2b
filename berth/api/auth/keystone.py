# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = keystone`: callers bring tokens of Keystone's."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from berth.api.paths import is_public


def keystone(application: WSGIApplication, conf: cfg.ConfigOpts) -> WSGIApplication:
    """Let keystonemiddleware validate tokens, everywhere but on the public paths."""
    # Imported here: it is slow to load, and only this strategy needs it.
    from keystonemiddleware import auth_token

    guarded: WSGIApplication = auth_token.AuthProtocol(application, {"oslo_config_config": conf})

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_public(environ):
            return application(environ, start_response)
        return guarded(environ, start_response)

    return layer
