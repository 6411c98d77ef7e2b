# SPDX-License-Identifier: Apache-2.0
"""The API's own description: an OpenAPI 3.1 document for each microversion.

It is generated from what serves requests: the routes, the schemas that validate bodies and
queries, and the response schemas, against which the tests check every response.
"""
