# SPDX-License-Identifier: Apache-2.0
"""The commands that read and change a fleet through the API: over HTTP, or on the database."""
