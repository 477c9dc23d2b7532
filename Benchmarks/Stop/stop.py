#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Stop/run.sh: from Ctrl-C to a playable file."""
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import figures
from peers import Mode, commands

WORK = pathlib.Path(os.environ["WORK"])
MODE = Mode(1280, 720, 240, "MJPG", "mjpeg", "image/jpeg")
CAMERA = {"LD_PRELOAD": str(WORK / "libfakevideo.so"), "FAKEVIDEO": "hfr-usb"}


def frames(file):
    """The number of frames that ffprobe reads; an unreadable file ends the benchmark."""
    return int(subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", file],
        check=True, capture_output=True, text=True).stdout)


def stop(arguments, seconds):
    """The milliseconds from the signal to the end of the program."""
    process = subprocess.Popen(
        arguments, env=dict(os.environ, **CAMERA), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait()
    return (time.monotonic() - start) * 1_000


def main():
    rounds = int(sys.argv[1])
    print(f"1280x720@240 MJPEG of 100 kB, copied; median of {rounds}")
    print(f"{'':10}{'take s':>8}{'ms to the end':>15}{'frames':>9}")
    for seconds in map(int, sys.argv[2:]):
        told = commands("/dev/fakevideo0", MODE, 3_600, WORK / "take")
        found = {}
        for name in ("slowmo", "ffmpeg"):
            times = found[name] = [stop(told[name], seconds) for _ in range(rounds)]
            count = frames(WORK / "take.mov")
            print(f"{name:10}{seconds:>8}{statistics.median(times):>15.0f}{count:>9}", flush=True)
        figures.add(f"from Ctrl-C to the end of a take of {seconds} s", found["slowmo"], "ms",
                    {"ffmpeg": found["ffmpeg"]})


main()
