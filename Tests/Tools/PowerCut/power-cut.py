#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates power failures of recordings by discarding unsynced writes, and counts the loss.

    power-cut.py SLOWMO [--trials N] [--seed S] [--directory DIR]

A recording runs with a log of every write, sync and truncation of its file (log-writes.c). A power
failure is a position in that log. The disk then contains everything written before the start of the
last completed sync. Random pieces of later writes, of 512 or 4096 bytes, are kept; a missing piece
keeps its old content or reads as zeros. A third of the failures happen while the file is finalized.

The file is checked after `slowmo recover`. ffprobe must open it, its packets must be the first ones
of the recording, and at most 1.0 s of the delivered frames may be missing, plus the time that the disk
took for the syncs in question: it is the disk's, and is read from the log. With --never-synced the
logged syncs are ignored, so the test must fail. Recordings run with real-time priority where permitted,
and a failure with too much loss is repeated with other recordings; see busy_machine.py.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from busy_machine import Attempts, run_before_others

LIMIT_MS = 1000
WRITE, SYNC_BEGINS, SYNC_DONE, CUT = 1, 2, 3, 4
TAKES = [
    ("mjpeg", "640x480@240", ["--codec", "copy"]),
    ("h264", "320x240@240", ["--codec", "h264"]),
]
HERE = pathlib.Path(__file__).parent


def packets(path):
    """The hash of each video packet; None where ffprobe cannot open the file."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_packets", "-show_data_hash",
         "md5", "-show_entries", "packet=data_hash", "-of", "csv=p=0", str(path)],
        capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return [line for line in done.stdout.split("\n") if line]


def read_log(path):
    entries = []
    data = path.read_bytes()
    place = 0
    while place < len(data):
        kind, at, count, frames, time, stored = struct.unpack_from("=6q", data, place)
        place += 48
        entries.append((kind, at, count, frames, time, data[place:place + stored]))
        place += stored
    return entries


def record(slowmo, library, directory, number, mode, options, seconds):
    """Makes a recording with its log; returns the entries, and the finished file's packet
    hashes."""
    path, log = directory / f"take-{number}.mov", directory / f"take-{number}.log"
    counter = pathlib.Path("/dev/shm") / f"overcrank-power-{os.getpid()}-{number}"
    environment = dict(
        os.environ, LD_PRELOAD=str(library), LOGGED_FILE=str(path), WRITE_LOG=str(log),
        FRAME_COUNTER=str(counter))
    done = subprocess.run(
        [slowmo, "record", f"synthetic:{mode}?counter={counter}", "-o", str(path), "-t",
         str(seconds), "--progress", "none", *options], env=environment, capture_output=True,
        text=True, preexec_fn=run_before_others)
    counter.unlink(missing_ok=True)
    if done.returncode != 0:
        raise SystemExit(f"recording ended with {done.returncode}: {done.stderr}")
    entries = read_log(log)
    whole = packets(path)
    log.unlink()
    path.unlink()
    return entries, whole


def disk_after(entries, cut, rng, counts_syncs):
    """The content of the disk when the power fails before entry `cut`."""
    # Everything written before the start of the last completed sync is on the disk.
    sure, began = 0, []
    for index, entry in enumerate(entries[:cut]):
        if entry[0] == SYNC_BEGINS:
            began.append(index)
        elif entry[0] == SYNC_DONE and began and counts_syncs:
            # Overlapping syncs cannot be distinguished, so the earlier start counts.
            sure = max(sure, began.pop(0))
    disk = bytearray()

    def put(at, piece):
        if len(disk) < at + len(piece):
            disk.extend(bytes(at + len(piece) - len(disk)))
        disk[at:at + len(piece)] = piece

    for kind, at, _, _, _, written in entries[:sure]:
        if kind == WRITE:
            put(at, written)
        elif kind == CUT:
            del disk[at:]
    size = rng.choice([512, 4096])
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0, rng.random()])
    for kind, at, _, _, _, written in entries[sure:cut]:
        if kind != WRITE:
            continue
        place = at
        while place < at + len(written):
            end = min((place // size + 1) * size, at + len(written))
            if rng.random() < share:
                put(place, written[place - at:end - at])
            place = end
    return disk


def time_of_syncs(entries, cut):
    """The milliseconds that the disk took for the last completed sync before the cut, and for the one
    under way at it. Frames delivered meanwhile cannot be safe before the next sync."""
    began, last = [], 0
    for kind, _, _, _, time, _ in entries[:cut]:
        if kind == SYNC_BEGINS:
            began.append(time)
        elif kind == SYNC_DONE and began:
            last = time - began.pop(0)
    under_way = entries[cut - 1][4] - began[0] if began else 0
    return (last + under_way) / 1e6


def trial(slowmo, directory, take, cut, rng, counts_syncs):
    entries, whole, rate = take
    path = directory / "cut.mov"
    path.write_bytes(disk_after(entries, cut, rng, counts_syncs))
    frames = entries[cut - 1][3]
    opens = path.stat().st_size > 0 and packets(path) is not None
    done = subprocess.run(
        [slowmo, "recover", str(path), "--json"], capture_output=True, text=True)
    problems = []
    found = packets(path) if path.stat().st_size else []
    if found is None:
        problems.append(f"ffprobe does not open it ({done.stdout.strip()[:200]})")
        found = []
    if done.returncode == 65:
        found = []  # No intact frame; only opening is required.
    if done.returncode not in (0, 65):
        problems.append(f"recover ended with {done.returncode}: {done.stdout}")
    elif done.returncode == 0 and json.loads(done.stdout)["frame_count"] != len(found):
        problems.append("recover reported another number of frames than the file has")
    if found != whole[:len(found)]:
        problems.append("its packets are not those of the take")
    lost = max(0, frames - len(found)) * 1000 / rate
    limit = LIMIT_MS + time_of_syncs(entries, cut)
    late = (f"{len(found)} of {frames} frames, {lost:.0f} ms are missing, of at most {limit:.0f} ms"
            if lost > limit else None)
    return lost, problems, late, opens


def place_of_cut(entries, number, rng):
    """The log position of the power failure: in a third of the trials, during finalization."""
    # Entries after the last media data belong to finalization.
    last = max(i for i, e in enumerate(entries) if e[0] == WRITE and e[2] > 200)
    first_frame = next(i for i, e in enumerate(entries) if e[3] > 0)
    end = next(i for i, e in enumerate(entries) if e[3] == entries[-1][3])
    if number % 3 == 2:
        return rng.randrange(end, len(entries) + 1)
    return rng.randrange(first_frame + 1, max(last, first_frame + 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slowmo")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--never-synced", action="store_true")
    parser.add_argument("--directory")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    lost, bad, finishing, opened = [], 0, 0, 0
    attempts = Attempts()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        directory = pathlib.Path(scratch)
        library = directory / "log-writes.so"
        compilers = [os.environ.get("CC", ""), "clang", "gcc", "cc"]
        compiler = next(name for name in compilers if name and shutil.which(name))
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library),
             str(HERE / "log-writes.c"), "-ldl", "-lpthread"], check=True)
        takes = {}

        def made(kind, number):
            _, mode, more = TAKES[kind]
            taken = record(options.slowmo, library, directory, number, mode, more, options.seconds)
            return (*taken, int(mode.split("@")[1]))

        for number in range(options.trials):
            kind = number % len(TAKES)
            if number % 20 < len(TAKES):
                takes[kind] = made(kind, number)
            finishing += number % 3 == 2
            state = rng.getstate()
            is_first = True

            def again():
                # The log of a new recording is cut at the same relative position.
                nonlocal is_first
                rng.setstate(state)
                if not is_first:
                    takes[kind] = made(kind, number)
                is_first = False
                entries = takes[kind][0]
                cut = place_of_cut(entries, number, rng)
                return cut, *trial(
                    options.slowmo, directory, takes[kind], cut, rng, not options.never_synced)

            cut, missing, problems, late, opens = attempts.made(
                again, lambda result: result[3] and not result[2])
            opened += opens
            lost.append(missing)
            for problem in problems + ([late] if late else []):
                bad += 1
                print(f"cut {number} at {cut} of {len(takes[kind][0])} writes: {problem}")
    lost.sort()
    bad += attempts.verdict(options.trials, "cuts")
    print(f"{opened} of the files can be opened as they were left, the others once they are repaired")
    print(f"{options.trials} cuts of the power, {finishing} of them while the file was finished: "
          f"{bad} problems; missing of the frames handed over: median "
          f"{statistics.median(lost):.0f} ms, most {lost[-1]:.0f} ms")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
