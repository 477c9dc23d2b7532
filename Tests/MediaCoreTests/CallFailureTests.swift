// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import Testing

/// Failed calls of lower layers, and the public errors that they become.
struct CallFailureTests {
  private let stage = CallStage(
    [.notFound: .init(.fileNotFound, "check the name")],
    other: .init(.writeFailed, "check the disk"))

  @Test func `A failed system call names operation and subject and reason`() {
    let failure = CallFailure("read", "clip.mov", EIO)
    #expect(failure.description == "could not read clip.mov: Input/output error")
    #expect(failure.kind == .transferFailed)
    #expect(failure.cause == .init("read", on: "clip.mov", errorNumber: EIO))
    let other = failure.attributed(to: "copy", "take.mov")
    #expect(other.description == "could not copy take.mov: Input/output error")
    #expect(other.kind == failure.kind && other.number == failure.number)
  }

  @Test(
    arguments: [
      (EAGAIN, MediaError.Code.outOfMemory, "close other programs and try again"),
      (ENOMEM, .outOfMemory, "close other programs and try again"),
      (ENOSPC, .diskFull, "free some space and try again"),
      (EDQUOT, .diskFull, "free some space and try again"), (ECANCELED, .cancelled, ""),
      (ENOENT, .fileNotFound, "check the name"), (EIO, .writeFailed, "check the disk"),
      (EBUSY, .writeFailed, "check the disk"),
    ] as [(Int32, MediaError.Code, String)])
  func `An error number has the code of its stage or of all stages`(
    number: Int32, code: MediaError.Code, advice: String
  ) {
    let error = MediaError(CallFailure("write", "clip.mov", number), at: stage)
    #expect(error.code == code)
    #expect(error.recoverySuggestion == advice)
    #expect(error.cause?.errorNumber == number)
  }

  @Test func `The remedy of a failure is preferred to that of its stage`() {
    let failure = CallFailure(
      "open", "/dev/video0", ENOENT, .notFound, reason: "no such device", recovery: "plug it in",
      message: "no device")
    let error = MediaError(failure, at: stage)
    #expect(error.code == .fileNotFound)
    #expect(error.description == "no device; plug it in")
  }
}
