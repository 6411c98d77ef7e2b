# SPDX-License-Identifier: Apache-2.0
"""`berth why`: an explanation for people. The figures are those of the example in the spec."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from berth.cli.fleet.explanations import print_explanations

HOST = {"uuid": "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "name": "cn17"}
VCPU = "/groups//resources/VCPU"
TRAIT = "/groups//required/0"
ZONE = "/host/member_of/0"
SUMMARY = (
    "No host fits now; 38 would with nothing used. Most hosts are lost to HW_CPU_X86_AVX512F: "
    "without it 9 fit. With VCPU 12 instead of 16, 3 fit."
)

#: From spec/beyond.md 3.6.
EXAMPLE: dict[str, Any] = {
    "revision": "b1.kq3T",
    "complete": True,
    "verdict": "used_up",
    "summary": SUMMARY,
    "hosts": {
        "total": 1010,
        "pools": 10,
        "fit": 0,
        "fit_if_undrained": 0,
        "fit_if_empty": 38,
    },
    "stages": [
        {"at": "/drains", "text": "not drained", "alone": 995, "left": 995},
        {"at": ZONE, "text": "in zone=z2", "alone": 330, "left": 325},
        {
            "at": VCPU,
            "text": "VCPU 16",
            "has": 1000,
            "if_empty": 412,
            "alone": 57,
            "left": 22,
        },
        {"at": TRAIT, "text": "trait HW_CPU_X86_AVX512F", "alone": 240, "left": 0},
    ],
    "binding": [TRAIT, VCPU, ZONE],
    "relaxations": [
        {"drop": [TRAIT], "hosts": 9},
        {"drop": [VCPU], "hosts": 4, "reduce_to": 12, "hosts_reduced": 3},
        {"drop": [ZONE], "hosts": 2},
    ],
    "split_would_fit": 0,
    "nearest": [
        {
            "host": HOST,
            "lacks": [
                {
                    "at": VCPU,
                    "asked": 16,
                    "possible": 12,
                    "reason": "used",
                    "provider": HOST,
                    "free": 12,
                    "capacity": 64,
                    "max_unit": 64,
                }
            ],
        }
    ],
    "unknown": [],
    "warnings": [],
    "request": {},
}


def printed(explanation: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that people see."""
    print_explanations(explanation)
    return capsys.readouterr().out.splitlines()


def test_the_example_of_the_specification(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary, each constraint, what would help, and the nearest host."""
    assert printed(EXAMPLE, capsys) == [
        SUMMARY,
        "",
        "  CONSTRAINT                ALONE  LEFT",
        "  not drained                 995   995",
        "  in zone=z2                  330   325",
        "  VCPU 16                      57    22  1,000 have VCPU, 412 could hold it",
        "  trait HW_CPU_X86_AVX512F    240     0",
        "",
        "It would fit",
        "  without trait HW_CPU_X86_AVX512F  9 hosts",
        "  with VCPU 12                      3 hosts",
        "  outside of zone=z2                2 hosts",
        "Nearest: cn17 lacks 4 VCPU (12 free of 64)",
    ]


def test_names_that_do_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """With suggestions."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["unknown"] = [
        {"at": TRAIT, "kind": "trait", "name": "CUSTOM_A10O", "did_you_mean": ["CUSTOM_A100"]},
        {"at": VCPU, "kind": "resource_class", "name": "VPCU", "did_you_mean": []},
    ]
    lines = printed(explanation, capsys)
    assert "There is no trait CUSTOM_A10O; did you mean CUSTOM_A100?" in lines
    assert "There is no resource class VPCU" in lines


def test_a_suggestion_is_offered_if_it_was_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """It would fit only with a name with which some host fits."""
    explanation = copy.deepcopy(EXAMPLE)
    names = ["CUSTOM_A100", "CUSTOM_A10"]
    explanation["relaxations"] = []
    explanation["unknown"] = [
        {
            "at": TRAIT,
            "kind": "trait",
            "name": "CUSTOM_A10O",
            "did_you_mean": names,
            "hosts": {"CUSTOM_A100": 3, "CUSTOM_A10": 0},
        }
    ]
    lines = printed(explanation, capsys)
    assert lines[lines.index("It would fit") + 1] == (
        "  with CUSTOM_A100 instead of CUSTOM_A10O  3 hosts"
    )
    assert "There is no trait CUSTOM_A10O; did you mean CUSTOM_A100 or CUSTOM_A10?" in lines


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("on gpu05", "on any other host"),
        ("not on gpu05", "on gpu05 too"),
        ("not trait CUSTOM_BAD", "with trait CUSTOM_BAD allowed"),
        ("not in zone=z2", "in zone=z2 too"),
    ],
)
def test_a_change_reads_like_english(
    capsys: pytest.CaptureFixture[str], text: str, change: str
) -> None:
    """Not `without on gpu05`."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["stages"][1]["text"] = text
    explanation["relaxations"] = [{"drop": [ZONE], "hosts": 2}]
    assert f"  {change}  2 hosts" in printed(explanation, capsys)


def test_what_two_groups_lack_of_a_class_is_one_amount(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a named host it is said who holds it."""
    lack = {
        "asked": 1,
        "possible": 0,
        "reason": "used",
        "provider": HOST,
        "free": 0,
        "capacity": 1,
        "max_unit": 1,
    }
    held = {"gpu": {"name": "cn17_gpu0", "resources": {"PGPU": 1, "VCPU": 8}}}
    consumer = {"uuid": "a", "name": "job-18", "project_id": "alice", "allocations": held}
    explanation = copy.deepcopy(EXAMPLE)
    explanation["nearest"] = [
        {
            "host": HOST,
            "named": True,
            "lacks": [{"at": f"/groups/_{name}/resources/PGPU", **lack} for name in "AB"],
            "consumers": [consumer],
            "more_consumers": True,
        }
    ]
    assert printed(explanation, capsys)[-2:] == [
        "Nearest: cn17 lacks 2 PGPU (0 free of 1)",
        "           held by job-18 of alice (PGPU 1), and more",
    ]


def test_a_class_that_a_condition_keeps_from_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    """What the provider fails, or that the rest of the request is in the way."""
    explanation = copy.deepcopy(EXAMPLE)
    (lack,) = explanation["nearest"][0]["lacks"]
    lack |= {"reason": "conditions", "possible": 0, "unmet": [TRAIT]}
    assert printed(explanation, capsys)[-1] == (
        "Nearest: cn17 lacks 16 VCPU (cn17 lacks trait HW_CPU_X86_AVX512F)"
    )
    lack["unmet"] = []
    assert printed(explanation, capsys)[-1] == (
        "Nearest: cn17 lacks 16 VCPU (12 free of 64, but not for the rest of the request)"
    )


def test_several_changes_at_once_and_drained_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    """A pair of constraints, and the hosts of a drain."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["relaxations"] = [{"drop": ["/drains", TRAIT], "hosts": 1}]
    explanation["nearest"][0]["lacks"] = [{"at": TRAIT}]
    lines = printed(explanation, capsys)
    assert "  with drained hosts and without trait HW_CPU_X86_AVX512F  1 host" in lines
    assert lines[-1] == "Nearest: cn17 lacks trait HW_CPU_X86_AVX512F"


def test_figures_that_the_time_cut_are_lower_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """They are marked, and the last line says so."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["complete"] = False
    explanation["stages"][1]["at_least"] = True
    lines = printed(explanation, capsys)
    assert "≥325" in lines[4]
    assert lines[-1] == "The time ended: some figures are lower bounds."
