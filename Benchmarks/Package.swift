// swift-tools-version: 6.2
import PackageDescription

// Programs that measure the library itself. A separate package, so that users of the library do not
// build them, and so that they use only its public API.
let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "Overcrank", path: "..")],
  targets: [
    // Retimes audio with the library alone, for the benchmarks Pitch and Onsets.
    .executableTarget(
      name: "RetimeAudio", dependencies: [.product(name: "Overcrank", package: "Overcrank")],
      path: "RetimeAudio"),
    // Plays a clip with the library alone, for the benchmark Playback.
    .executableTarget(
      name: "PlaybackTiming", dependencies: [.product(name: "Overcrank", package: "Overcrank")],
      path: "PlaybackTiming"),
    // Uploads frames as textures, for the benchmark Preview.
    .executableTarget(
      name: "TextureTiming",
      dependencies: [
        .product(name: "Overcrank", package: "Overcrank"),
        .product(name: "OvercrankTextures", package: "Overcrank"),
      ],
      path: "TextureTiming"),
    // Reads codes, for the benchmark Codes.
    .executableTarget(
      name: "CodeTiming",
      dependencies: [
        .product(name: "Overcrank", package: "Overcrank"),
        .product(name: "OvercrankRecognition", package: "Overcrank"),
      ],
      path: "CodeTiming"),
    // Encodes photos, for the benchmark Photos.
    .executableTarget(
      name: "EncodePhotos", dependencies: [.product(name: "Overcrank", package: "Overcrank")],
      path: "EncodePhotos"),
  ],
  swiftLanguageModes: [.v6]
)
