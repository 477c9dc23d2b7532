// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The choice of whether refreshes between captured frames show the last frame again or a
/// synthesized frame.
enum PlaybackSampling: String, CaseIterable, ExpressibleByArgument {
  case hold
  case flow
  case flowFast = "flow-fast"

  /// The sampling method for the player's settings.
  var sampling: FrameSampling {
    switch self {
    case .hold: .hold
    case .flow: .flow
    case .flowFast: .flowFast
    }
  }
}
