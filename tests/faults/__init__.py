# SPDX-License-Identifier: Apache-2.0
"""Real databases fail while clients write: what was acknowledged is counted, and what is there."""
