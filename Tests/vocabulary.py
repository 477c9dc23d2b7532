# SPDX-License-Identifier: Apache-2.0
"""The words of this repository: words to avoid, in names and in prose, and what to write instead."""
import re

# Words in small letters.
WORDS = {
    "room": "module, or space", "rooms": "modules", "folder": "directory",
    "folders": "directories", "asked": "requested", "proof": "verification",
    "proves": "verifies",
    "place": "index, offset or position", "places": "indices, offsets or positions",
    "placed": "aligned", "sound": "audio", "sounds": "audio", "picture": "image or frame",
    "pictures": "images or frames", "words": "description", "tell": "report", "tells": "reports",
    "told": "reported", "books": "ledger", "mend": "repair", "mends": "repairs",
    "mended": "repaired", "film": "movie or clip", "films": "movies or clips",
    "lamp": "torch or LED", "lamps": "LEDs", "turn": "rotation", "turned": "rotated",
    "turns": "rotations", "patience": "timeout", "knee": "breakpoint", "knees": "breakpoints",
    "way": "method or policy", "ways": "methods or policies", "means": "method or policy",
    "lend": "buffer", "lent": "buffer", "loan": "buffer", "loans": "buffers",
    "voice": "renderer", "voices": "renderers", "likeness": "correlation", "conveyor": "queue",
    "painter": "renderer", "wholeness": "integrity", "eased": "easeInOut",
    "relocated": "replacingSourcePaths", "colour": "color", "colours": "colors", "grey": "gray",
    "nobody": "no one, or the name of who does not",
}
# Words that are wrong in a name but plain English in a sentence.
PLAIN_ENGLISH = {
    "asked", "proof", "proves", "place", "places", "placed", "words", "turn", "turned", "turns",
    "way", "ways", "means", "voice", "voices", "painter", "eased", "relocated",
}
PROSE_WORDS = {word: better for word, better in WORDS.items() if word not in PLAIN_ENGLISH}
# Phrases of documents.
PHRASES = {
    "beside": "next to, with, or compared with", "goes on": "continues", "go on": "continue",
    "in force": "current, or active", "that of": "the noun again",
    "what became of": "the result of", "let go": "release", "lets go": "releases",
}
# Uses that are right all the same, and why.
ALLOWED_NAMES = {
    "pictureSets": "H.264 calls them picture parameter sets",
    "V4L2_PIX_FMT_GREY": "the header of the kernel spells it so",
}
ALLOWED_USES = {
    r"sound (?:cards?|servers?)": "ALSA and PulseAudio call them so",
    r"sounds? (?:alike|good|smoother)": "a verb",
    r"(?:IDR|access) pictures?|picture types?": "H.264 and MPEG call coded frames so",
    r"(?:the|flicker of) lamps": "light sources of a room, not of a camera",
    r"the user nobody|reuid=nobody": "the account of Unix",
    r"bent knees": "joints of an athlete",
    r"goes on or off": "a light that is switched",
    r"(?:than|from|to|equals|exceeds) that of": "compares one property of two things",
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
    "Outlet": "Writer", "MovieHead": "MovieIndex", "MovieBytes": "RandomAccessFile",
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
# "Nobody", another such opening, is among the words.
OPENING = re.compile(
    r"(?:^[ \t]*(?:[-*] )?|[.!?:]\s+)((?:What|Who|Whoever|Where|Of)\s[^.!?]*)(?=[.!]|\Z)", re.M)
NEGATION = re.compile(r"\b(?:(?:is|are) no (?!\w+er\b)\w+|[Tt]here (?:is|are)\b)")
# A line may end within a phrase.
ALLOWED = re.compile("|".join(ALLOWED_USES).replace(" ", r"\s+"), re.I)
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b".replace(" ", r"\s+"), re.I)


def words(name):
    """The words of a name, in small letters: `isBeyondSource` has is, beyond and source."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def name_problems(name, table=WORDS):
    """The errors of a name."""
    if name in ALLOWED_NAMES:
        return []
    if name in NAMES:
        return [f"write {NAMES[name]}"]
    return [f"{word}: write {table[word]}" for word in words(name) if word in table]


def word_problems(prose):
    """Words to avoid in a text, each with its offset."""
    for match in re.finditer(r"[A-Za-z]+", ALLOWED.sub(blank, prose)):
        # All capitals are constants, such as the pixel format GREY.
        if match[0].lower() in PROSE_WORDS and not match[0].isupper():
            yield match.start(), f"“{match[0]}”: write {PROSE_WORDS[match[0].lower()]}"


def phrase_problems(prose):
    """Phrases to avoid in a document, each with its offset."""
    for match in PHRASE.finditer(ALLOWED.sub(blank, prose)):
        phrase = " ".join(match[0].split())
        yield match.start(), f"“{phrase}”: write {PHRASES[phrase.lower()]}"


def opening_problems(prose):
    """Sentences that open with a relative clause, each with its offset."""
    for match in OPENING.finditer(prose):
        sentence = " ".join(match[1].split())
        yield match.start(1), f"the subject comes first, no relative clause: {sentence}"


def message_problems(text):
    """Errors of a message or of a help text."""
    return [f"“{found}”: write “is not a”, or name what failed" for found in NEGATION.findall(text)]


def blank(match):
    """Spaces in place of a match, which keep the offsets and lines of a text."""
    return re.sub(r"[^\n]", " ", match[0])
