# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document is valid, and the service follows it."""
