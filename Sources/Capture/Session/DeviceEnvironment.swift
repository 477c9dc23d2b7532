// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankV4L2

/// Where devices are reached: kept by what opens one again on another thread than its own.
package struct DeviceEnvironment: Sendable {
  private let cameras: any VideoSystemCalls
  private let microphones: any ALSACalls

  /// Where they are reached from here.
  package init() {
    cameras = DeviceSystem.calls
    microphones = ALSASystem.calls
  }

  /// Reaches devices there during the call.
  package func perform<Outcome, Failure: Error>(
    _ body: () throws(Failure) -> Outcome
  ) throws(Failure) -> Outcome {
    let result = DeviceSystem.$calls.withValue(cameras) {
      ALSASystem.$calls.withValue(microphones) {
        Result { () throws(Failure) in try body() }
      }
    }
    return try result.get()
  }

  /// The addresses of the nodes that are there now; none of them is opened.
  func addresses() -> Set<String> {
    let microphones = microphones.nodes().compactMap(AudioNode.init(named:)).map(\.hardwareName)
    return Set(cameras.nodes() + microphones)
  }
}
