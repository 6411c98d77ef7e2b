# SPDX-License-Identifier: Apache-2.0
"""The API described by itself: an OpenAPI 3.1 document for each microversion.

It is put together from what serves requests: the table of routes, the schemas that validate bodies
and queries, and the schemas of the answers, to which the tests hold every answer.
"""
