# SPDX-License-Identifier: Apache-2.0
"""Every database call of every request fails once, in every way that a driver can fail."""
