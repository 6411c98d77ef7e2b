# SPDX-License-Identifier: Apache-2.0
"""Shared by the drivers of machines: turns what a host has into its tree of providers.

A driver reads its host into the values of `cpus.py`, `facts.py` and `devices.py`, which make
`facts.Facts` of them. `layout.py` decides which providers a host should have, `budget.py` sees that
each physical thing is offered once, and `shaping.py` edits a tree, moving allocations along
(`moving.py`). The operator's options are in `options.py`, and how names are written in `names.py`.
"""
