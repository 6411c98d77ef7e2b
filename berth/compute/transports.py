# SPDX-License-Identifier: Apache-2.0
"""Ways to a service: keystoneauth Adapters, made without Keystone."""

from __future__ import annotations

from collections.abc import Mapping

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token


def with_token(url: str, token: str, headers: Mapping[str, str] | None = None) -> Adapter:
    """The service at a URL, asked with one token.

    Args:
        headers: sent with every request besides.
    """
    return Adapter(
        Session(auth=Token(url, token)),
        service_type="placement",
        endpoint_override=url,
        additional_headers=dict(headers or {}),
    )
