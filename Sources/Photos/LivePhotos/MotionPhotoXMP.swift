// SPDX-License-Identifier: Apache-2.0

/// Reads the XMP metadata of a photo that contains a movie.
enum MotionPhotoXMP {
  /// The values in an XMP packet, which may come from a phone.
  struct Values {
    let isMotionPhoto: Bool
    let presentationMicroseconds: Int64?
    let movieByteCount: Int64?

    init(_ text: String) {
      let tokens = Tokens(text)
      // Phones before 2019 used the MicroVideo names.
      isMotionPhoto = tokens["MotionPhoto"] == "1" || tokens["MicroVideo"] == "1"
      let time =
        tokens["MotionPhotoPresentationTimestampUs"]
        ?? tokens["MicroVideoPresentationTimestampUs"]
      presentationMicroseconds = time.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
      movieByteCount =
        (tokens.length(ofSemantic: "MotionPhoto") ?? tokens["MicroVideoOffset"])
        .flatMap { Int64($0) }
    }
  }

  /// The names and values in an XMP packet, in order.
  ///
  /// The namespace prefixes of names are removed.
  private struct Tokens {
    private var values: [(name: Substring, value: Substring)] = []

    init(_ text: String) {
      // In XMP, a value is an attribute or the text of an element. In both cases, it follows its
      // name.
      for element in text.split(separator: "<") {
        guard let end = element.firstIndex(of: ">") else { continue }
        let tag = element[..<end]
        let content = element[element.index(after: end)...]
        let name = tag.prefix { !$0.isWhitespace && $0 != "/" }
        if !content.allSatisfy(\.isWhitespace) { values.append((Self.local(name), content)) }
        var rest = tag.dropFirst(name.count)
        while let sign = rest.firstIndex(of: "=") {
          let name = rest[..<sign].split(whereSeparator: \.isWhitespace).last ?? ""
          let quoted = rest[rest.index(after: sign)...].drop { $0.isWhitespace }
          guard let quote = quoted.first, quote == "\"" || quote == "'",
            let close = quoted.dropFirst().firstIndex(of: quote)
          else { break }
          values.append((Self.local(name), quoted.dropFirst()[..<close]))
          rest = quoted[quoted.index(after: close)...]
        }
      }
    }

    private static func local(_ name: Substring) -> Substring {
      name.split(separator: ":").last ?? name
    }

    subscript(name: String) -> String? {
      values.first { $0.name == name }.map { String($0.value) }
    }

    /// The length in bytes, as text, of the container item with this semantic, such as
    /// `MotionPhoto`.
    ///
    /// The fields of an item may have any order.
    func length(ofSemantic semantic: String) -> String? {
      var (isItem, length): (Bool, Substring?) = (false, nil)
      for (name, value) in values {
        switch name {
        case "Mime":
          if isItem, let length { return String(length) }
          (isItem, length) = (false, nil)
        case "Semantic": isItem = value == semantic
        case "Length": length = value
        default: break
        }
      }
      return isItem ? length.map(String.init) : nil
    }
  }
}
