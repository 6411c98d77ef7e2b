# SPDX-License-Identifier: Apache-2.0
"""What people see of explanations and capacities that a service has seldom; times and columns."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from berth.cli.columns import cut_to, print_columns, time_left, utc_time
from berth.cli.fleet.capacity import print_capacities
from berth.cli.fleet.why import print_explanations

HOST: Final = {"uuid": "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "name": "cn17"}
VCPU: Final = "/groups//resources/VCPU"
TRAIT: Final = "/groups//required/0"
ZONE: Final = "/host/member_of/0"
SUMMARY: Final = "No host fits now; 38 would with nothing used."
LACK: Final = {
    "at": VCPU,
    "asked": 16,
    "possible": 12,
    "reason": "used",
    "provider": HOST,
    "free": 12,
    "capacity": 64,
    "max_unit": 64,
}

#: After spec/beyond.md 3.6.
EXAMPLE: Final[dict[str, Any]] = {
    "complete": True,
    "verdict": "used_up",
    "summary": SUMMARY,
    "hosts": {"total": 1010, "pools": 10, "fit": 0, "fit_if_undrained": 0, "fit_if_empty": 38},
    "stages": [
        {"at": "/drains", "text": "not drained", "alone": 995, "left": 995},
        {"at": ZONE, "text": "in zone=z2", "alone": 330, "left": 325},
        {"at": VCPU, "text": "VCPU 16", "has": 1000, "if_empty": 412, "alone": 57, "left": 22},
        {"at": TRAIT, "text": "trait HW_CPU_X86_AVX512F", "alone": 240, "left": 0},
    ],
    "binding": [TRAIT, VCPU, ZONE],
    "relaxations": [
        {"drop": [TRAIT], "hosts": 9},
        {"drop": [VCPU], "hosts": 4, "reduce_to": 12, "hosts_reduced": 3},
        {"drop": [ZONE], "hosts": 2},
    ],
    "split_would_fit": 0,
    "nearest": [{"host": HOST, "lacks": [LACK]}],
    "unknown": [],
    "warnings": [],
}
PGPU: Final = LACK | {"asked": 1, "possible": 0, "free": 0, "capacity": 1, "max_unit": 1}
HOLDER: Final = {
    "uuid": "a",
    "name": "job-18",
    "project_id": "alice",
    "allocations": {"gpu": {"name": "cn17_gpu0", "resources": {"PGPU": 1, "VCPU": 8}}},
}
MISSPELT: Final = {"at": TRAIT, "kind": "trait", "name": "CUSTOM_A10O"}
CLOSE: Final = ["CUSTOM_A100", "CUSTOM_A10"]


def explained(capsys: pytest.CaptureFixture[str], **changes: object) -> list[str]:
    """The lines that people see of the example, with other members."""
    print_explanations({**copy.deepcopy(EXAMPLE), **changes})
    return capsys.readouterr().out.splitlines()


def test_the_example_of_the_specification(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary, each constraint, what would help, and the nearest host."""
    assert explained(capsys) == [
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


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {
                "unknown": [
                    MISSPELT | {"did_you_mean": ["CUSTOM_A100"]},
                    {"at": VCPU, "kind": "resource_class", "name": "VPCU", "did_you_mean": []},
                ]
            },
            [
                "There is no trait CUSTOM_A10O; did you mean CUSTOM_A100?",
                "There is no resource class VPCU",
            ],
        ),
        # It would fit only with a name with which some host fits.
        (
            {
                "relaxations": [],
                "unknown": [
                    MISSPELT | {"did_you_mean": CLOSE, "hosts": {"CUSTOM_A100": 3, "CUSTOM_A10": 0}}
                ],
            },
            [
                "It would fit",
                "  with CUSTOM_A100 instead of CUSTOM_A10O  3 hosts",
                "There is no trait CUSTOM_A10O; did you mean CUSTOM_A100 or CUSTOM_A10?",
                "Nearest: cn17 lacks 4 VCPU (12 free of 64)",
            ],
        ),
        # What two groups lack of a class is one amount; of a named host it is said who holds it.
        (
            {
                "nearest": [
                    {
                        "host": HOST,
                        "named": True,
                        "lacks": [
                            PGPU | {"at": f"/groups/_{name}/resources/PGPU"} for name in "AB"
                        ],
                        "consumers": [HOLDER],
                        "more_consumers": True,
                    }
                ]
            },
            [
                "Nearest: cn17 lacks 2 PGPU (0 free of 1)",
                "           held by job-18 of alice (PGPU 1), and more",
            ],
        ),
        # A condition keeps the class from the host, or the rest of the request is in the way.
        (
            {
                "nearest": [
                    {
                        "host": HOST,
                        "lacks": [LACK | {"reason": "conditions", "possible": 0, "unmet": unmet}],
                    }
                    for unmet in ([TRAIT], [])
                ]
            },
            [
                "Nearest: cn17 lacks 16 VCPU (cn17 lacks trait HW_CPU_X86_AVX512F)",
                "         cn17 lacks 16 VCPU (12 free of 64, but not for the rest of the request)",
            ],
        ),
        (
            {
                "relaxations": [{"drop": ["/drains", TRAIT], "hosts": 1}],
                "nearest": [{"host": HOST, "lacks": [{"at": TRAIT}]}],
            },
            [
                "  with drained hosts and without trait HW_CPU_X86_AVX512F  1 host",
                "Nearest: cn17 lacks trait HW_CPU_X86_AVX512F",
            ],
        ),
        (
            {
                "complete": False,
                "stages": [EXAMPLE["stages"][0], EXAMPLE["stages"][1] | {"at_least": True}],
                "relaxations": [],
                "nearest": [],
            },
            [
                "  in zone=z2     330  ≥325",
                "The time ended: some figures are lower bounds.",
            ],
        ),
    ],
    ids=["unknown", "checked", "held-by", "conditions", "several", "time-ended"],
)
def test_what_people_see(
    capsys: pytest.CaptureFixture[str], changes: dict[str, Any], lines: list[str]
) -> None:
    """Of each kind of explanation."""
    printed = explained(capsys, **changes)
    assert [line for line in printed if line in lines] == lines


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
    stages = [{"at": ZONE, "text": text, "alone": 330, "left": 325}]
    printed = explained(
        capsys, stages=stages, relaxations=[{"drop": [ZONE], "hosts": 2}], nearest=[]
    )
    assert f"  {change}  2 hosts" in printed


def test_capacities_have_bounds_parts_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """At least and at most; why a flavor was not counted; which key each part is of."""
    classes = {"VCPU": {"free": 61200, "usable": 40936, "stranded": 20264, "largest": 46}}
    # Of the example of spec/beyond.md 8.
    large = {"count": 10234, "at_most": 10234, "exact": True, "hosts": 412, "classes": classes}
    gone = {"at": "/flavors/old/groups//required/0", "kind": "trait", "name": "CUSTOM_GONE"}
    flavors = {
        "m1.large": large,
        "gpu.a100": large | {"count": 17, "at_most": 19, "exact": False},
        "old": {"unknown": [gone]},
    }
    print_capacities({"complete": False, "flavors": flavors, "warnings": []}, ())
    assert capsys.readouterr().out.splitlines() == [
        "FLAVOR     COUNT  HOSTS  STRANDED               LARGEST",
        "m1.large  10,234    412  VCPU 20,264 of 61,200  VCPU 46",
        "gpu.a100   17-19    412  VCPU 20,264 of 61,200  VCPU 46",
        "old was not counted: there is no trait CUSTOM_GONE",
        "The time ended: some figures are lower bounds.",
    ]
    line = {"count": 3, "at_most": 3, "hosts": 2, "now": {"count": 1, "at_most": 1, "hosts": 1}}
    parts = {"zone": {"z1": line}, "rack": {"r7": line}}
    answer = {"m1": large | {"now": large, "by": parts}}
    print_capacities({"complete": True, "flavors": answer, "warnings": []}, ("zone", "rack"))
    assert [text.split()[:4] for text in capsys.readouterr().out.splitlines()] == [
        ["FLAVOR", "PART", "NOW", "THEN"],
        ["m1", "zone=z1", "1", "3"],
        ["m1", "rack=r7", "1", "3"],
        ["m1", "all", "10,234", "10,234"],
    ]


def test_times_for_people() -> None:
    """With the date unless it is today's; a duration in two units."""
    now = datetime.now(UTC)
    assert utc_time(now) == f"{now:%H:%M} UTC"
    assert utc_time(datetime(2026, 3, 1, 14, 32, tzinfo=UTC)) == "2026-03-01 14:32 UTC"
    shown = {0: "0s", 59: "59s", 60: "1m", 605: "10m 5s", 86_400: "1d", 3_601: "1h 1s"}
    assert {seconds: time_left(seconds) for seconds in shown} == shown


def test_numbers_are_aligned_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    """And text on the left, without blanks at the end."""
    print_columns(("NAME", "USED"), [("a", "1"), ("long-name", "1,000")], right=["USED"], indent=1)
    assert capsys.readouterr().out.splitlines() == [
        " NAME        USED",
        " a              1",
        " long-name  1,000",
    ]
    assert [cut_to("abcde", width) for width in (5, 4, 1, 0)] == ["abcde", "abc…", "…", "…"]
