// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2

/// A sequence of camera events, which may end with an error.
struct CameraEvents<Element: Sendable>: AsyncSequence, Sendable {
  private let stream: AsyncStream<Result<Element, MediaError>>

  /// Starts the thread that reads the events.
  ///
  /// The thread ends at most 100 ms after the sequence is released or its task is cancelled. The
  /// newest 256 unread elements are kept.
  ///
  /// - Parameters:
  ///   - node: The handle that receives the events. No other object reads them.
  ///   - state: The state that `next` may change.
  ///   - next: Returns the elements of an event. It is called after each event, and after 100 ms
  ///     without one.
  /// - Throws: `MediaError` with `.outOfMemory`.
  init<State: Sendable>(
    of node: ControlledNode, _ state: State,
    _ next:
      @escaping @Sendable (inout State, DeviceEvent?, borrowing VideoDevice) throws(CallFailure) ->
      [Element]
  ) throws(MediaError) {
    let (stream, continuation) = AsyncStream<Result<Element, MediaError>>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    self.stream = stream
    let isStopped = CancellationFlag()
    continuation.onTermination = { _ in isStopped.set() }
    try BlockingThread.started {
      var state = state
      while !isStopped.isSet {
        do throws(MediaError) {
          let elements = try node.useOwn { device throws(CallFailure) in
            // This call throws if the device is unplugged.
            try next(&state, try device.nextEvent(timeoutMilliseconds: 100), device)
          }
          for element in elements { continuation.yield(.success(element)) }
        } catch {
          continuation.yield(.failure(error))
          break
        }
      }
      continuation.finish()
    }.detach()
  }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate var base: AsyncStream<Result<Element, MediaError>>.Iterator

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
