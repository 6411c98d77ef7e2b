# SPDX-License-Identifier: Apache-2.0
"""A caller's own credentials are in no line that berth writes about its request."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest

from berth import config
from berth.edge.context import Context
from berth.edge.log_format import ObjectFormatter, SafeMessages
from berth.edge.log_lines import LineFormatter, LineHandler
from berth.edge.secrets import credentials_in, masked

TOKEN = 'gAAAAABo-Secr3t/"+=' + "x" * 60
PASSWORD = "c0rrect horse"
BASIC = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
SENT = {
    "HTTP_X_AUTH_TOKEN": TOKEN,
    "HTTP_X_SERVICE_TOKEN": "service-token-of-nova",
    "HTTP_X_STORAGE_TOKEN": "storage-token-of-swift",
    "HTTP_X_SUBJECT_TOKEN": "another-token-of-alice",
    "HTTP_AUTHORIZATION": f"Basic {BASIC}",
}


def context_of(environ: dict[str, Any]) -> Context:
    """The context of a request with these headers."""
    context = Context.begin("req-1", None)
    context.credentials = credentials_in(environ)
    return context


def everywhere(character: str) -> str:
    """Every character percent-encoded, in lower case."""
    return "".join(f"%{byte:02x}" for byte in character.encode())


@pytest.mark.parametrize(
    "secret",
    [
        *(TOKEN, "service-token-of-nova", "storage-token-of-swift", "another-token-of-alice"),
        *(BASIC, PASSWORD),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        str,
        quote,
        lambda secret: quote(secret, safe=""),
        everywhere,
        lambda secret: json.dumps(secret)[1:-1],
        lambda secret: "".join(f"\\u{ord(each):04X}" for each in secret),
        lambda secret: quote(secret, safe="").replace("%20", "+"),
        lambda secret: f"{secret[:-3]}..." if secret == PASSWORD else f"{secret[:17]}...",
        lambda secret: f"{secret[:6]}…",
    ],
    ids=["raw", "path", "query", "encoded", "json", "escaped", "form", "cut", "cut short"],
)
def test_no_form_of_a_secret_is_left(secret: str, form: Callable[[str], str]) -> None:
    """Whatever a path, a query, JSON or a message made of it; what is around it stays."""
    text = f"before {form(secret)} after"
    shown = masked(text, context_of(SENT))
    assert "***" in shown
    assert shown.startswith("before ") and shown.endswith(" after")
    assert secret[:6] not in unquote(shown)


def test_names_are_no_secrets() -> None:
    """The tokens of noauth2 are names, and short passwords are found in many words."""
    sent = {"HTTP_X_AUTH_TOKEN": "admin", "HTTP_AUTHORIZATION": "Basic YTphZG1pbg=="}
    assert masked("PUT /admin admin", context_of(sent)) == "PUT /admin admin"
    assert masked(TOKEN, None) == TOKEN


def logged(write: Callable[[logging.Logger], None], handler: logging.Handler) -> str:
    """What a handler writes of what is logged under a request with the secrets."""
    stream = io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    logger = logging.Logger("berth.test")
    logger.addHandler(handler)
    write(logger)
    return stream.getvalue()


def fail(logger: logging.Logger) -> None:
    """Log an error that quotes the token, with its traceback."""
    try:
        raise ValueError(f"there is no {TOKEN}\nforged")
    except ValueError:
        logger.exception("a request for %s\nfailed", TOKEN)


@pytest.mark.parametrize("form", ["lines", "json", "of others"])
def test_tracebacks_and_messages_are_masked(form: str) -> None:
    """By our formatters, and for handlers that have another."""
    context_of(SENT)
    handler: logging.Handler = LineHandler(io.StringIO())
    if form == "json":
        handler.setFormatter(ObjectFormatter())
        said = logged(fail, handler)
        assert json.loads(said)["message"] == "a request for ***\nfailed"
    elif form == "of others":
        handler = logging.StreamHandler()
        handler.addFilter(SafeMessages())
        said = logged(lambda logger: logger.warning("for %s\nforged", TOKEN), handler)
    else:
        handler.setFormatter(LineFormatter(datefmt="%H:%M:%S", config=config.load()))
        said = logged(fail, handler)
    assert "***" in said
    assert TOKEN[:16] not in said
    assert not any(line.startswith("failed") for line in said.splitlines())
