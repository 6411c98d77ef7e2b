# SPDX-License-Identifier: Apache-2.0
"""Every operation of the API, one module per resource: its rule, schemas, answers and examples.

A handler is in the module of `berth.api` with the same name, and takes its schemas from here.
COMPAT: clients match the message about a body that violates its schema, which names the keyword
and the path to it, so the keywords of a schema, their order and their nesting are those of
OpenStack Placement.
"""
