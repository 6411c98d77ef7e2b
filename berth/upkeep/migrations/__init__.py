# SPDX-License-Identifier: Apache-2.0
"""The steps that bring a database to this release, for Alembic.

Two linear histories: `placement/` is that of OpenStack Placement, with its revision ids and its
`alembic_version`, so that its databases can be adopted and handed back; `berth/` is that of our own
tables, in `berth_alembic_version`. A step is frozen once released: it spells out its tables and
does not import `store/engine/tables.py`.
"""
