# SPDX-License-Identifier: Apache-2.0
"""Finds onsets in audio, and measures how late they come out of a time stretch."""
import typing

import numpy as np

# One step of an envelope, in seconds of the source. A stretched envelope has steps that are longer
# by the stretch, so that the same index means the same moment in both.
STEP = 0.000_25
# What is heard as an onset: neither wind nor rumble.
BAND = (200, 8000)
# Hann window over which power is averaged, in seconds of the source.
SMOOTHING = 0.010
# Half the window that is compared, and how far it is moved either way, in seconds of the output.
WINDOW = 0.25
REACH = 0.25
# Two places of an envelope that correlate less are told apart.
UNLIKE = 0.7


class Onset(typing.NamedTuple):
    """A rise of the envelope."""

    # Where the envelope has risen by half, in seconds of the source.
    time: float
    # From 10 to 90 % of the rise, in seconds.
    rise: float

    @property
    def is_soft(self):
        """Slower than what the smoothing makes of a click."""
        return self.rise > 0.010


def amplitude(samples, rate, stretch=1):
    """The RMS of all channels over `SMOOTHING`, one value a `STEP` of the source."""
    samples = samples.reshape(len(samples), -1)
    low, high = BAND
    power = np.zeros(len(samples))
    size = 1 << len(samples).bit_length()
    frequencies = np.fft.rfftfreq(size, 1 / rate)
    # Half a cosine an octave wide below the band's start, and as wide above its end.
    octaves = np.log2(np.maximum(frequencies, 1e-3))
    gain = np.clip(octaves - np.log2(low) + 1, 0, 1) * np.clip(np.log2(high) + 1 - octaves, 0, 1)
    for channel in samples.T:
        power += np.fft.irfft(np.fft.rfft(channel, size) * gain, size)[:len(samples)] ** 2
    total = np.concatenate([[0], np.cumsum(power)])
    edges = np.arange(0, len(samples) / rate / stretch, STEP) * rate * stretch
    parts = np.diff(np.interp(edges, np.arange(len(total)), total)) / (STEP * rate * stretch)
    width = round(SMOOTHING / STEP)
    window = np.hanning(width + 2)[1:-1]
    return np.sqrt(np.maximum(np.convolve(parts, window / window.sum(), "same"), 0))


def crossing(part, level):
    """Where a rise first exceeds a level, between two steps."""
    above = int(np.argmax(part >= level))
    if above == 0:
        return 0.0
    before, after = part[above - 1:above + 1]
    return above - 1 + (level - before) / (after - before)


def onsets(envelope):
    """Where an envelope rises by 6 dB or more within 50 ms, and comes to -30 dB of its loudest.

    Of rises nearer to each other than 100 ms the greatest counts. A rise goes from the least value
    of the 75 ms before its steepest place to the greatest one of the 75 ms after.
    """
    half, reach, gap = (round(seconds / STEP) for seconds in (0.025, 0.075, 0.1))
    if len(envelope) < 4 * reach:
        return []
    floor = max(envelope.max() * 10 ** (-30 / 20), 10 ** (-60 / 20))
    later, earlier = envelope[2 * half:], envelope[:-2 * half]
    growth = np.where((later >= floor) & (later >= 2 * earlier), later - earlier, 0)
    growth = np.concatenate([np.zeros(half), growth, np.zeros(half)])
    found = []
    margin = round(0.2 / STEP)
    for place in np.argsort(-growth, kind="stable"):
        if growth[place] <= 0:
            break
        if place < margin or place >= len(envelope) - margin:
            continue
        if all(abs(place - other) >= gap for other in found):
            found.append(place)
    made = []
    for place in sorted(found):
        low = place - reach + int(np.argmin(envelope[place - reach:place + 1]))
        high = place + int(np.argmax(envelope[place:place + reach + 1]))
        part = envelope[low:high + 1]
        bottom, top = part[0], part[-1]
        tenth, middle, most = (
            crossing(part, bottom + (top - bottom) * share) for share in (0.1, 0.5, 0.9))
        made.append(Onset((low + middle + 0.5) * STEP, (most - tenth) * STEP))
    return made


def likenesses(wanted, place, other, window, reach):
    """Normalized cross-correlation of an envelope around a place with another one near it."""
    part = wanted[max(0, place - window):place + window + 1]
    first = max(0, place - window) - reach
    part = part - part.mean()
    scores = np.full(2 * reach + 1, -1.0)
    for shift in range(max(0, -first), min(2 * reach, len(other) - len(part) - first) + 1):
        beside = other[first + shift:first + shift + len(part)]
        beside = beside - beside.mean()
        power = np.sqrt(np.dot(part, part) * np.dot(beside, beside))
        scores[shift] = np.dot(part, beside) / max(power, 1e-12)
    return scores


def peaks(scores):
    """Where a correlation is greater than on either side."""
    middle = scores[1:-1]
    return 1 + np.flatnonzero((middle > scores[:-2]) & (middle >= scores[2:]))


def extents(stretch):
    return (round(seconds / stretch / STEP) for seconds in (WINDOW, REACH))


def is_unique(source, onset, stretch):
    """Whether the source has nothing like an onset where it is looked for: pulses are all alike."""
    window, reach = extents(stretch)
    place = round(onset.time / STEP - 0.5)
    scores = likenesses(source, place, source, window, reach)
    return all(scores[peak] < UNLIKE for peak in peaks(scores) if peak != reach)


def lateness(source, output, onset, stretch):
    """How much later than it should an onset comes, in seconds of the output; and how alike.

    Both envelopes have the same steps. That of the source around the onset is looked for in the
    output, by normalized cross-correlation; of places that are nearly as good the nearest counts.
    """
    window, reach = extents(stretch)
    place = round(onset.time / STEP - 0.5)
    scores = likenesses(source, place, output, window, reach)
    found = [peak for peak in peaks(scores) if scores[peak] >= scores.max() - 0.05]
    best = min(found or [int(np.argmax(scores))], key=lambda peak: abs(peak - reach))
    rest = 0.0
    if 0 < best < 2 * reach:
        before, peak, after = scores[best - 1:best + 2]
        bend = before - 2 * peak + after
        rest = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return (best - reach + rest) * STEP * stretch, scores[best]
