// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
import OvercrankV4L2

/// The system calls through which devices are opened.
///
/// Tests replace the system calls for a task. This value carries them to other threads, on which
/// devices are reopened.
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

  /// Whether a device node is present, which may have a name that no list contains.
  ///
  /// No node is opened.
  func isPresent(_ address: String) -> Bool {
    addresses().contains(address) || address.hasPrefix("/") && SystemFiles.exists(address)
  }
}
