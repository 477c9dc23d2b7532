// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import Overcrank

/// Options of every verb that measures time in a movie.
struct ClockOptions: ParsableArguments, Sendable {
  @Option(help: "Measure in the time of the capture, or in that of the file: capture or file.")
  var clock = CaptureClock.Choice.capture

  @Option(
    help: "The capture rate, if the file does not state it.",
    transform: FrameRate.init(parsing:))
  var captureFps: FrameRate?

  func validate() throws {
    if clock == .file, captureFps != nil {
      throw ValidationError("--clock file and --capture-fps exclude each other")
    }
  }

  /// Returns the capture times of a movie, and prints a note if they rest on an assumption.
  ///
  /// In a movie that shows several others side by side, the times are those of the one at a pixel.
  func clock(of asset: Asset, x: Int? = nil, y: Int? = nil) throws(MediaError) -> CaptureClock {
    let clock = try asset.captureClock(self.clock, captureFrameRate: captureFps, x: x, y: y)
    Self.note(clock, asset)
    return clock
  }

  /// Returns the capture times of a movie for a verb that needs none; nil if they are unknown.
  ///
  /// A note says why.
  func knownClock(of asset: Asset) -> CaptureClock? {
    do throws(MediaError) {
      return try asset.captureClock(clock, captureFrameRate: captureFps)
    } catch {
      if asset.videoTrack != nil {
        Output.note("\(error.message): its capture times are unknown (--capture-fps, --clock file)")
      }
      return nil
    }
  }

  private static func note(_ clock: CaptureClock, _ asset: Asset) {
    switch clock.assumption {
    case .fileTimesAreReal:
      Output.note(
        "\(asset.path) states no capture rate: its own times are taken for real (--capture-fps)")
    case .originalTimesAreReal:
      Output.note(
        "\(asset.path) was made from a file that states no capture rate: the times of that file are "
          + "taken for real (--capture-fps)")
    case nil: break
    }
  }
}

extension CaptureClock.Choice: ExpressibleByArgument {}

/// The keys of a document that state in which time it was measured.
struct MeasuredTime: Encodable {
  let clock: CaptureClock.Choice
  let timeSource: CaptureClock.Source
  /// Nil where it varies.
  let timeScale: Rational?
  let timeAssumption: CaptureClock.Assumption?

  /// The time of frames of a movie; nil for all frames.
  init(_ options: ClockOptions, _ clock: CaptureClock, frames: Range<Int>? = nil) {
    self.clock = options.clock
    timeSource = clock.source
    timeScale = frames.map { clock.timeScale(in: $0) } ?? clock.timeScale
    timeAssumption = clock.assumption
  }
}

/// Options of the verbs that measure in movies and can write a file.
struct MeasuringOptions: ParsableArguments, Sendable {
  @Flag(help: "Measure, and write nothing.")
  var dryRun = false

  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
}
