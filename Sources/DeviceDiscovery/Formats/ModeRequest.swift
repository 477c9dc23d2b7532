// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
public import OvercrankRaster

/// A request for a mode, written as `[WxH][@rate][/fourcc]`.
///
/// A missing part matches anything.
///
/// ```
/// 1280x720@240/mjpg    1280x720@60000/1001/mjpg    @240    /yuyv    640x480
/// ```
public struct ModeRequest: Hashable, Sendable {
  /// A frame size in pixels.
  @available(*, deprecated, renamed: "VideoSize")
  public typealias Size = VideoSize

  /// The requested size, or nil for any size.
  public let size: VideoSize?
  /// The requested frame rate, or nil for the highest rate.
  public let rate: FrameRate?
  /// The requested pixel format, or nil for any format.
  public let fourcc: String?

  /// A request that matches every mode.
  public static let any = ModeRequest(size: nil, rate: nil, fourcc: nil)

  /// Creates a request.
  ///
  /// A part that is nil matches anything.
  public init(size: VideoSize? = nil, rate: FrameRate? = nil, fourcc: String? = nil) {
    (self.size, self.rate, self.fourcc) = (size, rate, fourcc)
  }

  /// Creates a request for the size and pixel format of a format, at a given rate.
  ///
  /// The format does not have to support the rate.
  public init(_ format: CaptureFormat, at rate: FrameRate) {
    self.init(
      size: VideoSize(width: format.width, height: format.height), rate: rate,
      fourcc: format.fourcc.description)
  }

  /// Parses a mode.
  ///
  /// If a slash and a number follow the rate, the number is the rate's denominator: `@60000/1001`.
  /// The number cannot be a pixel format, because pixel formats never consist of digits only.
  ///
  /// - Throws: `MediaError` with `.badMode` if the text is not a mode.
  public init(parsing text: String) throws(MediaError) {
    func failure(_ what: String) -> MediaError {
      MediaError(
        .badMode, "\"\(text)\" is not a mode: \(what)",
        recovery: "write [WxH][@rate][/fourcc], such as 1280x720@240/mjpg, @240 or /yuyv")
    }
    guard !text.isEmpty else { throw failure("it is empty") }
    let atSign = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    var before = atSign[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    let sizeText = before.removeFirst()
    if sizeText.isEmpty {
      size = nil
    } else {
      guard let read = Self.size(sizeText) else { throw failure("\"\(sizeText)\" is not a size") }
      size = read
    }
    var fourcc = before.first
    if atSign.count == 2 {
      guard fourcc == nil else { throw failure("the rate comes before the pixel format") }
      var parts = atSign[1].split(separator: "/", omittingEmptySubsequences: false)
      var rateText = String(parts.removeFirst())
      if let next = parts.first, next.utf8.allSatisfy(Self.isDigit), !next.isEmpty {
        rateText += "/\(parts.removeFirst())"
      }
      do throws(MediaError) {
        rate = try FrameRate(parsing: rateText)
      } catch {
        throw failure(error.description)
      }
      guard parts.count <= 1 else { throw failure("it has more than one pixel format") }
      fourcc = parts.first
    } else {
      rate = nil
    }
    if let fourcc, FourCC(String(fourcc)) == nil {
      throw failure("\"\(fourcc)\" is not a pixel format")
    }
    self.fourcc = fourcc.map(String.init)
  }

  /// Whether a format has exactly the requested size, rate and pixel format.
  ///
  /// The case of the pixel format is ignored.
  public func matches(_ format: CaptureFormat) -> Bool {
    matchesImage(format) && rate.map(format.frameRateRange.contains) ?? true
  }

  private func matchesImage(_ format: CaptureFormat) -> Bool {
    if let size, size.width != format.width || size.height != format.height { return false }
    return fourcc.map(format.fourcc.isNamed) ?? true
  }

  /// The fastest matching format at the requested rate, or nil if none matches.
  ///
  /// UVC cameras count frame durations in units of 100 ns, and drivers simplify fractions, so 120
  /// fps may be listed as 120.101. If no rate matches exactly, the nearest one is therefore
  /// accepted if it differs by less than 1/1001, so that 59.94 is not taken for 60. If pixel
  /// formats differ only in case, one in the requested case is preferred.
  func choose(from formats: [CaptureFormat]) -> CaptureFormat? {
    var candidates = formats.filter { matchesImage($0) && $0.isStorable && !$0.isEmulated }
    let exact = candidates.filter { $0.fourcc.description == fourcc }
    if !exact.isEmpty { candidates = exact }
    // If a size is requested, modes that exceed the incoming signal are allowed too, although the
    // driver then upscales.
    func fastest(_ formats: [CaptureFormat]) -> CaptureFormat? {
      FormatSelection.fastest(among: formats, evenBeyondSource: size != nil)
    }
    guard let rate else { return fastest(candidates) }
    let atRate = candidates.compactMap { $0.narrowed(to: rate) }
    if let format = fastest(atRate) { return format }
    let near = candidates.compactMap { format -> CaptureFormat? in
      let nearest = format.frameRateRange.nearest(to: rate)
      return nearest.isNear(rate) ? format.narrowed(to: nearest) : nil
    }
    guard let nearest = near.map({ $0.maxFrameRate.distance(to: rate) }).min() else { return nil }
    return fastest(near.filter { $0.maxFrameRate.distance(to: rate) == nearest })
  }

  /// The mode with the requested size and pixel format and the nearest rate.
  func nearestMode(among formats: [CaptureFormat]) -> CaptureFormat? {
    guard let rate else { return nil }
    let modes = formats.filter { matchesImage($0) && $0.isStorable && !$0.isEmulated }
      .compactMap { $0.narrowed(to: $0.frameRateRange.nearest(to: rate)) }
    return modes.min { $0.maxFrameRate.distance(to: rate) < $1.maxFrameRate.distance(to: rate) }
  }

  private static func size(_ text: Substring) -> VideoSize? {
    let sides = text.split(separator: "x", omittingEmptySubsequences: false)
    guard sides.count == 2, sides.allSatisfy({ $0.utf8.allSatisfy(isDigit) }),
      let width = Int32(sides[0]), let height = Int32(sides[1]), width > 0, height > 0
    else { return nil }
    return VideoSize(width: Int(width), height: Int(height))
  }

  private static func isDigit(_ character: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
  }
}

extension ModeRequest: CustomStringConvertible {
  /// The mode in text form, or an empty text for ``any``.
  public var description: String {
    (size.map(\.description) ?? "") + (rate.map { "@\($0.modeText)" } ?? "")
      + (fourcc.map { "/\($0)" } ?? "")
  }
}

extension FrameRate {
  /// The absolute difference of two rates, in frames per second.
  fileprivate func distance(to other: FrameRate) -> Rational {
    // The numerators and denominators of both rates have at most 32 bits, so their products fit 128
    // bits.
    let apart =
      Int128(numerator) * Int128(other.denominator) - Int128(other.numerator) * Int128(denominator)
    let below = Int128(denominator) * Int128(other.denominator)
    return Rational(abs(apart), over: below)
  }

  /// Whether the relative difference of two rates is less than that of 60 and 60000/1001.
  fileprivate func isNear(_ other: FrameRate) -> Bool {
    distance(to: other) * 1001 < max(self, other).framesPerSecond
  }
}
