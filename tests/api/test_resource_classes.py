# SPDX-License-Identifier: Apache-2.0
"""Resource classes.

Source: rest-api.md section 8, and 1.5, 1.8, 1.10, 1.14 where they concern classes.
"""

import os_resource_classes

from tests.api.wire import Rule, rules
from tests.api.worlds import custom_class
from tests.client import Client


def test_the_standard_classes_come_first_in_the_order_of_their_ids(api: Client) -> None:
    """In the library's order; custom classes follow."""
    custom = custom_class(api)
    names = [entry["name"] for entry in api.get("/resource_classes").json["resource_classes"]]
    standard = os_resource_classes.STANDARDS
    assert names[: len(standard)] == standard
    assert custom in names[len(standard) :]


@rules(
    """
    a class is shown with a link to itself @1.2-
        GET /resource_classes/VCPU
        200 {name: VCPU, links: [{rel: self, href: /resource_classes/VCPU}]}
        GET /resource_classes?foo=1
        200 {resource_classes: [{name: VCPU, links: [{rel: self, href: /resource_classes/VCPU}]},
            {name: $CUSTOM_A, links: _}, ...]}
    POST creates a class and answers with its place only @1.2-
        POST /resource_classes {name: $CUSTOM_B} => 201
        < Location: .../resource_classes/$CUSTOM_B
        < Content-Type:
        < Last-Modified:
        < Cache-Control:
        GET /resource_classes/$CUSTOM_B
        200 {name: $CUSTOM_B, links: [{rel: self, href: /resource_classes/$CUSTOM_B}]}
    POST of a class that exists is a conflict
        POST /resource_classes {name: $CUSTOM_A} => 409 Conflicting resource class already exists
    POST refuses a body that names no custom class
        POST /resource_classes $1 => 400 JSON does not validate ... $2
        | {}                                | 'name' is a required property
        | {name: VCPU}                      | Failed validating 'pattern'
        | {name: custom_a}                  | Failed validating 'pattern'
        | {name: CUSTOM_}                   | Failed validating 'pattern'
        | {name: CUSTOM_A B}                | Failed validating 'pattern'
        | {name: ""}                        |
        | {name: CUSTOM_A*249}              | Failed validating 'maxLength'
        | {name: 7}                         | is not of type 'string'
        | {name: null}                      | is not of type 'string'
        | {name: CUSTOM_A, color: red}      | Additional properties are not allowed
        | {name: CUSTOM_A, color: red}      | 'color' was unexpected
        | [CUSTOM_A]                        | is not of type 'object'
        | "CUSTOM_A"                        | is not of type 'object'
        | null                              | is not of type 'object'
    an unknown class is not found, by its exact name
        $1 => 404 No such resource class
        || GET /resource_classes/$CUSTOM_NONE || GET /resource_classes/vcpu
        || GET /resource_classes/VCPU%20 || GET /resource_classes/%C3%9C
        || GET /resource_classes/VCPU.json || DELETE /resource_classes/$CUSTOM_NONE
        || DELETE /resource_classes/vcpu || DELETE /resource_classes/VCPU%20
        || DELETE /resource_classes/%C3%9C || DELETE /resource_classes/VCPU.json
    before 1.7 PUT renames a class, and its inventories keep it @1.2-1.6
        PUT /resource_classes/$CUSTOM_A {name: $CUSTOM_B}
        200 {name: $CUSTOM_B, links: [{rel: self, href: /resource_classes/$CUSTOM_B}]}
        GET /resource_classes/$CUSTOM_A => 404
        GET /resource_classes/$CUSTOM_B => 200
        GET $host/inventories => 200 {inventories: {$CUSTOM_B: {total: 5, ...}}, seen: 1}
    a class is not renamed to another's, nor to a standard name, nor if it is standard @1.6
        PUT /resource_classes/$1 {name: $2} => $3
        | $CUSTOM_A | $CUSTOM_O | 409 Resource class already exists
        | VCPU      | $CUSTOM_B | 400 Cannot update standard resource class VCPU
        | $CUSTOM_A | VCPU      | 400 JSON does not validate
    from 1.7 on PUT creates or confirms a class @1.7-
        PUT /resource_classes/$CUSTOM_B => 201
        < Location: .../resource_classes/$CUSTOM_B
        < Last-Modified:
        < Cache-Control:
        PUT /resource_classes/$CUSTOM_B => 204
        < Location: .../resource_classes/$CUSTOM_B
        < Last-Modified:
        < Cache-Control:
    from 1.7 on PUT refuses a name that is not custom
        PUT /resource_classes/$1 => 400
        || VCPU || CUSTOM_ || CUSTOM_lower || CUSTOM_A-B || custom_A || MY_CLASS || CUSTOM_%C3%84
        || CUSTOM_A%20 || CUSTOM_A*249 || CUSTOM_%22 || CUSTOM_%5C
    a class is deleted when nobody has inventory of it
        DELETE /resource_classes/$CUSTOM_A
        409 Error in delete resource class ... Class is in use in inventory
        DELETE $host/inventories => 204
        DELETE /resource_classes/$CUSTOM_A => 204
        < Cache-Control:
        GET /resource_classes/$CUSTOM_A => 404
        PUT /resource_classes/$CUSTOM_A => 201
    a standard class cannot be deleted
        DELETE /resource_classes/VCPU => 400 Cannot delete standard resource class
    faults of a rename: microversion, type, role, JSON, schema, the class, conflict
        > Content-Type: $2
        > X-Roles: $3
        PUT /resource_classes/$6 $4 @$1 => $5
        | 1.1 | text/plain       | nobody | b'{'              | 404 | $CUSTOM_NONE
        | 1.6 | text/plain       | nobody | b'{'              | 415 | $CUSTOM_NONE
        | 1.6 | application/json | nobody | b'{'              | 403 | $CUSTOM_NONE
        | 1.6 | application/json | admin  | b'{'              | 400 Malformed JSON | $CUSTOM_NONE
        | 1.6 | application/json | admin  | b'{}'             | 400 not validate | $CUSTOM_NONE
        | 1.6 | application/json | admin  | {name: $CUSTOM_O} | 404 | $CUSTOM_NONE
        | 1.6 | application/json | admin  | {name: $CUSTOM_O} | 409 | $CUSTOM_A
        | 1.6 | application/json | admin  | {name: $CUSTOM_B} | 200 | $CUSTOM_A
    """,
    world="host  CUSTOM_A=5",
    classes="CUSTOM_O",
)
def test_classes(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
