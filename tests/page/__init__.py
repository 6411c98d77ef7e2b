# SPDX-License-Identifier: Apache-2.0
"""The layers one by one, and the server's workers."""
