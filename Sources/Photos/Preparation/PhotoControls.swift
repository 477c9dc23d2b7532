// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

/// Sets the exposure and the light of a camera for photos, and restores them.
final class PhotoControls: Sendable {
  /// The exposure that the camera had before a bracket.
  private struct Exposure {
    let mode: ExposureMode?
    let setting: ExposureSetting
    let bias: Int64?
  }

  private let camera: CameraControls
  private let before = Mutex<Exposure?>(nil)
  /// The state of the light before it was switched on; nil if it was not switched on.
  private let lightBefore = Mutex<CameraControls.LightState?>(nil)

  init(_ device: CaptureDevice) throws(MediaError) { camera = try CameraControls(device: device) }

  // MARK: - Exposure

  /// Throws an error unless the camera supports all exposures of a bracket.
  func check(_ exposures: [BracketedExposure]) throws(MediaError) {
    for exposure in exposures {
      switch exposure {
      case .automatic:
        guard try !camera.exposureTargetBiases.isEmpty else {
          throw Self.missing("an exposure compensation")
        }
      case .manual:
        guard camera.isExposureModeSupported(.custom) else { throw Self.missing("manual exposure") }
      }
    }
  }

  /// Sets the camera's exposure for a photo of a bracket.
  func set(_ exposure: BracketedExposure) throws(MediaError) {
    if before.withLock({ $0 == nil }) {
      let found = Exposure(
        mode: try camera.exposureMode, setting: try camera.exposure,
        bias: try camera.exposureTargetBias)
      before.withLock { $0 = found }
    }
    switch exposure {
    case .automatic(let bias):
      if camera.isExposureModeSupported(.continuousAutoExposure) {
        try camera.setExposureMode(.continuousAutoExposure)
      }
      try camera.setExposureTargetBias(bias)
    case .manual(let duration, let gain):
      try camera.setExposureModeCustom(
        duration: duration, gain: gain, rounding: .halfAwayFromZero)
    }
  }

  /// Restores the exposure that the camera had before the bracket.
  ///
  /// The exposure mode is restored even if restoring the exposure compensation fails.
  func restoreExposure() throws(MediaError) {
    guard let exposure = before.withLock({ $0.take() }) else { return }
    let biased = Result { () throws(MediaError) in
      if let bias = exposure.bias { try camera.setExposureTargetBias(bias) }
    }
    try restoreMode(of: exposure)
    try biased.get()
  }

  private func restoreMode(of exposure: Exposure) throws(MediaError) {
    switch exposure.mode {
    case .custom, .locked:
      try camera.setExposureModeCustom(
        duration: exposure.setting.duration, gain: exposure.setting.gain,
        rounding: .halfAwayFromZero)
    case .continuousAutoExposure, .autoExpose:
      try camera.setExposureMode(.continuousAutoExposure)
    case nil: break
    }
  }

  // MARK: - Light

  /// Whether the camera has a torch or a flash.
  var hasLight: Bool { camera.hasTorch || camera.hasFlash }

  static func missing(_ what: String) -> MediaError {
    MediaError(
      .controlNotSupported, "the camera has no \(what)",
      recovery: "see the camera's controls")
  }

  /// Switches the light on.
  ///
  /// The torch is preferred to the flash, because it lights all frames of a capture equally.
  func light() throws(MediaError) {
    let state = try camera.lightState
    lightBefore.withLock { $0 = state }
    guard camera.hasTorch else { return try camera.fireFlash() }
    try camera.setTorchModeOn(level: 1)
  }

  /// Restores the state that the camera's light had before ``light()``.
  func restoreLight() throws(MediaError) {
    guard let state = lightBefore.withLock({ $0.take() }) else { return }
    try camera.restoreLight(state)
  }
}
