// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore

extension MediaError.Code {
  /// The device streams but delivers no frames.
  public static let noFrames = Self(rawValue: "no_frames")
  /// The output is not connected to a camera, or its camera has stopped.
  public static let notConnected = Self(rawValue: "not_connected")
  /// The output, or the input of an asset writer, cannot accept more data now.
  public static let notReady = Self(rawValue: "not_ready")
  /// The inputs and outputs do not fit together.
  public static let badConfiguration = Self(rawValue: "bad_configuration")
}

extension CallStage {
  /// Opening or streaming a microphone, except for setting its format.
  static let capturingAudio = CallStage(
    [
      .noPermission: Row(.noPermission), .busy: Row(.deviceBusy), .unplugged: Row(.deviceLost),
      .notFound: Row(.deviceLost),
    ], other: Row(.deviceFailed))
}
