# SPDX-License-Identifier: Apache-2.0
"""The database: the only place with SQL.

A function that takes a `Database` runs a whole transaction; one that takes a `Tx` is part of its
caller's. Every write follows spec/commit-rules.md: its WHERE clause contains the test, and the row
count decides.
"""
