# SPDX-License-Identifier: Apache-2.0
"""Tests the plans of OpenTimelineIO projects against the format's own library.

See otio-projects for the usage. The library provides the ranges of items and the start times of a
track's children. The rules for the visible content are in `shown` and `content`, independent of the
command's code.

A plan lists only one track. A project with audio tracks is therefore planned once more without its
video tracks, as a project file, since a movie needs video. Times inside speed ramps written by the
command are counted but not compared, because other programs see a row of short clips there.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from fractions import Fraction

import opentimelineio as otio
from opentimelineio import schema

# Seconds: 0.5 ms of rounding on each side, with a margin.
TOLERANCE = 0.0011
TIMEOUT = 300
STILLS = "png jpg jpeg tif tiff bmp webp exr dpx tga svg".split()
AUDIO = "wav aif aiff mp3 flac m4a ogg".split()
# ffmpeg's container for each suffix; QuickTime for all others.
CONTAINERS = {"mp4": "mp4", "m4v": "mp4", "mkv": "matroska", "mxf": "mov", "avi": "mov"}
LONGEST_STAND_IN = 1 << 18
TARGET_URL = re.compile(r'("target_url"\s*:\s*)("(?:[^"\\]|\\.)*")')
making = threading.Lock()
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"/>\n'


class Fault(Exception):
    """A finding; the first argument is its class."""


# MARK: The interpreter


def seconds(time):
    """The seconds of a RationalTime; TV rates are exact in any notation.

    A rate of 23.98 means 24000/1001.
    """
    whole = math.ceil(time.rate)
    if time.rate != whole and abs(time.rate - whole * 1000 / 1001) < 0.002:
        return time.value * 1001 / (whole * 1000)
    return time.value / time.rate


def length(item):
    return seconds(item.trimmed_range().duration)


def effects(item):
    """The enabled effects of an item; OpenTimelineIO 0.17 has no `enabled` attribute yet."""
    return [effect for effect in item.effects if getattr(effect, "enabled", True)]


def offsets(item):
    """The time curve of an item in Hiero's form: an offset in frames for each frame."""
    for effect in effects(item):
        if isinstance(effect, schema.TimeEffect) and "lookup" in effect.metadata:
            return [float(value) for value in effect.metadata["lookup"]]
    return None


def content(item, time):
    """The time in an item's own content, after its trim and its effects.

    LinearTimeWarps multiply. A negative scalar plays the same range from its end.
    """
    scalar = 1.0
    for effect in effects(item):
        if isinstance(effect, schema.FreezeFrame):
            scalar = 0.0
        elif isinstance(effect, schema.LinearTimeWarp):
            scalar *= effect.time_scalar
    start = seconds(item.trimmed_range().start_time)
    if scalar < 0:
        start -= length(item) * scalar
    curve = offsets(item)
    if curve:
        rate = 1 / seconds(otio.opentime.RationalTime(1, item.trimmed_range().duration.rate))
        frame = int(time * rate)

        def offset(index):
            return curve[index] if index < len(curve) else 2 * curve[-1] - curve[-2]
        share = time * rate - frame
        time += (offset(frame) * (1 - share) + offset(frame + 1) * share) / rate
    return start + time * scalar


def shown(item, time, kind):
    """The content of an item at its own time, counted from 0: (url, seconds)."""
    if not 0 <= time < length(item) or not item.enabled or isinstance(item, schema.Gap):
        return None
    inner = content(item, time)
    if isinstance(item, schema.Clip):
        media = item.media_reference
        if not isinstance(media, schema.ExternalReference):
            return None
        if suffix(media.target_url) in STILLS:
            return media.target_url, 0.0
        available = media.available_range
        inner -= seconds(available.start_time) if available else 0
        # Some programs count one frame too early; the first frame then stands for it.
        return media.target_url, 0.0 if -1 / 24 - 1e-9 <= inner < 0 else inner
    if isinstance(item, schema.Track):
        for index, child in enumerate(item):
            if isinstance(child, schema.Transition):
                continue
            place = item.range_of_child_at_index(index)
            start = seconds(place.start_time)
            if start <= inner < start + seconds(place.duration):
                return shown(child, inner - start, kind)
        return None
    if isinstance(item, schema.Stack):
        for child in reversed(item):
            if not isinstance(child, schema.Track) or child.kind == kind:
                found = shown(child, inner, kind)
                if found:
                    return found
        return None
    raise Fault("unjudged", f"the interpreter does not know {type(item).__name__}")


def root_of(document):
    if isinstance(document, schema.SerializableCollection):
        document = [child for child in document if isinstance(child, schema.Timeline)][0]
    return document.tracks if isinstance(document, schema.Timeline) else document


def leading(root):
    """The tracks in a project's plan: its video, or otherwise its first track with audio."""
    tracks = list(root) if isinstance(root, schema.Stack) else [root]
    kinds = {getattr(track, "kind", "Video") for track in tracks if track.enabled}
    if "Video" in kinds or not isinstance(root, schema.Stack):
        return root, "Video" if "Video" in kinds else "Audio"
    for track in tracks:
        if track.enabled and getattr(track, "kind", "") == "Audio":
            if any(has_audio(clip) for clip in track.find_clips()):
                # The stack may be trimmed or retimed, so it is kept around the track.
                index = tracks.index(track)
                for other in reversed(range(len(tracks))):
                    if other != index:
                        del root[other]
                return root, "Audio"
    return root, "Audio"


def has_audio(clip):
    return clip.enabled and isinstance(clip.media_reference, schema.ExternalReference)


def used(document):
    """The required duration of each movie in seconds, by URL."""
    needed = collections.defaultdict(float)
    clips = [document] if isinstance(document, schema.Clip) else document.find_clips()
    for clip in clips:
        media = clip.media_reference
        if not isinstance(media, schema.ExternalReference):
            continue
        available = media.available_range
        first = seconds(available.start_time) if available else 0
        ends = [seconds(available.duration) if available else 0]
        try:
            steps = len(offsets(clip) or []) * 2 or 1
            ends += [content(clip, length(clip) * step / steps) - first
                     for step in range(steps + 1)]
        except (otio.exceptions.OTIOError, ValueError, ZeroDivisionError):
            pass  # A clip without a range has no known length.
        needed[media.target_url] = max(ends + [needed[media.target_url]])
    return needed


def parsed(text):
    """The project as library objects; without markers if the library is too old for them."""
    try:
        return otio.adapters.read_from_string(text, "otio_json")
    except Exception as problem:  # The library raises its own errors and built-in ones.
        try:
            document = json.loads(text)
        except ValueError:
            raise Fault("unjudged", f"the library cannot read it: {problem}") from None
    try:
        return otio.adapters.read_from_string(
            json.dumps(without_markers(document)), "otio_json")
    except Exception as problem:
        raise Fault("unjudged", f"the library cannot read it: {problem}") from None


def without_markers(value):
    """A copy of parsed JSON without markers, whose schema has newer versions."""
    if isinstance(value, list):
        return [without_markers(element) for element in value]
    if isinstance(value, dict):
        return {key: without_markers(element) for key, element in value.items()
                if key != "markers"}
    return value


# MARK: Placeholders


def suffix(url):
    return pathlib.PurePath(url.strip()).suffix[1:].lower()


def stand_in(directory, name, needed):
    """A placeholder file with a suffix and a sufficient duration; movies last a power of two."""
    lasting = 1 if name in STILLS else 1 << max(2, math.ceil(math.log2(needed + 1)))
    if lasting > LONGEST_STAND_IN:
        raise Fault("unjudged", f"its media must last {needed:.0f} s")
    made = directory / f"{lasting}.{name or 'mov'}"
    if made.exists():
        return made
    draft = directory / f"draft-{made.name}"
    image = ["-f", "lavfi", "-i", "color=gray:s=16x16:r=1"]
    silence = ["-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono"]
    if name == "svg":
        draft.write_text(SVG)
        draft.rename(made)
        return made
    if name in STILLS:
        how = [*image, "-frames:v", "1", "-update", "1"]
        if name == "exr":
            how += ["-pix_fmt", "gbrpf32le"]
    elif name in AUDIO:
        how = [*silence, "-t", str(lasting)]
    else:
        how = [*image, *silence, "-t", str(lasting), "-c:v", "mjpeg", "-c:a", "aac", "-f",
               CONTAINERS.get(name, "mov")]
    finished = subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin", "-y", *how, str(draft)], capture_output=True)
    if finished.returncode != 0:
        raise Fault("unjudged", f"ffmpeg makes no .{name}: {finished.stderr[-100:]!r}")
    draft.rename(made)
    return made


def relinked(text, needed, directory, cache):
    """The project with its media replaced by placeholders, which are linked into the directory.

    A file URL stays a file URL with an encoded space; any other path becomes relative.
    """
    links = {}

    def link(url):
        if url not in links:
            is_url = url.startswith("file:")
            name = suffix(urllib.parse.unquote(url))
            with making:
                made = stand_in(cache, name, needed.get(url, 0))
            path = directory / f"media{' ' if is_url else '-'}{len(links) + 1}{made.suffix}"
            os.link(made, path)
            links[url] = path.as_uri() if is_url else path.name
        return links[url]

    def replaced(match):
        url = json.loads(match[2])
        return match[0] if not url.strip() else match[1] + json.dumps(link(url))
    return TARGET_URL.sub(replaced, text)


def local(url, directory):
    """The file path of a URL."""
    if url.startswith("file:"):
        return urllib.parse.unquote(urllib.parse.urlsplit(url).path)
    return os.path.normpath(directory / url)


# MARK: Judging


def plan(directory, name, output):
    """The command's plan; raises the error that the command reported."""
    try:
        finished = subprocess.run(
            [options.slowmo, "edit", name, *output, "--dry-run", "--json"],
            cwd=directory, capture_output=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Fault("crash", f"no answer within {TIMEOUT} s") from None
    try:
        document = json.loads(finished.stdout)
    except ValueError:
        raise Fault("crash", f"exit {finished.returncode}: {finished.stderr[-200:]!r}") from None
    if "error" in document:
        raise Fault("refused", document["error"]["message"])
    if finished.returncode != 0:
        raise Fault("crash", f"exit {finished.returncode}")
    return document


def planned(segment, time, directory):
    """The content that a plan's segment shows at a time inside it."""
    if segment["file"] is None:
        return None
    start, end, first, last = segment["times"]
    path = os.path.normpath(directory / segment["file"])
    if segment["motion"] == "hold":
        return path, first
    share = (time - start) / (end - start)
    if segment["reversed"]:
        share = 1 - share
    return path, first + (last - first) * share


def judge(document, text, directory):
    """Compares a plan with the interpreter; returns the counts of samples and differences."""
    root, kind = leading(root_of(parsed(text)))
    for segment in document["plan"]:
        target, source = segment["target"], segment["source"] or {"start": "0", "end": "0"}
        segment["times"] = [
            float(Fraction(value)) for value in
            (target["start"], target["end"], source["start"], source["end"])]
    try:
        # A disabled or unselected track does not shorten the stack.
        whole = length(root)
    except (otio.exceptions.OTIOError, ValueError) as problem:
        raise Fault("unjudged", f"the library cannot find its length: {problem}") from None
    end = max([segment["times"][1] for segment in document["plan"]] + [whole])

    def expected(time):
        found = shown(root, time, kind)
        return found and (local(found[0], directory), found[1])
    counts, differences = collections.Counter(), []
    for number in range(options.samples):
        # The golden ratio keeps the samples off every frame grid.
        time = (number + (number * 0.6180339887 + 0.31) % 1) * end / options.samples
        around = [segment for segment in document["plan"]
                  if segment["times"][0] <= time < segment["times"][1]]
        segment = around[0] if around else None
        if segment and segment["motion"] == "ramp":
            counts["ramp"] += 1
            continue
        got = segment and planned(segment, time, directory)
        wanted = expected(time)
        if agree(got, wanted):
            counts["agree"] += 1
            counts["shown"] += got is not None
        elif any(abs(time - edge) < TOLERANCE for segment in document["plan"]
                 for edge in segment["times"][:2]):
            counts["boundary"] += 1
        else:
            counts["differing"] += 1
            differences.append(
                f"at {time:.4f} s {words(got)} is planned, {words(wanted)} is expected")
    return counts, differences


def agree(got, wanted):
    if got is None or wanted is None:
        return got is wanted
    return got[0] == wanted[0] and abs(got[1] - wanted[1]) < TOLERANCE


def words(what):
    return "nothing" if what is None else f"{os.path.basename(what[0])} {what[1]:.4f} s"


def only_audio(text):
    """The project without its video tracks; None if no track is left."""
    try:
        document = json.loads(text)
        stack = document.get("tracks", document)
    except (ValueError, AttributeError):
        return None
    tracks = stack.get("children") if isinstance(stack, dict) else None
    if not isinstance(tracks, list) or stack.get("OTIO_SCHEMA", "").split(".")[0] != "Stack":
        return None
    stack["children"] = [track for track in tracks if track.get("kind") == "Audio"]
    return json.dumps(document) if stack["children"] else None


def names_media(text):
    return "ImageSequenceReference" in text or any(
        json.loads(match[2]).strip() for match in TARGET_URL.finditer(text))


def trial(text, directory, name, *output):
    """The result of one plan: (class, reason, counts)."""
    (directory / name).write_text(text)
    counts, differences = collections.Counter(), []
    try:
        document = plan(directory, name, output)
        counts, differences = judge(document, text, directory)
    except Fault as fault:
        return (*fault.args, counts)
    except Exception as problem:  # The interpreter failed: not a timeline.
        return "unjudged", f"{type(problem).__name__}: {problem}", counts
    return ("differ" if differences else "planned"), "; ".join(differences[:2]), counts


def attempt(path):
    """The trials of a project, for video and for audio."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        directory = pathlib.Path(os.path.realpath(name))
        try:
            needed = used(parsed(text))
        except Exception:  # Not a timeline; the command reports the reason.
            needed = collections.defaultdict(lambda: 3600.0)
        try:
            copy = relinked(text, needed, directory, scratch)
        except Fault as fault:
            return {"video": (*fault.args, collections.Counter())}
        found = {"video": trial(copy, directory, "project.otio", "-o", "out.mov", "--fps", "30")}
        if not names_media(text) and found["video"][0] in ("planned", "refused"):
            found["video"] = ("no media", *found["video"][1:])
        audio = only_audio(copy)
        if audio and names_media(audio):
            found["audio"] = trial(audio, directory, "audio.otio", "-o", "out.otio")
        return found


def masked(message):
    """A message without project-specific parts, so that equal ones can be counted."""
    message = re.sub(r"(project|audio)\.otio", "PROJECT", message)
    message = re.sub(r"media[- ]\d+", "MEDIA", message)
    message = re.sub(r"\S*/(?=MEDIA|PROJECT)", "", message)
    return re.sub(r"-?\d+(\.\d+)?", "N", message)


def origin(path):
    return path.name.split("__")[0] if "__" in path.name else path.parent.name


def main():
    paths = sorted({path for directory in options.directory
                    for path in pathlib.Path(directory).rglob("*.otio") if path.is_file()})
    if not paths:
        sys.exit("no .otio file found")
    columns = ("projects", "no media", "planned", "refused", "unjudged", "differ", "crash")
    groups = collections.defaultdict(collections.Counter)
    kinds = {kind: collections.Counter() for kind in ("video", "audio")}
    reasons, faults = collections.defaultdict(list), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, found in zip(paths, pool.map(attempt, paths)):
            group = groups[origin(path)]
            group["projects"] += 1
            group[found["video"][0]] += 1
            for kind, (outcome, reason, counts) in found.items():
                kinds[kind] += counts
                kinds[kind][outcome] += 1
                if options.verbose:
                    print(path, kind, outcome, reason, dict(counts), file=sys.stderr)
                if outcome in ("differ", "crash"):
                    faults.append(f"{outcome}: {path}: {kind}: {reason}")
                elif reason:
                    reasons[f"{kind}, {outcome}: {masked(reason)}"].append(path.name)
    width = max(map(len, [*groups, "all"]))
    print(f"{'':{width}}", *(f"{column:>9}" for column in columns))
    groups["all"] = sum(groups.values(), collections.Counter())
    for name in sorted(groups, key=lambda name: (name == "all", name)):
        print(f"{name:{width}}", *(f"{groups[name][column]:9}" for column in columns))
    for kind, counts in kinds.items():
        print(f"{kind}: {counts['planned'] + counts['differ']} plans, of which "
              f"{counts['differ']} differ, {counts['refused']} refused, {counts['unjudged']} unjudged; "
              f"{counts['agree']} samples agree, {counts['shown']} of them show media; "
              f"{counts['differing']} differ, {counts['boundary']} are at a boundary, "
              f"{counts['ramp']} on a ramp are not compared")
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(names):5}  {reason}  ({names[0]})")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("directory", nargs="+", help="directories of .otio files; the origin of a file is "
                    "the part of its name before __, or else its directory")
parser.add_argument("--slowmo", default=os.environ.get("SLOWMO", ".build/release/slowmo"))
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--samples", type=int, default=200, help="times compared in each project")
parser.add_argument("--verbose", action="store_true")
if __name__ == "__main__":
    options = parser.parse_args()
    options.slowmo = os.path.abspath(options.slowmo)
    with tempfile.TemporaryDirectory(prefix="otio-projects-") as made:
        scratch = pathlib.Path(made)
        main()
