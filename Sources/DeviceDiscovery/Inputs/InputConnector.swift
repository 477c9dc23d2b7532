// SPDX-License-Identifier: Apache-2.0

import OvercrankV4L2

/// A socket of a device that pictures come in by: a webcam has one, a television card several.
public struct InputConnector: Hashable, Sendable, Codable, Identifiable {
  /// What the pictures come from.
  public enum Kind: String, Hashable, Sendable, Codable {
    /// An aerial, through a tuner.
    case tuner
    /// A camera, a player, a computer: whatever is behind the socket.
    case camera
    /// A touch pad.
    case touch
    /// None that this program knows.
    case other
  }

  /// What keeps a picture from coming in.
  public enum Problem: String, Hashable, Sendable, Codable {
    case noPower = "no_power"
    case noSignal = "no_signal"
    case noLock = "no_lock"
    case noColor = "no_colour"
    case protected
  }

  /// The number to choose the input by: `/dev/video0?input=3`.
  public let index: Int
  /// The driver's name of it: `HDMI 0`.
  public let name: String
  /// What its pictures come from.
  public let kind: Kind
  /// What the driver says against it; drivers know that of the input in force only.
  public let problems: [Problem]
  /// Whether it is set up by digital timings, as HDMI is.
  public let hasTimings: Bool
  /// Whether it is set up by a television standard.
  public let hasStandards: Bool

  /// The number to choose the input by.
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

/// The inputs of a device, and what is known of the one in force.
public struct InputConnectors: Hashable, Sendable {
  /// All of them, in the driver's order.
  public let all: [InputConnector]
  /// The one that pictures come in by.
  public let current: InputConnector?
  /// The timings it is set to; nil for inputs without.
  public internal(set) var timings: VideoTimings?
  /// The timings of what comes in, whatever it is set to; nil where nothing is detected.
  public internal(set) var detectedTimings: VideoTimings?
  /// Why nothing is detected, for an input that could: one line.
  public internal(set) var detectionProblem: String?
}

extension InputConnectors {
  /// Asks a device for its inputs, and changes nothing; nil where it does not tell them apart.
  init?(of device: borrowing VideoDevice) throws(DeviceError) {
    let all = try device.inputs().map(InputConnector.init)
    guard let index = try device.currentInput(), !all.isEmpty else { return nil }
    self.init(all: all, current: all.first { $0.index == Int(index) })
    guard current?.hasTimings == true else { return }
    timings = try device.timings().map(VideoTimings.init)
    do throws(DeviceError) {
      detectedTimings = VideoTimings(try device.detectedTimings())
    } catch {
      guard error.reason != .unplugged else { throw error }
      detectionProblem = error.description
    }
  }

  private init(all: [InputConnector], current: InputConnector?) {
    self.all = all
    self.current = current
  }

  /// The size of the picture that comes in, by what the input is set to.
  ///
  /// - Throws: `DeviceError` when the device is gone.
  func incomingSignal(of device: borrowing VideoDevice) throws(DeviceError) -> IncomingSignal? {
    if let timings, timings.width > 0, timings.height > 0 {
      return IncomingSignal(size: ModeRequest.Size(width: timings.width, height: timings.height))
    }
    guard current?.hasStandards == true, let lines = try device.televisionLines() else {
      return nil
    }
    return IncomingSignal(
      size: ModeRequest.Size(width: 720, height: lines == .lines525 ? 480 : 576))
  }
}
