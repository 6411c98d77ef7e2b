# SPDX-License-Identifier: Apache-2.0
"""The edge: the layers that every request passes before the API, and the worker processes.

`app` stacks the layers: request log, metrics, probes, receiving, admission, authentication, crash
guard. The edge imports the API, whose errors it renders; the API does not import the edge, and
reads the layers' results from the WSGI environment (`berth.api.environ`).
"""
