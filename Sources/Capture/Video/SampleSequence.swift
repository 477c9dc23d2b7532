// SPDX-License-Identifier: Apache-2.0

/// What a data output hands over, one after the other, to one task at a time.
struct SampleSequence<Sample: Sendable>: AsyncSequence, Sendable {
  private let delivery: SampleDeliverer<Sample>

  init(_ delivery: SampleDeliverer<Sample>) { self.delivery = delivery }

  /// Takes one after the other.
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let delivery: SampleDeliverer<Sample>

    /// The next, as soon as there is one; nil when the task is cancelled or no more come.
    mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Never) -> Sample? { await delivery.next() }
  }

  /// An iterator; each frame or block goes to one.
  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(delivery: delivery) }
}
