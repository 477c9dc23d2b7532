# SPDX-License-Identifier: Apache-2.0
"""The common part of the capture comparisons: the command line of each program, its cost, and the
table. Each comparison provides the camera and the frame counts."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
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
    # The processor time of the program alone and the elapsed time, in microseconds; None if it ended
    # before the window did.
    window: tuple[float, float] | None


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


def processor_time(pid):
    """The processor time of a running process in seconds; see clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def has_ended(process):
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def measure(arguments, out, count, environment, window=()):
    """Runs a program, counts its frames, and removes its files.

    `window` has two times in seconds after the file has data, or after the start of a program that
    writes no file. The processor time between them is measured."""
    process = subprocess.Popen(
        arguments, env=dict(os.environ, **environment), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    has_file = any(str(out) in argument for argument in arguments)
    while window and has_file and not has_ended(process):
        if any(file.stat().st_size > 0 for file in out.parent.glob(out.name + ".*")):
            break
        time.sleep(0.01)
    began, marks = time.monotonic(), []
    for mark in window:
        time.sleep(max(0, began + mark - time.monotonic()))
        if has_ended(process):
            break
        marks.append((processor_time(process.pid), time.monotonic()))
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    frames = count()
    for file in out.parent.glob(out.name + ".*"):
        file.unlink()
    return Run(
        process.returncode, errors.decode(errors="replace")[-300:], frames,
        (usage.ru_utime + usage.ru_stime) * 1e6, usage.ru_maxrss / 1024,
        tuple((after - before) * 1e6 for before, after in zip(*marks)) if len(marks) == 2 else None)


# Programs that run in the first round alone: they are beside no goal.
ONCE = ["gstreamer", "v4l2-ctl, no file"]
# The seconds of a take that are not part of the cost per frame. In the first one, frames fill memory
# that was never used before.
LEAD, TAIL = 1, 0.5


def compare(title, device, mode, seconds, rounds, folder, count, environment):
    """Runs each program in turn, `rounds` times, and prints a table of medians.

    `count` is called after each run and returns the frames of that run. The start of a program is
    not part of the cost per frame, which is taken from a window within the take. The rest of the
    processor time is the start and the end. A further column shows the cost with them."""
    if seconds < 2 or rounds < 1:
        sys.exit("takes have at least 2 seconds, and there is at least 1 round")
    out = pathlib.Path(folder) / "take"
    results = {}
    for turn in range(rounds):
        for name, arguments in commands(device, mode, seconds, out).items():
            if turn > 0 and name in ONCE:
                continue
            results.setdefault(name, []).append(
                measure(arguments, out, count, environment, (LEAD, seconds - TAIL)))
    print(f"\n{title}")
    print(HEADER)
    for name, runs in results.items():
        print(f"{name:20}{row(runs, mode.rate)}", flush=True)
    good = {name: runs for name, runs in results.items() if not any(map(failure, runs))}
    if "slowmo" not in good:
        return
    costs = {name: [frame_cost(run, mode.rate) for run in runs] for name, runs in good.items()}
    losses = {name: [run.count.lost for run in runs] for name, runs in good.items()}
    ours, lost = costs.pop("slowmo"), losses.pop("slowmo")
    is_met = "ffmpeg" in costs and statistics.median(ours) < statistics.median(costs["ffmpeg"])
    figures.add(f"{title}: processor time a frame", ours, "µs", costs, "< 1 ffmpeg", is_met)
    figures.add(f"{title}: frames lost", lost, "", losses, "0", max(lost) == 0)


def failure(run):
    """What went wrong in a run; empty if nothing."""
    if run.status != 0:
        return f"failed: {run.error.strip().splitlines()[-1:]}"
    if run.count.delivered == 0:
        return "no frames"
    return "ended early" if run.window is None else ""


def frame_cost(run, rate):
    """The microseconds of processor time for each delivered frame of the window."""
    spent, elapsed = run.window
    share = run.count.delivered / (run.count.delivered + run.count.lost)
    return spent / (elapsed / 1e6 * rate * share)


HEADER = (
    f"{'':20}{'delivered':>10}{'lost':>8}{'starved':>9}{'us a frame':>12}{'start ms':>10}"
    f"{'with start':>12}"
    f"{'peak MiB':>10}")


def row(runs, rate):
    """The medians of a program's takes, or the error of the first failed run."""
    errors = list(filter(None, map(failure, runs)))
    if errors:
        return errors[0]
    costs = [frame_cost(run, rate) for run in runs]
    start_costs = [(run.microseconds - cost * run.count.delivered) / 1_000
                   for cost, run in zip(costs, runs)]
    whole_costs = [run.microseconds / run.count.delivered for run in runs]
    counts = [statistics.median(column) for column in zip(*(run.count for run in runs))]
    memory = statistics.median(run.mebibytes for run in runs)
    return (
        f"{counts[0]:>10.0f}{counts[1]:>8.0f}{counts[2]:>9.0f}"
        f"{statistics.median(costs):>12.1f}{statistics.median(start_costs):>10.0f}"
        f"{statistics.median(whole_costs):>12.1f}"
        f"{memory:>10.1f}")
