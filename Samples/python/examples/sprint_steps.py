#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The times of steps, and the cadence.

A step begins when a colored marker on the shoe touches the ground, or with a frame that was chosen
by eye.

  sprint_steps.py take.mov
  sprint_steps.py take.mov --frames 52,104,155     # the first frames of each contact
"""

from __future__ import annotations

import argparse

from tracking import Value, capture_times, contacts, event, frame_numbers, main, track


def measure(options: argparse.Namespace) -> dict[str, Value]:
    """The time of each contact, the time of each step, and the cadence."""
    if options.frames:
        times = capture_times(options)
        touched = [event(times, index) for index in frame_numbers(options.frames)]
    else:
        touched = contacts(track(options))
    if len(touched) < 2:
        raise ValueError(f"a step needs two contacts, but {len(touched)} were found")
    results = {f"contact {number}": time for number, time in enumerate(touched, 1)}
    steps = [later - earlier for earlier, later in zip(touched, touched[1:])]
    results |= {f"step {number}": step for number, step in enumerate(steps, 1)}
    total = touched[-1] - touched[0]
    cadence = 60 * len(steps) / total.value
    results["cadence"] = Value(cadence, cadence * total.uncertainty / total.value)
    return results


class Units(dict[str, str]):
    """The cadence is in steps per minute, all other results in seconds."""

    def __missing__(self, name: str) -> str:
        return "steps/min" if name == "cadence" else "s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", help="the first frames of each contact")
    main(__doc__, parser, measure, Units())
