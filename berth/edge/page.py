# SPDX-License-Identifier: Apache-2.0
"""The operator's page below `/berth/ui/`: static files of the package `berth.web`.

They say nothing about the fleet, so no token is needed. What the page shows it asks of the public
API, with its user's own rights. Source: spec/page.md.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from importlib import resources
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from msgspec import Struct

from berth.api import errors
from berth.api.answers import STATUS_LINES, matches
from berth.api.environ import ROUTE
from berth.api.errors import Refused
from berth.edge.layers import READING, only_reading

#: Where the page is.
PAGE: Final = "/berth/ui/"

_BARE: Final = PAGE.rstrip("/")

_INDEX: Final = "index.html"

_CONTENT_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

#: Scripts and styles of this origin alone, none of them inline; no other site may frame the page.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}

_NO_WEIGHT: Final = re.compile(r"q\s*=\s*0(\.0*)?")


class _File(Struct, frozen=True, dict=True):
    content_type: str
    content: bytes
    entity_tag: str

    @cached_property
    def packed(self) -> bytes:
        """The content as gzip."""
        return gzip.compress(self.content, mtime=0)


def the_page() -> WSGIApplication:
    """What sends the files of the page."""
    files = _files()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if path == _BARE:
            environ[ROUTE] = _BARE
            return _redirect(start_response)
        environ[ROUTE] = PAGE
        if environ["REQUEST_METHOD"] not in READING:
            return errors.send(only_reading(environ, _HEADERS), environ, start_response)
        file = files.get(path.removeprefix(PAGE) or _INDEX)
        if file is None:
            refused = Refused(404, f"The page has no file {path}.", headers=_HEADERS)
            return errors.send(refused, environ, start_response)
        return _send(file, environ, start_response)

    return answer


def is_of_page(path: str) -> bool:
    """Whether a path belongs to the page."""
    return path == _BARE or path.startswith(PAGE)


def _files() -> dict[str, _File]:
    """The files of the page by name, read once: they are a part of the installed package."""
    files: dict[str, _File] = {}
    for resource in resources.files("berth.web").iterdir():
        content_type = _CONTENT_TYPES.get(resource.name.rpartition(".")[2])
        if content_type is not None:
            content = resource.read_bytes()
            tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
            files[resource.name] = _File(content_type, content, tag)
    return files


def _redirect(start_response: StartResponse) -> Iterable[bytes]:
    """To the path with its last slash; relative, since a proxy may serve it below a prefix."""
    headers = [("location", "ui/"), ("content-length", "0"), *_HEADERS.items()]
    start_response("308 Permanent Redirect", headers)
    return []


def _send(file: _File, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    # After an upgrade, a page of the old release must not mix with modules of the new one.
    headers = [
        # Weak: the packed form has the same one.
        ("etag", f"W/{file.entity_tag}"),
        ("cache-control", "no-cache"),
        ("vary", "accept-encoding"),
        *_HEADERS.items(),
    ]
    seen = environ.get("HTTP_IF_NONE_MATCH")
    if seen and matches(seen, file.entity_tag, is_weak_equal=True):
        start_response(STATUS_LINES[304], headers)
        return []
    content = file.content
    if _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
        content = file.packed
        headers.append(("content-encoding", "gzip"))
    length = str(len(content))
    start_response(
        STATUS_LINES[200],
        [("content-type", file.content_type), ("content-length", length), *headers],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]


def _takes_gzip(accepted: str) -> bool:
    """Whether a client names gzip, and not with a weight of 0."""
    for part in accepted.lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return not _NO_WEIGHT.fullmatch(weight.strip())
    return False
