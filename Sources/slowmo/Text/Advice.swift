// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Adds the matching commands and options to a library's recovery suggestion.
enum Advice {
  /// Returns the suggestion, followed by the commands and options that carry it out.
  ///
  /// - Parameters:
  ///   - recovery: The suggestion.
  ///   - verb: The command that failed; nil if it has all options that the suggestion may name.
  /// - Returns: The suggestion, in one line.
  static func text(_ recovery: Recovery, for verb: String? = nil) -> String {
    guard !recovery.steps.isEmpty else { return recovery.description }
    let steps = recovery.steps.map { describe($0, for: verb) }
    return "\(recovery.description) (\(steps.joined(separator: ", ")))"
  }

  private static func describe(_ step: Recovery.Step, for verb: String?) -> String {
    switch step {
    // A command without `--on-error` can only read the movie after an export with `--on-error`.
    case .change(.undecodableFrames) where verb.map { !Slowmo.takes("on-error", in: $0) } ?? false:
      "slowmo retime \(option(.undecodableFrames))"
    case .listDevices: "slowmo devices"
    case .listFormats(let device): "slowmo modes \(device)"
    case .listControls(let device): "slowmo controls \(device)"
    case .inspect(let file): "slowmo info \(file)"
    case .recover(let file): "slowmo recover \(file)"
    case .diagnose(let device): "slowmo doctor" + (device.map { " \($0)" } ?? "")
    case .change(let setting): option(setting)
    case .install(let component): installation(component)
    }
  }

  /// Returns the commands that install a component: from a package, or by a script of the source
  /// tree.
  private static func installation(_ component: Recovery.Component) -> String {
    let script =
      switch component {
      case .codeReader: "Samples/install-zxing.sh"
      case .faceDetector: "Samples/install-faces.sh"
      }
    return "sudo apt install ./overcrank-full_*_amd64.deb, or in a checkout \(script)"
  }

  /// Returns the option that changes a setting.
  static func option(_ setting: Recovery.Setting) -> String {
    switch setting {
    case .format: "--mode"
    case .codec: "--codec"
    case .audioDevice: "--audio"
    case .audioCodec: "--audio-codec"
    case .outputFrameRate: "--fps"
    case .pitchAlgorithm: "--pitch"
    case .otherAudioSpeeds: "--pitch \(PitchOption.snapping)"
    case .sampling: "--sampling"
    case .rotation: "--rotation"
    case .overwrites: "--overwrite"
    case .maximumFileSize: "--max-size"
    case .minimumFreeSpace: "--min-free"
    case .burst: "--burst"
    case .timeCodeRate: "--timecode-fps"
    case .comparedEvent: "--by flash"
    case .undecodableFrames: "--on-error skip"
    case .captureClock: "--capture-fps, --clock file"
    }
  }
}
