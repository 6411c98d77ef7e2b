# SPDX-License-Identifier: Apache-2.0
"""Tests beside a release of nova, which says what its flavors and files mean."""
