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
from hypothesis import given, settings
from hypothesis import strategies as st

from berth import config
from berth.edge.audit_line import _safe
from berth.edge.auth.identity import Context
from berth.edge.layers import front
from berth.edge.log_lines import LineFormatter
from berth.edge.log_setup import ObjectFormatter, SafeMessages
from berth.edge.secrets import credentials_in, masked
from tests.effort import scaled

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


@settings(max_examples=scaled(100))
@given(st.lists(st.sampled_from([str, everywhere]), min_size=len(TOKEN), max_size=len(TOKEN)))
def test_a_secret_is_found_however_it_is_encoded(forms: list[Callable[[str], str]]) -> None:
    """A client may percent-encode any character."""
    text = "".join(form(each) for form, each in zip(forms, TOKEN, strict=True))
    assert masked(f"/traits/{text}?a", context_of(SENT)) == "/traits/***?a"


def test_names_are_no_secrets() -> None:
    """The tokens of noauth2 are names, and short passwords are found in many words."""
    sent = {"HTTP_X_AUTH_TOKEN": "admin", "HTTP_AUTHORIZATION": "Basic YTphZG1pbg=="}
    assert masked("PUT /admin admin", context_of(sent)) == "PUT /admin admin"
    assert masked(TOKEN, None) == TOKEN


def test_a_line_of_the_audit_log_stays_json() -> None:
    """Also where the secret follows an escape, of which nothing is left half."""
    line = json.dumps({"name": f"\n{PASSWORD}", "more": f"\\{TOKEN}\x9b"}).encode()
    shown = _safe(line, context_of(SENT))
    assert json.loads(shown) == {"name": "\n***", "more": "***\x9b"}


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
    handler: logging.Handler = logging.StreamHandler(io.StringIO())
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


def test_headers_are_noted_before_authentication_changes_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Layers inside remove them; the line is written after that."""
    contexts: list[Context] = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        contexts.append(environ["berth.context"])
        del environ["HTTP_X_AUTH_TOKEN"]
        start_response("204 No Content", [])
        return []

    environ = {**SENT, "REQUEST_METHOD": "GET", "PATH_INFO": f"/{TOKEN}", "QUERY_STRING": ""}
    front(application)(environ, lambda *_: lambda _: None)
    assert masked(f"/{TOKEN}", contexts[0]) == "/***"
