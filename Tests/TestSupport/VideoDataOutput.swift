// SPDX-License-Identifier: Apache-2.0

package import OvercrankCapture

extension VideoDataOutput {
  /// Takes the next frames of a running session.
  package func samples(_ count: Int) async -> [SampleBuffer] {
    var samples: [SampleBuffer] = []
    for await sample in frames {
      samples.append(sample)
      if samples.count == count { break }
    }
    return samples
  }
}
