#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what Benchmarks/capture.sh compares, and prints a table a mode."""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

WORK = pathlib.Path(os.environ["WORK"])
SLOWMO = os.environ["SLOWMO"]
DEVICE = "/dev/fakevideo0"

# Name, camera, width, height, rate, V4L2's, FFmpeg's and GStreamer's names of the format.
MODES = [
    ("1280x720@240 MJPEG of 100 kB", "hfr-usb", 1280, 720, 240, "MJPG", "mjpeg", "image/jpeg"),
    ("640x400@480 8-bit", "mono-hfr", 640, 400, 480, "GREY", "gray", "video/x-raw,format=GRAY8"),
    ("1920x1080@120 YUYV", "yuyv-1080p120", 1920, 1080, 120, "YUYV", "yuyv422",
     "video/x-raw,format=YUY2"),
]


def commands(mode, seconds, out):
    """What each program is told to do for the same take."""
    _, _, width, height, rate, fourcc, ffmpeg_name, caps = mode
    frames = rate * seconds
    is_jpeg = fourcc == "MJPG"
    ffmpeg_format = ["-input_format", ffmpeg_name]
    set_mode = [
        f"--set-fmt-video=width={width},height={height},pixelformat={fourcc}", f"--set-parm={rate}"]
    return {
        "slowmo": [
            SLOWMO, "record", DEVICE, "--mode", f"{width}x{height}@{rate}/{fourcc.lower()}",
            "--codec", "copy" if is_jpeg else "raw", "-t", str(seconds), "-o", f"{out}.mov", "-y",
            "--progress", "none"],
        "ffmpeg": [
            "ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "v4l2", *ffmpeg_format, "-framerate",
            str(rate), "-video_size", f"{width}x{height}", "-i", DEVICE, "-t", str(seconds),
            "-c", "copy", "-vsync", "passthrough", f"{out}.mov" if is_jpeg else f"{out}.nut"],
        "gstreamer": [
            "gst-launch-1.0", "-q", "v4l2src", f"device={DEVICE}", f"num-buffers={frames}", "!",
            f"{caps},width={width},height={height},framerate={rate}/1", "!", "queue",
            "max-size-buffers=0", "max-size-time=0", "max-size-bytes=268435456", "!",
            *(["qtmux", "!"] if is_jpeg else []),
            "filesink", f"location={out}.{'mov' if is_jpeg else 'raw'}"],
        "v4l2-ctl": [
            "v4l2-ctl", "-d", DEVICE, *set_mode, "--stream-mmap=32", f"--stream-count={frames}",
            f"--stream-to={out}.raw"],
        "v4l2-ctl, no file": [
            "v4l2-ctl", "-d", DEVICE, *set_mode, "--stream-mmap=32", f"--stream-count={frames}"],
    }


def measure(mode, arguments, out):
    """One run: the camera's account, the processor time and the peak memory of the program."""
    truth = out.with_suffix(".truth")
    environment = dict(
        os.environ, LD_PRELOAD=str(WORK / "libfakevideo.so"), FAKEVIDEO=mode[1],
        FAKEVIDEO_TRUTH=str(truth))
    process = subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    result = {"status": process.returncode, "error": errors.decode(errors="replace")[-300:]}
    delivered = lost = 0
    for line in truth.read_text().splitlines() if truth.exists() else []:
        entry = json.loads(line)
        delivered += entry["delivered"]
        lost += entry["lost_device"] + entry["lost_kernel"]
    for file in WORK.glob(out.name + ".*"):
        file.unlink()
    result.update(
        delivered=delivered, lost=lost, memory=usage.ru_maxrss / 1024,
        cpu=(usage.ru_utime + usage.ru_stime) / max(1, delivered) * 1e6)
    return result


def main():
    seconds, rounds = int(sys.argv[1]), int(sys.argv[2])
    print(f"{seconds} s a run, median of {rounds} rounds in turn, files in memory")
    for mode in MODES:
        results = {}
        for _ in range(rounds):
            out = WORK / "take"
            for name, arguments in commands(mode, seconds, out).items():
                results.setdefault(name, []).append(measure(mode, arguments, out))
        print(f"\n{mode[0]}")
        print(f"{'':20}{'delivered':>10}{'lost':>8}{'us a frame':>12}{'peak MiB':>10}")
        for name, runs in results.items():
            failed = [run for run in runs if run["status"] != 0]
            if failed:
                print(f"{name:20}failed: {failed[0]['error'].strip().splitlines()[-1:]}")
                continue

            def median(key, runs=runs):
                return statistics.median(run[key] for run in runs)

            print(
                f"{name:20}{median('delivered'):>10.0f}{median('lost'):>8.0f}"
                f"{median('cpu'):>12.1f}{median('memory'):>10.1f}")


main()
