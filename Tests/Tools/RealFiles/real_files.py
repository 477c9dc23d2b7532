# SPDX-License-Identifier: Apache-2.0
"""Tests a directory of real clips: info, copies, cuts and renderings, checked with ffmpeg.

See real-files for the usage.
"""
import argparse
import bisect
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

SUFFIXES = (
    ".mov .mp4 .m4v .mkv .webm .avi .ts .mts .m2ts .mpg .mpeg .vob .3gp .3g2 .flv .f4v .wmv .asf "
    ".mxf .ogv .insv .lrv .wtv .ivf .m2v .mpv .ismv .rm .gxf .nut .360 .h264 .h265 .hevc .264 .265 .m4s .fmp4 .cmfv .qt .mod .dv .y4m").split()
# Containers with packets that lack presentation times. ffmpeg guesses such times, so only the
# frames and their order are compared.
UNTIMED = {"avi", "mpeg", "mpegvideo", "m4v", "h264", "hevc"}
TIMEOUT = 300
# Codecs for which ffmpeg and this program may choose different IDCTs.
VARIABLE_IDCT = {"mpeg4", "msmpeg4v1", "msmpeg4v2", "msmpeg4v3", "wmv1", "wmv2"}
NO_FRAME = "no frame"
# The classes of trials, from the worst on. A result is reported if it has other frames and says so.
KINDS = ("wrong", "crash", "hung", "reported", "unjudged", "refused", "right")


class Trial(Exception):
    """A finding; the first argument is its class."""


def run(arguments, timeout=TIMEOUT):
    try:
        return subprocess.run(
            arguments, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Trial("hung", " ".join(map(str, arguments[:3]))) from None


def slowmo(*arguments):
    """The JSON document of a verb; raises the error that the verb reported."""
    finished = run([options.slowmo, *map(str, arguments), "--json"])
    try:
        document = json.loads(finished.stdout)
    except ValueError:
        raise Trial("crash", f"exit {finished.returncode}: {finished.stderr[-200:]!r}") from None
    if finished.returncode not in (0, 10, 64, 65, 66, 73, 74, 77) or (
            finished.returncode not in (0, 10) and "error" not in document):
        raise Trial("crash", f"exit {finished.returncode}")
    if "error" in document:
        raise Trial("refused", document["error"]["message"])
    return document


def decoded(path, most):
    """The first frames that ffmpeg decodes, as (ticks, hash), and the duration of a tick."""
    # One IDCT for all files. ffmpeg would select Xvid's IDCT by an AVI's codec tag, which MOV
    # lacks.
    finished = run([
        "ffmpeg", "-v", "error", "-noautorotate", "-threads", "1", "-idct", "simple", "-i",
        "file:" + str(path), "-map", "0:v:0", "-frames:v", str(most), "-fps_mode", "passthrough",
        "-enc_time_base", "-1", "-hash", "md5", "-f", "framehash", "-"])
    rows, tick = [], None
    for line in finished.stdout.decode(errors="replace").splitlines():
        if line.startswith("#tb 0: "):
            tick = Fraction(line[7:])
        elif not line.startswith("#"):
            fields = [field.strip() for field in line.split(",")]
            rows.append((int(fields[2]), fields[5]))
    if not rows or tick is None:
        raise Trial(NO_FRAME)
    if finished.stderr:
        # For damaged input, ffmpeg's error concealment depends on more than the packets.
        raise Trial("unjudged", "ffmpeg finds it damaged")
    return rows, tick


def shown(path, most, hides=True):
    """The decoded frames, without frames that the file hides by showing them for one tick, and a tick."""
    rows, tick = decoded(path, most)
    ends = [ticks for ticks, _ in rows[1:]] + [end_ticks(path) if hides else None]
    frames = [
        (ticks * tick, digest)
        for (ticks, digest), end in zip(rows, ends)
        if not hides or end is None or end - ticks != 1]
    return [(time - frames[0][0], digest) for time, digest in frames], tick


def compare(what, made, source, wanted, report, timed, encoded=0, rounding_ns=0):
    """Compares the frames of a file with the expected ones, as far as both are decoded.

    Up to `encoded` frames may be re-encoded, at cuts. A warning of the report accounts for frames that
    differ, but not for missing ones.
    """
    # Hidden frames are decoded too, so more frames are read.
    try:
        frames, _ = shown(made, source.most + 200)
    except Trial as trial:
        if trial.args[0] == NO_FRAME:
            raise Trial("wrong", f"{what}: ffmpeg decodes no frame of it") from None
        raise
    if source.is_cut:
        common = min(len(frames), len(wanted))
        if common < len(wanted) // 2:
            raise Trial("wrong", f"{what}: only {len(frames)} frames")
        frames, wanted = frames[:common], wanted[:common]
    others = [index for index, pair in enumerate(zip(frames, wanted)) if pair[0][1] != pair[1][1]]
    if len(frames) != len(wanted) or len(others) > encoded:
        is_reported = len(frames) == len(wanted) and report["warnings"]
        raise Trial(
            "reported" if is_reported else "wrong",
            f"{what}: {report['warnings'][0]}" if is_reported else
            f"{what}: {len(frames)} frames for {len(wanted)}, {len(others)} others: {others[:5]}")
    if not timed:
        return
    bound = Fraction(report["max_time_error_ns"] + rounding_ns + 1, 10**9)
    for index, ((time, _), (expected, _)) in enumerate(zip(frames, wanted)):
        if abs(time - expected) > bound:
            raise Trial(
                "wrong",
                f"{what}: frame {index} at {float(time):.6f} s, not {float(expected):.6f} s")


def end_ticks(path):
    """The end of a file's video in ticks; None if the file does not state it."""
    finished = run([
        "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
        "stream=start_pts,duration_ts", "-of", "csv=p=0", "file:" + str(path)])
    numbers = finished.stdout.decode().split("\n")[0].strip(",").split(",")
    return sum(map(int, numbers)) if all(each.lstrip("-").isdigit() for each in numbers) else None


class Source:
    """The first frames of a clip, as many as are compared."""

    def __init__(self, path, info):
        area = max(1, info["video"]["width"] * info["video"]["height"])
        self.most = max(40, options.most_pixels // area)
        self.frames, self.tick = shown(path, self.most, hides=False)
        self.count = info["video"]["frame_count"]
        self.is_cut = self.count > self.most
        # The frames that delimit the tested part; neither is likely to be a key frame.
        judged = min(self.count, len(self.frames))
        self.first, self.last = judged // 3 + 1, 2 * judged // 3

    def agrees(self, path, directory):
        """Whether ffmpeg shows the frames at the times of their packets."""
        times = frame_times(path, directory)
        return len(times) >= len(self.frames) and all(
            abs(stored - times[0] - float(time)) <= 1e-5
            for stored, (time, _) in zip(times, self.frames))

    def has_part(self, path, directory, timed):
        """Whether the clip has a part whose frames both programs count alike."""
        if self.first + 2 >= self.last or not (self.is_cut or self.count == len(self.frames)):
            return False
        if timed and not self.agrees(path, directory):
            raise Trial("unjudged", "ffmpeg shows frames at other times than those of their packets")
        return True


def movie(directory, name, info):
    """The path of a copy; MOV does not support some codecs that MP4 supports."""
    return directory / f"{name}.{'mp4' if info['video']['codec'] in ('vp9', 'av1') else 'mov'}"


def whole_copy(path, directory, source, info, timed):
    made = movie(directory, "copy", info)
    timed = timed and source.agrees(path, directory)
    report = slowmo("retime", path, "-o", made, "--speed", 1, "--copy")
    compare("copy", made, source, source.frames, report, timed)
    if report["frames_copied"] != source.count:
        raise Trial("wrong", "copy: the report and info count different numbers of frames")


def slow_part(path, directory, source, info, timed):
    """The middle third at a quarter of the speed."""
    if not source.has_part(path, directory, timed):
        return
    made = movie(directory, "slow", info)
    report = slowmo(
        "retime", path, "-o", made, "--range", f"{source.first}f..{source.last}f",
        "--speed", "1/4", "--copy", "--pitch", "mute")
    begin, end = source.frames[source.first][0], source.frames[source.last][0]
    wanted = [
        (time + 3 * (min(max(time, begin), end) - begin), digest)
        for time, digest in source.frames]
    compare("slow part", made, source, wanted, report, timed)


def middle(path, directory, source, info, timed):
    """The middle third alone, as a project: its cuts hide or re-encode frames."""
    if not source.has_part(path, directory, timed):
        return
    times = frame_times(path, directory)
    # The margins keep rounding inside the first and last frame.
    project = {
        "version": 2, "mediaFileName": str(pathlib.Path(path).resolve()),
        "cutSegments": [
            {"start": times[source.first] + 1e-6, "end": times[source.last] - 1e-6, "name": ""}]}
    (directory / "middle.llc").write_text(json.dumps(project))
    made = movie(directory, "middle", info)
    report = slowmo(
        "edit", directory / "middle.llc", "-o", made, "--copy", "--pitch", "mute")
    begin = source.frames[source.first][0]
    wanted = [
        (time - begin, digest) for time, digest in source.frames[source.first:source.last]]
    # Project times in seconds are rounded to a few digits, so the tolerance is larger.
    compare(
        "middle", made, source, wanted, report, timed, report["frames_encoded"], rounding_ns=4000)


def frame_times(path, directory):
    slowmo("frames", path, "--csv", directory / "times.csv", "-y")
    lines = (directory / "times.csv").read_text().splitlines()
    column = lines[0].split(",").index("pts_ns")
    return [int(line.split(",")[column]) / 1e9 for line in lines[1:]]


def rendered(path, directory, source, info, timed):
    """Lossless frames at 30 fps: each output frame shows the last source frame that is due."""
    # FFmpeg's FFV1 encoder loses frames of a few pixels.
    sides = (info["video"]["width"], info["video"]["height"])
    if source.is_cut or info["duration_ns"] > 120e9 or min(sides) < 16:
        return
    report = slowmo("retime", path, "-o", directory / "made.mov", "--speed", 1, "--fps", 30, "--codec",
                    "ffv1", "--pitch", "mute")
    rows, _ = decoded(directory / "made.mov", 100_000)
    if len(rows) != report["frames_encoded"]:
        raise Trial("wrong", f"rendering: {len(rows)} frames, {report['frames_encoded']} reported")
    formats = [pixel_format(each) for each in (path, directory / "made.mov")]
    if not timed or len(source.frames) != source.count:
        return
    if formats[0].replace("yuvj", "yuv") != formats[1]:
        return
    times = [time for time, _ in source.frames]
    # The file rounds the times of its frames to ticks, so a frame may begin up to a tick earlier.
    # Frames at irregular times may be shown one slot earlier, so that none is left out.
    intervals = [next_time - time for time, next_time in zip(times, times[1:])]
    is_irregular = bool(intervals) and max(intervals) - min(intervals) > 2 * source.tick
    for slot, (_, digest) in enumerate(rows):
        due = [
            max(0, bisect.bisect_right(times, Fraction(slot, 30) + late) - 1)
            for late in (0, source.tick)]
        last = min(due[1] + is_irregular, len(times) - 1)
        if all(digest != source.frames[index][1] for index in range(due[0], last + 1)):
            raise Trial("wrong", f"rendering: slot {slot} is not frame {due[0]}")


def checked(path, directory, source, info, timed):
    """The audit counts the frames that info counts."""
    report = slowmo("check", path)
    if report["frame_count"] != source.count:
        raise Trial("wrong", f"check: {report['frame_count']} frames, info counts {source.count}")


def raw_frames(path, directory, source, info, timed):
    """Frames as pixels, if no conversion is needed."""
    if pixel_format(path) != "yuv420p" or info["video"]["codec"] in VARIABLE_IDCT:
        return
    count = min(len(source.frames), source.count)
    part = ["--range", f"0f..{count}f"] if count < source.count else []
    finished = run([
        options.slowmo, "frames", path, "--raw", "yuv420p", "--rotation", "keep", "-o", "-", *part])
    if finished.returncode:
        raise Trial("refused", finished.stderr.decode(errors="replace").strip()[-300:])
    length = len(finished.stdout) // max(1, count)
    for index in range(count):
        digest = hashlib.md5(finished.stdout[index * length:(index + 1) * length]).hexdigest()
        if digest != source.frames[index][1]:
            raise Trial("wrong", f"frames: frame {index} has other pixels")


def pixel_format(path):
    finished = run([
        "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=pix_fmt",
        "-of", "csv=p=0", "file:" + str(path)])
    return finished.stdout.decode().split("\n")[0].strip().strip(",")


TRIALS = {
    "check": checked, "frames": raw_frames, "copy": whole_copy, "slow part": slow_part,
    "middle": middle, "30 fps": rendered,
}


def trials(path):
    """The classes and reasons of all trials of a file."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="real-files-") as name:
        directory = pathlib.Path(name)
        try:
            info = slowmo("info", path)
            if info["video"] is None:
                raise Trial("refused", "no video frames")
            if info.get("truncation"):
                raise Trial("refused", "cut off: part of its frames can be read")
            source = Source(path, info)
        except Trial as trial:
            is_empty = trial.args[0] == NO_FRAME
            return {"info": ("unjudged", "ffmpeg decodes no frame") if is_empty else trial.args}
        timed = info["container"] not in UNTIMED
        for name, trial in TRIALS.items():
            try:
                trial(path, directory, source, info, timed)
                found[name] = ("right", "")
            except Trial as result:
                found[name] = result.args
    return found


def masked(words, path):
    return words.replace(str(path), "FILE").replace(pathlib.Path(path).name, "FILE")


def main():
    files = sorted(
        path for directory in options.directory for path in pathlib.Path(directory).rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        sys.exit(f"no clips in {' '.join(options.directory)}: give a directory of movies")
    columns = ["info", *TRIALS]
    groups = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    faults = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tried = {pool.submit(trials, path): path for path in files}
        for done in concurrent.futures.as_completed(tried):
            path, found = tried[done], done.result()
            group = path.relative_to(next(
                directory for directory in options.directory
                if path.is_relative_to(directory))).parts[0] if len(path.parts) > 1 else "."
            groups[group]["files"] += 1
            classes = {kind for kind, _ in found.values()}
            for kind in KINDS:
                if kind in classes:
                    groups[group][kind] += 1
                    break
            for name in columns:
                if name not in found:
                    continue
                kind, words = found[name]
                if kind in ("wrong", "crash", "hung"):
                    faults.append(f"{kind}: {path}: {name}: {words}")
                elif kind != "right":
                    reasons[f"{name}: {masked(words, path)}"] += 1
            if options.verbose:
                print(path, found, file=sys.stderr, flush=True)
    kinds = ("files", *reversed(KINDS))
    width = max(map(len, list(groups) + ["all"]))
    print(f"{'':{width}}", *(f"{kind:>9}" for kind in kinds))
    for group in sorted(groups):
        print(f"{group:{width}}", *(f"{groups[group][kind]:9}" for kind in kinds))
    total = sum(groups.values(), collections.Counter())
    print(f"{'all':{width}}", *(f"{total[kind]:9}" for kind in kinds))
    print(f"{len(groups)} origins; a file counts by its worst trial; refused means that slowmo gave a reason")
    for reason, count in reasons.most_common(40):
        print(f"{count:5}  {reason[:200]}")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("directory", nargs="+", help="directories of clips; each directory inside is an origin")
parser.add_argument("--slowmo", default=os.environ.get("SLOWMO", ".build/release/slowmo"))
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument(
    "--most-pixels", type=int, default=300_000_000,
    help="number of pixels of a clip to compare, from its start. Default: 300000000, 144 frames of 1080p")
parser.add_argument("--verbose", action="store_true")
if __name__ == "__main__":
    options = parser.parse_args()
    main()
