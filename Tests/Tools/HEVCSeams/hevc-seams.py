#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts and joins HEVC movies of many encoder settings at random, and lets three decoders judge the copies.

The copies of `slowmo retime --copy` are decoded by ffmpeg, by the FFmpeg of PyAV, and by libde265 where
it decodes the source itself correctly. Copied frames must equal those of the source bit for bit, in
number and order. Frames that were encoded again must have a PSNR of at least 40 dB, their median 45 dB.

    hevc-seams.py SLOWMO [--cases N] [--first SEED] [--short] [--cache DIRECTORY] [--keep DIRECTORY]
    hevc-seams.py SLOWMO --players N [--first SEED] ...
    hevc-seams.py SLOWMO --planted ...
    hevc-seams.py SLOWMO --costs

With --short, the movies have half as many frames of half the size, in GOPs of half the length. With
--cache, movies are kept there for the next run. --players lets mpv and VLC show N copies: mpv must show
exactly the frames of the cut, and VLC none from outside it, in order. --costs prints the time of a cut
beside that of a new encoding, and the memory of long copies.

With --planted, faults are put into copies, and each must be found: a leading frame that is kept, a
slice that refers to the parameter sets of the source, and an end of sequence instead of a BLA frame. Without
libx265, or with one that fails, frames must be hidden, with a warning.
"""
import argparse
import collections
import fractions
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import av
import numpy

RATE = 240
# Part of the names in the cache: raised when movies are made in another way.
RECIPE = 1
# Every setting: a name, the size, the pixel format, parameters of x265, and the encoder's program.
Setting = collections.namedtuple("Setting", "name frames size format parameters library")


def settings(short):
    base = "keyint=48:min-keyint=48:scenecut=0"
    # Slices need three rows of blocks of 64.
    small, wide = ((128, 72), (192, 136)) if short else ((208, 120), (320, 180))
    made = []

    def add(name, parameters, form="yuv420p", size=small, library="ffmpeg"):
        if short:
            parameters = re.sub(
                r"keyint=(\d\d+)", lambda found: f"keyint={int(found[1]) // 2}", parameters)
        made.append(Setting(name, 120 if short else 240, size, form, parameters, library))

    for frames in (0, 1, 2, 3, 4, 6, 8):
        for is_open in (0, 1):
            add(f"b{frames}-open{is_open}", f"{base}:bframes={frames}:b-adapt=0:open-gop={is_open}")
    for form in ("yuv420p10le", "yuv420p12le", "yuv422p", "yuv422p10le", "yuv422p12le", "yuv444p",
                 "yuv444p10le", "yuv444p12le", "gray"):
        for is_open in (0, 1):
            add(f"{form}-open{is_open}", f"{base}:open-gop={is_open}", form)
    for tree in (16, 32, 64):
        for block in (8, 16):
            add(f"ctu{tree}-cu{block}", f"{base}:open-gop=1:ctu={tree}:min-cu-size={block}"
                + (":max-tu-size=16" if tree == 16 else ""), size=wide)
    for name, more in {
        "default": "", "pyramid-off": "b-pyramid=0:keyint=40", "ref5": "ref=5:keyint=50",
        "ref1": "ref=1:keyint=50", "radl2": "radl=2:open-gop=0:keyint=50:bframes=4",
        "scenecut": "keyint=60", "layers": "temporal-layers=1:keyint=40:bframes=4:b-adapt=0",
        "slices": "slices=3:keyint=48", "refresh": "intra-refresh=1:keyint=60",
        "weighted": "weightp=1:weightb=1:keyint=48:tskip=1:scaling-list=default",
        "lossless": "lossless=1:keyint=48", "repeated": "repeat-headers=1:aud=1:keyint=48",
        "hrd": "hrd=1:vbv-maxrate=2000:vbv-bufsize=2000:aud=1:keyint=48",
        "opt-qp-pps": "opt-qp-pps=1:repeat-headers=1:keyint=48", "intra": "keyint=1",
        "no-wpp": "wpp=0:keyint=48", "amp": "rect=1:amp=1:keyint=48", "sao-off": "sao=0:keyint=48",
        "tu-depth": "tu-inter-depth=3:tu-intra-depth=3:keyint=48", "long": "keyint=250",
        "short": "keyint=7:min-keyint=7", "odd-gop": "keyint=33:min-keyint=33:bframes=5",
    }.items():
        add(name, f"open-gop={'0' if 'open-gop' in more else '1'}:{more}".strip(":")
            if "open-gop" not in more else more, size=wide if name in ("slices", "no-wpp") else small)
    for name, more in {
        "new-open": "keyint=48", "new-closed": "keyint=48:open-gop=0",
        "new-b8": "keyint=60:bframes=8:b-adapt=2", "new-hist": "keyint=40:hist-scenecut=1",
        "new-10": "keyint=48",
    }.items():
        add(name, more, "yuv420p10le" if name == "new-10" else "yuv420p", library="pyav")
    if has_gstreamer():
        for name, more in {
            "gst-open": "keyint=48", "gst-closed": "keyint=48:open-gop=0",
            "gst-b8": "keyint=60:bframes=8:b-adapt=2", "gst-default": "", "gst-10": "keyint=48",
        }.items():
            add(name, more, "yuv420p10le" if name == "gst-10" else "yuv420p", library="gstreamer")
    return made


@functools.cache
def has_gstreamer():
    """Whether GStreamer has x265enc (gstreamer1.0-plugins-bad)."""
    return bool(shutil.which("gst-inspect-1.0")) and all(
        not subprocess.run(["gst-inspect-1.0", name], capture_output=True, check=False).returncode
        for name in ("x265enc", "h265parse", "qtmux"))


@functools.cache
def images(size, frames):
    """Distinct images with motion and noise."""
    rng = numpy.random.default_rng(size[0])
    width, height = size
    y, x = numpy.mgrid[:height, :width]
    made = []
    for number in range(frames):
        luma = 128 + 60 * numpy.sin((x + 3 * number) / 17) + 40 * numpy.cos((y - number) / 11)
        luma += rng.normal(0, 3, luma.shape)
        luma[(number * 3) % (height - 20):, :][:20, (number * 5) % (width - 20):][:, :20] = 235
        made.append(numpy.clip(luma, 16, 235).astype(numpy.uint8))
    return made


def make(setting, path):
    raw = b"".join(image.tobytes() for image in images(setting.size, setting.frames))
    width, height = setting.size
    parameters = "log-level=none:pools=1:frame-threads=1:" + setting.parameters
    if setting.library == "gstreamer":
        form = {"yuv420p": "I420", "yuv420p10le": "I420_10LE"}[setting.format]
        subprocess.run(
            ["gst-launch-1.0", "-q", "fdsrc", "!", "rawvideoparse", "format=gray8", f"width={width}",
             f"height={height}", f"framerate={RATE}/1", "!", "videoconvert", "!",
             f"video/x-raw,format={form}", "!", "x265enc", "speed-preset=veryfast",
             f"option-string={parameters.rstrip(':')}", "!", "h265parse", "!",
             "video/x-h265,stream-format=hvc1", "!", "qtmux", "!", "filesink", f"location={path}"],
            input=raw, check=True)
        return
    if setting.library == "ffmpeg":
        subprocess.run(
            ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "gray", "-s",
             f"{width}x{height}", "-r", str(RATE), "-i", "-", "-vf",
             f"scale=out_range=tv,format={setting.format}", "-c:v", "libx265", "-preset", "veryfast",
             "-x265-params", parameters, "-tag:v", "hvc1", path],
            input=raw, check=True)
        return
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx265", rate=RATE, options={
            "preset": "veryfast", "x265-params": parameters})
        stream.width, stream.height, stream.pix_fmt = width, height, setting.format
        stream.codec_context.max_b_frames = 8 if "b8" in setting.name else 4
        stream.codec_context.codec_tag = "hvc1"
        for number, image in enumerate(images(setting.size, setting.frames)):
            frame = av.VideoFrame.from_ndarray(image, format="gray").reformat(format=setting.format)
            frame.pict_type, frame.pts = 0, number
            frame.time_base = fractions.Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def by_ffmpeg(path, form, size, options=()):
    """The frames that ffmpeg decodes, and its messages."""
    done = subprocess.run(
        ["ffmpeg", "-v", "error", *options, "-i", path, "-f", "rawvideo", "-pix_fmt", form,
         "-fps_mode", "passthrough", "-enc_time_base", "-1", "-"], capture_output=True, check=False)
    return split(done.stdout, form, size), done.stderr.decode().strip()


def frame_bytes(form, size):
    depth = 2 if "1" in form.replace("yuv4", "") and ("10" in form or "12" in form) else 1
    share = 1 if form == "gray" else {"0": 1.5, "2": 2, "4": 3}[form[5]]
    return int(size[0] * size[1] * share) * depth


def split(data, form, size):
    count = frame_bytes(form, size)
    return [data[at:at + count] for at in range(0, len(data), count)]


def by_pyav(path, form):
    frames = []
    with av.open(str(path)) as movie:
        for frame in movie.decode(video=0):
            frames.append(planes(frame))
    return frames


def planes(frame):
    data = b""
    for plane in frame.planes:
        rows = numpy.frombuffer(plane, numpy.uint8).reshape(-1, plane.line_size)
        wide = 2 if frame.format.components[0].bits > 8 else 1
        data += rows[:plane.height, :plane.width * wide].tobytes()
    return data


def units(path):
    """The parameter sets of the movie, and the NAL units of each packet in the order of decoding."""
    with av.open(str(path)) as movie:
        stream = movie.streams.video[0]
        record = bytes(stream.codec_context.extradata)
        sets, at = [], 23
        for _ in range(record[22]):
            count = int.from_bytes(record[at + 1:at + 3], "big")
            at += 3
            for _ in range(count):
                length = int.from_bytes(record[at:at + 2], "big")
                sets.append(record[at + 2:at + 2 + length])
                at += 2 + length
        packets = []
        for packet in movie.demux(stream):
            data, at, inside = bytes(packet), 0, []
            while at + 4 <= len(data):
                length = int.from_bytes(data[at:at + 4], "big")
                inside.append(data[at + 4:at + 4 + length])
                at += 4 + length
            if inside:
                packets.append(inside)
        return sets, packets


def stream_file(path, sets, packets):
    """Writes an elementary stream with the parameter sets once at its start."""
    data = b"".join(b"\0\0\0\1" + unit for unit in sets + [unit for one in packets for unit in one])
    pathlib.Path(path).write_bytes(data)


def by_libde265(path, form, size):
    output = f"{path}.yuv"
    subprocess.run(["libde265-dec265", "-q", "-o", output, path], capture_output=True, check=False)
    file = pathlib.Path(output)
    if not file.exists():
        return []
    data = file.read_bytes()
    file.unlink()
    return split(data, form, size)


def psnr(one, other, form):
    deep = form.endswith("le")
    kind, peak = (numpy.uint16, (1 << int(form[-4:-2])) - 1) if deep else (numpy.uint8, 255)
    a, b = (numpy.frombuffer(data, kind).astype(float) for data in (one, other))
    error = ((a - b) ** 2).mean()
    return 99.0 if error == 0 else 10 * numpy.log10(peak ** 2 / error)


@functools.cache
def makers():
    """The versions of the programs that make movies."""
    ffmpeg = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True)
    return [RECIPE, ffmpeg.stdout.splitlines()[0], av.__version__, numpy.__version__]


class Source:
    """A movie of a setting, and what the decoders make of it.

    A movie that is not in the cache is made, and judged by all decoders.
    """

    def __init__(self, setting, directory, cache):
        self.setting = setting
        words = json.dumps([setting, makers()])
        name = f"{setting.name}-{hashlib.sha256(words.encode()).hexdigest()[:16]}"
        self.path = str((cache or directory) / f"{name}.mp4")
        facts = (cache or directory) / f"{name}.json"
        if facts.exists():
            self.noise, self.trusts_libde265 = json.loads(facts.read_text())
            self.frames = by_pyav(self.path, setting.format)
        else:
            # Another run may do the same.
            made = str(directory / f"{name}.mp4")
            make(setting, made)
            self.frames = self.judged(made, directory)
            if cache:
                shutil.copy(made, f"{self.path}.{os.getpid()}")
                os.replace(f"{self.path}.{os.getpid()}", self.path)
            (directory / "facts").write_text(json.dumps([self.noise, self.trusts_libde265]))
            shutil.copy(directory / "facts", f"{facts}.{os.getpid()}")
            os.replace(f"{facts}.{os.getpid()}", facts)
        with av.open(self.path) as movie:
            packets = [(p.pts, bytes(p)) for p in movie.demux(video=0) if p.size]
        order = [pts for pts, _ in packets]
        self.packets = [data for _, data in packets]
        ranks = {pts: rank for rank, pts in enumerate(sorted(order))}
        self.numbers = [ranks[pts] for pts in order]

    def judged(self, path, directory):
        setting = self.setting
        frames, errors = by_ffmpeg(path, setting.format, setting.size)
        if len(frames) != setting.frames:
            raise SystemExit(f"{setting.name}: {len(frames)} frames, {errors}")
        self.noise = bool(errors)
        if by_pyav(path, setting.format) != frames:
            raise SystemExit(f"{setting.name}: the decoders disagree about the source")
        self.trusts_libde265 = False
        if setting.format == "yuv420p" and "slices" not in setting.name:
            file = str(directory / "source.hevc")
            stream_file(file, *units(path))
            self.trusts_libde265 = by_libde265(file, setting.format, setting.size) == frames
        return frames


def ranges(rng, frames):
    """One to three ranges of frames that do not overlap, in any order."""
    count = rng.choice([1, 1, 2, 3])
    while True:
        points = sorted(rng.sample(range(frames + 1), 2 * count))
        parts = [(points[2 * i], points[2 * i + 1]) for i in range(count)]
        if all(end - start > 3 for start, end in parts):
            rng.shuffle(parts)
            return parts


def judge(found, source, expected, copied):
    """The faults among decoded frames, and the PSNR of those that were encoded again."""
    faults, scores = [], []
    if len(found) != len(expected):
        faults.append(f"{len(found)} frames, not {len(expected)}")
    for at, (frame, number) in enumerate(zip(found, expected)):
        if number in copied:
            if frame != source.frames[number]:
                faults.append(f"frame {at} is not the copied frame {number}")
        else:
            scores.append(psnr(frame, source.frames[number], source.setting.format))
            if scores[-1] < (99 if source.setting.name == "lossless" else 40):
                faults.append(f"frame {at} ({number}) has {scores[-1]:.1f} dB")
    return faults, scores


def export(slowmo, source, parts, output, more=(), joins=None):
    """Exports parts of a movie; with `joins`, a directory for a project in which files alternate."""
    command = ["retime", source.path, *[f"--trim={start}f..{end}f" for start, end in parts], *more]
    if joins:
        other = str(joins / "other.mp4")
        shutil.copy(source.path, other)
        paths = [source.path, other]
        (joins / "joins.otio").write_text(json.dumps(
            project([(paths[at % 2], *part) for at, part in enumerate(parts)], source.setting.frames)))
        command = ["edit", str(joins / "joins.otio")]
    done = subprocess.run(
        [slowmo, *command, "-o", output, "-y", "--copy", "--json", "--progress", "none"],
        capture_output=True, check=False)
    report = json.loads(done.stdout)
    if done.returncode:
        raise RuntimeError(report["error"]["message"])
    expected = [n for start, end in parts for n in range(start, end)]
    copied = {source.numbers[p] for c in report["copies"]
              for p in range(c["first_packet"], c["first_packet"] + c["packet_count"])}
    return report, expected, copied


def unkept(output, source, report):
    """Faults among the copied packets: each must be there, in order, with all its bytes.

    Those that count as changed have other bits in the headers of their slices.
    """
    with av.open(output) as movie:
        found = [bytes(packet) for packet in movie.demux(video=0) if packet.size]
    changed, at = 0, 0
    for copy in report["copies"]:
        for number in range(copy["first_packet"], copy["first_packet"] + copy["packet_count"]):
            packet = source.packets[number]
            while at < len(found) and (len(found[at]) != len(packet) or different(found[at], packet) > 8):
                at += 1
            if at == len(found):
                return [f"packet {number} is not in the copy"]
            changed += found[at] != packet
            at += 1
    counted = report["frames_header_changed"]
    return [] if changed == counted else [f"{changed} packets are changed, and {counted} counted"]


def different(one, other):
    """The number of bytes that differ."""
    if one == other:
        return 0
    return int((numpy.frombuffer(one, numpy.uint8) != numpy.frombuffer(other, numpy.uint8)).sum())


def project(parts, frames):
    """An OpenTimelineIO project of ranges of files."""
    def span(start, end):
        return {"OTIO_SCHEMA": "TimeRange.1", **{
            name: {"OTIO_SCHEMA": "RationalTime.1", "value": value, "rate": RATE}
            for name, value in (("start_time", start), ("duration", end - start))}}

    clips = [{"OTIO_SCHEMA": "Clip.1", "name": "part", "source_range": span(start, end), "media_reference": {
        "OTIO_SCHEMA": "ExternalReference.1", "target_url": path, "available_range": span(0, frames)}}
             for path, start, end in parts]
    track = {"OTIO_SCHEMA": "Track.1", "name": "video", "kind": "Video", "children": clips}
    return {"OTIO_SCHEMA": "Timeline.1", "name": "joins",
            "tracks": {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": [track]}}


def check(slowmo, source, seed, directory):
    rng = random.Random(seed)
    parts = ranges(rng, source.setting.frames)
    # A change of speed inside a part, where nothing is cut.
    first, last = parts[0][0] + 1, parts[0][1] - 1
    more = rng.choice([
        [], ["--speed", "1/8"], [f"--range={first}f..{last}f", "--speed", "1/4"],
        ["--ramp", f"{first}f=1 {last}f=1/8"], ["joins"]])
    output = str(directory / "copy.mp4")
    joins = directory if more == ["joins"] else None
    report, expected, copied = export(slowmo, source, parts, output, [] if joins else more, joins)
    faults, scores = [], []
    form, size = source.setting.format, source.setting.size
    longest = max([0] + [c["frames"] for c in report["cuts"] if c["way"] == "rendered"])
    if longest > 70 and source.setting.name not in (
            "refresh", "long", "default", "gst-default", "scenecut"):
        faults.append(f"{longest} frames were encoded at one cut")
    if report["frames_hidden"] and source.setting.name != "refresh":
        faults.append(f"{report['frames_hidden']} frames are hidden")
    faults += unkept(output, source, report)
    decoded, errors = by_ffmpeg(output, form, size)
    found, some = judge(decoded, source, expected, copied)
    faults += [f"ffmpeg: {fault}" for fault in found]
    if errors and not source.noise:
        faults.append(f"ffmpeg: {errors.splitlines()[0]}")
    scores += some
    found, _ = judge(by_pyav(output, form), source, expected, copied)
    faults += [f"PyAV: {fault}" for fault in found]
    if source.trusts_libde265 and not report["frames_hidden"]:
        file = str(directory / "copy.hevc")
        stream_file(file, *units(output))
        found, _ = judge(by_libde265(file, form, size), source, expected, copied)
        faults += [f"libde265: {fault}" for fault in found]
    return parts, more, report, faults, scores


def planted(slowmo, short, directory, cache):
    """Puts each fault into a copy; returns whether all were found."""
    source = Source(next(s for s in settings(short) if s.name == "b3-open1"), directory, cache)
    group = 24 if short else 48
    form, size = source.setting.format, source.setting.size
    output = str(directory / "copy.mp4")
    # The first range ends where no frame waits for a later one in the file; the second begins at a CRA.
    starts = [n for p, n in enumerate(source.numbers) if p and is_random_access(source, p)]
    ends = [end for end in range(10, group) if is_free_end(source, end)]
    parts = [(0, ends[-1]), (starts[2], source.setting.frames)]
    report, expected, copied = export(slowmo, source, parts, output)
    sets, packets = units(output)
    _, original = units(source.path)
    file = str(directory / "planted.hevc")

    def found(packets):
        stream_file(file, sets, packets)
        decoded, _ = by_ffmpeg(file, form, size)
        return judge(decoded, source, expected, copied)[0]

    if report["frames_header_changed"] != 1 or report["frames_encoded"]:
        raise SystemExit(f"planted: another copy than expected: {report['frames_header_changed']}")
    if found(packets):
        raise SystemExit(f"planted: faults without a fault: {found(packets)}")
    seam = next(i for i, p in enumerate(packets) if any(u[0] >> 1 == 18 for u in p))
    at = next(p for p, n in enumerate(source.numbers) if n == starts[2])
    leading = [p for p in range(at + 1, at + 8) if source.numbers[p] < starts[2]]
    results = {}
    results["a leading frame is kept"] = found(
        packets[:seam] + [original[at]] + [original[p] for p in leading] + packets[seam + 1:])
    results["an end of sequence instead of BLA"] = found(
        packets[:seam] + [[b"\x48\x01"] + original[at]] + packets[seam + 1:])
    # A part in the middle of a GOP, so that frames are encoded.
    parts = [(group + 12, 3 * group + 6)]
    report, expected, copied = export(slowmo, source, parts, output)
    sets, packets = units(output)
    if not report["frames_encoded"] or found(packets):
        raise SystemExit("planted: no frame was encoded")
    results["a slice with the source's parameter sets"] = found(
        [packets[0]] + [[unpatched(unit) for unit in packets[1]]] + packets[2:])
    for limit, faults in without_encoder(slowmo, source, directory).items():
        if faults:
            raise SystemExit(f"planted: libx265 {limit}: {faults}")
        print(f"planted: libx265 {limit}: frames are hidden, and a warning says why")
    for name, faults in results.items():
        print(f"planted: {name}: " + (f"found ({faults[0]})" if faults else "NOT FOUND"))
    return all(results.values())


def without_encoder(slowmo, source, directory):
    """Copies a part without libx265, and with one that fails; returns the faults of each."""
    library, output = str(directory / "no-encoder.so"), str(directory / "copy.mp4")
    file = pathlib.Path(__file__).with_name("no-encoder.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(file)], check=True)
    start, end = 30, source.setting.frames - 31
    results = {}
    for name, more in {"is missing": {}, "fails": {"HEVC_FRAMES": "5"}}.items():
        done = subprocess.run(
            [slowmo, "retime", source.path, "-o", output, "-y", "--copy", "--json", "--progress", "none",
             f"--trim={start}f..{end}f"], capture_output=True, check=False,
            env=os.environ | more | {"LD_PRELOAD": library})
        report = json.loads(done.stdout)
        if done.returncode:
            results[name] = [report["error"]["message"]]
            continue
        decoded, _ = by_ffmpeg(output, source.setting.format, source.setting.size)
        results[name] = judge(decoded, source, list(range(start, end)), set(range(start, end)))[0]
        if report["frames_encoded"] or not report["frames_hidden"] or not report["warnings"]:
            results[name] += ["another way than expected"]
    return results


def is_random_access(source, packet):
    if not hasattr(source, "types"):
        _, packets = units(source.path)
        source.types = [max(u[0] >> 1 for u in p if u[0] >> 1 < 32) for p in packets]
    return 16 <= source.types[packet] <= 21


def is_free_end(source, end):
    before = max(p for p, n in enumerate(source.numbers) if n < end)
    return before == end - 1


def unpatched(unit):
    """The slice of an encoded frame, with a reference to PPS 0 again."""
    if unit[0] >> 1 >= 16:
        return unit
    bits = int.from_bytes(unit[2:4], "big")
    return unit[:2] + bytes([bits >> 8 & 0x80 | 0x40 | bits & 0x3F]) + unit[4:]


def shown(program, path, size, directory):
    """The images that a player shows, as files in their order."""
    images = directory / "shown"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir()
    if program == "mpv":
        command = ["mpv", "--no-config", "--vo=image", "--vo-image-format=png", "--no-audio", "--hwdec=no",
                   "--vo-image-png-compression=0", f"--vo-image-outdir={images}", "--untimed", path]
    else:
        command = ["cvlc", "--intf=dummy", "--vout=vdummy", "--no-audio", "--no-drop-late-frames",
                   "--no-skip-frames", "--video-filter=scene", "--scene-format=png", "--scene-ratio=1",
                   "--scene-prefix=", f"--scene-path={images}", f"--scene-width={size[0]}",
                   f"--scene-height={size[1]}", "--play-and-exit", path, "vlc://quit"]
        if os.geteuid() == 0:
            # VLC refuses to run as root.
            images.chmod(0o777)
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env",
                       f"HOME={images}", *command]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=180)
    return sorted(images.glob("*.png"))


def numbers(files, setting):
    """The frames of the movie that images show."""
    import cv2
    known = numpy.stack([(image[::2, ::2].astype(numpy.float32) - 16) * 255 / 219
                         for image in images(setting.size, setting.frames)])
    return [int(numpy.abs(known - cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)[::2, ::2]).mean((1, 2)).argmin())
            for file in files]


def players(options, work):
    """Lets players show copies; returns whether they show what they must."""
    programs = [name for name, file in {"mpv": "mpv", "VLC": "cvlc"}.items()
                if shutil.which(file) or print(f"{name} is missing, and is not asked")]
    every, counts, wrong = settings(True), collections.Counter(), 0
    work.chmod(0o755)
    for seed in range(options.first, options.first + options.players):
        source = Source(every[seed % len(every)], work, options.cache)
        parts = ranges(random.Random(seed), source.setting.frames)
        output = str(work / "copy.mp4")
        report, expected, _ = export(options.slowmo, source, parts, output)
        if report["frames_hidden"]:
            print(f"case {seed} ({source.setting.name}) hides frames, as it must: not shown")
            continue
        for program in programs:
            files = shown(program, output, source.setting.size, work)
            found = numbers(files, source.setting)
            rest = iter(expected)
            # VLC's filter misses frames while it starts, the more the busier the machine is, and gets the
            # last one again.
            once = [number for number, _ in itertools.groupby(found)]
            is_right = found == expected if program == "mpv" else (
                once[-1:] in ([], expected[-1:]) and all(number in rest for number in once))
            counts[f"{program} shows"] += len(found)
            counts[f"of {program}'s"] += len(expected)
            if not is_right:
                wrong += 1
                print(f"case {seed} ({source.setting.name}) {parts}: {program} shows {found}")
    print(f"{options.players} copies from {options.first} in players: {wrong} wrong; {dict(counts)}")
    return not wrong


def measured(command):
    """The elapsed time, the processor time and the greatest memory of a program in MiB."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed: {status}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def costs(slowmo, work):
    """Prints what a cut of 1080p in 10 bits costs; returns whether long copies need no more memory."""
    def cut(name, end):
        taken = measured([slowmo, "retime", str(work / name), "-o", str(work / "cut.mp4"), "-y", "--copy",
                          "--progress", "none", f"--trim=90f..{end}f"])
        print(f"{name}: frames 90 to {end}: {taken[0]:.1f} s, {taken[1]:.1f} s of processors, {taken[2]:.0f} MiB")
        return taken[2]

    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=1920x1080:r=240:d=1,noise=alls=8:allf=t",
         "-pix_fmt", "yuv420p10le", "-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1",
         "-x265-params", "log-level=none:keyint=60:min-keyint=60:bframes=3:open-gop=0", str(work / "short.mp4")],
        check=True)
    subprocess.run(
        ["ffmpeg", "-v", "error", "-stream_loop", "49", "-i", str(work / "short.mp4"), "-c", "copy",
         "-tag:v", "hvc1", str(work / "long.mp4")], check=True)
    short = cut("short.mp4", 210)
    long = cut("long.mp4", 11_950)
    whole = measured(
        ["ffmpeg", "-v", "error", "-y", "-i", str(work / "short.mp4"), "-c:v", "libx265", "-x265-params",
         "log-level=none", "-tag:v", "hvc1", str(work / "whole.mp4")])
    print(f"short.mp4 with ffmpeg and x265 at its defaults: {whole[0]:.1f} s, {whole[1]:.1f} s of processors")
    return long < short + 32


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slowmo")
    parser.add_argument("--cases", type=int, default=70)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--players", type=int)
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    if not has_gstreamer():
        print("GStreamer has no x265enc (gstreamer1.0-plugins-bad): FFmpeg and PyAV make the movies")
    if not shutil.which("libde265-dec265"):
        print("libde265-dec265 (libde265-examples) is missing: two decoders judge")
        global by_libde265
        by_libde265 = lambda *_: []
    work = pathlib.Path(tempfile.mkdtemp())
    failures, scores, refused, counts = 0, [], 0, collections.Counter()
    try:
        if options.planted:
            sys.exit(0 if planted(options.slowmo, options.short, work, options.cache) else 1)
        if options.players:
            sys.exit(0 if players(options, work) else 1)
        if options.costs:
            sys.exit(0 if costs(options.slowmo, work) else 1)
        known = {}
        every = settings(options.short)
        for seed in range(options.first, options.first + options.cases):
            setting = every[seed % len(every)]
            if setting.name not in known:
                known[setting.name] = Source(setting, work, options.cache)
            source = known[setting.name]
            try:
                parts, more, report, faults, some = check(options.slowmo, source, seed, work)
            except RuntimeError as error:
                faults, parts, more, some, report = [str(error)], [], [], [], None
            scores += some
            if report:
                counts["copied"] += report["frames_copied"]
                counts["encoded"] += report["frames_encoded"]
                counts["changed"] += report["frames_header_changed"]
            counts["libde265"] += source.trusts_libde265
            if faults:
                failures += 1
                print(f"case {seed} ({setting.name}) {parts} {more}: {'; '.join(faults[:4])}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source.path, options.keep)
                    shutil.copy(work / "copy.mp4", options.keep / f"{seed}.mp4")
        median = numpy.median(scores) if scores else 99
        print(f"{options.cases} cases from {options.first} of {len(known)} settings, {counts['libde265']} also by libde265: "
              f"{failures} wrong; {counts['copied']} frames copied, {counts['changed']} with a changed "
              f"header, {counts['encoded']} encoded, PSNR median {median:.1f} dB, "
              f"least {min(scores, default=99):.1f} dB")
        sys.exit(1 if failures or median < 45 else 0)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
