# SPDX-License-Identifier: Apache-2.0
"""berth's own API, below `/berth/v1`: its operations in `routes`, and for each noun a module with
its schemas, contracts and handlers. Source: spec/beyond.md."""
