// SPDX-License-Identifier: Apache-2.0

/// A movie file without tracks.
package enum EmptyMovie {
  /// The bytes of a valid MOV file without tracks.
  ///
  /// A recording starts with these bytes, so that readers can open the file before it has a header.
  package static let bytes: [UInt8] = {
    let brand: UInt32 = 0x7174_2020  // "qt  "
    var file = BoxBytes()
    file.box(0x6674_7970) { box in  // ftyp
      for number in [brand, 0x200, brand] { box.append(number) }
    }
    file.box(BoxType.movie) { box in
      box.fullBox(0x6D76_6864, version: 0, flags: 0) { box in  // mvhd
        // The creation time, modification time, timescale, duration, rate and volume of the movie
        // header.
        for number in [0, 0, 1_000_000, 0, 0x1_0000] as [UInt32] { box.append(number) }
        box.append(UInt16(0x100))
        box.append(bytes: Array(repeating: 0, count: 10))
        for number in [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000] as [UInt32] {
          box.append(number)
        }
        box.append(bytes: Array(repeating: 0, count: 24))
        box.append(UInt32(1))
      }
    }
    return file.bytes
  }()
}
