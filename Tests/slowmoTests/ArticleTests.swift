// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What the article for people who come from AVFoundation names is there.
struct ArticleTests {
  private static let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  @Test func `Every counterpart of AVFoundation's names is a public name of ours`() throws {
    let file = "Sources/Overcrank/Overcrank.docc/Articles/ComingFromAVFoundation.md"
    let article = try String(contentsOf: Self.checkout.appending(path: file), encoding: .utf8)
    let declared = try Self.publicNames()
    var named = 0
    for row in article.split(separator: "\n") where row.hasPrefix("| ") {
      guard let ours = row.split(separator: "|").last, !row.contains("Overcrank |") else {
        continue
      }
      for code in ours.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      where code.offset % 2 == 1 {
        named += 1
        let words = code.element.split(separator: "(").first?.split(separator: ".") ?? []
        // The names themselves are thousands, and would be printed.
        let missing = words.filter { !declared.contains(String($0)) }
        #expect(missing.isEmpty, "\(code.element)")
      }
    }
    #expect(named > 50)
  }

  @Test func `Whether a file plays is told by its own property, not by the lack of a problem`()
    throws
  {
    let file = "Sources/Overcrank/Overcrank.docc/Articles/ComingFromAVFoundation.md"
    let article = try String(contentsOf: Self.checkout.appending(path: file), encoding: .utf8)
    let row = article.split(separator: "\n").first {
      $0.contains("`AVErrorRecordingSuccessfullyFinishedKey`")
    }
    #expect(row?.contains("| `RecordingReport.isPlayable`") == true)
  }

  /// The names that follow `public … func`, `var`, `class` and so on, and the cases of enumerations.
  private static func publicNames() throws -> Set<String> {
    let sources = checkout.appending(path: "Sources")
    let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
    let declaration = try Regex(
      #"(?:public[a-z() ]* (?:func|var|let|class|struct|enum|actor)|case) ([A-Za-z]+)"#,
      as: (Substring, Substring).self)
    var names: Set<String> = []
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      let text = try String(contentsOf: file, encoding: .utf8)
      for match in text.matches(of: declaration) { names.insert(String(match.output.1)) }
    }
    return names
  }
}
