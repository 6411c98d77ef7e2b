# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG: lines over two logarithmic axes, bars over one, and panels of bars from zero.

Plain text, without a library: a chart is a handful of numbers that are placed. Colours follow the
reader's light or dark setting, as those of the other pictures of the documentation do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

_WIDTH: Final = 850
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 36, 54, 54
_PLOT_HEIGHT: Final = 300
_LABELS_WIDTH: Final = 330
_BAR_HEIGHT: Final = 15
_LEGEND_LINE: Final = 20
_NAMES_WIDTH: Final = 150
_TEXT_WIDTH: Final = 230
_PANEL_HEADING: Final = 30
_ROW_HEIGHT: Final = 24

_LIGHT: Final = (
    "#0284c7",
    "#d97706",
    "#059669",
    "#9333ea",
    "#db2777",
    "#475569",
    "#dc2626",
    "#65a30d",
    "#92400e",
)
_DARK: Final = (
    "#38bdf8",
    "#fbbf24",
    "#34d399",
    "#c084fc",
    "#f472b6",
    "#cbd5e1",
    "#f87171",
    "#a3e635",
    "#fdba74",
)


class Line(NamedTuple):
    """One line of a chart: points with positive coordinates, in order of x."""

    name: str
    points: Sequence[tuple[float, float]]


class Bars(NamedTuple):
    """The bars of one case: a positive value for each series, or None."""

    name: str
    values: Sequence[float | None]


class Row(NamedTuple):
    """A bar of a panel: one part after another, and a text behind it.

    Attributes:
        parts: number of the series, value of at least 0.
    """

    name: str
    parts: Sequence[tuple[int, float]]
    text: str


class Panel(NamedTuple):
    """Bars with an axis of their own, which begins at 0 and ends with the longest of them."""

    name: str
    rows: Sequence[Row]


def panel_chart(title: str, series: Sequence[str], panels: Sequence[Panel]) -> str:
    """Panels of bars below each other; without series names, there is no legend."""
    parts = [*_legend(series)]
    y = _TOP + _LEGEND_LINE * ((len(series) + 1) // 2)
    for panel in panels:
        parts.append(f'<text class="name" x="20" y="{y}">{escape(panel.name)}</text>')
        y += 10
        parts += _panel(panel, y)
        y += _ROW_HEIGHT * len(panel.rows) + _PANEL_HEADING
    return _document(title, y - 10, parts)


def _panel(panel: Panel, top: float) -> Iterator[str]:
    longest = max(sum(value for _, value in row.parts) for row in panel.rows)
    scale = (_WIDTH - _NAMES_WIDTH - _TEXT_WIDTH) / (longest or 1)
    for number, row in enumerate(panel.rows):
        y = top + number * _ROW_HEIGHT
        x = float(_NAMES_WIDTH)
        yield f'<text class="end" x="{x - 10:.0f}" y="{y + 14}">{escape(row.name)}</text>'
        for which, value in row.parts:
            yield (
                f'<rect class="f{which}" x="{x:.1f}" y="{y}" width="{value * scale:.1f}" '
                f'height="{_ROW_HEIGHT - 6}"/>'
            )
            x += value * scale
        yield f'<text class="small" x="{x + 8:.1f}" y="{y + 14}">{escape(row.text)}</text>'


def line_chart(title: str, lines: Sequence[Line], *, x_name: str, y_name: str) -> str:
    """Lines over two logarithmic axes."""
    points = [point for line in lines for point in line.points]
    legend_height = _LEGEND_LINE * ((len(lines) + 1) // 2)
    top = _TOP + legend_height
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])
    across = _scale(x_low, x_high, _LEFT, _WIDTH - _RIGHT)
    up = _scale(y_low, y_high, top + _PLOT_HEIGHT, top)
    parts = [*_legend([line.name for line in lines])]
    for decade in _powers(y_low, y_high):
        at = up(decade)
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text class="small end" x="{_LEFT - 8}" y="{at + 4:.1f}">{decade:,g}</text>')
    for decade in _powers(x_low, x_high):
        at = across(decade)
        parts.append(f'<path class="grid" d="M{at:.1f} {top}V{top + _PLOT_HEIGHT}"/>')
        below = top + _PLOT_HEIGHT + 18
        parts.append(f'<text class="small mid" x="{at:.1f}" y="{below}">{decade:,.0f}</text>')
    for number, line in enumerate(lines):
        places = [(across(x), up(y)) for x, y in line.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="line c{number % len(_LIGHT)}" d="M{path}"/>')
        parts += [
            f'<circle class="f{number % len(_LIGHT)}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
            for x, y in places
        ]
    height = top + _PLOT_HEIGHT + _BOTTOM
    middle = (_LEFT + _WIDTH - _RIGHT) // 2
    parts.append(f'<text class="small mid" x="{middle}" y="{height - 12}">{escape(x_name)}</text>')
    parts.append(f'<text class="small" x="12" y="{top - 12}">{escape(y_name)}</text>')
    return _document(title, height, parts)


def bar_chart(title: str, series: Sequence[str], bars: Sequence[Bars], *, unit: str) -> str:
    """Bars over a logarithmic axis, with the bars of one case below each other."""
    low, high = _decades([value for each in bars for value in each.values if value is not None])
    left = _LABELS_WIDTH
    across = _scale(low, high, left, _WIDTH - _RIGHT - 60)
    top = _TOP + _LEGEND_LINE * ((len(series) + 1) // 2)
    pitch = _BAR_HEIGHT * len(series) + 12
    bottom = top + pitch * len(bars)
    parts = [*_legend(series)]
    for decade in _powers(low, high):
        at = across(decade)
        parts.append(f'<path class="grid" d="M{at:.1f} {top - 6}V{bottom}"/>')
        parts.append(f'<text class="small mid" x="{at:.1f}" y="{bottom + 16}">{decade:,g}</text>')
    for row, each in enumerate(bars):
        y = top + row * pitch
        middle = y + _BAR_HEIGHT * len(series) / 2 + 4
        parts.append(
            f'<text class="end" x="{left - 10}" y="{middle:.1f}">{escape(each.name)}</text>'
        )
        for number, value in enumerate(each.values):
            if value is not None:
                parts += _bar(number, value, left, y + number * _BAR_HEIGHT, across)
    height = bottom + 44
    parts.append(
        f'<text class="small mid" x="{(left + _WIDTH) // 2}" y="{height - 8}">{unit}</text>'
    )
    return _document(title, height, parts)


def _bar(
    number: int, value: float, left: int, y: float, across: Callable[[float], float]
) -> Iterator[str]:
    length = max(across(value) - left, 1.0)
    yield (
        f'<rect class="f{number}" x="{left}" y="{y:.1f}" width="{length:.1f}" '
        f'height="{_BAR_HEIGHT - 2}"/>'
    )
    text = f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"
    yield f'<text class="small" x="{left + length + 5:.1f}" y="{y + 11:.1f}">{text}</text>'


def _legend(names: Sequence[str]) -> Iterator[str]:
    """The names of the series with their colours, two to a line."""
    for number, name in enumerate(names):
        x = 20 + (number % 2) * (_WIDTH // 2)
        y = _TOP - 8 + (number // 2) * _LEGEND_LINE
        colour = number % len(_LIGHT)
        yield f'<rect class="f{colour}" x="{x}" y="{y - 9}" width="14" height="10"/>'
        yield f'<text class="small" x="{x + 22}" y="{y}">{escape(name)}</text>'


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around some positive values, at least one decade apart."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _powers(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    return [10.0**power for power in range(first, last + 1)]


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Map values on a logarithmic axis to coordinates."""
    span = math.log10(high / low)
    return lambda value: start + (end - start) * math.log10(value / low) / span


def _document(title: str, height: float, parts: Sequence[str]) -> str:
    name = escape(title)
    light = " ".join(_coloured(number, colour) for number, colour in enumerate(_LIGHT))
    dark = " ".join(_coloured(number, colour) for number, colour in enumerate(_DARK))
    body = "\n  ".join(parts)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" \
height="{height:.0f}" role="img" aria-label="{name}">
  <!-- SPDX-License-Identifier: Apache-2.0 -->
  <title>{name}</title>
  <style>
    text {{ font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }}
    text {{ font-size: 13px; fill: #0f172a; }}
    .name {{ font-weight: 600; font-size: 15px; }} .small {{ font-size: 12px; fill: #475569; }}
    .mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
    .paper {{ fill: #ffffff; }} .grid {{ stroke: #e2e8f0; fill: none; }}
    .line {{ fill: none; stroke-width: 2; }} {light}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #f1f5f9; }} .small {{ fill: #cbd5e1; }}
      .paper {{ fill: #0f172a; }} .grid {{ stroke: #334155; }} {dark}
    }}
  </style>
  <rect class="paper" width="{_WIDTH}" height="{height:.0f}" rx="6"/>
  <text class="name" x="20" y="24">{name}</text>
  {body}
</svg>
"""


def _coloured(number: int, colour: str) -> str:
    return f".c{number} {{ stroke: {colour}; }} .f{number} {{ fill: {colour}; }}"
