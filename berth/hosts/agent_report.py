# SPDX-License-Identifier: Apache-2.0
"""An agent's metrics for Prometheus, and its health."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

import berth
from berth.hosts.agent import Agent, NodeState

#: A node is healthy if it was reported within the time of this many passes.
_PASSES_MISSED_MAX: Final = 3

#: The metrics of each node: name, kind, meaning and value.
_OF_NODES: Final[tuple[tuple[str, type, str, Callable[[NodeState], float | None]], ...]] = (
    (
        "last_success_timestamp_seconds",
        GaugeMetricFamily,
        "When the last report succeeded.",
        lambda state: state.done_at,
    ),
    ("reports", CounterMetricFamily, "Reports done.", lambda state: state.done_total),
    ("failures", CounterMetricFamily, "Reports failed.", lambda state: state.failed_total),
    (
        "changes",
        CounterMetricFamily,
        "Providers and consumers changed.",
        lambda state: state.changes_total,
    ),
    ("reshapes", CounterMetricFamily, "Reshapes done.", lambda state: state.reshapes_total),
    (
        "reshape_pending",
        GaugeMetricFamily,
        "1 while the tree needs a reshape that has not happened.",
        lambda state: state.needs_reshape,
    ),
    ("providers", GaugeMetricFamily, "Providers.", lambda state: state.view.providers),
    (
        "others_providers",
        GaugeMetricFamily,
        "Children that others have created.",
        lambda state: state.view.others,
    ),
    (
        "over_full_providers",
        GaugeMetricFamily,
        "Providers that are over capacity.",
        lambda state: len({excess.provider for excess in state.view.over_full}),
    ),
)


@dataclass(eq=False)
class AgentReport(Collector):
    """Reports on an agent; thread-safe.

    Attributes:
        requests: the number of requests sent to the service, by method.
        clock: the Unix time, in seconds.
    """

    agent: Agent
    requests: Counter[str]
    _: KW_ONLY
    clock: Callable[[], float] = time.time

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """The content type and the body, in the exposition format that the client prefers."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self)

    def health(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether every node was reported recently, and the state of each."""
        state = self.agent.state
        now = self.clock()
        late = _PASSES_MISSED_MAX * (self.agent.orders.interval_s + state.pass_s)
        nodes = {name: self._health_of(node, now, late) for name, node in list(state.nodes.items())}
        is_well = all(node["is_well"] for node in nodes.values())
        return is_well, {
            "status": "well" if is_well else "unwell",
            "version": berth.__version__,
            "driver": self.agent.orders.driver,
            "passes": state.passes,
            "nodes": nodes,
        }

    @staticmethod
    def _health_of(state: NodeState, now: float, late: float) -> dict[str, Any]:
        age = None if state.done_at is None else max(now - state.done_at, 0.0)
        return {
            "is_well": age is not None and age <= late,
            "last_success_s_ago": None if age is None else round(age, 1),
            "failures": state.failures,
            "error": state.error or None,
            "reshape_pending": state.needs_reshape,
            "providers": state.view.providers,
            "over_full": [asdict(excess) for excess in state.view.over_full],
        }

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        state = self.agent.state
        nodes = list(state.nodes.items())
        for name, kind, meaning, value_of in _OF_NODES:
            family = kind(f"berth_agent_{name}", meaning, labels=("node",))
            for node, node_state in nodes:
                if (value := value_of(node_state)) is not None:
                    family.add_metric((node,), value)
            yield family
        requests = CounterMetricFamily(
            "berth_agent_requests", "Requests sent to the service.", labels=("method",)
        )
        for method, count in sorted(self.requests.items()):
            requests.add_metric((method,), count)
        yield requests
        yield SummaryMetricFamily(
            "berth_agent_pass_seconds",
            "The time of a pass over all nodes.",
            count_value=state.passes,
            sum_value=state.passes_s,
        )
        build = GaugeMetricFamily("berth_agent_info", "What reports.", labels=("version", "driver"))
        build.add_metric((berth.__version__, self.agent.orders.driver), 1)
        yield build
