# SPDX-License-Identifier: Apache-2.0
"""Real databases fail while clients write; the tests compare acknowledged writes with the rows."""
