# SPDX-License-Identifier: Apache-2.0
"""The alerts and dashboards of `contrib/`, of the service and its agents, by Prometheus itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from berth.cli.agent_running import metrics_served_at
from berth.hosts import BadProviderTree
from berth.hosts.agent_report import AgentReport
from tests.client import Client
from tests.e2e.serving import PATIENCE, serving, wait_until
from tests.engines import REQUIRE
from tests.hosts.test_agent_report import Host, agent_of
from tests.servers.binaries import find_program
from tests.servers.ports import free_port

CONTRIB: Final = Path(__file__).parents[2] / "contrib"
RULES: Final = CONTRIB / "prometheus" / "berth-alerts.yaml"
AGENT_RULES: Final = RULES.with_name("berth-agent-alerts.yaml")
ALL_RULES: Final = (RULES, AGENT_RULES)
DASHBOARD: Final = CONTRIB / "grafana" / "berth.json"
AGENT_DASHBOARD: Final = DASHBOARD.with_name("berth-agents.json")

#: Panels that show something as soon as a service has been asked for anything.
MAIN_PANELS: Final = {
    *("Ready", "Workers", "Providers", "Requests", "Errors", "Version"),
    *("Requests by route", "Requests by status", "Requests by microversion"),
    *("Latency, all routes", "Latency of searches and claims, 99 %"),
    *("Running", "Waiting", "Rejected (503, overloaded)", "CPU", "Memory", "Open files"),
    *("Refreshes", "Time of a refresh, 99 %", "Last refresh", "Size"),
    *("Claims and releases", "Conflicts", "Candidates per search"),
    *("Writes per commit", "Connections", "Failures"),
    *("Used share of capacity", "Capacity", "Used", "Providers"),
    *("More that fit", "Hosts with room", "Largest that fits", "Stranded share of what is free"),
}


def program(name: str) -> str:
    """A program of Prometheus; if it is missing, the test is skipped, or fails if the run requires
    it."""
    found = find_program(name)
    if found is None:
        why = f"no `{name}` binary found: tools/engines.sh installs it"
        if os.environ.get(REQUIRE):
            pytest.fail(why)
        pytest.skip(why)
    return str(found)


def promtool(*arguments: str | Path, text: str | None = None) -> None:
    """Run promtool, which must succeed."""
    run = subprocess.run(
        [program("promtool"), *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr


def alerts(rules: Path = RULES) -> dict[str, dict[str, Any]]:
    """The alerts of a file by name."""
    groups = yaml.safe_load(rules.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_the_rules_are_right() -> None:
    """So is the configuration that shows how to load them."""
    promtool("check", "rules", *ALL_RULES)
    shown = RULES.with_name("prometheus.yaml")
    promtool("check", "config", shown)
    assert yaml.safe_load(shown.read_text())["rule_files"] == [rules.name for rules in ALL_RULES]


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.stem)
def test_each_alert_fires_where_it_should(rules: Path) -> None:
    """In the cases of its test, and not for a healthy service or agent; it says how severe it is,
    what it means, and what to do."""
    for rule in alerts(rules).values():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "description"}
    files = sorted(rules.parent.glob(f"{rules.stem}.*test.yaml"))
    tests = "".join(file.read_text() for file in files)
    tested = set(re.findall(r'alertname="(\w+)",alertstate="firing"', tests))
    assert tested == set(alerts(rules))
    promtool("test", "rules", *files)


def test_the_metrics_are_as_prometheus_would_have_them(client: Client, report: AgentReport) -> None:
    """Names, units and help: `promtool check metrics` reports nothing."""
    client.get("/resource_providers")
    store_flavor(client)
    # The name is that of spec/beyond.md 4.6, and of the member of an answer; in OpenMetrics too, a
    # gauge may be called so.
    text = re.sub(r"\bberth_capacity_count\b", "berth_capacity", client.get("/metrics").text)
    promtool("check", "metrics", text=text)
    promtool("check", "metrics", text=report.metrics("")[1].decode())


def store_flavor(client: Client) -> None:
    """Have a flavor whose capacity is counted."""
    request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    assert client.put("/berth/v1/flavors/small", json={"request": request}).status == 201


class Prometheus:
    """A running Prometheus server, used through its API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The current series of an expression, which must be valid."""
        found = self._get(f"query?{urllib.parse.urlencode({'query': expression})}")
        assert not found.get("warnings"), found
        result = found["data"]["result"]
        assert isinstance(result, list)
        return result

    def rules(self) -> list[dict[str, Any]]:
        """The rules and their state."""
        groups = self._get("rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}", timeout=PATIENCE) as answer:
            found = json.load(answer)
        assert isinstance(found, dict)
        assert found["status"] == "success", found
        return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service with two workers and a host."""
    with serving(tmp_path_factory.mktemp("home"), "--workers", "2") as running:
        client = Client.at(running.url)
        host = {"uuid": str(uuid.uuid4()), "name": "host"}
        assert client.post("/resource_providers", json=host).status == 200
        inventories = {"VCPU": {"total": 100_000}, "MEMORY_MB": {"total": 1024}}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        path = f"/resource_providers/{host['uuid']}/inventories"
        assert client.put(path, json=body).status == 200
        store_flavor(client)
        yield client


@pytest.fixture(scope="module")
def prometheus(service: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the service and has loaded the alerts."""
    target = f"{service.transport.host}:{service.transport.port}"  # type: ignore[attr-defined]
    with scraping(tmp_path_factory.mktemp("prometheus"), "berth", target, RULES) as server:
        yield server


@contextmanager
def scraping(folder: Path, job: str, target: str, rules: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes one target every second, for the duration of the block."""
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": job,
                "scrape_timeout": "1s",
                "static_configs": [{"targets": [target]}],
            }
        ],
    }
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    port = free_port()
    command = [
        program("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        wait_until(
            lambda: process.poll() is not None or server.is_ready(), "Prometheus to be ready"
        )
        assert process.poll() is None, (folder / "log").read_text()
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def use(client: Client) -> None:
    """Send some requests of each kind: search, claim, refused claim, release."""
    (provider,) = client.get("/resource_providers").json["resource_providers"]
    assert client.get("/allocation_candidates?resources=VCPU:1").status == 200
    consumer = f"/allocations/{uuid.uuid4()}"

    def claim(amount: int) -> int:
        body = {
            "allocations": {provider["uuid"]: {"resources": {"VCPU": amount}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return client.put(consumer, json=body).status

    assert claim(1_000_000) == 409
    assert claim(1) == 204
    assert client.delete(consumer).status == 204


def panels(dashboard: Path = DASHBOARD) -> dict[str, list[str]]:
    """The expressions of a dashboard's panels by title, with variables replaced."""
    values = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*", "$flavor": ".*"}
    found: dict[str, list[str]] = {}
    for panel in json.loads(dashboard.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in values.items():
                expression = expression.replace(name, value)
            assert "$" not in expression, expression
            found.setdefault(panel["title"], []).append(expression)
    return found


def test_the_dashboards_show_what_there_is(
    service: Client, prometheus: Prometheus, prometheus_of_agent: Prometheus
) -> None:
    """Each expression is valid; the main panels have results, and of an agent, which has made one
    pass before it was asked, all but the rate of failures."""
    assert set(panels()) >= MAIN_PANELS

    def empty(server: Prometheus, dashboard: Path) -> set[str]:
        return {
            title
            for title, expressions in panels(dashboard).items()
            if not any(list(map(server.query, expressions)))
        }

    def is_shown() -> bool:
        use(service)
        of_agent = empty(prometheus_of_agent, AGENT_DASHBOARD)
        return of_agent <= {"Failures"} and not empty(prometheus, DASHBOARD) & MAIN_PANELS

    wait_until(is_shown, "data on all main panels")


def test_the_alerts_can_be_evaluated(prometheus: Prometheus) -> None:
    """With the metrics of a real service, for which none fires."""
    wait_until(
        lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()),
        "all rules to be evaluated",
    )
    rules = prometheus.rules()
    assert {rule["name"] for rule in rules} == set(alerts())
    assert [rule.get("lastError") for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def test_every_metric_that_is_asked_for_is_told(service: Client, report: AgentReport) -> None:
    """A misspelt name is a valid expression without a result. Every metric of an agent is on its
    dashboard."""
    use(service)
    assert asked_for(DASHBOARD, RULES) <= families(service.get("/metrics").text)
    asked = asked_for(AGENT_DASHBOARD, AGENT_RULES)
    assert asked == families(report.metrics("")[1].decode())


def families(exposition: str) -> set[str]:
    """The metric families that `/metrics` exposes."""
    return set(re.findall(r"^# TYPE (berth_\w+) ", exposition, re.MULTILINE))


def asked_for(dashboard: Path, rules: Path) -> set[str]:
    """The metric families that a dashboard or an alert uses."""
    expressions = [one for some in panels(dashboard).values() for one in some]
    expressions += [rule["expr"] for rule in alerts(rules).values()]
    asked = re.findall(r"\bberth_\w+", " ".join(expressions))
    return {re.sub(r"(_seconds|_writes)_(bucket|sum|count)$", r"\1", name) for name in asked}


@pytest.fixture(scope="module")
def report() -> AgentReport:
    """The report of an agent after one pass, in which the second of its two nodes failed."""
    host = Host()
    host.now = time.time()
    host.fault, host.without_fault = BadProviderTree(["cn2 has no name"]), "cn1"
    agent = agent_of(host, "cn1", "cn2")
    agent.start()
    return AgentReport(agent, Counter(GET=5, PUT=1), clock=lambda: host.now)


@pytest.fixture(scope="module")
def prometheus_of_agent(
    report: AgentReport, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the agent and has loaded the alerts."""
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        metrics_served_at("127.0.0.1", 0, report) as url,
        scraping(folder, "berth-agent", url.removeprefix("http://"), AGENT_RULES) as server,
    ):
        yield server


def test_the_agents_alerts_can_be_evaluated(prometheus_of_agent: Prometheus) -> None:
    """Those that apply to this agent are pending; no others are."""

    def states() -> dict[str, str]:
        return {rule["name"]: rule["state"] for rule in prometheus_of_agent.rules()}

    pending = {"BerthAgentNeverReported", "BerthAgentOverFull"}
    wait_until(
        lambda: {name for name, state in states().items() if state == "pending"} == pending,
        "the alerts of this agent",
    )
    assert set(states()) == set(alerts(AGENT_RULES))
    assert [
        rule["lastError"] for rule in prometheus_of_agent.rules() if rule.get("lastError")
    ] == []
