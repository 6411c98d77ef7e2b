# SPDX-License-Identifier: Apache-2.0
"""Proof under fire: berth held to its promises while the world around it misbehaves."""
