# SPDX-License-Identifier: Apache-2.0
"""Databases of the original are taken over and handed back, with the original beside berth."""
