# SPDX-License-Identifier: Apache-2.0
"""The service restarts, goes away, answers 503, revokes a token. Source: page.md, Tests.

The page says so in plain words, and recovers by itself: no test loads it again.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from berth.store.identity import renew_identity
from tests.client import Client
from tests.e2e.serving import Service, run_berth
from tests.fresh import opened_at
from tests.page.browser import Browser
from tests.page.services import Serve, create_hosts, create_token, proxying
from tests.servers.ports import free_port

#: The log of the browser has each request that failed.
FAILED = "Failed to load resource"


def test_the_page_follows_a_service_that_was_restarted(browser: Browser, serve: Serve) -> None:
    """While it is away, the light and a sentence say so; then the picture is current again."""
    service = serve(port=free_port())
    create_hosts(Client.at(service.url), "cn1")
    browser.expect(FAILED)
    browser.open(service.url)
    browser.find(".light", "Live")
    browser.find(".lead", "1 host")

    service.terminate()
    browser.find(".light", "Not live")
    said = browser.find("#notices").text
    assert said.startswith("The service does not answer. You see the fleet as it was at ")
    assert said.endswith("The page tries again by itself.")
    assert "1 host" in browser.find(".lead").text

    serve(port=service.port)
    create_hosts(Client.at(service.url), "cn2")
    browser.find(".light", "Live")
    browser.find(".lead", "2 hosts")
    assert browser.all("#notices .problem") == []


def test_the_page_waits_for_a_service_that_is_not_there_yet(browser: Browser, serve: Serve) -> None:
    """A view that is opened meanwhile says why it is empty, and is filled later."""
    service = serve(port=free_port())
    create_hosts(Client.at(service.url), "cn1")
    browser.expect(FAILED)
    browser.open(service.url)
    browser.find(".light", "Live")
    service.terminate()
    browser.visit("#/service")
    browser.find(".problem", "The service does not answer.")
    serve(port=service.port)
    browser.find(".light", "Live")
    browser.find("main", "sqlite")
    browser.absent("main .problem")


def test_the_page_says_that_nobody_can_be_authenticated(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    """503 while the file of the tokens is damaged; then the fleet is read."""
    tokens = tmp_path / "tokens"
    token = create_token(tokens, "ada", role="admin")
    service = serve(api=f"auth_strategy = token\ntoken_file = {tokens}")
    create_hosts(Client.at(service.url).acting_as({"X-Auth-Token": token}), "cn1")
    good = tokens.read_text()

    browser.expect(FAILED)
    browser.open(service.url)
    browser.write("Token", token)
    browser.click("label", "Stay signed in until this tab is closed")
    browser.click(".sign-in button")
    browser.find(".lead", "1 host")

    tokens.write_text("damaged\n")
    browser.reload()
    browser.find(".light", "Not live")
    browser.find("#notices", "Credentials cannot be checked at the moment")
    tokens.write_text(good)
    browser.find(".light", "Live")
    browser.find(".lead", "1 host")


def test_a_token_that_was_revoked_is_asked_for_again(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    """The next request is refused; with another token, the page goes on."""
    tokens = tmp_path / "tokens"
    token, other = (create_token(tokens, name, role="admin") for name in ("ada", "bob"))
    service = serve(api=f"auth_strategy = token\ntoken_file = {tokens}")
    api = Client.at(service.url).acting_as({"X-Auth-Token": other})
    create_hosts(api, "cn1")

    browser.expect(FAILED)
    browser.open(service.url, "#/hosts/cn1")
    browser.write("Token", token)
    browser.click(".sign-in button")
    browser.find("h1", "cn1")
    browser.find(".light", "Live")

    identity = json.loads(tokens.read_text().splitlines()[0])["id"]
    done = run_berth(tmp_path, "token", "revoke", identity, "--file", str(tokens))
    assert done.returncode == 0, done.stderr
    browser.visit("#/leases")
    browser.find(".sign-in .problem", "You are signed out: the service no longer accepts")
    assert "cn1" not in browser.text
    browser.write("Token", other)
    browser.click(".sign-in button")
    browser.find("h1", "Leases")
    browser.find(".light", "Live")


@contextmanager
def frozen(service: Service) -> Iterator[None]:
    """Let the workers of a service take connections and say nothing."""
    workers = service.workers()
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)


def test_a_service_that_is_silent_is_not_live(browser: Browser, plain: Service) -> None:
    """It takes connections but answers nothing: the light goes out after a few seconds."""
    create_hosts(Client.at(plain.url), "cn1")
    browser.expect(FAILED)
    browser.open(plain.url)
    browser.find(".light", "Live")
    with frozen(plain):
        browser.find(".light", "Not live")
        browser.find("#notices", "The service does not answer. You see the fleet as it was at ")
    create_hosts(Client.at(plain.url), "cn2")
    browser.find(".lead", "2 hosts")
    browser.find(".light", "Live")


def test_the_old_picture_stays_while_the_fleet_is_read_again(
    browser: Browser, plain: Service
) -> None:
    """After 410, which says that the changes since are forgotten."""
    create_hosts(Client.at(plain.url), "cn1")
    browser.expect(FAILED)
    with proxying(plain) as proxy:
        browser.open(proxy.url)
        browser.find(".lead", "1 host")
        browser.find(".light", "Live")
        proxy.gates["/berth/v1/fleet"] = gate = Event()
        proxy.once["/berth/v1/changes"] = 410
        create_hosts(Client.at(plain.url), "cn2")
        browser.find(".light", "Not live")
        browser.find("#notices", "is reading the whole fleet again. You see the fleet as it was")
        assert "0 hosts" not in browser.find(".lead").text
        gate.set()
        browser.find(".light", "Live")
        browser.find(".lead", "2 hosts")
        assert browser.all("#notices .problem") == []


def test_the_page_follows_a_database_with_a_new_identity(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    """To which every revision is foreign that was before."""
    service = serve()
    create_hosts(Client.at(service.url), "cn1")
    browser.expect(FAILED)
    browser.open(service.url)
    browser.find(".lead", "1 host")
    browser.find(".light", "Live")
    db = opened_at(f"sqlite:///{tmp_path}/berth.db")
    renew_identity(db)
    db.dispose()
    create_hosts(Client.at(service.url), "cn2")
    browser.find(".lead", "2 hosts")
    browser.find(".light", "Live")


def test_the_page_recovers_from_what_a_proxy_answers(browser: Browser, plain: Service) -> None:
    """A 404 while it is set up again is no reason to stop for good."""
    create_hosts(Client.at(plain.url), "cn1")
    browser.expect(FAILED)
    with proxying(plain) as proxy:
        browser.open(proxy.url)
        browser.find(".light", "Live")
        proxy.refusals["/berth/v1/changes"] = 404
        create_hosts(Client.at(plain.url), "cn2")
        browser.find("#notices", "The answer was 404 Not Found. You see the fleet as it was")
        proxy.refusals.clear()
        browser.find(".light", "Live")
        browser.find(".lead", "2 hosts")


def test_a_fleet_that_is_refused_is_not_asked_for_again(browser: Browser, plain: Service) -> None:
    """A view that needs it says so in a sentence; it is asked for once more with each view that is
    opened, and shown once the policy allows it."""
    create_hosts(Client.at(plain.url), "cn1")
    browser.expect(FAILED)
    with proxying(plain) as proxy:
        proxy.refusals["/berth/v1/fleet"] = 403
        browser.open(proxy.url, "#/fleet")
        browser.find("main .refusal", "You cannot see the fleet. The answer was 403 Forbidden.")
        assert "Reading" not in browser.text and browser.all("#notices .problem") == []
        browser.visit("#/service")
        browser.find("main", "ready")
        asked = [sent for sent in browser.requests() if sent.url.endswith("/berth/v1/fleet")]
        assert len(asked) <= 2
        proxy.refusals.clear()
        # The question that the view before asked may still be under way.
        browser.visit("#/drains")
        browser.find("main", "Nothing is drained.")
        browser.visit("#/service")
        browser.find("main", "ready")
        browser.visit("#/fleet")
        browser.find(".lead", "1 host")
        assert browser.all("#notices .problem") == []
