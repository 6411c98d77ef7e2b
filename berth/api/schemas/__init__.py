# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the bodies, one module per resource, and of the queries.

In each schema `required` stands before `additionalProperties`, and that before `properties`: the
explanation tells the first fault in this order.
"""
