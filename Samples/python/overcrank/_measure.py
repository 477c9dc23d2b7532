# SPDX-License-Identifier: Apache-2.0
"""Paths of objects, and distances and angles between marked points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from ._command import Number, PathLike, flag, fraction, option, path_text, run, text


@dataclass(frozen=True)
class TrackedPoint:
    """The position of an object in one frame.

    Attributes:
        index: The index of the frame, from 0.
        pts_ns: The presentation time of the frame, in nanoseconds.
        x: The center of the object, in pixels from the left edge, or None if it is lost.
        y: The center of the object, in pixels from the upper edge, or None if it is lost.
        uncertainty_px: Half the width of the 95 % interval of each coordinate, in pixels, or None.
        score: The agreement with the marked object, from 0 to 1.
        x_m: ``x`` in meters, or None without a scale.
        y_m: ``y`` in meters, or None without a scale.
        speed_mps: The speed in meters per second of real time, or None.
        speed_uncertainty_mps: Half the width of the 95 % interval of the speed, or None.
        seconds: The capture time since the first frame of the movie, in seconds, or None.
        capture_ns: The capture time of the frame, in nanoseconds, or None.
        vx_mps: The velocity to the right in meters per second, or None.
        vy_mps: The velocity downward in meters per second, or None.
    """

    index: int
    pts_ns: int
    x: float | None
    y: float | None
    uncertainty_px: float | None
    score: float
    x_m: float | None
    y_m: float | None
    speed_mps: float | None
    speed_uncertainty_mps: float | None
    seconds: float | None
    capture_ns: int | None
    vx_mps: float | None
    vy_mps: float | None

    @property
    def time(self) -> float:
        """The presentation time, in seconds."""
        return self.pts_ns / 1e9


@dataclass(frozen=True)
class Track:
    """The path of an object.

    Attributes:
        points: One point for each frame, also where the object is lost.
        found_count: The number of frames in which the object was found.
        meters_per_pixel: The scale, or None.
        time_scale: Seconds of real time per second of the movie, or None where it varies.
        time_source: The origin of the time: ``"map"``, ``"recording"``, ``"tag"``, ``"option"`` or
            ``"file"``.
        frames_synthesized: The number of frames that were synthesized and not captured.
        document: All values that the command printed.
    """

    points: list[TrackedPoint]
    found_count: int
    meters_per_pixel: float | None
    time_scale: Fraction | None
    time_source: str
    frames_synthesized: int
    document: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Measurement:
    """A distance between two points, or an angle at the second of three.

    Each uncertainty is half the width of a 95 % interval.

    Attributes:
        index: The index of the frame, from 0.
        pts_ns: The presentation time of the frame, in nanoseconds.
        capture_ns: The capture time of the frame, in nanoseconds, or None.
        points: The numbers of the two or three points, from 1.
        pixels: The distance in pixels, or None for an angle.
        pixels_uncertainty: The uncertainty of ``pixels``, or None.
        meters: The distance in meters, or None for an angle and without a scale.
        meters_uncertainty: The uncertainty of ``meters``, or None.
        degrees: The angle from 0 to 180, or None for a distance.
        degrees_uncertainty: The uncertainty of ``degrees``, or None.
    """

    index: int
    pts_ns: int
    capture_ns: int | None
    points: tuple[int, ...]
    pixels: float | None
    pixels_uncertainty: float | None
    meters: float | None
    meters_uncertainty: float | None
    degrees: float | None
    degrees_uncertainty: float | None


def track(
    path: PathLike, *, at: Number, box: tuple[int, int, int, int], until: Number | None = None,
    by: Literal["patch", "color"] | None = None, reach: int | None = None,
    scale: str | None = None, capture_fps: Number | None = None,
    clock: Literal["capture", "file"] | None = None,
) -> Track:
    """Follows an object through the frames of a movie.

    Args:
        path: The movie file.
        at: The time of the frame in which ``box`` marks the object, in seconds.
        box: The left edge, the upper edge, the width and the height of the object, in pixels of
            the frame as it is displayed.
        until: End at this time, in seconds. By default, at the end of the movie.
        by: Find the brightness pattern of the box (``"patch"``), or the color in its middle.
        reach: The greatest distance from the predicted position, in pixels.
        scale: A known length in the image, such as ``"96=1m"`` or ``"96±1=1±0.002m"``.
        capture_fps: The rate of the camera in frames per second, if the file does not state it.
        clock: Measure in the time of the capture, as by default, or in that of the file.

    Raises:
        CommandError: The file cannot be read, its capture times are unknown, or nothing in the box fixes a position.
    """
    document = run(
        "track", path_text(path), "--at", text(at), "--box", ",".join(map(str, box)),
        *option("until", until), *option("by", by), *option("reach", reach),
        *option("scale", scale), *option("capture-fps", capture_fps),
        *option("clock", clock))
    names = TrackedPoint.__dataclass_fields__
    return Track(
        points=[
            TrackedPoint(**{name: point[name] for name in names}) for point in document["points"]],
        found_count=document["found_count"], meters_per_pixel=document["meters_per_pixel"],
        time_scale=fraction(document["time_scale"]), time_source=document["time_source"],
        frames_synthesized=document["frames_synthesized"],
        document=document)


def measure(
    path: PathLike, points: Mapping[Number, Iterable[tuple[float, float]]], *,
    scale: str | None = None, point_error: float | None = None, csv: PathLike | None = None,
    overwrite: bool = False,
) -> list[Measurement]:
    """Measures distances and angles between points that are marked in frames.

    Each point of a frame is joined to the next one. The result has the distances between them,
    and the angle at each inner point.

        >>> for item in measure("take.mov", {0.2: [(0, 0), (3, 4), (3, 0)]}):
        ...     print(item.points, item.pixels, item.degrees)
        (1, 2) 5 None
        (2, 3) 4 None
        (1, 2, 3) None 36.86989764584402

    Args:
        path: The movie file.
        points: For each time of a frame in seconds, at least two points: x and y in pixels of the
            frame as it is displayed, from the upper left corner.
        scale: A known length in the image, such as ``"96=1m"`` or ``"96±1=1±0.002m"``.
        point_error: Half the width of the 95 % interval of a coordinate, in pixels. Default: 1.
        csv: A file for the table.
        overwrite: Replace the table if it exists.

    Raises:
        CommandError: The file cannot be read, or a point is outside the frame.
    """
    arguments = [path_text(path)]
    for time, marked in points.items():
        arguments += [
            "--at", text(time), "--points", " ".join(f"{float(x)!r},{float(y)!r}" for x, y in marked)]
    document = run(
        "measure", *arguments, *option("scale", scale), *option("point-error", point_error),
        *option("csv", None if csv is None else path_text(csv)), *flag("overwrite", overwrite))
    return [
        Measurement(**{**item, "points": tuple(item["points"])})
        for item in document["measurements"]]
