# SPDX-License-Identifier: Apache-2.0
"""The messages for a wrong URL, a wrong token, or a proxy in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from berth.hosts.agent_config import ServiceAccess
from berth.hosts.errors import BadConfiguration, ComputeError, NotThere, Refused, Unreachable
from berth.hosts.fields import FilePath
from berth.hosts.service import Answer, Service
from berth.hosts.transports import of_service, with_token
from tests.servers.ports import free_port

PAGE = "<!DOCTYPE html><html><head><title>Log in</title></head><body>Please</body></html>"


@dataclass(frozen=True, slots=True)
class Said:
    """A response to any request."""

    status_code: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Says:
    """A transport with one response."""

    answer: Said

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Return the response."""
        return self.answer


def refused(answer: Said, path: str = "/resource_providers") -> ComputeError:
    """The exception for this response."""
    with pytest.raises(ComputeError) as raised:
        Service(Says(answer)).get(path, in_tree="x")
    return raised.value


@pytest.mark.parametrize("answer", [Said(404, PAGE), Said(404, "")])
def test_a_url_of_something_else_is_told(answer: Said) -> None:
    """It is not mistaken for a deleted provider; the text of an HTML page is shown without tags."""
    error = refused(answer)
    assert type(error) is Refused
    assert str(error).endswith("there is no placement service here: check the URL of the service")
    assert "<" not in str(error)


def test_a_provider_that_is_not_there_is_no_wrong_url() -> None:
    """It is read again."""
    assert type(refused(Said(404, "{}"), "/resource_providers/x/traits")) is NotThere


def test_a_token_that_is_not_known_is_told() -> None:
    """In the words of the service, and with what to do."""
    error = refused(Said(401, json.dumps({"message": "No valid identity.", "code": "401"})))
    assert str(error) == (
        "GET /resource_providers?in_tree=x was answered 401: No valid identity; authentication "
        "failed: check the token or the password"
    )


@pytest.mark.parametrize(("user", "told"), [("", ""), ("agent:hunter2@", "agent:***@")])
def test_who_does_not_answer_is_told_in_a_few_words(user: str, told: str) -> None:
    """The address without its password, and the reason."""
    at = f"127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable) as raised:
        Service(with_token(f"http://{user}{at}", "token")).get("/traits")
    assert str(raised.value) == (
        f"GET /traits got no answer from http://{told}{at}: Connection refused"
    )


def test_an_empty_token_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    """For example because the command that writes it has failed."""
    (tmp_path / "token").write_text("\n")
    with pytest.raises(BadConfiguration, match="is empty; `berth token create`"):
        of_service(ServiceAccess(url="http://x", token_file=FilePath(tmp_path / "token")))


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"\xff", "it is not UTF-8 text")]
)
def test_a_token_file_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    """In words, without an error number or a codec."""
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(BadConfiguration) as refused:
        of_service(ServiceAccess(url="http://x", token_file=FilePath(token)))
    assert str(refused.value) == f"service.token_file: cannot read {token}: {reason}"
