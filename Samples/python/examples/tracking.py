# SPDX-License-Identifier: Apache-2.0
"""Times and positions with their uncertainties, for the scripts beside this file.

Every uncertainty is a standard uncertainty, until it is printed. Printed intervals contain the true
value with a probability of 95 %, if the assumptions of the script hold.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import overcrank
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The standard uncertainties in half of an interval of 95 %.
COVERAGE = 2.0
#: Neighboring positions share a part of their errors, so a fit has fewer independent ones.
SHARED_ERRORS = 2.0
#: The standard uncertainty of the center of a marker against a mark, in pixels.
CENTER_ERROR = 0.25
#: The fewest frames for a curve.
FEWEST = 6
CHANNELS = {"red": 0, "green": 1, "blue": 2}


@dataclass(frozen=True)
class Value:
    """A measured value with its standard uncertainty."""

    value: float
    uncertainty: float

    def __sub__(self, other: Value) -> Value:
        return Value(self.value - other.value, math.hypot(self.uncertainty, other.uncertainty))

    @property
    def half_width(self) -> float:
        """Half of the interval of 95 %."""
        return COVERAGE * self.uncertainty

    def text(self, unit: str) -> str:
        """The value and the interval with two digits of the uncertainty."""
        digits = 3
        if 0 < self.half_width < math.inf:
            digits = max(0, 1 - math.floor(math.log10(self.half_width)))
        return f"{self.value:.{digits}f} ± {self.half_width:.{digits}f} {unit}"


@dataclass(frozen=True)
class Track:
    """The positions of a marker, in the frames in which it was found.

    Attributes:
        times: The capture times in seconds, from the first frame of the file.
        x: The columns of the center, in pixels from the left edge of the image.
        y: The rows of the center, in pixels from the top edge of the image.
    """

    times: Array
    x: Array
    y: Array


def main(description: str | None, parser: argparse.ArgumentParser,
         measure: Callable[[argparse.Namespace], dict[str, Value]], units: dict[str, str]) -> None:
    """Runs a script: reads its options, measures, and prints the results."""
    parser.description, _, parser.epilog = (description or "").partition("\n\n")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", help="the movie file")
    parser.add_argument("--capture-fps", type=float, metavar="R",
                        help="the rate of the camera, if the file does not state it")
    parser.add_argument("--color", choices=CHANNELS, default="red",
                        help="the color channel in which the marker is brightest (default: red)")
    parser.add_argument("--region", metavar="X,Y,W,H",
                        help="look for the marker only here, in pixels")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    try:
        results = measure(options)
    except (overcrank.CommandError, ValueError, IndexError) as error:
        sys.exit(f"{parser.prog}: {error}")
    if options.json:
        print(json.dumps({
            name: {"value": value.value, "half_width_95": value.half_width, "unit": units[name]}
            for name, value in results.items()}, indent=2))
        return
    for name, value in results.items():
        print(f"{name}: {value.text(units[name])}")


def capture_times(options: argparse.Namespace) -> Array:
    """The capture times of all frames in seconds, from the first frame.

    A clip in slow motion does not show when its frames were captured. Then the rate of the camera
    must be known, and no frame may be missing.
    """
    table = overcrank.frame_times(options.file)
    if not table:
        raise ValueError(f"{options.file} has no frames")
    if options.capture_fps:
        return np.array([row.index / options.capture_fps for row in table])
    stamps = [row.capture_ns for row in table]
    if None not in stamps:
        return (np.array(stamps) - stamps[0]) / 1e9
    video = overcrank.info(options.file).video
    if video is None or not video.capture_fps or not video.average_fps or not math.isclose(
            video.capture_fps, video.average_fps, rel_tol=0.01):
        raise ValueError(
            f"{options.file} does not state when its frames were captured; give --capture-fps")
    return np.array([row.pts_ns for row in table]) / 1e9


def event(times: Array, index: int) -> Value:
    """The time of an event that a frame is the first to show.

    It happened at any time since the frame before.
    """
    if not 1 <= index < len(times):
        raise ValueError(f"frame {index} does not exist, or has none before it")
    interval = times[index] - times[index - 1]
    return Value(float(times[index] - interval / 2), float(interval / math.sqrt(12)))


def frame_numbers(text: str) -> list[int]:
    """Reads a list of frame indices such as 120,260."""
    return [int(part) for part in text.split(",")]


def track(options: argparse.Namespace) -> Track:
    """Finds the center of a marker of one color in every frame.

    The marker moves, and is the only moving thing of its color in the region.
    """
    times = capture_times(options)
    left, top, width, height = map(int, (options.region or "0,0,0,0").split(","))
    channel = CHANNELS[options.color]

    def excesses(step: int) -> Iterator[tuple[int, NDArray[np.int16]]]:
        for frame in overcrank.frames(options.file, step=step):
            image = frame.image[top:top + height or None, left:left + width or None]
            colors = image.astype(np.int16)
            others = np.maximum(colors[..., channel - 2], colors[..., channel - 1])
            yield frame.index, colors[..., channel] - others

    # Things of this color that are in all of these frames do not move.
    samples = [excess for _, excess in excesses(max(1, len(times) // 25))]
    still = np.maximum(np.minimum.reduce(samples), 0)
    brightest = max(int((sample - still).max()) for sample in samples)
    if brightest < 40:
        raise ValueError(f"nothing {options.color} moves in {options.file}; choose another --color")
    rows = np.arange(still.shape[0])[:, None] + top + 0.5
    columns = np.arange(still.shape[1]) + left + 0.5
    found = []
    sizes = []
    for index, excess in excesses(1):
        weights = np.clip(excess - still - brightest * 0.3, 0, brightest * 0.4)
        total = weights.sum()
        sizes.append(total)
        if total > 0:
            found.append((index, (weights * columns).sum() / total, (weights * rows).sum() / total,
                          total))
    # A marker that is half hidden, or a few pixels of noise, have another center.
    usual = float(np.median(sizes))
    kept = np.array([row[:3] for row in found if 0.8 < row[3] / usual < 1.25])
    lost = len(times) - len(kept)
    if lost > len(times) / 2:
        raise ValueError(f"the marker is lost in {lost} of {len(times)} frames; choose a --region "
                         "or another --color, or the --frames of the events by eye")
    if lost:
        print(f"note: the marker is lost in {lost} of {len(times)} frames", file=sys.stderr)
    return Track(times[kept[:, 0].astype(int)], kept[:, 1], kept[:, 2])


@dataclass(frozen=True)
class Curve:
    """A polynomial of the second degree through positions, with the errors of its coefficients."""

    middle: float
    coefficients: Array
    covariance: Array

    @classmethod
    def fit(cls, times: Array, positions: Array) -> Curve:
        if len(times) < FEWEST:
            raise ValueError("too few frames; record at a higher rate")
        middle = float(times.mean())
        powers = np.vander(times - middle, 3)
        coefficients = np.linalg.lstsq(powers, positions, rcond=None)[0].astype(np.float64)
        residuals = positions - powers @ coefficients
        variance = residuals @ residuals / (len(times) - 3)
        covariance = np.linalg.inv(powers.T @ powers) * variance * SHARED_ERRORS
        return cls(middle, coefficients, covariance)

    def position(self, time: float) -> Value:
        """The position at a time."""
        powers = np.array([(time - self.middle) ** 2, time - self.middle, 1])
        return Value(float(powers @ self.coefficients),
                     math.sqrt(float(powers @ self.covariance @ powers)))

    def speed(self, time: float) -> float:
        """The speed at a time, in pixels per second."""
        return float(2 * self.coefficients[0] * (time - self.middle) + self.coefficients[1])


def _time_of(position: Callable[[float], Value], speed: Callable[[float], float],
             guess: float) -> Value:
    """The time near a guess at which a position is 0."""
    time = guess
    for _ in range(50):
        step = position(time).value / speed(time)
        time -= step
        if abs(step) < 1e-12:
            break
    return Value(time, position(time).uncertainty / abs(speed(time)))


def contacts(path: Track, window: float = 0.15) -> list[Value]:
    """The times at which a marker touches the ground, which is where it turns upward abruptly.

    The positions before and after a contact are on two curves. They meet at the contact. A contact
    within half a window of the first or last frame is left out.
    """
    times, y = path.times, path.y
    low = y > y.max() - 0.15 * (y.max() - y.min())
    edges = np.flatnonzero(np.diff(low.astype(int)))
    # Each group of low positions has one contact, unless the file begins or ends within it.
    lowest = [first + int(np.argmax(y[first:last + 1]))
              for first, last in zip(edges, edges[1:]) if low[first + 1]]
    if len(lowest) > 1:
        window = min(window, 0.45 * float(np.diff(times[lowest]).min()))
    found = []
    for index in lowest:
        guess = times[index]
        before = (times > guess - window) & (times < guess) & (np.arange(len(y)) < index - 1)
        after = (times < guess + window) & (np.arange(len(y)) > index + 1)
        if guess - window < times[0] or guess + window > times[-1]:
            continue
        falling, rising = Curve.fit(times[before], y[before]), Curve.fit(times[after], y[after])
        found.append(_time_of(
            lambda time: falling.position(time) - rising.position(time),
            lambda time: falling.speed(time) - rising.speed(time), guess))
    return found


def passes(path: Track, axis: str, mark: float, window: float = 0.03) -> list[Value]:
    """The times at which the center of a marker passes a column (axis x) or a row (axis y).

    The mark is read from the image with an error of at most half a pixel. The light, and what is
    behind the marker, move its center too. A pass with too few frames around it, as at the end of
    the file, is left out.
    """
    position = Value(mark, math.hypot(1 / math.sqrt(12), CENTER_ERROR))
    times, values = path.times, getattr(path, axis)
    found = []
    for index in np.flatnonzero(np.diff(np.sign(values - mark))):
        guess = (times[index] + times[index + 1]) / 2
        near = np.abs(times - guess) <= max(window, 4 * float(times[index + 1] - times[index]))
        if near.sum() < FEWEST:
            continue
        curve = Curve.fit(times[near], values[near])
        # At a turning point the speed is 0, and the time of the pass has no finite uncertainty.
        if curve.speed(guess):
            found.append(_time_of(
                lambda time: curve.position(time) - position, curve.speed, guess))
    return found
