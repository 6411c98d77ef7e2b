# SPDX-License-Identifier: Apache-2.0
"""berth's own API, below `/berth/v1`: a module for each route. Source: spec/beyond.md."""
