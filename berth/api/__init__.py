# SPDX-License-Identifier: Apache-2.0
"""The REST API: HTTP outside, one call to the store or the candidates package inside.

Requests first pass the layers of `berth.edge`. `router` matches them against the table of `routes`
and checks them in a fixed order; a handler decodes the request into values of `model`, makes one
call downwards, and renders the response. Only this package knows microversions, nothing below it.
"""
