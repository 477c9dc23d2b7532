// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The order of commands and options in help.
enum HelpLayout {
  /// A group of options with the same purpose.
  struct Group {
    let title: String
    let options: [String]

    init(_ title: String, _ options: String...) {
      (self.title, self.options) = (title, options)
    }
  }

  /// The most used options of each command, at most ten; the key is the command's name in words.
  static let mostUsed: [String: [String]] = [
    "devices": ["watch", "json"],
    "modes": ["min-fps", "size", "fourcc", "probe", "json"],
    "controls": ["json"],
    "record": [
      "output", "mode", "duration", "frames", "codec", "audio", "trigger", "pre", "post",
      "overwrite",
    ],
    "photo": [
      "output", "mode", "burst", "every", "bracket", "trigger", "live", "quality",
      "overwrite",
    ],
    "info": ["timed-metadata", "json"],
    "check": ["expect-fps", "plot", "times-only", "overwrite", "json"],
    "retime": [
      "output", "range", "speed", "copy", "fps", "trim", "preset", "at", "sampling", "overwrite",
    ],
    "edit": [
      "output", "copy", "fps", "sampling", "box", "crf", "jobs", "dry-run", "overwrite",
    ],
    "frames": [
      "at", "range", "step", "output", "csv", "raw", "rotation", "overwrite", "json",
    ],
    "still": [
      "output", "range", "tiles", "columns", "width", "every", "column", "slit", "origin",
      "overwrite",
    ],
    "compare": ["output", "fps", "at", "speed", "overlay", "burn-in", "dry-run", "overwrite"],
    "sync": ["output", "by", "max-offset", "dry-run", "overwrite", "json"],
    "track": [
      "at", "box", "until", "by", "reach", "scale", "capture-fps", "csv", "overlay", "overwrite",
    ],
    "measure": ["at", "points", "scale", "point-error", "csv", "dry-run", "overwrite", "json"],
    "recover": ["output", "overwrite", "json"],
    "play": [
      "speed", "range", "loop", "pitch", "audio", "beside", "terminal", "script", "output", "fps",
    ],
    "preview": [
      "mode", "duration", "delay", "speed", "mirror", "gravity", "peaking", "zebra", "audio",
      "terminal",
    ],
    "scan": [
      "types", "range", "duration", "agreement", "mode", "overlay", "face-model", "overwrite",
      "progress", "json",
    ],
    "doctor": ["directory", "json"],
    "bench capture": ["mode", "duration", "codec", "find-limit", "folder", "json"],
    "bench writer": ["mode", "duration", "runs", "baseline", "folder", "json"],
    "bench retime": ["speed", "fps", "mode", "duration", "runs", "baseline", "folder", "json"],
    "bench pitch": ["speed", "pitch", "mode", "duration", "runs", "baseline", "folder", "json"],
    "bench diff": ["fail-on", "json"],
  ]

  /// The groups of options for each command that has many options.
  ///
  /// Options in no group are listed as general options.
  static let groups: [String: [Group]] = [
    "record": [
      Group("VIDEO", "mode", "fastest", "codec", "droppable", "preview", "script"),
      Group("AUDIO", "audio", "audio-codec"),
      Group("FILE", "output", "segment", "reconnect", "burst", "faststart"),
      Group("LIMIT", "duration", "frames", "max-size", "min-free", "max-drops"),
      Group(
        "CLIP", "trigger", "pre", "post", "arm-when-full", "repeat", "max-clips", "quiet-period",
        "replay", "exec"),
      Group(
        "METADATA", "title", "tag", "location", "metadata-fd", "metadata", "face-model", "report",
        "frames-csv"),
    ],
    "photo": [
      Group("PHOTO", "output", "mode", "quality", "flash", "live", "tag", "location"),
      Group(
        "SERIES", "burst", "bracket", "every", "duration", "count", "trigger", "quiet-period",
        "repeat"),
    ],
    "retime": [
      Group(
        "SPEED", "trim", "range", "speed", "ramp", "easing", "preset", "at", "width",
        "playback-fps",
        "sidecar"),
      Group(
        "EXPORT", "output", "copy", "fps", "for", "csv", "boundary", "on-error", "video-track",
        "no-time-map"),
    ] + rendering,
    "edit": [
      Group(
        "EXPORT", "output", "copy", "fps", "timecode-fps", "boundary", "on-error", "video-track",
        "no-time-map")
    ] + rendering,
    "frames": [
      Group("FRAME", "at", "range", "step", "on-error", "video-track"),
      Group(
        "OUTPUT", "output", "rotation", "raw", "raw-range", "splice", "meta-fd", "csv", "keep-index"
      ),
      Group("TIME", "clock", "capture-fps"),
    ],
    "still": [
      Group("IMAGE", "output", "range"),
      Group("SHEET AND STROBE", "tiles", "columns", "width", "every"),
      Group("FINISH", "column", "slit", "origin", "reversed"),
      Group("TIME", "clock", "capture-fps"),
    ],
    "track": [
      Group("OBJECT", "at", "box", "until", "by", "reach"),
      Group(
        "MEASUREMENT", "scale", "y-axis", "origin-point", "clock", "capture-fps", "csv", "overlay"),
    ],
    "play": [
      Group(
        "PLAYBACK", "speed", "range", "start", "loop", "sampling", "refresh", "on-error",
        "video-track"),
      Group("AUDIO", "pitch", "audio", "audio-track"),
      Group("COMPARISON", "beside", "origin", "beside-origin"),
      Group("CONTROL", "terminal", "window", "script"),
      Group("MEASURES", "annotations", "scale"),
      Group("TIME", "clock", "capture-fps"),
      Group("EDIT", "output", "fps"),
    ],
    "preview": [
      Group("CAMERA", "mode", "duration", "audio"),
      Group("VIEW", "delay", "speed", "mirror", "gravity", "peaking", "zebra"),
      Group("CONTROL", "terminal", "script"),
    ],
  ]

  /// The options of a rendered export, which `retime` and `edit` share.
  private static let rendering = [
    Group("AUDIO", "pitch", "audio-codec", "audio-track"),
    Group(
      "FRAME", "sampling", "low-confidence", "shutter", "box", "rotation", "deflicker", "burn-in"),
    Group("ENCODER", "codec", "crf", "max-size", "encoder-preset", "profile"),
    Group("BATCH", "jobs", "shard", "join"),
  ]

  private static let verbs: [(title: String, names: [String])] = [
    ("CAMERAS", ["devices", "modes", "controls", "preview"]),
    ("CAPTURE", ["record", "photo", "recover"]),
    ("MOVIES", ["info", "check", "frames", "scan", "play"]),
    ("EDITING", ["retime", "edit"]),
    ("ANALYSIS", ["still", "compare", "sync", "track", "measure"]),
    ("MACHINE", ["doctor", "bench"]),
  ]

  /// Returns the subcommands of a command; those of the root command are in groups.
  static func verbGroups(
    of subcommands: [any ParsableCommand.Type], isRoot: Bool
  ) -> [(title: String, verbs: [any ParsableCommand.Type])] {
    guard isRoot else { return [("VERBS", subcommands)] }
    return verbs.map { title, names in
      (title, names.compactMap { name in subcommands.first { $0._commandName == name } })
    }
  }
}
