# SPDX-License-Identifier: Apache-2.0
"""Proofs: berth keeps its guarantees while clients, workers, services and databases fail."""
