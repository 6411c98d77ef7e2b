# SPDX-License-Identifier: Apache-2.0
"""Rows that the service would never write."""
