# SPDX-License-Identifier: Apache-2.0
"""The verdict, and the sentences that sum an explanation up. Source: spec/beyond.md 3.4 and 3.6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import DRAINS_TEXT, bits
from berth.candidates.explain.explanation import HostCounts, Impossible, Relaxation, Verdict
from berth.candidates.references import UnknownName
from berth.index.aggregate_sets import Mask

#: How many relaxations a summary names.
_NAMED_MAX: Final = 2


def verdict_of(
    asking: Asking, counts: HostCounts, if_empty: Mask, unknown: Sequence[UnknownName]
) -> Verdict:
    """The first verdict that applies.

    Args:
        if_empty: the hosts that would fit with nothing used.
    """
    if unknown:
        return Verdict.UNKNOWN_NAME
    if counts.fit.hosts:
        return Verdict.FITS
    if counts.fit.at_least:
        return Verdict.GAVE_UP
    if counts.fit_if_undrained.hosts:
        return Verdict.DRAINED
    if counts.fit_if_undrained.at_least:
        return Verdict.GAVE_UP
    if not counts.fit_if_empty.hosts:
        # Nothing is said of what could fit, before all hosts were looked at.
        return Verdict.GAVE_UP if counts.fit_if_empty.at_least else Verdict.NEVER
    is_enough_free = _is_enough_free(asking, if_empty)
    if asking.budget.is_spent():
        return Verdict.GAVE_UP
    return Verdict.FRAGMENTED if is_enough_free else Verdict.USED_UP


def _is_enough_free(asking: Asking, hosts: Mask) -> bool:
    """Whether what is free on some hosts, and in the pools that serve them, adds up to what is
    asked of each class."""
    asked: dict[str, int] = {}
    for atom in asking.atoms:
        if atom.asked is not None:
            name, amount = atom.asked
            asked[name] = asked.get(name, 0) + amount
    sharing = asking.sharing_with(bits(range(len(asking.atoms))), hosts)
    ids = asking.present.names.class_ids
    return all(
        not asking.budget.is_spent()
        and asking.fleet.free(hosts, ids[name], sharing.get(ids[name], ())) >= amount
        for name, amount in asked.items()
    )


def summary_of(
    verdict: Verdict,
    counts: HostCounts,
    unknown: Sequence[UnknownName],
    impossible: Sequence[Impossible],
    relaxations: Sequence[Relaxation],
) -> str:
    """One or two sentences, what is impossible, and what would help most."""
    others = [each for each in relaxations if each.texts != (DRAINS_TEXT,)]
    # The sentence of this verdict says what fits without drains.
    helpful = others if verdict is Verdict.DRAINED else relaxations
    why = [each.text for each in impossible[:1]]
    sentences = [_said(verdict, counts, unknown), *why, _helpful(helpful)]
    return " ".join(filter(None, sentences))


def _said(verdict: Verdict, counts: HostCounts, unknown: Sequence[UnknownName]) -> str:
    if verdict is Verdict.UNKNOWN_NAME:
        return " ".join(map(_unknown_text, unknown))
    if verdict is Verdict.FITS:
        return f"{_hosts(counts.fit.hosts)}."
    return {
        Verdict.GAVE_UP: "The search ran out of time; whether a host fits is not known.",
        Verdict.DRAINED: f"No host fits now; {counts.fit_if_undrained.hosts:,} would without"
        " drains.",
        Verdict.NEVER: "No host could hold this, even with nothing used.",
        Verdict.FRAGMENTED: f"No host fits now; {_would(counts)}. Enough is free in total, but not"
        " on one host.",
        Verdict.USED_UP: f"No host fits now; {_would(counts)}.",
    }[verdict]


def _would(counts: HostCounts) -> str:
    return f"{counts.fit_if_empty.hosts:,} would with nothing used"


def _hosts(number: int) -> str:
    return "1 host fits" if number == 1 else f"{number:,} hosts fit"


def _unknown_text(unknown: UnknownName) -> str:
    kind = "resource class" if unknown.kind == "resource_class" else "trait"
    meant = " or ".join(unknown.did_you_mean)
    return f"There is no {kind} {unknown.name}{f'; did you mean {meant}?' if meant else '.'}"


def _helpful(relaxations: Sequence[Relaxation]) -> str:
    sentences = []
    for relaxation in relaxations[:_NAMED_MAX]:
        sentences.append(f"{_change(relaxation.texts)}, {_hosts(relaxation.hosts)}.")
        if relaxation.reduce_to and relaxation.hosts_reduced:
            amount, number = relaxation.reduce_to, relaxation.hosts_reduced
            less = _reduced(relaxation.texts[0], amount)
            sentences[-1] = f"With {less}, {_hosts(number)}."
    return " ".join(sentences)


def _change(texts: Sequence[str]) -> str:
    """Without some conditions; for `on cn7` alone: `On any other host`."""
    if len(texts) == 1 and texts[0].startswith("on "):
        return "On any other host"
    return f"Without {' and '.join(map(_condition, texts))}"


def _condition(text: str) -> str:
    """`VCPU 16`, `trait HW_CPU_X86_AVX2` and `drains`, but `"in zone=z1"`, in a sentence."""
    if text == DRAINS_TEXT:
        return "drains"
    is_noun = text[0].isupper() or text.startswith("trait ")
    return text if is_noun else f'"{text}"'


def _reduced(text: str, amount: int) -> str:
    """`VCPU 16 for _A` with another amount, and with what it is instead."""
    name, asked, *whose = text.split(" ", 2)
    return " ".join([name, f"{amount:,} instead of {int(asked):,}", *whose])
