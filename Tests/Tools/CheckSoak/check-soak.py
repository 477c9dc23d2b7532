#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults of timing into clips, and shows that `slowmo check` finds all of them and no others.

PyAV writes the clips, so that writer and reader share no code. A seed determines the scene, noise,
rate, codec, container and faults of each clip. Some clips without a fault show a scene at rest. In
scenes with little motion and much noise, a fault may be missed but none may be invented. The share
that was found is printed.

    check-soak.py SLOWMO [--cases N] [--first SEED] [--careless] [--keep DIRECTORY]

With --careless, the planted faults are noted in the wrong position, so that the soak must fail.
"""
import argparse
import collections
import fractions
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import av
import numpy

Planted = collections.namedtuple("Planted", "gaps duplicates frozen lie")
RATES = ["60", "120", "240", "240", "480", "60000/1001"]
LOW_MOTION = ("faint", "ball")
SCENES = ["moving", "moving", "moving", "pan", "still", "still", "rest", "ball", "flicker", "faint"]


class Scene:
    """Images of a scene, one for each instant of the camera."""

    def __init__(self, kind, rng, rate):
        self.kind, self.rng, self.rate = kind, rng, rate
        self.width, self.height = [(192, 128), (256, 144), (320, 176)][rng.integers(3)]
        self.noise = {
            "still": rng.uniform(0.8, 7), "rest": rng.uniform(1.5, 4), "faint": rng.uniform(2, 4),
        }.get(kind, [0, 1, 2, 4][rng.integers(4)])
        smooth = self.texture(self.height * 2, self.width * 3, 24)
        self.background = 60 + smooth * 120
        size = int(rng.integers(40, 64))
        self.patch = 30 + self.texture(size, size, 7) * 195
        self.speed = rng.uniform(2.5, 6) * rng.choice([-1, 1], 2)
        self.start = rng.uniform(20, 60, 2)
        self.pause = sorted(rng.integers(30, 110, 2))

    def texture(self, height, width, cell):
        """Random values from 0 to 1, smooth over a cell."""
        rows, columns = height // cell + 2, width // cell + 2
        coarse = self.rng.uniform(0, 1, (rows, columns))
        y = numpy.linspace(0, rows - 1.001, height)
        x = numpy.linspace(0, columns - 1.001, width)
        (i, j), (u, v) = (y.astype(int), x.astype(int)), (y % 1, x % 1)
        upper = coarse[i][:, j] * (1 - v) + coarse[i][:, j + 1] * v
        lower = coarse[i + 1][:, j] * (1 - v) + coarse[i + 1][:, j + 1] * v
        return upper * (1 - u[:, None]) + lower * u[:, None]

    def position(self, instant):
        """The corner of the patch in pixels, at an instant counted in frames."""
        if self.kind == "ball":
            period = 90.0
            phase = (instant % period) / period
            return numpy.array([self.start[0] + instant * 0.8, 8 + 4 * (self.height - 76) * phase * (1 - phase)])
        if self.kind == "rest":
            # It slows down and speeds up within ten frames.
            low, high = self.pause
            speeds = numpy.clip(numpy.abs(numpy.arange(instant) - (low + high) / 2) - (high - low) / 2, 0, 10)
            instant = float(speeds.sum()) / 10
        speed = self.speed * (0.04 if self.kind == "faint" else 1)
        return self.start + speed * instant

    def paste(self, image, x, y):
        """Shows the patch at a position in fractions of a pixel."""
        size = self.patch.shape[0]
        (column, u), (row, v) = (int(x), x % 1), (int(y), y % 1)
        area = image[row:row + size + 1, column:column + size + 1]
        mixed = numpy.zeros_like(area)
        cover = numpy.zeros_like(area)
        for i, j, weight in ((0, 0, (1 - u) * (1 - v)), (0, 1, u * (1 - v)), (1, 0, (1 - u) * v), (1, 1, u * v)):
            part = self.patch[:area.shape[0] - i, :area.shape[1] - j]
            mixed[i:i + part.shape[0], j:j + part.shape[1]] += weight * part
            cover[i:i + part.shape[0], j:j + part.shape[1]] += weight
        area[:] = area * (1 - cover) + mixed

    def image(self, instant):
        top, left = 0, 0
        if self.kind == "pan":
            left = int(round(abs((instant * 3.3) % (4 * self.width) - 2 * self.width)))
        image = self.background[top:top + self.height, left:left + self.width].copy()
        if self.kind != "still":
            limits = numpy.array([self.width, self.height]) - self.patch.shape[0]
            x, y = numpy.abs((self.position(instant) % (2 * limits)) - limits)
            self.paste(image, x, y)
        if self.kind == "flicker":
            rows = numpy.arange(self.height)[:, None] / self.height * 0.4
            seconds = (instant + rows) / self.rate
            image *= 1 + 0.04 * numpy.sin(2 * numpy.pi * 100 * seconds)
        if self.noise:
            image += self.rng.normal(0, self.noise, image.shape)
        return numpy.clip(image, 16, 235).astype(numpy.uint8)


class Clip:
    """A clip with planted faults, as a seed chooses them."""

    def __init__(self, seed):
        rng = numpy.random.default_rng(seed)
        self.seed = seed
        self.rate = fractions.Fraction(RATES[rng.integers(len(RATES))])
        kind = SCENES[rng.integers(len(SCENES))]
        if kind == "flicker":
            self.rate = fractions.Fraction(240)
        self.scene = Scene(kind, rng, float(self.rate))
        self.codec = ["libx264", "libx264", "libx264", "mjpeg", "mpeg4"][rng.integers(5)]
        self.crf = int(rng.choice([18, 23, 28]))
        self.b_frames = int(rng.choice([0, 3]))
        self.container = ["mp4", "mov", "mkv"][rng.integers(3)]
        self.jitter = [0, 0, 0.05][rng.integers(3)]
        # The timestamps of Matroska, in milliseconds, show single gaps only up to 480 fps.
        if self.rate > 400:
            self.container = "mp4"
        self.count = int(rng.integers(130, 220))
        self.expect = self.rate
        self.tag = None
        self.shown = list(range(self.count))
        kinds = {"still": ["none", "gaps"], "rest": ["none", "gaps"], "flicker": ["none", "gaps"]}
        fault = str(rng.choice(kinds.get(kind, [
            "none", "gaps", "duplicates", "frozen", "all", "twice", "rate"])))
        self.fault = fault
        self.plant(rng, fault)

    def plant(self, rng, fault):
        """Chooses the instant that each stored frame shows, and the faults that must be found."""
        instants = list(range(self.count))
        slots = [int(n) for n in rng.permutation(numpy.arange(14, self.count - 60, 16))]
        drops, repeated, stretches, lie = set(), set(), [], False
        if fault in ("gaps", "all"):
            for start in slots[:int(rng.integers(1, 4))]:
                drops.update(range(start, start + int(rng.choice([1, 1, 2, 7]))))
            slots = slots[3:]
        if fault in ("duplicates", "all"):
            for start in slots[:int(rng.integers(1, 4))]:
                repeated.update(range(start, start + int(rng.choice([1, 1, 2, 4]))))
            slots = slots[3:]
        if fault in ("frozen", "all"):
            length = int(rng.integers(10, 40))
            first = self.count - 15 - length
            stretches.append((first, length))
        for slot in sorted(repeated):
            instants[slot] = instants[slot - 1]
        for first, length in stretches:
            for slot in range(first, first + length):
                instants[slot] = instants[first - 1]
        if fault == "twice":
            factor = int(rng.integers(2, 5))
            self.factor = factor
            instants = [n // factor for n in instants]
            lie = True
            if rng.random() < 0.5:
                self.tag, self.expect = float(self.rate), None
        elif fault == "rate":
            # The camera ran at half of the rate that is expected or stated.
            lie = True
            if rng.random() < 0.5 and self.rate > 61:
                self.tag, self.expect = float(self.rate * 2), None
            else:
                self.expect = self.rate * 2
        self.slots = [slot for slot in range(self.count) if slot not in drops]
        self.instants = [instants[slot] for slot in self.slots]
        gaps = [[i, after - before - 1] for i, (before, after) in enumerate(zip(self.slots, self.slots[1:]))
                if after - before > 1]
        index = {slot: i for i, slot in enumerate(self.slots)}
        frozen = [[index[first] - 1, index[first] + length - 1] for first, length in stretches]
        self.planted = Planted(gaps, sorted(index[slot] for slot in repeated), frozen, lie)

    def write(self, path):
        """Writes the clip with PyAV."""
        scale = 90_000 if self.container != "mkv" else 1_000
        rng = numpy.random.default_rng(self.seed + 1_000_000)
        options = {}
        if self.container != "mkv":
            options = {"video_track_timescale": str(scale), "movflags": "use_metadata_tags"}
        with av.open(str(path), "w", options=options) as file:
            if self.tag:
                file.metadata["com.android.capture.fps"] = f"{self.tag:.6f}"
            stream = file.add_stream(self.codec, rate=self.rate)
            stream.width, stream.height = self.scene.width, self.scene.height
            stream.pix_fmt = "yuvj420p" if self.codec == "mjpeg" else "yuv420p"
            stream.time_base = stream.codec_context.time_base = fractions.Fraction(1, scale)
            if self.codec == "libx264":
                stream.options = {"crf": str(self.crf), "preset": "veryfast", "bf": str(self.b_frames)}
                stream.codec_context.gop_size = 60
            elif self.codec == "mpeg4":
                # Its clock has 16 bits.
                stream.time_base = stream.codec_context.time_base = fractions.Fraction(1, 50_000)
                stream.options = {"qscale": "3"}
                stream.codec_context.qmin = stream.codec_context.qmax = 3
            else:
                stream.codec_context.qmin = stream.codec_context.qmax = 3
            clock = stream.codec_context.time_base
            last, image = None, None
            for slot, instant in zip(self.slots, self.instants):
                if instant != last:
                    image, last = self.scene.image(instant), instant
                plane = numpy.full((self.scene.height * 3 // 2, self.scene.width), 128, numpy.uint8)
                plane[:self.scene.height] = image
                frame = av.VideoFrame.from_ndarray(plane, format="yuv420p")
                if self.codec == "mjpeg":
                    frame = frame.reformat(format="yuvj420p")
                late = float(rng.uniform(0, self.jitter)) if self.jitter else 0
                frame.pts = round((slot + late) / float(self.rate) / float(clock))
                frame.time_base = clock
                for packet in stream.encode(frame):
                    file.mux(packet)
            for packet in stream.encode(None):
                file.mux(packet)

    def __str__(self):
        scene = self.scene
        return (f"seed {self.seed}: {scene.kind}, noise {scene.noise:.1f}, {scene.width}x{scene.height}, "
                f"{self.rate} fps, {self.codec} crf {self.crf} b {self.b_frames}, {self.container}, "
                f"{self.fault}")


def check(slowmo, path, *options):
    """The exit status and the document of a check."""
    done = subprocess.run(
        [slowmo, "check", str(path), "--json", "--progress", "none", *options], capture_output=True,
        text=True)
    if done.returncode not in (0, 10):
        raise SystemExit(f"check-soak: {path}: {done.stdout}{done.stderr}")
    return done.returncode, json.loads(done.stdout)


def found_in(document):
    """The faults that an audit found, in the form of the planted ones."""
    lies = {"unexpected_rate", "stated_rate"} & set(document["problems"])
    return Planted(
        [[gap["after_index"], gap["count"]] for gap in document["gaps"]],
        [frame["index"] for frame in document["duplicates"]],
        [[part["first_index"], part["last_index"]] for part in document["frozen"]], bool(lies))


def repeated_frames(clip):
    """The frames that show the same instant as the frame before, by themselves or in a stretch."""
    return {n for n in range(1, len(clip.instants)) if clip.instants[n] == clip.instants[n - 1]}


def reported_frames(found):
    """The frames that an audit reports as repeated, by themselves or in a frozen stretch."""
    stretches = (n for first, last in found.frozen for n in range(first + 1, last + 1))
    return set(found.duplicates) | set(stretches)


def judge(clip, found, status, document):
    """The errors of an audit, and the counts of the planted faults and of the found ones."""
    planted, problems = clip.planted, []
    if found.gaps != planted.gaps:
        problems.append(f"gaps {found.gaps}, planted {planted.gaps}")
    if clip.fault == "twice":
        # The first and the last repetition lack a neighbor to compare with.
        factor = round(clip.rate / fractions.Fraction(document["distinct_fps"] or 10 ** 9))
        wrong = [n for n in found.duplicates if clip.instants[n] != clip.instants[n - 1]]
        if wrong or clip.scene.kind not in LOW_MOTION and (factor != clip.factor or not found.lie):
            problems.append(f"repetition {factor}, planted {clip.factor}, false {wrong}, lie {found.lie}")
        return problems
    hard = clip.scene.kind in LOW_MOTION
    for name in ("duplicates", "frozen"):
        one, other = getattr(found, name), getattr(planted, name)
        wrong = [item for item in one if item not in other]
        missed = [item for item in other if item not in one]
        if name == "duplicates" and hard:
            # The noise may show only a part of a frozen stretch. Its frames then count as repeated.
            wrong = [n for n in wrong if not any(first < n <= last for first, last in planted.frozen)]
        if wrong or missed and not hard:
            problems.append(f"{name} false {wrong}, missed {missed}")
    if found.lie != planted.lie:
        problems.append(f"lie {found.lie}, planted {planted.lie}: {document['problems']}")
    clean = not (planted.gaps or planted.duplicates or planted.frozen or planted.lie)
    if not problems and not hard and (status == 0) != clean:
        problems.append(f"exit status {status}: {document['problems']}")
    return problems


def check_own_take(slowmo, directory, seed):
    """The gaps of a take, found in a copy without the records of slowmo."""
    take, copy = directory / "take.mov", directory / "copy.mp4"
    report = subprocess.run(
        [slowmo, "record", f"synthetic:320x240@240?drop=5%&seed={seed}&pace=max", "-o", str(take),
         "--frames", "300", "--progress", "none", "--json", "-y"], capture_output=True, text=True, check=True)
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-i", str(take), "-map", "0:v", "-c", "copy", "-map_metadata", "-1",
         str(copy)], check=True)
    known = collections.Counter()
    document = json.loads(report.stdout)
    for gap in document["gaps"]:
        known[gap["after_index"]] += gap["count"]
    last = document["ledger"]["stored"] - 1
    planted = [[after, count] for after, count in sorted(known.items()) if 0 <= after < last]
    status, audit = check(slowmo, copy)
    found = found_in(audit)
    if found.gaps != planted or not planted or status != 10 or found.duplicates or found.frozen:
        return [f"own take {seed}: found {found}, recorded {planted}"]
    return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("slowmo")
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--careless", action="store_true")
    parser.add_argument("--keep")
    options = parser.parse_args()
    problems, counts, faint = [], collections.Counter(), [0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(options.keep or temporary)
        directory.mkdir(exist_ok=True)
        for seed in range(options.first, options.first + options.cases):
            clip = Clip(seed)
            path = directory / f"{seed}.{clip.container}"
            clip.write(path)
            expected = ["--expect-fps", str(clip.expect)] if clip.expect else []
            status, document = check(options.slowmo, path, *expected)
            if options.careless:
                clip.planted = clip.planted._replace(
                    gaps=[[after + 1, count] for after, count in clip.planted.gaps])
            found = found_in(document)
            wrong = judge(clip, found, status, document)
            planted = clip.planted
            if clip.scene.kind in LOW_MOTION:
                known = repeated_frames(clip)
                faint[0] += len(known)
                faint[1] += len(known & reported_frames(found))
            else:
                counts.update(
                    gaps=len(planted.gaps), duplicates=len(planted.duplicates), frozen=len(planted.frozen),
                    lies=int(planted.lie), faultless=int(clip.fault == "none"))
            problems += [f"{clip}: {problem}" for problem in wrong]
            if not options.keep:
                path.unlink()
        for seed in range(max(1, options.cases // 25)):
            problems += check_own_take(options.slowmo, directory, options.first + seed)
    for problem in problems:
        print(f"check-soak: {problem}", file=sys.stderr)
    print(f"check-soak: {options.cases} clips with {counts['gaps']} gaps, {counts['duplicates']} repeated "
          f"frames, {counts['frozen']} frozen stretches and {counts['lies']} false rates, "
          f"{counts['faultless']} without a fault: {len(problems)} wrong; "
          f"in scenes with little motion, {faint[1]} of {faint[0]} repeated frames were reported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
