# SPDX-License-Identifier: Apache-2.0
"""The worker processes that serve requests, and their clients' connections."""
