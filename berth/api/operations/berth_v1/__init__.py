# SPDX-License-Identifier: Apache-2.0
"""The operations of berth's own API, below `/berth/v1`: a module for each kind.

Source: spec/beyond.md.
"""
