# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of the documentation out of a report: the tables of figures, and plots.

    python3 Benchmarks/Support/report_pages.py REPORT

REPORT is a directory that Benchmarks/run.sh wrote. Needs rsvg-convert (librsvg2-bin)."""
import json
import pathlib
import shutil
import subprocess
import sys

import peer_chart
import report

CATALOG = pathlib.Path(__file__).parents[2] / "Sources/Overcrank/Overcrank.docc"
# The page, its title and subject, and its benchmarks.
PAGES = [
    ("FiguresOfCapture", "Figures of capture", "recording, photos, preview and start-up",
     ["Capture", "Drops", "Vivid", "Limits", "Stop", "CrashSafety", "Droppable", "Photos", "Preview",
      "StartUp"]),
    ("FiguresOfExport", "Figures of export", "exports, synthesized frames and frames for scripts",
     ["Passthrough", "ConstantRate", "Shards", "Interpolation", "Frames"]),
    ("FiguresOfAudio", "Figures of audio", "audio at other speeds", ["Pitch"]),
    ("FiguresOfPlayback", "Figures of playback", "playback and recognition",
     ["Playback", "Codes", "Faces", "MovieSearch"]),
]


def page(title, subject, names, runs, machine, images):
    """The text of a page."""
    done = {run["benchmark"]: run["status"] for run in runs}
    failed = [name for name in names if done.get(name, 0) not in (0, 1)]
    left_out = [name for name in names if name not in done]
    lines = [
        f"# {title}", "", f"Results of the benchmarks for {subject}.", "", "## Overview", "",
        "`Benchmarks/run.sh` printed these figures. Peers are comparable programs, measured in the same run.",
        f"The machine: {machine['processor']}, {machine['cores']} cores,",
        f"{machine['memory_mib'] / 1024:.0f} GiB, Linux {machine['kernel'].split('-')[0]}, a load of",
        f"{machine['load_before']:.1f} before the run, {machine['ffmpeg'].split(' Copy')[0]}.",
        "Each figure is a median. The range of several rounds is in parentheses. Missed goals are in bold.",
        "Times differ between machines, so compare only figures in one row. <doc:Benchmarks> describes the figures.", ""]
    if failed:
        lines += [f"These benchmarks failed: {', '.join(failed)}.", ""]
    if left_out:
        lines += [f"These benchmarks are not in the report: {', '.join(left_out)}.", ""]
    for image, about in images:
        lines += [f"![{about}]({image})", ""]
    return "\n".join(lines + report.table(runs) + [""])


def draw(svg, name):
    """Writes an SVG document as a PNG file of the catalog."""
    subprocess.run(["rsvg-convert", "--zoom", "1.5", "--output", CATALOG / f"Resources/{name}.png"],
                   input=svg, text=True, check=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    content = json.loads((folder / "report.json").read_text())
    paged = {name for _, _, _, names in PAGES for name in names}
    planned = {name for name, _ in report.PLAN}
    if planned != paged:
        sys.exit(f"on no page, or not planned: {planned ^ paged}")
    for file, title, subject, names in PAGES:
        runs = [run for run in content["runs"] if run["benchmark"] in names]
        images = []
        if any(run["benchmark"] == "Drops" for run in runs):
            shutil.copy(folder / "drops.png", CATALOG / "Resources/benchmark-drops.png")
            images.append(("benchmark-drops", "A heat map of the frames that four programs lose at each rate, size, format and load."))
        if chart := peer_chart.drawing(runs):
            image = "benchmark-" + file.removeprefix("FiguresOf").lower()
            draw(chart, image)
            images.append((image, "A chart of the ratios between Overcrank's figures and the peers' figures."))
        (CATALOG / f"Articles/{file}.md").write_text(page(title, subject, names, runs, content["machine"], images))


main()
