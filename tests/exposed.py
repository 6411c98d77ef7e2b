# SPDX-License-Identifier: Apache-2.0
"""Metrics as they are told, to look things up in."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.client import Client


class Exposed:
    """What one scrape has told."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def names(self) -> set[str]:
        """The names by which a query finds the metrics: a histogram has one for its buckets."""
        return {
            f"{family.name}_total" if family.type == "counter" else family.name
            for family in self._families
        }

    def samples(self, name: str, **labels: str) -> list[Sample]:
        """The samples of a name with these labels, whatever others they have."""
        return [
            sample
            for family in self._families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def series(self, name: str) -> list[dict[str, str]]:
        """The labels of each series of a name."""
        return [sample.labels for sample in self.samples(name)]

    def value(self, name: str, **labels: str) -> float:
        """The sum of all samples with these labels; 0 where there are none."""
        return sum(sample.value for sample in self.samples(name, **labels))

    def by(self, label: str, name: str) -> dict[str, float]:
        """The samples of a name by the values of one label."""
        return {sample.labels[label]: sample.value for sample in self.samples(name)}


def scrape(client: Client) -> Exposed:
    """What a service tells."""
    answer = client.get("/metrics")
    assert answer.status == 200, answer.text
    return Exposed(answer.text)
