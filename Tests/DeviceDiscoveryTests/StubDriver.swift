// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRaster
import Synchronization

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// A driver made of descriptions, for nodes that are files in a scratch directory.
///
/// The text of a file names the description of its node. A node with the text `forbidden` cannot be
/// opened.
final class StubDriver: VideoSystemCalls {
  let handles = SharedHandles()

  /// The properties of a device node.
  struct Node: Sendable {
    var card = "Stub"
    var capabilities: UInt32
    var rows: [TableSource.Row] = []
    var inForce = VideoSize(width: 640, height: 480)
    var inputs: [Input] = []
  }

  /// A video input of a device node.
  struct Input: Sendable {
    var name: String
    var timings: DriverTimings?
    /// The timings that the driver detects, or the error of the detection.
    var detected: DriverTimings?
    var detectionError = ENOLINK
    var standard: UInt64 = 0
  }

  /// The mutable state, and the requests that were made.
  struct State {
    var open: [CInt: String] = [:]
    var inputs: [String: Int] = [:]
    var set: [String: DriverTimings] = [:]
    var requests: [UInt: Int] = [:]
  }

  let nodeDirectory: String
  private let nodesByText: [String: Node]
  let state = Mutex(State())

  init(_ directory: String, _ nodes: [String: Node]) {
    nodeDirectory = directory
    nodesByText = nodes
  }

  /// Adds a device node, or replaces it.
  func plug(_ number: Int, _ text: String, mode: mode_t = 0o660) throws {
    let path = "\(nodeDirectory)/video\(number)"
    try text.write(toFile: path + ".part", atomically: false, encoding: .utf8)
    chmod(path + ".part", mode)
    rename(path + ".part", path)
  }

  func unplug(_ number: Int) { unlink("\(nodeDirectory)/video\(number)") }

  func nodes() -> [String] { KernelVideoCalls(nodeDirectory: nodeDirectory).nodes() }

  func open(_ path: String) -> CInt {
    guard let text = SystemFiles.firstLine(of: path) else { return -ENOENT }
    if text == "forbidden" { return -EACCES }
    guard nodesByText[text] != nil else { return -ENOTTY }
    return state.withLock { state in
      let descriptor = 1000 + CInt(state.open.count)
      state.open[descriptor] = text
      return descriptor
    }
  }

  func close(_ descriptor: CInt) -> CInt { 0 }
  func poll(_ descriptor: CInt, events: CShort, milliseconds: CInt) -> CInt { 0 }
  func unmap(_ memory: UnsafeMutableRawBufferPointer) {}
  func nanoseconds() -> Int64 { 0 }

  func map(
    _ descriptor: CInt, length: Int, offset: Int64, error: inout CInt
  ) -> UnsafeMutableRawPointer? {
    error = -ENOMEM
    return nil
  }

  func control(
    _ descriptor: CInt, _ request: UInt, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    state.withLock { state in
      state.requests[request, default: 0] += 1
      guard let text = state.open[descriptor], let node = nodesByText[text] else { return -EBADF }
      switch request {
      case CVideo4Linux_VIDIOC_QUERYCAP: return Self.queryCapabilities(node, argument)
      case CVideo4Linux_VIDIOC_ENUM_FMT: return Self.enumerateFormats(node, argument)
      case CVideo4Linux_VIDIOC_ENUM_FRAMESIZES: return Self.enumerateSizes(node, argument)
      case CVideo4Linux_VIDIOC_ENUM_FRAMEINTERVALS: return Self.enumerateIntervals(node, argument)
      case CVideo4Linux_VIDIOC_G_FMT:
        let format = argument.assumingMemoryBound(to: v4l2_format.self)
        // Both format descriptions begin with a width and a height.
        format.pointee.fmt.pix.width = UInt32(node.inForce.width)
        format.pointee.fmt.pix.height = UInt32(node.inForce.height)
        return 0
      default: return inputControl(&state, text, node, request, argument)
      }
    }
  }

  private func inputControl(
    _ state: inout State, _ text: String, _ node: Node, _ request: UInt,
    _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    guard !node.inputs.isEmpty else { return -ENOTTY }
    let current = state.inputs[text, default: 0]
    let input = node.inputs[current]
    let timings = argument.assumingMemoryBound(to: v4l2_dv_timings.self)
    switch request {
    case CVideo4Linux_VIDIOC_ENUMINPUT:
      let entry = argument.assumingMemoryBound(to: v4l2_input.self)
      guard Int(entry.pointee.index) < node.inputs.count else { return -EINVAL }
      let listed = node.inputs[Int(entry.pointee.index)]
      withUnsafeMutableBytes(of: &entry.pointee.name) { $0.copyBytes(from: listed.name.utf8) }
      entry.pointee.type = UInt32(V4L2_INPUT_TYPE_CAMERA)
      entry.pointee.capabilities =
        (listed.timings != nil ? UInt32(V4L2_IN_CAP_DV_TIMINGS) : 0)
        | (listed.standard != 0 ? UInt32(V4L2_IN_CAP_STD) : 0)
    case CVideo4Linux_VIDIOC_G_INPUT:
      argument.assumingMemoryBound(to: CInt.self).pointee = CInt(current)
    case CVideo4Linux_VIDIOC_S_INPUT:
      state.inputs[text] = Int(argument.assumingMemoryBound(to: CInt.self).pointee)
    case CVideo4Linux_VIDIOC_G_STD:
      guard input.standard != 0 else { return -ENODATA }
      argument.assumingMemoryBound(to: UInt64.self).pointee = input.standard
    case CVideo4Linux_VIDIOC_G_DV_TIMINGS:
      guard let inForce = state.set[input.name] ?? input.timings else { return -ENODATA }
      timings.pointee = inForce.driversOwn
    case CVideo4Linux_VIDIOC_S_DV_TIMINGS:
      guard input.timings != nil, let wanted = DriverTimings(timings.pointee) else {
        return -ENODATA
      }
      state.set[input.name] = wanted
    case CVideo4Linux_VIDIOC_QUERY_DV_TIMINGS:
      guard input.timings != nil else { return -ENODATA }
      guard let detected = input.detected else { return -input.detectionError }
      timings.pointee = detected.driversOwn
    case CVideo4Linux_VIDIOC_ENUM_DV_TIMINGS:
      let entry = argument.assumingMemoryBound(to: v4l2_enum_dv_timings.self)
      guard entry.pointee.index == 0, let only = input.detected else { return -EINVAL }
      entry.pointee.timings = only.driversOwn
    default: return -ENOTTY
    }
    return 0
  }

  private static func queryCapabilities(_ node: Node, _ argument: UnsafeMutableRawPointer) -> CInt {
    let answer = argument.assumingMemoryBound(to: v4l2_capability.self)
    withUnsafeMutableBytes(of: &answer.pointee.card) { $0.copyBytes(from: node.card.utf8) }
    withUnsafeMutableBytes(of: &answer.pointee.driver) { $0.copyBytes(from: "stub".utf8) }
    withUnsafeMutableBytes(of: &answer.pointee.bus_info) { $0.copyBytes(from: node.card.utf8) }
    answer.pointee.device_caps = node.capabilities
    // The field `capabilities` covers all nodes of a device, and `device_caps` only this node.
    answer.pointee.capabilities = UInt32(V4L2_CAP_DEVICE_CAPS) | 0x00ff_ffff
    return 0
  }

  private static func enumerateFormats(_ node: Node, _ argument: UnsafeMutableRawPointer) -> CInt {
    let entry = argument.assumingMemoryBound(to: v4l2_fmtdesc.self)
    guard entry.pointee.type == kind(node).type, Int(entry.pointee.index) < node.rows.count
    else { return -EINVAL }
    let row = node.rows[Int(entry.pointee.index)]
    entry.pointee.pixelformat = FourCC(row.fourcc)?.rawValue ?? 0
    if row.fourcc == "MJPG" { entry.pointee.flags |= UInt32(V4L2_FMT_FLAG_COMPRESSED) }
    if row.isEmulated { entry.pointee.flags |= UInt32(V4L2_FMT_FLAG_EMULATED) }
    return 0
  }

  private static func enumerateSizes(_ node: Node, _ argument: UnsafeMutableRawPointer) -> CInt {
    let entry = argument.assumingMemoryBound(to: v4l2_frmsizeenum.self)
    guard let row = row(entry.pointee.pixel_format, node) else { return -EINVAL }
    let index = Int(entry.pointee.index)
    func write(_ minimum: VideoSize, _ maximum: VideoSize, _ step: VideoSize) -> CInt {
      guard index == 0 else { return -EINVAL }
      entry.pointee.stepwise = v4l2_frmsize_stepwise(
        min_width: UInt32(minimum.width), max_width: UInt32(maximum.width),
        step_width: UInt32(step.width), min_height: UInt32(minimum.height),
        max_height: UInt32(maximum.height), step_height: UInt32(step.height))
      return 0
    }
    switch row.sizes {
    case .discrete(let sizes):
      guard sizes.indices.contains(index) else { return -EINVAL }
      entry.pointee.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
      entry.pointee.discrete = v4l2_frmsize_discrete(
        width: UInt32(sizes[index].width), height: UInt32(sizes[index].height))
      return 0
    case .stepwise(let minimum, let maximum, let step):
      entry.pointee.type = V4L2_FRMSIZE_TYPE_STEPWISE.rawValue
      return write(minimum, maximum, step)
    case .continuous(let minimum, let maximum):
      entry.pointee.type = V4L2_FRMSIZE_TYPE_CONTINUOUS.rawValue
      return write(minimum, maximum, VideoSize(width: 1, height: 1))
    }
  }

  private static func enumerateIntervals(
    _ node: Node, _ argument: UnsafeMutableRawPointer
  ) -> CInt {
    let entry = argument.assumingMemoryBound(to: v4l2_frmivalenum.self)
    guard let row = row(entry.pointee.pixel_format, node) else { return -EINVAL }
    let index = Int(entry.pointee.index)
    func fraction(_ value: DriverFraction) -> v4l2_fract {
      v4l2_fract(numerator: value.numerator, denominator: value.denominator)
    }
    switch row.intervals {
    case .discrete(let intervals):
      guard intervals.indices.contains(index) else { return -EINVAL }
      entry.pointee.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
      entry.pointee.discrete = fraction(intervals[index])
    case .stepwise(let shortest, let longest, let step):
      guard index == 0 else { return -EINVAL }
      entry.pointee.type = V4L2_FRMIVAL_TYPE_STEPWISE.rawValue
      entry.pointee.stepwise = v4l2_frmival_stepwise(
        min: fraction(shortest), max: fraction(longest), step: fraction(step))
    case .continuous(let shortest, let longest):
      guard index == 0 else { return -EINVAL }
      entry.pointee.type = V4L2_FRMIVAL_TYPE_CONTINUOUS.rawValue
      entry.pointee.stepwise = v4l2_frmival_stepwise(
        min: fraction(shortest), max: fraction(longest),
        step: v4l2_fract(numerator: 1, denominator: 1))
    }
    return 0
  }

  private static func row(_ fourcc: UInt32, _ node: Node) -> TableSource.Row? {
    node.rows.first { FourCC($0.fourcc)?.rawValue == fourcc }
  }

  private static func kind(_ node: Node) -> BufferKind {
    node.capabilities & UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE) != 0 ? .multiPlanar : .singlePlanar
  }
}
