# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider.

Source: rest-api.md 6.
"""

from tests.api.wire import Rule, rules
from tests.client import Client


@rules(
    """
    a provider begins in no aggregate @1.1-1.18
        GET $empty/aggregates => 200 {aggregates: []}
    a provider begins in no aggregate, and its generation is shown @1.19-
        GET $empty/aggregates => 200 {aggregates: [], seen: 0}
    aggregates are set as a whole, and generations do not matter before 1.19 @1.1-1.18
        PUT $host/aggregates [$b, $a] => 200 {aggregates: [$b, $a]}
        PUT $host/aggregates [$c] => 200 {aggregates: [$c]}
        GET $host/aggregates => 200 {aggregates: [$c]}
        PUT $host/aggregates [] => 200 {aggregates: []}
        GET $host/aggregates @1.39 => 200 {aggregates: [], seen: 2}
    aggregates are set as a whole, by whoever saw the last state @1.19-
        PUT $host/aggregates {aggregates: [$b, $a], seen: 2} => 200 {aggregates: [$b, $a], seen: 3}
        PUT $host/aggregates {aggregates: [$c], seen: 2}
        409 placement.concurrent_update Please update the generation and try again.
        PUT $host/aggregates {aggregates: [$c], seen: 3} => 200 {aggregates: [$c], seen: 4}
        GET $host/aggregates => 200 {aggregates: [$c], seen: 4}
        PUT $host/aggregates {aggregates: [], seen: 4} => 200 {aggregates: [], seen: 5}
        PUT $empty/aggregates {aggregates: [], seen: 0} => 200 {aggregates: [], seen: 1}
        PUT $empty/aggregates {aggregates: [$a], seen: 0} => 409 placement.concurrent_update
    from 1.19 on a body is an object @1.19-
        PUT $host/aggregates [$a] => 400 JSON does not validate ... is not of type 'object'
    from 1.19 on an aggregate is a uuid and stands once @1.19-
        PUT $host/aggregates {aggregates: $1, seen: 2} => 400 $2
        | [x]      | is not a 'uuid'
        | [""]     | is not a 'uuid'
        | [null]   | is not of type 'string'
        | [1]      | is not of type 'string'
        | [$a, $a] | has non-unique elements
        | [$a, x]  | is not a 'uuid'
    both fields are needed and nothing else
        PUT $host/aggregates $1 => 400 JSON does not validate
        || {aggregates: []} || {seen: 2} || {aggregates: [], seen: 2, more: 1}
        || {aggregates: {}, seen: 2} || {aggregates: [], seen: null} || {aggregates: [], seen: "2"}
    an aggregate is made by its first member and is gone with its last
        GET /resource_providers?member_of=$A => 200 {resource_providers: [{uuid: $host, ...}]}
        PUT $empty/aggregates {aggregates: [$A], seen: 0} => 200
        GET /resource_providers?member_of=$A
        200 {resource_providers: [{uuid: $host, ...}, {uuid: $empty, ...}]}
        PUT $host/aggregates {aggregates: [], seen: 2} => 200
        GET /resource_providers?member_of=$A => 200 {resource_providers: [{uuid: $empty, ...}]}
        PUT $empty/aggregates {aggregates: [], seen: 1} => 200
        GET /resource_providers?member_of=$A => 200 {resource_providers: []}
    """,
    world="""
        empty
        host  VCPU=1  @A
    """,
)
def test_aggregates(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
