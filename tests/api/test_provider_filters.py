# SPDX-License-Identifier: Apache-2.0
"""Listing resource providers, and the filters of the list.

Source: rest-api.md 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import consumer
from tests.api.versions import at_least, versions
from tests.api.worlds import (
    NOWHERE,
    custom_class,
    custom_trait,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
    uuids_of,
)
from tests.client import Client
from tests.routes import VERSIONS

#: The filters, each with the version that brought it and a value that is well formed.
FILTERS = [
    ("name", "1.0", "x"),
    ("uuid", "1.0", NOWHERE),
    ("member_of", "1.3", NOWHERE),
    ("resources", "1.4", "VCPU:1"),
    ("in_tree", "1.14", NOWHERE),
    ("required", "1.18", "HW_CPU_X86_AVX2"),
]

LIST = "/resource_providers"


@pytest.mark.parametrize(("name", "first", "value"), FILTERS)
def test_a_filter_begins_with_its_version(api: Client, name: str, first: str, value: str) -> None:
    """Before, it is an unknown parameter."""
    for version in VERSIONS:
        answer = api.get(f"{LIST}?{name}={value}", version=version)
        if at_least(version, first):
            assert answer.status == 200
        else:
            said = "Invalid query string parameters"
            assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_filter_is_refused(api: Client, version: str) -> None:
    """Also one of another route or a later version."""
    for query in ("limit=1", "forbidden=x", "group_policy=none", "resources1=VCPU:1", "sort=name"):
        assert_refused(api.get(f"{LIST}?{query}", version=version), 400, version=version)


def test_without_a_filter_everything_is_listed(api: Client) -> None:
    """There is no paging."""
    some = {provider(api) for _ in range(3)}
    assert some <= uuids_of(api.get(LIST))


def test_by_name_and_by_uuid(api: Client) -> None:
    """Both exactly, and both together."""
    name = new_name()
    uuid, other = provider(api, name=name), provider(api)
    assert uuids_of(api.get(f"{LIST}?name={name}")) == {uuid}
    assert uuids_of(api.get(f"{LIST}?uuid={uuid}")) == {uuid}
    assert uuids_of(api.get(f"{LIST}?uuid={uuid}&name={name}")) == {uuid}
    for another in (other, provider(api, parent=uuid)):
        assert uuids_of(api.get(f"{LIST}?uuid={another}&name={name}")) == set()
    assert uuids_of(api.get(f"{LIST}?name={name[:-1]}")) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_name_is_no_filter(api: Client, version: str) -> None:
    """As if it were not given."""
    uuid = provider(api)
    assert uuids_of(api.get(f"{LIST}?name=&uuid={uuid}", version=version)) == {uuid}


@pytest.mark.parametrize("version", versions("1.14"))
def test_in_tree_finds_the_whole_tree_from_any_of_its_providers(api: Client, version: str) -> None:
    """All providers with the same root; an unknown provider matches none."""
    root = provider(api)
    child = provider(api, parent=root)
    grandchild = provider(api, parent=child)
    sibling = provider(api, parent=root)
    for uuid in (root, child, grandchild, sibling):
        response = api.get(f"{LIST}?in_tree={uuid}", version=version)
        assert uuids_of(response) == {root, child, grandchild, sibling}
    assert uuids_of(api.get(f"{LIST}?in_tree={NOWHERE}", version=version)) == set()
    response = api.get(f"{LIST}?in_tree={root}&uuid={child}", version=version)
    assert uuids_of(response) == {child}


@dataclass(frozen=True)
class Memberships:
    """Three providers: one in A, one in B, one in both; and a child of the last in none."""

    a: str
    b: str
    in_a: str
    in_b: str
    in_both: str
    child: str


@pytest.fixture(scope="module")
def memberships(api: Client) -> Memberships:
    """A world of two aggregates."""
    a, b = new_uuid(), new_uuid()
    in_both = provider(api, aggregates=[a, b])
    return Memberships(
        a,
        b,
        provider(api, aggregates=[a]),
        provider(api, aggregates=[b]),
        in_both,
        provider(api, parent=in_both),
    )


@pytest.mark.parametrize("version", versions("1.3"))
def test_member_of_finds_direct_members(
    api: Client, memberships: Memberships, version: str
) -> None:
    """One aggregate, or any of a list; children of members are no members."""
    world = memberships

    def found(value: str) -> set[str]:
        return uuids_of(api.get(f"{LIST}?member_of={value}", version=version))

    assert found(world.a) == {world.in_a, world.in_both}
    assert found(f"in:{world.a}") == {world.in_a, world.in_both}
    assert found(f"in:{world.a},{world.b}") == {world.in_a, world.in_b, world.in_both}
    assert found(f"in:{world.a},{NOWHERE}") == {world.in_a, world.in_both}
    assert found(NOWHERE) == set()


@pytest.mark.parametrize("version", versions("1.3"))
def test_member_of_may_be_repeated_from_1_24(
    api: Client, memberships: Memberships, version: str
) -> None:
    """All of them must match."""
    world = memberships
    query = f"{LIST}?member_of={world.a}&member_of=in:{world.b},{NOWHERE}"
    answer = api.get(query, version=version)
    if at_least(version, "1.24"):
        assert uuids_of(answer) == {world.in_both}
    else:
        said = "Multiple member_of parameters are not supported"
        assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize("version", versions("1.3"))
def test_member_of_may_forbid_from_1_32(
    api: Client, memberships: Memberships, version: str
) -> None:
    """`!` and `!in:` exclude members; a provider in no aggregate is never excluded."""
    world = memberships
    tree = f"in_tree={world.in_both}&" if at_least(version, "1.14") else ""
    for query, expected in (
        (f"{tree}member_of=!{world.a}", {world.child}),
        (f"{tree}member_of=!{NOWHERE}", {world.in_both, world.child}),
        (f"{tree}member_of=!in:{world.a},{NOWHERE}", {world.child}),
        (f"{tree}member_of=!{world.a}&member_of=!{NOWHERE}", {world.child}),
        (f"{tree}member_of=!{NOWHERE}&member_of=!{world.a}", {world.child}),
        (f"member_of={world.a}&member_of=!{world.b}", {world.in_a}),
        (f"member_of={world.a}&member_of=!in:{world.b}", {world.in_a}),
        (f"member_of={world.a}&member_of=!{world.a}", set()),
    ):
        answer = api.get(f"{LIST}?{query}", version=version)
        if at_least(version, "1.32"):
            assert uuids_of(answer) == expected
        else:
            assert_refused(answer, 400, version=version)
    answer = api.get(f"{LIST}?member_of=!{world.a}", version=version)
    if not at_least(version, "1.32"):
        said = "Forbidden member_of parameters are not supported"
        assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "in:",
        "in:{a},",
        "in:,{a}",
        "in:{a},,{b}",
        "{a},{b}",
        "in:{a}, {b}",
        " {a}",
        "in:{a},!{b}",
        "IN:{a}",
        "in:in:{a}",
        "!",
        "!in:",
        "!!{a}",
        "!{a},{b}",
        "!in:{a},!{b}",
        "in:!{a}",
    ],
)
def test_a_malformed_member_of_is_refused(api: Client, value: str) -> None:
    """Empty items, blanks, lists without `in:`, and `!` within a list."""
    for version in versions("1.3"):
        text = value.format(a=new_uuid(), b=new_uuid()).replace(" ", "%20")
        answer = api.get(f"{LIST}?member_of={text}", version=version)
        assert_refused(answer, 400, "member_of", version=version)
        assert "Forbidden" not in answer.detail, "what is malformed is so at every microversion"


@dataclass(frozen=True)
class Marked:
    """Providers of one tree by their traits: red, blue, both and none."""

    red: str
    blue: str
    is_red: str
    is_blue: str
    is_both: str
    is_plain: str


@pytest.fixture(scope="module")
def marked(api: Client) -> Marked:
    """A world of two traits."""
    red, blue = custom_trait(api), custom_trait(api)
    root = provider(api)
    return Marked(
        red,
        blue,
        provider(api, parent=root, traits=[red]),
        provider(api, parent=root, traits=[blue]),
        provider(api, parent=root, traits=[red, blue]),
        root,
    )


@pytest.mark.parametrize("version", versions("1.18"))
def test_required_finds_who_has_every_trait(api: Client, marked: Marked, version: str) -> None:
    """All of a list, on the provider itself; blanks around names are ignored."""
    world = marked

    def found(value: str) -> set[str]:
        query = f"{LIST}?in_tree={world.is_plain}&required={value}"
        return uuids_of(api.get(query, version=version))

    assert found(world.red) == {world.is_red, world.is_both}
    assert found(f"{world.red},{world.blue}") == {world.is_both}
    assert found(f"%20{world.red}%20,%20{world.blue}%20") == {world.is_both}
    assert found("HW_CPU_X86_AVX2") == set()


@pytest.mark.parametrize("version", versions("1.18"))
def test_required_may_forbid_from_1_22(api: Client, marked: Marked, version: str) -> None:
    """`!` before a trait; several count as one; a trait both required and forbidden matches
    none."""
    world = marked
    for value, expected in (
        (f"!{world.red}", {world.is_plain, world.is_blue}),
        (f"{world.blue},!{world.red}", {world.is_blue}),
        (f"!{world.red},!{world.blue}", {world.is_plain}),
        (f"!!!{world.red}", {world.is_plain, world.is_blue}),
        (f"{world.red},!{world.red}", set()),
    ):
        query = f"{LIST}?in_tree={world.is_plain}&required={value}"
        answer = api.get(query, version=version)
        if at_least(version, "1.22"):
            assert uuids_of(answer) == expected
        else:
            said = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC."
            assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize("version", versions("1.18"))
def test_required_may_name_alternatives_from_1_39(
    api: Client, marked: Marked, version: str
) -> None:
    """`in:` at the begin of the value."""
    world = marked
    query = f"{LIST}?in_tree={world.is_plain}&required=in:{world.red},{world.blue}"
    answer = api.get(query, version=version)
    if at_least(version, "1.39"):
        assert uuids_of(answer) == {world.is_red, world.is_blue, world.is_both}
    else:
        said = "only supported since microversion 1.39"
        assert_refused(answer, 400, said, version=version)


@pytest.mark.parametrize("version", versions("1.18"))
def test_required_may_be_repeated_from_1_39(api: Client, marked: Marked, version: str) -> None:
    """Before, the last one counts and the others are not parsed."""
    world = marked
    query = f"{LIST}?in_tree={world.is_plain}&required={world.red}&required={world.blue}"
    answer = api.get(query, version=version)
    if at_least(version, "1.39"):
        assert uuids_of(answer) == {world.is_both}
    else:
        assert uuids_of(answer) == {world.is_blue, world.is_both}
    answer = api.get(f"{LIST}?required=,,&required={world.blue}", version=version)
    if at_least(version, "1.39"):
        assert_refused(answer, 400)
    else:
        assert answer.status == 200


def test_alternatives_are_joined_with_what_else_is_required(api: Client, marked: Marked) -> None:
    """`in:`, required and forbidden ones together."""
    world = marked
    tree = f"{LIST}?in_tree={world.is_plain}"
    any_of = f"required=in:{world.red},{world.blue}"
    assert uuids_of(api.get(f"{tree}&{any_of}&required={world.red}")) == {
        world.is_red,
        world.is_both,
    }
    assert uuids_of(api.get(f"{tree}&{any_of}&required=!{world.red}")) == {world.is_blue}
    none_of = f"required=!{world.red}&required=!{world.blue}"
    assert uuids_of(api.get(f"{tree}&{none_of}")) == {world.is_plain}
    assert uuids_of(api.get(f"{tree}&required=in:{world.red}")) == {world.is_red, world.is_both}


@pytest.mark.parametrize(
    "value",
    ["", ",", "{red},", ",{red}", "{red},,{red}", "!", "{red},!", "!%20{red}", "hw_cpu_x86_avx2"],
)
def test_a_malformed_required_is_refused(api: Client, marked: Marked, value: str) -> None:
    """Empty items, `!` alone, a blank after it."""
    for version in versions("1.18"):
        text = value.format(red=marked.red)
        assert_refused(api.get(f"{LIST}?required={text}", version=version), 400, version=version)


@pytest.mark.parametrize(
    "value",
    ["!in:{red}", "IN:{red}", "{red},in:{red}", "in:", "in:{red},", "in:!{red}", "in:{red},!{red}"],
)
def test_malformed_alternatives_are_refused(api: Client, marked: Marked, value: str) -> None:
    """`in:` must be in lower case and at the begin, without `!` inside."""
    assert_refused(api.get(f"{LIST}?required={value.format(red=marked.red)}"), 400)


@pytest.mark.parametrize("version", versions("1.18"))
def test_required_traits_must_exist(api: Client, marked: Marked, version: str) -> None:
    """Also the forbidden ones."""
    missing = new_custom_name()
    answer = api.get(f"{LIST}?required={marked.red},{missing}", version=version)
    assert_refused(answer, 400, f"No such trait(s): {missing}.", version=version)
    if at_least(version, "1.22"):
        answer = api.get(f"{LIST}?required=!{missing}", version=version)
        assert_refused(answer, 400, f"No such trait(s): {missing}.", version=version)


@pytest.mark.parametrize("version", versions("1.4"))
def test_resources_finds_who_has_room(api: Client, version: str) -> None:
    """The usage and the amount together fit into the capacity, and the amount fits the units."""
    name = custom_class(api)
    record = {
        "total": 12,
        "reserved": 2,
        "allocation_ratio": 2.0,
        "min_unit": 2,
        "max_unit": 14,
        "step_size": 2,
    }
    uuid = provider(api, {name: record})
    consumer(api, {uuid: {name: 4}})
    for amount, fits in (
        (1, False),
        (2, True),
        (3, False),
        (12, True),
        (14, True),
        (16, False),
        (2**31, False),
    ):
        response = api.get(f"{LIST}?resources={name}:{amount}", version=version)
        assert uuids_of(response) == ({uuid} if fits else set()), amount
    consumer(api, {uuid: {name: 4}})
    for amount, fits in ((12, True), (14, False)):
        response = api.get(f"{LIST}?resources={name}:{amount}", version=version)
        assert uuids_of(response) == ({uuid} if fits else set()), amount


@pytest.mark.parametrize("version", versions("1.4"))
def test_every_resource_must_be_the_providers_own(api: Client, version: str) -> None:
    """All classes of the list; neither the tree nor sharing providers count."""
    one, two = custom_class(api), custom_class(api)
    aggregate = new_uuid()
    both = provider(api, {one: 1, two: 1}, aggregates=[aggregate])
    half = provider(api, {one: 1}, aggregates=[aggregate])
    provider(api, {two: 1}, parent=half)
    provider(api, {two: 1}, aggregates=[aggregate], traits=["MISC_SHARES_VIA_AGGREGATE"])
    response = api.get(f"{LIST}?resources={one}:1,{two}:1", version=version)
    assert uuids_of(response) == {both}


def test_capacity_is_compared_with_its_fraction(api: Client) -> None:
    """With total times ratio as a float, not rounded down."""
    name = custom_class(api)
    uuid = provider(api, {name: {"total": 3, "allocation_ratio": 1.5}})
    assert uuids_of(api.get(f"{LIST}?resources={name}:4")) == {uuid}
    assert uuids_of(api.get(f"{LIST}?resources={name}:5")) == set()


@pytest.mark.parametrize("amount", ["%201%20", "%2B1", "1_0", "%D9%A1"])
def test_amounts_are_read_as_python_does(api: Client, amount: str) -> None:
    """Blanks, a sign, underscores, digits of other scripts."""
    assert api.get(f"{LIST}?resources=VCPU:{amount}").status == 200


@pytest.mark.deliberately_different("the original answers 500 on SQLite")
@pytest.mark.parametrize("amount", [2**63, 10**30])
def test_an_amount_that_nobody_has_finds_nobody(api: Client, amount: int) -> None:
    """However large."""
    assert uuids_of(api.get(f"{LIST}?resources=VCPU:{amount}")) == set()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "Got: empty string."),
        ("VCPU", "Got: VCPU."),
        ("VCPU:", "expected positive integer amount"),
        ("VCPU:x", "expected positive integer amount"),
        ("VCPU:1.5", "expected positive integer amount"),
        ("VCPU:0", "requires amount >= 1"),
        ("VCPU:-1", "requires amount >= 1"),
        ("VCPU:1:2", "Badly formed resources parameter"),
        ("VCPU:1,", "Badly formed resources parameter"),
        (",VCPU:1", "Badly formed resources parameter"),
        ("%20VCPU:1", "Invalid resource class in resources parameter"),
        ("vcpu:1", "Invalid resource class in resources parameter"),
        ("CUSTOM_NOT_THERE:1", "Invalid resource class in resources parameter"),
    ],
)
def test_malformed_resources_are_refused(api: Client, value: str, said: str) -> None:
    """Amounts are at least 1, and classes must exist."""
    for version in versions("1.4"):
        answer = api.get(f"{LIST}?resources={value}", version=version)
        assert_refused(answer, 400, said, version=version)


def test_of_one_class_twice_the_last_amount_counts(api: Client) -> None:
    """They are not added, and it is no error."""
    name = custom_class(api)
    uuid = provider(api, {name: 5})
    assert uuids_of(api.get(f"{LIST}?resources={name}:9,{name}:5")) == {uuid}
    assert uuids_of(api.get(f"{LIST}?resources={name}:5,{name}:9")) == set()


def test_filters_are_joined(api: Client) -> None:
    """All must match."""
    aggregate, name = new_uuid(), new_name()
    uuid = provider(api, {"VCPU": 4}, aggregates=[aggregate], traits=["HW_CPU_X86_AVX2"], name=name)
    good = {
        "name": name,
        "uuid": uuid,
        "member_of": aggregate,
        "resources": "VCPU:4",
        "in_tree": uuid,
        "required": "HW_CPU_X86_AVX2",
    }
    bad = {
        "name": new_name(),
        "uuid": NOWHERE,
        "member_of": NOWHERE,
        "resources": "VCPU:5",
        "in_tree": NOWHERE,
        "required": "!HW_CPU_X86_AVX2",
    }

    def found(values: dict[str, str]) -> set[str]:
        query = "&".join(f"{key}={value}" for key, value in values.items())
        return uuids_of(api.get(f"{LIST}?{query}"))

    assert found(good) == {uuid}
    for key, value in bad.items():
        assert found(good | {key: value}) == set(), key
