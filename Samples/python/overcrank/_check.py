# SPDX-License-Identifier: Apache-2.0
"""Audits of the timing of a movie."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ._command import Number, PathLike, failure, flag, fraction, option, path_text, program


@dataclass(frozen=True)
class MissingFrames:
    """Frames that are missing between two frames of a movie.

    Attributes:
        after_index: The index of the frame before the gap.
        count: The number of missing frames.
        at_ns: The time at which the first missing frame was due, in nanoseconds.
    """

    after_index: int
    count: int
    at_ns: int


@dataclass(frozen=True)
class FrozenStretch:
    """A stretch of frames that show one image.

    Attributes:
        first_index: The index of the frame that is repeated.
        last_index: The index of the last frame that repeats it.
        start_ns: The time of the first frame, in nanoseconds.
        end_ns: The end of the last frame, in nanoseconds.
    """

    first_index: int
    last_index: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Audit:
    """An audit of a movie's timing.

    Attributes:
        ok: Whether no problem was found.
        problems: The problems, such as ``"gaps"`` or ``"unexpected_rate"``.
        frame_count: The number of frames.
        gaps: The ranges of missing frames.
        duplicates: The indices of frames that repeat the one before.
        frozen: The stretches of at least ten repeated frames.
        measured_fps: The rate of the frames with missing frames counted, or None.
        capture_fps: The rate of the camera that the file states, or None.
        capture_fps_source: The source of ``capture_fps``, or None.
        document: All values that the command printed.
    """

    ok: bool
    problems: list[str]
    frame_count: int
    gaps: list[MissingFrames]
    duplicates: list[int]
    frozen: list[FrozenStretch]
    measured_fps: Fraction | None
    capture_fps: Fraction | None
    capture_fps_source: str | None
    document: dict[str, Any] = field(repr=False, compare=False)


def check(
    path: PathLike, *, expect_fps: Number | None = None, times_only: bool = False,
    plot: PathLike | None = None, overwrite: bool = False,
) -> Audit:
    """Audits the timing of a movie: gaps, repeated frames and false rates.

    Problems are no exception.

    Args:
        path: The movie file.
        expect_fps: The capture rate that the movie should have, in frames per second.
        times_only: Audit only the times, and decode no frame.
        plot: A file for a chart of the intervals, ``.svg`` or ``.png``.
        overwrite: Replace the chart if it exists.

    Raises:
        CommandError: The file cannot be read, or has no video.
    """
    arguments = [
        "check", path_text(path), *option("expect-fps", expect_fps), *flag("times-only", times_only),
        *option("plot", None if plot is None else path_text(plot)), *flag("overwrite", overwrite)]
    done = subprocess.run(
        [program(), *arguments, "--progress", "none", "--json"], stdin=subprocess.DEVNULL,
        capture_output=True, check=False)
    document = json.loads(done.stdout) if done.stdout else None
    # The exit status 10 says that the timing does not hold.
    if done.returncode not in (0, 10) or document is None:
        raise failure(done.returncode, done.stderr, document)
    return Audit(
        ok=document["ok"], problems=document["problems"], frame_count=document["frame_count"],
        gaps=[
            MissingFrames(after_index=gap["after_index"], count=gap["count"], at_ns=gap["at_ns"])
            for gap in document["gaps"]],
        duplicates=[frame["index"] for frame in document["duplicates"]],
        frozen=[
            FrozenStretch(
                first_index=stretch["first_index"], last_index=stretch["last_index"],
                start_ns=stretch["start_ns"], end_ns=stretch["end_ns"])
            for stretch in document["frozen"]],
        measured_fps=fraction(document["measured_fps"]),
        capture_fps=fraction(document["capture_fps"]),
        capture_fps_source=document["capture_fps_source"], document=document)
