# SPDX-License-Identifier: Apache-2.0
"""Charts are whole pictures, with everything in its place."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from bench.charts import Bars, Line, Panel, Row, bar_chart, line_chart, panel_chart
from bench.pages import write_pages
from bench.results import Result, new_run

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}


def test_equal_factors_are_equal_distances() -> None:
    """Both axes of a line chart are logarithmic: 1, 10, 100 stand evenly, upwards to the right."""
    picture = ElementTree.fromstring(
        line_chart(
            "a <title>", [Line("a & b", [(1, 2), (10, 20), (100, 200)])], x_name="x", y_name="y"
        )
    )
    circles = picture.findall("svg:circle", NAMESPACE)
    xs, ys = ([float(circle.attrib[axis]) for circle in circles] for axis in ("cx", "cy"))
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2
    assert abs((ys[1] - ys[0]) - (ys[2] - ys[1])) < 0.2
    assert xs[0] < xs[1] and ys[0] > ys[1]


def test_everything_is_inside_the_picture() -> None:
    """Bars and their numbers too, whatever the values; a missing value has no bar."""
    picture = ElementTree.fromstring(
        bar_chart(
            "t", ("berth", "original"), [Bars("a", (0.02, 99_000)), Bars("b", (3, None))], unit="ms"
        )
    )
    bars = [one for one in picture.findall("svg:rect", NAMESPACE) if "y" in one.attrib][2:]
    assert len(bars) == 3
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for bar in bars:
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) < height


def test_the_bars_of_a_panel_begin_at_zero() -> None:
    """In proportion to the longest of their own panel; the parts of one follow each other, and
    nothing leaves the picture."""
    picture = ElementTree.fromstring(
        panel_chart(
            "t",
            ("a <b>", "c"),
            [
                Panel("many", [Row("x", [(0, 300), (1, 100)], "400"), Row("y", [(1, 200)], "200")]),
                Panel("few", [Row("x", [(0, 2)], "2"), Row("none", [(0, 0)], "0")]),
            ],
        )
    )
    bars = [one for one in picture.findall("svg:rect", NAMESPACE) if "y" in one.attrib][2:]
    x, width = ([float(bar.attrib[name]) for bar in bars] for name in ("x", "width"))
    assert [round(each / width[3], 2) for each in width] == [0.75, 0.25, 0.5, 1, 0]
    assert x == [x[0], x[0] + width[0], x[0], x[0], x[0]]
    assert [bar.attrib["class"] for bar in bars] == ["f0", "f1", "f1", "f0", "f0"]
    height = float(picture.attrib["height"])
    ends = [float(text.attrib["y"]) for text in picture.findall("svg:text", NAMESPACE)]
    ends += [float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in bars]
    assert max(ends) < height
    assert max(map(sum, zip(x, width, strict=True))) < float(picture.attrib["width"])


def test_a_run_leaves_the_charts_that_its_page_shows(tmp_path: Path) -> None:
    """And none of an earlier run."""
    (tmp_path / "old.svg").write_text("<svg/>")
    run = new_run({})
    run.results.extend(
        Result(
            scenario="flat",
            fleet="flat",
            size=size,
            case="a ninth matches, limit 10",
            server=server,
            median=1.0 if server == "berth" else 100.0,
            answer_bytes=1000,
        )
        for size in (1000, 10_000)
        for server in ("berth", "original")
    )
    write_pages(run, tmp_path)
    shown = re.findall(r"\]\(performance/(.*?)\)", (tmp_path / "results.md").read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.glob("*.svg"))
    assert "fleet-size.svg" in shown
