// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Takes of an emulated USB camera with the kernel's own driver, compared with the camera's log.
@Suite(.serialized, .enabled(if: UsbCamera.isPresent, UsbCamera.whyNot))
struct UsbCameraTests {
  private func file(_ name: String) -> String { "\(Vivid.directory)/usb-\(name).mov" }

  private static let rates =
    RunSize.isFull
    ? [50, 60, 90, 100, 120, 150, 187, 200, 210, 240, 260, 300, 330, 480] : [120, 240, 300, 480]

  @Test(arguments: rates, [false, true])
  func `No frame is lost at any rate`(rate: Int, isBulk: Bool) async throws {
    let ppm = rate % 20 == 0 ? 300 : -300
    let camera = UsbCamera(isBulk: isBulk, rate: rate, ppm: ppm)
    let take = try await camera.record(seconds: 2, file: file("rate"))
    let ledger = try Vivid.ledger(take.document)
    Vivid.expectSum(ledger)
    #expect(ledger["stored"] == ledger["expected"], "\(ledger)")
    let measured = try #require(take.document["measured_fps_value"] as? Double)
    let (first, last) = (try #require(take.frames.first), try #require(take.frames.last))
    let trueRate =
      Double(take.frames.count - 1) * 1e6 / Double(last.microseconds - first.microseconds)
    let quantum = (take.document["timestamp_quantum_ns"] as? Int).map { Double($0) * 1e-9 } ?? 0
    print(
      "usb: \(rate) fps, bulk \(isBulk): measured \(measured), true \(trueRate), step \(quantum)")
    #expect(abs(measured / trueRate - 1) <= max(0.0002, quantum / 2))
    if !isBulk, rate == 240 { #expect(abs(quantum - 0.004) < 0.000_1) }
    if isBulk { #expect(quantum == 0) }
  }

  /// The faults of one take, with the number of frames that are missing or damaged through each.
  private static let isochronousFaults = [
    ("skip", 1), ("packets:3", 1), ("error-bit:3", 1), ("silent:3", 1), ("truncate", 1),
    ("stuck", 1), ("no-end", 0), ("mute", 2), ("all-packets", 3), ("header", 1), ("oversize", 1),
  ]
  private static let bulkFaults = [
    ("skip", 1), ("error-bit", 1), ("truncate", 1), ("stuck", 1), ("late:30", 0),
  ]

  @Test(arguments: [false, true], [false, true])
  func `Losses equal the log of the camera`(isBulk: Bool, deliversDamaged: Bool) async throws {
    let faults = isBulk ? Self.bulkFaults : Self.isochronousFaults
    // The verification of the rate takes the first frames.
    let places = faults.indices.map { 300 + $0 * 100 }
    let rate = isBulk ? 120 : 210
    var camera = UsbCamera(isBulk: isBulk, rate: rate, deliversDamaged: deliversDamaged)
    for (place, fault) in zip(places, faults) { camera.faults[place] = fault.0 }
    let seconds = Double(places[places.count - 1] + 100) / Double(rate)
    let take = try await camera.record(seconds: seconds, file: file("faults"))
    let ledger = try Vivid.ledger(take.document)
    print("usb: bulk \(isBulk), nodrop \(deliversDamaged): \(ledger.sorted { $0.key < $1.key })")
    Vivid.expectSum(ledger)
    for (place, (fault, count)) in zip(places, faults) {
      let found = try take.missing(after: place, within: 90, rate: rate)
      let overruns = take.overruns.count { $0 > place && $0 < place + 90 }
      #expect(found == count + overruns, "\(fault)")
    }
    let expected = Int64(faults.reduce(take.overruns.count) { $0 + $1.1 })
    #expect((ledger["expected"] ?? 0) - (ledger["stored"] ?? 0) == expected, "\(ledger)")
  }

  @Test func `A failed transfer costs at most two frames`() async throws {
    var camera = UsbCamera()
    camera.faults[200] = "urb:71"
    let take = try await camera.record(seconds: 2, file: file("transfer"))
    let ledger = try Vivid.ledger(take.document)
    Vivid.expectSum(ledger)
    #expect((ledger["expected"] ?? 0) - (ledger["stored"] ?? 0) <= 2, "\(ledger)")
    #expect((475...485).contains(ledger["expected"] ?? 0))
  }
}
