// SPDX-License-Identifier: Apache-2.0

/// A way out of an error: an instruction for people, and the steps that a program can offer for it.
///
/// A program words the steps in its own terms: a command names its verbs and options, a window has
/// buttons. A string literal is an instruction without steps.
public struct Recovery: Hashable, Sendable, Codable, CustomStringConvertible {
  /// A step that a program can take or offer.
  public enum Step: Hashable, Sendable, Codable {
    /// List the capture devices.
    case listDevices
    /// List the inputs, formats and frame rates of a device.
    case listFormats(device: String)
    /// List the controls of a device, with their ranges and values.
    case listControls(device: String)
    /// Look at what is in a file.
    case inspect(file: String)
    /// Recover a recording that was cut off.
    case recover(file: String)
    /// Change a setting.
    case change(Setting)
  }

  /// A setting of a capture, a recording or an export, by the name of its property.
  public enum Setting: String, Hashable, Sendable, CaseIterable, Codable {
    /// The capture format and its frame rate.
    case format
    /// How images are stored.
    case codec
    /// The microphone.
    case audioDevice
    /// How audio is stored.
    case audioCodec
    /// A constant frame rate for an export.
    case outputFrameRate
    /// The algorithm for audio at another speed.
    case pitchAlgorithm
    /// How frames are sampled for a constant rate.
    case sampling
    /// Whether images are rotated upright.
    case rotation
    /// Whether an existing file may be replaced.
    case overwrites
    /// The size at which a recording ends.
    case maximumFileSize
    /// The free space at which a recording ends.
    case minimumFreeSpace
    /// Whether a recording goes to memory first.
    case burst
    /// The frame rate in which a project counts.
    case timeCodeRate
  }

  /// The instruction: one line, imperative, without a final period.
  public let description: String
  /// Steps that help to follow it, in order.
  public let steps: [Step]

  /// Makes a recovery.
  public init(_ description: String, _ steps: Step...) {
    self.description = description
    self.steps = steps
  }
}

extension Recovery: ExpressibleByStringInterpolation {
  /// An instruction without steps.
  public init(stringLiteral text: String) { self.init(text) }
}
