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

WORK = pathlib.Path(os.environ["WORK"])
H264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p"]
CLIPS = {
    "long": H264 + ["-g", "250", "-bf", "3"],
    "short": H264 + ["-g", "60", "-bf", "0"],
    "mjpeg": ["-c:v", "mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"],
}


def make(name, options):
    """A clip of five seconds with a moving test pattern, noise and a tone."""
    path = WORK / f"{name}.mov"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i",
         "testsrc2=s=1280x720:r=240:d=5,noise=alls=6:allf=t", "-f", "lavfi", "-i",
         "sine=frequency=440:sample_rate=48000:duration=5", *options, "-c:a", "aac", str(path)],
        check=True)
    return path


class Player:
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
        self.reader = self.socket.makefile()
        self.command("get_property", "time-pos")
        time.sleep(1)

    def command(self, *words):
        self.socket.sendall((json.dumps({"command": words}) + "\n").encode())

    def time(self, *words):
        """The milliseconds until mpv shows the frame of a command."""
        start = time.monotonic()
        self.command(*words)
        for line in self.reader:
            if json.loads(line).get("event") == "playback-restart":
                # The first one may belong to the start of the file.
                if time.monotonic() - start > 0.0005:
                    return (time.monotonic() - start) * 1_000
        sys.exit("playback: mpv has ended")

    def close(self):
        self.command("quit")
        self.process.wait()


def mpv(clip, rounds, figures):
    player = Player(clip)
    player.time("seek", 0.1, "absolute+exact")
    for number in range(rounds):
        position = 5 * (3 + number) / (rounds + 6)
        figures["exact-seek"].append(player.time("seek", position, "absolute+exact"))
        for _ in range(4):
            figures["step-back"].append(player.time("frame-back-step"))
    player.close()


def ours(clip, rounds, figures):
    output = subprocess.run(
        [os.environ["PLAYBACK_TIMING"], str(clip), str(rounds)], check=True, capture_output=True,
        text=True).stdout
    for line in output.splitlines():
        name, value = line.split()
        figures[name].append(float(value))


def text(values):
    if not values:
        return "–"
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def main():
    rounds = int(sys.argv[1])
    print("| clip | measure | overcrank: median (range) | mpv |\n|---|---|---|---|")
    for name, options in CLIPS.items():
        clip = make(name, options)
        own, other = collections.defaultdict(list), collections.defaultdict(list)
        ours(clip, rounds, own)
        mpv(clip, rounds, other)
        for measure, values in own.items():
            print(f"| {name} | {measure} | {text(values)} | {text(other[measure])} |", flush=True)


main()
