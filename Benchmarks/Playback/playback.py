#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Playback/run.sh: the player and mpv on the same clips."""
import collections
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

import figures

WORK = pathlib.Path(os.environ["WORK"])
RATE, FRAMES, BITS, BLOCK = 240, 1200, 11, 32
H264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p"]
CLIPS = {
    "long": H264 + ["-g", "250", "-bf", "3"],
    "short": H264 + ["-g", "60", "-bf", "0"],
    "mjpeg": ["-c:v", "mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"],
}
# The goals: measure, clip or None for all, the comparison, and the limit; "mpv" is mpv's median.
GOALS = [
    ("exact-seek", None, "<=", "mpv"),
    ("step-back", None, "<=", 2),
    ("step-back-cold", "long", "<=", 350),
    ("step-back-cold", "short", "<=", 120),
    ("step-back-cold", "mjpeg", "<=", 5),
    # A key that is held may wait once at its start, for a pass of the decoder.
    ("held-key-worst", None, "<=", 1000 / 30),
    ("scrub-pictures-a-second", None, ">=", 30),
    ("scrub-rest", "long", "<=", 350),
    ("scrub-rest", "short", "<=", 120),
    ("scrub-rest", "mjpeg", "<=", 20),
    ("reverse-shown-a-second", None, ">=", 59),
    ("reverse-memory-mb", None, "<=", 150),
    ("reverse-ready", None, "<=", 600),
    ("loop-period", None, "within 0.03 of", 500),
    ("loop-frame-error", None, "<=", 4),
    ("speed-change-spectral", None, "<=", 40),
    ("speed-change-time-domain", None, "<=", 40),
    ("speed-change-varispeed", None, "<=", 40),
    ("speed-change-low-quality", None, "<=", 40),
]


# The unit of each measure that is not milliseconds.
UNITS = {
    "scrub-pictures-a-second": "/s", "reverse-shown-a-second": "/s", "reverse-memory-mb": "MB",
    "loop-frame-error": "frames",
}


# The seconds of mpv's loops and of its reverse playback.
SPAN = 2.5


def make(name, options):
    """A clip of five seconds: a moving test pattern, noise, each frame's number, and a tone."""
    path = WORK / f"{name}.mov"
    bits = "".join(
        f",drawbox=x={bit * BLOCK}:y=0:w={BLOCK}:h={BLOCK}:color=white:t=fill"
        f":enable='mod(floor(n/{1 << bit}),2)'" for bit in range(BITS))
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i",
         f"testsrc2=s=1280x720:r={RATE}:d=5,noise=alls=6:allf=t,"
         f"drawbox=x=0:y=0:w={BITS * BLOCK}:h={BLOCK}:color=black:t=fill{bits}",
         "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=5",
         *options, "-c:a", "aac", str(path)],
        check=True)
    return path


def painted(path):
    """The number on an image."""
    width = 1280
    gray = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "gray", "-"],
        check=True, capture_output=True).stdout
    row = BLOCK // 2 * width
    return sum(1 << bit for bit in range(BITS) if gray[row + bit * BLOCK + BLOCK // 2] > 120)


class MPV:
    """An mpv without outputs, driven through its socket."""

    def __init__(self, clip):
        self.path = str(WORK / "mpv.sock")
        pathlib.Path(self.path).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["mpv", "--no-config", "--pause", "--vo=null", "--ao=null", "--keep-open=yes",
             "--hr-seek=yes", f"--input-ipc-server={self.path}", str(clip)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(500):
            try:
                self.socket.connect(self.path)
                break
            except OSError:
                time.sleep(0.02)
        self.socket.settimeout(10)
        self.reader = self.socket.makefile()
        self.number = 0
        self.ask("get_property", "time-pos")
        time.sleep(1)

    def send(self, *words):
        self.number += 1
        line = json.dumps({"command": words, "request_id": self.number}) + "\n"
        self.socket.sendall(line.encode())

    def message(self):
        line = self.reader.readline()
        if not line:
            sys.exit("playback: mpv has ended")
        return json.loads(line)

    def ask(self, *words):
        """The answer to a command; events before it are dropped."""
        self.send(*words)
        while True:
            message = self.message()
            if message.get("request_id") == self.number:
                return message.get("data")

    def time(self, *words):
        """The milliseconds until mpv shows the frame of a command."""
        self.ask("get_property", "pid")
        start = time.monotonic()
        self.send(*words)
        while self.message().get("event") != "playback-restart":
            pass
        return (time.monotonic() - start) * 1_000

    def frame(self):
        """The number that is painted on the frame on screen."""
        image = WORK / "mpv.png"
        image.unlink(missing_ok=True)
        self.ask("screenshot-to-file", str(image), "video")
        return painted(image) if image.exists() else None

    def positions(self, seconds):
        """The playback times of a span, each with the time at which it was reported."""
        self.ask("observe_property", 1, "time-pos")
        (end, found) = (time.monotonic() + seconds, [])
        while time.monotonic() < end:
            message = self.message()
            if message.get("event") == "property-change" and message.get("data") is not None:
                found.append((time.monotonic(), message["data"]))
        self.ask("unobserve_property", 1)
        return found

    def close(self):
        self.send("quit")
        self.process.wait()


def check(wrong, name, found, wanted):
    if found != wanted:
        wrong.append(f"{name}: frame {found} instead of {wanted}")


def mpv(clip, rounds, measures, wrong):
    player = MPV(clip)
    player.time("seek", 0.1, "absolute+exact")
    for number in range(rounds):
        middle = FRAMES * (3 + number) // (rounds + 6) + 7
        # mpv accepts a frame up to 5 ms before the target, which is more than a frame here.
        seconds = (middle - 0.5) / RATE + 0.005
        measures["exact-seek"].append(player.time("seek", seconds, "absolute+exact"))
        shown = player.frame()
        # Which frame of a time this near is mpv's own choice; steps count from it.
        if shown is None or abs(shown - middle) > 1:
            check(wrong, "exact-seek", shown, middle)
        for step in range(1, 5):
            taken = player.time("frame-back-step")
            measures["step-back"].append(taken)
            measures["step-back-cold"].append(taken)
            if shown is not None:
                check(wrong, "step-back", player.frame(), shown - step)
        measures["held-key-worst"].append(max(player.time("frame-back-step") for _ in range(5)))
        (start, pictures) = (time.monotonic(), 0)
        while (elapsed := time.monotonic() - start) < 1:
            player.time("seek", elapsed * 4.9, "absolute+keyframes")
            pictures += 1
            time.sleep(1 / 60)
        measures["scrub-pictures-a-second"].append(pictures)
        measures["scrub-rest"].append(player.time("seek", 3.4, "absolute+exact"))
        player.time("seek", 2, "absolute+exact")
        player.ask("set_property", "ab-loop-a", 2)
        player.ask("set_property", "ab-loop-b", 2.5)
        player.ask("set_property", "pause", False)
        found = player.positions(SPAN)
        player.ask("set_property", "pause", True)
        for name in ["ab-loop-a", "ab-loop-b"]:
            player.ask("set_property", name, "no")
        wraps = [after[0] for before, after in zip(found, found[1:]) if after[1] < before[1] - 0.2]
        measures["loop-period"] += [(b - a) * 1_000 for a, b in zip(wraps, wraps[1:])]
        player.time("seek", 5, "absolute+exact")
        player.ask("set_property", "play-dir", "backward")
        start = time.monotonic()
        player.ask("set_property", "pause", False)
        found = player.positions(SPAN)
        player.ask("set_property", "pause", True)
        moved = [entry for entry in found if entry[1] < found[0][1] - 0.001] if found else []
        if len(moved) > 1 and moved[-1][0] > moved[0][0]:
            measures["reverse-ready"].append((moved[0][0] - start) * 1_000)
            span = [entry for entry in moved if entry[1] > 0.05]
            speed = (span[0][1] - span[-1][1]) / max(0.001, span[-1][0] - span[0][0])
            measures["reverse-shown-a-second"].append(60 * min(1, speed))
        player.ask("set_property", "play-dir", "forward")
    player.close()


def ours(clip, rounds, measures):
    output = subprocess.run(
        [os.environ["PLAYBACK_TIMING"], str(clip), str(rounds)], check=True, text=True,
        stdout=subprocess.PIPE).stdout
    for line in output.splitlines():
        name, value = line.split()
        measures[name].append(float(value))


def text(values):
    if not values:
        return "–"
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def verdict(name, values, other):
    """Whether a measure meets its goal; None for a measure without one."""
    for measure, clip, comparison, limit in GOALS:
        if measure != name[1] or clip not in (None, name[0]):
            continue
        if limit == "mpv":
            if not other:
                return None
            limit = statistics.median(other)
        found = statistics.median(values)
        if name[1].endswith(("-worst", "-error")):
            found = max(values)
        met = {"<=": found <= limit, ">=": found >= limit}.get(
            comparison, max(abs(value - limit) for value in values) <= 0.03)
        return f"{'met' if met else 'MISSED'} ({comparison} {limit:.4g})"
    return None


def main():
    rounds = int(sys.argv[1])
    (met, goals, wrong) = (0, 0, collections.defaultdict(list))
    print("| clip | measure | overcrank: median (range) | mpv | goal |\n|---|---|---|---|---|")
    for name, options in CLIPS.items():
        clip = make(name, options)
        own, other = collections.defaultdict(list), collections.defaultdict(list)
        # The player ends with an error at a wrong frame.
        ours(clip, rounds, own)
        mpv(clip, rounds, other, wrong[name])
        for measure, values in own.items():
            result = verdict((name, measure), values, other[measure])
            goals += result is not None
            met += result is not None and result.startswith("met")
            print(f"| {name} | {measure} | {text(values)} | {text(other[measure])} | "
                  f"{result or '–'} |", flush=True)
            figures.add(f"{name}: {measure}", values, UNITS.get(measure, "ms"),
                        {"mpv": other[measure]} if other[measure] else None,
                        result and result.split("(")[1][:-1], result and result.startswith("met"))
    print(f"\n{met} of {goals} goals met; all frames of overcrank carried the right number")
    for name, found in wrong.items():
        print(f"mpv, {name}: {len(found)} wrong frames", *found[:3], sep="; ")
    sys.exit(any(wrong.values()))


main()
