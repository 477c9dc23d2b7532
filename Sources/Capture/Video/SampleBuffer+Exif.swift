// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCameraControls
package import OvercrankMediaCore

extension SampleBuffer {
  /// The frame's Exif metadata, with values formatted as Exif tools write them.
  ///
  /// | Key | Value |
  /// |---|---|
  /// | `PixelXDimension`, `PixelYDimension` | pixels |
  /// | `DateTimeOriginal`, `SubSecTimeOriginal`, `OffsetTimeOriginal` | capture time in UTC with microseconds, converted with the current offset of the wall clock |
  /// | `ExposureMode` | `0` for automatic, `1` for manual exposure; absent if the camera does not report it |
  /// | `ExposureTime` | seconds as a fraction; only for manual exposure |
  /// | `ISOSpeedRatings` | ISO value; only if it is set manually |
  /// | `ExposureBiasValue` | EV as a fraction |
  /// | `MeteringMode` | `1` average, `2` center-weighted, `3` spot, `5` matrix |
  /// | `WhiteBalance` | `0` for automatic, `1` for manual white balance |
  /// | `FNumber` | fraction; only for USB cameras with an iris |
  /// | `Flash` | `0` if the camera has an LED that was off |
  ///
  /// Values that the camera does not report are absent. No V4L2 driver reports the focal length or
  /// the lens. If ``Attachments/properties`` has a value for a key, it replaces the value here.
  ///
  /// Corresponds to the attachment `{Exif}` in AVFoundation. The gain has no defined unit and
  /// therefore no key. Its value is in ``attachments``.
  public var exif: [String: String] {
    attachments.exif(capturedAt: presentationTimeStamp, as: formatDescription)
  }

  /// The Exif date keys, in UTC, for a time in microseconds since 1970.
  package static func exifDate(microseconds: Int64) -> [String: String] {
    let time = MediaTime(microseconds: microseconds)
    guard let seconds = try? time.converted(to: 1, rounding: .towardNegativeInfinity).value
    else { return [:] }
    var (moment, date) = (time_t(seconds), tm())
    guard gmtime_r(&moment, &date) != nil else { return [:] }
    func digits(_ number: some BinaryInteger, _ count: Int) -> String {
      let text = "\(number)"
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = [digits(date.tm_year + 1900, 4), digits(date.tm_mon + 1, 2), digits(date.tm_mday, 2)]
    let hour = [date.tm_hour, date.tm_min, date.tm_sec].map { digits($0, 2) }
    return [
      "DateTimeOriginal": "\(day.joined(separator: ":")) \(hour.joined(separator: ":"))",
      "SubSecTimeOriginal": digits(microseconds - seconds * 1_000_000, 6),
      "OffsetTimeOriginal": "+00:00",
    ]
  }
}

extension SampleBuffer.Attachments {
  /// The Exif keys of a frame with these attachments, as ``SampleBuffer/exif`` documents them.
  package func exif(
    capturedAt time: MediaTime, as format: FormatDescription
  ) -> [String: String] {
    var keys = Self.captureDate(time)
    keys["PixelXDimension"] = "\(format.width)"
    keys["PixelYDimension"] = "\(format.height)"
    if let isCustom = isExposureCustom { keys["ExposureMode"] = isCustom ? "1" : "0" }
    if let seconds = exposureDuration?.seconds {
      keys["ExposureTime"] = "\(seconds.numerator)/\(seconds.denominator)"
    }
    if let iso {
      keys["ISOSpeedRatings"] = "\(Int64(saturating: iso.rounded()))"
    }
    if let bias = exposureTargetBias {
      let value = Rational(Int128(bias), over: 1000)
      keys["ExposureBiasValue"] = "\(value.numerator)/\(value.denominator)"
    }
    if let mode = meteringMode { keys["MeteringMode"] = "\(mode.exifNumber)" }
    if let isCustom = isWhiteBalanceCustom {
      keys["WhiteBalance"] = isCustom ? "1" : "0"
    }
    if let number = fNumber {
      keys["FNumber"] = "\(number.numerator)/\(number.denominator)"
    }
    if isFlashOff == true { keys["Flash"] = "0" }
    return keys.merging(properties) { _, own in own }
  }

  /// The Exif date keys for a time of the capture clock.
  private static func captureDate(_ time: MediaTime) -> [String: String] {
    var (wall, steady) = (timespec(), timespec())
    clock_gettime(CLOCK_REALTIME, &wall)
    clock_gettime(CLOCK_MONOTONIC, &steady)
    guard let captured = try? time.converted(to: 1_000_000, rounding: .towardNegativeInfinity)
    else { return [:] }
    return SampleBuffer.exifDate(
      microseconds: captured.value &+ wall.microseconds &- steady.microseconds)
  }
}

extension timespec {
  fileprivate var microseconds: Int64 { Int64(tv_sec) * 1_000_000 + Int64(tv_nsec) / 1_000 }
}
