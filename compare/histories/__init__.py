# SPDX-License-Identifier: Apache-2.0
"""Random histories of requests, which `compare` sends to berth and to Placement.

A history is a small world and a few hundred requests to it, drawn from a seed: providers in trees,
classes, traits, aggregates, consumers, and every route at every microversion. `Picture` keeps what
the answers have told, so that most requests make sense and many succeed; the rest are spoilt on
purpose. A history that shows a difference is shrunk to the shortest that still does.
"""
