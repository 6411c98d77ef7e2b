# SPDX-License-Identifier: Apache-2.0
"""Traits, and the traits of a provider.

Source: rest-api.md 7.
"""

import os_traits
import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import custom_trait, done
from tests.client import Client

WORLD = """
    root
      child  CUSTOM_A  @X
"""


def test_all_traits_are_listed(api: Client) -> None:
    """The standard ones of os-traits, and the custom ones; each once."""
    trait = custom_trait(api)
    names = done(api.get("/traits"), 200).json["traits"]
    assert trait in names
    assert len(set(names)) == len(names)
    assert {name for name in names if not name.startswith("CUSTOM_")} == set(os_traits.get_traits())


@rules(
    """
    traits can be chosen by name, prefix and association @1.6-
        GET /traits?$1 => 200 {traits: $2}
        | name=in:$CUSTOM_A,HW_CPU_X86_AVX2,$CUSTOM_NONE | [$CUSTOM_A, HW_CPU_X86_AVX2]
        | name=in:%20$CUSTOM_B                     | []
        | name=in:                                 | []
        | name=startswith:$CUSTOM_A                | [$CUSTOM_A]
        | name=startswith:$(CUSTOM_A)_             | []
        | name=startswith:                         | [$CUSTOM_A, $CUSTOM_B, HW_CPU_X86_AVX2, ...]
        | name=foo:X                               | [$CUSTOM_A, $CUSTOM_B, HW_CPU_X86_AVX2, ...]
        | name=in:$CUSTOM_A,$CUSTOM_B&associated=true  | [$CUSTOM_A]
        | name=in:$CUSTOM_A,$CUSTOM_B&associated=TRUE  | [$CUSTOM_A]
        | name=in:$CUSTOM_A,$CUSTOM_B&associated=False | [$CUSTOM_B]
        | associated=true                          | [$CUSTOM_A, ...]
        | associated=false                         | [$CUSTOM_B, ...]
    a prefix is as long as it is written
        PUT /traits/$(CUSTOM_A)_A => 201
        PUT /traits/$(CUSTOM_A)_B => 201
        GET /traits?name=startswith:$(CUSTOM_A)_ => 200 {traits: [$(CUSTOM_A)_A, $(CUSTOM_A)_B]}
    a name to find needs an operator @1.6-
        GET /traits?name=$1 => 400 Badly formatted name parameter
        | HW_CPU_X86_AVX2
        |
        || in || startswith
    an association is true or false
        GET /traits?associated=$1 => 400 associated
        |
        || 1 || yes || t || true%20 || none
    a trait lives and dies @1.6-
        GET /traits/$CUSTOM_C => 404 No such trait
        PUT /traits/$CUSTOM_C => 201
        < Location: .../traits/$CUSTOM_C
        PUT /traits/$CUSTOM_C => 204
        < Location: .../traits/$CUSTOM_C
        GET /traits/$CUSTOM_C => 204
        DELETE /traits/$CUSTOM_C => 204
        GET /traits/$CUSTOM_C => 404
        DELETE /traits/$CUSTOM_C => 404 No such trait
    a trait is what its exact name says
        $1 /traits/$2 => 404
        | GET    | $CUSTOM_A.lower
        | DELETE | $CUSTOM_A.lower
        | GET    | hw_cpu_x86_avx2
    only custom traits can be made, and a standard one is refused although it exists @1.6-
        PUT /traits/$1 => 400 The trait is invalid
        || HW_CPU_X86_AVX2 || NOT_CUSTOM || CUSTOM_lower || CUSTOM_
    standard traits stay @1.6-
        DELETE /traits/HW_CPU_X86_AVX2 => 400 Cannot delete standard trait
    a trait in use stays, until no provider has it @1.6-
        DELETE /traits/$CUSTOM_A => 409 The trait $CUSTOM_A is in use by a resource provider.
        DELETE $child/traits => 204
        DELETE /traits/$CUSTOM_A => 204
    """,
    world=WORLD,
    traits="CUSTOM_B",
)
def test_traits(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("the original's prefix is an SQL LIKE pattern")
@rules(
    """
    a prefix is taken literally
        GET /traits?name=startswith:$1 => 200 {traits: []}
        || $CUSTOM_A.lower || CUSTOM%25 || %25 || _USTOM_
    """,
    world=WORLD,
)
def test_prefixes(rule: Rule, wire: Client) -> None:
    """Letter case matters, and there are no wildcards."""
    rule.check(wire)


@rules(
    """
    a provider has a set of traits, which PUT replaces @1.6-
        GET $root/traits => 200 {traits: [], seen: 0}
        PUT $root/traits {traits: [$CUSTOM_A, HW_CPU_X86_AVX2], seen: 0}
        200 {traits: [$CUSTOM_A, HW_CPU_X86_AVX2], seen: 1}
        GET $root/traits => 200 {traits: [$CUSTOM_A, HW_CPU_X86_AVX2], seen: 1}
        PUT $root/traits {traits: [$CUSTOM_NONE], seen: 0}
        409 placement.concurrent_update Please update the generation and try again.
        PUT $root/traits {traits: [$CUSTOM_B, $CUSTOM_A, $CUSTOM_B], seen: 1}
        200 {traits: [$CUSTOM_A, $CUSTOM_B], seen: 2}
        PUT $root/traits {traits: [], seen: 2} => 200 {traits: [], seen: 3}
        GET $root/traits => 200 {traits: [], seen: 3}
    a provider can lose all its traits without a generation @1.6-
        DELETE $child/traits => 204
        GET $child/traits => 200 {traits: [], ...}
        GET /resource_providers?required=$CUSTOM_A @1.39 => 200 {resource_providers: []}
    both fields are needed and nothing else
        PUT $root/traits $1 => 400 JSON does not validate ... $2
        | {}                                   | is a required property
        | {traits: []}                         | 'resource_provider_generation' is a required
        | {seen: 0}                            | 'traits' is a required property
        | {traits: [], seen: 0, x: 1}          | 'x' was unexpected
        | {traits: HW_CPU_X86_AVX2, seen: 0}   | is not of type 'array'
        | {traits: [1], seen: 0}               | is not of type 'string'
        | {traits: [""], seen: 0}              | Failed validating 'minLength'
        | {traits: [], seen: null}             | is not of type 'integer'
        | [HW_CPU_X86_AVX2]                    | is not of type 'object'
    an unknown provider is 404
        $1 /resource_providers/$nowhere/traits $2 => 404 No resource provider with uuid
        | GET    |
        | PUT    | {traits: [], seen: 0}
        | DELETE |
    """,
    world=WORLD,
    traits="CUSTOM_B",
)
def test_traits_of_a_provider(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
