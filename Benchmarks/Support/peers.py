# SPDX-License-Identifier: Apache-2.0
"""The common part of the capture comparisons: the command line of each program, its cost, and the
table. Each comparison provides the camera and the frame counts."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import typing

import figures


class Mode(typing.NamedTuple):
    """A capture mode, with the format names of V4L2, FFmpeg and GStreamer."""

    width: int
    height: int
    rate: int
    fourcc: str
    ffmpeg: str
    caps: str


class Count(typing.NamedTuple):
    """The frames of one run, counted at their source."""

    delivered: int
    lost: int
    # The losses for which the driver had no free buffer.
    starved: int


def camera_count(truth):
    """The counts of the simulated camera for a run, from one JSON line per stream."""
    lines = truth.read_text().splitlines() if truth.exists() else []
    truth.unlink(missing_ok=True)
    entries = [json.loads(line) for line in lines]
    starved = sum(entry["lost_kernel"] for entry in entries)
    lost = starved + sum(entry["lost_device"] for entry in entries)
    return Count(sum(entry["delivered"] for entry in entries), lost, starved)


class Run(typing.NamedTuple):
    """One run of a program, with the cost of the program and its children."""

    status: int
    error: str
    count: Count
    microseconds: float
    mebibytes: float


def commands(device, mode, seconds, out):
    """The command line of each program, for the same recording."""
    width, height, rate = mode.width, mode.height, mode.rate
    frames = rate * seconds
    is_jpeg = mode.fourcc == "MJPG"
    v4l2_ctl = [
        "v4l2-ctl", "-d", device,
        f"--set-fmt-video=width={width},height={height},pixelformat={mode.fourcc}",
        f"--set-parm={rate}", "--stream-mmap=32", f"--stream-count={frames}"]
    return {
        "slowmo": [
            os.environ["SLOWMO"], "record", device, "--mode",
            f"{width}x{height}@{rate}/{mode.fourcc.lower()}",
            "--codec", "copy" if is_jpeg else "raw", "-t", str(seconds), "-o", f"{out}.mov", "-y",
            "--progress", "none"],
        "ffmpeg": [
            "ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "v4l2", "-input_format", mode.ffmpeg,
            "-framerate", str(rate), "-video_size", f"{width}x{height}", "-i", device,
            "-t", str(seconds), "-c", "copy", "-vsync", "passthrough",
            f"{out}.mov" if is_jpeg else f"{out}.nut"],
        "gstreamer": [
            "gst-launch-1.0", "-q", "v4l2src", f"device={device}", f"num-buffers={frames}", "!",
            f"{mode.caps},width={width},height={height},framerate={rate}/1", "!", "queue",
            "max-size-buffers=0", "max-size-time=0", "max-size-bytes=268435456", "!",
            *(["qtmux", "!"] if is_jpeg else []),
            "filesink", f"location={out}.{'mov' if is_jpeg else 'raw'}"],
        "v4l2-ctl": [*v4l2_ctl, f"--stream-to={out}.raw"],
        "v4l2-ctl, no file": v4l2_ctl,
    }


def measure(arguments, out, count, environment):
    """Runs a program, counts its frames, and removes its files."""
    process = subprocess.Popen(
        arguments, env=dict(os.environ, **environment), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    frames = count()
    for file in out.parent.glob(out.name + ".*"):
        file.unlink()
    return Run(
        process.returncode, errors.decode(errors="replace")[-300:], frames,
        (usage.ru_utime + usage.ru_stime) * 1e6, usage.ru_maxrss / 1024)


# Programs that run in the first round alone: they are beside no goal.
ONCE = ["gstreamer", "v4l2-ctl, no file"]


def compare(title, device, mode, seconds, rounds, folder, count, environment):
    """Runs each program in turn, `rounds` times, and prints a table of medians.

    `count` is called after each run and returns the frames of that run. The start of a program is
    not part of the cost per frame. Each long take is therefore paired with a take of one second:
    the difference gives the cost per frame, and the rest of the short take is the start. A further
    column shows the cost of the long take including the start."""
    if seconds < 2 or rounds < 1:
        sys.exit("takes have at least 2 seconds, and there is at least 1 round")
    out = pathlib.Path(folder) / "take"
    results = {}
    for turn in range(rounds):
        short_commands = commands(device, mode, 1, out)
        for name, arguments in commands(device, mode, seconds, out).items():
            if turn > 0 and name in ONCE:
                continue
            short = measure(short_commands[name], out, count, environment)
            results.setdefault(name, []).append(
                (short, measure(arguments, out, count, environment)))
    print(f"\n{title}")
    print(HEADER)
    for name, runs in results.items():
        print(f"{name:20}{row(runs)}", flush=True)
    good = {name: pairs for name, pairs in results.items()
            if all(run.status == 0 for pair in pairs for run in pair)}
    if "slowmo" not in good:
        return
    costs = {name: frame_costs(pairs) for name, pairs in good.items()}
    losses = {name: [pair[1].count.lost for pair in pairs] for name, pairs in good.items()}
    ours, lost = costs.pop("slowmo"), losses.pop("slowmo")
    is_met = "ffmpeg" in costs and statistics.median(ours) < statistics.median(costs["ffmpeg"])
    figures.add(f"{title}: processor time a frame", ours, "µs", costs, "< 1 ffmpeg", is_met)
    figures.add(f"{title}: frames lost", lost, "", losses, "0", max(lost) == 0)


def frame_costs(pairs):
    """The microseconds a frame of each pair of a short and a long take, without the start."""
    return [(long.microseconds - short.microseconds)
            / max(1, long.count.delivered - short.count.delivered) for short, long in pairs]


HEADER = (
    f"{'':20}{'delivered':>10}{'lost':>8}{'starved':>9}{'us a frame':>12}{'start ms':>10}"
    f"{'with start':>12}"
    f"{'peak MiB':>10}")


def row(pairs):
    """The medians of a program's short and long takes, or the error of the first failed run."""
    for run in (run for pair in pairs for run in pair):
        if run.status != 0:
            return f"failed: {run.error.strip().splitlines()[-1:]}"
    costs = frame_costs(pairs)
    start_costs = [(short.microseconds - cost * short.count.delivered) / 1_000
                   for cost, (short, _) in zip(costs, pairs)]
    whole_costs = [long.microseconds / max(1, long.count.delivered) for _, long in pairs]
    counts = [statistics.median(column) for column in zip(*(long.count for _, long in pairs))]
    memory = statistics.median(long.mebibytes for _, long in pairs)
    return (
        f"{counts[0]:>10.0f}{counts[1]:>8.0f}{counts[2]:>9.0f}"
        f"{statistics.median(costs):>12.1f}{statistics.median(start_costs):>10.0f}"
        f"{statistics.median(whole_costs):>12.1f}"
        f"{memory:>10.1f}")
