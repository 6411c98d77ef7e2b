# SPDX-License-Identifier: Apache-2.0
"""The OpenStack Placement API: its operations in `routes`, and for each noun a module with its
schemas, contracts and handlers.

COMPAT: clients match the message about a body that violates its schema, which names the keyword
and the path to it, so the keywords of a schema, their order and their nesting are those of
OpenStack Placement.
"""
