// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import TestSupport
import Testing

/// File names of any bytes survive the conversion to `String` and back.
struct SystemPathTests {
  @Test(arguments: [
    "", "take.mov", "Zeitlupe ü.mov", "\u{1F3A5}.mov", "a/b/\u{301}c", "\u{10FF41}",
  ])
  func `A UTF-8 file name converts to the same string`(name: String) {
    let bytes = Array(name.utf8)
    #expect(String(systemBytes: bytes).systemBytes == bytes)
    #expect(String(systemBytes: bytes).repaired == name)
  }

  @Test(
    arguments: [
      [0x61, 0xFF, 0x2E], [0xE9], [0xC3], [0xC3, 0x2F], [0xED, 0xA0, 0x80], [0xF0, 0x9F, 0x8E],
      [0x80, 0x80], [0xC0, 0xAF], [0xF4, 0x90, 0x80, 0x80],
      // These characters are used to escape invalid bytes.
      [0xF4, 0x8F, 0xBF, 0xBF], [0x61, 0xF4, 0x8F, 0xBE, 0x80, 0xFF],
    ] as [[UInt8]])
  func `Path bytes that are not UTF-8 survive conversion to a String`(bytes: [UInt8]) {
    let name = String(systemBytes: bytes)
    #expect(name.systemBytes == bytes)
    #expect(name.systemPath.dropLast().map { UInt8(bitPattern: $0) } == bytes)
    #expect(name.repaired.contains("\u{FFFD}"))
    #expect(!name.repaired.unicodeScalars.contains { $0.value >= 0x10_FF80 })
  }

  @Test func `Every pair of path bytes survives conversion to a String`() {
    for pair in 0..<0x1_0000 {
      let bytes = [UInt8(pair >> 8), UInt8(pair & 0xFF)]
      #expect(String(systemBytes: bytes).systemBytes == bytes)
    }
  }

  @Test func `Control characters in text are escaped for the terminal`() {
    let shown = [
      "Zeitlupe ü \u{1F3A5}": "Zeitlupe ü \u{1F3A5}", "a\u{1B}[2J": "a\\u{1B}[2J",
      "a\nb\tc\r\u{7}\u{7F}": "a\\nb\\tc\\r\\u{07}\\u{7F}", "\u{9B}31m": "\\u{009B}31m",
      "a\u{2028}b": "a\\u{2028}b", "\u{202E}vom": "\\u{202E}vom", #"a\b"#: #"a\b"#,
    ]
    for (text, line) in shown {
      #expect(String(decoding: text.terminalBytes, as: UTF8.self) == line)
      #expect(text.controlsTerminal == (text != line))
    }
    // A byte that is not UTF-8 is kept, unless some terminals interpret it as a control character.
    #expect(String(systemBytes: [0x61, 0xFF, 0xE9]).terminalBytes == [0x61, 0xFF, 0xE9])
    #expect(String(systemBytes: [0x9B, 0x41]).terminalBytes == Array("\\x9BA".utf8))
    #expect(
      String(systemBytes: [0xF4, 0x8F, 0xBE, 0x80]).terminalBytes == [0xF4, 0x8F, 0xBE, 0x80])
    for pair in 0..<0x1_0000 {
      let bytes = String(systemBytes: [UInt8(pair >> 8), UInt8(pair & 0xFF)]).terminalBytes
      #expect(!bytes.contains { $0 < 0x20 || $0 == 0x7F })
    }
  }

  @Test func `Paths split into directory and stem and extension`() {
    #expect("a/b/c.mov".parentDirectory == "a/b" && "a/b/c.mov".lastPathComponent == "c.mov")
    #expect("c.mov".parentDirectory == "." && "c.mov".lastPathComponent == "c.mov")
    #expect("/c.mov".parentDirectory == "/")
    // A combining mark follows the slash.
    #expect("a/\u{301}c".parentDirectory == "a" && "a/\u{301}c".lastPathComponent == "\u{301}c")
    #expect("a/b.mov".replacingLastPathComponent(with: "c") == "a/c")
    #expect("b.mov".replacingLastPathComponent(with: "c") == "c")
    #expect("a.b/c.d.mov".fileStem == "c.d")
    #expect("a.b/c".fileExtension == nil)
    #expect("a.b/c.MOV".fileExtension == "mov")
    #expect("c.".fileExtension?.isEmpty == true)
  }

  @Test func `Listing a directory keeps names that are not UTF-8`() throws {
    let scratch = try Scratch()
    let name = String(systemBytes: [0x61, 0xFF, 0x62])
    try WholeFile.write([7], to: scratch.file(name), overwrites: false)
    #expect(SystemFiles.entries(in: scratch.file("")) == [name])
    let resolved = try #require(SystemFiles.resolved(scratch.file(name)))
    #expect(resolved.lastPathComponent == name)
    #expect(FileLocation(scratch.file(name)).isFile(of: FileLocation(resolved)))
  }

  @Test(arguments: [1, 200, 240, 255])
  func `A temporary file name fits in 255 bytes for any file name`(length: Int) {
    let name = String(repeating: "ä", count: length / 2) + (length % 2 == 1 ? "a" : "")
    let temporary = TemporaryName.beside("directory/" + name, "part", attempt: 3)
    #expect(temporary.hasPrefix("directory/."))
    let last = temporary.lastPathComponent
    #expect(last.systemBytes.count <= 255)
    #expect(last.last == name.last)
    #expect(TemporaryName.process(in: last, "part", of: name)?.hasSuffix("-3") == true)
    #expect(TemporaryName.process(in: last, "old", of: name) == nil)
    #expect(TemporaryName.process(in: last, "part", of: name + "b") == nil)
  }
}
