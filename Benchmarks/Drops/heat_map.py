# SPDX-License-Identifier: Apache-2.0
"""A heat map of lost frames as SVG: a panel for each program and each pair of format and load."""

CELL_WIDTH, CELL_HEIGHT, GAP = 52, 26, 18
LEFT, TOP = 150, 60


def color(share):
    """Light green without a loss, yellow below a percent, then to dark red."""
    if share is None:
        return "#d0d0d0"
    if share == 0:
        return "#e3f4e1"
    stops = [
        (0.0, (255, 240, 170)), (0.01, (254, 196, 79)), (0.1, (236, 112, 20)), (1.0, (127, 0, 0))]
    for (low, start), (high, end) in zip(stops, stops[1:]):
        if share <= high:
            distance = (share - low) / (high - low)
            mixed = (round(a + (b - a) * distance) for a, b in zip(start, end))
            return "#" + "".join(f"{part:02x}" for part in mixed)
    return "#7f0000"


def label(share):
    if share is None:
        return "–"
    if share == 0:
        return "0"
    percent = share * 100
    return f"{percent:.2f}" if percent < 1 else f"{percent:.0f}"


def text(x, y, content, size=11, anchor="middle", fill="#222222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" font-weight="{weight}">{content}</text>')


def drawing(panels, programs, rows, sizes, rates):
    """The SVG document.

    `panels` has the share of lost frames, or None, by program, format, load, size and rate."""
    panel_width, panel_height = CELL_WIDTH * len(rates), CELL_HEIGHT * len(sizes)
    width = LEFT + len(programs) * (panel_width + GAP)
    height = TOP + len(rows) * (panel_height + GAP) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="DejaVu Sans, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(LEFT, 20, "Lost frames in percent, by size and rate (frames per second)", 14, "start",
             weight="bold")]
    for column, program in enumerate(programs):
        x = LEFT + column * (panel_width + GAP)
        parts.append(text(x + panel_width / 2, TOP - 12, program, 13, weight="bold"))
        for row, (name, load) in enumerate(rows):
            y = TOP + row * (panel_height + GAP)
            if column == 0:
                parts.append(text(8, y + panel_height / 2 + 4, f"{name}, {load}", 12, "start"))
            for line, size in enumerate(sizes):
                top = y + line * CELL_HEIGHT
                if column == 0:
                    parts.append(text(LEFT - 6, top + 17, f"{size[1]}p", 10, "end"))
                for number, rate in enumerate(rates):
                    share = panels[program, name, load, size, rate]
                    left = x + number * CELL_WIDTH
                    fill = "#ffffff" if share is not None and share > 0.3 else "#222222"
                    parts.append(
                        f'<rect x="{left}" y="{top}" width="{CELL_WIDTH - 1}" '
                        f'height="{CELL_HEIGHT - 1}" fill="{color(share)}"/>')
                    parts.append(text(left + CELL_WIDTH / 2, top + 17, label(share), 11, fill=fill))
        bottom = TOP + len(rows) * (panel_height + GAP) - GAP + 14
        if column == 0:
            parts.append(text(x - 6, bottom, "fps", 10, "end"))
        for number, rate in enumerate(rates):
            parts.append(text(x + number * CELL_WIDTH + CELL_WIDTH / 2, bottom, rate, 10))
    note = "– : the take does not fit into memory"
    parts.append(text(8, height - 10, note, 10, "start"))
    return "\n".join([*parts, "</svg>", ""])
