# SPDX-License-Identifier: Apache-2.0
"""Path parameters that resources share."""

from __future__ import annotations

from berth.api.operation import Segment
from berth.api.operations.examples import PROVIDER
from berth.api.operations.fragments import UUID

PROVIDER_SEGMENT = {"uuid": Segment("The UUID of the provider.", UUID, PROVIDER)}
