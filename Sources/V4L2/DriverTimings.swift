// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// Digital video timings of an interface such as HDMI: `V4L2_DV_BT_656_1120`.
package struct DriverTimings: Hashable, Sendable {
  /// The horizontal blanking interval of a line, in pixels, or the vertical blanking interval of a
  /// field, in lines.
  ///
  /// The front porch comes first, then the sync pulse, then the back porch.
  package struct Blanking: Hashable, Sendable {
    package var frontPorch: UInt32
    package var sync: UInt32
    package var backPorch: UInt32
    /// Whether the sync pulse is positive.
    package var isSyncPositive: Bool

    package init(frontPorch: UInt32, sync: UInt32, backPorch: UInt32, isSyncPositive: Bool) {
      (self.frontPorch, self.sync, self.backPorch) = (frontPorch, sync, backPorch)
      self.isSyncPositive = isSyncPositive
    }

    /// The total length of the blanking interval, in pixels or lines.
    package var total: UInt64 { UInt64(frontPorch) + UInt64(sync) + UInt64(backPorch) }
  }

  /// The standards that define the timings: `V4L2_DV_BT_STD_…`.
  package struct Standards: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let cvt = Standards(rawValue: 4)
  }

  /// Active pixels per line.
  package var width: UInt32
  /// Active lines per frame.
  ///
  /// For interlaced video, this is the sum of both fields.
  package var height: UInt32
  package var isInterlaced = false
  /// Pixels per second, including those of the blanking.
  package var pixelClock: UInt64
  package var horizontal: Blanking
  package var vertical: Blanking
  /// The vertical blanking of the second field.
  ///
  /// All zero for progressive video.
  package var secondField = Blanking(
    frontPorch: 0, sync: 0, backPorch: 0, isSyncPositive: false)
  package var standards: Standards
  /// The flags of the timings, `V4L2_DV_FL_…`.
  package var flags: UInt32 = 0
  /// The video identification code (VIC) of CTA-861, or 0 if the timings have none.
  package var vic: UInt8 = 0

  package init(
    width: UInt32, height: UInt32, pixelClock: UInt64, horizontal: Blanking,
    vertical: Blanking, standards: Standards
  ) {
    (self.width, self.height, self.pixelClock) = (width, height, pixelClock)
    (self.horizontal, self.vertical, self.standards) = (horizontal, vertical, standards)
  }

  /// `V4L2_DV_FL_REDUCED_BLANKING`.
  package static let reducedBlanking: UInt32 = 1
  /// `V4L2_DV_FL_REDUCED_FPS`: the actual pixel clock is 1000/1001 of the stated one.
  package static let reducedRate: UInt32 = 4

  /// Pixels per line, including blanking.
  package var totalWidth: UInt64 { UInt64(width) + horizontal.total }
  /// Lines per frame, including blanking and both fields.
  package var totalHeight: UInt64 { UInt64(height) + vertical.total + secondField.total }
}

extension DriverTimings {
  /// Creates timings from a driver's structure, or returns nil if the type of the structure is
  /// unknown.
  init?(_ timings: v4l2_dv_timings) {
    guard timings.type == UInt32(V4L2_DV_BT_656_1120) else { return nil }
    let bt = timings.bt
    self.init(
      width: bt.width, height: bt.height, pixelClock: bt.pixelclock,
      horizontal: Blanking(
        frontPorch: bt.hfrontporch, sync: bt.hsync, backPorch: bt.hbackporch,
        isSyncPositive: bt.polarities & UInt32(V4L2_DV_HSYNC_POS_POL) != 0),
      vertical: Blanking(
        frontPorch: bt.vfrontporch, sync: bt.vsync, backPorch: bt.vbackporch,
        isSyncPositive: bt.polarities & UInt32(V4L2_DV_VSYNC_POS_POL) != 0),
      standards: Standards(rawValue: bt.standards))
    isInterlaced = bt.interlaced == UInt32(V4L2_DV_INTERLACED)
    if isInterlaced {
      secondField = Blanking(
        frontPorch: bt.il_vfrontporch, sync: bt.il_vsync, backPorch: bt.il_vbackporch,
        isSyncPositive: vertical.isSyncPositive)
    }
    flags = bt.flags
    vic = bt.cea861_vic
  }

  /// The timings as a driver structure.
  var driversOwn: v4l2_dv_timings {
    var timings = v4l2_dv_timings()
    timings.type = UInt32(V4L2_DV_BT_656_1120)
    timings.bt.width = width
    timings.bt.height = height
    timings.bt.interlaced = UInt32(isInterlaced ? V4L2_DV_INTERLACED : V4L2_DV_PROGRESSIVE)
    timings.bt.polarities =
      (horizontal.isSyncPositive ? UInt32(V4L2_DV_HSYNC_POS_POL) : 0)
      | (vertical.isSyncPositive ? UInt32(V4L2_DV_VSYNC_POS_POL) : 0)
    timings.bt.pixelclock = pixelClock
    timings.bt.hfrontporch = horizontal.frontPorch
    timings.bt.hsync = horizontal.sync
    timings.bt.hbackporch = horizontal.backPorch
    timings.bt.vfrontporch = vertical.frontPorch
    timings.bt.vsync = vertical.sync
    timings.bt.vbackporch = vertical.backPorch
    timings.bt.il_vfrontporch = secondField.frontPorch
    timings.bt.il_vsync = secondField.sync
    timings.bt.il_vbackporch = secondField.backPorch
    timings.bt.standards = standards.rawValue
    timings.bt.flags = flags
    timings.bt.cea861_vic = vic
    return timings
  }
}

extension VideoDevice {
  /// Lists the preset timings of the current input: `VIDIOC_ENUM_DV_TIMINGS`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.listTimings`.
  package borrowing func listedTimings() throws(CallFailure) -> [DriverTimings] {
    var list: [DriverTimings] = []
    for index in 0..<Self.listLimit {
      var entry = v4l2_enum_dv_timings()
      entry.index = index
      guard try has(CVideo4Linux_VIDIOC_ENUM_DV_TIMINGS, &entry, .listTimings) else { break }
      if let timings = DriverTimings(entry.timings) { list.append(timings) }
    }
    return list
  }

  /// Reads the configured timings of the current input: `VIDIOC_G_DV_TIMINGS`.
  ///
  /// - Returns: The timings, or nil for an input without DV timings.
  /// - Throws: ``CallFailure`` with the operation `.readTimings`.
  package borrowing func timings() throws(CallFailure) -> DriverTimings? {
    var timings = v4l2_dv_timings()
    guard try has(CVideo4Linux_VIDIOC_G_DV_TIMINGS, &timings, .readTimings) else { return nil }
    return DriverTimings(timings)
  }

  /// Detects the timings of the incoming signal, without changing anything:
  /// `VIDIOC_QUERY_DV_TIMINGS`.
  ///
  /// - Throws: ``CallFailure`` with the operation `.detectTimings`. The kind is `.noSignal`,
  ///   `.unstableSignal` or `.signalOutOfRange`, or `.notSupported` for an input without timings.
  package borrowing func detectedTimings() throws(CallFailure) -> DriverTimings {
    var answer = v4l2_dv_timings()
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_QUERY_DV_TIMINGS, &answer), .detectTimings, path)
    guard let timings = DriverTimings(answer) else {
      throw CallFailure(.detectTimings, path, code: ENOTSUP)
    }
    return timings
  }

  /// Sets the timings of the current input, and the format to their size: `VIDIOC_S_DV_TIMINGS`.
  ///
  /// - Returns: The timings that the driver granted, which may be rounded.
  /// - Throws: ``CallFailure`` with the operation `.setTimings`. The kind is `.busy` while
  ///   another program streams, or `.signalOutOfRange` or `.notSupported` for unsupported timings.
  package mutating func setTimings(
    _ timings: DriverTimings
  ) throws(CallFailure) -> DriverTimings {
    var request = timings.driversOwn
    try CallFailure.check(
      control(CVideo4Linux_VIDIOC_S_DV_TIMINGS, &request), .setTimings, path)
    return DriverTimings(request) ?? timings
  }
}
