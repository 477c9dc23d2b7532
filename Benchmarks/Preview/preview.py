#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Preview/run.sh: programs that show a simulated camera."""
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import time

import figures

WORK = pathlib.Path(os.environ["WORK"])
DISPLAY = ":97"
WIDTH, HEIGHT = 640, 480
DEVICE = "/dev/fakevideo0"
# The goals of our preview in milliseconds: the median and the 95th percentile.
GOALS = (5, 10)
PROGRAMS = {
    "slowmo": [os.environ["SLOWMO"], "preview", DEVICE, "--mode", "640x480/yuyv", "--audio", "none"],
    "mpv": ["mpv", "--no-config", "--no-audio", "--vo=x11", "--no-border",
            f"av://v4l2:{DEVICE}", "--demuxer-lavf-o=video_size=640x480,input_format=yuyv422"],
    "mpv low latency": [
        "mpv", "--no-config", "--no-audio", "--vo=x11", "--no-border", "--profile=low-latency",
        "--untimed", f"av://v4l2:{DEVICE}",
        "--demuxer-lavf-o=video_size=640x480,input_format=yuyv422"],
    "ffplay": ["ffplay", "-loglevel", "quiet", "-f", "v4l2", "-input_format", "yuyv422",
               "-video_size", "640x480", "-noborder", "-left", "0", "-top", "0", DEVICE],
    "GStreamer": ["gst-launch-1.0", "-q", "v4l2src", f"device={DEVICE}", "!",
                  "video/x-raw,format=YUY2,width=640,height=480", "!", "videoconvert", "!",
                  "ximagesink"],
    "GStreamer sync=false": [
        "gst-launch-1.0", "-q", "v4l2src", f"device={DEVICE}", "!",
        "video/x-raw,format=YUY2,width=640,height=480", "!", "videoconvert", "!", "ximagesink",
        "sync=false"],
}


class XImage(ctypes.Structure):
    """The start of Xlib's structure, up to the pixels."""
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int), ("xoffset", ctypes.c_int),
                ("format", ctypes.c_int), ("data", ctypes.POINTER(ctypes.c_ubyte))]


class Screen:
    """The pixels of the X server."""

    def __init__(self):
        self.x11 = ctypes.CDLL("libX11.so.6")
        self.x11.XOpenDisplay.restype = ctypes.c_void_p
        self.x11.XDefaultRootWindow.restype = ctypes.c_ulong
        self.x11.XDefaultRootWindow.argtypes = [ctypes.c_void_p]
        self.x11.XGetImage.restype = ctypes.POINTER(XImage)
        self.x11.XGetImage.argtypes = [
            ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_int, ctypes.c_uint,
            ctypes.c_uint, ctypes.c_ulong, ctypes.c_int]
        self.x11.XDestroyImage.argtypes = [ctypes.POINTER(XImage)]
        self.display = self.x11.XOpenDisplay(DISPLAY.encode())
        if not self.display:
            sys.exit("preview: the X server does not answer")
        self.root = self.x11.XDefaultRootWindow(self.display)

    def time(self):
        """The painted time in units of 100 us, or None if the pixels are not those of a frame."""
        # One row: a program that draws a frame while it is read changes later rows first or last.
        image = self.x11.XGetImage(
            self.display, self.root, 0, HEIGHT // 2, WIDTH, 1, 0xFFFFFFFF, 2)
        if not image:
            return None
        value = 0
        for column in range(4):
            offset = (WIDTH * (2 * column + 1) // 8) * 4
            blue, green, red = (image.contents.data[offset + index] for index in range(3))
            step = green * 219 / 255 / 13
            if max(blue, green, red) - min(blue, green, red) > 12 or abs(step - round(step)) > 0.3:
                value = None
                break
            value = value << 4 | round(step)
        self.x11.XDestroyImage(image)
        return value


def latencies(screen, seconds):
    """The milliseconds from each new frame to its first pixels."""
    found, last = [], None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shown = screen.time()
        now = time.monotonic()
        if shown is not None and shown != last:
            if last is not None:
                found.append((int(now * 10_000) - shown) % 65_536 / 10)
            last = shown
        time.sleep(0.0003)
    return found


def measure(screen, name, command, seconds):
    environment = dict(
        os.environ, DISPLAY=DISPLAY, LD_PRELOAD=str(WORK / "libfakevideo.so"),
        FAKEVIDEO="uvc-webcam lie=60 paint=1", SDL_RENDER_DRIVER="software",
        SDL_VIDEODRIVER="x11")
    with open(WORK / "errors", "w") as errors:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors)
        time.sleep(2)
        found = latencies(screen, seconds)
        process.terminate()
        process.wait()
    if len(found) < 20:
        print(f"{name:22} no frames seen: {(WORK / 'errors').read_text()[-200:].strip()}")
        return None
    found.sort()
    delays = statistics.median(found), found[len(found) * 95 // 100]
    print(f"{name:22} median {delays[0]:5.1f} ms   95 % {delays[1]:5.1f} ms   "
          f"{len(found) / seconds:4.0f} shown/s")
    return delays


def main():
    seconds = float(sys.argv[1])
    server = subprocess.Popen(
        ["Xvfb", DISPLAY, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        screen = Screen()
        print("640x480 at 60 fps, from the camera's frame to the pixels on screen:")
        delays = {name: measure(screen, name, command, seconds)
                  for name, command in PROGRAMS.items()}
        ours = next(iter(delays.values()))
        met = ours is not None and all(one <= goal for one, goal in zip(ours, GOALS))
        print(f"goal of slowmo: median {GOALS[0]} ms, 95 % {GOALS[1]} ms: "
              f"{'met' if met else 'missed'}")
        if ours is not None:
            peers = {name: found[0] for name, found in list(delays.items())[1:] if found}
            figures.add("from the camera's frame to the screen, median", ours[0], "ms", peers,
                        f"<= {GOALS[0]}", met)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
