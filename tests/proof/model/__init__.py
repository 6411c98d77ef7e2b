# SPDX-License-Identifier: Apache-2.0
"""The whole API compared with a plain model, by random histories that shrink to a script."""
