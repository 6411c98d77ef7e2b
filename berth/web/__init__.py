# SPDX-License-Identifier: Apache-2.0
"""The operator's page: static files, which the service sends as they are. Source: spec/page.md."""
