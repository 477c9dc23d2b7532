# SPDX-License-Identifier: Apache-2.0
"""The scripts that measure, on the ball of the synthetic camera, whose motion is known."""

import json
import math
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np
import overcrank
from overcrank import _command
from support import DirectoryTestCase

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
ARTICLE = (EXAMPLES.parent.parent.parent
           / "Sources/Overcrank/Overcrank.docc/Articles/FramesInPython.md")
sys.path.insert(0, str(EXAMPLES))

import ball_speed  # noqa: E402
import jump_height  # noqa: E402
import sprint_steps  # noqa: E402
import tracking  # noqa: E402

#: With more runs, the share of intervals that contain the truth is known better.
RUNS = 100 if os.environ.get("OVERCRANK_FULL") else 3


def options(file, **more):
    """The options of a script."""
    return types.SimpleNamespace(**{
        "file": file, "capture_fps": None, "color": "red", "region": None, "frames": None,
        "gravity": None, "rows": None, "columns": None, "distance": None, "distance_error": 0.0,
        **more})


class Ball:
    """A take of the ball with random parameters, and its true motion."""

    #: As the scene draws it: the radius in meters, and the height of the scene above the ground.
    RADIUS = 0.1
    VISIBLE = 1.5

    def __init__(self, seed):
        rng = random.Random(seed)
        self.width, self.height_px = rng.choice([(320, 240), (640, 480), (642, 362)])
        rate = rng.choice([120, 240, 240, 480])
        self.height = rng.randint(300, 1300) / 1000
        self.period = rng.randint(400, 1000) / 1000
        drop = rng.choice(["0%", "2%", "5%"])
        self.file = overcrank.record(
            f"synthetic:{self.width}x{self.height_px}@{rate}?pace=max&height={self.height}"
            f"&period={self.period}&drop={drop}&seed={seed}",
            f"ball{seed}.mov", duration=3.5 * self.period,
            codec=rng.choice(["auto", "auto", "ffv1", "h264"]))
        # The numbers at the top take rows of 16 and a band below them.
        cells = 16 * -(-32 // max(1, min(32, self.width // 8)))
        top = cells + 32
        self.ground = self.height_px - max(3, (self.height_px - top) // 10)
        self.scale = min((self.ground - top) / self.VISIBLE, self.width / 8 / self.RADIUS)
        self.gravity = 8 * self.height / self.period**2
        self.rng = rng

    def row(self, height):
        """The row in which a viewer sees a height, to a whole pixel."""
        return self.ground - round(height * self.scale)

    def time_at(self, height):
        """The time after a contact at which the center of the rising ball is at a height."""
        share = (height - self.RADIUS) / self.height
        return self.period * (1 - math.sqrt(1 - share)) / 2


class Intervals:
    """Measured values beside the true ones."""

    def __init__(self):
        self.errors = []
        self.half_widths = []

    def add(self, value, truth):
        self.errors.append(value.value - truth)
        self.half_widths.append(value.half_width)

    @property
    def covered(self):
        """The share of intervals that contain the truth."""
        inside = sum(abs(error) <= width for error, width in zip(self.errors, self.half_widths))
        return inside / len(self.errors)

    @property
    def ratio(self):
        """The mean half width, in root mean square errors."""
        rms = math.sqrt(sum(error**2 for error in self.errors) / len(self.errors))
        return sum(self.half_widths) / len(self.half_widths) / rms


class CoverageTests(DirectoryTestCase):
    def test_intervals_contain_the_truth_and_are_not_too_wide(self):
        found = {"height": Intervals(), "speed": Intervals(), "step": Intervals(),
                 "cadence": Intervals()}
        for seed in range(RUNS):
            ball = Ball(seed)
            path = tracking.track(options(ball.file))
            for script in (jump_height, sprint_steps, ball_speed):
                # The marker is followed once for all of them.
                self.enterContext(mock.patch.object(script, "track", lambda _, path=path: path))
            jumps = jump_height.measure(options(ball.file, gravity=ball.gravity))
            found["height"].add(jumps["jump 1 height"], ball.height)
            steps = sprint_steps.measure(options(ball.file))
            found["step"].add(steps["step 1"], ball.period)
            found["cadence"].add(steps["cadence"], 60 / ball.period)
            low = ball.RADIUS + ball.rng.uniform(0.1, 0.4) * ball.height
            high = ball.RADIUS + ball.rng.uniform(0.5, 0.8) * ball.height
            speed = ball_speed.measure(options(
                ball.file, rows=f"{ball.row(low)},{ball.row(high)}", distance=high - low))["speed"]
            found["speed"].add(speed, (high - low) / (ball.time_at(high) - ball.time_at(low)))
            os.remove(ball.file)
        for name, intervals in found.items():
            print(f"{name}: {100 * intervals.covered:.0f} % of {RUNS} intervals contain the truth; "
                  f"mean half width {intervals.ratio:.2f} RMS errors", file=sys.stderr)
        for name, intervals in found.items():
            # With few runs, one interval may miss the truth.
            self.assertGreaterEqual(intervals.covered, 0.95 if RUNS >= 100 else 1 - 1 / RUNS, name)
            if RUNS >= 100:
                self.assertLessEqual(intervals.ratio, 3, name)


class EventTests(unittest.TestCase):
    """Events that were chosen by eye, in simulated takes with lost frames."""

    def test_intervals_contain_the_truth_and_are_not_too_wide(self):
        rng = random.Random(1)
        found = Intervals()
        for _ in range(2000):
            times = np.array([number / 240 for number in range(240) if rng.random() > 0.1])
            takeoff, landing = rng.uniform(0.1, 0.3), rng.uniform(0.5, 0.7)
            first, last = (int(np.searchsorted(times, time)) for time in (takeoff, landing))
            flight = tracking.event(times, last) - tracking.event(times, first)
            found.add(flight, landing - takeoff)
        self.assertGreaterEqual(found.covered, 0.95)
        self.assertLessEqual(found.ratio, 3)


class PassTests(unittest.TestCase):
    def test_a_pass_at_the_end_of_the_file_is_left_out(self):
        times = np.arange(100) / 240
        y = np.where(times < 0.2, 1000 * times, 1000 * (0.4 - times))
        path = tracking.Track(times, np.zeros(100), y)
        self.assertEqual(len(tracking.passes(path, "y", 100.5)), 2)
        first, second = tracking.passes(path, "y", 100.5)
        self.assertAlmostEqual(first.value, 0.1005)
        self.assertAlmostEqual(second.value, 0.2995)
        rows = np.arange(10.0)
        ended = tracking.Track(rows / 60, np.zeros(10), rows)
        self.assertEqual(len(tracking.passes(ended, "y", 4.5)), 1)
        self.assertEqual(tracking.passes(ended, "y", 8.5), [])


class ScriptTests(DirectoryTestCase):
    """The scripts as programs."""

    def run_script(self, *arguments, fails=False):
        result = subprocess.run(
            [sys.executable, EXAMPLES / arguments[0], *arguments[1:]], capture_output=True,
            text=True)
        self.assertEqual(bool(result.returncode), fails, result.stderr)
        return result.stderr if fails else result.stdout

    def test_the_commands_of_the_documentation(self):
        text = ARTICLE.read_text("utf-8")
        commands = re.findall(r"^(?:slowmo record|Samples/python/examples/).*$", text, re.M)
        self.assertEqual(len(commands), 3)
        program = shlex.quote(_command.program())
        outputs = []
        for command in commands:
            command = command.replace("slowmo record synthetic:640x480@240",
                                      f"{program} record 'synthetic:640x480@240?pace=max'")
            command = command.replace("Samples/python/examples/", f"{sys.executable} {EXAMPLES}/")
            outputs.append(subprocess.run(
                command, shell=True, check=True, capture_output=True, text=True).stdout)
        self.assertRegex(outputs[1], r"^jump 1 height: 1\.22\d* ± 0\.000\d* m\n")
        self.assertRegex(outputs[2], r"^speed: 3\.\d* ± 0\.0\d* m/s\n")

    def test_json(self):
        overcrank.record("synthetic:320x240@240?pace=max&period=0.5&height=0.3", "ball.mov",
                         duration=1.8)
        result = json.loads(self.run_script("sprint_steps.py", "ball.mov", "--json"))
        self.assertEqual(result["cadence"]["unit"], "steps/min")
        self.assertAlmostEqual(result["cadence"]["value"], 120, 1)
        self.assertLess(result["cadence"]["half_width_95"], 0.2)

    def test_slow_motion_is_not_measured_as_if_it_were_real_time(self):
        overcrank.record("synthetic:320x240@240?pace=max&period=0.5&height=0.3", "ball.mov",
                         duration=1.8)
        overcrank.retime("ball.mov", "slow.mov", speed=0.125, copy=True)
        subprocess.run(
            ["ffmpeg", "-v", "error", "-i", "slow.mov", "-map_metadata", "-1", "-c", "copy", "bare.mov"],
            check=True)
        message = self.run_script("sprint_steps.py", "bare.mov", "--json", fails=True)
        self.assertIn("--capture-fps", message)
        # The time map of the first clip has the capture times.
        for arguments in (("slow.mov",), ("bare.mov", "--capture-fps", "240")):
            result = json.loads(self.run_script("sprint_steps.py", *arguments, "--json"))
            self.assertAlmostEqual(result["cadence"]["value"], 120, 1)

    def test_a_take_without_a_marker_is_refused(self):
        overcrank.record("synthetic:320x240@240?pace=max", "ball.mov", duration=0.5)
        for arguments, words in (
                (("sprint_steps.py", "ball.mov", "--color", "blue"), "blue"),
                (("sprint_steps.py", "ball.mov"), "two contacts"),
                (("jump_height.py", "ball.mov"), "no flight"),
                (("ball_speed.py", "ball.mov", "--distance", "1"), "two different marks"),
                (("ball_speed.py", "ball.mov", "--distance", "1", "--rows", "1,2"), "no pass"),
                (("jump_height.py", "ball.mov", "--frames", "0,5"), "frame 0"),
                (("jump_height.py", "none.mov"), "none.mov")):
            message = self.run_script(*arguments, fails=True)
            self.assertIn(words, message)
            self.assertEqual(message.count("\n"), 1, message)

    @unittest.skipUnless(os.environ.get("FOOTAGE"), "no real footage")
    def test_real_footage(self):
        """Events by eye. Nothing is known of the true values."""
        file = os.environ["FOOTAGE"]
        events = ("--frames", "187,200", "--capture-fps", "25")
        self.assertRegex(self.run_script("sprint_steps.py", file, *events),
                         r"step 1: 0\.\d* ± 0\.0\d* s\n")
        self.assertRegex(self.run_script("ball_speed.py", file, *events, "--distance", "2"),
                         r"speed: \d\.\d* ± 0\.\d* m/s\n")
        self.assertRegex(self.run_script("jump_height.py", file, *events),
                         r"jump 1 height: 0\.\d* ± 0\.\d* m\n")
        message = self.run_script("sprint_steps.py", file, "--capture-fps", "25", fails=True)
        self.assertIn("the marker is lost in", message)


if __name__ == "__main__":
    unittest.main()
