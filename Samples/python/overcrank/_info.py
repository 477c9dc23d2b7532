# SPDX-License-Identifier: Apache-2.0
"""The content of a movie file."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ._command import PathLike, fraction, path_text, run


@dataclass(frozen=True)
class VideoInfo:
    """The video track of a file.

    Attributes:
        codec: The codec, such as ``h264``.
        width: The width of the stored frames in pixels.
        height: The height of the stored frames in pixels.
        rotation: The clockwise rotation for display, in degrees.
        frame_count: The number of frames.
        average_fps: The average rate at which the file plays, in frames per second.
        capture_fps: The rate of the camera, in frames per second, or None if the file does not
            state it.
        capture_fps_source: The source of ``capture_fps``, or None.
        variable: Whether the intervals between frames differ.
    """

    codec: str
    width: int
    height: int
    rotation: float
    frame_count: int
    average_fps: Fraction | None
    capture_fps: Fraction | None
    capture_fps_source: str | None
    variable: bool


@dataclass(frozen=True)
class AudioInfo:
    """The audio track of a file.

    Attributes:
        codec: The codec, such as ``aac``.
        sample_rate: The number of samples per second.
        channels: The number of channels.
        sample_count: The number of samples of each channel.
    """

    codec: str
    sample_rate: int
    channels: int
    sample_count: int


@dataclass(frozen=True)
class Info:
    """The content of a movie file.

    Attributes:
        file: The name of the file.
        container: The container format, such as ``mov``.
        duration_ns: The duration in nanoseconds.
        video: The video track, or None.
        audio: The audio track, or None.
        metadata: The metadata of the file by key.
        document: All values that the command printed.
    """

    file: str
    container: str
    duration_ns: int
    video: VideoInfo | None
    audio: AudioInfo | None
    metadata: dict[str, str]
    document: dict[str, Any] = field(repr=False, compare=False)

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return self.duration_ns / 1e9


def info(path: PathLike) -> Info:
    """Describes a movie file.

    Raises:
        CommandError: The file cannot be read.
    """
    document = run("info", path_text(path))
    video, audio = document["video"], document["audio"]
    return Info(
        file=document["file"], container=document["container"],
        duration_ns=document["duration_ns"], video=video and _video(video),
        audio=audio and AudioInfo(
            audio["codec"], audio["sample_rate"], audio["channels"], audio["sample_count"]),
        metadata=document["metadata"], document=document)


def _video(video: dict[str, Any]) -> VideoInfo:
    return VideoInfo(
        codec=video["codec"], width=video["width"], height=video["height"],
        rotation=video["rotation"], frame_count=video["frame_count"],
        average_fps=fraction(video["average_fps"]), capture_fps=fraction(video["capture_fps"]),
        capture_fps_source=video["capture_fps_source"], variable=video["variable"])
