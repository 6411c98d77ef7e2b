# SPDX-License-Identifier: Apache-2.0
"""Revisions; see the package above."""
