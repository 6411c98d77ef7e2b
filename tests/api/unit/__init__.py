# SPDX-License-Identifier: Apache-2.0
"""Parts of the API, tested directly where requests over HTTP cannot reach."""
