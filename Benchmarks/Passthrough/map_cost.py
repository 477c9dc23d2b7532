# SPDX-License-Identifier: Apache-2.0
"""What the map of the capture times costs in a copy, as processor time with it and without it.

The clip is a recording of 80 s with small frames, so that little else than the index is written. The two
copies are made in turn, because other load affects both alike. Exits with 1 if the median of the quotients
is above 1.01.
"""
import os
import pathlib
import statistics
import subprocess
import sys

import figures
from program_costs import measure

SLOWMO = os.environ["SLOWMO"]
WORK = pathlib.Path(os.environ["WORK"])
ROUNDS = 40


def main():
    take, out = WORK / "take.mov", WORK / "out.mov"
    subprocess.run(
        [SLOWMO, "record", "synthetic:320x240@240?pace=max", "-o", take, "-t", "80", "--audio", "none",
         "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    command = [SLOWMO, "retime", take, "-o", out, "-y", "--speed", "1/8", "--copy", "--pitch", "mute",
               "--progress", "none"]
    with_map, without = [], []
    for number in range(2 * ROUNDS):
        if (number % 4) in (0, 3):
            with_map.append(measure(command)[1])
        else:
            without.append(measure([*command, "--no-time-map"])[1])
    quotient = statistics.median(one / other for one, other in zip(with_map, without))
    figures.add("a copy with a time map, processor time", with_map, "s", {"without a map": without},
                "<= 1.01", quotient <= 1.01)
    print(f"a map costs {100 * quotient - 100:.1f} % of the processor time of a copy of 19 200 frames (limit 1)")
    sys.exit(0 if quotient <= 1.01 else 1)


main()
