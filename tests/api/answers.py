# SPDX-License-Identifier: Apache-2.0
"""The form that every error response must have.

Source: rest-api.md 1.11 and 1.12.
"""

from tests.api.versions import at_least
from tests.api.worlds import TITLES
from tests.client import Response

UNDEFINED = "placement.undefined_code"
DUPLICATE_NAME = "placement.duplicate_name"


def assert_refused(
    answer: Response,
    status: int,
    *fragments: str,
    code: str = UNDEFINED,
    version: str = "1.39",
) -> None:
    """The answer is an error of this status, in the error format, and says each fragment.

    Args:
        version: the microversion asked for; below 1.23 an error carries no code.
    """
    assert answer.status == status, (answer.status, answer.json)
    (error,) = answer.json["errors"]
    assert error["status"] == status
    assert error["title"] == TITLES[status]
    assert error["request_id"] == answer.headers["x-openstack-request-id"]
    if at_least(version, "1.23"):
        assert error["code"] == code
    else:
        assert "code" not in error
    for fragment in fragments:
        assert fragment in error["detail"], error["detail"]


def detail(answer: Response) -> str:
    """The specific message of a refusal: the last line of its detail."""
    text: str = answer.json["errors"][0]["detail"]
    return text.rsplit("\n", 1)[-1].strip()
