// SPDX-License-Identifier: Apache-2.0

package import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Testing

/// A session with random cameras, outputs and connections, and a model of it.
///
/// The cameras have frames of different widths, by which the test knows whose frame an output gets.
package struct RandomSessionGraph {
  /// The connections that a session must have, computed in the simplest way.
  private struct Model {
    struct Link: Hashable {
      let input: Int
      let output: Int
    }
    var inputs: [Int] = []
    var outputs: [Int] = []
    var links: Set<Link> = []
    /// The links and outputs at the time at which an input was removed in this configuration.
    var removals: [(links: Set<Link>, outputs: [Int])] = []

    mutating func connect(_ input: Int, _ output: Int) {
      if !links.contains(where: { $0.output == output }) {
        links.insert(Link(input: input, output: output))
      }
    }

    mutating func addInput(_ input: Int, connects: Bool) {
      inputs.append(input)
      guard connects else { return }
      guard !removals.isEmpty else { return outputs.forEach { connect(input, $0) } }
      let removal = removals.removeFirst()
      for link in removal.links where outputs.contains(link.output) { connect(input, link.output) }
      for output in outputs where !removal.outputs.contains(output) { connect(input, output) }
    }

    mutating func addOutput(_ output: Int, connects: Bool) {
      outputs.append(output)
      if connects, let first = inputs.first { connect(first, output) }
    }

    mutating func removeInput(_ input: Int) {
      removals.append((links.filter { $0.input == input }, outputs))
      inputs.removeAll { $0 == input }
      links = links.filter { $0.input != input }
    }

    mutating func removeOutput(_ output: Int) {
      outputs.removeAll { $0 == output }
      links = links.filter { $0.output != output }
    }
  }

  private let cameras: [DeviceInput]
  private let outputs = (0..<5).map { _ in VideoDataOutput() }
  private let session = CaptureSession()
  private let name: String
  private var random: SeededGenerator
  private var model = Model()

  package init(cameras: [DeviceInput], seed: UInt64) {
    self.cameras = cameras
    random = SeededGenerator(seed: seed)
    name = "seed \(seed)"
  }

  /// Changes the session at random, and checks after each change that frames flow where the model
  /// says.
  package mutating func run() async throws {
    for step in 0..<12 {
      let isCommitted = Bool.random(using: &random)
      if isCommitted { session.beginConfiguration() }
      for _ in 0..<(isCommitted ? Int.random(in: 1...5, using: &random) : 1) {
        try change()
      }
      if isCommitted { try await session.commitConfiguration() }
      model.removals = []
      let links = Set(
        try session.connections.map { connection in
          Model.Link(
            input: try #require(cameras.firstIndex { $0 === connection.input }),
            output: try #require(outputs.firstIndex { $0 === connection.output }))
        })
      #expect(links == model.links, "\(name), step \(step)")
      if step == 3, !model.inputs.isEmpty { try await session.startRunning() }
      guard session.isRunning else { continue }
      for link in model.links {
        let output = outputs[link.output]
        // A frame from before the change may still wait.
        let sample = await output.frames.first {
          $0.formatDescription.width == cameras[link.input].format.width
        }
        #expect(sample != nil, "\(name), step \(step)")
      }
      for output in model.outputs where !model.links.contains(where: { $0.output == output }) {
        let offered = outputs[output].ledger.offered
        for link in model.links.prefix(1) {
          var iterator = outputs[link.output].frames.makeAsyncIterator()
          for _ in 0..<3 { _ = try await iterator.next() }
        }
        #expect(outputs[output].ledger.offered == offered, "\(name), step \(step)")
      }
    }
    await session.stopRunning()
    for output in outputs { #expect(output.ledger.isBalanced) }
  }

  private mutating func change() throws {
    let (input, output) = (
      Int.random(in: cameras.indices, using: &random),
      Int.random(in: outputs.indices, using: &random)
    )
    let connects = Bool.random(using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1:
      guard !model.inputs.contains(input) else { return }
      try connects
        ? session.addInput(cameras[input]) : session.addInputWithNoConnections(cameras[input])
      model.addInput(input, connects: connects)
    case 2:
      guard !model.outputs.contains(output) else { return }
      try connects
        ? session.addOutput(outputs[output]) : session.addOutputWithNoConnections(outputs[output])
      model.addOutput(output, connects: connects)
    case 3:
      let connection = try CaptureConnection(
        inputPorts: cameras[input].ports(for: .video), output: outputs[output])
      let isFree =
        model.inputs.contains(input) && model.outputs.contains(output)
        && !model.links.contains { $0.output == output }
      #expect(session.canAddConnection(connection) == isFree)
      guard isFree else { return }
      try session.addConnection(connection)
      model.links.insert(.init(input: input, output: output))
    case 4 where model.inputs.contains(input):
      session.removeInput(cameras[input])
      model.removeInput(input)
    case 5 where model.outputs.contains(output):
      session.removeOutput(outputs[output])
      model.removeOutput(output)
    default: break
    }
  }
}
