# SPDX-License-Identifier: Apache-2.0
"""Tests of what is handed out: the wheel and the source distribution."""
