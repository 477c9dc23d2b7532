# SPDX-License-Identifier: Apache-2.0
"""Measures the peak memory of exports with synthesized frames, of a short and a long clip; see run.sh."""
import os
import subprocess
import sys

import figures
from interpolation_clips import FFMPEG, WORK
from program_costs import measure

# The sizes, and the numbers of frames of the short and the long clip.
CLIPS = [(640, 360, 64, 256), (1920, 1080, 16, 96), (4096, 2304, 8, 24)]
# The peak depends on which threads run at once: at 1080p, runs of the same clip take 324 to 375 MiB.
# A long clip meets the worst case in one run, so a short one runs several times.
SHORT_RUNS = 3


def main():
    is_missed = False
    for width, height, short, long in CLIPS:
        peaks = []
        for count, runs in ((short, SHORT_RUNS), (long, 1)):
            clip = WORK / "memory.mov"
            subprocess.run(
                FFMPEG + ["-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate=30",
                          "-frames:v", str(count), "-c:v", "libx264", "-preset", "ultrafast",
                          "-pix_fmt", "yuv420p", clip], check=True)
            # Without a codec that looks ahead, whose memory grows with the first frames.
            peaks.append(max(measure([
                os.environ["SLOWMO"], "retime", clip, "-o", WORK / "memory-out.mov", "-y",
                "--speed", "1/2", "--range", "0..end", "--fps", "30", "--sampling", "flow",
                "--codec", "mjpeg", "--progress", "none"])[2] for _ in range(runs)))
        is_flat = peaks[1] <= peaks[0] * 1.1
        is_missed = is_missed or not is_flat
        print(f"{'met' if is_flat else 'MISSED':7} memory at {width}x{height}: {peaks[0]:.0f} MiB "
              f"for {short} frames, {peaks[1]:.0f} MiB for {long}", flush=True)
        figures.add(f"memory at {width}x{height}, {long} frames", peaks[1], "MiB",
                    goal=f"<= 1.1 x the memory of {short} frames", met=is_flat)
    if is_missed:
        sys.exit(1)


main()
