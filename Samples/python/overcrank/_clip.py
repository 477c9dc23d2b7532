# SPDX-License-Identifier: Apache-2.0
"""Movie files, and the verbs that write them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Union

from . import _notebook
from ._check import Audit, check
from ._command import CommandError, Number, PathLike, flag, fraction, option, path_text, run, text
from ._devices import Device, name
from ._frames import Frame, FrameTime, Pixels, Seconds, frame_times, frames
from ._info import Info, info
from ._ledger import Gap, Ledger

#: A range of the source: its start and its end, or a text such as ``"0.5+250ms"``.
Range = Union[str, "tuple[Number, Number]"]


class Clip(os.PathLike[str]):
    """A movie file. In a notebook it shows itself.

    Attributes:
        path: The path of the file.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def _repr_html_(self) -> str:
        return _notebook.html(self)

    def info(self) -> Info:
        """Describes the file, as ``overcrank.info()`` does."""
        return info(self)

    def frame_times(
        self, *, keep_index: bool = False, video_track: int | None = None,
    ) -> list[FrameTime]:
        """Returns the times of all frames, as ``overcrank.frame_times()`` does."""
        return frame_times(self, keep_index=keep_index, video_track=video_track)

    def frames(
        self, *, start: Seconds | None = None, end: Seconds | None = None, step: int = 1,
        at: Iterable[Seconds] | None = None, indices: Iterable[int] | None = None,
        rotation: Literal["apply", "keep"] = "apply", on_error: Literal["stop", "hold"] = "stop",
        pixels: Pixels = "rgb24", keep_index: bool = False, video_track: int | None = None,
    ) -> Iterator[Frame]:
        """Decodes frames, as ``overcrank.frames()`` does."""
        return frames(
            self, start=start, end=end, step=step, at=at, indices=indices, rotation=rotation,
            on_error=on_error, pixels=pixels, keep_index=keep_index, video_track=video_track)

    def check(self, *, expect_fps: Number | None = None) -> Audit:
        """Audits the timing, as ``overcrank.check()`` does."""
        return check(self, expect_fps=expect_fps)


class Recording(Clip):
    """A recording and its report. It stands for its first file.

    Attributes:
        clips: All files of the recording.
        mode: The mode of the camera, such as ``640x480@240/mjpg``.
        requested_fps: The requested rate, in frames per second.
        negotiated_fps: The rate that the driver promised, in frames per second.
        measured_fps: The rate of the camera with all lost frames, in frames per second, or None.
        duration_ns: The duration in nanoseconds.
        ledger: The account of all frames.
        gaps: The ranges of missing frames.
        stopped_by: Why the recording ended, such as ``"duration"``.
        document: All values that the command printed.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        files = document.get("files") or [document]
        self.clips = [Clip(file["file"]) for file in files]
        super().__init__(self.clips[0])
        self.mode: str = document["mode"]
        self.requested_fps = fraction(document["requested_fps"])
        self.negotiated_fps = fraction(document["negotiated_fps"])
        self.measured_fps = fraction(document["measured_fps"])
        self.duration_ns: int = document["duration_ns"]
        self.ledger = Ledger.of(document["ledger"])
        self.gaps = [Gap.of(gap) for gap in document["gaps"]]
        self.stopped_by: str = document["stopped_by"]
        self.document = document


class Retimed(Clip):
    """A clip at other speeds and its report.

    Attributes:
        duration_ns: The duration in nanoseconds.
        frames_copied: The frames whose bytes were copied.
        frames_encoded: The frames that were encoded.
        frames_duplicated: The encoded frames that repeat the one before them.
        frames_skipped: The frames of the source that were not used.
        max_time_error_ns: The largest error of a frame's time, in nanoseconds.
        document: All values that the command printed.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document["file"])
        self.duration_ns: int = document["duration_ns"]
        self.frames_copied: int = document["frames_copied"]
        self.frames_encoded: int = document["frames_encoded"]
        self.frames_duplicated: int = document["frames_duplicated"]
        self.frames_skipped: int = document["frames_skipped"]
        self.max_time_error_ns: int = document["max_time_error_ns"]
        self.document = document


def record(
    device: str | Device, output: PathLike, *, duration: Number | None = None,
    frames: int | None = None, mode: str | None = None, codec: str | None = None,
    audio: str | None = None, max_drops: int | None = None, trigger: str | None = None,
    pre: Number | None = None, post: Number | None = None, repeat: bool = False,
    max_clips: int | None = None, segment: Number | None = None, title: str | None = None,
    tags: Mapping[str, str] | None = None, overwrite: bool = False, options: Iterable[str] = (),
) -> Recording:
    """Records a camera and accounts for every frame.

    Without ``duration``, ``frames`` or ``trigger``, the recording goes on until Python is
    interrupted. The file is then complete, and KeyboardInterrupt is raised.

    Args:
        device: A camera, or its name: ``/dev/video0``, ``cam0``, part of its id or
            ``synthetic:640x480@240``.
        output: The movie file to write, ``.mov`` or ``.mp4``. With ``repeat`` or ``segment``, a
            template such as ``"swing_{n:03}.mov"``.
        duration: Stop after this duration, in seconds.
        frames: Stop after this many frames.
        mode: The mode, as ``[WxH][@rate][/fourcc]``. By default, the fastest one.
        codec: ``"auto"``, ``"copy"``, ``"h264"``, ``"mjpeg"``, ``"ffv1"`` or ``"raw"``.
        audio: The microphone, or ``"none"``. By default, that of the source.
        max_drops: Raise an error if more frames than this are lost. The file is kept.
        trigger: Record a clip at ``"signal"``, ``"udp:PORT"``, ``"audio:-12dBFS"`` or ``"motion"``.
        pre: The time before the trigger that the clip contains, in seconds.
        post: The time after the trigger that the clip contains, in seconds.
        repeat: Wait for the next trigger after each clip.
        max_clips: Stop after this many clips.
        segment: Begin a new file after this much time, in seconds.
        title: The title in the metadata of the file.
        tags: More metadata of the file.
        overwrite: Replace the output if it exists.
        options: More options of ``slowmo record``, such as ``["--burst"]``.

    Raises:
        CommandError: The device is unavailable, or the file cannot be written.
    """
    arguments = [
        name(device), "--output", path_text(output), *option("duration", duration),
        *option("frames", frames), *option("mode", mode), *option("codec", codec),
        *option("audio", audio), *option("max-drops", max_drops), *option("trigger", trigger),
        *option("pre", pre), *option("post", post), *flag("repeat", repeat),
        *option("max-clips", max_clips), *option("segment", segment), *option("title", title),
        *flag("overwrite", overwrite)]
    for key, value in (tags or {}).items():
        arguments += ["--tag", f"{key}={value}"]
    return Recording(run("record", *arguments, "--progress", "none", *options))


def retime(
    path: PathLike, output: PathLike, *, speed: Number | None = None,
    ranges: Iterable[tuple[Range, Number]] = (), ramp: str | None = None,
    preset: Literal["impact", "landing", "freeze", "pulse"] | None = None,
    at: Number | None = None, trim: Range | None = None, playback_fps: Number | None = None,
    copy: bool = False, fps: Number | None = None, pitch: str | None = None,
    sampling: Literal["hold", "nearest", "blend", "flow", "flow-fast"] | None = None,
    codec: str | None = None, crf: int | None = None, overwrite: bool = False, options: Iterable[str] = (),
) -> Retimed:
    """Plays a clip, or parts of it, slower or faster.

    Either ``copy`` or ``fps`` says how the frames are written.

    Args:
        path: The movie file.
        output: The file to write, ``.mov`` or ``.mp4``.
        speed: The speed of the whole clip, in source seconds per output second, such as
            ``Fraction(1, 8)``. With ``preset``, the speed of the slow part.
        ranges: Ranges of the source, each with its speed. The rest plays at speed 1.
        ramp: Speeds at source times, such as ``"1=1 1.3=1/8 2=1"``.
        preset: Slow down around ``at``.
        at: The source time of ``preset``, in seconds.
        trim: Keep only this range of the source.
        playback_fps: Play every frame at this rate, in frames per second.
        copy: Do not encode again: each frame keeps its bytes and gets its exact time.
        fps: Render at this constant rate, in frames per second.
        pitch: The audio of retimed parts: ``"spectral"``, ``"time-domain"``, ``"varispeed"``,
            ``"low-quality"`` or ``"mute"``.
        sampling: With ``fps``, which frame is shown at each output time.
        codec: With ``fps``, ``"h264"``, ``"hevc"``, ``"ffv1"`` or ``"mjpeg"``.
        crf: With ``fps``, the quality of H.264 and HEVC from 0 (lossless) to 51.
        overwrite: Replace the output if it exists.
        options: More options of ``slowmo retime``, such as ``["--box", "640x360"]``.

    Raises:
        CommandError: The file cannot be read, the output cannot be written, or its name is a
            template, which stands for many files.
    """
    if re.search(r"\{\w+(:\d+)?\}", os.fspath(output)):
        raise CommandError(
            "usage", f"the output {os.fspath(output)} is a template", "name one file", 64)
    arguments = [path_text(path), "--output", path_text(output)]
    for part, part_speed in ranges:
        arguments += ["--range", _range_text(part), "--speed", text(part_speed)]
    arguments += [
        *option("speed", speed), *option("ramp", ramp), *option("preset", preset),
        *option("at", at), *option("trim", None if trim is None else _range_text(trim)),
        *option("playback-fps", playback_fps), *flag("copy", copy), *option("fps", fps),
        *option("pitch", pitch), *option("sampling", sampling), *option("codec", codec),
        *option("crf", crf), *flag("overwrite", overwrite)]
    return Retimed(run("retime", *arguments, "--progress", "none", *options))


def _range_text(value: Range) -> str:
    return value if isinstance(value, str) else f"{text(value[0])}..{text(value[1])}"
