// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
import OvercrankV4L2

/// The system calls that open devices: the real ones, or those of simulated devices.
///
/// A test replaces the system calls for its own Swift task. This value passes them on to other
/// threads that reopen devices.
package struct DeviceEnvironment: Sendable {
  private let cameras: any VideoSystemCalls
  private let microphones: any ALSACalls

  /// Saves the system calls that are set for the current task.
  package init() {
    cameras = DeviceSystem.calls
    microphones = ALSASystem.calls
  }

  /// Runs a closure with the saved system calls.
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

  /// The addresses of the device nodes that are present.
  ///
  /// No node is opened.
  func addresses() -> Set<String> {
    let microphones = microphones.nodes().compactMap(AudioNode.init(named:)).map(\.hardwareName)
    return Set(cameras.nodes() + microphones)
  }

  /// Whether a device node is present, even if lists of devices do not contain its path.
  ///
  /// No node is opened.
  func isPresent(_ address: String) -> Bool {
    addresses().contains(address) || address.hasPrefix("/") && SystemFiles.exists(address)
  }
}
