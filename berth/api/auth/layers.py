# SPDX-License-Identifier: Apache-2.0
"""The layers by their strategies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import assert_never
from wsgiref.types import WSGIApplication

from berth.api.auth.file_based import layer_of
from berth.api.auth.http_basic import HttpBasic
from berth.api.auth.keystone import keystone
from berth.api.auth.noauth2 import noauth2
from berth.api.auth.tokens import Tokens
from berth.config import Settings

Layer = Callable[[WSGIApplication], WSGIApplication]


def layer_for(settings: Settings) -> Layer:
    """The layer of the configured strategy.

    Raises:
        CredentialsUnusable: its file of users or of tokens cannot be read or understood.
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
