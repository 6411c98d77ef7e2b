# SPDX-License-Identifier: Apache-2.0
"""Explanations as JSON. Source: spec/beyond.md 3.6."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.reading import Asked
from berth.api.berth_v1.writing import request_json
from berth.candidates.explain import Explanation, Wanted, explain
from berth.candidates.explain.explanation import (
    Count,
    HostCounts,
    Lack,
    NearHost,
    Relaxation,
    Stage,
)
from berth.candidates.references import UnknownName
from berth.index.named import NamedProvider
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

JSON = dict[str, Any]


#: Members that say who holds what a host lacks.
Holding = Callable[[NearHost], JSON]


def explained(
    fleet: Snapshot,
    asked: Iterable[Asked],
    *,
    wanted: Wanted,
    budget: Budget,
    warnings: Warnings | None = None,
    holding: Holding = lambda _: {},
) -> JSON:
    """The explanation of a request; of several alternatives, which share the time, a list.

    Args:
        warnings: of the scenario.
        holding: of hosts that the request names.
    """
    before = warnings.sent if warnings else []
    shown = [
        _shown(explain(fleet, each.question, wanted=wanted, budget=budget), each, before, holding)
        for each in asked
    ]
    if len(shown) == 1:
        return shown[0]
    return {"complete": all(each["complete"] for each in shown), "alternatives": shown}


def _shown(
    explanation: Explanation, asked: Asked, warnings: list[dict[str, str]], holding: Holding
) -> JSON:
    relaxations, nearest = explanation.relaxations, explanation.nearest
    split, paint = explanation.split_would_fit, explanation.paint
    impossible = [_without_none(each._asdict()) for each in explanation.impossible]
    return {
        "complete": explanation.is_complete,
        "verdict": explanation.verdict.value,
        "summary": explanation.summary,
        "hosts": _hosts(explanation.hosts),
        "stages": [_stage(stage) for stage in explanation.stages],
        "binding": explanation.binding,
        **({} if relaxations is None else {"relaxations": list(map(_relaxation, relaxations))}),
        **({} if split is None else {"split_would_fit": split.hosts}),
        **({} if nearest is None else {"nearest": [_near_host(e, holding) for e in nearest]}),
        **({"impossible": impossible} if impossible else {}),
        **({} if paint is None else {"paint": b64encode(paint).decode()}),
        "unknown": [_unknown(unknown, explanation) for unknown in explanation.unknown_names],
        "warnings": [*warnings, *_warnings(explanation, asked)],
        "request": request_json(asked.question),
    }


def _warnings(explanation: Explanation, asked: Asked) -> list[dict[str, str]]:
    warnings = Warnings()
    for part in asked.parts:
        if part.has_limit:
            warnings.add("limit_ignored", part.pointer(""))
    for unknown in explanation.unknown_references:
        warnings.add_unknown(unknown.at, unknown)
    for relation in explanation.ineffective:
        warnings.add("relation_without_effect", relation.at)
    return warnings.sent


def _hosts(counts: HostCounts) -> JSON:
    cut = any(count.at_least for count in counts if isinstance(count, Count))
    return {
        "total": counts.total,
        "pools": counts.pools,
        "fit": counts.fit.hosts,
        "fit_if_undrained": counts.fit_if_undrained.hosts,
        "fit_if_empty": counts.fit_if_empty.hosts,
        **_at_least(cut),
    }


def _stage(stage: Stage) -> JSON:
    of_class: JSON = {}
    if stage.has is not None:
        of_class = {"has": stage.has, "if_empty": stage.if_empty}
    return {
        "at": stage.at,
        "text": stage.text,
        **of_class,
        "alone": stage.alone,
        "left": stage.left,
        **_at_least(stage.at_least),
    }


def _relaxation(relaxation: Relaxation) -> JSON:
    reduced: JSON = {}
    if relaxation.reduce_to is not None:
        reduced = {
            "reduce_to": relaxation.reduce_to,
            "hosts_reduced": relaxation.hosts_reduced,
        }
    return {
        "drop": relaxation.drop,
        "hosts": relaxation.hosts,
        **reduced,
        **_at_least(relaxation.at_least),
    }


def _near_host(near: NearHost, holding: Holding) -> JSON:
    named = {"named": True, **holding(near)} if near.is_named else {}
    return {"host": _provider(near.host), **named, "lacks": list(map(_lack, near.lacks))}


def _unknown(unknown: UnknownName, explanation: Explanation) -> JSON:
    hosts = {name: n for (at, name), n in explanation.instead.items() if at == unknown.at}
    return {**unknown._asdict(), "hosts": hosts}


def _without_none(members: JSON) -> JSON:
    return {name: value for name, value in members.items() if value is not None}


def _lack(lack: Lack) -> JSON:
    shown: JSON = {"at": lack.at, "text": lack.text}
    shortage = lack.shortage
    if shortage is not None:
        shown |= {
            "asked": shortage.asked,
            "possible": shortage.possible,
            "reason": shortage.reason,
        }
        if shortage.reason == "conditions":
            shown["unmet"] = shortage.unmet
        if shortage.best is not None:
            shown |= {**shortage.best._asdict(), "provider": _provider(shortage.best.provider)}
    return shown


def _provider(provider: NamedProvider) -> JSON:
    return provider._asdict()


def _at_least(is_cut: bool) -> JSON:
    return {"at_least": True} if is_cut else {}
