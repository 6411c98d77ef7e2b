# SPDX-License-Identifier: Apache-2.0
"""Copies of whole databases, between all engines."""
