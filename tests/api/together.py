# SPDX-License-Identifier: Apache-2.0
"""Several clients of one server at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.client import Client, Response, SocketTransport

#: How long a thread may wait for the others before the test fails.
PATIENCE_SECONDS = 30


def at_once(api: Client, requests: Sequence[Callable[[Client], Response]]) -> list[Response]:
    """Send all requests at the same time, each from a thread and connection of its own.

    Returns:
        The answers, in the order of the requests.
    """
    ready = Barrier(len(requests))

    def send(request: Callable[[Client], Response]) -> Response:
        client = _another(api)
        ready.wait(PATIENCE_SECONDS)
        return request(client)

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(send, requests))


def _another(api: Client) -> Client:
    transport = api.transport
    if isinstance(transport, SocketTransport):
        transport = SocketTransport(f"http://{transport.host}:{transport.port}{transport.prefix}")
    return Client(transport, api.headers)
