#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Droppable/run.sh: the cost of droppable H.264 frames."""
import os
import pathlib
import re
import subprocess
import sys

import figures

WORK = pathlib.Path(os.environ["WORK"])
SLOWMO = os.environ["SLOWMO"]
SCENES = {
    "synthetic": None,
    "testsrc2": "testsrc2=size=640x480:rate=240,noise=alls=6:allf=t",
    "mandelbrot": "mandelbrot=size=640x480:rate=240,noise=alls=6:allf=t",
}


def run(*arguments):
    return subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True)


def source(scene, frames):
    """A lossless file of a scene."""
    path = WORK / f"{scene}.mov"
    if SCENES[scene] is None:
        run(SLOWMO, "record", "synthetic:640x480@240?pace=max", "-o", path, "--frames", frames,
            "--codec", "ffv1", "--audio", "none")
    else:
        run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", SCENES[scene], "-frames:v", frames,
            "-pix_fmt", "yuv420p", "-c:v", "ffv1", path)
    return path


def packets(path):
    """The presentation times of the packets in microseconds, in the order of the file."""
    lines = run("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
                "packet=pts_time", "-of", "csv=p=0", path).stdout.split()
    return [round(float(line.strip(",")) * 1e6) for line in lines]


def lateness(path):
    """The most frames captured after a frame before it is stored."""
    times = packets(path)
    ranks = {time: rank for rank, time in enumerate(sorted(times))}
    # The encoder returns a frame for each that it gets, as soon as it has enough for the order.
    held = max(ranks[time] - stored for stored, time in enumerate(times))
    return max(stored + held - ranks[time] for stored, time in enumerate(times))


def droppable(path):
    """The number of frames that no other refers to, by the sdtp box."""
    data = path.read_bytes()
    box = re.search(rb"sdtp\0\0\0\0", data)
    if box is None:
        return 0
    count = int.from_bytes(data[box.start() - 4:box.start()], "big") - 12
    return sum(byte >> 2 & 3 == 2 for byte in data[box.end():box.end() + count])


def psnr(path, reference):
    told = run("ffmpeg", "-nostdin", "-i", path, "-i", reference, "-lavfi",
               "[0:v]format=yuv420p[a];[1:v]format=yuv420p[b];[a][b]psnr", "-f", "null", "-").stderr
    return float(re.search(r"average:([\d.]+)", told)[1])


def main():
    frames = int(sys.argv[1])
    print(f"640x480@240, {frames} frames, crf 18")
    print(f"{'scene':12}{'N':>4}{'bytes':>10}{'to none':>9}{'PSNR dB':>9}{'droppable':>11}"
          f"{'frames later':>14}")
    for scene in SCENES:
        reference, none = source(scene, frames), 0
        for interval in (None, *map(int, sys.argv[2:])):
            path = WORK / "take.mov"
            options = ["--droppable", interval] if interval else []
            run(SLOWMO, "record", f"file:{reference}?pace=max", "-o", path, "-y", "--codec", "h264",
                "--audio", "none", *options)
            size = path.stat().st_size
            none = none or size
            print(f"{scene:12}{interval or '-':>4}{size:>10}{size / none:>9.2f}"
                  f"{psnr(path, reference):>9.2f}{droppable(path):>11}{lateness(path):>14}",
                  flush=True)
            if interval:
                figures.add(f"{scene}, one reference in {interval}: bytes relative to none", size / none, "")


main()
