# SPDX-License-Identifier: Apache-2.0
"""provider.yaml files of nova, right and wrong: the files of one directory, and another."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Final

META: Final = "meta: {schema_version: '1.0'}\n"
NODE: Final = "- identification: {uuid: $COMPUTE_NODE}\n"

DIRECTORIES: Final[list[list[str]]] = [
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1.0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1.5}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: '1'}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: -1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: true}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 10, reserved: 1, min_unit: 1, max_unit: 10, step_size: 2, allocation_ratio: 1.5}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {reserved: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, allocation_ratio: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, allocation_ratio: 0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, allocation_ratio: '2'}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, foo: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{VCPU: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{custom_a: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1}}, {CUSTOM_A: {total: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1}}, {CUSTOM_B: {total: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1}, CUSTOM_B: {total: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: []}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: null}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: 1}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 2147483648}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 4294967296}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, reserved: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, reserved: -1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, min_unit: 0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, step_size: 0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, max_unit: 0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, min_unit: 3, max_unit: 2}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 2e1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 0x10}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, reserved: 0.0}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A-B: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: null}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{PCPU: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [{CUSTOM_A: {total: 1, allocation_ratio: 1e3}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A, CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A, CUSTOM_B]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [HW_CPU_X86_AVX]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [custom_a]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: []}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [1]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [null]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [{CUSTOM_A: 1}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A-B]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: ['CUSTOM_A']}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: 12345678-1234-1234-1234-123456789abc}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a, uuid: 12345678-1234-1234-1234-123456789abc}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: x}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: ''}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: 12345678-1234-1234-1234-123456789ABC}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: 12345678123412341234123456789abc}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $compute_node}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: 1}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {foo: 1}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a b}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: [a]}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n- identification: {uuid: $COMPUTE_NODE}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n- identification: {uuid: $COMPUTE_NODE}\n"
    ],
    ["meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n"],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n",
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n",
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n",
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n",
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n",
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n",
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n- identification: {uuid: 12345678-1234-1234-1234-123456789abc}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: a}\n  traits: {additional: [CUSTOM_A]}\n- identification: {name: a}\n"
    ],
    ["providers:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"],
    [
        "meta: {}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: 1.0}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.1'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '2.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.0', foo: 1}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: ''}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: null\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "foo: 1\nmeta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '01.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '1.99'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    [
        "meta: {schema_version: '0.9'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A]}\n"
    ],
    ["meta: {schema_version: '1.0'}\n"],
    ["meta: {schema_version: '1.0'}\nproviders: []\n"],
    ["meta: {schema_version: '1.0'}\nproviders: null\n"],
    ["meta: {schema_version: '1.0'}\nproviders: {}\n"],
    [""],
    ["# nothing\n"],
    ["[]"],
    ["x: ["],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  foo: 1\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: null\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: null}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: []}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {foo: []}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: null\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {additional: {}}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  __source_file: x\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: [CUSTOM_A], foo: 1}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories: {foo: 1, additional: [{CUSTOM_A: {total: 1}}]}\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: [CUSTOM_A]\n"
    ],
    [
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  traits: {additional: CUSTOM_A}\n"
    ],
    ["meta: {schema_version: '1.0'}\nproviders:\n- traits: {additional: [CUSTOM_A]}\n"],
    ["meta: {schema_version: '1.0'}\nproviders:\n- identification: null\n"],
    ["meta: {schema_version: '1.0'}\nproviders:\n- null\n"],
]
