# SPDX-License-Identifier: Apache-2.0
"""`berth demo serve`: a service with the demo fleet, in which something goes on."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

from tests.client import Client
from tests.e2e.serving import BERTH, PATIENCE, environment, run_anew, stop, wait_until

SMALL = ("demo", "serve", "--hosts", "16")


def test_a_fleet_changes_until_it_is_interrupted(tmp_path: Path) -> None:
    """Its page is there to look at, every list has something, and Ctrl-C leaves nothing behind."""
    variables = environment(tmp_path, TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1")
    process = subprocess.Popen(
        [*BERTH, *SMALL, "--changes", "50", "--bind", "127.0.0.1:0"],
        env=variables,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline().decode() for _ in range(9)]
        assert said[1].startswith("loaded 16 hosts with "), said
        assert said[-1] == "Ctrl-C ends the service and removes the fleet\n"
        (page,) = (line.split()[1] for line in said if line.startswith("  page "))
        api = Client.at(page.removesuffix("/berth/ui/"))
        assert "<title>berth</title>" in api.get("/berth/ui/").text
        drains = api.get("/berth/v1/drains").json["drains"]
        # The traffic may have ended one of the two by now.
        assert drains and {drain["effect"] for drain in drains} <= {"exclude", "none"}
        flavors = api.get("/berth/v1/flavors").json["flavors"]
        assert {"small", "gpu.a100"} < {flavor["name"] for flavor in flavors}

        before = consumers(api)
        wait_until(lambda: bool(consumers(api) - before), "something new")
        wait_until(lambda: bool(before - consumers(api)), "something released")
        wait_until(lambda: api.get("/berth/v1/leases").text != "", "a lease")

        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert (process.returncode, rest) == (0, b"the demo fleet is gone\n")
        assert list(tmp_path.glob("berth-demo-*")) == []
    finally:
        stop(process)


def test_a_taken_port_ends_it(tmp_path: Path) -> None:
    """With the reason, and with the exit code of `berth serve`."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_anew(tmp_path, *SMALL, "--bind", address)
        of_serve = run_anew(tmp_path, "serve", "--bind", address)
    assert done.returncode == of_serve.returncode != 0
    assert f"cannot listen on http://{address}" in done.stderr
    assert done.stderr.endswith("berth: the service ended; its log above says why\n")


def consumers(api: Client) -> set[str]:
    """The UUIDs of all consumers."""
    lines = api.get("/berth/v1/consumers").text.splitlines()
    return {line["uuid"] for line in map(json.loads, lines) if "uuid" in line}
