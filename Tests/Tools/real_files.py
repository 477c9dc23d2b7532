# SPDX-License-Identifier: Apache-2.0
"""Tries a folder of real clips: info, copies, cuts and renderings, judged by ffmpeg's decoding.

See real-files for its use.
"""
import argparse
import bisect
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

SUFFIXES = (
    ".mov .mp4 .m4v .mkv .webm .avi .ts .mts .m2ts .mpg .mpeg .vob .3gp .3g2 .flv .f4v .wmv .asf "
    ".mxf .ogv .insv .lrv .h264 .h265 .hevc .264 .265 .m4s .fmp4 .cmfv .qt .mod .dv .y4m").split()
# Containers whose packets do not all say when their frames are shown: ffmpeg's own times of them
# are guesses, so that only the frames and their order are compared.
UNTIMED = {"avi", "mpeg", "h264", "hevc"}
TIMEOUT = 300


class Trial(Exception):
    """What was found; the first argument is the class."""


def run(arguments, timeout=TIMEOUT):
    try:
        return subprocess.run(
            arguments, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Trial("hung", " ".join(map(str, arguments[:3]))) from None


def slowmo(*arguments):
    """The document of a verb, or what it refused; anything else is a fault."""
    finished = run([options.slowmo, *map(str, arguments), "--json"])
    try:
        document = json.loads(finished.stdout)
    except ValueError:
        raise Trial("crash", f"exit {finished.returncode}: {finished.stderr[-200:]!r}") from None
    if finished.returncode not in (0, 64, 65, 66, 73, 74, 77) or (
            finished.returncode != 0 and "error" not in document):
        raise Trial("crash", f"exit {finished.returncode}")
    if "error" in document:
        raise Trial("refused", document["error"]["message"])
    return document


def decoded(path):
    """The frames that ffmpeg shows: (seconds after the first, hash of the samples), and a tick."""
    finished = run([
        "ffmpeg", "-v", "error", "-noautorotate", "-i", "file:" + str(path), "-map", "0:v:0",
        "-fps_mode", "passthrough", "-enc_time_base", "-1", "-hash", "md5", "-f", "framehash", "-"])
    rows, tick = [], None
    for line in finished.stdout.decode(errors="replace").splitlines():
        if line.startswith("#tb 0: "):
            tick = Fraction(line[7:])
        elif not line.startswith("#"):
            fields = [field.strip() for field in line.split(",")]
            rows.append((int(fields[2]), fields[5]))
    if not rows or tick is None:
        raise Trial("unjudged", "ffmpeg decodes no frame of it")
    return rows, tick


def shown(path, end=None):
    """As decoded, without frames that are hidden: shown for a tick."""
    rows, tick = decoded(path)
    first = rows[0][0]
    frames = []
    for (ticks, digest), after in zip(rows, rows[1:] + [(None, None)]):
        if after[0] is None or after[0] - ticks > 1:
            frames.append(((ticks - first) * tick, digest))
    start = frames[0][0]
    return [(time - start, digest) for time, digest in frames]


def compare(what, frames, wanted, error_ns, timed):
    if [digest for _, digest in frames] != [digest for _, digest in wanted]:
        at = next(
            (index for index, pair in enumerate(zip(frames, wanted)) if pair[0][1] != pair[1][1]),
            min(len(frames), len(wanted)))
        raise Trial(
            "wrong", f"{what}: {len(frames)} frames for {len(wanted)}, the first other one is {at}")
    if not timed:
        return
    bound = Fraction(error_ns + 1, 10**9)
    for index, (made, asked) in enumerate(zip(frames, wanted)):
        if abs(made[0] - asked[0]) > bound:
            raise Trial(
                "wrong",
                f"{what}: frame {index} at {float(made[0]):.6f} s, not {float(asked[0]):.6f} s")


def whole_copy(path, folder, source, info, timed):
    report = slowmo("retime", path, "-o", folder / "copy.mov", "--speed", 1, "--copy")
    compare("copy", shown(folder / "copy.mov"), source, report["max_time_error_ns"], timed)
    if report["frames_copied"] != info["video"]["frame_count"]:
        raise Trial("wrong", "copy: the report and info count other frames")


def slow_cut(path, folder, source, info, timed):
    """From a third to two thirds, at a quarter of the speed: cuts off key frames."""
    count = info["video"]["frame_count"]
    if count < 9 or count != len(source):
        return
    first, last = count // 3 + 1, 2 * count // 3
    report = slowmo(
        "retime", path, "-o", folder / "cut.mov", "--range", f"{first}f..{last}f", "--speed",
        "1/4", "--copy", "--boundary", "squeeze", "--pitch", "mute")
    wanted = []
    for index, (time, digest) in enumerate(source):
        begin, end = source[first][0], source[last][0]
        if time >= end:
            time += 3 * (end - begin)
        elif time > begin:
            time += 3 * (time - begin)
        wanted.append((time, digest))
    compare("slow part", shown(folder / "cut.mov"), wanted, report["max_time_error_ns"], timed)


def middle(path, folder, source, info, timed):
    """The middle third alone, as a project: it begins and ends off key frames."""
    count = info["video"]["frame_count"]
    if count < 9 or count != len(source):
        return
    first, last = count // 3 + 1, 2 * count // 3
    rate = info["video"]["nominal_fps_value"] or info["video"]["average_fps_value"]
    times = frame_times(path, folder)
    project = {
        "version": 2, "mediaFileName": str(pathlib.Path(path).resolve()),
        "cutSegments": [{"start": times[first], "end": times[last], "name": ""}]}
    (folder / "middle.llc").write_text(json.dumps(project))
    report = slowmo("edit", folder / "middle.llc", "-o", folder / "middle.mov", "--copy", "--pitch",
                    "mute", "--boundary", "squeeze")
    begin = source[first][0]
    wanted = [(time - begin, digest) for time, digest in source[first:last]]
    # Times in seconds have so many digits.
    compare(f"middle ({rate} fps)", shown(folder / "middle.mov"), wanted,
            report["max_time_error_ns"] + 1000, timed)


def frame_times(path, folder):
    slowmo("frames", path, "--csv", folder / "times.csv", "-y")
    lines = (folder / "times.csv").read_text().splitlines()
    place = lines[0].split(",").index("pts_ns")
    # Half a microsecond late, so that a rounded time does not fall before its frame.
    return [(int(line.split(",")[place]) + 500) / 1e9 for line in lines[1:]]


def rendered(path, folder, source, info, timed):
    """Lossless frames at 30 fps: each slot shows the last frame that is due."""
    report = slowmo("retime", path, "-o", folder / "made.mov", "--speed", 1, "--fps", 30, "--codec",
                    "ffv1", "--pitch", "mute")
    if not timed or len(source) != info["video"]["frame_count"]:
        return
    rows, _ = decoded(folder / "made.mov")
    if len(rows) != report["frames_encoded"]:
        raise Trial("wrong", f"rendering: {len(rows)} frames, {report['frames_encoded']} reported")
    formats = [pixel_format(each) for each in (path, folder / "made.mov")]
    if formats[0].replace("yuvj", "yuv") != formats[1]:
        return
    times = [time for time, _ in source]
    for slot, (_, digest) in enumerate(rows):
        index = max(0, bisect.bisect_right(times, Fraction(slot, 30)) - 1)
        if digest != source[index][1]:
            raise Trial("wrong", f"rendering: slot {slot} is not frame {index}")


def pixel_format(path):
    finished = run([
        "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=pix_fmt",
        "-of", "csv=p=0", "file:" + str(path)])
    return finished.stdout.decode().split("\n")[0].strip().strip(",")


def trials(path):
    """Classes and words of all trials of a file."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="real-files-") as name:
        folder = pathlib.Path(name)
        try:
            info = slowmo("info", path)
            if info["video"] is None:
                raise Trial("refused", "no pictures")
            if info["video"]["frame_count"] > options.most_frames:
                raise Trial("unjudged", f"more than {options.most_frames} frames")
            if info.get("truncation"):
                raise Trial("refused", "cut off: part of its frames can be read")
            source = shown(path)
        except Trial as trial:
            return {"info": trial.args}
        timed = info["container"] not in UNTIMED
        for name, trial in (("copy", whole_copy), ("slow part", slow_cut), ("middle", middle),
                            ("30 fps", rendered)):
            try:
                trial(path, folder, source, info, timed)
                found[name] = ("right", "")
            except Trial as result:
                found[name] = result.args
    return found


def masked(words, path):
    return words.replace(str(path), "FILE").replace(pathlib.Path(path).name, "FILE")


def main():
    files = sorted(
        path for folder in options.folder for path in pathlib.Path(folder).rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        sys.exit(f"no clips in {' '.join(options.folder)}: give a folder of movies")
    columns = ["info", "copy", "slow part", "middle", "30 fps"]
    groups = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    faults = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, found in zip(files, pool.map(trials, files)):
            group = path.relative_to(next(
                folder for folder in options.folder
                if path.is_relative_to(folder))).parts[0] if len(path.parts) > 1 else "."
            groups[group]["files"] += 1
            classes = {kind for kind, _ in found.values()}
            for kind in ("wrong", "crash", "hung", "unjudged", "refused", "right"):
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
    kinds = ("files", "right", "refused", "unjudged", "wrong", "crash", "hung")
    width = max(map(len, list(groups) + ["all"]))
    print(f"{'':{width}}", *(f"{kind:>9}" for kind in kinds))
    for group in sorted(groups):
        print(f"{group:{width}}", *(f"{groups[group][kind]:9}" for kind in kinds))
    total = sum(groups.values(), collections.Counter())
    print(f"{'all':{width}}", *(f"{total[kind]:9}" for kind in kinds))
    print(f"{len(groups)} origins; a file counts as its worst trial, refused where it gives a reason")
    for reason, count in reasons.most_common(40):
        print(f"{count:5}  {reason[:200]}")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("folder", nargs="+", help="folders of clips; each folder inside is an origin")
parser.add_argument("--slowmo", default=os.environ.get("SLOWMO", ".build/release/slowmo"))
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--most-frames", type=int, default=2_000, help="longer clips are not judged")
parser.add_argument("--verbose", action="store_true")
if __name__ == "__main__":
    options = parser.parse_args()
    main()
