// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Automatic adjustments of a camera, such as automatic exposure.
struct CameraAdjustmentTests {
  private let driver = ScriptedControls([
    DeviceControl(
      id: .exposureTime, name: "Exposure Time, Absolute", kind: .integer, minimum: 1,
      maximum: 5_000, defaultValue: 157, flags: [.inactive, .volatile]),
    DeviceControl(
      id: .whiteBalanceTemperature, name: "White Balance Temperature", kind: .integer,
      minimum: 2_000, maximum: 6_500, defaultValue: 4_000, flags: .volatile),
  ])

  @Test func `A camera adjustment query ignores changes before the query`() throws {
    let step = Mutex<Int64>(0)
    let controls = try driver.camera { [driver] in driver.add(step.withLock { $0 }) }
    for _ in 0..<3 {
      #expect(try controls.isAdjustingExposure == false)
      #expect(try controls.isAdjustingWhiteBalance == false)
    }
    step.withLock { $0 = 5 }
    for _ in 0..<3 { #expect(try controls.isAdjustingExposure == true) }
    // A change between two queries does not count in either.
    step.withLock { $0 = 0 }
    #expect(try controls.isAdjustingExposure == false)
  }

  /// A driver that may answer with an old value, as `uvcvideo` does: the control is only inactive.
  private let caching = ScriptedControls([
    DeviceControl(
      id: .exposureTime, name: "Exposure Time, Absolute", kind: .integer, minimum: 1,
      maximum: 5_000, defaultValue: 157, flags: .inactive)
  ])

  @Test func `Equal readings mean nothing until readings have differed`() throws {
    let step = Mutex<Int64>(0)
    let controls = try caching.camera { [caching] in caching.add(step.withLock { $0 }) }
    #expect(try controls.isAdjustingExposure == nil)
    step.withLock { $0 = 1 }
    #expect(try controls.isAdjustingExposure == true)
    step.withLock { $0 = 0 }
    #expect(try controls.isAdjustingExposure == false)
    // A change between two queries also shows that readings are not cached.
    let others = try caching.camera {}
    #expect(try others.isAdjustingExposure == nil)
    caching.change { $0.values[.exposureTime] = .number(9) }
    #expect(try others.isAdjustingExposure == false)
  }

  @Test func `An event of a control shows that it is adjusting`() throws {
    let controls = try caching.camera { [caching] in
      caching.send(change: .whiteBalanceTemperature, to: 3)
      caching.send(change: .exposureTime, to: 33)
    }
    #expect(try controls.isAdjustingExposure == true)
    #expect(caching.change { $0.subscriptions }.contains(.exposureTime))
  }

  @Test func `Events replace the values that a driver keeps`() {
    var events = ReportedValues()
    events.note(33, of: .exposureTime)
    events.note(4_000, of: .whiteBalanceTemperature)
    // The driver reads 160 from the camera in the end, so that the event is out of date.
    let exposures = ([157, 157, 160, 157] as [Int64]).map { own -> Int64? in
      var reading = AdjustmentReading(values: [.focus: 5, .exposure: own])
      events.replace(in: &reading)
      #expect(reading.values[.focus] == 5 && reading.values[.whiteBalance] == nil)
      return reading.values[.exposure]
    }
    #expect(exposures == [33, 33, 160, 157])
  }

  @Test func `A camera adjustment ends after three equal control readings`() {
    var detector = AdjustmentDetector()
    var events: [[CameraAdjustment]] = []
    for exposure: Int64 in [9, 9, 8, 7, 7, 6, 6, 6, 6, 6, 5] {
      events.append(detector.see(AdjustmentReading(values: [.exposure: exposure])))
    }
    let (begins, ends) = (
      CameraAdjustment(subject: .exposure, isAdjusting: true),
      CameraAdjustment(subject: .exposure, isAdjusting: false)
    )
    #expect(events == [[], [], [begins], [], [], [], [], [], [ends], [], [begins]])
  }

  @Test func `A camera adjustment ends when its value disappears`() {
    var detector = AdjustmentDetector()
    var events: [[Bool]] = []
    for exposure: Int64? in [9, 8, nil, nil, 8, 7] {
      let reading = AdjustmentReading(values: exposure.map { [.exposure: $0] } ?? [:])
      events.append(detector.see(reading).map(\.isAdjusting))
    }
    #expect(events == [[], [true], [false], [], [], [true]])
  }

  @Test func `A focus adjustment lasts while autofocus reports focusing`() {
    var detector = AdjustmentDetector()
    let events = [false, true, true, false].map {
      detector.see(AdjustmentReading(isFocusing: $0)).map(\.isAdjusting)
    }
    #expect(events == [[], [true], [], [false]])
  }

  @Test func `Unplugging a camera ends the reports of its adjustments`() async throws {
    let controls = try driver.camera()
    let adjustments = try controls.adjustments()
    let changes = Task { [driver] in
      var temperature: Int64 = 4_000
      while !Task.isCancelled {
        temperature = temperature == 4_000 ? 5_000 : 4_000
        driver.change { $0.values[.whiteBalanceTemperature] = .number(temperature) }
        await Task.yield()
      }
    }
    var reported: [CameraAdjustment] = []
    do throws(MediaError) {
      for try await adjustment in adjustments {
        reported.append(adjustment)
        changes.cancel()
        if !adjustment.isAdjusting { driver.change { $0.isUnplugged = true } }
      }
      Issue.record("the sequence ended without saying why")
    } catch {
      #expect(error.code == .deviceLost)
    }
    #expect(reported.allSatisfy { $0.subject == .whiteBalance })
    // On a busy machine three readings may be equal; the next change is then another adjustment.
    #expect(reported.count >= 2)
    #expect(reported.enumerated().allSatisfy { $1.isAdjusting == $0.isMultiple(of: 2) })
  }

  @Test func `A camera without volatile controls reports no adjustments`() throws {
    let plain = ScriptedControls([
      DeviceControl(id: .exposureTime, name: "Exposure Time, Absolute", kind: .integer, maximum: 9)
    ])
    let controls = try plain.camera()
    #expect(try controls.isAdjustingExposure == nil && controls.isAdjustingFocus == nil)
    let error = #expect(throws: MediaError.self) { _ = try controls.adjustments() }
    #expect(error?.code == .controlNotSupported)
  }
}

extension ScriptedControls {
  /// Changes the exposure time.
  fileprivate func add(_ units: Int64) {
    change { $0.values[.exposureTime] = .number(($0.values[.exposureTime]?.number ?? 0) + units) }
  }
}
