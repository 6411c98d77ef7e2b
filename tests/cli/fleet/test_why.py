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


def test_several_changes_at_once_and_drained_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    """A pair of constraints, and the hosts of a drain."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["relaxations"] = [{"drop": ["/drains", TRAIT], "hosts": 1}]
    explanation["nearest"][0]["lacks"] = [{"at": TRAIT}]
    lines = printed(explanation, capsys)
    assert "  with hosts that are drained and without trait HW_CPU_X86_AVX512F  1 host" in lines
    assert lines[-1] == "Nearest: cn17 lacks trait HW_CPU_X86_AVX512F"


def test_figures_that_the_time_cut_are_lower_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """They are marked, and the last line says so."""
    explanation = copy.deepcopy(EXAMPLE)
    explanation["complete"] = False
    explanation["stages"][1]["at_least"] = True
    lines = printed(explanation, capsys)
    assert "≥325" in lines[4]
    assert lines[-1] == "The time ended: some figures are lower bounds."
