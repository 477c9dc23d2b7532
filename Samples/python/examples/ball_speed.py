#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mean speed of a ball between two marks of a known distance.

The marks are two columns or two rows of the image. They are in the plane of the motion, which is at
right angles to the camera. A row or a column is read from the image with an error of at most half a
pixel. The center of the ball has a standard uncertainty of a quarter of a pixel. The distortion of
the lens is not corrected.

  ball_speed.py take.mov --rows 178,307 --distance 0.5
  ball_speed.py take.mov --columns 200,1100 --distance 3.66 --distance-error 0.01
  ball_speed.py take.mov --frames 52,188 --distance 3.66     # the first frames behind each mark
"""

from __future__ import annotations

import argparse
import math

from tracking import Value, capture_times, event, frame_numbers, main, passes, track


def measure(options: argparse.Namespace) -> dict[str, Value]:
    """The speed, and the time between the marks."""
    if options.frames:
        times = capture_times(options)
        first, second = (event(times, index) for index in frame_numbers(options.frames))
    else:
        axis = "x" if options.columns else "y"
        marks = [float(part) for part in (options.columns or options.rows or "").split(",") if part]
        if len(marks) != 2 or marks[0] == marks[1]:
            raise ValueError("give two different marks: --rows A,B or --columns A,B")
        path = track(options)
        events = sorted(
            [(time, mark) for mark in marks for time in passes(path, axis, mark)],
            key=lambda passed: passed[0].value)
        pair = next(((one[0], two[0]) for one, two in zip(events, events[1:])
                     if (one[1], two[1]) == tuple(marks)), None)
        if pair is None:
            raise ValueError("no pass of the first mark and then the second one was found")
        first, second = pair
    duration = second - first
    speed = options.distance / duration.value
    relative = math.hypot(duration.uncertainty / duration.value,
                          options.distance_error / options.distance)
    return {"speed": Value(speed, speed * relative), "time": duration}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", metavar="A,B", help="the rows of the marks, in pixels")
    parser.add_argument("--columns", metavar="A,B", help="the columns of the marks, in pixels")
    parser.add_argument("--frames", metavar="A,B", help="the first frames behind each mark")
    parser.add_argument("--distance", type=float, required=True, metavar="M",
                        help="the distance of the marks in meters")
    parser.add_argument("--distance-error", type=float, default=0, metavar="M",
                        help="the standard uncertainty of the distance in meters (default: 0)")
    main(__doc__, parser, measure, {"speed": "m/s", "time": "s"})
