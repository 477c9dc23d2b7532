#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of Benchmarks/Vivid/run.sh: vivid, with frames counted in the kernel's trace."""
import pathlib
import re
import sys
import tempfile

from peers import Count, Mode, commands, compare, measure

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENTS = [TRACING / "events" / name / "enable" for name in ("v4l2/v4l2_dqbuf", "vb2/vb2_buf_done")]
DEVICE = "/dev/video0"
MODE = Mode(320, 180, 60, "YUYV", "yuyv422", "video/x-raw,format=YUY2")
DONE = re.compile(r"vb2_buf_done: .* owned_by_drv = (\d+), index = (\d+),")
DEQUEUED = re.compile(r"v4l2_dqbuf: minor = 0, index = (\d+),.* sequence = (\d+)$")


def count_trace(lines):
    """The dequeued frames, and the frames missing between their sequence numbers."""
    delivered = lost = starved = repeated = 0
    last = -1
    # For each filled buffer, the number of buffers that the driver had left.
    left = {}
    spare = 1
    for line in lines:
        if done := DONE.search(line):
            left[done[2]] = int(done[1])
        elif dequeued := DEQUEUED.search(line):
            delivered += 1
            number = int(dequeued[2])
            if number < last:  # Each stream restarts at 0.
                last, spare, repeated = -1, 1, 0
            if number == last:  # A late vivid repeats a number and skips one later.
                repeated += 1
            missing = max(0, number - last - 1)
            made_up = min(missing, repeated)
            repeated -= made_up
            lost += missing - made_up
            if spare == 0:
                starved += missing - made_up
            last, spare = number, left.pop(dequeued[1], 1)
    return Count(delivered, lost, starved)


def count():
    """Counts the frames of the last run, and empties the trace."""
    overruns = [
        line for file in TRACING.glob("per_cpu/cpu*/stats")
        for line in file.read_text().splitlines() if re.match(r"overrun: [1-9]", line)]
    if overruns:
        sys.exit("vivid: the kernel's trace overflowed; measure for a shorter time")
    frames = count_trace((TRACING / "trace").read_text().splitlines())
    (TRACING / "trace").write_text("\n")
    return frames


def main():
    seconds, rounds = int(sys.argv[1]), int(sys.argv[2])
    # The trace size required for a minute at this rate.
    (TRACING / "buffer_size_kb").write_text("16384\n")
    (TRACING / "trace").write_text("\n")
    for event in EVENTS:
        event.write_text("1\n")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "take"
        # The first run of each program waits for its pages from the host, so it is not measured.
        for arguments in commands(DEVICE, MODE, 1, out).values():
            measure(arguments, out, count, {})
        print(f"{seconds} s a run, median of {rounds} rounds in turn")
        compare("320x180@60 YUYV", DEVICE, MODE, seconds, rounds, folder, count, {})


main()
