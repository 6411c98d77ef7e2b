# SPDX-License-Identifier: Apache-2.0
"""The way to a database: connections, transactions, commits with their journal, and the engines.

Nothing outside sees a driver.
"""
