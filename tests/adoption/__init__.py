# SPDX-License-Identifier: Apache-2.0
"""Databases of OpenStack Placement are adopted and handed back, with real releases of it."""
