# SPDX-License-Identifier: Apache-2.0
"""Real database servers for the tests, started from their binaries, and ways to do them harm.

Each server has a temporary directory and ports of its own on loopback, and ends with the tests,
however those end. Nothing here knows berth: a server gives out URLs, and that is all.
"""
