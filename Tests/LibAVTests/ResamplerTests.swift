// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import Testing

struct ResamplerTests {
  @Test func `The resampler rejects invalid sample rates or channel counts`() throws {
    for (input, output, channels) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 65), (262_144, 1, 1)]
    {
      let error = #expect(throws: CallFailure.self) {
        _ = try Resampler(
          inputRate: Int32(input), outputRate: Int32(output), channelCount: channels)
      }
      #expect(error?.description == "could not set up a change of sampling rate: Invalid argument")
    }
    var resampler = try Resampler(inputRate: 1, outputRate: 2, channelCount: 2)
    for input in [[], [[]], [[0], []]] as [[[Float]]] {
      var refused = false
      do throws(CallFailure) { _ = try resampler.convert(input) } catch { refused = true }
      #expect(refused)
    }
  }
}
