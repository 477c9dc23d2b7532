// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A sequence of camera events, which may end with an error.
struct CameraEvents<Element: Sendable>: AsyncSequence, Sendable {
  let stream: AsyncStream<Result<Element, MediaError>>

  struct Iterator: AsyncIteratorProtocol {
    var base: AsyncStream<Result<Element, MediaError>>.Iterator

    mutating func next() async throws(MediaError) -> Element? {
      try await next(isolation: nil)
    }

    mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(MediaError) -> Element? {
      try await base.next(isolation: actor)?.get()
    }
  }

  func makeAsyncIterator() -> Iterator { Iterator(base: stream.makeAsyncIterator()) }
}
