# SPDX-License-Identifier: Apache-2.0
"""`berth.client`, over HTTP and on a database."""
