# SPDX-License-Identifier: Apache-2.0
"""The authentication strategies that need only a file."""
