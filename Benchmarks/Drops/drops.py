# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Drops/run.sh: losses over rate, size, pixel format and load."""
import os
import pathlib
import subprocess
import sys

import figures
import heat_map
from peers import Mode, camera_count, commands, measure

WORK = pathlib.Path(os.environ["WORK"])
TRUTH = WORK / "take.truth"
PROGRAMS = ["slowmo", "ffmpeg", "gstreamer", "v4l2-ctl"]
SIZES = [(640, 480), (1280, 720), (1920, 1080)]
RATES = [240, 480, 960]
# V4L2's, FFmpeg's and GStreamer's names, and the bytes of a frame per pixel.
FORMATS = {
    "MJPEG": ("MJPG", "mjpeg", "image/jpeg", 1 / 9),
    "YUYV": ("YUYV", "yuyv422", "video/x-raw,format=YUY2", 2),
}
LOADS = ["idle", "load"]


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def lost_share(program, name, size, rate, seconds):
    """The share of the camera's frames that a program lost: 1 if it failed, None if the recording
    would not fit into memory."""
    fourcc, ffmpeg, caps, share = FORMATS[name]
    frame_bytes = int(size[0] * size[1] * share)
    if frame_bytes * rate * seconds > free_bytes() / 2:
        return None
    mode = Mode(*size, rate, fourcc, ffmpeg, caps)
    environment = {
        "LD_PRELOAD": str(WORK / "libfakevideo.so"), "FAKEVIDEO_TRUTH": str(TRUTH),
        "FAKEVIDEO": f"any-mode mjpegbytes={frame_bytes}"}
    out = WORK / "take"
    run = measure(
        commands("/dev/fakevideo0", mode, seconds, out)[program], out, lambda: camera_count(TRUTH),
        environment)
    if run.status != 0 or run.count.delivered == 0:
        print(f"{program} failed at {size[0]}x{size[1]}@{rate} {name}: "
              f"{run.error.strip().splitlines()[-1:]}", file=sys.stderr)
        return 1.0
    return run.count.lost / (run.count.delivered + run.count.lost)


def busy_programs(load):
    count = os.cpu_count() if load == "load" else 0
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def main():
    seconds, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    panels = {}
    print(f"lost frames in {seconds} s, percent; 100 if a program failed,"
          " - where a take does not fit into memory")
    for load in LOADS:
        busy = busy_programs(load)
        try:
            for name in FORMATS:
                print(f"\n{name}, {load}")
                print(f"{'':22}" + "".join(f"{program:>12}" for program in PROGRAMS))
                for size in SIZES:
                    for rate in RATES:
                        row = [lost_share(program, name, size, rate, seconds)
                               for program in PROGRAMS]
                        for program, share in zip(PROGRAMS, row):
                            panels[program, name, load, size, rate] = share
                        print(f"{f'{size[0]}x{size[1]}@{rate}':22}" + "".join(
                            f"{'-' if share is None else f'{share * 100:.2f}':>12}"
                            for share in row), flush=True)
        finally:
            for process in busy:
                process.kill()
                process.wait()
    rows = [(name, load) for load in LOADS for name in FORMATS]
    (folder / "drops.svg").write_text(heat_map.drawing(panels, PROGRAMS, rows, SIZES, RATES))
    # A mode counts if its recordings fit into memory.
    shared = [mode for mode in {key[1:] for key in panels}
              if all(panels[(program, *mode)] is not None for program in PROGRAMS)]
    clean = {program: sum(panels[(program, *mode)] == 0 for mode in shared)
             for program in PROGRAMS}
    lost = {program: sum(panels[(program, *mode)] for mode in shared) / max(1, len(shared)) * 100
            for program in PROGRAMS}
    print(f"\nof {len(shared)} modes: without a loss " + ", ".join(
        f"{program} {clean[program]}" for program in PROGRAMS))
    for name, unit, found in [
            (f"modes without a lost frame, of {len(shared)}", "", clean),
            ("frames lost, mean over the modes", "%", lost)]:
        figures.add(name, found["slowmo"], unit,
                    {program: value for program, value in found.items() if program != "slowmo"})


main()
