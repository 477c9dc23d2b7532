// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The choice between repeated and synthesized frames for refreshes between captured frames.
enum PlaybackSampling: String, CaseIterable, ExpressibleByArgument {
  case hold
  case flow
  case flowFast = "flow-fast"

  /// The sampling of the player's settings.
  var sampling: FrameSampling {
    switch self {
    case .hold: .hold
    case .flow: .flow
    case .flowFast: .flowFast
    }
  }
}
