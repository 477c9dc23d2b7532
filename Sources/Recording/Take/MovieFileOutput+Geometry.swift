// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankMediaCore

extension MovieFileOutput {
  /// The rotation, mirroring and zoom of the connection to the camera.
  func geometry(in session: CaptureSession) -> ConnectionGeometry? {
    session.connections.first { $0.output === self && $0.mediaType == .video }?.geometry
  }
}
