// SPDX-License-Identifier: Apache-2.0

/// Rewrites the capture-rate tag of a movie in the form that Android phones write.
///
/// Android stores the sensor's frame rate as a 32-bit float (type 23) in a QuickTime `meta` box
/// directly in `moov` (`MPEG4Writer::writeMoovLevelMetaBox`), and its players read the rate only
/// there. libavformat writes tags as text into an ISO `meta` box inside `udta`. The tag is
/// therefore first written as a placeholder text of four letters. The float then replaces these
/// four bytes, and the `meta` box is moved into `moov`. No box size changes.
package enum MovieTags {
  /// The key of the tag that contains the capture frame rate.
  package static let captureRate = "com.android.capture.fps"
  /// The placeholder text, which the float value replaces.
  package static let placeholder = "rate"

  private static let floatType: UInt32 = 23
  private static let userData: UInt32 = 0x7564_7461  // udta
  private static let meta: UInt32 = 0x6D65_7461
  private static let list: UInt32 = 0x696C_7374  // ilst
  /// The handler type of a `meta` box whose tags have keys.
  private static let taggedHandler = UInt64(BoxType.metadataKeyNamespace)

  /// Parses a frame rate; nil unless it is finite and above zero.
  package static func rate(_ text: String) -> Float? {
    Float(text).flatMap { $0.isFinite && $0 > 0 ? $0 : nil }
  }

  /// Writes the capture frame rate into a `moov` box that contains the placeholder tag.
  package static func write(captureRate rate: Float, into bytes: inout [UInt8]) {
    guard
      let movie = Box.list(in: bytes, from: 0, to: bytes.count)
        .first(where: { $0.type == BoxType.movie }),
      let user = Box.list(in: bytes, from: Int(movie.start) + 8, to: Int(movie.end))
        .first(where: { $0.type == userData })
    else { return }
    let inside = Box.list(in: bytes, from: Int(user.start) + 8, to: Int(user.end))
    // `meta` starts with its size, type and version. The first child box is `hdlr` with its size,
    // type and version, a zero, and the handler type.
    guard
      let tags = inside.first(where: {
        $0.type == meta && $0.byteCount >= 32
          && Box.number(bytes[(Int($0.start) + 28)..<(Int($0.start) + 32)]) == taggedHandler
      }), inside.last?.end == user.end
    else { return }
    var moved = BoxBytes()
    moved.box(meta) { box in
      box.append(bytes: Array(bytes[(Int(tags.start) + 12)..<Int(tags.end)]))
    }
    var made = BoxBytes()
    let others = inside.filter { $0 != tags }
    if !others.isEmpty {
      made.box(userData) { box in
        for other in others { box.append(bytes: Array(bytes[Int(other.start)..<Int(other.end)])) }
        box.append(UInt32(0))  // QuickTime's list terminator replaces the version field.
      }
    }
    made.append(bytes: numbered(moved.bytes, rate))
    if others.isEmpty { made.free(12) }
    guard made.bytes.count == Int(user.byteCount) else { return }
    bytes.replaceSubrange(Int(user.start)..<Int(user.end), with: made.bytes)
  }

  /// Returns a `meta` box in which the float value replaces the placeholder text.
  private static func numbered(_ box: [UInt8], _ rate: Float) -> [UInt8] {
    var box = box
    let parts = Box.list(in: box, from: 8, to: box.count)
    guard let names = parts.first(where: { $0.type == BoxType.metadataKeys }),
      let values = parts.first(where: { $0.type == list })
    else { return box }
    // `keys` contains the version and the number of names, then the names, each preceded by its
    // size and namespace.
    let wanted = Array(captureRate.utf8)
    let named = Box.list(in: box, from: Int(names.start) + 16, to: Int(names.end))
    guard
      let index = named.firstIndex(where: {
        box[(Int($0.start) + 8)..<Int($0.end)].elementsEqual(wanted)
      }),
      let item = Box.list(in: box, from: Int(values.start) + 8, to: Int(values.end))
        .first(where: { $0.type == UInt32(index + 1) }),
      // The item has a header of 8 bytes. The item contains a `data` box, which consists of the
      // size, the type, the value type, the locale, and a value of four bytes.
      item.byteCount == 8 + 16 + 4
    else { return box }
    var value = BoxBytes()
    value.append(floatType)
    value.append(UInt32(0))
    value.append(rate.bitPattern)
    box.replaceSubrange((Int(item.start) + 16)..<Int(item.end), with: value.bytes)
    return box
  }
}
