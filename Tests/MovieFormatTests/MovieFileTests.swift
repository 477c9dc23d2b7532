// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// A recording's ownership of its file name, from creation to end.
struct MovieFileTests {
  @Test func `Refuses a second writer of a movie file`() throws {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "a.mov")
    let file = try MovieFile(creating: path, overwrites: true)
    for overwrites in [true, false] {
      let error = #expect(throws: CallFailure.self) {
        _ = try MovieFile(creating: path, overwrites: overwrites)
      }
      #expect(error?.kind == (overwrites ? .busy : .nameTaken))
      #expect(error?.subject.contains("a.mov") == true)
    }
    #expect(FileLock.isHeld(on: path))
    #expect(try bytes(of: path) == MovieIndex.emptyMovie)
    // An output file that is refused leaves no temporary file.
    #expect(try scratch.names().count == 2)
    file.discard()
    #expect(try bytes(of: path) == [1, 2, 3])
    #expect(try scratch.names() == ["a.mov"])
    #expect(!FileLock.isHeld(on: path))
  }

  @Test func `Discarding a movie keeps a file that was moved to its path`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    try MovieFile(creating: path, overwrites: false).discard()
    #expect(try scratch.names() == [])
    for old in [nil, [7]] as [[UInt8]?] {
      if let old { _ = try scratch.write(old, as: "a.mov") }
      let file = try MovieFile(creating: path, overwrites: true)
      let hadName = file.hasItsName
      let other = try scratch.write([4, 5], as: "other.mov")
      try #require(rename(other, path) == 0)
      let (hasName, open) = (file.hasItsName, file.file)
      #expect(hadName && !hasName && open.currentPath == nil)
      file.discard()
      #expect(try bytes(of: path) == [4, 5])
      // The replaced file is kept under its temporary name.
      #expect(try scratch.names().count == (old == nil ? 1 : 2))
      unlink(path)
    }
  }

  @Test func `Discarding a deleted movie restores the file it replaced`() throws {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "a.mov")
    let file = try MovieFile(creating: path, overwrites: true)
    unlink(path)
    file.discard()
    #expect(try bytes(of: path) == [1, 2, 3])
    #expect(try scratch.names() == ["a.mov"])
  }

  @Test func `Discarding a movie restores a symbolic link that it replaced`() throws {
    let scratch = try Scratch()
    let target = try scratch.write([1], as: "target.mov")
    let path = scratch.file("a.mov")
    for isKept in [false, true] {
      unlink(path)
      try #require(symlink("target.mov", path) == 0)
      var file = try MovieFile(creating: path, overwrites: true)
      var status = stat()
      #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG)
      if isKept { file.dropReplaced() } else { file.discard() }
      #expect(lstat(path, &status) == 0)
      #expect(status.st_mode & S_IFMT == (isKept ? S_IFREG : S_IFLNK))
      #expect(try bytes(of: target) == [1])
      #expect(try scratch.names() == ["a.mov", "target.mov"])
    }
  }

  @Test func `A finished movie does not replace a file moved to its path`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var file = try MovieFile(creating: path, overwrites: false)
    let copy = try file.beginCopy()
    try RandomAccessFile(copy.file).write([1, 2], at: 0)
    try file.replace(by: copy)
    let hasName = file.hasItsName
    #expect(try bytes(of: path) == [1, 2] && hasName)
    #expect(FileLock.isHeld(on: path))
    #expect(try scratch.names() == ["a.mov"])
    let late = try file.beginCopy()
    let other = try scratch.write([9], as: "other.mov")
    try #require(rename(other, path) == 0)
    do {
      try file.replace(by: late)
      Issue.record("the name is another file's")
    } catch { #expect(error.number == ESTALE) }
    #expect(try bytes(of: path) == [9])
    #expect(try scratch.names() == ["a.mov"])
    // The file can still be read although another file now has its name.
    let kept = RandomAccessFile(file.file).read(2, at: 0)
    #expect(kept == [1, 2])
  }

  @Test func `Claims a file name only if no other file has the name`() throws {
    let scratch = try Scratch()
    let one = try scratch.write([1], as: "one")
    let two = try scratch.write([2], as: "two")
    #expect(FileName.claim(two, for: one) == EEXIST)
    #expect(try bytes(of: two) == [2])
    #expect(FileName.claim(scratch.file("three"), for: one) == 0)
    let identity = try #require(FileIdentity(at: two))
    // A file that is not the expected one keeps its name.
    let taken = FileName.take(scratch.file("three"), for: two, from: identity)
    #expect(taken.failure == ESTALE)
    #expect(try bytes(of: two) == [2] && bytes(of: scratch.file("three")) == [1])
    FileName.remove(scratch.file("three"), of: identity)
    #expect(try scratch.names() == ["three", "two"])
  }
}
