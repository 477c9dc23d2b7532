# SPDX-License-Identifier: Apache-2.0
"""High-frame-rate capture and exact slow motion, through the command ``slowmo``.

The module finds the command by the environment variable ``SLOWMO``, or else on the ``PATH``.
Times that end in ``_ns`` are integers in nanoseconds. Rates and speeds are exact fractions.

    >>> import overcrank
    >>> take = overcrank.record(
    ...     "synthetic:320x240@240?pace=max", "take.mov", duration=1)
    >>> take.ledger.stored
    240
    >>> for frame in take.frames(start=0.5, end=0.51):
    ...     print(frame.index, round(frame.time, 3), frame.image.shape)
    120 0.5 (240, 320, 3)
    121 0.504 (240, 320, 3)
    122 0.508 (240, 320, 3)
"""

from ._check import Audit, FrozenStretch, MissingFrames, check
from ._clip import Clip, Recording, Retimed, record, retime
from ._command import CommandError
from ._devices import Device, MeasuredRate, Mode, devices, modes
from ._frames import Frame, FrameTime, frame_times, frames
from ._info import AudioInfo, Info, VideoInfo, info
from ._ledger import Gap, Ledger
from ._measure import Measurement, Track, TrackedPoint, measure, track
from ._version import __version__

__all__ = [
    "Audit", "AudioInfo", "Clip", "CommandError", "Device", "Frame", "FrameTime", "FrozenStretch",
    "Gap", "Info", "Ledger", "MeasuredRate", "Measurement", "MissingFrames", "Mode", "Recording",
    "Retimed", "Track", "TrackedPoint", "VideoInfo", "__version__", "check", "devices",
    "frame_times", "frames", "info", "measure", "modes", "record", "retime", "track",
]
