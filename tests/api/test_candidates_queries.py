# SPDX-License-Identifier: Apache-2.0
"""The query of `GET /allocation_candidates`: what is accepted at which microversion, and the
message for each fault.

Source: allocation-candidates.md sections 2 to 4 and 8. `tests/candidates` tests the results of
valid queries.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.api import configured
from tests.api.answers import BAD_VALUE, DUPLICATE_KEY, MISSING_VALUE, UNDEFINED, assert_refused
from tests.api.precedence import ALLOWED, FORBIDDEN, Ask, Row, assert_precedence
from tests.api.versions import versions
from tests.api.worlds import (
    NOWHERE,
    custom_class,
    custom_trait,
    new_custom_name,
    new_uuid,
    provider,
)
from tests.client import Client, Response


class World:
    """One flat host; nobody else has its class, trait and aggregate.

    host  CLASS=4  TRAIT  @AGGREGATE
    """

    def __init__(self, api: Client) -> None:
        self.api = api
        self.names = {
            "<class>": custom_class(api),
            "<trait>": custom_trait(api),
            "<other>": custom_trait(api),
            "<agg>": new_uuid(),
            "<nobody>": new_uuid(),
            "<no-class>": new_custom_name(),
            "<no-trait>": new_custom_name(),
        }
        self.host = provider(
            api,
            {self.names["<class>"]: 4},
            traits=[self.names["<trait>"]],
            aggregates=[self.names["<agg>"]],
        )
        self.names["<host>"] = self.host

    def named(self, text: str) -> str:
        """The text with its <placeholders> replaced."""
        for placeholder, name in self.names.items():
            text = text.replace(placeholder, name)
        return text

    def ask(self, query: str, version: str) -> Response:
        """Send the query with its placeholders replaced."""
        return self.api.get(f"/allocation_candidates?{self.named(query)}", version=version)

    def found(self, query: str, version: str = "1.39") -> int:
        """The number of candidates."""
        answer = self.ask(query, version)
        assert answer.status == 200, answer.json
        assert set(answer.json) == {"allocation_requests", "provider_summaries"}
        return len(answer.json["allocation_requests"])


@pytest.fixture(scope="module")
def world(api: Client) -> World:
    """The world of this module; no test changes it."""
    return World(api)


#: parameter, from which microversion, a query that uses it and finds the host.
INTRODUCED = [
    ("1.10", "resources=<class>:1"),
    ("1.16", "resources=<class>:1&limit=1"),
    ("1.17", "resources=<class>:1&required=<trait>"),
    ("1.21", "resources=<class>:1&member_of=<agg>"),
    ("1.21", "resources=<class>:1&member_of=in:<agg>,<nobody>"),
    ("1.22", "resources=<class>:1&required=!<other>"),
    ("1.24", "resources=<class>:1&member_of=<agg>&member_of=in:<agg>"),
    ("1.25", "resources1=<class>:1"),
    ("1.25", "resources1=<class>:1&required1=<trait>&member_of1=<agg>"),
    ("1.25", "resources1=<class>:1&resources2=<class>:1&group_policy=none"),
    ("1.25", "resources=<class>:1&group_policy=isolate"),
    ("1.31", "resources=<class>:1&in_tree=<host>"),
    ("1.31", "resources1=<class>:1&in_tree1=<host>"),
    ("1.32", "resources=<class>:1&member_of=!<nobody>"),
    ("1.32", "resources=<class>:1&member_of=!in:<nobody>"),
    ("1.32", "resources1=<class>:1&member_of1=!<nobody>"),
    ("1.33", "resources_A=<class>:1"),
    ("1.33", "resources0=<class>:1"),
    ("1.33", "resources-=<class>:1"),
    ("1.33", "resources" + "x" * 64 + "=<class>:1"),
    ("1.35", "resources=<class>:1&root_required=<trait>"),
    ("1.35", "resources=<class>:1&root_required=!<other>,<trait>"),
    ("1.36", "resources1=<class>:1&same_subtree=1"),
    ("1.36", "resources1=<class>:1&required_N=<trait>&same_subtree=1,_N&group_policy=none"),
    ("1.39", "resources=<class>:1&required=in:<trait>,<other>"),
    ("1.39", "resources=<class>:1&required=<trait>&required=!<other>"),
]


@pytest.mark.parametrize(("since", "query"), INTRODUCED)
def test_a_parameter_works_from_its_microversion_on(world: World, since: str, query: str) -> None:
    """1.1 lists what each microversion adds. Before, the query is refused or has another
    meaning."""
    for version in versions(since):
        assert world.found(query, version) == 1, version
    if query != "resources=<class>:1&required=<trait>&required=!<other>":
        for version in versions("1.10", f"1.{int(since[2:]) - 1}"):
            assert_refused(world.ask(query, version), 400, version=version)


@pytest.mark.parametrize("version", versions("1.0", "1.9"))
def test_there_are_no_candidates_before_1_10(world: World, version: str) -> None:
    """404."""
    answer = world.ask("resources=<class>:1", version)
    assert_refused(answer, 404, "The resource could not be found", version=version)


class Fault(NamedTuple):
    """A query, the microversions that refuse it, and their message."""

    first: str
    last: str
    query: str
    says: tuple[str, ...]
    code: str = UNDEFINED


SCHEMA = "Invalid query string parameters"
RESOURCES = "Badly formed resources parameter"
FORM = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC."
OLD_FORM = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC."
ANY = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39."
CONFLICTING = "Conflicting required and forbidden traits"
UUIDS = "Expected 'member_of' parameter to contain valid UUID(s)."
REGEXES = "does not match any of the regexes"
R = "resources=<class>:1"

FAULTS = [
    # The closed key set.
    Fault("1.10", "1.24", f"{R}&foo=1", (SCHEMA, "'foo' was unexpected")),
    Fault("1.10", "1.24", f"{R}&foo=1&goo=1", (SCHEMA, "'foo', 'goo' were unexpected")),
    Fault("1.25", "1.39", f"{R}&foo=1", (SCHEMA, f"'foo' {REGEXES}")),
    Fault("1.25", "1.39", f"{R}&foo=1&goo=1", (SCHEMA, "'foo', 'goo' do not match")),
    Fault("1.10", "1.39", f"Resources=VCPU:1&{R}", (SCHEMA, "'Resources'")),
    Fault("1.10", "1.39", f"{R}&root_member_of=<agg>", (SCHEMA, "'root_member_of'")),
    Fault("1.10", "1.39", f"{R}&isolate=1", (SCHEMA, "'isolate'")),
    Fault("1.25", "1.32", f"{R}&resources01=<class>:1", (SCHEMA, f"'resources01' {REGEXES}")),
    Fault("1.33", "1.39", f"{R}&resources.A=<class>:1", (SCHEMA, REGEXES, "a-zA-Z0-9_-]{1,64}")),
    Fault("1.33", "1.39", "resources" + "x" * 65 + "=<class>:1", (SCHEMA, REGEXES)),
    Fault("1.33", "1.39", f"{R}&limit1=1", (SCHEMA, f"'limit1' {REGEXES}")),
    Fault("1.36", "1.39", f"{R}&same_subtree1=1", (SCHEMA, f"'same_subtree1' {REGEXES}")),
    Fault("1.10", "1.24", "", ("'resources' is a required property",)),
    # Undecodable bytes.
    Fault("1.10", "1.39", "resources=%FF:1", (SCHEMA,)),
    Fault("1.10", "1.39", f"{R}&%FF=1", (SCHEMA,)),
    # limit and group_policy.
    Fault("1.16", "1.39", f"{R}&limit=0", ("'0' does not match '^[1-9][0-9]*$'", "'pattern'")),
    Fault("1.16", "1.39", f"{R}&limit=-1", ("'-1' does not match",)),
    Fault("1.16", "1.39", f"{R}&limit=", ("'' does not match",)),
    Fault("1.16", "1.39", f"{R}&limit=1.5", ("'1.5' does not match",)),
    Fault("1.16", "1.39", f"{R}&limit=1&limit=x", ("'x' does not match",)),
    Fault("1.25", "1.39", f"{R}&group_policy=", ("'' is not one of ['none', 'isolate']",)),
    Fault("1.25", "1.39", f"{R}&group_policy=None", ("is not one of ['none', 'isolate']",)),
    # resources.
    Fault("1.10", "1.39", "resources=", (RESOURCES, "Got: empty string.")),
    Fault("1.10", "1.39", "resources=%20", (RESOURCES, "Got: empty string.")),
    Fault("1.10", "1.39", "resources=<class>", (RESOURCES, "Got: <class>.")),
    Fault("1.10", "1.39", "resources=<class>:1:2", (RESOURCES, "Got: <class>:1:2.")),
    Fault("1.10", "1.39", "resources=<class>:1,", (RESOURCES, "Got: .")),
    Fault("1.10", "1.39", "resources=<class>:", ("expected positive integer amount",)),
    Fault("1.10", "1.39", "resources=<class>:x", ("expected positive integer amount",)),
    Fault("1.10", "1.39", "resources=<class>:1e3", ("expected positive integer amount",)),
    Fault("1.10", "1.39", "resources=<class>:0x1", ("expected positive integer amount",)),
    Fault("1.10", "1.39", "resources=<class>:NaN", ("expected positive integer amount",)),
    Fault("1.10", "1.39", "resources=<class>:" + "9" * 4301, ("expected positive integer",)),
    Fault("1.10", "1.39", "resources=<class>:0", ("requires amount >= 1",)),
    Fault("1.10", "1.39", "resources=<class>:-5", ("requires amount >= 1",)),
    Fault("1.10", "1.39", f"resources=x&{R}", (RESOURCES, "Got: x.")),
    Fault(
        "1.10",
        "1.39",
        "resources=<no-class>:1",
        ("Invalid resource class in resources parameter: No such resource class <no-class>",),
    ),
    # required.
    Fault("1.17", "1.21", f"{R}&required=", (OLD_FORM, "Got an empty trait in")),
    Fault("1.22", "1.39", f"{R}&required=", (FORM, "Got an empty trait in")),
    Fault("1.22", "1.39", f"{R}&required=<trait>,", (FORM, "Got an empty trait in")),
    Fault("1.22", "1.39", f"{R}&required=,<trait>", (FORM, "Got an empty trait in")),
    Fault("1.17", "1.21", f"{R}&required=!<other>", (OLD_FORM, "Got: !<other>")),
    Fault("1.17", "1.38", f"{R}&required=in:<trait>", (ANY,)),
    Fault("1.39", "1.39", f"{R}&required=in:", ("Got an empty trait in",)),
    Fault("1.39", "1.39", f"{R}&required=in:<trait>,", ("Got an empty trait in",)),
    Fault("1.39", "1.39", f"{R}&required=in:!<other>", ("does not support forbidden traits",)),
    Fault("1.39", "1.39", f"{R}&required=!in:<trait>", ("No such trait(s): in:<trait>",)),
    Fault("1.39", "1.39", f"{R}&required=<trait>,in:<trait>", ("No such trait(s): in:<trait>",)),
    Fault("1.17", "1.39", f"{R}&required=<no-trait>", ("No such trait(s): <no-trait>",)),
    Fault("1.22", "1.39", f"{R}&required=!<no-trait>", ("No such trait(s): <no-trait>",)),
    Fault("1.22", "1.39", f"{R}&required=!%20<trait>", ("No such trait(s):",)),
    Fault("1.39", "1.39", f"{R}&required=in:<trait>,<no-trait>", ("No such trait(s)",)),
    Fault("1.22", "1.39", f"{R}&required=<trait>,!<trait>", (CONFLICTING, "required: (<trait>)")),
    Fault(
        "1.25",
        "1.39",
        "resources1=<class>:1&required1=<trait>,!<trait>",
        (CONFLICTING, "required1: (<trait>)"),
    ),
    Fault("1.39", "1.39", f"{R}&required=in:<trait>&required=!<trait>", (CONFLICTING,)),
    # member_of.
    Fault("1.21", "1.23", f"{R}&member_of=<agg>&member_of=<agg>", ("Multiple member_of",)),
    Fault("1.21", "1.31", f"{R}&member_of=!<agg>", ("Forbidden member_of parameters are not",)),
    Fault("1.21", "1.31", f"{R}&member_of=!in:<agg>", ("Forbidden member_of parameters are",)),
    Fault("1.21", "1.39", f"{R}&member_of=<agg>,<nobody>", ("Multiple values for 'member_of'",)),
    Fault("1.21", "1.39", f"{R}&member_of=!<agg>,<nobody>", ("'in:' or '!in:' keyword",)),
    Fault("1.21", "1.39", f"{R}&member_of=", (UUIDS,)),
    Fault("1.21", "1.39", f"{R}&member_of=x", (UUIDS,)),
    Fault("1.21", "1.39", f"{R}&member_of=in:", (UUIDS,)),
    Fault("1.21", "1.39", f"{R}&member_of=in:<agg>,", (UUIDS,)),
    Fault("1.21", "1.39", f"{R}&member_of=in:<agg>,%20<agg>", (UUIDS,)),
    Fault("1.32", "1.39", f"{R}&member_of=in:<agg>,!<agg>", (UUIDS,)),
    # in_tree.
    Fault(
        "1.31", "1.39", f"{R}&in_tree=", ("Expected 'in_tree' parameter to be a format of uuid",)
    ),
    Fault("1.31", "1.39", f"{R}&in_tree=x", ("Expected 'in_tree' parameter",)),
    Fault("1.31", "1.39", f"{R}&in_tree=x&in_tree=<host>", ("Expected 'in_tree' parameter",)),
    # root_required.
    Fault(
        "1.35",
        "1.39",
        f"{R}&root_required=<trait>&root_required=<trait>",
        ("Query parameter 'root_required' may be specified only once.",),
        DUPLICATE_KEY,
    ),
    Fault(
        "1.35",
        "1.39",
        f"{R}&root_required=<trait>,!<trait>",
        ("Conflicting required and forbidden traits found in root_required: <trait>",),
        BAD_VALUE,
    ),
    Fault("1.35", "1.39", f"{R}&root_required=in:<trait>", (ANY,)),
    Fault("1.35", "1.39", f"{R}&root_required=", ("Got an empty trait in",)),
    Fault("1.35", "1.39", f"{R}&root_required=<no-trait>", ("No such trait(s): <no-trait>",)),
    Fault("1.35", "1.39", f"{R}&root_required=!<no-trait>", ("No such trait(s): <no-trait>",)),
    # Groups without resources.
    Fault(
        "1.25",
        "1.35",
        "required=<trait>&required1=<trait>&resources2=<class>:1",
        ("orphaned traits keys: required, required1",),
    ),
    Fault(
        "1.25",
        "1.35",
        "member_of=<agg>&member_of3=<agg>&resources2=<class>:1",
        ("orphaned member_of keys: member_of, member_of3",),
    ),
    Fault(
        "1.25",
        "1.35",
        f"{R}&required1=!<other>",
        ("All request groups must specify resources.",),
    ),
    Fault("1.31", "1.35", f"{R}&in_tree1=<host>", ("All request groups must specify resources.",)),
    Fault("1.25", "1.35", "", ("At least one request group",)),
    Fault(
        "1.36",
        "1.39",
        "",
        ("There must be at least one resources or resources[$S] parameter.",),
        MISSING_VALUE,
    ),
    Fault(
        "1.36",
        "1.39",
        "required1=<trait>&same_subtree=1",
        ("There must be at least one resources or resources[$S] parameter.",),
        MISSING_VALUE,
    ),
    Fault(
        "1.36",
        "1.39",
        f"{R}&required1=<trait>",
        ("Resourceless suffixed group request should be specified in `same_subtree`",),
        BAD_VALUE,
    ),
    Fault(
        "1.36",
        "1.39",
        "required=<trait>&resources1=<class>:1",
        ("Resourceless suffixed group request should be specified in `same_subtree`",),
        BAD_VALUE,
    ),
    # same_subtree.
    Fault(
        "1.36",
        "1.39",
        "resources1=<class>:1&same_subtree=1,2",
        ("Real suffixes should be specified in `same_subtree`:",),
        BAD_VALUE,
    ),
    Fault(
        "1.36",
        "1.39",
        "resources1=<class>:1&same_subtree=1,",
        ("Empty string (unsuffixed group) can not be specified in `same_subtree`",),
        BAD_VALUE,
    ),
    # group_policy.
    Fault(
        "1.25",
        "1.39",
        "resources1=<class>:1&resources2=<class>:1",
        (
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        ),
    ),
    Fault(
        "1.36",
        "1.39",
        "resources1=<class>:1&required2=<trait>&same_subtree=2",
        ('The "group_policy" parameter is required',),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.first}-{fault.query[:60]}")
def test_a_fault_is_named_at_every_microversion_that_has_it(world: World, fault: Fault) -> None:
    """Section 3, row by row."""
    says = [world.named(fragment) for fragment in fault.says]
    for version in versions(fault.first, fault.last):
        answer = world.ask(fault.query, version)
        assert_refused(answer, 400, *says, code=fault.code, version=version)


#: Queries of 1.39 that are accepted, and how many candidates they find.
ACCEPTED = [
    # The amount is read leniently.
    ("resources=<class>:%204", 1),
    ("resources=<class>:%2B4", 1),
    ("resources=<class>:+4", 1),
    ("resources=<class>:0004", 1),
    ("resources=<class>:1_0", 0),
    ("resources=<class>:%D9%A4", 1),
    ("resources=<class>:5", 0),
    ("resources=<class>:2147483648", 0),
    ("resources=<class>:9,<class>:4", 1),
    ("resources=<class>:4,<class>:9", 0),
    ("resources=<class>:9&resources=<class>:4", 1),
    # Traits.
    (f"{R}&required=%20<trait>%20,%20!<other>", 1),
    (f"{R}&required=!!<trait>", 0),
    (f"{R}&required=<other>", 0),
    (f"{R}&required=in:%20<other>%20,%20<trait>", 1),
    (f"{R}&required=in:<other>,<trait>&required=!<other>", 1),
    (f"{R}&required=!<trait>&required=!<other>", 0),
    (f"{R}&required=!<other>&required=!<trait>", 0),
    (f"{R}&root_required=<other>", 0),
    # Aggregates: an aggregate nobody is in matches nothing and forbids nothing.
    (f"{R}&member_of=<nobody>", 0),
    (f"{R}&member_of=in:<nobody>,<agg>", 1),
    (f"{R}&member_of=!<agg>", 0),
    (f"{R}&member_of=!<agg>&member_of=!<nobody>", 0),
    (f"{R}&member_of=!<nobody>&member_of=!<agg>", 0),
    (f"{R}&member_of=!<nobody>&member_of=<agg>", 1),
    (f"{R}&member_of=<agg>&member_of=!<agg>", 0),
    # Trees.
    (f"{R}&in_tree=<nobody>", 0),
    (f"{R}&in_tree=%20<host>%20", 1),
    (f"{R}&in_tree=<nobody>&in_tree=<host>", 1),
    # Limits of any size.
    (f"{R}&limit=99999999999999999999999", 1),
    # Subtrees, with blanks and repetitions.
    ("resources1=<class>:1&same_subtree=%201%20,1&same_subtree=1", 1),
    ("resources1=<class>:1&resources2=<class>:1&group_policy=isolate", 0),
    ("resources1=<class>:1&resources2=<class>:3&group_policy=none", 1),
    ("resources1=<class>:1&resources2=<class>:4&group_policy=none", 0),
]


@pytest.mark.parametrize(("query", "candidates"), ACCEPTED)
def test_an_accepted_query_finds_the_host_or_nothing(
    world: World, query: str, candidates: int
) -> None:
    """Unknown hosts and aggregates are no error: 200, with both keys."""
    assert world.found(query) == candidates


def test_of_required_the_last_counts_before_1_39(world: World) -> None:
    """Earlier ones are not parsed."""
    query = f"{R}&required=,,in:nonsense&required=<trait>"
    for version in versions("1.17", "1.38"):
        assert world.found(query, version) == 1
    assert_refused(world.ask(query, "1.39"), 400)


@pytest.mark.deliberately_different("huge amounts find nothing instead of a 500 (D5)")
@pytest.mark.parametrize("amount", [2**63, 2**64, 10**30, 10**4000])
def test_an_amount_beyond_64_bits_finds_nothing(world: World, amount: int) -> None:
    """No inventory can have so much."""
    assert world.found(f"resources=<class>:{amount}") == 0


@pytest.mark.deliberately_different("every occurrence of limit and group_policy is validated (D5)")
@pytest.mark.parametrize(
    "query",
    [f"{R}&limit=x&limit=1", f"{R}&limit=0&limit=1", f"{R}&group_policy=x&group_policy=none"],
)
def test_every_occurrence_is_validated(world: World, query: str) -> None:
    """A malformed first value is refused like a malformed last one."""
    assert_refused(world.ask(query, "1.39"), 400)


@pytest.mark.deliberately_different("uuids are normalised to lower case and dashes (1.9)")
@pytest.mark.parametrize("key", ["member_of", "in_tree"])
def test_a_uuid_is_found_in_capitals(world: World, key: str) -> None:
    """Uuids are compared in canonical form."""
    uuid = world.names["<agg>" if key == "member_of" else "<host>"].upper()
    assert world.found(f"{R}&{key}={uuid}") == 1


@pytest.mark.parametrize("version", ["1.10", "1.24", "1.25", "1.36", "1.39"])
def test_the_order_of_the_layers(world: World, version: str) -> None:
    """Microversion, Accept, policy, then the query (section 4, 1)."""
    assert_precedence(
        world.api,
        Ask(
            "GET",
            "/allocation_candidates?foo=1",
            version="1.9",
            headers=FORBIDDEN | {"Accept": "text/plain"},
        ),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": version}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 400, SCHEMA),
            Row(
                "the query",
                {"path": world.named(f"/allocation_candidates?{R}")},
                200,
            ),
        ],
    )


#: Section 4 as a ladder: each query has the fault of its line and those of all lines below it.
LADDER = [
    ("foo=1&root_required=&same_subtree=,&resources1=x", f"'foo' {REGEXES}"),
    ("limit=0&root_required=&same_subtree=,&resources1=x", "'0' does not match"),
    ("group_policy=x&root_required=&same_subtree=,&resources1=x", "is not one of"),
    ("root_required=<trait>&root_required=&same_subtree=,&resources1=x", "only once"),
    ("root_required=&same_subtree=,&resources1=x", "Got an empty trait in"),
    ("root_required=<trait>,!<trait>&same_subtree=,&resources1=x", "found in root_required"),
    ("same_subtree=,&resources1=x&required2=", "Empty string (unsuffixed group)"),
    ("same_subtree=9&resources1=x&required2=", RESOURCES),
    ("same_subtree=9&required2=&resources1=x", "Got an empty trait in"),
    ("same_subtree=9&member_of1=x&in_tree1=x&required2=<trait>", UUIDS),
    ("same_subtree=9&in_tree1=x&required2=<trait>", "Expected 'in_tree'"),
    ("same_subtree=9&required2=<trait>,!<trait>", "There must be at least one resources"),
    (
        "same_subtree=9&required2=<trait>,!<trait>&resources1=<class>:1",
        "Resourceless suffixed group request",
    ),
    (
        "same_subtree=2,9&required2=<trait>,!<trait>&resources1=<class>:1",
        "Real suffixes should be specified",
    ),
    ("same_subtree=2&required2=<trait>,!<trait>&resources1=<class>:1", CONFLICTING),
    (
        "same_subtree=2&required2=<no-trait>&resources1=<no-class>:1&root_required=<no-trait>",
        '"group_policy" parameter is required',
    ),
    (
        "root_required=<no-trait>&resources1=<no-class>:1",
        "No such trait(s): <no-trait>",
    ),
    ("resources1=<no-class>:1&required1=<no-trait>", "No such resource class <no-class>"),
    ("resources1=<class>:1&required1=<no-trait>&resources=<no-class>:1&group_policy=none", "trait"),
]


@pytest.mark.parametrize(("query", "says"), LADDER)
def test_of_several_faults_the_first_is_named(world: World, query: str, says: str) -> None:
    """Section 4, from top to bottom."""
    answer = world.ask(query, "1.39")
    assert answer.status == 400, answer.json
    assert world.named(says) in answer.detail


#: The same up to 1.35, where groups without resources have no business at all.
OLD_LADDER = [
    ("required1=<trait>&member_of2=<agg>&in_tree3=<host>", "orphaned traits keys: required1"),
    ("member_of2=<agg>&in_tree3=<host>", "orphaned member_of keys: member_of2"),
    ("in_tree3=<host>&required4=!<other>", "All request groups must specify resources."),
    ("", "At least one request group"),
]


@pytest.mark.parametrize("version", versions("1.31", "1.35"))
@pytest.mark.parametrize(("query", "says"), OLD_LADDER)
def test_of_several_groups_without_resources_the_first_fault_is_named(
    world: World, version: str, query: str, says: str
) -> None:
    """Orphaned traits, orphaned member_of, any other parameter, no group at all."""
    assert_refused(world.ask(query, version), 400, says, version=version)


@pytest.mark.parametrize(
    "query",
    [
        "root_required=<other>&resources=<no-class>:1",
        f"{R}&member_of=<nobody>&required=<no-trait>",
        f"{R}&in_tree=<nobody>&resources1=<no-class>:1",
        "resources=<class>:5&resources1=<no-class>:1",
        "resources=<class>:5&resources1=<class>:1&required1=<no-trait>",
    ],
)
def test_the_first_empty_result_ends_everything(world: World, query: str) -> None:
    """Unknown names in later groups are not reported (section 4, 8)."""
    assert world.found(query) == 0


def test_roots_that_are_all_forbidden_end_everything(tmp_path: Path) -> None:
    """Unknown names in groups are not reported then, either (section 4, 8)."""
    world = World(configured.serve(tmp_path))
    assert world.found("root_required=!<trait>&resources=<no-class>:1") == 0
    assert_refused(world.ask("root_required=!<other>&resources=<no-class>:1", "1.39"), 400)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("resources=<no-class>:1&member_of=<nobody>", "No such resource class"),
        (f"{R}&required=<no-trait>&in_tree=<nobody>", "No such trait(s)"),
        (f"{R}&required=<no-trait>&resources1=<class>:5", "No such trait(s)"),
        ("resources=<class>:1,<no-class>:1", "No such resource class"),
    ],
)
def test_an_unknown_name_before_the_first_empty_result_is_reported(
    world: World, query: str, says: str
) -> None:
    """Per group: classes, aggregates, traits, tree (section 4, 8)."""
    assert_refused(world.ask(query, "1.39"), 400, says)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("version", ["1.9", "1.10", "1.39"])
def test_candidates_are_only_read(world: World, method: str, version: str) -> None:
    """405, at every microversion."""
    answer = world.api.request(method, "/allocation_candidates", version=version)
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/allocation_candidates/", "/Allocation_Candidates"])
def test_the_path_is_exact(world: World, path: str) -> None:
    """A trailing slash makes another path."""
    assert_refused(world.api.get(world.named(f"{path}?{R}")), 404)


def test_a_host_that_is_not_there_is_not_found(world: World) -> None:
    """An unknown provider in `in_tree` gives an empty response, with and without a suffix."""
    assert world.found(f"{R}&in_tree={NOWHERE}") == 0
    assert world.found(f"resources1=<class>:1&in_tree1={NOWHERE}") == 0
