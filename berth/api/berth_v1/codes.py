# SPDX-License-Identifier: Apache-2.0
"""The error codes of `/berth/v1`, and the extra members of its error objects.

Source: spec/beyond.md 1.4 and 11.
"""

from __future__ import annotations

from typing import Final

from berth.api import errors
from berth.api.errors import ErrorCodes
from berth.api.shapes import COUNT, TEXT, described, list_of

UNDEFINED: Final = "berth.undefined_code"
INVALID: Final = "berth.request.invalid"
TOO_LARGE: Final = errors.REQUEST_TOO_LARGE
NAME_UNKNOWN: Final = "berth.name.unknown"
NOT_FOUND: Final = "berth.not_found"
SEARCH_GAVE_UP: Final = "berth.search.gave_up"
DOES_NOT_FIT: Final = "berth.place.does_not_fit"
UNDECIDED: Final = "berth.place.undecided"
LOST_RACES: Final = "berth.place.lost_races"
CONSUMER_HOLDS: Final = "berth.consumer.holds"
PRECONDITION_FAILED: Final = errors.PRECONDITION_FAILED

CODES: Final = ErrorCodes(
    since=0,
    all=frozenset(
        {
            *(UNDEFINED, INVALID, TOO_LARGE, NAME_UNKNOWN, NOT_FOUND, SEARCH_GAVE_UP),
            *(
                errors.LABEL_TAKEN,
                errors.CONSUMER_NAME_TAKEN,
                errors.REVISION_FOREIGN,
                errors.REVISION_GONE,
            ),
            *(errors.CONCURRENT_UPDATE, errors.INVENTORY_IN_USE, errors.PROVIDER_IN_USE),
            *(DOES_NOT_FIT, UNDECIDED, LOST_RACES, CONSUMER_HOLDS),
            *(errors.DUPLICATE_NAME, PRECONDITION_FAILED),
            errors.OVERLOADED,
        }
    ),
    undefined=UNDEFINED,
    of_status={400: INVALID, 404: NOT_FOUND},
    renamed={errors.SEARCH_GAVE_UP: SEARCH_GAVE_UP},
    members={
        "pointer": described(
            TEXT, "The JSON pointer (RFC 6901) to the member of the body at fault."
        ),
        "parameter": described(TEXT, "The query parameter at fault."),
        "did_you_mean": described(list_of(TEXT), "Similar names that exist."),
        "at_most": described(COUNT, "How many of the consumers could be placed at most."),
        "consumers": described(list_of(TEXT), "The consumers that hold something already."),
    },
    beside={
        "explanation": {
            "type": "object",
            "description": "Why there is no place, as `POST /explain` answers it.",
        },
        "warnings": described(
            list_of({"type": "object"}), "What a request that has no place names without effect."
        ),
    },
)
