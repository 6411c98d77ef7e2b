# SPDX-License-Identifier: Apache-2.0
"""Signing in, with each strategy of authentication. Source: page.md, Rules.

Credentials go to this origin only, and into headers only; the page has no cookies; a reload keeps
them only when asked, and signing out forgets them.
"""

from __future__ import annotations

import base64
from pathlib import Path

import bcrypt
from selenium.webdriver.common.keys import Keys

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import Serve, create_hosts, create_token
from tests.servers.keystone import PASSWORD, Keystone

#: The log of the browser has each 401 that the page was answered.
REFUSED = r"status of 401"

SIGN_IN = ".sign-in button"


def test_noauth2_asks_for_nothing(browser: Browser, demo: Service) -> None:
    """Everybody is an administrator, and there is nothing to sign out of."""
    browser.open(demo.url)
    browser.find(".light", "Live")
    browser.absent("button", "Sign out")
    browser.absent(".sign-in")


def test_http_basic_asks_for_a_name_and_a_password(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    """A wrong one says so, and leaves the name; the right one shows the fleet until a reload."""
    users, right = tmp_path / "htpasswd", "kød 密 horse"
    hashed = bcrypt.hashpw(right.encode(), bcrypt.gensalt(4)).decode()
    users.write_text(f"ada:{hashed}:ops:admin\n")
    service = serve(api=f"auth_strategy = http_basic\nhttp_basic_auth_user_file = {users}")
    header = base64.b64encode(f"ada:{right}".encode()).decode()
    create_hosts(Client.at(service.url).acting_as({"Authorization": f"Basic {header}"}), "cn1")

    browser.expect(REFUSED)
    browser.open(service.url, "#/hosts/cn1")
    assert browser.find("h1").text == "Sign in"
    assert browser.focused == browser.labelled("User")
    browser.write("User", "ada")
    browser.write("Password", "battery staple")
    browser.click(SIGN_IN)
    browser.find(".problem", "The service does not accept this name and password.")
    assert browser.labelled("User").get_attribute("value") == "ada"

    browser.write("Password", right)
    browser.labelled("Password").send_keys(Keys.ENTER)
    browser.find("h1", "cn1")
    browser.find(".light", "Live")
    assert_only_in_headers(browser, "authorization", f"Basic {header}", "correct horse")

    browser.reload()
    browser.find("h1", "Sign in")


def test_a_token_is_pasted(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    """One that is kept survives a reload, but neither signing out nor a new tab."""
    tokens = tmp_path / "tokens"
    token = create_token(tokens, "ada", role="admin")
    service = serve(api=f"auth_strategy = token\ntoken_file = {tokens}")
    create_hosts(Client.at(service.url).acting_as({"X-Auth-Token": token}), "cn1")

    browser.expect(REFUSED)
    browser.open(service.url)
    browser.find(".sign-in small", "A token that berth token create printed.")
    browser.write("Token", "nonsense")
    browser.click(SIGN_IN)
    browser.find(".problem", "The service does not accept this token.")

    browser.write("Token", f" {token} ")
    browser.click("label", "Stay signed in until this tab is closed")
    browser.click(SIGN_IN)
    browser.find(".lead", "1 host")
    browser.reload()
    browser.find(".lead", "1 host")
    assert_only_in_headers(browser, "x-auth-token", token, token)

    browser.click("button", "Sign out")
    browser.find("h1", "Sign in")
    assert "cn1" not in browser.text
    browser.reload()
    browser.find("h1", "Sign in")


def test_keystone_takes_a_token_of_its_own(
    browser: Browser, keystone: Keystone, serve: Serve
) -> None:
    """Of a real Keystone; its 401 has another form than that of the service."""
    project = keystone.create("project", name="page", domain_id="default")
    keystone.create_user("page-service", {"service": [f"projects/{project}"]})
    keystone.create_user("page-admin", {"admin": [f"projects/{project}"]})
    section = f"""[keystone_authtoken]
www_authenticate_uri = {keystone.url}
auth_type = password
auth_url = {keystone.url}
username = page-service
password = {PASSWORD}
user_domain_name = Default
project_name = page
project_domain_name = Default
"""
    service = serve(api="auth_strategy = keystone", more=section)
    token = keystone.token("page-admin", project="page")
    create_hosts(Client.at(service.url).acting_as({"X-Auth-Token": token}), "cn1")

    browser.expect(REFUSED)
    browser.open(service.url)
    browser.find(".sign-in small", "openstack token issue")
    browser.write("Token", "gAAAAABnonsense")
    browser.click(SIGN_IN)
    browser.find(".problem", "The service does not accept this token.")
    browser.write("Token", token)
    browser.click(SIGN_IN)
    browser.find(".lead", "1 host")
    assert_only_in_headers(browser, "x-auth-token", token, token)


def assert_only_in_headers(browser: Browser, header: str, value: str, secret: str) -> None:
    """The credentials were in this header of requests to the API, and nowhere else."""
    sent = browser.requests()
    assert any(
        {name.lower(): text for name, text in request.headers.items()}.get(header) == value
        for request in sent
    )
    assert not [request.url for request in sent if secret in request.url]
    assert secret not in browser.address
    assert browser.driver.get_cookies() == []
