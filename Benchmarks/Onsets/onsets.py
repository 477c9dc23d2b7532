#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of Benchmarks/Onsets/run.sh, printed as a table."""
import os
import pathlib
import struct
import subprocess
import sys
import typing

import numpy as np

import onset_measures as measure
import pitch_signals as signals
from pitch_signals import PEERS, WORK, ours

STRETCH = 4
SECONDS = float(os.environ.get("ONSET_SECONDS", 20))
REFERENCE = "rubberband -3"
MAKERS = {
    "spectral": ours("spectral"), "time-domain": ours("time-domain"), REFERENCE: PEERS[REFERENCE],
    "atempo": PEERS["atempo"], "soundstretch": PEERS["soundstretch"],
}
JUDGED = ("spectral", "time-domain")
# An onset with a lower correlation has lost its shape, so its position is a guess. Only onsets
# whose shape the reference preserves are judged.
ALIKE = 0.8
# The allowed excess over the reference in milliseconds: the error of the measurement itself for an
# ideal stretch of noise, whose envelopes all differ (see the controls).
TOLERANCES = {"95 %": 2, "most": 6}
# Quieter signals count as silence, in dB of full scale.
SILENCE = -75
MISSES = []


class Late(typing.NamedTuple):
    """The delay of an onset in milliseconds, and the correlation of its shape."""

    onset: measure.Onset
    late: float
    likeness: float


def miss(what):
    MISSES.append(what)
    return "MISSED"


def decoded(clip):
    """The start of a clip's audio and its sample rate; None without audio."""
    path = WORK / "clip.wav"
    path.unlink(missing_ok=True)
    subprocess.run(
        ["ffmpeg", "-v", "quiet", "-nostdin", "-y", "-i", clip, "-map", "0:a:0", "-t", str(SECONDS),
         "-c:a", "pcm_f32le", path], check=False)
    if not path.exists() or path.stat().st_size < 1000:
        return None
    rate = struct.unpack_from("<I", path.read_bytes(), 24)[0]
    samples = signals.read_wav(path)
    return (samples, rate) if len(samples) >= 1.5 * rate else None


def is_steady(samples):
    """Whether the audio is silence or a tone: half of the power is in a few spectral lines."""
    mean = samples.mean(1)
    if np.sqrt(np.mean(mean ** 2)) < 10 ** (SILENCE / 20):
        return True
    power = np.sort(np.abs(np.fft.rfft(mean * np.hanning(len(mean)))) ** 2)[::-1]
    return power[:max(4, len(power) // 5000)].sum() > 0.9 * power.sum()


def measured(make, samples, rate, source, found):
    output = measure.amplitude(make(samples, STRETCH, rate)[0], rate, STRETCH)
    return [
        Late(onset, 1000 * late, likeness) for onset in found
        for late, likeness in [measure.lateness(source, output, onset, STRETCH)]]


def clip_figures(samples, rate, makers):
    """The results of each program for each onset of a clip."""
    source = measure.amplitude(samples, rate)
    found = [onset for onset in measure.onsets(source)
             if measure.is_unique(source, onset, STRETCH)]
    return {name: measured(make, samples, rate, source, found) for name, make in makers.items()}


def figures(all_late):
    late = np.array([each.late for each in all_late])
    size = np.abs(late)
    return {"median": np.median(size), "95 %": np.percentile(size, 95), "most": size.max(),
            "bias": np.median(late), "at": all_late[int(np.argmax(size))].onset.time}


def clear(made, is_soft):
    """The results for the soft or hard onsets whose shape the reference preserves, per program."""
    keep = [index for index, each in enumerate(made[REFERENCE])
            if each.likeness >= ALIKE and each.onset.is_soft == is_soft]
    return {name: [late[index] for index in keep] for name, late in made.items()}


def row(title, name, all_late, has_place=True):
    """Prints a line of the table."""
    if not all_late:
        return
    found = figures(all_late)
    lost = sum(each.likeness < ALIKE for each in all_late)
    place = f"{found['at']:9.3f} s" if has_place else ""
    print(f"{title:34}{name:15}{len(all_late):6}{lost:6}{found['bias']:9.1f}{found['median']:9.1f}"
          f"{found['95 %']:9.1f}{found['most']:9.1f}{place}")


def attacks(kind, stretch, shift, random, rate=48_000):
    """Eight attacks of 15 to 60 ms, ideally stretched and delayed by `shift` seconds."""
    time = np.arange(int(5.6 * stretch * rate)) / rate
    at = (time - shift) / stretch
    loudness = np.full(len(time), 0.02)
    for index, rise in enumerate((0.015, 0.03, 0.05, 0.06, 0.02, 0.04, 0.025, 0.035)):
        since = at - (0.5 + 0.6 * index) + rise / 2
        part = np.clip(since / rise, 0, 1)
        loudness += (1 - np.cos(np.pi * part)) / 2 * np.exp(-np.maximum(since - rise, 0) / 0.15)
    if kind == "noise":
        carrier = random.standard_normal(len(time))
    else:
        tones = (330, 660, 990, 2200) if kind == "tones" else 120 * np.arange(1, 40)
        carrier = sum(
            np.sin(2 * np.pi * tone * time + random.uniform(0, 6)) / index ** 0.5
            for index, tone in enumerate(tones, 1))
    return (0.1 * loudness * carrier).reshape(-1, 1), rate


def controls():
    """Checks the measurement with attacks at known times."""
    print("controls: attacks of 15 to 60 ms by a formula, stretched ideally, and then late (ms)")
    random = np.random.default_rng(7)
    for kind in ("tones", "voice", "noise"):
        for shift in (0, 0.03, -0.06):
            late = []
            for _ in range(3):
                samples, rate = attacks(kind, 1, 0, random)
                made = clip_figures(
                    samples, rate,
                    {"": lambda *_: (attacks(kind, STRETCH, shift, random)[0], None)})
                late += made[""]
            if len(late) < 12:
                miss(f"control: {len(late)} of 24 attacks of {kind} are found")
            off = np.array([each.late for each in late]) - 1000 * shift
            right = np.percentile(np.abs(off), 95) <= 8
            print(f"  {kind:8} late by {1000 * shift:4.0f}: measured "
                  f"{np.median(off) + 1000 * shift:6.1f}, off by {np.median(np.abs(off)):4.1f}, "
                  f"95 % {np.percentile(np.abs(off), 95):4.1f}, most {np.abs(off).max():4.1f}  "
                  + ("must" if right else miss(f"control: {kind} late by {shift}")))


def judge(soft):
    """Checks that slowmo is no worse than the reference."""
    reference = figures(soft[REFERENCE])
    for name in [*JUDGED, "30 ms late"]:
        own = figures(soft[name])
        worse = [what for what, more in TOLERANCES.items() if own[what] > reference[what] + more]
        if name == "30 ms late":
            verdict = "fails, as it must" if worse else miss("control: 30 ms late passes")
        else:
            verdict = miss(f"{name}: " + ", ".join(worse)) if worse else "must"
        print(f"{name:15}" + ", ".join(
            f"{what} {own[what]:.1f} of {reference[what]:.1f} + {more} ms"
            for what, more in TOLERANCES.items()) + f"  {verdict}")


def main():
    clips = []
    for name in map(pathlib.Path, sys.argv[1:]):
        clips += sorted(path for path in name.rglob("*") if path.is_file()) if name.is_dir() else [name]
    controls()
    print(f"\nonsets at a stretch of {STRETCH}: how many, how many of them lost their shape (correlation below "
          f"{ALIKE}),\nand how late they are in ms: with sign in the middle; and by size the median, 95 % and "
          "most, and where")
    print(f"{'':34}{'':15}{'count':>6}{'lost':>6}{'bias':>9}{'median':>9}{'95 %':>9}{'most':>9}")
    pooled = {name: [] for name in MAKERS}
    for clip in clips:
        found = decoded(clip)
        if found is None or is_steady(found[0]):
            continue
        try:
            made = clip_figures(*found, MAKERS)
        except RuntimeError as error:
            print(f"{clip.name}: {error}")
            continue
        for name, late in clear(made, is_soft=True).items():
            row(clip.name[-33:], name, late)
        for name, late in made.items():
            pooled[name] += late
        sys.stdout.flush()
    if not pooled[REFERENCE]:
        sys.exit("no clip has an onset")
    print()
    soft, hard = clear(pooled, True), clear(pooled, False)
    for title, table in (("all soft onsets", soft), ("all hard onsets", hard)):
        for name, late in table.items():
            row(title, name, late, has_place=False)
    every = {name: [each for each in late if each.onset.is_soft] for name, late in pooled.items()}
    for name, late in every.items():
        row("and with those that -3 loses", name, late, has_place=False)
    print()
    if soft[REFERENCE]:
        soft["30 ms late"] = [each._replace(late=each.late + 30) for each in soft["spectral"]]
        judge(soft)
    print("\n" + (f"{len(MISSES)} missed:\n  " + "\n  ".join(MISSES) if MISSES
                  else "every limit is met, and every control fails"))
    sys.exit(1 if MISSES else 0)


main()
