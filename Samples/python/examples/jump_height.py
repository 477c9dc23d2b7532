#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The height of a jump from its time of flight: h = g T² / 8.

The times of flight are those between contacts of a colored marker with the ground, or between two
frames that were chosen by eye. The center of gravity rises by h if the body lands in the posture in
which it took off. Bent knees at the landing make h too large.

  jump_height.py take.mov
  jump_height.py take.mov --frames 52,188     # the first in the air, the first on the ground again
"""

from __future__ import annotations

import argparse
import math

from tracking import Value, capture_times, contacts, event, frame_numbers, main, track

#: Between the equator and the poles, in meters per second squared.
EARTH = Value(9.806, 0.026 / math.sqrt(3))


def height(flight: Value, gravity: Value) -> Value:
    """The height in meters."""
    value = gravity.value * flight.value**2 / 8
    relative = math.hypot(2 * flight.uncertainty / flight.value,
                          gravity.uncertainty / gravity.value)
    return Value(value, value * relative)


def measure(options: argparse.Namespace) -> dict[str, Value]:
    """The height and the time of each jump."""
    if options.frames:
        times = capture_times(options)
        events = [event(times, index) for index in frame_numbers(options.frames)]
        if len(events) % 2 or len(events) < 2:
            raise ValueError("--frames needs two frames for each jump")
        flights = [landing - takeoff for takeoff, landing in zip(events[::2], events[1::2])]
    else:
        touched = contacts(track(options))
        flights = [later - earlier for earlier, later in zip(touched, touched[1:])]
    if not flights or min(flight.value for flight in flights) <= 0:
        raise ValueError("no flight between two contacts was found")
    gravity = EARTH if options.gravity is None else Value(options.gravity, 0)
    results = {}
    for number, flight in enumerate(flights, 1):
        results[f"jump {number} height"] = height(flight, gravity)
        results[f"jump {number} flight"] = flight
    return results


class Units(dict[str, str]):
    """Heights are in meters, all other results in seconds."""

    def __missing__(self, name: str) -> str:
        return "m" if name.endswith("height") else "s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", help="the first frames of each flight and of each landing")
    parser.add_argument("--gravity", type=float, metavar="G",
                        help="the exact local gravity in m/s² (default: anywhere on Earth)")
    main(__doc__, parser, measure, Units())
