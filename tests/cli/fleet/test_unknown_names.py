# SPDX-License-Identifier: Apache-2.0
"""Names that match nothing are an error or a warning on stderr, never a plain zero."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fleet.ways import BothWays

NOWHERE = "99999999-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet: cn001 to cn200."""
    return demo_database


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("who --host cn7", "no provider is named cn7; did you mean cn007?"),
        (
            "who cn7",
            "no provider is named cn7, and no project cn7 holds anything; did you mean cn007?",
        ),
        ("who cn7 --project web", "no provider is named cn7; did you mean cn007?"),
        ("provider tree cn7", "no provider is named cn7; did you mean cn007?"),
        ("provider show xyz", "no provider is named xyz; `berth provider list` prints all of them"),
        (f"provider list --in-tree {NOWHERE}", f"No resource provider with uuid {NOWHERE} found"),
        ("consumer list cn7", "no provider is named cn7; did you mean cn007?"),
        ("usage provider cn7", "no provider is named cn7; did you mean cn007?"),
        ("drain create d cn7", "There is no provider cn7; did you mean cn007?"),
        ("trait show CUSTOM_A10O", "did you mean CUSTOM_A100"),
        ("class show VCPUS", "did you mean VCPU"),
        ("trait add cn001 CUSTOM_NVLINK", "NVLINK; `berth trait create` creates one"),
    ],
)
def test_a_command_whose_subject_does_not_exist_fails(
    berth: BothWays, words: str, said: str
) -> None:
    """With similar names that exist, if there are any."""
    done = berth(*words.split())
    assert (done.code, done.stdout) == (11, "")
    assert done.stderr.startswith("berth: ") and done.stderr.count("\n") == 1
    assert said in done.stderr


def test_drains_and_flavors_have_similar_names_too(berth: BothWays) -> None:
    """Also where several are deleted."""
    berth.ok("drain", "create", "firmware", "cn001")
    berth.ok("flavor", "set", "m1.large", "VCPU=1")
    for words, said in (
        ("drain show firmwear", "drain firmwear. Did you mean firmware?"),
        ("drain delete firmwear", "drain firmwear. Did you mean firmware?"),
        ("flavor show m1.lrge", "flavor m1.lrge. Did you mean m1.large?"),
    ):
        done = berth(*words.split())
        sentence = done.stderr.replace("; did you mean", ". Did you mean")
        assert (done.code, sentence) == (11, f"berth: There is no {said}\n")
    berth.ok("drain", "delete", "firmware")
    berth.ok("flavor", "delete", "m1.large")


@pytest.mark.parametrize(
    "words",
    [
        "candidates VCPU=1 --host-in cn999",
        "place VCPU=1 --for web/x --host-in cn999",
        "place VCPU=1 --for web/x --under cn999",
        "place VCPU=1 --for web/x --host-member-of zone=z9",
    ],
)
def test_nothing_fits_where_nothing_is(berth: BothWays, words: str) -> None:
    """It is not the exit code of a full fleet."""
    name = words.split()[-1]
    done = berth(*words.split())
    assert done.code == 11
    warning, failure = done.stderr.splitlines()
    assert warning.startswith("warning: ") and f"{name}; it matches nothing" in warning
    assert failure == f"berth: nothing fits, because the request names what does not exist: {name}"


def test_a_full_host_is_still_a_full_host(berth: BothWays) -> None:
    """What is only excluded, and does not exist, is a warning."""
    done = berth("place", "VCPU=9999", "--for", "web/x", "--host-not-in", "cn999")
    assert done.code == 14
    assert done.stderr.startswith("warning: There is no provider cn999; it matches nothing")


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("capacity VCPU=1 --host-in cn999", "There is no provider cn999; it matches nothing"),
        ("capacity VCPU=1 --by rak", "No aggregate has the label rak; it matches nothing."),
        ("why VCPU=1 --host-in cn999", "There is no provider cn999; it matches nothing"),
        (
            "candidates VCPU=1 --tolerate firmwear",
            "There is no drain firmwear; it matches nothing.",
        ),
        ("who --project webb", "no consumer has project webb"),
        ("who --project webb --name x", "no consumer has project webb, name x"),
        ("usage project webb", "no consumer has project webb"),
        ("provider list --name cn7", "no provider is named cn7; did you mean cn007?"),
        ("aggregate list --label zone=z9", "no aggregate has the label zone=z9"),
        ("aggregate remove cn001 az-3", "cn001 is not in az-3 (zone=z3)"),
        ("trait remove cn001 CUSTOM_A100", "cn001 does not have CUSTOM_A100"),
    ],
)
@pytest.mark.parametrize("json", [[], ["--json"]])
def test_what_a_name_did_not_match_is_a_warning_on_stderr(
    berth: BothWays, words: str, warning: str, json: list[str]
) -> None:
    """Once, also for programs that read the output."""
    done = berth(*words.split(), *json)
    assert done.code == 0
    assert done.stderr.startswith(f"warning: {warning}") and done.stderr.count("\n") == 1
    assert "matches nothing" not in done.stdout.replace('"', "") or json


def test_a_warning_that_names_nothing_is_printed_too(berth: BothWays) -> None:
    """Such as that a limit has no effect."""
    done = berth("candidates", "resources=VCPU:1&limit=3", "--limit", "1")
    assert (done.code, done.stderr) == (
        0,
        "warning: The limit in the query is ignored: use --limit.\n",
    )
