#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeks by frame number with OpenCV in clips with lost frames, and judges the images.

A take of the synthetic camera loses a tenth of its frames. OpenCV seeks in the take, and in the
export of `slowmo retime --for opencv`. The right image is the one that PyAV decodes, frame after frame,
with the same number. All seeks in the export must be right; the figure of the take is printed for
comparison. PyAV must also read the times that `slowmo frames --csv` prints, to the microsecond. A slowed
clip that OpenCV rewrites has lost its capture times; a measurement in it must name its assumption.

    opencv-seeks.py SLOWMO [--seeks N] [--careless]

With --careless, the take itself is judged in place of the export, so that the check must fail.
"""
import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import av
import cv2
import numpy


def frames(path):
    """All images as gray arrays, and their times in nanoseconds from the first."""
    with av.open(str(path)) as file:
        decoded = [(frame.pts * frame.time_base, frame.to_ndarray(format="gray")) for frame in file.decode(video=0)]
    start = decoded[0][0]
    return [image for _, image in decoded], [round((time - start) * 10 ** 9) for time, _ in decoded]


def rows(slowmo, path, table):
    """The lines of `frames --csv`."""
    subprocess.run([slowmo, "frames", path, "--csv", table, "-y", "--progress", "none"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(table, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def right_seeks(path, images, numbers):
    """The number of seeks by frame number that show the image with that number."""
    capture = cv2.VideoCapture(str(path))
    stack = numpy.stack([cv2.resize(image, (80, 60), interpolation=cv2.INTER_AREA) for image in images])
    stack = stack.astype(numpy.int16)
    right = 0
    for number in numbers:
        capture.set(cv2.CAP_PROP_POS_FRAMES, number)
        is_read, image = capture.read()
        if not is_read:
            continue
        gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        small = cv2.resize(gray, (80, 60), interpolation=cv2.INTER_AREA).astype(numpy.int16)
        differences = numpy.abs(stack - small).mean((1, 2))
        # A repeated image has several numbers.
        right += differences[number] <= differences.min() + 0.05
    capture.release()
    return right


def rewritten(source, path):
    """Rewrites a clip with OpenCV, as scripts do."""
    capture = cv2.VideoCapture(str(source))
    size = int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), capture.get(cv2.CAP_PROP_FPS), size)
    is_read, image = capture.read()
    while is_read:
        writer.write(image)
        is_read, image = capture.read()
    writer.release()
    capture.release()


def problems_of_rewrite(slowmo, take, directory):
    """The faults of a measurement in a slowed clip that OpenCV has rewritten."""
    slow, path = directory / "slow.mov", directory / "rewritten.mp4"
    subprocess.run([slowmo, "retime", take, "-o", slow, "--speed", "1/8", "--copy", "--progress", "none"], check=True,
                   stdout=subprocess.DEVNULL)
    rewritten(slow, path)
    words = [slowmo, "measure", path, "--at", "0", "--points", "0,0 3,4", "--json"]
    document = json.loads(subprocess.run(words, check=False, capture_output=True).stdout)
    if document.get("error", {}).get("code") == "unknown_capture_time":
        return []
    source, assumption = document.get("time_source"), document.get("time_assumption")
    if (source, assumption) == ("file", "file_times_are_real"):
        return []
    return [f"a clip rewritten by OpenCV is measured by '{source}', and the assumption is '{assumption}'"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("slowmo")
    parser.add_argument("--seeks", type=int, default=120)
    parser.add_argument("--careless", action="store_true")
    options = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        take, even, table = directory / "take.mov", directory / "even.mp4", directory / "even.csv"
        subprocess.run(
            [options.slowmo, "record", "synthetic:320x240@240?drop=10%&seed=3&pace=max", "-o", take, "--frames",
             "600", "--codec", "h264", "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            [options.slowmo, "retime", take, "-o", even, "--for", "opencv", "--csv", table, "--progress", "none"],
            check=True, stdout=subprocess.DEVNULL)
        source, source_times = frames(take)
        known = rows(options.slowmo, take, directory / "take.csv")
        with open(table, newline="", encoding="ascii") as file:
            lines = list(csv.DictReader(file))
        again = rows(options.slowmo, even, directory / "again.csv")
        images, times = frames(even)
        for name, one, other in (("take", known, source_times), ("export", lines, times)):
            farthest = max(abs(int(row["pts_ns"]) - time) for row, time in zip(one, other, strict=True))
            if farthest > 1_000:
                problems.append(f"PyAV reads times of the {name} that differ by {farthest} ns")
        lost = sum(int(row["lost_before"]) for row in known)
        repeated = [row["duplicate"] for row in lines].count("1")
        if repeated != lost or len(lines) != len(source) + lost or not lost:
            problems.append(f"{repeated} repeated frames for {lost} lost ones, {len(lines)} frames")
        if [row["duplicate"] for row in again] != [row["duplicate"] for row in lines]:
            problems.append("frames --csv marks other frames of the export than retime --csv")
        captured = [row["capture_ns"] for row in lines if row["duplicate"] == "0"]
        if captured != [row["capture_ns"] for row in known]:
            problems.append("the capture times of the export differ from those of the take")
        # Each frame of the export has the time that follows from its number and the rate.
        late = [row["index"] for row in lines if abs(int(row["pts_ns"]) - int(row["index"]) * 10 ** 9 / 240) > 1]
        if late:
            problems.append(f"{len(late)} frames of the export are not at number / rate")
        problems += problems_of_rewrite(options.slowmo, take, directory)
        generator = random.Random(5)
        plain = right_seeks(take, source, [generator.randrange(len(source)) for _ in range(options.seeks)])
        numbers = [generator.randrange(len(images)) for _ in range(options.seeks)]
        judged = (take, source) if options.careless else (even, images)
        right = right_seeks(*judged, [number % len(judged[1]) for number in numbers])
        if right != options.seeks:
            problems.append(f"{right} of {options.seeks} seeks are right")
        print(f"opencv-seeks: OpenCV {cv2.__version__}, {lost} of {len(images)} frames lost: of {options.seeks} seeks by "
              f"frame number, {right} are right in the export and {plain} in the take")
    for problem in problems:
        print(f"opencv-seeks: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
