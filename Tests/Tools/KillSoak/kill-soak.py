#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills recordings at random instants, and counts the lost frames.

    kill-soak.py SLOWMO [--trials N] [--seed S] [--jobs J] [--directory DIR]

The synthetic camera counts its delivered frames in shared memory, which outlives the killed
process. Each file is compared with that count:
* ffprobe must open the file as it is, and its frames are counted.
* `slowmo recover` must recover it; its frames are counted, and the gaps of its ledger are compared
  with the camera's losses, which follow from the seed.

No file may lack more than 250 ms of frames, and none may lack its ledger. Exits with 1 otherwise.
On a busy machine, any program may have to wait longer than that. Recordings therefore run with
real-time priority where permitted. A kill with too much loss is repeated with the same camera and
instant, because a defect of the recorder would lose the same again; see busy_machine.py.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from busy_machine import Attempts, count_in, run_before_others

LIMIT_MS = 250
# (name, mode, percentage of deliberately lost frames, options): copied, encoded, with losses.
TAKES = [
    ("mjpeg", "640x480@240", 0, ["--codec", "copy"]),
    ("h264", "320x240@240", 0, ["--codec", "h264"]),
    ("mjpeg, 5% lost", "320x240@240", 5, ["--codec", "copy"]),
    ("h264, 5% lost", "320x240@120", 5, ["--codec", "h264"]),
]


def is_lost(seed, share, number):
    """Whether the synthetic camera deliberately loses this frame (SplitMix64)."""
    mask = (1 << 64) - 1
    bits = (seed + (number + 1) * 0x9E3779B97F4A7C15) & mask
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & mask
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & mask
    bits ^= bits >> 31
    return (bits >> 32) < share * (1 << 32) // 100


def expected_ledger(seed, share, arrived):
    """The number of frame periods up to the last arrived frame, and the gaps among them."""
    number, stored, gaps, missing = 0, 0, {}, 0
    while stored < arrived:
        if share and is_lost(seed, share, number):
            missing += 1
            gaps[stored - 1] = gaps.get(stored - 1, 0) + 1
        else:
            stored += 1
        number += 1
    return number, gaps


def frame_count(path):
    """The number of frames that ffprobe finds; None if it cannot open the file."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    text = done.stdout.strip().strip(",")
    return int(text) if text.isdigit() else 0


def wait_for_frame(path, process):
    """Waits until the camera has delivered a frame."""
    while process.poll() is None:
        if count_in(path) > 0:
            return
        time.sleep(0.001)


def settled(slowmo, directory, number, rng, attempts):
    """Runs a trial, and repeats it if too much was missing."""
    state = rng.getstate()

    def again():
        rng.setstate(state)
        return trial(slowmo, directory, number, rng)

    result = attempts.made(again, lambda result: result["late"] and not result["problems"])
    result["problems"] += result["late"]
    return result


def trial(slowmo, directory, number, rng):
    name, mode, share, options = TAKES[number % len(TAKES)]
    rate = int(mode.split("@")[1])
    seed = rng.randrange(1 << 32)
    path = directory / f"take-{number}.mov"
    path.unlink(missing_ok=True)
    counter = pathlib.Path("/dev/shm") / f"overcrank-kill-{os.getpid()}-{number}"
    device = f"synthetic:{mode}?drop={share}%&seed={seed}&counter={counter}"
    length = rng.uniform(0.3, 1.5)
    # One trial in five is killed at any time after the process start, the others during the
    # recording or while the file is finalized.
    from_start = rng.random() < 0.2
    delay = rng.uniform(0, 0.6) if from_start else rng.uniform(0, length + 0.05)
    process = subprocess.Popen(
        [slowmo, "record", device, "-o", str(path), "-t", f"{length:.3f}", "--progress", "none",
         *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=run_before_others)
    if not from_start:
        wait_for_frame(counter, process)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    handed = count_in(counter)
    counter.unlink(missing_ok=True)
    result = {"name": name, "seed": seed, "handed": handed, "problems": [], "late": [], "killed":
              process.returncode == -signal.SIGKILL, "existed": path.exists()}
    if not path.exists():
        result.update(direct=0, recovered=0)
        if handed * 1000 / rate > LIMIT_MS:
            result["late"].append(f"{handed} frames were handed over, but no file exists")
        return result
    # A recording may end at its limit with one frame more than it stores.
    slack = 0 if result["killed"] else 1

    def missing(found, what):
        lost = (handed - found - slack) * 1000 / rate
        if lost > LIMIT_MS:
            result["late"].append(
                f"{what}: {found} of {handed} frames, {lost:.0f} ms are missing")
        return max(0, lost)

    direct = frame_count(path)
    if direct is None:
        result["problems"].append("ffprobe does not open it")
    result["direct"] = missing(direct or 0, "as it was left")
    done = subprocess.run(
        [slowmo, "recover", str(path), "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    if done.returncode == 65 and not direct:
        result["recovered"] = missing(0, "nothing to recover")
    elif done.returncode != 0:
        result["problems"].append(f"recover ended with {done.returncode}: {done.stdout}")
        result["recovered"] = 0
    else:
        found = frame_count(path) or 0
        result["recovered"] = missing(found, "after recover")
        if found < (direct or 0):
            result["problems"].append(f"recover left {found} of {direct} frames")
        if found != report["frame_count"] or not report["playable"]:
            result["problems"].append(f"recover reported {report['frame_count']} frames, not {found}")
        check_ledger(result, report, seed, share, found)
    if not result["problems"] and not result["late"]:
        path.unlink()
    return result


def check_ledger(result, report, seed, share, found):
    """Compares the ledger with the deliberate losses of the camera."""
    if report["was_plain"]:
        return
    ledger = report["ledger"]
    periods, gaps = expected_ledger(seed, share, found)
    lost = sum(gaps.values())
    reported = {}
    for gap in report["gaps"]:
        if gap["cause"] != "lost_writer":
            index = gap["after_index"]
            reported[index] = reported.get(index, 0) + gap["count"]
    # Records of frames after the last stored one may exist and are ignored.
    reported = {after: count for after, count in reported.items() if after < found - 1}
    wanted = {after: count for after, count in gaps.items() if after < found - 1}
    parts = sum(value for key, value in ledger.items() if key != "expected")
    if parts != ledger["expected"]:
        result["problems"].append(f"the ledger does not add up: {ledger}")
    if ledger["stored"] != found or ledger["expected"] < periods:
        result["problems"].append(f"the ledger is {ledger}, of {periods} periods {lost} lost")
    if reported != wanted:
        # Deliberate losses are lost_device. A take to which a starved thread cost frames is repeated.
        own = any(gap["cause"] in ("lost_kernel", "lost_queue") for gap in report["gaps"])
        result["late" if own else "problems"].append(f"the gaps are {reported}, not {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slowmo")
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--directory")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    attempts = Attempts()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        directory = pathlib.Path(scratch)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            tasks = [
                pool.submit(settled, options.slowmo, directory, number, random.Random(rng.random()),
                            attempts)
                for number in range(options.trials)
            ]
            results = [task.result() for task in tasks]
    bad = 0
    for number, result in enumerate(results):
        for problem in result["problems"]:
            bad += 1
            print(f"trial {number} ({result['name']}, seed {result['seed']}): {problem}")
    killed = sum(result["killed"] for result in results)
    opened = sum(result["existed"] for result in results)
    bad += attempts.verdict(options.trials, "kills")
    print(f"{len(results)} recordings, {killed} killed, {opened} with a file, all of which ffprobe "
          f"opens" if not bad else f"{bad} problems in {len(results)} recordings")
    for what, key in [("as they were left", "direct"), ("after recover", "recovered")]:
        lost = sorted(result[key] for result in results)
        print(f"missing of the frames handed over, {what}: median {statistics.median(lost):.0f} ms, "
              f"p99 {lost[min(len(lost) - 1, len(lost) * 99 // 100)]:.0f} ms, "
              f"most {lost[-1]:.0f} ms")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
