// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore
import OvercrankRaster

/// The description of a synthetic camera: `synthetic:640x480@240?drop=5%&seed=7`.
///
/// This value only describes the camera. The capture module draws the frames and delivers them at
/// the frame rate.
package struct SyntheticCamera: Hashable, Sendable {
  /// The size, rate and pixel format in the name.
  ///
  /// A size, rate or pixel format that the name lacks comes from the selected mode.
  package let fixed: ModeRequest?
  /// The fraction of frames that the camera drops on purpose, from 0 to 1.
  package let dropShare: Rational
  /// The seed that selects the dropped frames.
  ///
  /// The same seed drops the same frames.
  package let seed: UInt64
  /// The path of a file that counts the delivered frames while the camera runs, for tests.
  ///
  /// The count is a 64-bit integer in native byte order.
  package let counterPath: String?
  /// Whether frames are delivered in real time or as fast as they are consumed.
  package let pace: Pace
  /// The scene in front of the camera.
  package let scene: SyntheticScene

  /// The supported pixel formats, the preferred one first.
  package static let fourccs: [FourCC] = [.mjpg, .yuyv, .gray]
  private static let widths = 128...4096
  private static let heights = 96...2304
  private static let rates = Rational(1)...Rational(2000)
  private static let limits: Recovery =
    "it draws 128x96 to 4096x2304, both even, at 1 to 2000 frames per second, as MJPG, YUYV or GREY"

  /// Creates a camera without a fixed mode and without faults.
  package init() {
    fixed = nil
    dropShare = .zero
    seed = 0
    counterPath = nil
    pace = .realTime
    scene = .ball(BouncingBall())
  }

  /// Parses a device name, or returns nil for a name of another kind.
  ///
  /// - Throws: `MediaError` with `.badName` for an unsupported mode or an unknown option.
  init?(parsing name: String) throws(MediaError) {
    guard let parts = try DeviceSpecifier(name, kind: "synthetic") else { return nil }
    if parts.subject.isEmpty {
      fixed = nil
    } else {
      let request: ModeRequest
      do throws(MediaError) {
        request = try ModeRequest(parsing: parts.subject)
      } catch {
        throw parts.failure(error.message, recovery: error.recovery)
      }
      guard Self.canBe(request) else {
        throw parts.failure(
          "the synthetic camera does not support \(request)", recovery: Self.limits)
      }
      fixed = request
    }
    var dropShare = Rational.zero
    var seed: UInt64 = 0
    var counterPath: String?
    var pace = Pace.realTime
    var scene = SyntheticScene.Options(of: parts)
    for option in parts.options {
      switch option.key {
      case "drop":
        guard let share = Self.share(option.value) else {
          throw parts.failure(
            "drop=\(option.value) is not a share of the frames",
            recovery: "write 0% to 100%: drop=5%")
        }
        dropShare = share
      case "seed":
        guard option.value.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains),
          let number = UInt64(option.value)
        else {
          throw parts.failure(
            "seed=\(option.value) is not a whole number of 64 bits", recovery: "write seed=7")
        }
        seed = number
      case "counter":
        guard !option.value.isEmpty else {
          throw parts.failure("counter= is empty", recovery: "write counter=/dev/shm/frames")
        }
        counterPath = option.value
      case "pace":
        guard let value = Pace(option: option.value) else {
          throw parts.failure("pace=\(option.value) is unknown", recovery: "write pace=max")
        }
        pace = value
      case "scene": try scene.setScene(option.value)
      case "height": try scene.setHeight(option.value)
      case "period": try scene.setPeriod(option.value)
      default:
        throw parts.failure(
          "the synthetic camera has no option \"\(option.key)\"",
          recovery: """
            it has drop=5%, seed=7, counter=/dev/shm/frames, pace=max, scene=pattern, height=0.8 \
            and period=0.5
            """)
      }
    }
    (self.dropShare, self.seed, self.counterPath, self.pace) = (dropShare, seed, counterPath, pace)
    self.scene = try scene.scene()
  }

  /// The listed modes: three sizes, four rates and three pixel formats, each replaced by the one in
  /// the device name if the name contains one.
  package var formats: [CaptureFormat] {
    formats(size: fixed?.size, rate: fixed?.rate, fourcc: fixed?.fourcc)
  }

  /// The modes that match a request.
  ///
  /// The modes may have sizes and rates that ``formats`` does not list.
  ///
  /// - Throws: `MediaError` with `.noMatchingFormat` for an unsupported mode.
  func formats(for request: ModeRequest) throws(MediaError) -> [CaptureFormat] {
    guard Self.canBe(request) else {
      throw MediaError(
        .noMatchingFormat, "the synthetic camera has no mode \(request)", recovery: Self.limits)
    }
    return formats(
      size: fixed?.size ?? request.size, rate: fixed?.rate ?? request.rate,
      fourcc: fixed?.fourcc)
  }

  private func formats(
    size: VideoSize?, rate: FrameRate?, fourcc: String?
  ) -> [CaptureFormat] {
    let sizes =
      size.map { [($0.width, $0.height)] } ?? [(640, 480), (1280, 720), (1920, 1080)]
    let rates = rate.map { [$0] } ?? [30, 60, 120, 240].map { FrameRate($0) }
    var formats: [CaptureFormat] = []
    for code in Self.fourccs where fourcc.map(code.isNamed) ?? true {
      for (width, height) in sizes {
        for rate in rates {
          formats.append(
            CaptureFormat(
              fourcc: code, width: width, height: height, isCompressed: code == .mjpg,
              frameRateRange: FrameRateRange(rate), driverOrder: formats.count))
        }
      }
    }
    return formats
  }

  private static func canBe(_ request: ModeRequest) -> Bool {
    if let size = request.size {
      guard widths.contains(size.width), heights.contains(size.height),
        size.width.isMultiple(of: 2), size.height.isMultiple(of: 2)
      else { return false }
    }
    if let rate = request.rate, !rates.contains(rate.framesPerSecond) { return false }
    return request.fourcc.map { name in fourccs.contains { $0.isNamed(name) } } ?? true
  }

  /// Parses a fraction from 0 to 1: `5%`, `0.5%`, `1/20`, `0.05`.
  private static func share(_ text: String) -> Rational? {
    let isPercent = text.hasSuffix("%")
    guard let number = try? Rational(parsing: isPercent ? String(text.dropLast()) : text) else {
      return nil
    }
    let share = isPercent ? number / 100 : number
    // If the text has too many digits, the rational is invalid. An invalid rational compares as
    // greater than 1.
    return share >= 0 && share <= 1 ? share : nil
  }
}
