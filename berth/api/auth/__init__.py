# SPDX-License-Identifier: Apache-2.0
"""Authentication: WSGI layers that establish who is asking, before the application is entered.

A layer leaves its findings as the identity headers of keystonemiddleware (`HTTP_X_USER_ID`, ...),
from which `identify` makes the request's context. Any layer that does so may take its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from berth.api.auth.identity import identify
from berth.api.auth.keystone import keystone
from berth.api.auth.noauth2 import noauth2

__all__ = ["Layer", "identify", "layer_for"]

Layer = Callable[[WSGIApplication], WSGIApplication]


def layer_for(strategy: str, conf: cfg.ConfigOpts) -> Layer:
    """The layer for a value of `[api]auth_strategy`."""
    if strategy == "noauth2":
        return noauth2
    assert strategy == "keystone", "the option admits two values"
    return partial(keystone, conf=conf)
