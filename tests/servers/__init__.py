# SPDX-License-Identifier: Apache-2.0
"""Real database servers for the tests, started from their binaries, and ways to damage them.

Each server has a temporary directory and ports of its own on loopback, and ends with the tests,
however those end. These modules do not know berth: servers provide URLs.
"""
