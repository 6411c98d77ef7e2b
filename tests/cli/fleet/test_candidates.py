# SPDX-License-Identifier: Apache-2.0
"""`berth candidates`, `claim`, `release` and `reshape`, on the demo fleet."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fleet.ways import BothWays

CONSUMER = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"
OWNER = ("--project", "shop", "--user", "alice")


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


def asked(berth: BothWays, *arguments: str) -> list[Any]:
    """The candidates of a question, as JSON."""
    answer = berth.ok("candidates", *arguments, "--json").answer
    return list(answer.get("candidates", answer.get("allocation_requests")))


def providers_of(berth: BothWays, candidate: Any) -> set[str]:
    """The names of the providers of a candidate."""
    return {
        berth.ok("provider", "show", provider, "--json").answer["name"]
        for provider in candidate["allocations"]
    }


def test_a_table_names_hosts_and_what_they_give(berth: BothWays) -> None:
    """Amounts have separators of thousands."""
    arguments = ("VCPU=2", "MEMORY_MB=2048", "--in-tree", "cn010")
    heads, row, sums = berth.ok("candidates", *arguments, "--limit", "1").lines
    assert heads.split() == ["HOST", "GIVES", "AFTER"]
    assert row.startswith("cn010  cn010_numa")
    assert "VCPU 2, MEMORY_MB 2,048" in row or "MEMORY_MB 2,048, VCPU 2" in row
    _, unused, _ = berth.ok("candidates", *arguments, "--limit", "1", "--nothing-used").lines
    assert "VCPU 2/" in unused
    assert sums.startswith("1 candidate on 1 host")


def test_conditions_narrow_what_fits(berth: BothWays) -> None:
    """Traits, aggregates and trees of the group without a name."""
    (candidate,) = asked(berth, "VGPU=1", "--required", "CUSTOM_A100", "--in-tree", "cn010")
    assert providers_of(berth, candidate) == {"cn010_gpu0"} or providers_of(berth, candidate) == {
        "cn010_gpu1"
    }
    assert not_fitting(berth, "VGPU=1", "--required", "CUSTOM_T4", "--in-tree", "cn010")
    assert not_fitting(berth, "VGPU=1", "--required", "!CUSTOM_A100", "--in-tree", "cn010")
    assert asked(berth, "VGPU=1", "--required", "in:CUSTOM_A100,CUSTOM_T4", "--limit", "1")


def not_fitting(berth: BothWays, *arguments: str) -> bool:
    """Whether nothing fits, with the exit code for that."""
    printed = berth("candidates", *arguments)
    shown = [line for line in berth("why", *arguments).lines if "held by" not in line]
    # `berth why` also says who uses a host, and then names one host more.
    assert printed.lines == shown[: len(printed.lines)]
    return (printed.code, printed.stderr.splitlines()[-1]) == (14, "berth: nothing fits")


def test_an_amount_may_be_split(berth: BothWays) -> None:
    """Of a class, over the providers of one host; also in a group, and in `berth why`."""
    wide = ("VCPU=40", "--host-in", "cn020", "--nothing-used")
    assert not_fitting(berth, *wide)
    (candidate,) = asked(berth, *wide, "--split", "VCPU", "--limit", "1")
    assert providers_of(berth, candidate) == {"cn020_numa0", "cn020_numa1"}
    group = ("--group", "_CPU VCPU=40 split=VCPU:parts=2,min=8,step=4")
    (candidate,) = asked(berth, *group, *wide[1:], "--limit", "1")
    given = [each["resources"]["VCPU"] for each in candidate["allocations"].values()]
    assert sum(given) == 40 and all(amount >= 8 and amount % 4 == 0 for amount in given)
    assert berth.ok("why", *wide, "--split", "VCPU").lines[0].startswith("1 host fits")
    wrong = berth("why", *wide, "--split", "VCPU:parts")
    assert wrong.code == 2 and "--split VCPU:parts is not CLASS or CLASS:parts=N" in wrong.stderr


def test_a_query_from_a_log_is_asked_as_it_is(berth: BothWays) -> None:
    """Alone, or in the line of a request."""
    query = "resources=VGPU:1&required=CUSTOM_A100&limit=3"
    for text in (query, f"GET /placement/allocation_candidates?{query}"):
        answer = berth.warned("candidates", text, "--limit", "2", "--json").answer
        assert len(answer["candidates"]) == 2


def test_the_order_is_that_of_the_scores(berth: BothWays) -> None:
    """The fullest host first; one candidate of each unless --per-host allows more."""
    lines = berth.ok("candidates", "VCPU=1", "--order", "pack", "--limit", "5").lines
    assert lines[0].split() == ["HOST", "GIVES", "SCORE", "AFTER"]
    assert lines[-1] == "5 candidates on 5 hosts; more fit"
    scores = [float(re.findall(r"  +([01]\.\d\d)  ", line)[0]) for line in lines[1:-1]]
    assert scores == sorted(scores, reverse=True)
    (first, *_) = asked(berth, "VCPU=1", "--order", "pack", "--per-host", "1", "--limit", "5")
    assert first["score"]["total"] == pytest.approx(scores[0], abs=0.01)
    both = berth.ok("candidates", "VCPU=1", "--host-in", "cn020", "--per-host", "2").lines
    assert both[-1] == "2 candidates on 1 host; no more fit"


def test_a_preferred_host_comes_first(berth: BothWays) -> None:
    """A trait outweighs the order; of a few hosts only, the best need not be among them."""
    by_trait = ("VCPU=1", "--order", "pack", "--prefer", "STORAGE_DISK_SSD=5", "--per-host", "1")
    first, *_, last = asked(berth, *by_trait, "--limit", "1000")
    assert (first["score"]["prefer"], last["score"]["prefer"]) == ([5], [0])
    against = asked(
        berth, "VCPU=1", "--prefer", "in:STORAGE_DISK_SSD,COMPUTE_NODE=-2", "--limit", "1000"
    )
    assert against[-1]["score"]["prefer"] == [-2]
    without = asked(berth, "VCPU=1", "--prefer", "!STORAGE_DISK_SSD", "--limit", "5")
    assert [each["score"]["prefer"] for each in without] == [[1]] * 5
    among = asked(berth, "VCPU=1", "--order", "pack", "--among", "3", "--per-host", "1")
    assert len({each["host"] for each in among}) == 3
    wrong = berth("candidates", "VCPU=1", "--prefer", "STORAGE_DISK_SSD=much")
    assert wrong.code == 2
    assert "as in STORAGE_DISK_SSD=5" in wrong.stderr


def test_conditions_on_the_host_and_assumed_changes(berth: BothWays) -> None:
    """Labels of its aggregates, hosts that it may be, and a fleet that might be."""
    in_rack = asked(berth, "VCPU=1", "--host-member-of", "rack=r03", "--per-host", "1")
    assert len(in_rack) == 8
    not_one = ("--host-not-in", "cn017", "--host-required", "COMPUTE_NODE,!CUSTOM_T4")
    assert len(asked(berth, "VCPU=1", "--host-member-of", "rack=r03", *not_one)) > 7
    conditions = ("--in-tree", "cn020", "--under", "cn020_numa0", "--not-under", "cn020_numa1")
    (only,) = asked(berth, "VCPU=1", *conditions, "--host-anywhere", "CUSTOM_A100")
    assert providers_of(berth, only) == {"cn020_numa0"}
    assert not_fitting(berth, "VCPU=32", "--host-in", "cn020", "--tolerate", "*")
    assert asked(berth, "VCPU=32", "--host-in", "cn020", "--nothing-used")
    assert not_fitting(berth, "VCPU=1", "--host-in", "cn020", "--without-host", "cn020")
    holder = berth.ok("consumer", "list", "cn020_numa0").lines[1].split()[0]
    assert asked(berth, "VCPU=1", "--host-in", "cn020", "--without-consumer", holder)


def test_why_says_what_would_help(berth: BothWays) -> None:
    """Each constraint with its figures, and the nearest hosts."""
    lines = berth.ok("why", "VCPU=33", "--host-member-of", "zone=z1", "--nearest", "1").lines
    assert lines[0].startswith("No host could hold this, even with nothing used.")
    assert lines[2].split() == ["CONSTRAINT", "ALONE", "LEFT"]
    assert re.search(r"VCPU 33 +0 +0  200 have VCPU, 0 could hold it$", lines[4])
    assert lines[6] == "It would fit"
    assert lines[7].startswith("  with VCPU ")
    assert re.fullmatch(r"Nearest: cn\d+ lacks \d+ VCPU \(.*\)", lines[-1])
    answer = berth.ok("why", "VCPU=33", "--seconds", "1", "--json").answer
    assert answer["verdict"] == "never"


def test_why_explains_each_alternative(berth: BothWays, tmp_path: Path) -> None:
    """Of a request in a file."""
    groups = [{"groups": {"": {"resources": {"VCPU": number}}}} for number in (33, 1)]
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"alternatives": groups}))
    lines = berth.ok("why", "--request", str(file)).lines
    assert [line for line in lines if line.startswith("Alternative")] == [
        "Alternative 0:",
        "Alternative 1:",
    ]


def test_groups_are_typed_as_one_text(berth: BothWays) -> None:
    """Each is served by one provider; --apart keeps them from each other's."""
    groups = (
        *("--group", "_A VGPU=1 required=CUSTOM_A100,!CUSTOM_T4 in_tree=cn020"),
        *("--group", "_B VGPU=1 in_tree=cn020"),
    )
    for candidate in asked(berth, *groups, "--apart", "_A,_B@provider"):
        assert candidate["mappings"]["_A"] != candidate["mappings"]["_B"]


def test_a_file_may_have_the_request_or_the_whole_body(berth: BothWays, tmp_path: Path) -> None:
    """Options for what is wanted exclude it."""
    request = {"groups": {"": {"resources": {"VGPU": 1}, "required": ["CUSTOM_A100"]}}}
    for body in (request, {"request": request, "limit": 2}):
        file = tmp_path / "request.json"
        file.write_text(json.dumps(body))
        assert len(asked(berth, "--request", str(file), "--limit", "2")) == 2
    refused = berth("candidates", "VCPU=1", "--request", str(file))
    assert refused.code == 2 and "CLASS=AMOUNT and --request exclude" in refused.stderr
    file.write_text("{")
    assert "is not JSON" in berth("candidates", "--request", str(file)).stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "nothing is requested: give CLASS=AMOUNT, as in VCPU=4"),
        (["VCPU=x"], "VCPU=x is not CLASS=AMOUNT"),
        (["VCPU=1", "DISK_GB"], "DISK_GB is not CLASS=AMOUNT, as in VCPU=4, and a flavor excludes"),
        (["VCPU=1", "VCPU=2"], "VCPU is named twice"),
        (["VCPU=1", "--group", "VGPU=1"], "begins with the group's name"),
        (["VCPU=1", "--apart", "_A,_B"], "--apart _A,_B is not A,B@LEVEL"),
    ],
)
def test_options_without_their_form_are_usage_errors(
    berth: BothWays, arguments: list[str], reason: str
) -> None:
    """It says what is wrong."""
    refused = berth("candidates", *arguments)
    assert refused.code == 2
    assert reason in refused.stderr


def test_the_service_s_own_message_is_one_sentence(berth: BothWays) -> None:
    """With its suggestion."""
    refused = berth("candidates", "VCPUU=1")
    assert refused.code == 11
    assert "VCPUU" in refused.stderr and "VCPU" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_candidate_is_claimed_and_released(berth: BothWays, tmp_path: Path) -> None:
    """The consumer has what the candidate gave."""
    file = tmp_path / "candidates.json"
    file.write_text(berth.ok("candidates", "VGPU=1", "--in-tree", "cn010", "--json").stdout)
    claimed = berth.ok("claim", CONSUMER, "--candidate", str(file), *OWNER)
    assert claimed.stdout.startswith(f"claimed for {CONSUMER}: cn010_gpu")
    shown = berth.ok("consumer", "show", CONSUMER, "--json").answer
    assert (shown["project_id"], shown["user_id"]) == ("shop", "alice")
    assert shown["consumer_type"] == "INSTANCE"
    assert "VGPU" in berth.ok("consumer", "show", CONSUMER).stdout
    gpu = claimed.stdout.split()[3].removesuffix(":")
    assert CONSUMER in berth.ok("consumer", "list", gpu).stdout
    assert berth.ok("usage", "project", "shop").lines[-1] == "1 consumer"
    assert berth.warned("usage", "project", "shop", "--user", "bob").lines == ["0 consumers"]
    refused = berth("provider", "delete", gpu)
    assert refused.code == 11 and "`berth release` them first" in refused.stderr
    refused = berth("claim", CONSUMER, "--candidate", str(file), *OWNER)
    assert refused.stderr == (
        f"berth: consumer {CONSUMER} has allocations already: --replace replaces them\n"
    )
    missing = berth("claim", OTHER, "--candidate", str(file), "--number", "99", *OWNER)
    assert missing.code == 2
    assert berth.ok("release", CONSUMER).stdout == f"released {CONSUMER}\n"
    assert berth("consumer", "show", CONSUMER).code == 11
    assert berth("release", CONSUMER).code == 11


def test_amounts_and_mappings_are_typed(berth: BothWays) -> None:
    """With a type and a generation."""
    amounts = ("cn001_numa0:VCPU=1", "cn001:DISK_GB=1")
    free(berth, "cn001_numa0", "VCPU")
    options = ("--type", "MIGRATION", "--mapping", "_CPU=cn001_numa0")
    berth.ok("claim", CONSUMER, *amounts, *OWNER, *options)
    body = berth.ok("consumer", "show", CONSUMER, "--json").answer
    assert body["consumer_type"] == "MIGRATION" and len(body["allocations"]) == 2
    seen = str(body["consumer_generation"])
    berth.ok("claim", CONSUMER, "cn001:DISK_GB=2", *OWNER, "--generation", seen)
    stale = berth("claim", CONSUMER, "cn001:DISK_GB=3", *OWNER, "--generation", seen)
    assert stale.code == 11 and "generation" in stale.stderr
    berth.ok("claim", CONSUMER, "cn001:DISK_GB=4", *OWNER, "--replace")
    body = berth.ok("consumer", "show", CONSUMER, "--json").answer
    assert [item["resources"] for item in body["allocations"].values()] == [{"DISK_GB": 4}]
    berth.ok("release", CONSUMER)


def free(berth: BothWays, provider: str, resource_class: str) -> None:
    """Make room on a provider."""
    berth.ok("inventory", "set", provider, f"{resource_class}=1000")


def test_several_consumers_are_written_at_once(berth: BothWays, tmp_path: Path) -> None:
    """All or none, from a file; and released together."""
    node = berth.ok("provider", "show", "cn002", "--json").answer["uuid"]
    body = {
        consumer: {
            "allocations": {node: {"resources": {"DISK_GB": 1}}},
            "project_id": "shop",
            "user_id": "alice",
            "consumer_type": "INSTANCE",
            "consumer_generation": None,
        }
        for consumer in (CONSUMER, OTHER)
    }
    file = tmp_path / "claims.json"
    file.write_text(json.dumps(body))
    assert berth.ok("claim", "--request", str(file)).stdout == "claimed for 2 consumers\n"
    nobody = str(uuid.UUID(int=1))
    refused = berth("release", CONSUMER, nobody)
    assert (refused.code, refused.stderr) == (11, f"berth: no consumer {nobody} has allocations\n")
    assert berth.ok("release", CONSUMER, OTHER).stdout == f"released {CONSUMER}, {OTHER}\n"
    file.write_text(json.dumps(body[CONSUMER]))
    berth.ok("claim", CONSUMER, "--request", str(file))
    berth.ok("release", CONSUMER)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "say what to claim"),
        ((CONSUMER, "cn001:VCPU"), "cn001:VCPU is not PROVIDER:CLASS=AMOUNT"),
        ((CONSUMER, "cn001:DISK_GB=1", "--mapping", "_A"), "--mapping _A is not GROUP=PROVIDER"),
    ],
)
def test_a_claim_without_its_form_is_a_usage_error(
    berth: BothWays, arguments: tuple[str, ...], reason: str
) -> None:
    """It says what is wrong."""
    refused = berth("claim", *arguments, *OWNER)
    assert refused.code == 2
    assert reason in refused.stderr


def test_a_claim_that_does_not_fit_says_what_is_free(berth: BothWays) -> None:
    """In the service's words."""
    refused = berth("claim", CONSUMER, "cn003:DISK_GB=1860", *OWNER)
    assert refused.code == 11
    assert "1860 asked" in refused.stderr


def test_a_reshape_moves_inventory_by_name(berth: BothWays, tmp_path: Path) -> None:
    """In one transaction."""
    berth.ok("provider", "create", "lab", "--uuid", str(uuid.UUID(int=7)))
    berth.ok("inventory", "set", "lab", "VCPU=4")
    berth.ok("claim", CONSUMER, "lab:VCPU=2", *OWNER)
    berth.ok("provider", "create", "lab-0", "--uuid", str(uuid.UUID(int=8)), "--parent", "lab")
    generation = berth.ok("provider", "show", "lab", "--json").answer["generation"]
    consumer = berth.ok("consumer", "show", CONSUMER, "--json").answer
    body = {
        "inventories": {
            "lab": {"resource_provider_generation": generation, "inventories": {}},
            "lab-0": {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}},
        },
        "allocations": {
            CONSUMER: {**consumer, "allocations": {"lab-0": {"resources": {"VCPU": 2}}}}
        },
    }
    file = tmp_path / "reshape.json"
    file.write_text(json.dumps(body))
    assert berth.ok("reshape", str(file)).stdout == "reshaped 2 providers and 1 consumer\n"
    assert "VCPU 2/4" in berth.ok("provider", "tree", "lab").lines[1]
    file.write_text("{}")
    assert berth("reshape", str(file)).code == 2
    berth.ok("release", CONSUMER)
    berth.ok("provider", "delete", "lab", "--tree")
