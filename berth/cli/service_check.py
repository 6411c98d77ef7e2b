# SPDX-License-Identifier: Apache-2.0
"""Does a service answer, and can it serve?"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Final

from oslo_upgradecheck.upgradecheck import Code

from berth.cli.upgrade_checks import Check

TITLE: Final = "Service"

#: Seconds to wait for an answer: a service that is not ready says so within five.
_ANSWER_S_MAX: Final = 6.0


def service_check(url: str, *, is_expected: bool) -> Check:
    """Ask a service for `/readyz`.

    Args:
        is_expected: it is a failure if none answers, or one that cannot serve.
    """
    code = Code.FAILURE if is_expected else Code.SUCCESS
    try:
        ready = _ready(f"{url.rstrip('/')}/readyz")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return Check(TITLE, code, f"none answers at {url} ({reason}).")
    if ready is not None:
        return Check(TITLE, code, f"the one at {url} cannot serve: {ready}.")
    return Check(TITLE, Code.SUCCESS, f"one answers at {url} and is ready.")


def _ready(url: str) -> str | None:
    """Why a service cannot serve; None where it can.

    Raises:
        OSError: nobody answers.
        ValueError: what answers is no berth, or the URL is none.
    """
    # Nothing secret is sent, and a certificate is seldom that of the loopback address.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=_ANSWER_S_MAX) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            said = json.load(error)
    if not isinstance(said, dict) or said.get("status") not in ("ok", "unavailable"):
        raise ValueError("what answers there is not berth")
    return None if said["status"] == "ok" else str(said.get("reason"))
