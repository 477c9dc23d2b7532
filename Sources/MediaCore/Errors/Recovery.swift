// SPDX-License-Identifier: Apache-2.0

/// A remedy for an error: an instruction for people, and the steps that a program can offer.
///
/// A program presents each step in its own way: a command-line tool names a command and its
/// options, a graphical program shows a button. A string literal makes an instruction without
/// steps.
public struct Recovery: Hashable, Sendable, Codable, CustomStringConvertible {
  /// A step that a program can take or offer.
  public enum Step: Hashable, Sendable, Codable {
    /// List the capture devices.
    case listDevices
    /// List the inputs, formats and frame rates of a device.
    case listFormats(device: String)
    /// List the controls of a device, with their ranges and values.
    case listControls(device: String)
    /// Show the contents of a file.
    case inspect(file: String)
    /// Recover an interrupted recording.
    case recover(file: String)
    /// Diagnose why a device does not deliver all frames; nil checks the whole machine.
    case diagnose(device: String?)
    /// Change a setting of the failed operation.
    case change(Setting)
    /// Install an optional component.
    case install(Component)
  }

  /// A component that is loaded at run time, because no distribution packages it.
  public enum Component: String, Hashable, Sendable, CaseIterable, Codable {
    /// The library that reads machine-readable codes.
    case codeReader
    /// The library that finds faces.
    case faceDetector

    /// The component in words, such as `code reader`.
    public var name: String {
      switch self {
      case .codeReader: "code reader"
      case .faceDetector: "face detector"
      }
    }
  }

  /// A setting of a capture, a recording or an export, named after the property that sets it.
  public enum Setting: String, Hashable, Sendable, CaseIterable, Codable {
    /// The capture format and its frame rate.
    case format
    /// The codec for video.
    case codec
    /// The audio input device.
    case audioDevice
    /// The codec for audio.
    case audioCodec
    /// The constant frame rate of an export.
    case outputFrameRate
    /// The pitch algorithm for audio at speeds other than 1.
    case pitchAlgorithm
    /// The policy for audio speeds that the pitch algorithm does not support.
    case otherAudioSpeeds
    /// The frame sampling method for a constant rate.
    case sampling
    /// The choice between rotating the frames of an export and storing the rotation as metadata.
    case rotation
    /// The permission to replace an existing file.
    case overwrites
    /// The size at which a recording ends, or the greatest size of an export.
    case maximumFileSize
    /// The free space at which a recording ends.
    case minimumFreeSpace
    /// The choice to keep a recording in memory until it ends, and to write it then.
    case burst
    /// The frame rate of the timecodes in a project.
    case timeCodeRate
    /// The kind of event by which recordings are compared.
    case comparedEvent
    /// The policy for frames that cannot be decoded.
    case undecodableFrames
    /// The clock in which the times of a movie are measured.
    case captureClock
  }

  /// The instruction: one line, imperative, without a final period.
  public let description: String
  /// Steps that carry out the instruction, in order.
  public let steps: [Step]

  /// Makes a recovery.
  public init(_ description: String, _ steps: Step...) {
    (self.description, self.steps) = (description, steps)
  }
}

extension Recovery: ExpressibleByStringInterpolation {
  /// An instruction without steps.
  public init(stringLiteral text: String) { self.init(text) }
}
