# SPDX-License-Identifier: Apache-2.0
"""What operators run on a database, and a service when it starts: no request passes through it."""
