// swift-tools-version: 6.2
import PackageDescription

// Targets stand in the order in which media flows through them, and each may import only
// what it declares here: C libraries, then the currency of time, then the bridges to C, then
// the pipeline. Tests/check-imports.py fails on an import that points against the flow.
let package = Package(
  name: "Overcrank",
  products: [
    .library(name: "Overcrank", targets: ["Overcrank"]),
    .executable(name: "slowmo", targets: ["slowmo"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/attaswift/BigInt", from: "6.0.1"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
  ],
  targets: [
    // C, at the bottom: only what Swift cannot import by itself.
    .systemLibrary(
      name: "CVideo4Linux", pkgConfig: "libv4l2", providers: [.apt(["libv4l-dev"])]),
    .systemLibrary(
      name: "CFFmpeg",
      pkgConfig: "libavformat libavcodec libswscale libswresample libavutil",
      providers: [
        .apt(["libavformat-dev", "libavcodec-dev", "libswscale-dev", "libswresample-dev"])
      ]),
    .systemLibrary(
      name: "CRubberBand", pkgConfig: "rubberband", providers: [.apt(["librubberband-dev"])]),

    .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
    .systemLibrary(name: "CLinuxSystem"),

    // Currency: every room below may import it.
    .target(name: "MediaTiming"),
    // Files and their names, as the system has them.
    .target(name: "LinuxSystem", dependencies: ["CLinuxSystem"]),

    // Bridges: one owner for each C handle.
    .target(name: "V4L2", dependencies: ["CVideo4Linux", "LinuxSystem", "MediaTiming"]),
    .target(name: "ALSA", dependencies: ["CALSA", "V4L2"]),
    .target(name: "LibAV", dependencies: ["CFFmpeg", "LinuxSystem", "MediaTiming"]),

    // The way of a frame.
    .target(name: "FormatDiscovery", dependencies: ["V4L2", "ALSA", "LibAV", "MediaTiming"]),
    .target(
      name: "Capture",
      dependencies: [
        "FormatDiscovery", "V4L2", "ALSA", "LibAV", "MediaTiming",
        .product(name: "Histogram", package: "hdrhistogram-swift"),
      ]),
    .target(
      name: "Recording",
      dependencies: ["Capture", "FormatDiscovery", "LibAV", "LinuxSystem", "MediaTiming"]),
    .target(name: "Assets", dependencies: ["LibAV", "LinuxSystem", "MediaTiming"]),
    .target(name: "Editing", dependencies: ["LinuxSystem", "MediaTiming"]),
    .target(name: "Retiming", dependencies: ["LibAV", "CRubberBand", "MediaTiming"]),
    .target(
      name: "Export",
      dependencies: ["Editing", "Assets", "Retiming", "LibAV", "LinuxSystem", "MediaTiming"]),

    // The faces: one import for library users, one command for everyone else.
    .target(
      name: "Overcrank",
      dependencies: [
        "MediaTiming", "FormatDiscovery", "Capture", "Recording", "Assets", "Editing", "Retiming",
        "Export",
      ]),
    .executableTarget(
      name: "slowmo",
      dependencies: [
        "Overcrank", "LinuxSystem",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Subprocess", package: "swift-subprocess"),
      ],
      exclude: ["Schemas"]),

    .testTarget(name: "LinuxSystemTests", dependencies: ["LinuxSystem", "TestSupport"]),
    .testTarget(
      name: "MediaTimingTests",
      dependencies: ["MediaTiming", .product(name: "BigInt", package: "BigInt")]),
    .testTarget(
      name: "V4L2Tests", dependencies: ["V4L2", "CVideo4Linux", "MediaTiming", "TestSupport"]),
    .testTarget(
      name: "FormatDiscoveryTests",
      dependencies: [
        "FormatDiscovery", "V4L2", "ALSA", "CVideo4Linux", "CFFmpeg", "MediaTiming", "TestSupport",
      ]),
    .executableTarget(
      name: "RecordAndSlow", dependencies: ["Overcrank"], path: "Samples/RecordAndSlow"),
    .executableTarget(
      name: "FramesToPNG", dependencies: ["Overcrank"], path: "Samples/FramesToPNG"),
    .executableTarget(name: "SloPoke", dependencies: ["Overcrank"], path: "Samples/SloPoke"),

    // The library's sound by itself, for Benchmarks/pitch.sh.
    .executableTarget(
      name: "RetimeSound", dependencies: ["Retiming", "MediaTiming"],
      path: "Benchmarks/RetimeSound"),

    // A driver that is a program: cameras of many kinds with faults on demand, and a log of what
    // really became of each frame.
    .target(
      name: "FakeVideo4Linux", path: "Tests/FakeVideo4Linux",
      exclude: ["preload", "selftest", "build.sh", "check.sh", "README.md"]),
    // Long takes of it, judged against that log; run by Tests/run.sh.
    .executableTarget(
      name: "LedgerSoak",
      dependencies: ["Capture", "FormatDiscovery", "V4L2", "MediaTiming", "TestSupport"],
      path: "Tests/LedgerSoak"),
    // Counts requests for memory by thread, and shows that capturing makes none; run by
    // Tests/run.sh.
    .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
    .executableTarget(
      name: "AllocationCheck",
      dependencies: [
        "AllocationCounter", "Recording", "Capture", "FormatDiscovery", "V4L2", "MediaTiming",
        "TestSupport",
      ],
      path: "Tests/AllocationCheck"),
    // Damaged files and wild plans, thousands of them; run by Tests/run.sh.
    .executableTarget(
      name: "FuzzSoak",
      dependencies: [
        "Assets", "Editing", "Export", "LibAV", "MediaTiming", "Retiming", "TestSupport",
      ],
      path: "Tests/FuzzSoak"),
    // What tests share: makers of movies, readers of painted numbers, and Subprocess to run the
    // command and its judges (ffprobe, v4l2-ctl).
    .target(
      name: "TestSupport",
      dependencies: [
        "ALSA", "Assets", "Capture", "CVideo4Linux", "FakeVideo4Linux", "LibAV", "MediaTiming",
        "V4L2",
        .product(name: "Subprocess", package: "swift-subprocess"),
      ],
      path: "Tests/TestSupport"),
    .testTarget(
      name: "CaptureTests",
      dependencies: [
        "Capture", "FormatDiscovery", "ALSA", "LibAV", "MediaTiming", "TestSupport", "V4L2",
      ]),
    .testTarget(
      name: "RecordingTests",
      dependencies: [
        "Recording", "Capture", "FormatDiscovery", "Assets", "LibAV", "LinuxSystem", "MediaTiming",
        "TestSupport",
      ]),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "TestSupport", "slowmo", "Assets", "Capture", "Editing", "Export", "FormatDiscovery",
        "LibAV", "MediaTiming", "Recording", "Retiming",
      ]),
    .testTarget(
      name: "VividTests",
      dependencies: [
        "TestSupport", "Capture", "FormatDiscovery", "V4L2", "CVideo4Linux", "MediaTiming",
      ]),
    .testTarget(
      name: "AssetsTests",
      dependencies: ["Assets", "FormatDiscovery", "LibAV", "MediaTiming", "TestSupport"]),
    .testTarget(
      name: "ExportTests",
      dependencies: [
        "Export", "Editing", "Retiming", "Assets", "LibAV", "MediaTiming", "TestSupport",
      ]),
    .testTarget(name: "EditingTests", dependencies: ["Editing", "MediaTiming"]),
    .testTarget(name: "RetimingTests", dependencies: ["Retiming", "LibAV", "MediaTiming"]),
  ],
  swiftLanguageModes: [.v6]
)

// Tests/sanitize.sh builds the tests of the way of a frame alone, once for each sanitizer.
if Context.environment["OVERCRANK_TESTS"] == "capture" {
  let kept = ["V4L2Tests", "FormatDiscoveryTests", "CaptureTests", "RecordingTests"]
  package.targets.removeAll { $0.type == .test && !kept.contains($0.name) }
}

for target in package.targets where target.type != .system {
  target.swiftSettings = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
  ]
}
