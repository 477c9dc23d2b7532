# SPDX-License-Identifier: Apache-2.0
"""Doubles the frame rate of a clip by MVTools: FlowFPS with blocks of 8 that overlap by 4.

    mvtools_clip.py IN OUT [-none]      with -none, frames are only copied
"""
import ctypes
import subprocess
import sys

import vapoursynth

SIDES = subprocess.run(
    ["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", sys.argv[1]],
    check=True, capture_output=True, text=True).stdout.strip().split(",")
WIDTH, HEIGHT = int(SIDES[0]), int(SIDES[1])
raw = subprocess.run(
    ["ffmpeg", "-v", "error", "-i", sys.argv[1], "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"],
    check=True, capture_output=True).stdout
LENGTH = WIDTH * HEIGHT * 3 // 2
core = vapoursynth.core
blank = core.std.BlankClip(
    width=WIDTH, height=HEIGHT, format=vapoursynth.YUV420P8, length=len(raw) // LENGTH, fpsnum=15,
    fpsden=1)


def load(n, f):
    """A frame of the input."""
    frame = f.copy()
    start = n * LENGTH
    for plane in range(3):
        width, height = (WIDTH, HEIGHT) if plane == 0 else (WIDTH // 2, HEIGHT // 2)
        stride, pointer = frame.get_stride(plane), frame.get_write_ptr(plane).value
        for row in range(height):
            ctypes.memmove(pointer + row * stride, raw[start + row * width:start + (row + 1) * width],
                           width)
        start += width * height
    return frame


clip = core.std.ModifyFrame(blank, blank, load)
if sys.argv[3:] != ["-none"]:
    options = {"blksize": 8, "overlap": 4}
    pyramid = core.mv.Super(clip, pel=2)
    vectors = [core.mv.Analyse(pyramid, isb=isb, **options) for isb in (True, False)]
    clip = core.mv.FlowFPS(clip, pyramid, vectors[0], vectors[1], num=30, den=1)
with open(sys.argv[2], "wb") as file:
    clip.output(file, y4m=True)
