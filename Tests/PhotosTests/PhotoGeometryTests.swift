// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankPhotos
@testable import OvercrankSimulatedCameras

/// Photos with rotation, mirroring and zoom of the connection.
struct PhotoGeometryTests {
  private let width = PhotoCamera.width
  private let height = PhotoCamera.height

  /// Takes a photo of the fourth frame.
  private func photo(
    _ format: PhotoFormat, layout: SyntheticDriver.Settings.Layout = .mjpeg, angle: Int = 0,
    isMirrored: Bool = false, zoom: Double = 1
  ) async throws -> Photo {
    let requests = Requests()
    let camera = try PhotoCamera(
      try PhotoCamera.frames(0..<4, layout: layout)
        + [requests.step(PhotoSettings(format: format), at: try PhotoCamera.time(3))]
        + PhotoCamera.frames(4..<6, layout: layout), layout: layout)
    requests.join(camera.output)
    let connection = try #require(camera.session.connections.first)
    connection.automaticallyAdjustsVideoMirroring = false
    try connection.setVideoRotationAngle(angle)
    try connection.setVideoMirrored(isMirrored)
    if zoom != 1 { try camera.input.setVideoZoomFactor(zoom) }
    try await camera.playToEnd()
    let capture = try #require(requests.captures.first)
    #expect(
      capture.resolvedSettings.keepsCompressedData
        == (format == .jpeg && layout == .mjpeg && zoom == 1))
    var photo: Photo?
    for await event in capture.events {
      if case .didFinishProcessingPhoto(_, let result) = event { photo = try result.get() }
    }
    let taken = try #require(photo)
    #expect(capture.resolvedSettings.width == taken.width)
    #expect(capture.resolvedSettings.height == taken.height)
    return taken
  }

  @Test func `Rotating a JPEG photo changes only its Exif orientation`() async throws {
    let original = try #require(
      try PhotoCamera.images(3..<4)[0].withUnsafeBytes { JPEGFile(parsing: $0) })
    for (angle, isMirrored, orientation) in [
      (0, false, nil), (90, false, "6"), (180, false, "3"), (270, false, "8"),
      (0, true, "2"), (90, true, "5"), (180, true, "4"), (270, true, "7"),
    ] {
      let photo = try await photo(.jpeg, angle: angle, isMirrored: isMirrored)
      #expect(photo.exif["Orientation"] == orientation)
      #expect(photo.width == width && photo.height == height)
      let file = try #require(photo.data?.withUnsafeBytes { JPEGFile(parsing: $0) })
      #expect(file.scanData.elementsEqual(original.scanData))
    }
  }

  @Test func `A PNG photo of a rotated connection has rotated pixels`() async throws {
    for angle in [0, 90, 180, 270] {
      for isMirrored in [false, true] {
        let photo = try await photo(.png, angle: angle, isMirrored: isMirrored)
        #expect(photo.exif["Orientation"] == nil)
        let isUpright = angle % 180 == 0
        let size = isUpright ? (width, height) : (height, width)
        try #require(photo.width == size.0 && photo.height == size.1)
        #expect(photo.exif["PixelXDimension"] == "\(size.0)")
        let image = try #require(photo.data).withUnsafeBytes {
          try DecodedImage(
            decoding: $0, codec: "png", width: size.0, height: size.1, bytesPerPixel: 3
          ).bytes
        }
        let number = FrameNumberPattern.read(width: width, height: height) { x, y in
          // The position in the photo that a pixel of the camera must have.
          var position =
            switch angle {
            case 90: (height - 1 - y, x)
            case 180: (width - 1 - x, height - 1 - y)
            case 270: (y, width - 1 - x)
            default: (x, y)
            }
          if isMirrored { position.0 = size.0 - 1 - position.0 }
          return image[(position.1 * size.0 + position.0) * 3]
        }
        #expect(number == 3, "\(angle) degrees")
      }
    }
  }

  @Test(arguments: [SyntheticDriver.Settings.Layout.mjpeg, .yuyv])
  func `A zoomed photo shows the center of the frame at full size`(
    layout: SyntheticDriver.Settings.Layout
  ) async throws {
    func luma(_ zoom: Double) async throws -> [UInt8] {
      let photo = try await photo(.jpeg, layout: layout, zoom: zoom)
      #expect(photo.width == width && photo.height == height)
      return try #require(photo.data).withUnsafeBytes {
        try DecodedImage(decoding: $0, codec: "mjpeg", width: width, height: height).bytes
      }
    }
    let (whole, zoomed) = (try await luma(1), try await luma(2))
    var (crop, same) = (0, 0)
    for y in 8..<height - 8 {
      for x in 8..<width - 8 {
        let pixel = Int(zoomed[y * width + x])
        crop += abs(pixel - Int(whole[(height / 4 + y / 2) * width + width / 4 + x / 2]))
        same += abs(pixel - Int(whole[y * width + x]))
      }
    }
    #expect(4 * crop < same, "\(crop) \(same)")
  }
}
