"""Plots as SVG text, without a library. What is written into them is escaped."""

from __future__ import annotations

from html import escape
from typing import Sequence

colours = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951")
width, height, margin = 640, 320, 56


def figure(body: str, tall: int = height) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" role="img" '
        f'font-family="sans-serif" font-size="12">{body}</svg>'
    )


def text(x: float, y: float, label: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(label)}</text>'


def short(value: float) -> str:
    return f"{value:.4g}"


class Axes:
    """From values to places, with a frame and the ends of both axes."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float], labels: tuple[str, str]) -> None:
        self.x0, self.x1 = spread(xs)
        self.y0, self.y1 = spread(ys)
        self.labels = labels

    def x(self, value: float) -> float:
        return margin + (value - self.x0) / (self.x1 - self.x0) * (width - 2 * margin)

    def y(self, value: float) -> float:
        return height - margin - (value - self.y0) / (self.y1 - self.y0) * (height - 2 * margin)

    def frame(self) -> str:
        right, bottom = width - margin, height - margin
        line = f'<path d="M{margin},{margin}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
        ends = [
            text(margin, bottom + 16, short(self.x0)),
            text(right, bottom + 16, short(self.x1)),
            text(margin - 6, bottom, short(self.y0), "end"),
            text(margin - 6, margin + 4, short(self.y1), "end"),
            text(width / 2, bottom + 34, self.labels[0]),
            text(margin, margin - 14, self.labels[1], "start"),
        ]
        return line + "".join(ends)


def spread(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def lines(curves: Sequence[tuple[str, Sequence[Sequence[float]]]], labels: tuple[str, str]) -> str:
    points = [point for _, curve in curves for point in curve]
    axes = Axes([x for x, _ in points], [y for _, y in points], labels)
    body = axes.frame()
    for index, (name, curve) in enumerate(curves):
        colour = colours[index % len(colours)]
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in curve)
        body += f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        body += "".join(
            f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in curve
        )
        body += f'<rect x="{width - 190}" y="{12 + 16 * index}" width="10" height="10" fill="{colour}"/>'
        body += text(width - 174, 21 + 16 * index, name, "start")
    return figure(body)


def scatter(xs: Sequence[float], ys: Sequence[float], labels: tuple[str, str]) -> str:
    axes = Axes(xs, [*ys, 0.0], labels)
    zero = f'<path d="M{margin},{axes.y(0):.1f}H{width - margin}" stroke="currentColor" stroke-opacity=".4"/>'
    dots = "".join(
        f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.5" fill="{colours[0]}" fill-opacity=".5"/>'
        for x, y in zip(xs, ys)
    )
    return figure(axes.frame() + zero + dots)


def bars(values: Sequence[tuple[str, float]]) -> str:
    most = max((abs(value) for _, value in values), default=0.0) or 1.0
    left, room = 220, width - 300
    body = ""
    for index, (name, value) in enumerate(values):
        y = 12 + 22 * index
        length = max(0.0, value) / most * room
        body += text(left - 8, y + 11, name if len(name) <= 32 else f"{name[:31]}…", "end")
        body += f'<rect x="{left}" y="{y}" width="{length:.1f}" height="14" fill="{colours[0]}"/>'
        body += text(left + length + 6, y + 11, short(value), "start")
    return figure(body, 24 + 22 * len(values))


def heat(rows: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Rows are the classes that were there, columns those that were predicted. Each row is
    shaded by its shares.
    """
    cell = min(60.0, (width - 180) / len(names))
    body = ""
    for i, row in enumerate(rows):
        y = 30 + cell * i
        body += text(150, y + cell / 2 + 4, names[i][:18], "end")
        body += text(160 + cell * (i + 0.5), 22, names[i][: max(2, int(cell / 7))])
        for j, value in enumerate(row):
            share = value / max(1, sum(row))
            x = 160 + cell * j
            body += (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" '
                f'fill="{colours[0]}" fill-opacity="{share:.2f}" stroke="currentColor" stroke-opacity=".15"/>'
            )
            body += text(x + cell / 2, y + cell / 2 + 4, str(value))
    return figure(body, int(40 + cell * len(rows)))
