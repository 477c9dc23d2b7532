// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore

/// The search for the quality at which an encoded movie does not exceed a file size.
///
/// Each attempt encodes the whole movie. The logarithm of the size falls almost linearly with the
/// constant rate factor, so the next factor is interpolated between those of two attempts.
struct FileLengthSearch {
  private struct Attempt {
    let crf: Double
    /// The base-2 logarithm of the ratio of the attempt's file size to the permitted size.
    let excess: Double
  }

  /// The greatest permitted size of the file in bytes.
  let limit: Int64
  /// The constant rate factor of the next attempt.
  private(set) var crf: Double
  /// The number of finished attempts.
  private var attemptCount = 0
  /// The requested constant rate factor, below which the search never goes.
  private let requested: Double
  /// The attempt with the smallest file of all that exceed the limit.
  private var tooLarge: Attempt?
  /// The attempt with the largest file of all below 90 % of the limit.
  private var tooSmall: Attempt?
  /// Whether the next attempt is kept if it fits, however small it is.
  private var isLast = false

  private static let greatestFactor = 51.0
  private static let maximumAttempts = 10
  /// Each attempt aims at a file size of 95 % of the permitted size.
  private static let aim = log2(0.95)
  /// An attempt whose file has at least 90 % of the permitted size is kept.
  private static let least = log2(0.9)
  /// If the constant rate factors of two attempts differ by less than this, no attempt between them
  /// is useful.
  private static let narrowest = 0.1

  init(limit: Int64, crf: Int) {
    self.limit = limit
    self.crf = Double(crf)
    requested = Double(crf)
  }

  /// Starts the search for an export; nil without a limit, and for an animated image.
  ///
  /// - Throws: `MediaError` with `.fileLengthRefused` if the export has no constant rate factor.
  init?(_ settings: ExportSettings) throws(MediaError) {
    guard let limit = settings.fileLengthLimit else { return nil }
    if AnimatedImageSearch(settings) != nil { return nil }
    guard settings.part == .whole, limit > 0, case .constant(_, let rendering) = settings.mode,
      let crf = rendering.encoding.crf
    else {
      throw MediaError(
        .fileLengthRefused,
        "\(settings.path) cannot be fitted to \(limit) bytes: only a rendered H.264, HEVC or animated "
          + "image export can change its quality",
        recovery: Recovery(
          "choose H.264 at a constant frame rate", .change(.codec), .change(.outputFrameRate)))
    }
    self.init(limit: limit, crf: crf)
  }

  /// Records the file size of an attempt, and chooses the factor of the next attempt.
  ///
  /// - Returns: The result if the attempt is kept, because it fits and either is large enough or
  ///   has the requested quality. Nil if another attempt follows.
  /// - Throws: `MediaError` with `.fileLengthRefused` if the smallest movie is too large.
  mutating func kept(
    _ size: Int64, path: String
  ) throws(MediaError) -> ExportReport.FileLength? {
    attemptCount += 1
    let excess = log2(Double(size) / Double(limit))
    if size <= limit {
      if isLast || crf == requested || excess >= Self.least {
        return ExportReport.FileLength(
          limit: limit, byteCount: size, crf: crf, attemptCount: attemptCount)
      }
      tooSmall = Attempt(crf: crf, excess: excess)
    } else {
      guard crf < Self.greatestFactor, !isLast else {
        throw MediaError(
          .fileLengthRefused,
          "\(path) cannot be reduced to \(limit) bytes: the lowest quality has \(size)",
          recovery: Recovery(
            "choose a larger size, a shorter part, a lower frame rate or a smaller frame",
            .change(.maximumFileSize)))
      }
      tooLarge = Attempt(crf: crf, excess: excess)
    }
    chooseNext()
    return nil
  }

  private mutating func chooseNext() {
    // If the first attempt is not too large, it is kept and no other attempt is needed.
    guard let tooLarge else { return }
    guard let tooSmall else {
      // In H.264 and HEVC, a constant rate factor greater by about 6 halves the file size.
      let steps = max(0.5, 6 * (tooLarge.excess - Self.aim))
      crf = min(Self.greatestFactor, tooLarge.crf + steps)
      if attemptCount + 1 >= Self.maximumAttempts { crf = Self.greatestFactor }
      return
    }
    let width = tooSmall.crf - tooLarge.crf
    isLast = attemptCount + 1 >= Self.maximumAttempts || width < Self.narrowest
    guard !isLast else {
      crf = tooSmall.crf
      return
    }
    let share = (tooLarge.excess - Self.aim) / (tooLarge.excess - tooSmall.excess)
    crf = tooLarge.crf + width * min(max(share, 0.1), 0.9)
  }
}
