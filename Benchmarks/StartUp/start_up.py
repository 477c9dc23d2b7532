# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/StartUp/run.sh: the time of commands that do little."""
import os
import pathlib
import statistics
import subprocess
import sys

import figures
from program_costs import measure

WORK = pathlib.Path(os.environ["WORK"])
SLOWMO = os.environ["SLOWMO"]
GOAL = 0.5
OURS = ["--help", "devices", "info"]


def main():
    rounds = int(sys.argv[1])
    clip = WORK / "clip.mov"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
         "testsrc2=size=1280x720:rate=240:duration=5", "-c:v", "libx264", "-preset", "ultrafast",
         clip], check=True)
    commands = {
        "--help": [SLOWMO, "--help"],
        "devices": [SLOWMO, "devices"],
        "info": [SLOWMO, "info", clip],
        "ffprobe -version": ["ffprobe", "-version"],
        "the libraries alone": [WORK / "floor"],
    }
    times = {name: [] for name in commands}
    # The programs run in turn, so that other load affects all of them alike.
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(measure(list(map(str, command)))[0] * 1_000)
    peer = statistics.median(times["ffprobe -version"])
    print(f"{'':22}{'ms':>8}{'of ffprobe':>12}   (medians of {rounds})")
    for name, found in times.items():
        median = statistics.median(found)
        print(f"{name:22}{median:8.1f}{median / peer:12.2f}")
    missed = False
    for name in OURS:
        is_met = statistics.median(times[name]) <= GOAL * peer
        missed = missed or not is_met
        figures.add(f"slowmo {name}", times[name], "ms",
                    {other: found for other, found in times.items() if other not in OURS},
                    f"<= {GOAL} ffprobe", is_met)
    sys.exit(1 if missed else 0)


main()
