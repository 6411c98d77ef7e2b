# SPDX-License-Identifier: Apache-2.0
"""Operations on a database that operators run, or a service at its start; no request uses them."""
