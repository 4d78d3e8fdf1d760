"""Small drawings that need no script: points of lines and bars, scaled to a box."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, HEIGHT = 240.0, 48.0


def spark_line(curve: np.ndarray) -> str:
    """The points of a polyline; long curves are averaged down to a screen's worth."""
    curve = np.asarray(curve, np.float64)
    if len(curve) > WIDTH:
        cuts = np.unique(np.linspace(0, len(curve), int(WIDTH) + 1).astype(np.int64))
        curve = np.add.reduceat(curve, cuts[:-1]) / np.diff(cuts)
    top = float(max(curve.max(initial=0.0), 1e-300))
    x = np.linspace(0.0, WIDTH, max(len(curve), 2))[: len(curve)]
    y = HEIGHT * (1.0 - np.clip(curve, 0.0, None) / top)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def spark_bars(values: np.ndarray, labels: tuple[str, ...]) -> list[dict[str, Any]]:
    """Bars from zero, each with its label and its value relative to the mean of all."""
    top = float(max(values.max(initial=0.0), 1e-300))
    mean = float(values.mean()) or 1.0
    width = WIDTH / len(values)
    return [
        {
            "x": round(k * width + 0.08 * width, 2),
            "width": round(0.84 * width, 2),
            "y": round(HEIGHT * (1.0 - max(value, 0.0) / top), 2),
            "height": round(HEIGHT * max(value, 0.0) / top, 2),
            "label": label,
            "text": f"{label}: {value / mean:.2f}",
        }
        for k, (value, label) in enumerate(zip(values.tolist(), labels, strict=True))
    ]
