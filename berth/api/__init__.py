# SPDX-License-Identifier: Apache-2.0
"""The REST API: HTTP on the outside, one call into the store or the candidates package inside.

A request passes the layers of `app`, is matched by `router` against the table of `routes`, judged
in the order that `dispatch` keeps, decoded into values of `model`, answered by one call downwards,
and rendered. What differs between microversions is decided here and nowhere below.
"""
