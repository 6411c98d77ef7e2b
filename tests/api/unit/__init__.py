# SPDX-License-Identifier: Apache-2.0
"""Parts of the API by themselves, where a request over the wire cannot reach."""
