// swift-tools-version: 6.2
import PackageDescription

// Programs that measure the library by itself. A package of its own: who uses the library builds
// none of them, and they use no more of it than its users can.
let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "Overcrank", path: "..")],
  targets: [
    // The audio of the library alone, for Pitch and Onsets.
    .executableTarget(
      name: "RetimeAudio", dependencies: [.product(name: "Overcrank", package: "Overcrank")],
      path: "RetimeAudio")
  ],
  swiftLanguageModes: [.v6]
)
