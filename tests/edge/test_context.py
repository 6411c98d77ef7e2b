# SPDX-License-Identifier: Apache-2.0
"""The context of a request, against oslo.context's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_context import context as oslo
from oslo_context.context import RequestContext

from berth.api.environ import HOST
from berth.edge.auth.identity import IDENTITY_HEADERS, Context
from tests.effort import scaled

READ_BY_OSLO = {name for names in oslo._ENVIRON_HEADERS.values() for name in names}
OF_THE_REQUEST = {"openstack.request_id", "openstack.global_request_id"}
HEADERS = sorted(READ_BY_OSLO | IDENTITY_HEADERS - {"HTTP_X_IDENTITY_STATUS"} - OF_THE_REQUEST)
VALUES = st.sampled_from(["", "a", "A, b", "true", "False", "all"])


def attributes(context: RequestContext) -> dict[str, Any]:
    """Everything that a context says of a request."""
    names = vars(RequestContext(request_id="-", overwrite=False))
    said = {name: getattr(context, name) for name in names}
    return {
        **said,
        "policy": dict(context.to_policy_values()),
        "log": context.get_logging_values(),
    }


@settings(max_examples=scaled(100))
@given(environ=st.dictionaries(st.sampled_from(HEADERS), VALUES))
def test_a_context_says_what_oslo_context_would(environ: dict[str, str]) -> None:
    """Whatever headers there are."""
    context = Context.begin("req-1", "req-2")
    context.read_identity(environ)
    wanted = RequestContext.from_environ(
        environ, request_id="req-1", global_request_id="req-2", overwrite=False
    )
    assert attributes(context) == attributes(wanted)


@pytest.mark.parametrize(
    ("roles", "bound_to", "expected"),
    [
        ("agent", "gpu02", (["agent"], "gpu02")),
        ("agent", None, (["agent"], "alice")),
        ("Agent", None, (["Agent"], "alice")),
        ("reader,agent", None, (["reader"], None)),
        ("reader,agents", None, (["reader", "agents"], None)),
        ("", None, ([], None)),
    ],
)
def test_an_agent_is_bound_to_a_host(
    roles: str, bound_to: str | None, expected: tuple[list[str], str | None]
) -> None:
    """To that of its credentials, or to the one with its name; beside other roles, to none."""
    context = Context.begin("req-1", None)
    environ = {"HTTP_X_USER_ID": "17", "HTTP_X_USER_NAME": "alice", "HTTP_X_ROLES": roles}
    context.read_identity(environ | ({} if bound_to is None else {HOST: bound_to}))
    assert (context.roles, context.host) == expected
