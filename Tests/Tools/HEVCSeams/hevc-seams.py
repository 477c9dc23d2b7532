#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts and joins HEVC movies of many encoder settings at random, and lets three decoders judge the copies.

The copies of `slowmo retime --copy` are decoded by ffmpeg, by the FFmpeg of PyAV, and by libde265 where
it decodes the source itself correctly. Copied frames must equal those of the source bit for bit, in
number and order. Frames that were encoded again must have a PSNR of at least 40 dB, their median 45 dB.

    hevc-seams.py SLOWMO [--cases N] [--first SEED] [--planted] [--keep DIRECTORY]

With --planted, faults are put into copies, and each must be found: a leading frame that is kept, a
slice that refers to the parameter sets of the source, and an end of sequence instead of a BLA frame.
"""
import argparse
import collections
import fractions
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import av
import numpy

FRAMES, RATE = 240, 240
# Every setting: a name, the size, the pixel format, parameters of x265, and the encoder's program.
Setting = collections.namedtuple("Setting", "name size format parameters library")


def settings():
    base = "keyint=48:min-keyint=48:scenecut=0"
    small, wide = (208, 120), (320, 180)
    made = []

    def add(name, parameters, form="yuv420p", size=small, library="ffmpeg"):
        made.append(Setting(name, size, form, parameters, library))

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
    return made


def images(setting):
    """Distinct images with motion and noise, as planes of a raw file."""
    rng = numpy.random.default_rng(len(setting.name) * 7 + setting.size[0])
    width, height = setting.size
    y, x = numpy.mgrid[:height, :width]
    for number in range(FRAMES):
        luma = 128 + 60 * numpy.sin((x + 3 * number) / 17) + 40 * numpy.cos((y - number) / 11)
        luma += rng.normal(0, 3, luma.shape)
        luma[(number * 3) % (height - 20):, :][:20, (number * 5) % (width - 20):][:, :20] = 235
        yield numpy.clip(luma, 16, 235).astype(numpy.uint8)


def make(setting, path):
    raw = b"".join(image.tobytes() for image in images(setting))
    width, height = setting.size
    parameters = "log-level=none:pools=1:frame-threads=1:" + setting.parameters
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
        for number, image in enumerate(images(setting)):
            frame = av.VideoFrame.from_ndarray(image, format="gray").reformat(format=setting.format)
            frame.pict_type, frame.pts = 0, number
            frame.time_base = fractions.Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def by_ffmpeg(path, form, size, options=()):
    """The frames that ffmpeg decodes, and its messages."""
    done = subprocess.run(
        ["ffmpeg", "-v", "error", *options, "-i", path, "-f", "rawvideo", "-pix_fmt", form,
         "-fps_mode", "passthrough", "-"], capture_output=True, check=False)
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


class Source:
    def __init__(self, setting, directory):
        self.setting = setting
        self.path = str(directory / f"{setting.name}.mp4")
        make(setting, self.path)
        self.frames, errors = by_ffmpeg(self.path, setting.format, setting.size)
        if len(self.frames) != FRAMES:
            raise SystemExit(f"{setting.name}: {len(self.frames)} frames, {errors}")
        self.noise = bool(errors)
        if by_pyav(self.path, setting.format) != self.frames:
            raise SystemExit(f"{setting.name}: the decoders disagree about the source")
        with av.open(self.path) as movie:
            order = [p.pts for p in movie.demux(video=0) if p.size]
        self.numbers = [sorted(order).index(pts) for pts in order]
        self.order = order
        self.trusts_libde265 = False
        if setting.format == "yuv420p" and "slices" not in setting.name:
            sets, packets = units(self.path)
            file = str(directory / "source.hevc")
            stream_file(file, sets, packets)
            self.trusts_libde265 = by_libde265(file, setting.format, setting.size) == self.frames


def ranges(rng):
    """One to three ranges of frames that do not overlap, in any order."""
    count = rng.choice([1, 1, 2, 3])
    while True:
        points = sorted(rng.sample(range(FRAMES + 1), 2 * count))
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
            if scores[-1] < 40:
                faults.append(f"frame {at} ({number}) has {scores[-1]:.1f} dB")
    return faults, scores


def export(slowmo, source, parts, output, more=()):
    done = subprocess.run(
        [slowmo, "retime", source.path, "-o", output, "-y", "--copy", "--json", "--progress", "none",
         *[f"--trim={start}f..{end}f" for start, end in parts], *more],
        capture_output=True, check=False)
    report = json.loads(done.stdout)
    if done.returncode:
        raise RuntimeError(report["error"]["message"])
    expected = [n for start, end in parts for n in range(start, end)]
    copied = {source.numbers[p] for c in report["copies"]
              for p in range(c["first_packet"], c["first_packet"] + c["packet_count"])}
    return report, expected, copied


def check(slowmo, source, seed, directory):
    rng = random.Random(seed)
    parts = ranges(rng)
    more = rng.choice([[], [], ["--speed", "1/8"]])
    output = str(directory / "copy.mp4")
    report, expected, copied = export(slowmo, source, parts, output, more)
    faults, scores = [], []
    form, size = source.setting.format, source.setting.size
    longest = max([0] + [c["frames"] for c in report["cuts"] if c["way"] == "rendered"])
    if source.setting.name not in ("refresh", "long", "default", "scenecut") and longest > 70:
        faults.append(f"{longest} frames were encoded at one cut")
    if report["frames_hidden"] and source.setting.name != "refresh":
        faults.append(f"{report['frames_hidden']} frames are hidden")
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


def planted(slowmo, directory):
    """Puts each fault into a copy; returns whether all were found."""
    source = Source(next(s for s in settings() if s.name == "b3-open1"), directory)
    form, size = source.setting.format, source.setting.size
    output = str(directory / "copy.mp4")
    # The first range ends where no frame waits for a later one in the file; the second begins at a CRA.
    starts = [n for p, n in enumerate(source.numbers) if p and is_random_access(source, p)]
    ends = [end for end in range(20, 48) if is_free_end(source, end)]
    parts = [(0, ends[-1]), (starts[2], FRAMES)]
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
    parts = [(60, 150)]
    report, expected, copied = export(slowmo, source, parts, output)
    sets, packets = units(output)
    if not report["frames_encoded"] or found(packets):
        raise SystemExit("planted: no frame was encoded")
    results["a slice with the source's parameter sets"] = found(
        [packets[0]] + [[unpatched(unit) for unit in packets[1]]] + packets[2:])
    for name, faults in results.items():
        print(f"planted: {name}: " + (f"found ({faults[0]})" if faults else "NOT FOUND"))
    return all(results.values())


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slowmo")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if not shutil.which("libde265-dec265"):
        print("libde265-dec265 (libde265-examples) is missing: two decoders judge")
        global by_libde265
        by_libde265 = lambda *_: []
    work = pathlib.Path(tempfile.mkdtemp())
    failures, scores, refused, counts = 0, [], 0, collections.Counter()
    try:
        if options.planted:
            sys.exit(0 if planted(options.slowmo, work) else 1)
        known = {}
        every = settings()
        for seed in range(options.first, options.first + options.cases):
            setting = every[seed % len(every)]
            if setting.name not in known:
                known[setting.name] = Source(setting, work)
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
        print(f"{options.cases} cases of {len(known)} settings, {counts['libde265']} also by libde265: "
              f"{failures} wrong; {counts['copied']} frames copied, {counts['changed']} with a changed "
              f"header, {counts['encoded']} encoded, PSNR median {median:.1f} dB, "
              f"least {min(scores, default=99):.1f} dB")
        sys.exit(1 if failures or median < 45 else 0)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
