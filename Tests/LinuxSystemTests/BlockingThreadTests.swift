// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import Testing

private final class Token: Sendable {}

struct BlockingThreadTests {
  @Test func `A finished thread releases the objects its closure captured`() async throws {
    for _ in 0..<1_000 {
      weak var kept: Token?
      do {
        let token = Token()
        kept = token
        try await BlockingThread.run { _ in withExtendedLifetime(token) {} }
      }
      #expect(kept == nil)
    }
  }
}
