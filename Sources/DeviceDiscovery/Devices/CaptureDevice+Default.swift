// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension CaptureDevice {
  /// Finds the devices of some types, those of the first type first.
  ///
  /// The counterpart of `AVCaptureDevice.DiscoverySession`.
  ///
  /// - Parameters:
  ///   - types: The types, in the order of preference; those that are not named are left out.
  ///   - mediaType: What the devices are to give; nil for anything.
  ///   - position: Which way they are to look; unspecified for any.
  /// - Returns: The devices; those of one type in the order of ``discover()``.
  public static func discover(
    _ types: [DeviceType], for mediaType: MediaType? = nil, at position: Position = .unspecified
  ) -> [CaptureDevice] {
    let devices = discover()
    var seen: Set<DeviceType> = []
    return types.filter { seen.insert($0).inserted }.flatMap { type in
      devices.filter { device in
        device.deviceType == type
          && (mediaType.map(device.media.contains) ?? true)
          && (position == .unspecified || device.position == position)
      }
    }
  }

  /// The camera or microphone to take unless another is asked for; nil where there is none.
  ///
  /// What is plugged in comes before what is built in, as it was plugged in for a reason, then
  /// devices come in the order of ``discover()``. Those that cannot be opened come after those
  /// that can, and what plays only what another program hands it last. Nothing stands in for a
  /// camera that is not there: the synthetic one is taken only by its name.
  public static func defaultDevice(for mediaType: MediaType) -> CaptureDevice? {
    best(among: devices(for: mediaType))
  }

  /// What the user's choice leaves to this program: the camera that the user prefers, where it
  /// can be opened, or else the best that there is.
  ///
  /// The counterpart of `AVCaptureDevice.systemPreferredCamera`; nil where there is no camera.
  public static var systemPreferredCamera: CaptureDevice? {
    let cameras = discover().filter { $0.media.contains(.video) }
    return PreferredCameras.current.latest(among: cameras.filter { $0.problem == nil })
      ?? best(among: cameras.filter { $0.kind == .v4l2 })
  }

  /// Whether cameras, or microphones, may be opened.
  public enum AuthorizationStatus: String, Hashable, Sendable {
    /// There is none, so that there is nothing to be allowed or forbidden.
    case notDetermined = "not_determined"
    /// There are some, and this user may open none of them; their nodes belong to a group.
    case denied
    /// There are some that this user may open, even if another program has them now.
    case authorized
  }

  /// Whether this user may open cameras, or microphones; tells want of permission from absence.
  ///
  /// The warning of ``discover()`` names the group that is missing. The synthetic camera needs no
  /// permission, and does not count.
  public static func authorizationStatus(for mediaType: MediaType) -> AuthorizationStatus {
    let devices = devices(for: mediaType)
    if devices.isEmpty { return .notDetermined }
    return devices.allSatisfy(\.isForbidden) ? .denied : .authorized
  }

  /// The devices of the machine, without the program's own.
  private static func devices(for mediaType: MediaType) -> [CaptureDevice] {
    switch mediaType {
    case .audio: MicrophoneList().devices
    case .video: discover().filter { $0.kind == .v4l2 }
    }
  }

  /// The best of some devices; of equals the first.
  static func best(among devices: [CaptureDevice]) -> CaptureDevice? {
    func rank(_ device: CaptureDevice) -> (Int, Int) {
      (
        device.deviceType == .virtual ? 2 : device.problem == nil ? 0 : 1,
        device.deviceType == .external ? 0 : 1
      )
    }
    return devices.min { rank($0) < rank($1) }
  }
}
