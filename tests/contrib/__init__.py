# SPDX-License-Identifier: Apache-2.0
"""Tests of what `contrib/` gives operators to start from."""
