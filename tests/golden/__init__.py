# SPDX-License-Identifier: Apache-2.0
"""What berth shows to others, kept as files, so that a change of it is seen in the diff."""
