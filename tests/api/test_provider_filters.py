# SPDX-License-Identifier: Apache-2.0
"""Listing resource providers, and the filters of the list.

Source: rest-api.md 4.1.
"""

import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import uuids_of
from tests.client import Client


@rules(
    """
    a filter begins with its version
        GET /resource_providers?$1 => 200
        | name=x                   | @1.0-
        | uuid=$A                  | @1.0-
        | member_of=$A             | @1.3-
        | resources=VCPU:1         | @1.4-
        | in_tree=$A               | @1.14-
        | required=HW_CPU_X86_AVX2 | @1.18-
    before that, and of another route, it is refused
        GET /resource_providers?$1 => 400 Invalid query string parameters
        | member_of=$A             | @1.0-1.2
        | resources=VCPU:1         | @1.0-1.3
        | in_tree=$A               | @1.0-1.13
        | required=HW_CPU_X86_AVX2 | @1.0-1.17
        | resources1=VCPU:1        | @1.0-
        | sort=name                | @1.0-
    by name and by uuid, exactly, and both together
        GET /resource_providers?$1 => 200 PROVIDERS $2
        | name=$top.name             | top
        | uuid=$top                  | top
        | uuid=$top&name=$top.name   | top
        | uuid=$low&name=$top.name   |
        | uuid=$a&name=$top.name     |
        | name=$top.name%20           |
        | name=&uuid=$top            | top | @1.0-
    a tree, from any of its providers @1.14-
        GET /resource_providers?$1 => 200 PROVIDERS $2
        | in_tree=$top           | top mid low side
        | in_tree=$low           | top mid low side
        | in_tree=$nowhere       |
        | in_tree=$top&uuid=$mid | mid
    members of one aggregate or of any of a list, not their children @1.3-
        GET /resource_providers?member_of=$1 => 200 PROVIDERS $2
        | $A             | a both
        | in:$A,$B       | a b both
        | in:$A,$nowhere | a both
        | $nowhere       |
    members of all of several, from 1.24 on
        GET /resource_providers?member_of=$A&member_of=in:$B,$nowhere => $1
        | 200 PROVIDERS both | @1.24-
        | 400 Multiple member_of parameters are not supported | @1.3-1.23
    no members, from 1.32 on; who is in no aggregate is never left out @1.32-
        GET /resource_providers?$1 => 200 PROVIDERS $2
        | in_tree=$both&member_of=!$A                       | child
        | in_tree=$both&member_of=!$nowhere                 | both child
        | in_tree=$both&member_of=!$nowhere&member_of=!$A   | child
        | member_of=$A&member_of=!$B                        | a
        | member_of=$A&member_of=!$A                        |
    before 1.32 nobody is forbidden
        GET /resource_providers?$1 => 400 $2
        | member_of=!$A                 | Forbidden member_of parameters are not | @1.3-1.31
        | member_of=!in:$A,$nowhere     | Forbidden member_of parameters are not | @1.3-1.31
        | member_of=$A&member_of=!$B    |                                        | @1.3-1.31
    a malformed member_of is refused at every microversion, with the same words @1.3-
        GET /resource_providers?member_of=$1 => 400 member_of
        |
        || x || in: || in:$A, || in:,$A || in:$A,,$B || $A,$B || in:$A,%20$B || %20$A || in:$A,!$B
        || IN:$A || in:in:$A || ! || !in: || !!$A || !$A,$B || !in:$A,!$B || in:!$A
    """,
    world="""
        top
          mid
            low
          side
        a     @A
        b     @B
        both  @A @B
          child
    """,
)
def test_filters(rule: Rule, wire: Client) -> None:
    """By name, place and aggregate."""
    rule.check(wire)


@rules(
    """
    who has every trait of a list, by itself @1.18-
        GET /resource_providers?in_tree=$plain&required=$1 => 200 PROVIDERS $2
        | $CUSTOM_R                         | red both
        | $CUSTOM_R,$CUSTOM_B               | both
        | %20$CUSTOM_R%20,%20$CUSTOM_B%20   | both
        | HW_CPU_X86_AVX2                   |
    who has not, from 1.22 on @1.22-
        GET /resource_providers?in_tree=$plain&required=$1 => 200 PROVIDERS $2
        | !$CUSTOM_R            | plain blue
        | $CUSTOM_B,!$CUSTOM_R  | blue
        | !$CUSTOM_R,!$CUSTOM_B | plain
        | $CUSTOM_R,!$CUSTOM_R  |
    alternatives and repetitions, from 1.39 on
        GET /resource_providers?in_tree=$plain&$1 => 200 PROVIDERS $2
        | required=in:$CUSTOM_R,$CUSTOM_B                        | red blue both
        | required=$CUSTOM_R&required=$CUSTOM_B                  | both
        | required=$CUSTOM_R&required=$CUSTOM_B                  | blue both | @1.18-1.38
        | required=,,&required=$CUSTOM_B                         | blue both | @1.18-1.38
        | required=in:$CUSTOM_R,$CUSTOM_B&required=$CUSTOM_R     | red both
        | required=in:$CUSTOM_R,$CUSTOM_B&required=!$CUSTOM_R    | blue
        | required=!$CUSTOM_R&required=!$CUSTOM_B                | plain
    a malformed required is refused
        GET /resource_providers?required=$1 => 400 $2
        |                          | | @1.18-
        | ,                        | | @1.18-
        | $CUSTOM_R,,$CUSTOM_R     | | @1.18-
        | $CUSTOM_R,!              | | @1.18-
        | !%20$CUSTOM_R            | | @1.18-
        | ,,&required=$CUSTOM_B    |
        | !in:$CUSTOM_R            |
        | in:                      |
        | in:$CUSTOM_R,!$CUSTOM_R  |
        | $CUSTOM_R,$CUSTOM_NONE   | No such trait(s): $(CUSTOM_NONE). | @1.18-
        | !$CUSTOM_NONE            | No such trait(s): $(CUSTOM_NONE). | @1.22-
        | $CUSTOM_NONE&resources=NONE:1  | No such trait(s): $(CUSTOM_NONE). | @1.18-
        | !$CUSTOM_R               | of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC. | @1.18-1.21
        | in:$CUSTOM_R,$CUSTOM_B   | only supported since microversion 1.39 | @1.18-1.38
    """,
    world="""
        plain
          red   CUSTOM_R
          blue  CUSTOM_B
          both  CUSTOM_R CUSTOM_B
    """,
)
def test_traits(rule: Rule, wire: Client) -> None:
    """By the provider's own traits; blanks around names are ignored."""
    rule.check(wire)


@rules(
    """
    who has room for an amount that fits the units @1.4-
        GET /resource_providers?resources=$CUSTOM_C:$1 => 200 PROVIDERS $2
        | 1          |
        | 2          | host
        | 3          |
        | 14         | host
        | 16         |
        | 2147483648 |
    what is used is not room @1.4-
        PUT /allocations/$more CLAIM host $CUSTOM_C=4 @1.39 => 204
        GET /resource_providers?resources=$CUSTOM_C:12 => 200 PROVIDERS host
        GET /resource_providers?resources=$CUSTOM_C:14 => 200 PROVIDERS
    every class must be the provider's own @1.4-
        GET /resource_providers?resources=$CUSTOM_D:1,$CUSTOM_E:1 => 200 PROVIDERS two
    capacity is compared with its fraction; of one class twice the last amount counts
        GET /resource_providers?resources=$1 => 200 PROVIDERS $2
        | $CUSTOM_F:4             | odd
        | $CUSTOM_F:5             |
        | $CUSTOM_F:9,$CUSTOM_F:3 | odd
        | $CUSTOM_F:3,$CUSTOM_F:9 |
    all filters must match
        GET /resource_providers?name=$1&uuid=$2&member_of=$3&resources=$CUSTOM_F:$4&in_tree=$5&$6
        200 PROVIDERS $7
        | $odd.name | $odd | $A | 4 | $odd | required=HW_CPU_X86_AVX2  | odd
        | $host.name | $odd | $A | 4 | $odd | required=HW_CPU_X86_AVX2 |
        | $odd.name | $host | $A | 4 | $odd | required=HW_CPU_X86_AVX2 |
        | $odd.name | $odd | $nowhere | 4 | $odd | required=HW_CPU_X86_AVX2 |
        | $odd.name | $odd | $A | 5 | $odd | required=HW_CPU_X86_AVX2  |
        | $odd.name | $odd | $A | 4 | $host | required=HW_CPU_X86_AVX2 |
        | $odd.name | $odd | $A | 4 | $odd | required=!HW_CPU_X86_AVX2 |
    """,
    world="""
        host   CUSTOM_C=12(reserved:2,ratio:2.0,min:2,max:14,step:2,used:4)
        two    CUSTOM_D=1  CUSTOM_E=1  @B
        half   CUSTOM_D=1  @B
          rest CUSTOM_E=1
        pool   CUSTOM_E=1  @B  MISC_SHARES_VIA_AGGREGATE
        odd    CUSTOM_F=3(ratio:1.5)  @A  HW_CPU_X86_AVX2
    """,
)
def test_resources(rule: Rule, wire: Client) -> None:
    """By what is free, and by all filters together."""
    rule.check(wire)


@pytest.mark.deliberately_different("the original answers 500 on SQLite")
@pytest.mark.parametrize("amount", [2**63, 10**30])
def test_an_amount_that_nobody_has_finds_nobody(api: Client, amount: int) -> None:
    """However large."""
    assert uuids_of(api.get(f"/resource_providers?resources=VCPU:{amount}")) == set()
