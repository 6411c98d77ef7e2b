# SPDX-License-Identifier: Apache-2.0
"""What every test can ask for: a fresh database, and berth standing on it."""

from __future__ import annotations

pytest_plugins = ["tests.engines", "tests.server_option", "tests.coverage_page"]
