# SPDX-License-Identifier: Apache-2.0
"""Ways of authentication that need nothing but a file."""
