# SPDX-License-Identifier: Apache-2.0
"""The authentication layer for each `[api]auth_strategy`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import assert_never
from wsgiref.types import WSGIApplication

from berth.config import Settings
from berth.edge.auth.file_based import layer_of
from berth.edge.auth.http_basic import HttpBasic
from berth.edge.auth.keystone import keystone
from berth.edge.auth.noauth2 import noauth2
from berth.edge.auth.tokens import Tokens

Layer = Callable[[WSGIApplication], WSGIApplication]


def layer_for(settings: Settings) -> Layer:
    """The layer of the configured strategy.

    Raises:
        CredentialsUnusable: the file of users or tokens cannot be read or parsed.
    """
    match settings.auth_strategy:
        case "keystone":
            return partial(keystone, conf=settings.conf)
        case "noauth2":
            return noauth2
        case "http_basic":
            return layer_of(HttpBasic(settings.user_file))
        case "token":
            return layer_of(Tokens(settings.token_file))
        case unknown:
            assert_never(unknown)
