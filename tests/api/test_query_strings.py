# SPDX-License-Identifier: Apache-2.0
"""How query strings are parsed, on the routes of providers and traits.

Source: rest-api.md 1.6.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import new_name, provider, uuids_of
from tests.client import Client


def test_values_are_percent_decoded_as_utf_8(api: Client) -> None:
    """A plus is a blank unless it is encoded, and other bytes are UTF-8."""
    unique = new_name("höst a+b")
    uuid = provider(api, name=unique)
    tail = unique.removeprefix("höst a+b")
    assert uuids_of(api.get(f"/resource_providers?name=h%C3%B6st%20a%2Bb{tail}")) == {uuid}
    assert uuids_of(api.get(f"/resource_providers?n%61me=h%c3%b6st+a%2bb{tail}")) == {uuid}


@rules(
    """
    an unknown parameter is 400, and names have a letter case
        GET /$2?$1=x => 400 Invalid query string parameters
        GET /$3?$1=x => 400 Invalid query string parameters
        | unknown | resource_providers | traits
        | NAME    | resource_providers | traits
        | %C3%A9  | usages | allocation_candidates
    bytes that are not UTF-8 are 400
        GET /$1 => 400
        || resource_providers?name=%FF || resource_providers?%FF=a || traits?name=%FF
        || resource_providers?name=%C3
    of a repeated parameter the last counts
        GET /resource_providers?$1 => 200 PROVIDERS host
        | name=other&name=$host.name                     | @1.0-
        | uuid=nonsense&uuid=$host                       | @1.0-
        || in_tree=nonsense&in_tree=$host || uuid=$host&resources=nonsense&resources=VCPU:4
    a uuid to filter by must be dashed: queries are stricter than bodies
        GET /resource_providers?$1 => 400
        || uuid=0*32 || uuid={$host} || uuid=%20$host || uuid= || uuid=$host%0A || in_tree=0*32
        || in_tree=urn:uuid:$host || in_tree=$host%20 || in_tree=x
    parameters are separated by & and ;
        GET /resource_providers?name=$host.name$1uuid=$host => 200 PROVIDERS host
        || & || ; || &;
    an empty query is no query
        GET /resource_providers$1 => 200 {resource_providers: [_, ...]}
        || ? || ?& || ?&&
    """,
    world="""
        host  VCPU=4
        both  @A @B  CUSTOM_R CUSTOM_B
        red   @A  CUSTOM_R
    """,
    traits="CUSTOM_T",
)
def test_queries(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("berth has one uuid in any letter case; the original 500s")
@rules(
    """
    a uuid to filter by has no letter case
        GET /resource_providers?$1=$host.upper => 200 PROVIDERS host
        || uuid || in_tree
    bytes that are not UTF-8 are 400 for usages
        GET /usages?project_id=%FF => 400
    """,
    world="host",
)
def test_queries_that_the_original_takes_otherwise(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
