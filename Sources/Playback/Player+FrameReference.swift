// SPDX-License-Identifier: Apache-2.0

package import OvercrankAssets
package import OvercrankMediaCore

extension Player {
  /// A frame of one of the player's assets.
  package struct FrameReference: Sendable {
    package let asset: Asset
    /// The index in presentation order, from 0.
    package let index: Int
  }

  /// The composition time at which the frame on screen begins; without video, the current time.
  package var frameStart: Rational {
    core.perform(wakes: false) { model, now in
      let position = model.position(at: now)
      let shown = model.timeline.presentation(at: position.time, before: position.isBackward)
      return shown?.start ?? position.time
    }
  }

  /// Returns the frame that playback shows at a composition time; nil in a gap.
  package func frameReference(at time: Rational) -> FrameReference? {
    core.perform(wakes: false) { model, _ in
      let timeline = model.timeline
      return timeline.frame(at: time, before: time >= timeline.duration).map {
        FrameReference(asset: timeline.assets[$0.asset].asset, index: $0.frame)
      }
    }
  }
}
