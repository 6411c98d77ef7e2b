# SPDX-License-Identifier: Apache-2.0
"""A refusal keeps its facts when a command says it in other words."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from berth.cli.failure import ExitCode
from berth.cli.fleet.client import of_transport
from berth.model.refusals import Conflict
from tests.cli.in_process import InProcess

UUID: Final = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"
EXPLANATION: Final = {"revision": "1-1", "verdict": "no_host"}
PROVIDERS: Final = {"resource_providers": [{"name": "cn018"}]}
WARNING: Final = {"code": "unknown_label", "at": "/within", "reference": "zone=z9"}


class Refusing:
    """A transport to a service that refuses every write, and has one provider."""

    def __init__(self, status: int, sentence: str, **error: object) -> None:
        self._refusal = {
            "errors": [error | {"status": status, "detail": sentence}],
            "explanation": EXPLANATION,
            "warnings": [WARNING],
        }
        self._status = status
        self.status_code = status
        self.text = ""
        self.headers: dict[str, str] = {}

    def request(self, url: str, method: str, **options: Any) -> Refusing:
        """The refusal, or the list of providers."""
        self.status_code = 200 if method == "GET" else self._status
        self.text = json.dumps(PROVIDERS if method == "GET" else self._refusal)
        return self

    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.text)


def facts_of(refused: Conflict) -> tuple[object, ...]:
    """What a refusal says beside its sentence."""
    return (
        *(refused.code, refused.pointer, refused.did_you_mean),
        *(refused.explanation, list(refused.warnings)),
    )


FACTS: Final = ("berth.place.does_not_fit", "/in", ("cn8",), EXPLANATION, [WARNING])


def test_a_refusal_with_similar_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The command looks for providers with similar names, and adds them to the sentence."""
    service = Refusing(
        *(409, "There is no provider cn017"),
        code="berth.place.does_not_fit",
        pointer="/in",
        did_you_mean=["cn8"],
    )
    with pytest.raises(Conflict) as caught:
        of_transport(service).send("POST", "/berth/v1/place", {})
    assert str(caught.value) == "There is no provider cn017; did you mean cn018?"
    assert (caught.value.status, facts_of(caught.value)) == (409, FACTS)
    assert "No aggregate has the label zone=z9" in capsys.readouterr().err


TAKEN: Final = f"consumer {UUID} has allocations already: --replace replaces them"


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("", "placement.concurrent_update", TAKEN),
        ("", None, "It is full"),
        ("--generation 3", "placement.concurrent_update", "It is full"),
        ("--generation 3", None, "It is full"),
        (
            "--for web/job",
            "berth.consumer.name_taken",
            TAKEN.replace(f"consumer {UUID}", "web/job"),
        ),
        ("--for web/job", None, "It is full"),
    ],
)
def test_a_claim_says_that_a_consumer_is_there_only_if_the_service_does(
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    code: str | None,
    sentence: str,
) -> None:
    """Older microversions, and proxies, refuse without a code; that may have any reason."""
    service = Refusing(409, "It is full", **({} if code is None else {"code": code}))
    monkeypatch.setattr("berth.hosts.transports.with_token", lambda *_, **__: service)
    owner = "" if "--for" in options else f"{UUID} --project web --user al"
    words = f"claim --url http://it --token t {owner} {UUID}:VCPU=1 {options}"
    done = in_process(*words.split())
    assert done.returncode == ExitCode.SERVICE, done.stderr
    assert f"berth: {sentence}\n" in done.stderr
