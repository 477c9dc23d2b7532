// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// An XML element with its attributes and child elements, and the text of elements without children.
///
/// FoundationEssentials has no XML parser, and FoundationXML would add all of Foundation to every
/// program. Project files need only elements, attributes and the five predefined entities.
/// Comments, processing instructions and CDATA are skipped, and internal document types are
/// refused. The depth and the number of elements are limited, so that a hostile file cannot exhaust
/// the stack or the memory.
struct XMLElement {
  var name: String
  var attributes: [String: String] = [:]
  var children: [XMLElement] = []
  /// The text before the end tag, without white space around it; only in an element without children.
  var text = ""

  /// Returns the text of the first child of a name; nil without such a child.
  func text(of name: String) -> String? { first(name)?.text }

  subscript(attribute: String) -> String? { attributes[attribute] }

  func first(_ name: String) -> XMLElement? { children.first { $0.name == name } }

  /// Returns all elements of a name at any depth, in document order.
  func all(_ name: String) -> [XMLElement] {
    children.flatMap { ($0.name == name ? [$0] : []) + $0.all(name) }
  }

  /// The names of this element and of all elements inside it, at any depth.
  var names: [String] { [name] + children.flatMap(\.names) }

  /// The number of elements: this element and all elements inside it, at any depth.
  var elementCount: Int { children.reduce(1) { $0 + $1.elementCount } }

  /// Parses a document.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for a document that is not well-formed, or
  ///   exceeds the limits on depth and element count.
  init(parsing text: String) throws(MediaError) {
    var parser = XMLParser(text)
    self = try parser.document()
  }

  fileprivate init(name: String) { self.name = name }
}

private struct XMLParser {
  private var rest: ArraySlice<UInt8>
  private let length: Int
  private static let depthLimit = 128
  private static let countLimit = 1_000_000

  init(_ text: String) {
    rest = Array(text.utf8)[...]
    length = rest.count
  }

  mutating func document() throws(MediaError) -> XMLElement {
    // Open elements are kept in an array, because recursion could exhaust the stack with a deeply
    // nested file.
    var open: [XMLElement] = []
    var count = 0
    while true {
      guard let mark = rest.firstIndex(of: UInt8(ascii: "<")) else {
        throw broken(
          open.isEmpty ? "it has no element" : "<\(open[open.count - 1].name)> is not closed")
      }
      let between = rest[..<mark]
      rest = rest[mark...]
      if try skipped() { continue }
      var closed: XMLElement?
      if rest.starts(with: "</".utf8) {
        rest = rest.dropFirst(2)
        let name = try name()
        skipSpace()
        guard take(">"), var last = open.popLast(), last.name == name else {
          throw broken("</\(name)> has no start tag")
        }
        if last.children.isEmpty { last.text = try text(Self.trimmed(between)) }
        closed = last
      } else {
        let (element, isEmpty) = try start()
        count += 1
        guard open.count < Self.depthLimit, count < Self.countLimit else {
          throw broken("it has too many elements")
        }
        if isEmpty { closed = element } else { open.append(element) }
      }
      guard let closed else { continue }
      if open.isEmpty { return closed }
      open[open.count - 1].children.append(closed)
    }
  }

  /// Skips a comment, a processing instruction, a document type or a CDATA section.
  ///
  /// - Returns: True if one was skipped, false if something else follows.
  private mutating func skipped() throws(MediaError) -> Bool {
    for (head, tail) in [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")]
    where rest.starts(with: head.utf8) {
      try skip(past: tail)
      return true
    }
    guard rest.starts(with: "<!".utf8) else { return false }
    // A document type may define entities in brackets, and these could expand to any size. A
    // document type with brackets is therefore refused.
    guard let end = rest.firstIndex(of: UInt8(ascii: ">")),
      !rest[..<end].contains(UInt8(ascii: "["))
    else { throw broken("internal document types are not supported") }
    rest = rest[(end + 1)...]
    return true
  }

  private mutating func skip(past text: String) throws(MediaError) {
    let wanted = Array(text.utf8)
    while let position = rest.firstIndex(of: wanted[0]) {
      rest = rest[position...]
      if rest.starts(with: wanted) {
        rest = rest.dropFirst(wanted.count)
        return
      }
      rest = rest.dropFirst()
    }
    throw broken("\(text) is missing")
  }

  private mutating func start() throws(MediaError) -> (XMLElement, isEmpty: Bool) {
    rest = rest.dropFirst()
    var element = XMLElement(name: try name())
    while true {
      let hadSpace = skipSpace()
      if take(">") { return (element, false) }
      if take("/") {
        guard take(">") else { throw broken("<\(element.name)> does not end") }
        return (element, true)
      }
      guard hadSpace else { throw broken("<\(element.name)> does not end") }
      let key = try name()
      skipSpace()
      guard take("=") else { throw broken("\(key) has no value") }
      skipSpace()
      guard let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
        let end = rest.dropFirst().firstIndex(of: quote)
      else { throw broken("\(key) has no value") }
      guard element.attributes[key] == nil else { throw broken("\(key) is repeated") }
      element.attributes[key] = try text(rest[(rest.startIndex + 1)..<end])
      rest = rest[(end + 1)...]
    }
  }

  /// Returns an attribute value with its entities expanded.
  private func text(_ bytes: ArraySlice<UInt8>) throws(MediaError) -> String {
    var text = ""
    var part = bytes
    while let mark = part.firstIndex(of: UInt8(ascii: "&")) {
      text += String(decoding: part[..<mark], as: UTF8.self)
      guard let end = part[mark...].firstIndex(of: UInt8(ascii: ";")) else {
        throw broken("an entity does not end")
      }
      let name = String(decoding: part[(mark + 1)..<end], as: UTF8.self)
      let known = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
      if let letter = known[name] {
        text += letter
      } else {
        let isHex = name.hasPrefix("#x")
        guard name.hasPrefix("#"),
          let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10),
          let scalar = Unicode.Scalar(number)
        else { throw broken("it has the unknown entity &\(name.prefix(20));") }
        text.unicodeScalars.append(scalar)
      }
      part = part[(end + 1)...]
    }
    return text + String(decoding: part, as: UTF8.self)
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }
    var bytes = bytes.drop(while: isSpace)
    while let last = bytes.last, isSpace(last) { bytes.removeLast() }
    return bytes
  }

  private mutating func name() throws(MediaError) -> String {
    let letters = rest.prefix { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: ":"), UInt8(ascii: "."), 0x80...:
        true
      default: false
      }
    }
    guard !letters.isEmpty else { throw broken("a name is missing") }
    rest = rest.dropFirst(letters.count)
    return String(decoding: letters, as: UTF8.self)
  }

  @discardableResult
  private mutating func skipSpace() -> Bool {
    let space = rest.prefix { [0x20, 0x09, 0x0a, 0x0d].contains($0) }.count
    rest = rest.dropFirst(space)
    return space > 0
  }

  private mutating func take(_ letter: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: letter) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private func broken(_ what: String) -> MediaError {
    .invalidProject("its XML is damaged at byte \(length - rest.count): \(what)")
  }
}
