# SPDX-License-Identifier: Apache-2.0
"""The test signals of Benchmarks/Pitch/pitch.py, and the programs that retime them."""
import os
import pathlib
import re
import struct
import subprocess
import time
import typing
from fractions import Fraction

import numpy as np

WORK = pathlib.Path(os.environ["WORK"])
RETIME_AUDIO = os.environ["RETIME_AUDIO"]
RATE = int(os.environ.get("PITCH_RATE", 48_000))


def write_wav(path, samples, rate, is_float=True):
    """Writes samples, as [length, channels], to a WAV file of floats or of 16-bit integers."""
    data = np.asarray(samples, np.float32)
    if not is_float:
        data = np.round(np.clip(data, -1, 1) * 32767).astype("<i2")
    size, channels = data.dtype.itemsize, data.shape[1]
    body = data.tobytes()
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, 3 if is_float else 1,
        channels, rate, rate * channels * size, channels * size, size * 8, b"data", len(body))
    path.write_bytes(header + body)


def read_wav(path):
    """Reads the samples of a WAV file as [length, channels]."""
    data, position, layout, body = path.read_bytes(), 12, None, b""
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        chunk = data[position + 8:position + 8 + min(size, len(data))]
        if name == b"fmt ":
            layout = struct.unpack_from("<HHIIHH", chunk)
        elif name == b"data":
            body = chunk
        position += 8 + size + size % 2
    channels, bits = layout[1], layout[5]
    body = body[:len(body) // (channels * bits // 8) * (channels * bits // 8)]
    if bits == 16:
        samples = np.frombuffer(body, "<i2") / 32768
    elif bits == 24:
        parts = np.frombuffer(body, np.uint8).reshape(-1, 3).astype(np.int32)
        samples = (parts[:, 0] << 8 | parts[:, 1] << 16 | parts[:, 2] << 24) / 2147483648
    else:
        samples = np.frombuffer(body, "<f4")
    return samples.reshape(-1, channels).astype(np.float64)


def sine(frequency, seconds, rate=RATE, phase=0.0):
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate + phase)


def sweep(seconds=20, low=50, high=15_000):
    time = np.arange(seconds * RATE) / RATE
    octaves = np.log(high / low)
    return 0.5 * np.sin(2 * np.pi * low * seconds / octaves * np.expm1(time / seconds * octaves))


def sweep_frequency(time, seconds=20, low=50, high=15_000):
    return low * np.exp(time / seconds * np.log(high / low))


def clicks(count=28):
    """Noise bursts of 4 ms in silence, and the sample at the middle of each."""
    random = np.random.default_rng(1)
    length = RATE // 250
    starts = np.cumsum(random.uniform(0.28, 0.42, count) * RATE).astype(int)
    samples = np.zeros(starts[-1] + RATE // 2)
    for start in starts:
        samples[start:start + length] += random.uniform(-0.9, 0.9, length) * np.hanning(length)
    return samples, starts + length / 2


def speech():
    """Eight seconds of a voice, made by espeak-ng."""
    path = WORK / "speech.wav"
    text = ("The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore, "
            "and pots of tea cost twenty pence.")
    subprocess.run(["espeak-ng", "-s", "150", "-w", path, text], check=True)
    subprocess.run(
        ["sox", path, "-b", "24", "-r", str(RATE), WORK / "speech48.wav", "gain", "-3"], check=True)
    return read_wav(WORK / "speech48.wav")[:, 0]


def music(seconds=10):
    """Decaying chords, a bass, and noise for drums, in two partly correlated channels."""
    random = np.random.default_rng(2)
    samples = np.zeros((seconds * RATE, 2))
    chords = [(220, 277.2, 329.6), (196, 246.9, 293.7), (174.6, 220, 261.6), (164.8, 207.7, 246.9)]

    def add(start, sound, left, right):
        end = min(len(samples), start + len(sound))
        samples[start:end, 0] += left * sound[:end - start]
        samples[start:end, 1] += right * sound[:end - start]

    for beat in range(seconds * 2):
        start, chord = beat * RATE // 2, chords[beat // 4 % 4]
        time = np.arange(RATE) / RATE
        for index, pitch in enumerate(chord):
            pan = (0.9, 0.15) if index == 0 else (0.15, 0.9) if index == 2 else (0.7, 0.7)
            for partial in range(1, 7):
                decay = np.exp(-time * (2 + partial)) * np.minimum(1, time / 0.005)
                phase = random.uniform(0, 2 * np.pi)
                tone = np.sin(2 * np.pi * pitch * 2 * partial * time + phase)
                add(start, 0.09 / partial * decay * tone, *pan)
        bass = np.sin(2 * np.pi * chord[0] / 2 * time) * np.exp(-time * 3)
        add(start, 0.25 * bass * np.minimum(1, time / 0.01), 0.7, 0.7)
        for offset in (0, RATE // 4):
            noise = random.standard_normal(RATE // 10) * np.exp(-np.arange(RATE // 10) / 600)
            add(start + offset, 0.05 * noise, 0.8, 0.4)
    return 0.7 * samples / np.abs(samples).max()


class Cost(typing.NamedTuple):
    """The cost of a run, in seconds."""

    wall: float
    processor: float


def run(arguments):
    """Runs a program and returns its cost."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(argument) for argument in arguments], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: {errors.strip()[-200:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def retime_into(made, algorithm, samples, legs, rate):
    """Retimes legs (start, count, speed) with our library into a file; returns the cost."""
    source = WORK / "in.f32"
    samples.astype("<f4").tofile(source)
    words = [f"{start}+{count}@{Fraction(speed)}" for start, count, speed in legs]
    return run([RETIME_AUDIO, algorithm, rate, samples.shape[1], source, made, *words])


def retime(algorithm, samples, legs, rate=RATE):
    """Retimes legs (start, count, speed) with our library; returns the output and the cost."""
    made = WORK / "out.f32"
    samples = samples.reshape(len(samples), -1)
    cost = retime_into(made, algorithm, samples, legs, rate)
    out = np.fromfile(made, "<f4").astype(np.float64)
    return out.reshape(-1, samples.shape[1]), cost


def cost_of(algorithm, samples, legs, rate=RATE):
    """The cost of our library when nothing is written."""
    return retime_into("/dev/null", algorithm, samples, legs, rate)


def ours(algorithm):
    def make(samples, stretch, rate=RATE):
        speed = 1 / Fraction(stretch).limit_denominator(100_000)
        return retime(algorithm, samples, [(0, len(samples), speed)], rate)
    return make


def peer(command, is_float=True):
    """A maker for a program that reads and writes WAV files, with the interface of ours()."""
    def make(samples, stretch, rate=RATE):
        source, made = WORK / "in.wav", WORK / "out.wav"
        write_wav(source, samples.reshape(len(samples), -1), rate, is_float)
        made.unlink(missing_ok=True)
        cost = run(command(source, made, float(stretch)))
        return read_wav(made), cost
    return make


def atempo(source, made, stretch):
    steps = max(1, int(np.ceil(np.log2(max(stretch, 1)) - 1e-9)))
    chain = ",".join([f"atempo={(1 / stretch) ** (1 / steps):.12g}"] * steps)
    return ["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", source, "-af", chain, "-c:a",
            "pcm_f32le", made]


def rubberband(engine):
    return lambda source, made, stretch: [
        "rubberband", engine, "-q", f"-t{stretch!r}", source, made]


def ffmpeg_speed(source, made, stretch):
    """A speed change by libswresample with default settings."""
    return ["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", source, "-af",
            f"asetrate={round(RATE / stretch)},aresample={RATE}", "-c:a", "pcm_f32le", made]


PEERS = {
    "rubberband -3": peer(rubberband("-3")),
    "atempo": peer(atempo),
    "soundstretch": peer(
        lambda source, made, stretch: [
            "soundstretch", source, made, f"-tempo={(1 / stretch - 1) * 100!r}"], is_float=False),
    "sox tempo": peer(
        lambda source, made, stretch: [
            "sox", "-D", source, "-e", "float", "-b", "32", made, "tempo", repr(1 / stretch)]),
}


def wall_of_processes(count, samples, stretch):
    """The seconds that processes of rubberband -3 take that run at the same time."""
    source = WORK / "in.wav"
    write_wav(source, samples.reshape(len(samples), -1), RATE)
    started = time.monotonic()
    processes = [
        subprocess.Popen(
            rubberband("-3")(source, WORK / f"out{index}.wav", float(stretch)),
            stderr=subprocess.DEVNULL)
        for index in range(count)]
    if any(process.wait() != 0 for process in processes):
        raise RuntimeError("rubberband failed")
    return time.monotonic() - started


def instructions(samples, stretch):
    """The instructions that callgrind counts for spectral and for rubberband -3."""
    samples = samples.reshape(len(samples), -1)
    # A folder of its own, because other outputs may be made at the same time.
    folder = WORK / "instructions"
    folder.mkdir(exist_ok=True)
    source, raw, program = folder / "in.wav", folder / "in.f32", folder / "RetimeAudio"
    write_wav(source, samples, RATE)
    samples.astype("<f4").tofile(raw)
    # valgrind cannot read this compiler's debug information.
    subprocess.run(["strip", "-g", "-o", program, RETIME_AUDIO], check=True)
    commands = [
        [program, "spectral", RATE, samples.shape[1], raw, "/dev/null",
         f"0+{len(samples)}@{1 / Fraction(stretch)}"],
        rubberband("-3")(source, folder / "out.wav", float(stretch))]
    processes = [
        subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for command in commands]
    reports = [process.communicate()[1] for process in processes]
    return [int(re.search(r"Collected : (\d+)", report).group(1)) for report in reports]


RUBBERBAND_2 = peer(rubberband("-2"))
FFMPEG_SPEED = peer(ffmpeg_speed)
SOUNDSTRETCH_RATE = peer(
    lambda source, made, stretch: [
        "soundstretch", source, made, f"-rate={(1 / stretch - 1) * 100!r}"], is_float=False)
SOX_SPEED = peer(
    lambda source, made, stretch: [
        "sox", "-D", source, "-e", "float", "-b", "32", made, "speed", repr(1 / stretch), "rate",
        "-v", str(RATE)])
