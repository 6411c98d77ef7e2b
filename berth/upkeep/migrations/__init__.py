# SPDX-License-Identifier: Apache-2.0
"""The steps that bring a database to this release, for Alembic.

Two histories, each a straight line: `placement/` is that of the original service, by its revision
names and in its `alembic_version`, so that its databases can be adopted and handed back; `berth/`
is our own tables', in `berth_alembic_version`. A step is frozen once released: it spells out its
tables and does not import `store/engine/tables.py`.
"""
