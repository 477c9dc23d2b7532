# SPDX-License-Identifier: Apache-2.0
"""Objective measures of retimed audio; single-channel measures take a plain array."""
import numpy as np


def decibels(ratio):
    return 20 * np.log10(max(ratio, 1e-12))


def fit(samples, frequency, rate):
    """The complex amplitude of a sine of known frequency, and the residual."""
    angle = 2 * np.pi * frequency / rate * np.arange(len(samples))
    basis = np.stack([np.cos(angle), np.sin(angle)], 1)
    weights = np.linalg.lstsq(basis, samples, rcond=None)[0]
    return complex(weights[0], -weights[1]), samples - basis @ weights


def peak_frequency(samples, rate):
    """The frequency of the strongest tone, interpolated in a Blackman-Harris spectrum."""
    count, size = len(samples), 1 << (2 * len(samples) - 1).bit_length()
    angle = 2 * np.pi * np.arange(count) / count
    window = (0.35875 - 0.48829 * np.cos(angle) + 0.14128 * np.cos(2 * angle)
              - 0.01168 * np.cos(3 * angle))
    power = np.log(np.abs(np.fft.rfft(samples * window, size)) + 1e-30)
    top = min(max(1, int(np.argmax(power))), len(power) - 2)
    low, middle, high = power[top - 1:top + 2]
    return (top + 0.5 * (low - high) / (low - 2 * middle + high)) * rate / size


def tone(samples, frequency, rate):
    """The pitch error in cents and the SINAD in dB, for the middle of a sine."""
    middle = samples[len(samples) // 4:len(samples) * 3 // 4]
    found = peak_frequency(middle, rate)
    for _ in range(2):  # The phase advance between both halves refines the frequency.
        half = len(middle) // 2
        first, _ = fit(middle[:half], found, rate)
        second, _ = fit(middle[half:2 * half], found, rate)
        advance = np.angle(second / first) - 2 * np.pi * found / rate * half
        found += (advance + np.pi) % (2 * np.pi) / (2 * np.pi * half) * rate - rate / (2 * half)
    amplitude, rest = fit(middle, found, rate)
    cents = 1200 * np.log2(max(found, 1) / frequency)
    return abs(cents), decibels(abs(amplitude) / np.sqrt(2) / max(np.std(rest), 1e-12))


def sweep_cents(samples, stretch, rate, frequency_at):
    """The pitch error of a stretched sweep in cents, in 85 ms blocks: the 95th percentile."""
    size, errors = 4096, []
    for start in range(size, len(samples) - 2 * size, size):
        expected = frequency_at((start + size / 2) / rate / stretch)
        found = peak_frequency(samples[start:start + size], rate)
        errors.append(abs(1200 * np.log2(found / expected)))
    return np.percentile(errors, 95)


def envelope(samples, rate):
    """Power averaged over 4 ms."""
    width = rate // 250
    window = np.hanning(width + 2)[1:-1] / width * 2
    size = 1 << (len(samples) + width).bit_length()
    power = np.fft.irfft(np.fft.rfft(samples ** 2, size) * np.fft.rfft(window, size), size)
    return np.maximum(power[(width - 1) // 2:][:len(samples)], 0)


def bursts(samples, middles, stretch, rate, reference):
    """The result of bursts in silence: number lost, offset and width in ms, echo in dB.

    A burst is at the maximum of the power over 4 ms; its offset is relative to the expected middle.
    An echo is the loudest part more than 5 ms away.
    """
    power = envelope(samples, rate)
    loud = np.median(envelope(reference, rate)[middles.astype(int)])
    lost, offsets, widths, echoes = 0, [], [], []
    for middle in middles:
        start = int(max(0, (middle - 0.13 * rate) * stretch))
        part = power[start:int((middle + 0.14 * rate) * stretch)]
        if len(part) == 0 or part.max() < loud / 300:
            lost += 1
            continue
        top = int(np.argmax(part))
        offsets.append((start + top - middle * stretch) / rate * 1000)
        total = np.cumsum(samples[start:start + len(part)] ** 2)
        widths.append(
            np.searchsorted(total, total[-1] * 0.95) - np.searchsorted(total, total[-1] * 0.05))
        away = np.abs(np.arange(len(part)) - top) > rate // 200 + rate // 500
        echoes.append(part[away].max() / part[top])
    if not offsets:
        return {"lost": lost, "offset": 999.0, "width": 999.0, "echo": 0.0}
    return {
        "lost": lost, "offset": np.percentile(np.abs(offsets), 95),
        "width": np.median(widths) / rate * 1000, "echo": decibels(np.sqrt(np.median(echoes)))}


def convergence(output, source, stretch, size=2048, hop=512):
    """The spectral distance to the source at the corresponding time, in dB."""
    padded = np.concatenate([np.zeros(size), source, np.zeros(size)])
    window = np.hanning(size + 1)[:-1]
    difference = total = 0.0
    for start in range(0, len(output) - size, hop):
        at = int(round((start + size / 2) / stretch + size / 2))
        if at + size > len(padded):
            break
        wanted = np.abs(np.fft.rfft(padded[at:at + size] * window))
        got = np.abs(np.fft.rfft(output[start:start + size] * window))
        difference += np.sum((got - wanted) ** 2)
        total += np.sum(wanted ** 2)
    return decibels(np.sqrt(difference / total))


def correlation(samples):
    return np.corrcoef(samples[:, 0], samples[:, 1])[0, 1]


def phase_between(samples, frequency, rate):
    """The phase difference of two channels' sines in degrees, over the middle half."""
    middle = samples[len(samples) // 4:len(samples) * 3 // 4]
    first, _ = fit(middle[:, 0], frequency, rate)
    second, _ = fit(middle[:, 1], frequency, rate)
    return np.degrees(np.angle(second / first))


def side(samples):
    """The level of the difference between two equal channels, in dB."""
    return decibels(np.std(samples[:, 0] - samples[:, 1]) / np.std(samples[:, 0]))


def joins(samples, places, frequency, rate):
    """The level above 4 kHz at joins and away from them, the roughness, and the deepest dip, in
    dB."""
    taps = 1023
    at = np.arange(taps) - taps // 2
    low = np.sinc(at * 2 * 4000 / rate) * 2 * 4000 / rate * np.blackman(taps)
    high = np.convolve(samples, low / low.sum(), "same")
    high = samples - high
    level = np.sqrt(np.mean(samples ** 2))
    near = rate // 200
    loud = max(np.sqrt(np.mean(high[place - near:place + near] ** 2)) for place in places)
    away = np.median([
        np.sqrt(np.mean(high[place + sign * rate // 10 - near:place + sign * rate // 10 + near] ** 2))
        for place in places for sign in (-1, 1)])
    width = 2 * rate // round(frequency)
    power = np.convolve(samples ** 2, np.ones(width) / width, "same")
    dip = min(power[place - rate // 50:place + rate // 50].min() for place in places)
    bend = 0.5 * (2 * np.sin(np.pi * frequency / rate)) ** 2
    second = np.abs(np.diff(samples, 2))
    rough = max(second[place - near:place + near].max() for place in places) / bend
    return {
        "high": decibels(loud / level), "away": decibels(away / level), "rough": rough,
        "dip": 10 * np.log10(max(dip / np.median(power), 1e-12))}
