#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on names that a reader would need a dictionary of ours for.

A file in Sources is named after a type, or an extension of a type, that it declares:
`Type.swift` or `Type+Topic.swift`. No public symbol and no file has a word in its name for which the
field has another, labels of arguments included; nor has a type, a member or a parameter that Sources
declare for themselves. No library imports all of Foundation. Public symbols are read from the symbol
graphs of the modules that were built. Articles and other documents have no such word either, no link to
a file that is not there, and no figure without what answers for it (Tests/articles.py).

    Tests/check-language.py BUILD-DIRECTORY    checks; the directory is that of `swift build`
    Tests/check-language.py --self-test        shows that each kind of mistake is found, and
                                               checks the articles, which need no build
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import articles
import symbol_graphs

# Words of public symbols and files, in small letters, and what to write instead.
WORDS = {
    "room": "module, or space", "rooms": "modules", "folder": "directory",
    "folders": "directories", "asked": "requested", "proof": "verification",
    "proves": "verifies",
    "place": "index, offset or position", "places": "indices, offsets or positions",
    "placed": "aligned", "sound": "audio", "sounds": "audio", "picture": "image or frame",
    "pictures": "images or frames", "words": "description", "tell": "report", "tells": "reports",
    "told": "reported", "books": "ledger", "mend": "repair", "mended": "repaired",
    "lamp": "torch or LED", "lamps": "LEDs", "turn": "rotation", "turned": "rotated",
    "turns": "rotations", "patience": "timeout", "knee": "breakpoint", "knees": "breakpoints",
    "way": "method or policy", "ways": "methods or policies", "means": "method or policy",
    "lend": "buffer", "lent": "buffer", "loan": "buffer", "loans": "buffers",
    "voice": "renderer", "voices": "renderers", "likeness": "correlation", "conveyor": "queue",
    "painter": "renderer", "wholeness": "integrity", "eased": "easeInOut",
    "relocated": "replacingSourcePaths", "colour": "color", "colours": "colors", "grey": "gray",
}
# Whole names, and what to write instead.
NAMES = {
    "provesFrameRate": "verifiesFrameRate", "FrameRateProof": "FrameRateVerification",
    "RateCause": "FrameRateMismatchReason", "LockedDevice": "DeviceConfiguration",
    "PictureSize": "VideoSize", "ColourClass": "ColorModel", "isBeyondSource": "exceedsSource",
    "OtherSpeeds": "UnsupportedSpeedPolicy", "SlotPicture": "BlendedFrame",
    "FrameSlots": "OutputFrameGrid", "ExportBoundary": "CutPolicy", "SparseFrames": "LowRateRange",
    "FrameLine": "FrameTimingRow", "OpenTimeline": "OpenTimelineDocument",
    "CaptureCost": "CaptureStatistics", "addsUp": "isBalanced", "wasPlain": "wasIntact",
    "keepLargeBuffers": "retainLargeAllocations", "longestBurst": "maximumBurstDuration",
    "durationInSeconds": "duration", "SlopeFit": "SubsampleDelayEstimator",
    "BetweenSamples": "FractionalDelay", "SmallFraction": "RationalApproximation",
    "LockedMap": "TransientTimeMap", "Showing": "FramePresentation",
    "FrameLoans": "BufferPool", "LentBuffer": "DequeuedBuffer", "CapturePump": "CaptureLoop",
    "SinkSwitchboard": "SinkList", "StampClock": "TimestampUnwrapper", "SlotGrid": "PeriodTracker",
    "SlotSearch": "SlotAssignment", "TakeClock": "PausableClock", "DeviceReach": "DeviceEnvironment",
    "DevicePlace": "DeviceLocation", "SourceName": "DeviceSpecifier", "NodeInspection": "NodeProbe",
    "PaintedNumber": "FrameNumberPattern", "TestPicture": "TestPattern",
    "PictureMaker": "TestPatternGenerator", "PlatformThread": "BlockingThread",
    "GrowingMovie": "FragmentedMovieWriter", "PlainMovie": "MovieFinalizer",
    "MovieMend": "MovieRepair", "GrowingTake": "TakeRecorder",
    "PlacedMicrophone": "AlignedMicrophone", "StoredForm": "SampleEncoding", "Intake": "State",
    "Outlet": "Writer", "MovieHead": "InitializationSegment", "MovieBytes": "RandomAccessFile",
    "LightTransfer": "TransferFunction", "LargeBuffers": "MallocTuning",
    "UnitReader": "NALUnitReader", "DeviceCalls": "VideoSystemCalls",
    "KernelCalls": "KernelVideoCalls", "FolderWatch": "DirectoryWatcher",
    "PixelLayout": "PixelFormat", "PictureFormat": "PixelFormat",
    "RawPictureFormat": "PixelFormat", "Coding": "PixelFormat or VideoCodec", "Way": "Method",
    "coordinated": "cvt", "asked": "requested", "SoundTrack": "AudioTrack", "SessionInput": "CaptureInput",
    "SteppedSound": "DecimatedSignal", "AudioVoice": "SegmentRenderer",
    "GrainVoice": "WSOLARenderer", "SpectralVoice": "RubberBandRenderer",
    "PicturePainter": "FrameRenderer", "SoundPump": "AudioCaptureLoop",
    "FrameWholeness": "FrameIntegrityCheck", "MissingSound": "AudioGapTracker",
    "CompanionSound": "CameraAudio", "SoundPlacer": "AudioAligner",
}
# Names with such a word that are right all the same, and why.
ALLOWED = {
    "pictureSets": "H.264 calls them picture parameter sets",
}
DECLARATION = re.compile(
    r"^\s*(?:(?:@\w+(?:\([^)]*\))?|public|package|internal|fileprivate|private|final|indirect|"
    r"nonisolated)\s+)*(?:struct|class|enum|protocol|actor|extension|typealias)\s+([\w.]+)", re.M)
FOUNDATION = re.compile(r"^\s*(?:\w+\s+)?import\s+Foundation\s*$", re.M)
# Comments, literals and what else a source file consists of. Code between the quotation marks of a
# string declares nothing that others see.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<hash>\#*)\"{3}.*?\"{3}(?P=hash)|\#+"[^\n]*?"\#+|"""
    r""""(?:\\\((?:[^()"]|"[^"\n]*"|\((?:[^()]|\([^()]*\))*\))*\)|\\.|[^"\\\n])*"|"""
    r"""`?[A-Za-z_]\w*`?|[0-9][\w.]*|\S""", re.S)
TYPES = {"struct", "class", "enum", "protocol", "actor", "extension"}
MEMBERS = {"var", "let", "case", "typealias", "associatedtype"}


def words(name):
    """The words of a name, in small letters: `isBeyondSource` has is, beyond and source."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def wrong_names(name):
    """What is wrong with a name, as sentences."""
    if name in ALLOWED:
        return []
    if name in NAMES:
        return [f"write {NAMES[name]}"]
    return [f"{word}: write {WORDS[word]}" for word in words(name) if word in WORDS]


def wrong_file(path, text):
    """What is wrong with a source file and its name, as sentences."""
    stem = path.stem
    problems = [problem for part in stem.split("+") for problem in wrong_names(part)]
    declared = {part for name in DECLARATION.findall(text) for part in name.split(".")}
    if stem != "main" and not text.count("@_exported") and stem.split("+")[0] not in declared:
        problems.append("it declares no type of its name, and extends none")
    if "slowmo" not in path.parts and FOUNDATION.search(text):
        problems.append("a library imports FoundationEssentials, or nothing of it")
    return problems


def parameters(tokens, start):
    """The labels and names between a parenthesis and its end, and where that is."""
    names, depth, index = [], 0, start
    while index < len(tokens):
        token = tokens[index]
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth == 0:
            break
        # `label name: Type` or `name: Type`; in an inner parenthesis those of a tuple.
        if token == ":" and tokens[index - 1].isidentifier():
            before = index - 1
            while before > start and tokens[before].isidentifier():
                names.append(tokens[before])
                before -= 1
        index += 1
    return names, index


def pattern(tokens, start, isCase):
    """What a declaration names, `name`, `(one, two)` or `one(label: Type)`, and where that ends."""
    if tokens[start] == "(":
        end = tokens.index(")", start)
        return [name for name in tokens[start:end] if name.isidentifier()], end + 1
    names, index = [tokens[start].strip("`")], start + 1
    if isCase and tokens[index:index + 1] == ["("]:
        labels, index = parameters(tokens, index)
        names, index = names + labels, index + 1
    if isCase and tokens[index:index + 1] == ["="]:
        # A raw value; one that is text is no token.
        index += 1 if tokens[index + 1] in (",", "case", "}") else 2
    return names, index


def declared_names(text):
    """The names of types, members and parameters that source text declares; not of what is local."""
    tokens = [token for token in (match.group() for match in TOKEN.finditer(text))
              if not token.startswith(("//", "/*", '"', "#\""))]
    # For each brace that is open, whether members are declared in it.
    scopes, opensType, index = [True], False, 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].strip("`") if index + 1 < len(tokens) else ""
        isMember = scopes[-1]
        if token in TYPES and following.isidentifier() and following not in ("func", "var", "let"):
            opensType = True
            if token != "extension":
                yield following
        elif token in ("func", "init", "subscript") and tokens[index - 1] != ".":
            if token == "func" and following.isidentifier():
                yield following
            while index < len(tokens) and tokens[index] not in ("(", "{", "}"):
                index += 1
            names, index = parameters(tokens, index)
            yield from (name for name in names if name != "_")
        elif isMember and token in MEMBERS:
            index += 1
            while True:
                names, index = pattern(tokens, index, token == "case")
                yield from names
                if index >= len(tokens) or tokens[index] != ",":
                    break
                index += 1
            continue
        elif token == "{":
            scopes.append(opensType)
            opensType = False
        elif token == "}" and len(scopes) > 1:
            scopes.pop()
        index += 1


def public_names(graph):
    """The names of a module's public symbols, and the labels of their arguments."""
    for symbol in graph["symbols"]:
        if symbol["accessLevel"] in ("public", "open"):
            for part in symbol["pathComponents"]:
                yield from (name for name in re.split(r"[(:)]", part) if name not in ("", "_"))


def modules_of(repo):
    """The names of the Swift modules below Sources but for the programs."""
    description = json.loads(subprocess.run(
        ["swift", "package", "--package-path", str(repo), "describe", "--type", "json"],
        check=True, capture_output=True, text=True).stdout)
    return [
        target["name"] for target in description["targets"]
        if target["path"].startswith("Sources/") and target["type"] == "library"
        and target["module_type"] == "SwiftTarget"]


def check(repo, build):
    """All problems of a checkout."""
    problems = []
    for path in sorted((repo / "Sources").rglob("*.swift")):
        name, text = path.relative_to(repo), path.read_text()
        problems += [f"{name}: {problem}" for problem in wrong_file(name, text)]
        problems += [f"{name}: {declared}: {problem}" for declared in sorted(set(declared_names(text)))
                     for problem in wrong_names(declared)]
    found = set()
    with tempfile.TemporaryDirectory() as directory:
        for module in modules_of(repo):
            symbol_graphs.extract(repo, build, module, directory)
        for module, graph in symbol_graphs.load(directory):
            for name in public_names(graph):
                found |= {f"{module}: {name}: {problem}" for problem in wrong_names(name)}
    return problems + sorted(found)


def self_test():
    path = pathlib.Path("Sources/Capture/Room.swift")
    assert wrong_file(path, "struct Room {}\n") == ["room: write module, or space"]
    path = pathlib.Path("Sources/Capture/Pace.swift")
    assert wrong_file(path, "struct Pace {}\n") == []
    assert len(wrong_file(path, "struct Speed {}\n")) == 1
    assert len(wrong_file(path, "import Foundation\nenum Pace {}\n")) == 1
    assert wrong_file(pathlib.Path("Sources/A/Pace+Text.swift"), "extension Pace {}\n") == []
    graph = {"symbols": [
        {"accessLevel": "public", "pathComponents": ["Take", "soundTrack(of:)"]},
        {"accessLevel": "internal", "pathComponents": ["Room"]}]}
    assert [wrong_names(name) for name in public_names(graph)] == [[], ["sound: write audio"], []]
    graph = {"symbols": [{"accessLevel": "public", "pathComponents": ["turn(_:inFolder:)"]}]}
    assert list(public_names(graph)) == ["turn", "inFolder"]
    assert all(wrong_names(name) for name in public_names(graph))
    # A word that is planted as a type, a member, a case, a label and a parameter is found; in
    # comments, in strings and for what is local it is not.
    text = """
      /// The room of var picture: Int.
      struct Room<Element> where Element: Sendable {
        private let (told, other): (Int, Int)
        var pictures: [Int] { let place = 1; return [place] }
        case lamp(sound: Int), voice
        static func turn<T>(_ folder: T, at place: (words: Int, Int)) -> Int {
          let means = "let ways = \\(of(room: 1))"
          return means.count
        }
        init?(mend value: Int) { for way in [value] { _ = way } }
      }
      """
    assert [name for name in declared_names(text) if wrong_names(name)] == [
        "Room", "told", "pictures", "lamp", "sound", "voice", "turn", "folder", "place", "words",
        "mend"], list(declared_names(text))
    assert not wrong_names("pictureSets")
    assert wrong_names("StampClock") and not wrong_names("mushroom") and not wrong_names("soundness")


def main():
    repo = pathlib.Path(__file__).resolve().parent.parent
    self_test()
    articles.self_test(repo)
    found = articles.all_problems(repo)
    if "--self-test" not in sys.argv:
        found += check(repo, pathlib.Path(sys.argv[1]).resolve())
    for problem in found:
        print(f"check-language: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("check-language: every word is the field's")


if __name__ == "__main__":
    main()
