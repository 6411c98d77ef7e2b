# SPDX-License-Identifier: Apache-2.0
"""What is said where the URL, the token or what stands between is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from berth.hosts.agent_config import ServiceAccess
from berth.hosts.errors import BadConfiguration, ComputeError, NotThere, Refused, Unreachable
from berth.hosts.service import Answer, Service
from berth.hosts.transports import of_service, with_token
from tests.servers.ports import free_port

PAGE = "<!DOCTYPE html><html><head><title>Log in</title></head><body>Please</body></html>"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer to whatever is asked."""

    status_code: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Says:
    """A transport that gives one answer."""

    answer: Said

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """The answer."""
        return self.answer


def refused(answer: Said, path: str = "/resource_providers") -> ComputeError:
    """What is raised where this is answered."""
    with pytest.raises(ComputeError) as raised:
        Service(Says(answer)).get(path, in_tree="x")
    return raised.value


@pytest.mark.parametrize("answer", [Said(404, PAGE), Said(404, "")])
def test_a_url_of_something_else_is_told(answer: Said) -> None:
    """And is not tried again as if a provider had gone; a page is told without its tags."""
    error = refused(answer)
    assert type(error) is Refused
    assert str(error).endswith(
        "no placement service is here: see whether the service's URL is right"
    )
    assert "<" not in str(error)


def test_a_provider_that_is_not_there_is_no_wrong_url() -> None:
    """It is read again."""
    assert type(refused(Said(404, "{}"), "/resource_providers/x/traits")) is NotThere


def test_a_token_that_is_not_known_is_told() -> None:
    """In the words of whoever asks for one, and with what to do."""
    error = refused(Said(401, json.dumps({"message": "No valid identity.", "code": "401"})))
    assert str(error) == (
        "GET /resource_providers?in_tree=x was answered 401: No valid identity.; the service does "
        "not know this caller: see whether the token or the password is right"
    )


def test_who_does_not_answer_is_told_in_a_few_words() -> None:
    """Where, and why."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable) as raised:
        Service(with_token(url, "token")).get("/traits")
    assert str(raised.value) == f"GET /traits got no answer from {url}: Connection refused"


def test_an_empty_token_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    """As it is where the command that was to make it has failed."""
    (tmp_path / "token").write_text("\n")
    with pytest.raises(BadConfiguration, match="is empty; `berth token create`"):
        of_service(ServiceAccess("http://x", tmp_path / "token", None, {}, None, "internal", None))
