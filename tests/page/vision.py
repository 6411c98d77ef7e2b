# SPDX-License-Identifier: Apache-2.0
"""How different two colours look, also to people who see fewer of them.

Colour vision is simulated by the matrices of Machado, Oliveira and Fernandes (2009) at full
severity; the difference is CIEDE2000 (Sharma, Wu and Dalal 2005); contrast is that of WCAG 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from typing import Final

Vector = Sequence[float]

#: What linear RGB becomes for each kind of colour vision.
VISIONS: Final[Mapping[str, Sequence[Vector]]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: From linear sRGB to XYZ, relative to the white point D65.
_XYZ: Final = (
    (0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883),
)


def luminance(colour: str) -> float:
    """Of a colour `#rrggbb`. Source: WCAG 2.2, relative luminance."""
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Of two colours, 1 to 21. Source: WCAG 2.2, contrast ratio."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def hue(colour: str) -> tuple[float, float]:
    """The hue in degrees, and the chroma: green is from 100 to 200, and grey has little chroma."""
    _, a, b = _lab(_linear(colour))
    return degrees(atan2(b, a)) % 360, hypot(a, b)


def difference(one: str, other: str) -> float:
    """CIEDE2000 to the kind of colour vision to which they differ least."""
    return min(
        _ciede2000(*(_lab(_times(matrix, _linear(colour))) for colour in (one, other)))
        for matrix in VISIONS.values()
    )


def _linear(colour: str) -> Vector:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]


def _times(matrix: Sequence[Vector], vector: Vector) -> Vector:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _lab(rgb: Vector) -> Vector:
    x, y, z = (
        value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116
        for value in _times(_XYZ, [min(1.0, max(0.0, channel)) for channel in rgb])
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _ciede2000(one: Vector, other: Vector) -> float:
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = ((hypot(a1, b1) + hypot(a2, b2)) / 2) ** 7
    stretch = 1 + 0.5 * (1 - sqrt(mean / (mean + 25**7)))
    c1, c2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    h1, h2 = (
        degrees(atan2(b, a * stretch)) % 360 if a or b else 0.0 for a, b in ((a1, b1), (a2, b2))
    )
    turn = 0.0 if not c1 * c2 else (h2 - h1 + 180) % 360 - 180
    middle = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = (
        1
        - 0.17 * cos(radians(middle - 30))
        + 0.24 * cos(radians(2 * middle))
        + 0.32 * cos(radians(3 * middle + 6))
        - 0.20 * cos(radians(4 * middle - 63))
    )
    light = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / sqrt(20 + (lightness - 50) ** 2))
    strong = (c2 - c1) / (1 + 0.045 * chroma)
    turned = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    blue = 60 * exp(-(((middle - 275) / 25) ** 2))
    rotation = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(blue))
    return sqrt(light**2 + strong**2 + turned**2 + rotation * strong * turned)
