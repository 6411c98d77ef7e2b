# SPDX-License-Identifier: Apache-2.0
"""The rules of placement with no I/O: identities, names, capacity, units, trees, errors.

Nothing here knows SQL, HTTP, the clock or dice; it imports nothing of berth outside itself.
"""
