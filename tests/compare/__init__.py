# SPDX-License-Identifier: Apache-2.0
"""Tests of what compares berth with OpenStack Placement."""
