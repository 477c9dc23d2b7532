// SPDX-License-Identifier: Apache-2.0

/// The samples of a data output as an asynchronous sequence for one task at a time.
struct SampleSequence<Sample: Sendable>: AsyncSequence, Sendable {
  private let delivery: SampleDeliverer<Sample>

  init(_ delivery: SampleDeliverer<Sample>) { self.delivery = delivery }

  /// The iterator of a sample sequence.
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let delivery: SampleDeliverer<Sample>

    /// The next sample, or nil when the task is cancelled or no more samples arrive.
    mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Never) -> Sample? { await delivery.next() }
  }

  /// Creates an iterator.
  ///
  /// If several iterators exist, each sample goes to only one of them.
  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(delivery: delivery) }
}
