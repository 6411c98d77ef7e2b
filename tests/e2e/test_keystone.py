# SPDX-License-Identifier: Apache-2.0
"""`berth serve` with `auth_strategy = keystone`, and a real Keystone with real users.

Source: operations.md sections 1.1 and 2.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests

from berth import config, deploy
from tests.client import Client, Response
from tests.e2e.serving import PATIENCE, Service, environment, run_berth, serving, wait_until
from tests.servers.keystone import PASSWORD, Keystone
from tests.servers.ports import HOST, free_port

#: What the clients warn their own developers of.
pytestmark = pytest.mark.filterwarnings("ignore:::openstack")

#: As operators write it, but for how much is logged.
CONFIGURATION = """\
[DEFAULT]
debug = True
default_log_levels = keystoneauth=DEBUG,keystonemiddleware=DEBUG,urllib3=DEBUG

[api]
auth_strategy = keystone

[placement_database]
connection = sqlite:///{home}/berth.db
sqlite_synchronous = False

[keystone_authtoken]
www_authenticate_uri = {url}
auth_type = password
auth_url = {url}
username = berth
password = {password}
user_domain_name = Default
project_name = services
project_domain_name = Default
"""

#: Apart from those that other tests enter into the catalogue.
REGION = "RegionOfThisTest"

#: Who calls, and with a token of what scope: their user, and the words of `Keystone.token`.
CALLERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "admin": ("alice", {"project": "web"}),
    "admin of another project": ("alice", {"project": "shop"}),
    "service": ("nova", {"project": "services"}),
    "reader": ("ron", {"project": "web"}),
    "member": ("mary", {"project": "web"}),
    "agent": ("gpu02", {"project": "services"}),
    "agent and reader": ("gpu03", {"project": "services"}),
    "nobody in particular": ("mary", {}),
    "admin of the system": ("sydney", {"system": True}),
    "admin of the domain": ("sydney", {"domain": True}),
}


@dataclass(frozen=True)
class World:
    """A Keystone with users, and a berth that uses it."""

    keystone: Keystone
    service: Service
    #: Ids by their names.
    projects: Mapping[str, str]

    def token(self, caller: str) -> str:
        """A new token of one of `CALLERS`."""
        user, scope = CALLERS[caller]
        return self.keystone.token(user, **scope)  # type: ignore[arg-type]

    def acting_as(self, token: str | None, **more: str) -> Client:
        """A client with a token and further headers, in which `_` stands for a dash."""
        headers = {name.replace("_", "-"): text for name, text in more.items()}
        if token is not None:
            headers["X-Auth-Token"] = token
        return Client.at(self.service.url).acting_as(headers)


@pytest.fixture(scope="module")
def world(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A user with each role, and berth's endpoint in the catalogue."""
    projects = {
        name: keystone.create("project", name=name, domain_id="default")
        for name in ("services", "web", "shop")
    }
    web, shop, service = (f"projects/{projects[name]}" for name in ("web", "shop", "services"))
    keystone.create_user("berth", {"service": [service]})
    keystone.create_user("nova", {"service": [service]})
    keystone.create_user("alice", {"admin": [web, shop]})
    keystone.create_user("ron", {"reader": [web]})
    keystone.create_user("mary", {"member": [web]})
    keystone.create("role", name="agent")
    keystone.create_user("gpu02", {"agent": [service]})
    keystone.create_user("gpu03", {"agent": [service], "reader": [service]})
    keystone.create_user("sydney", {"admin": ["system", "domains/default"]})
    home = tmp_path_factory.mktemp("home")
    source = configuration(home, keystone.url)
    with serving(home, "--config-file", str(source)) as berth:
        keystone.create("region", id=REGION)
        placement = keystone.create("service", type="placement", name="placement")
        for interface in ("public", "internal"):
            keystone.create(
                "endpoint",
                service_id=placement,
                interface=interface,
                url=berth.url,
                region_id=REGION,
            )
        yield World(keystone, berth, projects)


def configuration(home: Path, url: str, more: str = "", password: str = PASSWORD) -> Path:
    """A placement.conf for the Keystone at a URL, with further options of its section."""
    path = home / "placement.conf"
    path.write_text(CONFIGURATION.format(home=home, url=url, password=password) + more)
    return path


def assert_unauthorized(answer: Response, keystone: Keystone) -> None:
    """401 with the address of Keystone, and the body of keystonemiddleware."""
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{keystone.url}"'
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json["error"]["code"] == 401


@pytest.mark.parametrize(
    ("caller", "everything", "reshaper", "own_usages", "other_usages"),
    [
        ("admin", 200, 403, 200, 200),
        ("admin of another project", 200, 403, 200, 200),
        ("service", 200, 400, 200, 200),
        ("reader", 403, 403, 200, 403),
        ("member", 403, 403, 200, 403),
        ("nobody in particular", 403, 403, 403, 403),
        ("admin of the system", 403, 403, 403, 403),
        ("admin of the domain", 403, 403, 403, 403),
    ],
)
def test_who_may_do_what(
    world: World, caller: str, everything: int, reshaper: int, own_usages: int, other_usages: int
) -> None:
    """By the roles and the scope of the token; only a service reaches the check of a reshape's
    body.

    A member is a reader too: Keystone adds that role to tokens.
    """
    client = world.acting_as(world.token(caller))
    project = CALLERS[caller][1].get("project", "web")
    own, other = world.projects[str(project)], world.projects["services"]
    asked = {
        "/resource_providers": everything,
        f"/usages?project_id={own}": own_usages,
        f"/usages?project_id={other}": other_usages,
    }
    assert {path: client.get(path).status for path in asked} == asked
    assert client.post("/reshaper", json={}).status == reshaper


def test_an_agent_is_bound_to_the_host_with_its_name(world: World) -> None:
    """If that is its only role; beside others, the role grants nothing."""
    agent = world.acting_as(world.token("agent"))
    assert agent.post("/resource_providers", json={"name": "gpu02"}).status == 200
    refused = agent.post("/resource_providers", json={"name": "gpu40"})
    said = "bound to the host gpu02, and provider gpu40 is the root of another tree"
    assert refused.status == 403 and said in refused.error["detail"]
    refused = world.acting_as(world.token("agent and reader")).get("/resource_providers")
    assert refused.status == 403 and "you have the role reader" in refused.error["detail"]


def test_a_token_that_is_none_is_refused(world: World) -> None:
    """A request without one, or with one that Keystone did not issue, for any path and version but
    the root, which needs none."""
    for token in (None, "nonsense"):
        assert world.acting_as(token).get("/").status == 200
    assert_unauthorized(world.acting_as(None).get("/resource_providers"), world.keystone)
    assert_unauthorized(world.acting_as("nonsense").get("/nowhere"), world.keystone)
    assert_unauthorized(world.acting_as("x" * 4000).get("/traits"), world.keystone)
    versioned = world.acting_as("nonsense", OpenStack_API_Version="placement 9.9")
    assert_unauthorized(versioned.get("/traits"), world.keystone)


def test_a_token_that_was_revoked_is_refused(world: World) -> None:
    """Once it is no longer cached."""
    token = world.token("admin")
    world.keystone.revoke(token)
    assert_unauthorized(world.acting_as(token).get("/traits"), world.keystone)


def test_a_stream_ends_with_its_token(world: World) -> None:
    """Although the middleware has it cached; the worker then refuses it to every request."""
    token = world.token("admin")
    client = world.acting_as(token)
    revision = json.loads(client.get("/berth/v1/fleet").text.splitlines()[0])["revision"]
    with requests.get(
        f"{world.service.url}/berth/v1/changes?after={revision}",
        headers={"X-Auth-Token": token, "Accept": "text/event-stream"},
        stream=True,
        timeout=PATIENCE,
    ) as stream:
        lines = stream.iter_lines()
        assert next(lines) == b"event: revision"
        world.keystone.revoke(token)
        assert client.get("/traits").status == 200
        assert all(line[:1] in b":di" for line in lines)
    assert_unauthorized(client.get("/traits"), world.keystone)


def test_identity_headers_of_clients_count_for_nothing(world: World) -> None:
    """With or without a token, identity headers of clients are ignored."""
    forged = {
        "X_Roles": "admin,service",
        "X_Role": "admin",
        "X_User_Id": "root",
        "X_User": "root",
        "X_Project_Id": world.projects["shop"],
        "X_Tenant_Id": world.projects["shop"],
        "X_Identity_Status": "Confirmed",
        "X_Service_Roles": "service",
        "X_Is_Admin_Project": "True",
    }
    assert_unauthorized(world.acting_as(None, **forged).get("/traits"), world.keystone)
    member = world.acting_as(world.token("member"), **forged)
    assert member.get("/traits").status == 403
    assert member.get(f"/usages?project_id={world.projects['shop']}").status == 403
    # Nor does a header take away the scope that a token has, or give one.
    system = world.acting_as(world.token("admin of the system"), OpenStack_System_Scope="")
    assert system.get("/traits").status == 403
    admin = world.acting_as(world.token("admin"), OpenStack_System_Scope="all")
    assert admin.get("/traits").status == 200


def test_a_service_that_calls_for_a_user_adds_no_rights(world: World) -> None:
    """A valid service token changes nothing, nor the scope of the user's; an invalid one, or one of
    a user, is refused."""
    good, user = world.token("service"), world.token("admin")
    assert world.acting_as(user, X_Service_Token=good).get("/traits").status == 200
    for caller in ("member", "admin of the system"):
        client = world.acting_as(world.token(caller), X_Service_Token=good)
        assert client.get("/traits").status == 403
    for bad in ("nonsense", world.token("member")):
        answer = world.acting_as(user, X_Service_Token=bad).get("/traits")
        assert_unauthorized(answer, world.keystone)


def test_a_service_may_finish_what_a_user_began(world: World) -> None:
    """With a service token, a user's token that has expired meanwhile is accepted."""
    expired = world.keystone.token("alice", project="web", seconds=1)
    wait_until(lambda: world.acting_as(expired).get("/traits").status == 401, "it to expire")
    assert_unauthorized(world.acting_as(expired).get("/traits"), world.keystone)
    by_service = world.acting_as(expired, X_Service_Token=world.token("service"))
    assert by_service.get("/traits").status == 200


def test_the_openstack_command_needs_nothing_but_its_environment(world: World) -> None:
    """It finds the endpoint in the catalogue."""
    host = str(uuid.uuid4())
    commands = (f"create --uuid {host} host-1", f"show {host} -f json", "list -f value -c name")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("openstack"))],
        input="".join(f"resource provider {command}\n" for command in commands),
        env=environment(
            world.service.home, **{**world.keystone.credentials(), "OS_REGION_NAME": REGION}
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    assert f'"uuid": "{host}"' in done.stdout
    assert "host-1" in done.stdout.split()


def test_a_keystone_that_goes_away_and_comes_back(world: World) -> None:
    """503 during the outage, except for cached tokens; no other caller is authenticated."""
    known, unknown = world.token("admin"), world.token("admin")
    assert world.acting_as(known).get("/traits").status == 200
    world.keystone.stop()
    try:
        assert_unavailable(world.acting_as(unknown).get("/traits"))
        assert_unavailable(world.acting_as("nonsense").get("/traits"))
        assert world.acting_as(known).get("/traits").status == 200
        assert world.acting_as(None).get("/").status == 200
        assert_unauthorized(world.acting_as(None).get("/traits"), world.keystone)
    finally:
        world.keystone.start()
    wait_until(lambda: world.acting_as(unknown).get("/traits").status == 200, "it to recover")
    log = world.service.log.read_text()
    assert log.count("Keystone cannot validate tokens: it cannot be reached") == 1
    assert log.count("Keystone validates tokens again.") == 1


@pytest.mark.thorough
def test_a_keystone_that_hangs_holds_nobody_for_long(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first caller waits for the timeout of [keystone_authtoken], and gets 503."""
    source = configuration(tmp_path, world.keystone.url, "http_connect_timeout = 1\n")
    token = world.token("admin")
    client = inside(source).acting_as({"X-Auth-Token": token})
    world.keystone.pause()
    try:
        assert_unavailable(client.get("/traits"))
    finally:
        world.keystone.resume()
    wait_until(lambda: client.get("/traits").status == 200, "it to recover")
    assert "Keystone cannot validate tokens: it does not answer within 1 s" in caplog.text


def inside(source: Path) -> Client:
    """A berth in this process, on a database of its own."""
    conf = config.load([str(source)])
    conf.set_override("sync_on_startup", True, group="placement_database")
    return Client.of(deploy.load_application(conf))


def assert_unavailable(answer: Response) -> None:
    """503 in the form of the API."""
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"
    assert "Keystone" in answer.detail
    assert answer.code == "placement.undefined_code"
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]


def test_no_secret_reaches_the_log(world: World) -> None:
    """Not even at DEBUG, with everything that the libraries log."""
    user, service = world.token("admin"), world.token("service")
    assert world.acting_as(user, X_Service_Token=service).get("/traits").status == 200
    assert world.acting_as(service).get("/traits").status == 200
    assert world.acting_as("a-token-that-is-none").get("/traits").status == 401
    log = world.service.log.read_text()
    assert "keystoneauth" in log and "keystonemiddleware" in log
    secrets = {"tokens": user, "services": service, "none": "a-token-that-is-none"}
    assert [name for name, text in secrets.items() if text in log] == []
    assert PASSWORD not in log


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, "{}", "it answers 500"),
        (200, "<html>Welcome</html>", "its answer cannot be used"),
    ],
)
def test_what_is_no_sound_keystone_lets_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, body: str, reason: str
) -> None:
    """Whatever answers at the address."""
    with answering(status, body) as url:
        client = inside(configuration(tmp_path, url))
        assert_unavailable(client.acting_as({"X-Auth-Token": "whatever"}).get("/traits"))
    assert reason in caplog.text


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """The URL of a server that always gives the same response."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}/v3"
        server.shutdown()


def test_refused_credentials_let_nobody_in(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the user; `berth status` reports a failure."""
    source = configuration(tmp_path, world.keystone.url, password="wrong")
    client = inside(source)
    assert_unavailable(client.acting_as({"X-Auth-Token": world.token("admin")}).get("/traits"))
    assert "it refuses the credentials of [keystone_authtoken]" in caplog.text
    done = run_berth(tmp_path, "status", "--config-file", str(source))
    assert done.returncode == 2
    assert "failure  Keystone: it refuses the credentials of [keystone_authtoken]." in done.stdout


def test_a_user_who_may_not_validate_tokens(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keystone requires the role service or admin."""
    world.keystone.create_user("weak", {"member": [f"projects/{world.projects['services']}"]})
    source = configuration(tmp_path, world.keystone.url)
    source.write_text(source.read_text().replace("username = berth", "username = weak"))
    client = inside(source)
    assert_unavailable(client.acting_as({"X-Auth-Token": world.token("admin")}).get("/traits"))
    assert "it does not let the user of [keystone_authtoken] validate tokens" in caplog.text


def test_a_keystone_that_is_not_there_at_start(tmp_path: Path) -> None:
    """The service starts and logs one line, and `berth status` warns."""
    url = f"http://{HOST}:{free_port()}/v3"
    source = str(configuration(tmp_path, url))
    with serving(tmp_path, "--config-file", source) as service:
        assert_unavailable(Client.at(service.url).acting_as({"X-Auth-Token": "t"}).get("/traits"))
        at_start = service.log.read_text()
        done = run_berth(tmp_path, "status", "--config-file", source)
    assert "Keystone cannot validate tokens: it cannot be reached (connection refused)." in at_start
    assert done.returncode == 1
    assert "warning  Keystone: it cannot be reached (connection refused)." in done.stdout
