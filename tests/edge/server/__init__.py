# SPDX-License-Identifier: Apache-2.0
"""The worker processes and their clients' connections."""
