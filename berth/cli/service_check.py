# SPDX-License-Identifier: Apache-2.0
"""Check whether a service answers and is ready."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Final

from oslo_upgradecheck.upgradecheck import Code

from berth.cli.upgrade_checks import Check
from berth.model.printable import without_passwords

TITLE: Final = "Service"

#: Seconds to wait for an answer; a service that is not ready answers within five.
_ANSWER_S_MAX: Final = 6.0


def service_check(url: str, *, is_expected: bool) -> Check:
    """Request `/readyz` from a service.

    Args:
        is_expected: report a failure if nothing answers, or if the service is not ready.
    """
    shown = without_passwords(url)
    code = Code.FAILURE if is_expected else Code.SUCCESS
    try:
        ready = _ready(f"{url.rstrip('/')}/readyz")
    except (OSError, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = (getattr(cause, "strerror", None) or str(cause)).lower()
        return Check(TITLE, code, f"no service answers at {shown} ({reason}).")
    if ready is not None:
        return Check(TITLE, code, f"the service at {shown} is not ready: {ready}.")
    return Check(TITLE, Code.SUCCESS, f"the service at {shown} is ready.")


def _ready(url: str) -> str | None:
    """Why a service is not ready; None if it is.

    Raises:
        OSError: nothing answers.
        ValueError: another program answers, or the URL is not one.
    """
    # The request has no secrets, and certificates are rarely valid for the loopback address.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=_ANSWER_S_MAX) as answer:
            health = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            health = json.load(error)
    if not isinstance(health, dict) or health.get("status") not in ("ok", "unavailable"):
        raise ValueError("another program answers there")
    return None if health["status"] == "ok" else str(health.get("reason"))
