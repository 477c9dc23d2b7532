// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2

/// A video input of a device.
///
/// A webcam has one, a television card several.
public struct InputConnector: Hashable, Sendable, Codable, Identifiable {
  /// The type of source at the input.
  public enum Kind: String, Hashable, Sendable, Codable {
    /// An antenna through a tuner.
    case tuner
    /// A camera or another video source, such as a player or a computer.
    case camera
    /// A touch sensor.
    case touch
    /// A type unknown to this library.
    case other
  }

  /// A condition that prevents reception.
  public enum Problem: String, Hashable, Sendable, Codable {
    case noPower = "no_power"
    case noSignal = "no_signal"
    case noLock = "no_lock"
    case noColor = "no_colour"
    case protected
  }

  /// The number that selects the input: `/dev/video0?input=3`.
  public let index: Int
  /// The driver's name of the input, such as `HDMI 0`.
  public let name: String
  /// The type of the source at the input.
  public let kind: Kind
  /// The conditions that prevent reception, as the driver reports them.
  ///
  /// Most drivers report them only for the current input.
  public let problems: [Problem]
  /// Whether the input uses digital timings, as HDMI does.
  public let hasTimings: Bool
  /// Whether the input uses a television standard.
  public let hasStandards: Bool

  /// The number that selects the input.
  public var id: Int { index }

  init(_ input: DriverInput) {
    index = Int(input.index)
    name = input.name
    kind =
      switch input.kind {
      case .tuner: .tuner
      case .camera: .camera
      case .touch: .touch
      case .other: .other
      }
    let problems: [(Bool, Problem)] = [
      (input.hasNoPower, .noPower), (input.hasNoSignal, .noSignal), (input.hasNoLock, .noLock),
      (input.hasNoColor, .noColor), (input.isProtected, .protected),
    ]
    self.problems = problems.filter(\.0).map(\.1)
    hasTimings = input.hasTimings
    hasStandards = input.hasStandards
  }
}

/// The inputs of a device, with details of the current one.
public struct InputConnectors: Hashable, Sendable {
  /// All inputs, in the driver's order.
  public let all: [InputConnector]
  /// The device's current input.
  public let current: InputConnector?
  /// The current digital timings, or nil for an input without timings.
  public internal(set) var timings: VideoTimings?
  /// The timings of the detected signal, or nil without a signal.
  ///
  /// They may differ from the current timings.
  public internal(set) var detectedTimings: VideoTimings?
  /// The reason why no timings could be detected, as one line of text.
  ///
  /// Nil if timings were detected, or if the input cannot detect timings.
  public internal(set) var detectionProblem: String?
}

extension InputConnectors {
  /// Queries a device for its inputs without changing them, or returns nil if it has no input
  /// selection.
  init?(of device: borrowing VideoDevice) throws(CallFailure) {
    let all = try device.inputs().map(InputConnector.init)
    guard let index = try device.currentInput(), !all.isEmpty else { return nil }
    self.init(all: all, current: all.first { $0.index == Int(index) })
    guard current?.hasTimings == true else { return }
    timings = try device.timings().map(VideoTimings.init)
    do throws(CallFailure) {
      detectedTimings = VideoTimings(try device.detectedTimings())
    } catch {
      guard error.kind != .unplugged else { throw error }
      detectionProblem = error.description
    }
  }

  private init(all: [InputConnector], current: InputConnector?) {
    (self.all, self.current) = (all, current)
  }

  /// The size of the incoming signal, from the current timings or television standard.
  ///
  /// - Throws: `CallFailure` if the device is lost.
  func incomingSignal(of device: borrowing VideoDevice) throws(CallFailure) -> IncomingSignal? {
    if let timings, timings.width > 0, timings.height > 0 {
      return IncomingSignal(size: VideoSize(width: timings.width, height: timings.height))
    }
    guard current?.hasStandards == true, let lines = try device.televisionLines() else {
      return nil
    }
    return IncomingSignal(
      size: VideoSize(width: 720, height: lines == .lines525 ? 480 : 576))
  }
}
