# SPDX-License-Identifier: Apache-2.0
"""Shared by the drivers of machines: turns what a host has into its tree of providers.

A driver reads its host into `facts.Facts`. `wanted.py` decides which providers that makes, and
`shaping.py` edits a tree to have them, moving allocations along (`moving.py`). The operator's
options are in `options.py`.
"""
