# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the bodies, one module per resource, and of the queries.

COMPAT: clients match what is said of a breach, which names the keyword and the way to it, so that
the keywords of a schema, their order and their nesting are those that OpenStack Placement shows.
"""
