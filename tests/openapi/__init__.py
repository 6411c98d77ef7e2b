# SPDX-License-Identifier: Apache-2.0
"""Of the description of the API: that it is valid, and that the service keeps to it."""
