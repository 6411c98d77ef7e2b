# SPDX-License-Identifier: Apache-2.0
"""The query of `GET /allocation_candidates`: what is accepted at which microversion, and the
message for each fault.

Source: allocation-candidates.md sections 2 to 4 and 8. `tests/candidates` tests the results of
valid queries.
"""

from itertools import combinations
from pathlib import Path

import pytest

from berth.api.placement.candidates_query import decode
from berth.api.schema import Schema
from tests.api import configured
from tests.api.wire import Rule, rules
from tests.api.worlds import provider
from tests.client import Client

HOST = "host  CUSTOM_C=4  CUSTOM_T  @A"

#: Since when there is something, and what; and that it was refused before.
INTRODUCED = [
    ("1.16", "limit=1"),
    ("1.17", "required=$CUSTOM_T"),
    ("1.21", "member_of=$A"),
    ("1.21", "member_of=in:$A,$nobody"),
    ("1.22", "required=!$CUSTOM_O"),
    ("1.24", "member_of=$A&member_of=in:$A"),
    ("1.25", "group_policy=isolate"),
    ("1.31", "in_tree=$host"),
    ("1.32", "member_of=!$nobody"),
    ("1.32", "member_of=!in:$nobody"),
    ("1.35", "root_required=$CUSTOM_T"),
    ("1.35", "root_required=!$CUSTOM_O,$CUSTOM_T"),
    ("1.39", "required=in:$CUSTOM_T,$CUSTOM_O"),
]
INTRODUCED_IN_GROUPS = [
    ("1.25", "resources1=$CUSTOM_C:1"),
    ("1.25", "resources1=$CUSTOM_C:1&required1=$CUSTOM_T&member_of1=$A"),
    ("1.25", "resources1=$CUSTOM_C:1&resources2=$CUSTOM_C:1&group_policy=none"),
    ("1.31", "resources1=$CUSTOM_C:1&in_tree1=$host"),
    ("1.32", "resources1=$CUSTOM_C:1&member_of1=!$nobody"),
    ("1.33", "resources_A=$CUSTOM_C:1"),
    ("1.33", "resources0=$CUSTOM_C:1"),
    ("1.33", "resources-=$CUSTOM_C:1"),
    ("1.33", "resourcesx*64=$CUSTOM_C:1"),
    ("1.36", "resources1=$CUSTOM_C:1&same_subtree=1"),
    (
        "1.36",
        "resources1=$CUSTOM_C:1&required_N=$CUSTOM_T&same_subtree=1,_N&group_policy=none",
    ),
]


def introduced() -> str:
    """A rule for each of them."""
    queries = [(since, f"resources=$CUSTOM_C:1&{query}") for since, query in INTRODUCED]
    return "".join(
        f"since {since} there is {query[-60:]} @{since}-\n"
        f"  GET /allocation_candidates?{query}\n  200 {{allocation_requests: [_], ...}}\n"
        f"before {since} there is not {query[-60:]} @1.10-1.{int(since[2:]) - 1}\n"
        f"  GET /allocation_candidates?{query}\n  400\n"
        for since, query in queries + INTRODUCED_IN_GROUPS
    )


@rules(introduced(), world=HOST, traits="CUSTOM_O")
def test_what_each_microversion_adds(rule: Rule, wire: Client) -> None:
    """A parameter works from its microversion on (1.1)."""
    rule.check(wire)


@rules(
    """
    a fault beside a right amount is named
        GET /allocation_candidates?resources=$CUSTOM_C:1&$1 => 400 $2
        | foo=1&goo=1 | Invalid query string parameters ... 'foo', 'goo' were unexpected
                      | @1.10-1.24
        | foo=1&goo=1 | 'foo', 'goo' do not match | @1.25-
        | Resources=VCPU:1  | Invalid query string parameters ... 'Resources' | @1.10-
        | resources01=$CUSTOM_C:1 | 'resources01' does not match any of the regexes | @1.25-1.32
        | same_subtree1=1   | 'same_subtree1' does not match any of the regexes | @1.36-
        | %FF=1             | Invalid query string parameters | @1.10-
        | limit=            | '' does not match '^[1-9][0-9]*$' ... 'pattern' | @1.16-
        | group_policy=     | '' is not one of ['none', 'isolate'] | @1.25-
        | required=         | of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty | @1.17-1.21
        | required=,$CUSTOM_T | of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC. Got an empty | @1.22-
        | required=in:$CUSTOM_T | The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since
                        microversion 1.39. | @1.17-1.38
        | required=in:$CUSTOM_T, | Got an empty trait in
        | required=$CUSTOM_T,in:$CUSTOM_T | No such trait(s): in:$CUSTOM_T
        | required=!%20$CUSTOM_T | No such trait(s): | @1.22-
        | required=,,in:nonsense&required=$CUSTOM_T | Got an empty trait in
        | member_of=!in:$A    | Forbidden member_of parameters are | @1.21-1.31
        | member_of=!$A,$nobody | 'in:' or '!in:' keyword | @1.21-
        | member_of=          | Expected 'member_of' parameter to contain valid UUID(s). | @1.21-
        | member_of=in:$A,    | Expected 'member_of' parameter to contain valid UUID(s). | @1.21-
        | in_tree=x&in_tree=$host | Expected 'in_tree' parameter to be a format of uuid | @1.31-
        | root_required=      | Got an empty trait in | @1.35-
        | in_tree1=$host       | All request groups must specify resources. | @1.31-1.35
        | required=$CUSTOM_NONE&in_tree=$nobody | No such trait(s)
        | required=$CUSTOM_NONE&resources1=$CUSTOM_C:5 | No such trait(s)
    a fault of the amounts, or of the groups, is named
        GET /allocation_candidates?$1 => 400 $2
        | resources=%FF:1        | Invalid query string parameters | @1.10-
        | resources=%20          | Badly formed resources parameter ... Got: empty string. | @1.10-
        | resources=$CUSTOM_C:1:2 | Badly formed resources ... Got: $(CUSTOM_C):1:2. | @1.10-
        | resources=$CUSTOM_C:1e3 | expected positive integer amount | @1.10-
        | resources=$CUSTOM_C:9*4301 | expected positive integer | @1.10-
        | resources=x&resources=$CUSTOM_C:1 | Badly formed resources parameter ... Got: x. | @1.10-
        | resources=$CUSTOM_C:1,$CUSTOM_NONE:1 | Invalid resource class in resources parameter: No
                        such resource class $CUSTOM_NONE
        | resources1=$CUSTOM_C:1&required1=$CUSTOM_T,!$CUSTOM_T | Conflicting required and forbidden
                        traits ... required1: ($CUSTOM_T) | @1.25-
        | member_of=$A&member_of3=$A&resources2=$CUSTOM_C:1 | orphaned member_of keys: member_of,
                        member_of3 | @1.25-1.35
        | resources1=$CUSTOM_C:1&required2=$CUSTOM_T&same_subtree=2 | The "group_policy" parameter
                        is required | @1.36-
    of several groups without resources the first fault is named @1.31-1.35
        GET /allocation_candidates?$1 => 400 $2
        | required1=$CUSTOM_T&member_of2=$A&in_tree3=$host | orphaned traits keys: required1
        | member_of2=$A&in_tree3=$host | orphaned member_of keys: member_of2
        | in_tree3=$host&required4=!$CUSTOM_O | All request groups must specify resources.
    of several faults the first is named, in the order of section 4
        GET /allocation_candidates?$1 => 400 $2
        | foo=1&root_required=&same_subtree=,&resources1=x | 'foo' does not match any of the regexes
        | limit=0&root_required=&same_subtree=,&resources1=x | '0' does not match
        | group_policy=x&root_required=&same_subtree=,&resources1=x | is not one of
        | root_required=$CUSTOM_T&root_required=&same_subtree=,&resources1=x
                        | placement.query.duplicate_key only once
        | root_required=&same_subtree=,&resources1=x | Got an empty trait in
        | root_required=$CUSTOM_T,!$CUSTOM_T&same_subtree=,&resources1=x
                        | placement.query.bad_value found in root_required
        | same_subtree=,&resources1=x&required2= | placement.query.bad_value Empty string
        | same_subtree=9&resources1=x&required2= | Badly formed resources parameter
        | same_subtree=9&required2=&resources1=x | Got an empty trait in
        | same_subtree=9&member_of1=x&in_tree1=x&required2=$CUSTOM_T | Expected 'member_of'
        | same_subtree=9&in_tree1=x&required2=$CUSTOM_T | Expected 'in_tree'
        | same_subtree=9&required2=$CUSTOM_T,!$CUSTOM_T
                        | placement.query.missing_value There must be at least one resources
        | same_subtree=9&required2=$CUSTOM_T,!$CUSTOM_T&resources1=$CUSTOM_C:1
                        | placement.query.bad_value Resourceless suffixed group request
        | same_subtree=2,9&required2=$CUSTOM_T,!$CUSTOM_T&resources1=$CUSTOM_C:1
                        | placement.query.bad_value Real suffixes should be specified
        | same_subtree=2&required2=$CUSTOM_T,!$CUSTOM_T&resources1=$CUSTOM_C:1
                        | Conflicting required and forbidden traits
        | same_subtree=2&required2=$CUSTOM_N&resources1=$CUSTOM_M:1&root_required=$CUSTOM_N
                        | "group_policy" parameter is required
        | root_required=$CUSTOM_N&resources1=$CUSTOM_M:1 | No such trait(s): $CUSTOM_N
        | resources1=$CUSTOM_M:1&required1=$CUSTOM_N | No such resource class $CUSTOM_M
        | resources1=$CUSTOM_C:1&required1=$CUSTOM_N&resources=$CUSTOM_M:1&group_policy=none | trait
    """,
    world=HOST,
    traits="CUSTOM_O",
)
def test_faults(rule: Rule, wire: Client) -> None:
    """Each is named at every microversion that has it (3 and 4)."""
    rule.check(wire)


@rules(
    """
    an accepted query of amounts or groups gets the host or nothing
        GET /allocation_candidates?$1 => 200 {allocation_requests: $2, provider_summaries: _}
        | resources=$CUSTOM_C:1                   | [_] | @1.10-
        | resources=$CUSTOM_C:%204                | [_]
        | resources=$CUSTOM_C:%2B4                | [_]
        | resources=$CUSTOM_C:+4                  | [_]
        | resources=$CUSTOM_C:1_0                 | []
        | resources=$CUSTOM_C:%D9%A4              | [_]
        | resources=$CUSTOM_C:9,$CUSTOM_C:4       | [_]
        | resources=$CUSTOM_C:4,$CUSTOM_C:9       | []
        | resources=$CUSTOM_C:9&resources=$CUSTOM_C:4 | [_]
        | resources1=$CUSTOM_C:1&same_subtree=%201%20,1&same_subtree=1 | [_]
        | resources1=$CUSTOM_C:1&resources2=$CUSTOM_C:1&group_policy=isolate | []
        | resources1=$CUSTOM_C:1&resources2=$CUSTOM_C:4&group_policy=none | []
        | resources1=$CUSTOM_C:1&in_tree1=$nobody | []
    an accepted query beside a right amount gets the host or nothing
        GET /allocation_candidates?resources=$CUSTOM_C:1&$1
        200 {allocation_requests: $2, provider_summaries: _}
        | required=%20$CUSTOM_T%20,%20!$CUSTOM_O  | [_]
        | required=!!$CUSTOM_T                    | []
        | required=in:%20$CUSTOM_O%20,%20$CUSTOM_T | [_]
        | required=in:$CUSTOM_O,$CUSTOM_T&required=!$CUSTOM_O | [_]
        | required=!$CUSTOM_T&required=!$CUSTOM_O | []
        | required=$CUSTOM_T&required=!$CUSTOM_O  | [_]
        | required=,,in:nonsense&required=$CUSTOM_T | [_] | @1.17-1.38
        | member_of=in:$nobody,$A                 | [_]
        | member_of=!$A                           | []
        | member_of=!$A&member_of=!$nobody        | []
        | member_of=!$nobody&member_of=$A         | [_]
        | member_of=$A&member_of=!$A              | []
        | in_tree=%20$host%20                     | [_]
        | in_tree=$nobody&in_tree=$host           | [_]
    the first empty result ends everything, and unknown names after it are not named
        GET /allocation_candidates?$1 => 200 {allocation_requests: [], provider_summaries: {}}
        || root_required=$CUSTOM_O&resources=$CUSTOM_M:1
        || resources=$CUSTOM_C:1&member_of=$nobody&required=$CUSTOM_N
        || resources=$CUSTOM_C:1&in_tree=$nobody&resources1=$CUSTOM_M:1
        || resources=$CUSTOM_C:5&resources1=$CUSTOM_M:1
        || resources=$CUSTOM_C:5&resources1=$CUSTOM_C:1&required1=$CUSTOM_N
    of required the last counts before 1.39, also if the same is asked again at 1.39
        GET /allocation_candidates?resources=$CUSTOM_C:1&required=,,in:x&required=$CUSTOM_T @1.38
        200 {allocation_requests: [_], ...}
        GET /allocation_candidates?resources=$CUSTOM_C:1&required=,,in:x&required=$CUSTOM_T
        400 Got an empty trait in
    """,
    world=HOST,
    traits="CUSTOM_O",
)
def test_accepted_queries(rule: Rule, wire: Client) -> None:
    """Unknown hosts and aggregates are no error: 200, with both keys."""
    rule.check(wire)


@pytest.mark.deliberately_different(
    "huge amounts, faults that do not count, and capitals (D5, 1.9)"
)
@rules(
    """
    an amount beyond 64 bits is nowhere
        GET /allocation_candidates?resources=$CUSTOM_C:$1 => 200 {allocation_requests: [], ...}
        || 9223372036854775808 || 18446744073709551616 || 9*4000
    a uuid may be in capitals
        GET /allocation_candidates?resources=$CUSTOM_C:1&$1 => 200 {allocation_requests: [_], ...}
        || member_of=$A.upper || in_tree=$host.upper
    every occurrence is validated
        GET /allocation_candidates?resources=$CUSTOM_C:1&$1 => 400
        || limit=x&limit=1 || limit=0&limit=1 || group_policy=x&group_policy=none
    """,
    world=HOST,
)
def test_queries_that_the_original_takes_otherwise(rule: Rule, wire: Client) -> None:
    """Where it says 500, or another answer."""
    rule.check(wire)


@rules(
    """
    roots that are all forbidden end everything
        GET /allocation_candidates?root_required=!$CUSTOM_T&resources=$CUSTOM_M:1
        200 {allocation_requests: [], ...}
        GET /allocation_candidates?root_required=!$CUSTOM_O&resources=$CUSTOM_M:1
        400 No such resource class
    """,
    world=HOST,
    traits="CUSTOM_O",
)
def test_roots_that_are_all_forbidden(rule: Rule, tmp_path: Path) -> None:
    """Unknown names in groups are not reported then, either (section 4, 8)."""
    rule.check(configured.serve(tmp_path))


# --- Bounds --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with three hosts."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    for _ in range(3):
        provider(client, {"VCPU": 8})
    return client


def groups(count: int) -> str:
    """A query with so many groups, one of them unsuffixed."""
    suffixed = "&".join(f"resources{number}=VCPU:1" for number in range(1, count))
    return f"resources=VCPU:1&{suffixed}&group_policy=none"


def subtrees(pairs: int) -> str:
    """A query with so many different values of same_subtree, each twice; it has no candidates."""
    names = list(combinations(range(1, 31), 2))[:pairs]
    values = "".join(f"&same_subtree={first},{other}" for first, other in names * 2)
    return f"{groups(31).replace('VCPU:1', 'VCPU:99', 1)}{values}"


@pytest.mark.parametrize(
    ("query", "versions", "status", "says"),
    [
        # Below 1.39 only the last `required` is read.
        ("resources=VCPU:1&required=,,&required=!HW_NUMA_ROOT", ["1.38"], 200, ""),
        ("resources=VCPU:1&limit=1&limit=0", ["1.16", "1.24", "1.25", "1.39"], 400, "not match"),
        (groups(64).replace("VCPU:1", "VCPU:99", 1), ["1.39"], 200, ""),
        (groups(65), ["1.39"], 400, "at most 64 request groups. Got: 65"),
        (subtrees(400), ["1.36"], 200, ""),
        (subtrees(401), ["1.36"], 400, "at most 400 different `same_subtree` values. Got: 401"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_bounds_and_what_is_repeated(
    fleet: Client, query: str, versions: list[str], status: int, says: str
) -> None:
    """A repeated value counts once."""
    for version in versions:
        answer = fleet.get(f"/allocation_candidates?{query}", version=version)
        assert answer.status == status, answer.text
        assert not says or says in answer.detail
        if "Got" in says:
            assert answer.code == "placement.query.bad_value"


@pytest.mark.parametrize("limits", ["limit=2&limit=1", f"limit={'9' * 5000}"])
def test_the_first_limit_counts(fleet: Client, limits: str) -> None:
    """One of thousands of digits limits nothing: Python does not convert such a number."""
    answer = fleet.get(f"/allocation_candidates?resources=VCPU:1&{limits}").json
    assert len(answer["allocation_requests"]) == (2 if "&" in limits else 3)


def test_a_key_is_judged_once_however_often_others_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand limits beside sixty groups are not sixty thousand checks."""
    judged: list[int] = []
    check = Schema.check

    def counting(schema: Schema, value: dict[str, str]) -> None:
        judged.append(len(value))
        check(schema, value)

    monkeypatch.setattr(Schema, "check", counting)
    limits = "".join(f"&limit={number}" for number in range(1, 1001))
    assert decode(groups(61) + limits, 39).limit == 1
    assert sum(judged) < 5000
