#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of Benchmarks/Capture/run.sh: a simulated camera that counts its own frames."""
import os
import pathlib
import sys

from peers import Mode, camera_count, compare

WORK = pathlib.Path(os.environ["WORK"])
TRUTH = WORK / "take.truth"

# The title, the camera and the mode of each comparison.
TAKES = [
    ("1280x720@240 MJPEG of 100 kB", "hfr-usb",
     Mode(1280, 720, 240, "MJPG", "mjpeg", "image/jpeg")),
    ("640x400@480 8-bit", "mono-hfr",
     Mode(640, 400, 480, "GREY", "gray", "video/x-raw,format=GRAY8")),
    ("1920x1080@120 YUYV", "yuyv-1080p120",
     Mode(1920, 1080, 120, "YUYV", "yuyv422", "video/x-raw,format=YUY2")),
]


def main():
    seconds, rounds = int(sys.argv[1]), int(sys.argv[2])
    print(f"{seconds} s a run, median of {rounds} rounds in turn, files in memory")
    for title, camera, mode in TAKES:
        environment = {
            "LD_PRELOAD": str(WORK / "libfakevideo.so"), "FAKEVIDEO": camera,
            "FAKEVIDEO_TRUTH": str(TRUTH)}
        compare(
            title, "/dev/fakevideo0", mode, seconds, rounds, WORK, lambda: camera_count(TRUTH),
            environment)


main()
