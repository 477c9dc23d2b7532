# SPDX-License-Identifier: Apache-2.0
"""A chart of figures beside those of peers as SVG: how many times as good as each peer."""
import html
import math
import statistics

# Less is better of the first units, more of the second. Others are not drawn.
LESS, MORE = {"s", "ms", "µs", "MiB"}, {"frames/s", "fps"}
COLORS = ["#1b6ca8", "#d95f02", "#3a8f3a", "#8e44ad", "#7f6a00", "#c0397a", "#4d4d4d", "#00838f"]
LEFT, RIGHT, TOP, ROW, SCALE = 430, 20, 84, 17, 62
HOLLOW = ' fill-opacity="0"'
# The chart ends at these powers of two; larger and smaller ratios are drawn as hollow circles there.
LOW, HIGH = -3, 5


def ratios(figure):
    """How many times as good as each peer; empty for a unit without an order."""
    if not figure["values"] or figure["unit"] not in LESS | MORE:
        return {}
    own = statistics.median(figure["values"])
    found = {peer: statistics.median(values) for peer, values in figure["peers"].items() if values}
    pairs = {peer: (own, other) if figure["unit"] in MORE else (other, own)
             for peer, other in found.items()}
    return {peer: good / bad for peer, (good, bad) in pairs.items() if good > 0 and bad > 0}


def mark(index):
    """The look of a peer's circles: after all colors, they have a black edge."""
    edge = "#000000" if index >= len(COLORS) else COLORS[index % len(COLORS)]
    return f'fill="{COLORS[index % len(COLORS)]}" stroke="{edge}"'


def text(x, y, content, size=11, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}" fill="#222222">{html.escape(str(content))}</text>')


def drawing(runs):
    """The SVG document of some benchmarks, or None if none of their figures has a peer."""
    rows = [(run["benchmark"], figure["figure"], ratios(figure))
            for run in runs for figure in run["figures"]]
    rows = [row for row in rows if row[2]]
    if not rows:
        return None
    peers = list(dict.fromkeys(peer for row in rows for peer in row[2]))
    marks = {peer: mark(index) for index, peer in enumerate(peers)}
    groups = len(dict.fromkeys(row[0] for row in rows))
    width = LEFT + (HIGH - LOW) * SCALE + RIGHT
    bottom = TOP + ROW * (len(rows) + groups)
    height = bottom + 42
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="DejaVu Sans, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(8, 20, "Overcrank beside its peers: to the right of 1, Overcrank is better", 14,
             weight="bold")]
    x, y = 8, 36
    for peer in peers:
        if x + 34 + 7 * len(peer) > width:
            x, y = 8, y + 14
        parts.append(f'<circle cx="{x + 5}" cy="{y}" r="4.5" {marks[peer]}/>')
        parts.append(text(x + 14, y + 4, peer))
        x += 34 + 7 * len(peer)
    for power in range(LOW, HIGH + 1):
        x = LEFT + (power - LOW) * SCALE
        stroke = "#222222" if power == 0 else "#dddddd"
        parts.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}" stroke="{stroke}"/>')
        parts.append(text(x, bottom + 15, 2 ** power if power >= 0 else f"1/{2 ** -power}", 11, "middle"))
    parts.append(text(LEFT + (HIGH - LOW) * SCALE / 2, bottom + 33, "times as good as the peer (logarithmic)",
                      11, "middle"))
    y, last = TOP, None
    for benchmark, name, found in rows:
        if benchmark != last:
            parts.append(text(8, y + 12, benchmark, 11, weight="bold"))
            y, last = y + ROW, benchmark
        parts.append(text(18, y + 12, name if len(name) < 66 else name[:64] + "…", 10))
        for peer, ratio in found.items():
            power = min(HIGH, max(LOW, math.log2(ratio)))
            is_inside = LOW < power < HIGH
            parts.append(f'<circle cx="{LEFT + (power - LOW) * SCALE:.1f}" cy="{y + 8}" r="4.5" '
                         f'{marks[peer]}{"" if is_inside else HOLLOW}/>')
        y += ROW
    return "\n".join([*parts, "</svg>", ""])
