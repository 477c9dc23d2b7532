// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

/// Files that get their final name only when they are complete.
struct WholeFileTests {
  private func mode(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int)
  }

  @Test func `An unfinished new file is removed and the old file stays`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.csv")
    try WholeFile.write(Array("old".utf8), to: path, overwrites: false)
    do {
      let file = try WholeFile(creating: path, overwrites: true)
      #expect(FileManager.default.fileExists(atPath: file.writtenPath))
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
    }
    #expect(try scratch.names() == ["a.csv"])
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
  }

  @Test func `Finishing a new file fails if its name was taken meanwhile`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.csv")
    var file = try WholeFile(creating: path, overwrites: false)
    try WholeFile.write(Array("other".utf8), to: path, overwrites: false)
    do {
      try file.finish()
      Issue.record("the name was taken")
    } catch { #expect(error.kind == .nameTaken) }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "other")
  }

  @Test func `Replacing through a symbolic link keeps the file permissions`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.csv")
    try WholeFile.write(Array("old".utf8), to: path, overwrites: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    try FileManager.default.createSymbolicLink(
      atPath: scratch.file("link"), withDestinationPath: "a.csv")
    try WholeFile.write(Array("new".utf8), to: scratch.file("link"), overwrites: true)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "new")
    #expect(try mode(path) == 0o640)
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: scratch.file("link")) == "a.csv")
    #expect(try scratch.names() == ["a.csv", "link"])
  }

  @Test func `Two writers of one path use different temporary names`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.csv")
    var one = try WholeFile(creating: path, overwrites: true)
    let two = try WholeFile(creating: path, overwrites: true)
    #expect(one.writtenPath != two.writtenPath)
    try one.finish()
    #expect(FileManager.default.fileExists(atPath: two.writtenPath))
  }

  @Test func `Only an unlocked temporary file is removed as abandoned`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var file = try WholeFile(creating: path, overwrites: false)
    let other = try WholeFile(creating: path, overwrites: false)
    #expect(TemporaryName.removeAbandoned(of: [path]) == [])
    try file.finish()
    #expect(!FileLock.isHeld(on: path))
    // A killed process left these files, one of them for another output file.
    for target in ["a.mov", "b.mov"] { _ = try scratch.write([1], as: ".77.part.\(target)") }
    #expect(TemporaryName.removeAbandoned(of: [scratch.file("c.mov"), path]) == [path])
    #expect(
      try scratch.names()
        == [".77.part.b.mov", "a.mov", other.writtenPath.lastPathComponent].sorted())
  }

  @Test func `Creating a file removes temporary files of killed processes`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    for name in [".77.part.a.mov", ".77-2.part.a.mov", ".77.part.b.mov", ".77.old.a.mov"] {
      _ = try scratch.write([1], as: name)
    }
    let held = open(scratch.file(".77-2.part.a.mov"), O_RDONLY)
    defer { close(held) }
    try #require(flock(held, LOCK_EX | LOCK_NB) == 0)
    try WholeFile.write([1], to: path, overwrites: false)
    #expect(
      try scratch.names() == [".77-2.part.a.mov", ".77.old.a.mov", ".77.part.b.mov", "a.mov"])
  }

  @Test func `Writing to a named pipe without a reader can be cancelled`() throws {
    let scratch = try Scratch()
    let path = scratch.file("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    var polls = 0
    do throws(CallFailure) {
      try WholeFile.write([1], to: path, overwrites: true) {
        polls += 1
        return polls > 1
      }
      Issue.record("nothing was cancelled")
    } catch {
      #expect(error.number == ECANCELED)
    }
    #expect(polls == 2)
    // The pipe holds 64 KiB and its reader does not read.
    let reader = open(path, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    let large = [UInt8](repeating: 1, count: 1 << 17)
    #expect(throws: CallFailure.self) {
      try WholeFile.write(large, to: path, overwrites: true) { true }
    }
    var bytes = [UInt8](repeating: 0, count: 4)
    while read(reader, &bytes, 4) > 0 {}
    try WholeFile.write([7, 8], to: path, overwrites: true)
    let count = read(reader, &bytes, 4)
    #expect(count == 2 && bytes[..<2] == [7, 8])
  }

  @Test func `Finishing a file releases a lock that a child process shares`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var file = try WholeFile(creating: path, overwrites: false)
    // A duplicated descriptor shares the lock, as a child process does between fork and exec.
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    let locked = try #require(
      descriptors.first {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))
          == file.writtenPath
      }.flatMap { Int32($0) })
    let shared = dup(locked)
    defer { close(shared) }
    #expect(FileLock.isHeld(on: file.writtenPath))
    try file.finish()
    #expect(!FileLock.isHeld(on: path))
  }

  @Test func `Removes abandoned temporary files next to a symlink target`() throws {
    let scratch = try Scratch()
    for directory in ["disk", "links"] {
      try FileManager.default.createDirectory(
        atPath: scratch.file(directory), withIntermediateDirectories: false)
    }
    try WholeFile.write([1], to: scratch.file("disk/clip.mov"), overwrites: false)
    let link = scratch.file("links/a.mov")
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: "../disk/clip.mov")
    let file = try WholeFile(creating: link, overwrites: true)
    #expect(file.writtenPath.hasSuffix("part.clip.mov"))
    #expect(TemporaryName.removeAbandoned(of: [link]) == [])
    _ = try scratch.write([1], as: "disk/.77.part.clip.mov")
    #expect(TemporaryName.removeAbandoned(of: [link]) == [link])
    #expect(!FileManager.default.fileExists(atPath: scratch.file("disk/.77.part.clip.mov")))
    #expect(FileManager.default.fileExists(atPath: file.writtenPath))
  }

  @Test func `A file that another process has locked is not replaced`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var begun = try WholeFile(creating: path, overwrites: true)
    try WholeFile.write([1], to: path, overwrites: false)
    let recording = open(path, O_RDWR)
    defer { close(recording) }
    try #require(flock(recording, LOCK_EX | LOCK_NB) == 0)
    for attempt in [
      { try WholeFile.write([2], to: path, overwrites: true) }, { try begun.finish() },
    ] as [() throws -> Void] {
      #expect(throws: CallFailure.self) { try attempt() }
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1]))
    flock(recording, LOCK_UN)
    try begun.finish()
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).isEmpty)
  }

  @Test func `Different paths and links to one file compare equal`() throws {
    let scratch = try Scratch()
    try FileManager.default.createDirectory(
      atPath: scratch.file("directory"), withIntermediateDirectories: false)
    let path = scratch.file("a.mov")
    try WholeFile.write([1], to: path, overwrites: false)
    try FileManager.default.createSymbolicLink(
      atPath: scratch.file("link"), withDestinationPath: "a.mov")
    try FileManager.default.linkItem(atPath: path, toPath: scratch.file("hard"))
    let position = FileLocation(path)
    for other in ["link", "hard", "directory/../a.mov", "./a.mov"] {
      #expect(FileLocation(scratch.file(other)).isFile(of: position), "\(other)")
    }
    #expect(!FileLocation(scratch.file("b.mov")).isFile(of: position))
    #expect(
      FileLocation(scratch.file("directory/../b.mov")).name
        == FileLocation(scratch.file("b.mov")).name
    )
    #expect(FileLocation(scratch.file("hard")).name != position.name)
  }

  @Test func `Writes bytes at an offset of a file and reports a full disk`() throws {
    let scratch = try Scratch()
    let path = try scratch.write([1, 2, 3], as: "a.bin")
    let file = try RandomAccessFile(opening: path)
    try file.write([UInt8](repeating: 9, count: 1 << 20), at: 2)
    try file.write([], at: 5)
    #expect(file.count() == 2 + 1 << 20)
    #expect(file.read(4, at: 0) == [1, 2, 9, 9])
    let full = try RandomAccessFile(opening: "/dev/full")
    #expect { try full.write([1], at: 0) } throws: {
      ($0 as? CallFailure)?.number == ENOSPC
    }
  }
}

/// The exit of a process that has unfinished files.
struct UnfinishedFilesTests {
  @Test func `An early process exit removes only its unfinished files`() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let scratch = try Scratch()
      let part = try WholeFile(creating: scratch.file("a"), overwrites: false)
      let seen = UnfinishedFiles.finishedCount
      var whole = try WholeFile(creating: scratch.file("b"), overwrites: false)
      try whole.finish()
      // The second file was finished after `seen` was read, so this call must not end the process.
      UnfinishedFiles.end(ifFinished: seen, { true }, { exit(1) })
      UnfinishedFiles.end(ifFinished: UnfinishedFiles.finishedCount, { false }, { exit(2) })
      guard try scratch.names().count == 2 else { exit(3) }
      UnfinishedFiles.end(ifFinished: UnfinishedFiles.finishedCount, { true }) {
        exit((try? scratch.names()) == ["b"] ? 7 : 4)
      }
      _ = part.writtenPath
    }
  }
}
