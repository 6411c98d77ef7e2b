# SPDX-License-Identifier: Apache-2.0
"""Errors that the layers in front of the application answer themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api import errors
from berth.api.errors import ERROR_CODES, MICROVERSION, Refused
from berth.api.microversion import negotiate
from berth.api.namespaces import PLACEMENT, namespace_of
from berth.api.operation import Namespace

if TYPE_CHECKING:
    from _typeshed import OptExcInfo


def mark_namespaces(
    namespaces: Sequence[Namespace], application: WSGIApplication
) -> WSGIApplication:
    """A layer that gives each response the headers of its path's namespace, also those of the
    layers below, and tells these its error codes."""

    prefixes = tuple(namespace.prefix for namespace in namespaces if namespace.prefix)

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # PERF bench, fixed_cost: nearly every request is in no other namespace.
        if not environ["PATH_INFO"].startswith(prefixes):
            return application(environ, start_response)
        namespace = namespace_of(environ["PATH_INFO"], namespaces)
        if namespace is PLACEMENT:
            return application(environ, start_response)
        environ[ERROR_CODES] = namespace.codes
        return application(environ, _with_headers(start_response, namespace.headers))

    return layer


def _with_headers(start_response: StartResponse, headers: Mapping[str, str]) -> StartResponse:
    def start(
        status: str, own: list[tuple[str, str]], exc_info: OptExcInfo | None = None
    ) -> Callable[[bytes], object]:
        return start_response(status, [*own, *headers.items()], exc_info)

    return start


def refuse(
    refused: Refused, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with an error, and with its code if the requested microversion has codes."""
    with suppress(Refused):  # an unsupported version: answered as for the oldest
        environ[MICROVERSION] = negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))
    return errors.send(refused, errors.render(refused, environ), environ, start_response)
