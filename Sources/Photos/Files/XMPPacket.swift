// SPDX-License-Identifier: Apache-2.0

/// The XMP metadata of a photo.
struct XMPPacket: Sendable {
  /// The movie that a Motion Photo contains at its end.
  struct Movie: Sendable {
    let byteCount: Int64
    /// The time in the movie at which the photo was taken, in microseconds.
    let microseconds: Int64
  }

  /// The identifier at the start of an XMP segment in a JPEG file.
  static let name = Array("http://ns.adobe.com/xap/1.0/".utf8) + [0]

  /// The XMP values by their qualified names, such as `dc:title`.
  var properties: [String: String] = [:]
  var movie: Movie?

  /// The XMP forms in which values are stored.
  private enum Form { case text, languages, sequence, bag }

  private static let namespaces = [
    "dc": "http://purl.org/dc/elements/1.1/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xmpRights": "http://ns.adobe.com/xap/1.0/rights/",
  ]
  private static let forms: [String: Form] = [
    "dc:title": .languages, "dc:description": .languages, "dc:rights": .languages,
    "xmpRights:UsageTerms": .languages, "dc:creator": .sequence, "dc:subject": .bag,
  ]

  /// Whether a qualified name has a known namespace, and contains no character that XML forbids.
  static func isValid(_ name: String) -> Bool {
    let parts = name.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, namespaces[String(parts[0])] != nil, let first = parts[1].first else {
      return false
    }
    return first.isASCII && first.isLetter
      && parts[1].allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  /// Whether the packet has neither values nor a movie.
  var isEmpty: Bool { movie == nil && properties.isEmpty }

  /// The APP1 segment for a JPEG file; empty without values.
  ///
  /// A segment has at most 64 kB. Values that would exceed this size are omitted.
  var segment: [UInt8] {
    if isEmpty { return [] }
    let payload = Self.name + Array(text.utf8)
    let length = payload.count + 2
    guard length <= 0xFFFF else {
      return properties.isEmpty ? [] : XMPPacket(movie: movie).segment
    }
    return [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 0xFF)] + payload
  }

  /// The XMP packet as text.
  var text: String {
    """
    <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?>
    <x:xmpmeta xmlns:x="adobe:ns:meta/">
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
    \(description)\(movie.map(Self.description) ?? "")</rdf:RDF>
    </x:xmpmeta>
    <?xpacket end="r"?>
    """
  }

  private var description: String {
    guard !properties.isEmpty else { return "" }
    let sorted = properties.sorted { $0.key < $1.key }
    let prefixes = Set(sorted.compactMap { $0.key.split(separator: ":").first.map(String.init) })
    let declarations = prefixes.sorted().map { "xmlns:\($0)=\"\(Self.namespaces[$0] ?? "")\"" }
    let elements = sorted.map { name, value in
      "<\(name)>\(Self.content(value, Self.forms[name] ?? .text))</\(name)>\n"
    }
    return "<rdf:Description rdf:about=\"\" \(declarations.joined(separator: "\n"))>\n"
      + elements.joined() + "</rdf:Description>\n"
  }

  private static func content(_ value: String, _ form: Form) -> String {
    switch form {
    case .text: return escaped(value)
    case .languages:
      return "<rdf:Alt><rdf:li xml:lang=\"x-default\">\(escaped(value))</rdf:li></rdf:Alt>"
    case .sequence: return "<rdf:Seq><rdf:li>\(escaped(value))</rdf:li></rdf:Seq>"
    case .bag:
      // In the value that the program sets, keywords are separated by commas.
      let items = value.split(separator: ",").map { item in
        "<rdf:li>\(escaped(String(item.drop { $0 == " " })))</rdf:li>"
      }
      return "<rdf:Bag>\(items.joined())</rdf:Bag>"
    }
  }

  /// The text without characters that XML forbids, and with entities for characters that have a
  /// meaning in XML.
  private static func escaped(_ text: String) -> String {
    let entities: [Character: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;"]
    return text.filter { character in
      character.unicodeScalars.allSatisfy { $0.value >= 0x20 || $0 == "\t" || $0 == "\n" }
    }.map { entities[$0] ?? String($0) }.joined()
  }

  /// Describes a movie as Google's Motion Photo format 1.0 requires.
  private static func description(_ movie: Movie) -> String {
    """
    <rdf:Description rdf:about=""
    xmlns:Camera="http://ns.google.com/photos/1.0/camera/"
    xmlns:Container="http://ns.google.com/photos/1.0/container/"
    xmlns:Item="http://ns.google.com/photos/1.0/container/item/"
    Camera:MotionPhoto="1" Camera:MotionPhotoVersion="1"
    Camera:MotionPhotoPresentationTimestampUs="\(movie.microseconds)">
    <Container:Directory><rdf:Seq>
    <rdf:li rdf:parseType="Resource"><Container:Item Item:Mime="image/jpeg"
    Item:Semantic="Primary" Item:Length="0" Item:Padding="0"/></rdf:li>
    <rdf:li rdf:parseType="Resource"><Container:Item Item:Mime="video/quicktime"
    Item:Semantic="MotionPhoto" Item:Length="\(movie.byteCount)" Item:Padding="0"/></rdf:li>
    </rdf:Seq></Container:Directory>
    </rdf:Description>

    """
  }
}
