# SPDX-License-Identifier: Apache-2.0
"""The database: the only place with SQL.

A function that takes a `Database` is a whole transaction; one that takes a `Tx` is a part of
somebody's. The rules of every write are those of spec/commit-rules.md: the test stands in the WHERE
of the write and the row count decides.
"""
