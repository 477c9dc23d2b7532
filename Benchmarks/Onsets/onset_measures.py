# SPDX-License-Identifier: Apache-2.0
"""Finds onsets in audio, and measures their delay after a time stretch."""
import typing

import numpy as np

# The step of an envelope, in seconds of the source. The step of a stretched envelope is longer by
# the stretch, so that equal indices mean the same moment in both.
STEP = 0.000_25
# The frequency band of audible onsets, without wind and rumble, in Hz.
BAND = (200, 8000)
# The Hann window for averaging power, in seconds of the source.
SMOOTHING = 0.010
# Half the compared window, and the search range in each direction, in seconds of the output.
WINDOW = 0.25
REACH = 0.25
# Positions of an envelope with a lower correlation count as distinct.
UNLIKE = 0.7


class Onset(typing.NamedTuple):
    """A rise of the envelope."""

    # The time at which half of the rise is reached, in seconds of the source.
    time: float
    # The time from 10 to 90 % of the rise, in seconds.
    rise: float

    @property
    def is_soft(self):
        """Whether the rise is slower than that of a click after smoothing."""
        return self.rise > 0.010


def amplitude(samples, rate, stretch=1):
    """The RMS of all channels over `SMOOTHING`, one value per `STEP` of the source."""
    samples = samples.reshape(len(samples), -1)
    low, high = BAND
    power = np.zeros(len(samples))
    size = 1 << len(samples).bit_length()
    frequencies = np.fft.rfftfreq(size, 1 / rate)
    # The gain falls by a half-cosine over one octave below the band and one above it.
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
    """The position at which a rise first exceeds a level, interpolated between two steps."""
    above = int(np.argmax(part >= level))
    if above == 0:
        return 0.0
    before, after = part[above - 1:above + 1]
    return above - 1 + (level - before) / (after - before)


def onsets(envelope):
    """Finds rises of at least 6 dB within 50 ms that reach -30 dB of the envelope's maximum.

    Of rises closer than 100 ms, the largest counts. A rise extends from the minimum of the 75 ms
    before its steepest position to the maximum of the 75 ms after it.
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
    """The normalized cross-correlation of an envelope around a position with a shifted envelope."""
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
    """The local maxima of a correlation."""
    middle = scores[1:-1]
    return 1 + np.flatnonzero((middle > scores[:-2]) & (middle >= scores[2:]))


def extents(stretch):
    return (round(seconds / stretch / STEP) for seconds in (WINDOW, REACH))


def is_unique(source, onset, stretch):
    """Whether no other position in the search range resembles the onset; pulse trains fail."""
    window, reach = extents(stretch)
    place = round(onset.time / STEP - 0.5)
    scores = likenesses(source, place, source, window, reach)
    return all(scores[peak] < UNLIKE for peak in peaks(scores) if peak != reach)


def lateness(source, output, onset, stretch):
    """The delay of an onset in seconds of the output, and its correlation.

    Both envelopes have the same steps. The source envelope around the onset is searched in the
    output by normalized cross-correlation. Of nearly equal maxima, the closest counts.
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
