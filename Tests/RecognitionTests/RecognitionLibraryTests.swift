// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Testing

@testable import OvercrankRecognition

@Suite struct RecognitionLibraryTests {
  /// A file that does not exist, and a library that lacks the symbol.
  @Test(arguments: ["libovercrank-none.so", "libc.so.6"])
  func `A recognition library that fails to load counts as missing`(file: String) throws {
    let error = #expect(throws: MediaError.self) {
      try RecognitionLibrary<Int>(.codeReader, file: file, symbol: "overcrank_code_functions_1")
    }
    #expect(error?.code == .missingComponent)
    #expect(error?.message.contains(file) == true)
    #expect(error?.recovery == Recovery("install the code reader", .install(.codeReader)))
  }
}
