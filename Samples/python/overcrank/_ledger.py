# SPDX-License-Identifier: Apache-2.0
"""The account of all frames of a recording."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Ledger:
    """The number of frames of a recording, by what became of them.

    ``expected`` is counted on its own and equals the sum of all other fields.

    Attributes:
        expected: The frames that the camera should have delivered.
        stored: The frames in the file.
        corrupt: The frames that arrived damaged.
        lost_start: Frames lost before the first one was stored.
        lost_device: Frames that the camera or the bus lost.
        lost_kernel: Frames that the driver dropped, because it had no free buffer.
        lost_queue: Frames dropped before the writer, because its queue was full.
        lost_writer: Frames that could not be written.
        evicted: Frames from before a trigger that no clip contains.
        unknown: Frames that were lost for a cause that is not known.
    """

    expected: int
    stored: int
    corrupt: int
    lost_start: int
    lost_device: int
    lost_kernel: int
    lost_queue: int
    lost_writer: int
    evicted: int
    unknown: int

    @classmethod
    def of(cls, document: dict[str, int]) -> Ledger:
        """Reads the ledger of a report."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})

    @property
    def lost(self) -> int:
        """The frames that count for ``max_drops``."""
        return self.expected - self.stored - self.evicted - self.lost_start


@dataclass(frozen=True)
class Gap:
    """Frames that are missing between two frames of a recording.

    Attributes:
        after_index: The index of the frame before the gap.
        count: The number of missing frames.
        at_ns: The time of the first missing frame in the file, in nanoseconds.
        cause: The field of ``Ledger`` that counts them.
    """

    after_index: int
    count: int
    at_ns: int
    cause: str

    @classmethod
    def of(cls, document: dict[str, Any]) -> Gap:
        """Reads a gap of a report."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})
