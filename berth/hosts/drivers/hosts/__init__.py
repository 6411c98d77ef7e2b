# SPDX-License-Identifier: Apache-2.0
"""What drivers of hosts share: from what a host has to its tree of providers.

A driver reads its host into `facts.Facts`; `wanted.py` says which providers that makes, and
`shaping.py` makes a tree of providers into those, moving along what consumers hold (`moving.py`).
What an operator may say of a host is in `options.py`, and `configuration.py` reads it.
"""
