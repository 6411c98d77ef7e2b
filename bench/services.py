# SPDX-License-Identifier: Apache-2.0
"""Each service on a database of any engine: a server for each node's URL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.bulk import fill, write_fleet
from bench.fleet import Fleet
from bench.peer import make_tables, serve_peer
from bench.results import BEFORE, BERTH
from bench.server import RunningServer, serve_berth

_START_SECONDS_MAX = 600.0


def write_for(
    service: str, url: str, fleet: Fleet, directory: Path, *, before: Path | None = None
) -> None:
    """Make a service's tables in an empty database, and fill them with a fleet.

    Args:
        directory: a new one, for what a service needs to make its tables.
        before: the checkout of the service `before`.
    """
    if service == BERTH:
        write_fleet(url, fleet)
    elif service == BEFORE:
        # Its first start makes the tables that it knows.
        with serve_berth(directory, database_url=url, checkout=before):
            pass
        fill(url, fleet)
    else:
        make_tables(directory, url)
        fill(url, fleet)


@contextmanager
def serve(
    service: str,
    urls: Sequence[str],
    directory: Path,
    *,
    workers: int,
    before: Path | None = None,
) -> Iterator[RunningServer]:
    """Serve from a database for the length of the block, by a server at each of its URLs.

    Args:
        directory: for configurations and logs.
        workers: worker processes of each server.
        before: the checkout of the service `before`.

    Returns:
        The first server, with the others as its `others`.
    """
    with ExitStack() as stack:
        servers = [
            stack.enter_context(_serve_one(service, url, directory / f"{number}", workers, before))
            for number, url in enumerate(urls)
        ]
        yield replace(servers[0], others=tuple(servers[1:]))


def _serve_one(
    service: str, url: str, directory: Path, workers: int, before: Path | None
) -> AbstractContextManager[RunningServer]:
    directory.mkdir(parents=True, exist_ok=True)
    if service in (BERTH, BEFORE):
        return serve_berth(
            directory,
            workers=workers,
            start_seconds_max=_START_SECONDS_MAX,
            database_url=url,
            checkout=before if service == BEFORE else None,
        )
    return serve_peer(directory, processes=workers, database_url=url)
