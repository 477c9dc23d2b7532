# SPDX-License-Identifier: Apache-2.0
"""Frames of a movie with their exact times."""

from __future__ import annotations

import bisect
import csv
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import IO, Any, Literal, Union

import numpy as np
from numpy.typing import NDArray

from ._command import CommandError, PathLike, failure, launch, path_text, run

#: A time in seconds. Fractions are exact; floats are rounded to nanoseconds.
Seconds = Union[int, float, Fraction]

#: The most frames that one run of the command is asked for by number: arguments have a limit.
_BATCH = 1_000

#: The pixels of an image: RGB, luma of 8 or of 16 bits, or the planes of YUV 4:2:0.
Pixels = Literal["rgb24", "gray8", "gray16le", "yuv420p"]


@dataclass(frozen=True)
class FrameTime:
    """The times of a frame.

    Attributes:
        index: The index of the frame from 0.
        pts_ns: The time at which the file shows the frame, in nanoseconds.
        capture_ns: The time of the capture on the monotonic clock of the recording machine, in
            nanoseconds, or None if the file does not state it.
        sequence: The number that the driver gave the frame, or None.
        duration_ns: How long the file shows the frame, in nanoseconds.
        lost_before: The number of frames lost just before this one, or None if unknown.
        duplicate: Whether the frame repeats the one before it, or None if unknown.
    """

    index: int
    pts_ns: int
    capture_ns: int | None
    sequence: int | None
    duration_ns: int
    lost_before: int | None
    duplicate: bool | None

    @property
    def time(self) -> float:
        """The time at which the file shows the frame, in seconds."""
        return self.pts_ns / 1e9


@dataclass(frozen=True, eq=False)
class Frame(FrameTime):
    """A frame with its times and its image.

    Attributes:
        image: The pixels, by default as 8-bit RGB with the shape (height, width, 3). Luma has the
            shape (height, width), and YUV 4:2:0 the shape (height * 3 // 2, width), as OpenCV
            expects it. The array is contiguous and belongs to the frame alone.
    """

    image: NDArray[Any]


def frame_times(
    path: PathLike, *, keep_index: bool = False, video_track: int | None = None,
) -> list[FrameTime]:
    """Returns the times of all frames of a movie, without decoding one.

    Args:
        path: The movie file.
        keep_index: Whether the times of all packets are kept in a file beside the movie, such as
            ``take.mov.frameindex``, so that later calls need not read the whole movie.
        video_track: The number of the video track, from 1. The default is the one that players
            choose.

    Raises:
        CommandError: The file cannot be read, or has no video.
    """
    with tempfile.TemporaryDirectory(prefix="overcrank-") as directory:
        table = os.path.join(directory, "frames.csv")
        run(
            "frames", path_text(path), "--csv", table, "--progress", "none",
            *_reading_options(keep_index, video_track))
        with open(table, newline="", encoding="utf-8") as file:
            return [_row(row) for row in csv.DictReader(file)]


def frames(
    path: PathLike, *, start: Seconds | None = None, end: Seconds | None = None, step: int = 1,
    at: Iterable[Seconds] | None = None, indices: Iterable[int] | None = None,
    rotation: Literal["apply", "keep"] = "apply", on_error: Literal["stop", "hold"] = "stop",
    pixels: Pixels = "rgb24", keep_index: bool = False, video_track: int | None = None,
) -> Iterator[Frame]:
    """Decodes frames of a movie, one after another.

    Without a selection, all frames come. The command decodes only as far as the iterator is read.
    Closing the iterator ends the command.

    Args:
        path: The movie file.
        start: From the frame that is shown at this time, in seconds.
        end: Up to the last frame that begins before this time, in seconds.
        step: Only every nth of these frames.
        at: The frames shown at these times, in seconds, in this order.
        indices: The frames of these indices, in this order. Negative ones count from the end.
        rotation: Whether images are rotated upright, or stay as they are stored.
        on_error: If a frame cannot be decoded: raise an error, or repeat the previous frame.
        pixels: The pixels of the images: ``"rgb24"``, ``"gray8"``, ``"gray16le"`` or ``"yuv420p"``.
            The pixels of YUV 4:2:0 need even sides.
        keep_index: As in :func:`frame_times`.
        video_track: As in :func:`frame_times`.

    Raises:
        CommandError: The file cannot be read, a frame cannot be decoded, or a time is not finite.
        IndexError: ``start``, ``at`` or ``indices`` names a frame that the movie does not have.
        ValueError: More than one kind of selection is given, or ``step`` is not positive.
    """
    kinds = (start is not None or end is not None or step != 1, at is not None, indices is not None)
    if sum(kinds) > 1:
        raise ValueError("give a range, times or indices, but only one of them")
    if step < 1:
        raise ValueError("step must be positive")
    table = frame_times(path, keep_index=keep_index, video_track=video_track)
    if at is not None:
        chosen = [_index(table, time) for time in at]
    elif indices is not None:
        chosen = [_from_end(index, len(table)) for index in indices]
    else:
        first = 0 if start is None or not table else _index(table, start)
        last = len(table) if end is None else bisect.bisect_left(
            table, math.ceil(_nanoseconds(end)), key=lambda row: row.pts_ns)
        chosen = list(range(first, last, step))
    if not chosen:
        return iter(())
    options = [
        "--rotation", rotation, "--on-error", on_error, "--raw", pixels,
        *_reading_options(keep_index, video_track)]
    return _runs(path, table, chosen, options)


def _reading_options(keep_index: bool, video_track: int | None) -> list[str]:
    track = [] if video_track is None else ["--video-track", str(video_track)]
    return (["--keep-index"] if keep_index else []) + track


def _index(table: list[FrameTime], time: Seconds) -> int:
    """The index of the frame that is shown at a time in seconds."""
    nanoseconds = math.floor(_nanoseconds(time))
    if not table or not 0 <= nanoseconds < table[-1].pts_ns + table[-1].duration_ns:
        raise IndexError(f"no frame is shown at {float(time)} s")
    return max(0, bisect.bisect_right(table, nanoseconds, key=lambda row: row.pts_ns) - 1)


def _nanoseconds(time: Seconds) -> Fraction:
    """A time in nanoseconds. Floats cannot hold most decimal fractions, and are rounded."""
    if isinstance(time, float):
        if not math.isfinite(time):
            raise CommandError("syntax", f"{time} is not a time", "give a time in seconds", 64)
        return Fraction(round(time * 1e9))
    return Fraction(time) * 1_000_000_000


def _from_end(index: int, count: int) -> int:
    if not -count <= index < count:
        raise IndexError(f"the movie has {count} frames, but no frame {index}")
    return int(index) % count


def _row(row: dict[str, str]) -> FrameTime:
    def number(key: str) -> int | None:
        return int(row[key]) if row[key] else None

    duplicate = number("duplicate")
    return FrameTime(
        index=int(row["index"]), pts_ns=int(row["pts_ns"]), capture_ns=number("capture_ns"),
        sequence=number("sequence"), duration_ns=int(row["duration_ns"]),
        lost_before=number("lost_before"), duplicate=None if duplicate is None else bool(duplicate))


def _runs(
    path: PathLike, table: list[FrameTime], chosen: list[int], options: list[str]
) -> Iterator[Frame]:
    """Reads the images of the chosen frames, in one run of the command or in several."""
    selection = _range_options(table, chosen)
    if selection is not None:
        yield from _decode(path, [table[index] for index in chosen], [*selection, *options])
        return
    for start in range(0, len(chosen), _BATCH):
        rows = [table[index] for index in chosen[start:start + _BATCH]]
        numbers = [part for row in rows for part in ("--at", f"{row.index}f")]
        yield from _decode(path, rows, [*numbers, *options])


def _range_options(table: list[FrameTime], chosen: list[int]) -> list[str] | None:
    """The options for frames at equal steps, or None for others.

    The command reads a range by time, so its ends must not be among frames of one time.
    """
    first, last = chosen[0], chosen[-1]
    step = chosen[1] - first if len(chosen) > 1 else 1
    if step < 1 or chosen != list(range(first, last + 1, step)):
        return None
    if any(0 < index < len(table) and table[index - 1].pts_ns >= table[index].pts_ns
           for index in (first, last + 1)):
        return None
    end = "end" if last + 1 == len(table) else f"{last + 1}f"
    bounds = [] if (first, end) == (0, "end") else ["--range", f"{first}f..{end}"]
    return bounds if step == 1 else [*bounds, "--step", str(step)]


def _decode(path: PathLike, rows: list[FrameTime], options: list[str]) -> Iterator[Frame]:
    """Reads the images of these frames from the command, one for each row."""
    # The command writes the line of a frame before its pixels.
    reader, writer = os.pipe()
    with open(reader, "rb") as lines, tempfile.TemporaryFile() as stderr:
        try:
            process = launch(
                ["frames", path_text(path), "-o", "-", "--meta-fd", str(writer),
                 "--splice", "--progress", "none", *options], stderr, [writer])
        finally:
            os.close(writer)
        assert process.stdout is not None
        try:
            for row in rows:
                line = lines.readline()
                image = _read(process.stdout, json.loads(line)) if line else None
                if image is None:
                    break
                yield Frame(**vars(row), image=image)
            else:
                process.wait()
                return
        finally:
            # A command that still writes ends with success once its pipe is closed.
            process.stdout.close()
            process.wait()
        stderr.seek(0)
        raise failure(process.returncode, stderr.read())


def _read(stream: IO[bytes], line: dict[str, Any]) -> NDArray[Any] | None:
    """Reads the pixels of a frame, or returns None if they end too early."""
    height, width, pixels = line["height"], line["width"], line["format"]
    shape: tuple[int, ...] = (height, width)
    if pixels == "rgb24":
        shape = (height, width, 3)
    elif pixels == "yuv420p":
        shape = (line["byte_count"] // width, width)
    image = np.empty(shape, "<u2" if pixels == "gray16le" else np.uint8)
    rest = memoryview(image).cast("B")
    if len(rest) != line["byte_count"]:
        raise ValueError(f"{pixels} has no array for images of {width}x{height}")
    while rest:
        count = stream.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            return None
        rest = rest[count:]
    return image
