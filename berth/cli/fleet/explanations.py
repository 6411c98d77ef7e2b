# SPDX-License-Identifier: Apache-2.0
"""Explanations for people: how each constraint narrows the fleet, and what would help.

Source: spec/beyond.md 3.6 and 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.columns import amount, counted, print_columns, print_line
from berth.cli.fleet.warned import print_warnings

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json

_HEADS: Final = ("CONSTRAINT", "ALONE", "LEFT", "")


def fits(answer: Any) -> bool:
    """Whether a request fits by itself, in any of its alternatives."""
    return any(each["verdict"] == "fits" for each in answer.get("alternatives", (answer,)))


def print_explanations(answer: Any, warnings: Iterable[Mapping[str, str]] = ()) -> None:
    """Print an explanation, or one for each alternative of a request, and its warnings.

    Args:
        warnings: further ones.
    """
    several = answer.get("alternatives", (answer,))
    _print_each(answer)
    own = (warning for explanation in several for warning in explanation["warnings"])
    print_warnings([*own, *warnings])


def _print_each(answer: Any) -> None:
    if isinstance(answer.get("alternatives"), list):
        for number, explanation in enumerate(answer["alternatives"]):
            click.echo(f"{'' if number == 0 else chr(10)}Alternative {number}:")
            print_explanation(explanation)
    else:
        print_explanation(answer)


def print_explanation(explanation: Json) -> None:
    """Print the summary, the constraints, the changes that help, and the nearest hosts."""
    click.echo(explanation["summary"])
    texts = {stage["at"]: stage["text"] for stage in explanation["stages"]}
    if texts:
        click.echo()
        rows = [_stage(stage) for stage in explanation["stages"]]
        print_columns(_HEADS, rows, right=("ALONE", "LEFT"), indent=2)
    relaxations = [_relaxation(item, texts) for item in explanation.get("relaxations", ())]
    if relaxations:
        click.echo("\nIt would fit")
        width = max(len(change) for change, _ in relaxations)
        for change, hosts in relaxations:
            print_line(f"  {change.ljust(width)}  {hosts}")
    for line in (*_unknown(explanation), *_nearest(explanation, texts)):
        print_line(line)
    if not explanation["complete"]:
        click.echo("The time ended: some figures are lower bounds.")


def _stage(stage: Json) -> list[str]:
    alone = stage.get("alone")
    notes = []
    if "has" in stage:
        resource_class = stage["text"].partition(" ")[0]
        notes = [f"{amount(stage['has'])} have {resource_class}"]
        if stage.get("if_empty") is not None:
            notes.append(f"{amount(stage['if_empty'])} could hold it")
    left = f"{'≥' if stage.get('at_least') else ''}{amount(stage['left'])}"
    return [stage["text"], "-" if alone is None else amount(alone), left, ", ".join(notes)]


# --- What would help ------------------------------------------------------------------------------


def _relaxation(item: Json, texts: Mapping[str, str]) -> tuple[str, str]:
    """The change, and how many hosts fit with it."""
    if "reduce_to" in item:
        pointer = item["drop"][0]
        group = "".join(texts.get(pointer, "").partition(" for ")[1:])
        change = f"with {_class_of(pointer)} {amount(item['reduce_to'])}{group}"
        return change, counted(item["hosts_reduced"], "host")
    changes = " and ".join(_without(texts.get(at, at)) for at in item["drop"])
    return changes, counted(item["hosts"], "host")


def _without(text: str) -> str:
    if text.startswith("in "):
        return f"outside of {text.removeprefix('in ')}"
    if text.startswith("not "):
        return f"with hosts that are {text.removeprefix('not ')}"
    return f"without {text}"


def _unknown(explanation: Json) -> Iterator[str]:
    """The unknown names that the summary leaves out."""
    for item in explanation.get("unknown", ()):
        if item["name"] in explanation["summary"]:
            continue
        hint = (
            f"; did you mean {' or '.join(item['did_you_mean'])}?" if item["did_you_mean"] else ""
        )
        yield f"There is no {item['kind'].replace('_', ' ')} {item['name']}{hint}"


def _nearest(explanation: Json, texts: Mapping[str, str]) -> Iterator[str]:
    hosts = explanation.get("nearest", ())
    for number, host in enumerate(hosts):
        lacks = " and ".join(_lack(item, texts) for item in host["lacks"])
        head = "Nearest:" if number == 0 else "        "
        yield f"{head} {host['host']['name']} {lacks}"


def _lack(item: Json, texts: Mapping[str, str]) -> str:
    if "asked" not in item:
        return _unmet(texts.get(item["at"], item["at"]))
    resource_class = _class_of(item["at"])
    missing = amount(item["asked"] - item["possible"])
    if "capacity" not in item:
        return f"lacks {missing} {resource_class}"
    reason = item["reason"].replace("_", " ")
    if item["reason"] == "used":
        reason = f"{amount(item['free'])} free of {amount(item['capacity'])}"
    elif item["reason"] in item:
        reason = f"{reason} {amount(item[item['reason']])}"
    return f"lacks {missing} {resource_class} ({reason})"


def _unmet(text: str) -> str:
    """`lacks trait X`, `has trait X`, `is not in zone=z1` or `is in zone=z1`: the opposite of
    a condition."""
    is_negated = text.startswith("not ")
    condition = text.removeprefix("not ")
    if condition.startswith("trait "):
        return f"{'has' if is_negated else 'lacks'} {condition}"
    if condition.startswith(("together ", "apart ")):
        return f"does not have groups {condition}"
    return f"is {condition}" if is_negated else f"is not {condition}"


def _class_of(pointer: str) -> str:
    return pointer.rpartition("/")[2]
