// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The article for users of AVFoundation.
///
/// `Tests/check-docs.py` compiles the code in it.
struct ArticleTests {
  private static let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  @Test func `An article says which property replaces an AVFoundation key`() throws {
    let file = "Sources/Overcrank/Overcrank.docc/Articles/ComingFromAVFoundation.md"
    let article = try String(contentsOf: Self.checkout.appending(path: file), encoding: .utf8)
    let row = article.split(separator: "\n").first {
      $0.contains("`AVErrorRecordingSuccessfullyFinishedKey`")
    }
    #expect(row?.contains("| `RecordingReport.isPlayable`") == true)
  }
}
