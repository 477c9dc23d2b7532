// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// The faces and codes in the newest frame of a preview that was searched.
///
/// Only the main thread uses it.
final class PreviewObjects {
  /// A kind of objects, by the name that ``ObjectSelection`` has for it.
  enum Kind: String { case faces, codes }

  /// The newest objects, which the thread of the search stores.
  private final class Inbox: Sendable { let objects = Mutex<[RecognizedObject]>([]) }

  private let session: CaptureSession
  private let recognition: (any ObjectRecognition)?
  private let inbox = Inbox()
  private var search: (any ObjectSearch)?
  private var wantedKinds: Set<Kind> = []

  /// The greatest number of characters of a code's text that are shown.
  private static let labelLength = 40

  init(_ session: CaptureSession, _ recognition: (any ObjectRecognition)?) {
    (self.session, self.recognition) = (session, recognition)
  }

  /// The kinds of objects that are searched for.
  var kinds: Set<Kind> { wantedKinds }

  /// Begins or ends the search for a kind of objects.
  ///
  /// - Throws: `MediaError` with `.missingComponent` if a library is not installed, and as
  ///   ``ObjectRecognition`` does.
  func toggle(_ kind: Kind) throws(MediaError) {
    guard let recognition else {
      throw MediaError(.missingComponent, "the search for \(kind.rawValue) needs slowmo-full")
    }
    let wanted = wantedKinds.symmetricDifference([kind])
    let types = wanted.map(\.rawValue)
    if let search {
      try search.setTypes(types)
    } else {
      search = try recognition.search(session, ObjectSelection(types: types)) { [inbox] found in
        inbox.objects.withLock { $0 = found }
      }
    }
    wantedKinds = wanted
  }

  /// Returns the outlines of the objects in a view.
  func overlays(_ geometry: PreviewGeometry) -> [ViewOverlay] {
    guard !kinds.isEmpty else { return [] }
    return inbox.objects.withLock { $0 }.compactMap { object in
      let isFace = object.faceID != nil
      guard kinds.contains(isFace ? .faces : .codes) else { return nil }
      let text = object.text.map { ": \($0.prefix(Self.labelLength))" } ?? ""
      return ViewOverlay(
        object.corners.map(geometry.viewPoint), isClosed: true,
        label: object.faceID.map { "face \($0)" } ?? object.type + text)
    }
  }
}
