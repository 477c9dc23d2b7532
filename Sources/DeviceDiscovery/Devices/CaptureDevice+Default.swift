// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension CaptureDevice {
  /// Finds the devices of given types, in the order of the types.
  ///
  /// Corresponds to `AVCaptureDevice.DiscoverySession`. The call opens device nodes and may block.
  ///
  /// - Parameters:
  ///   - types: The types in order of preference. Devices of other types are left out.
  ///   - mediaType: The media type that the devices must have. Nil accepts any.
  ///   - position: The required position of a camera. `.unspecified` accepts any.
  /// - Returns: The devices, ordered by type. Devices of one type are in the order of
  ///   ``discover()``.
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

  /// The default camera or microphone, or nil if the machine has none.
  ///
  /// Devices that can be opened are preferred to those that cannot, and then external devices to
  /// built-in ones. Among the remaining devices, the first in ``discover()`` is chosen. A virtual
  /// device is chosen only if there is no other. The synthetic camera is never the default.
  public static func defaultDevice(for mediaType: MediaType) -> CaptureDevice? {
    best(among: devices(for: mediaType))
  }

  /// The user's preferred camera or, if none can be opened, the default camera.
  ///
  /// Corresponds to `AVCaptureDevice.systemPreferredCamera`. Nil if the machine has no camera.
  public static var systemPreferredCamera: CaptureDevice? {
    let cameras = discover().filter { $0.media.contains(.video) }
    return PreferredCameras.current.latest(among: cameras.filter { $0.problem == nil })
      ?? best(among: cameras.filter { $0.kind == .v4l2 })
  }

  /// The cameras or microphones of the machine, without the synthetic camera.
  static func devices(for mediaType: MediaType) -> [CaptureDevice] {
    switch mediaType {
    case .audio: MicrophoneList().devices
    case .video: discover().filter { $0.kind == .v4l2 }
    }
  }

  /// The device in a list that is chosen as the default, or nil if the list is empty.
  ///
  /// Devices that can be opened come first, then those that cannot, then virtual devices. Within
  /// each group, external devices come before built-in ones. Among equals, the first in the list is
  /// chosen.
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
