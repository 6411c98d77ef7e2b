# SPDX-License-Identifier: Apache-2.0
"""The rules of placement without I/O: identities, names, capacity, units, trees, errors.

Nothing here uses SQL, HTTP, the clock or random numbers, or imports another part of berth.
"""
