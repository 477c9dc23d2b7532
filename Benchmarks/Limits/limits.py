#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Limits/run.sh: long takes next to a busy core, and maximum
rates."""
import json
import os
import pathlib
import subprocess
import sys

import figures

WORK = pathlib.Path(os.environ["WORK"])

# The camera, mode and codec of each long take.
LONG = [
    ("hfr-usb", "1280x720@240/mjpg", "copy"),
    ("mono-hfr", "640x400@480/grey", "raw"),
]
SIZES = ["320x240", "640x480", "1280x720", "1920x1080"]
# The names of pixel formats in figures.
NAMES = {"mjpg": "MJPEG", "grey": "8-bit", "yuyv": "YUYV"}
# The pixel format and codec of each storage method.
STORES = [("mjpg", "copy"), ("grey", "raw"), ("yuyv", "raw"), ("yuyv", "ffv1"), ("yuyv", "h264")]
SEARCH_START = 60


def bench(device, mode, codec, seconds, *more, **environment):
    """The report of `slowmo bench capture`."""
    done = subprocess.run(
        [os.environ["SLOWMO"], "bench", "capture", device, "--mode", mode, "--codec", codec, "-t",
         str(seconds), "--folder", str(WORK), "--json", *more],
        env=dict(os.environ, **environment), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{mode}: slowmo bench capture: {done.stderr.strip()}")
    return json.loads(done.stdout)


def long_takes(seconds):
    print(f"{seconds} s of a fake camera at its own pace, another program busy on a core")
    print(f"{'mode':22}{'frames':>8}{'lost':>6}{'p50':>7}{'p99':>7}{'p99.9':>7}{'longest':>9}"
          f"{'threads':>9}{'memory':>9}{'grown':>8}")
    print(f"{'':28}{'':8}{'us from dequeue to requeue':>30}{'us':>9}{'MiB':>9}{'MiB':>8}")
    for camera, mode, codec in LONG:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            try:
                report = bench(
                    "/dev/fakevideo0", mode, codec, seconds, FAKEVIDEO=camera,
                    LD_PRELOAD=str(WORK / "libfakevideo.so"))
            finally:
                busy.kill()
        latency = report["latency"]
        times = [latency[key] / 1_000 for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")]
        threads = report["capture_thread_ns_per_frame"] + report["writer_thread_ns_per_frame"]
        grown = report["memory_growth_bytes"]
        print(f"{mode:22}{report['frames']:8}{report['drops']:6}"
              f"{times[0]:7.0f}{times[1]:7.0f}{times[2]:7.0f}{times[3]:9.0f}{threads / 1_000:9.0f}"
              f"{report['peak_memory_bytes'] / 2**20:9.0f}"
              f"{'-' if grown is None else format(grown / 2**20, '.1f'):>8}")
        size, _, form = mode.partition("/")
        figures.add(f"{size} {NAMES[form]}, {seconds} s next to a busy core: frames lost", report["drops"], "",
                    goal="0", met=report["drops"] == 0)


def limits(seconds):
    print(f"\nhighest rate of the synthetic camera without a loss in {seconds} s, frames a second")
    print(f"{'':12}" + "".join(f"{form + ' ' + codec:>12}" for form, codec in STORES))
    for size in SIZES:
        cells = []
        for form, codec in STORES:
            report = bench(
                "synthetic", f"{size}@{SEARCH_START}/{form}", codec, seconds, "--find-limit")
            cells.append(report["limit_fps"])
            if report["limit_fps"] is not None:
                figures.add(f"highest rate of {size} {NAMES[form]} to {codec} in takes of {seconds} s",
                            report["limit_fps"], "fps")
        print(f"{size:12}" + "".join(f"{'-' if cell is None else round(cell):>12}" for cell in cells))


def main():
    long_takes(int(sys.argv[1]))
    limits(float(sys.argv[2]))


main()
