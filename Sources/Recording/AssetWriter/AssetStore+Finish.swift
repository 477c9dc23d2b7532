// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

extension AssetStore {
  /// Rejects further samples and stores the queued ones.
  ///
  /// Returns false if this method was called before.
  private func close() -> Bool {
    let wasOpen = state.withLock { state in
      defer { state.isOpen = false }
      return state.isOpen
    }
    guard wasOpen else { return false }
    for queue in queues { queue?.close() }
    thread.withLock { $0.take() }?.join()
    return true
  }

  /// Stores the queued samples and finishes the file.
  ///
  /// - Throws: `MediaError` for this or an earlier failure.
  func finish() throws(MediaError) {
    guard close() else { throw .wrongState("\(path) is already finished or cancelled") }
    let failure = isStoring.withLock { _ in finishFile() }
    let error = state.withLock { state in
      // The first error is reported, since it causes the later ones.
      state.error = state.error ?? failure
      state.status = state.error == nil ? .completed : .failed
      return state.error
    }
    if let error { throw error }
  }

  private func finishFile() -> MediaError? {
    guard var writer = output.writer.take(), var file = output.file.take() else { return nil }
    do throws(LibAVError) {
      try writer.finish()
      let count = writer.storedFrameCount
      state.withLock { $0.storedCount = count }
      guard count > 0 else {
        file.discard()
        return MediaError(
          .nothingStored, "no frame was appended to \(path)", recovery: "append frames first")
      }
      file.prepareToFinish()
      let counts = try RecordedMovie.finish(
        file.file, ends: writer.endTicks.map { .at($0) }, metadata: tags())
      guard file.hasItsName else { return MediaError(replacing: file.file) }
      let readable = zip(counts, inputs).reduce(0) { $0 + ($1.1.mediaType == .video ? $1.0 : 0) }
      guard readable == count else {
        return MediaError(
          .writeFailed, "only \(readable) of \(count) frames of \(path) could be read back",
          recovery: "check the disk, and write the file again")
      }
      return nil
    } catch {
      // The file is kept. It is still fragmented and contains the frames stored so far.
      return MediaError(recording: error)
    }
  }

  /// Cancels writing and removes the file.
  ///
  /// Does nothing if writing has ended.
  ///
  /// After an error, the file is finished with the stored frames instead of being removed.
  func cancel() {
    guard error == nil else { return (try? finish()) ?? () }
    guard close() else { return }
    state.withLock { $0.status = .cancelled }
    discard()
  }

  /// Removes the file.
  func discard() {
    isStoring.withLock { _ in
      _ = output.writer.take()
      if let file = output.file.take() { file.discard() }
    }
  }
}
