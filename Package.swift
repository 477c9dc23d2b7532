// swift-tools-version: 6.2
import PackageDescription

extension Target.Dependency {
  static let algorithms = product(name: "Algorithms", package: "swift-algorithms")
  static let deque = product(name: "DequeModule", package: "swift-collections")
  static let logging = product(name: "Logging", package: "swift-log")
  static let systemPackage = product(name: "SystemPackage", package: "swift-system")
}

extension Target {
  /// A module of the library: its folder in Sources has its name, and its target the prefix that
  /// keeps it apart from modules of other packages.
  static func module(
    _ name: String, on modules: [String] = [], with others: [Target.Dependency] = []
  ) -> Target {
    .target(
      name: "Overcrank\(name)",
      dependencies: modules.map { .target(name: "Overcrank\($0)") } + others,
      path: "Sources/\(name)")
  }
}

// Targets stand in the order in which media flows through them, and each may import only
// what it declares here: C libraries, then values of time, then the bridges to C, then the
// pipeline. Tests/check-imports.py fails on an import that points against the flow.
let package = Package(
  name: "Overcrank",
  products: [
    .library(name: "Overcrank", targets: ["Overcrank"]),
    // Windows; needs SDL2.
    .library(name: "OvercrankDisplay", targets: ["OvercrankDisplay"]),
    // HEIC photos; needs libheif.
    .library(name: "OvercrankHEIF", targets: ["OvercrankHEIF"]),
    // Codes and faces in frames; loads zxing-cpp and the face detector of dlib at run time, which
    // Samples/install-zxing.sh and Samples/install-faces.sh install.
    .library(name: "OvercrankRecognition", targets: ["OvercrankRecognition"]),
    // Deprecated: `Overcrank` has fonts.
    .library(name: "OvercrankFonts", targets: ["OvercrankFonts"]),
    // Frames as textures; needs EGL and OpenGL ES 3.
    .library(name: "OvercrankTextures", targets: ["OvercrankTextures"]),
    .executable(name: "slowmo", targets: ["slowmo"]),
    .executable(name: "slowmo-full", targets: ["slowmo-full"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-algorithms", from: "1.2.1"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/attaswift/BigInt", from: "6.0.1"),
    // Without its Foundation trait, which links ICU.
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
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
    .systemLibrary(
      name: "CTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
    .systemLibrary(name: "CLinuxSystem"),
    // Motion between frames: SIMD instructions that are selected at run time.
    .target(name: "COpticalFlow"),
    // Keeps libraries from waiting forever and from printing.
    .target(name: "CLibraryGuard"),
    // Optional libraries have no pkgConfig, so that a build of other products does not ask for them.
    .systemLibrary(name: "CSDL2", providers: [.apt(["libsdl2-dev"])]),
    .systemLibrary(name: "CHEIF", providers: [.apt(["libheif-dev"])]),
    // Headers of libraries that no distribution has: they are loaded at run time.
    .systemLibrary(name: "CCodeReader"),
    .systemLibrary(name: "CFaceDetector"),
    .systemLibrary(name: "CGLES", providers: [.apt(["libegl-dev", "libgles-dev"])]),

    // Values of time, which every module below may import.
    .module("MediaCore", with: [.logging]),
    // Points, sizes, rectangles, colors, luma and the dot font.
    .module("Raster"),
    // Files, threads and clocks, as the system has them.
    .module("LinuxSystem", on: ["MediaCore"], with: ["CLinuxSystem", .deque, .systemPackage]),
    // What became of each frame: values only.
    .module("FrameAccounting", on: ["MediaCore"], with: [.deque]),
    // Movie files to the byte: boxes, fragments, journals, NAL units.
    .module(
      "MovieFormat", on: ["FrameAccounting", "LinuxSystem", "MediaCore"],
      with: [.algorithms, .deque]),

    // Bridges: one owner for each C handle.
    .module("V4L2", on: ["LinuxSystem", "MediaCore", "Raster"], with: ["CVideo4Linux"]),
    .module("ALSA", on: ["LinuxSystem", "MediaCore"], with: ["CALSA"]),
    .module(
      "LibAV", on: ["LinuxSystem", "MediaCore", "MovieFormat", "Raster"], with: ["CFFmpeg"]),
    .module("TurboJPEG", with: ["CTurboJPEG"]),

    // The way of a frame.
    .module(
      "DeviceDiscovery",
      on: ["V4L2", "ALSA", "LibAV", "LinuxSystem", "MediaCore", "MovieFormat", "Raster"],
      with: [.systemPackage]),
    // Focus, exposure, white balance, zoom and light, and what keeps the frame rate.
    .module(
      "CameraControls", on: ["DeviceDiscovery", "V4L2", "LinuxSystem", "MediaCore", "Raster"]),
    // The synthetic camera, and a file as a camera.
    .module(
      "SimulatedCameras",
      on: ["DeviceDiscovery", "FrameAccounting", "LibAV", "LinuxSystem", "MediaCore", "Raster"],
      with: [.deque]),
    .module(
      "Capture",
      on: [
        "CameraControls", "SimulatedCameras", "DeviceDiscovery", "FrameAccounting", "V4L2", "ALSA",
        "LibAV", "LinuxSystem", "MediaCore", "MovieFormat", "Raster",
      ],
      with: [
        .deque, .logging, .product(name: "Histogram", package: "hdrhistogram-swift"),
      ]),
    // What a view shows of a running camera, without a window.
    .module(
      "Preview",
      on: ["Capture", "DeviceDiscovery", "FrameAccounting", "LibAV", "MediaCore", "Raster"]),
    .module(
      "Recording",
      on: [
        "CameraControls", "SimulatedCameras", "Capture", "DeviceDiscovery", "FrameAccounting",
        "LibAV", "LinuxSystem", "MediaCore", "MovieFormat",
      ], with: [.algorithms, .logging]),
    .module(
      "Photos",
      on: [
        "CameraControls", "Capture", "DeviceDiscovery", "FrameAccounting", "LibAV", "LinuxSystem",
        "MediaCore", "MovieFormat", "Recording", "TurboJPEG",
      ]),
    .module(
      "Assets", on: ["FrameAccounting", "LibAV", "LinuxSystem", "MediaCore", "MovieFormat"],
      with: [.algorithms]),
    .module("Editing", on: ["LinuxSystem", "MediaCore"], with: [.algorithms]),
    .module(
      "Retiming", on: ["LibAV", "MediaCore"], with: ["COpticalFlow", "CRubberBand", .deque]),
    .module(
      "Export",
      on: [
        "Editing", "Assets", "Retiming", "LibAV", "LinuxSystem", "MediaCore", "MovieFormat",
        "Raster",
      ], with: [.algorithms, .logging]),
    // Measurements on movies.
    .module(
      "Analysis",
      on: [
        "Assets", "Editing", "Export", "LibAV", "LinuxSystem", "MediaCore", "MovieFormat", "Raster",
        "Retiming",
      ]),
    // The player without a window.
    .module(
      "Playback",
      on: [
        "ALSA", "Editing", "Assets", "Retiming", "LibAV", "LinuxSystem", "MediaCore",
      ], with: [.algorithms]),

    // What people see: windows.
    .module(
      "Display",
      on: [
        "Assets", "Editing", "LibAV", "LinuxSystem", "MediaCore", "Playback", "Preview", "Raster",
      ], with: ["CSDL2"]),

    // Photos in a format with a library of its own.
    .module("HEIF", on: ["MediaCore", "Photos"], with: ["CHEIF"]),
    // A name for `Export`, for programs that import it for its fonts.
    .module("Fonts", on: ["Export"]),
    // What is in frames: machine-readable codes and faces.
    .module(
      "Recognition",
      on: [
        "Assets", "CameraControls", "Capture", "DeviceDiscovery", "FrameAccounting", "LibAV",
        "LinuxSystem", "MediaCore", "Preview", "Raster",
      ],
      with: ["CCodeReader", "CFaceDetector"]),
    // Frames for programs that draw with a GPU: textures.
    .module("Textures", on: ["Capture", "LibAV", "MediaCore", "V4L2"], with: ["CGLES"]),

    // The faces: one import for library users, one command for everyone else.
    .target(
      name: "Overcrank",
      dependencies: [
        "OvercrankMediaCore", "OvercrankDeviceDiscovery", "OvercrankFrameAccounting",
        "OvercrankRaster", "OvercrankCameraControls", "OvercrankCapture", "OvercrankPreview",
        "OvercrankRecording", "OvercrankPhotos", "OvercrankAssets", "OvercrankEditing",
        "OvercrankRetiming", "OvercrankExport", "OvercrankAnalysis",
        "OvercrankPlayback",
      ]),
    // Every verb, option, help text and schema; two programs over it. `slowmo` needs the core alone.
    // `slowmo-full` also links what has optional libraries.
    .target(
      name: "SlowmoCommands",
      dependencies: [
        "CLibraryGuard", "Overcrank", "OvercrankLinuxSystem",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Subprocess", package: "swift-subprocess"), .systemPackage,
      ],
      path: "Sources/slowmo", exclude: ["Schemas"]),
    .executableTarget(
      name: "slowmo", dependencies: ["SlowmoCommands"], path: "Sources/slowmo-core"),
    .executableTarget(
      name: "slowmo-full",
      dependencies: [
        "Overcrank", "OvercrankDisplay", "OvercrankHEIF", "OvercrankRecognition", "SlowmoCommands",
      ],
      path: "Sources/slowmo-full"),

    .testTarget(
      name: "LinuxSystemTests",
      dependencies: [
        "OvercrankLinuxSystem", "TestSupport", .systemPackage, "OvercrankMediaCore",
      ]),
    .testTarget(
      name: "MediaCoreTests",
      dependencies: [
        "TestSupport", "OvercrankMediaCore", .product(name: "BigInt", package: "BigInt"),
      ]),
    .testTarget(
      name: "V4L2Tests",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankV4L2", "CVideo4Linux", "OvercrankMediaCore",
        "TestSupport", "OvercrankRaster",
      ]),
    .testTarget(
      name: "ALSATests",
      dependencies: [
        "OvercrankALSA", "TestSupport", "OvercrankMediaCore",
      ]),
    .testTarget(
      name: "LibAVTests",
      dependencies: [
        "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankRaster",
        "CFFmpeg",
      ]),
    .testTarget(
      name: "DeviceDiscoveryTests",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankDeviceDiscovery", "OvercrankV4L2", "OvercrankALSA",
        "CVideo4Linux", "CFFmpeg", "OvercrankMediaCore", "TestSupport", "OvercrankRaster",
      ]),
    // A driver that is a program: cameras of many kinds with faults on demand, and a log of what
    // really became of each frame.
    .target(
      name: "FakeVideo4Linux", path: "Tests/Tools/FakeVideo4Linux",
      exclude: ["preload", "selftest", "build.sh", "check.sh", "README.md"]),
    // What tests share: makers of movies, readers of painted numbers, and Subprocess to run the
    // command and its judges (ffprobe, v4l2-ctl).
    .target(
      name: "TestSupport",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankFrameAccounting", "OvercrankALSA", "OvercrankAssets",
        "OvercrankCapture", "OvercrankDeviceDiscovery", "CVideo4Linux", "FakeVideo4Linux",
        "OvercrankLibAV",
        "OvercrankMediaCore", "OvercrankMovieFormat", "OvercrankPlayback", "OvercrankV4L2",
        .product(name: "Subprocess", package: "swift-subprocess"), "OvercrankRaster",
        "OvercrankSimulatedCameras",
      ],
      path: "Tests/TestSupport"),
    .testTarget(
      name: "MovieFormatTests",
      dependencies: [
        "OvercrankFrameAccounting", "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore",
        "OvercrankMovieFormat", "OvercrankRecording", "TestSupport",
      ]),
    .testTarget(
      name: "FrameAccountingTests",
      dependencies: ["OvercrankFrameAccounting", "OvercrankMediaCore", "TestSupport"]),
    .testTarget(
      name: "CaptureTests",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankFrameAccounting", "OvercrankCapture",
        "OvercrankDeviceDiscovery", "OvercrankALSA", "OvercrankLibAV", "OvercrankMediaCore",
        "TestSupport", "OvercrankV4L2", "OvercrankCameraControls", "OvercrankPreview",
        "OvercrankRaster", "OvercrankRecording", "OvercrankSimulatedCameras",
      ]),
    .testTarget(
      name: "PreviewTests",
      dependencies: [
        "OvercrankAssets", "OvercrankCapture", "OvercrankDeviceDiscovery",
        "OvercrankFrameAccounting", "OvercrankLibAV", "OvercrankLinuxSystem",
        "OvercrankMediaCore", "OvercrankPreview", "OvercrankRaster", "OvercrankRecording",
        "OvercrankSimulatedCameras", "OvercrankV4L2", "TestSupport",
      ]),
    .testTarget(
      name: "RecordingTests",
      dependencies: [
        "OvercrankMovieFormat", "OvercrankFrameAccounting", "OvercrankRecording",
        "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankAssets", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "TestSupport", "OvercrankV4L2",
        "OvercrankSimulatedCameras",
      ]),
    .testTarget(
      name: "PhotosTests",
      dependencies: [
        "OvercrankFrameAccounting", "OvercrankHEIF", "OvercrankPhotos", "OvercrankRecording",
        "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankAssets", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "TestSupport", "OvercrankV4L2",
        "CVideo4Linux", "OvercrankCameraControls", "OvercrankSimulatedCameras",
      ]),
    .testTarget(
      name: "RecognitionTests",
      dependencies: [
        "OvercrankAssets", "OvercrankCapture", "OvercrankDeviceDiscovery",
        "OvercrankFrameAccounting", "OvercrankLibAV", "OvercrankMediaCore", "OvercrankRecognition",
        "OvercrankRecording", "OvercrankV4L2", "TestSupport", "OvercrankCameraControls",
        "OvercrankPreview", "OvercrankRaster",
      ]),
    .testTarget(
      name: "slowmoTests",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankFrameAccounting", "TestSupport", "SlowmoCommands",
        "OvercrankAssets", "OvercrankCapture", "OvercrankEditing", "OvercrankExport",
        "OvercrankDeviceDiscovery", "OvercrankLibAV", "OvercrankMediaCore", "OvercrankMovieFormat",
        "OvercrankPhotos", "OvercrankRecording", "OvercrankRetiming",
        .product(name: "ArgumentParser", package: "swift-argument-parser"), "OvercrankRaster",
        "OvercrankPreview", "OvercrankSimulatedCameras",
      ]),
    .testTarget(
      name: "VividTests",
      dependencies: [
        "TestSupport", "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankV4L2",
        "OvercrankTextures", "CVideo4Linux", "CGLES", "OvercrankMediaCore", "OvercrankAssets",
        "OvercrankCameraControls", "OvercrankFrameAccounting", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankPreview", "OvercrankRaster", "OvercrankRecognition",
        "OvercrankRecording",
      ]),
    .testTarget(
      name: "AssetsTests",
      dependencies: [
        "OvercrankMovieFormat", "OvercrankLinuxSystem",
        "OvercrankAssets", "OvercrankDeviceDiscovery", "OvercrankLibAV", "OvercrankMediaCore",
        "TestSupport",
      ]),
    .testTarget(
      name: "ExportTests",
      dependencies: [
        "OvercrankMovieFormat", "OvercrankExport", "OvercrankEditing", "OvercrankRetiming",
        "OvercrankAssets", "OvercrankLibAV", "OvercrankMediaCore", "TestSupport",
        "OvercrankLinuxSystem", "OvercrankRaster",
      ]),
    .testTarget(
      name: "AnalysisTests",
      dependencies: [
        "OvercrankAnalysis", "OvercrankAssets", "OvercrankEditing", "OvercrankExport",
        "OvercrankLibAV", "OvercrankMediaCore", "OvercrankMovieFormat", "OvercrankRetiming",
        "TestSupport", "OvercrankRaster",
      ]),
    .testTarget(
      name: "PlaybackTests",
      dependencies: [
        "OvercrankALSA", "OvercrankAssets", "OvercrankEditing", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankPlayback", "OvercrankRetiming",
        "TestSupport",
      ]),
    .testTarget(
      name: "DisplayTests",
      dependencies: [
        "OvercrankAssets", "OvercrankDisplay", "OvercrankEditing", "OvercrankLibAV",
        "OvercrankMediaCore", "OvercrankPlayback", "TestSupport", "CSDL2", "OvercrankCapture",
        "OvercrankLinuxSystem", "OvercrankPreview", "OvercrankRaster",
      ]),
    .testTarget(
      name: "TexturesTests",
      dependencies: [
        "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankFrameAccounting",
        "OvercrankLibAV", "OvercrankMediaCore", "OvercrankTextures", "OvercrankV4L2", "TestSupport",
        "CFFmpeg", "CGLES", "OvercrankSimulatedCameras",
      ]),
    .testTarget(
      name: "EditingTests", dependencies: ["TestSupport", "OvercrankEditing", "OvercrankMediaCore"]),
    .testTarget(
      name: "RetimingTests",
      dependencies: ["TestSupport", "OvercrankRetiming", "OvercrankLibAV", "OvercrankMediaCore"]),
  ],
  swiftLanguageModes: [.v6]
)

// OVERCRANK_BUILD=all adds the samples, the soaks and the tests that start samples; Tests/run.sh sets
// it. A plain build is the library, the command and its tests.
if Context.environment["OVERCRANK_BUILD"] == "all" {
  package.targets += [
    .executableTarget(
      name: "RecordAndSlow", dependencies: ["Overcrank"], path: "Samples/RecordAndSlow"),
    .executableTarget(
      name: "FramesToPNG", dependencies: ["Overcrank"], path: "Samples/FramesToPNG"),
    .executableTarget(name: "SloPoke", dependencies: ["Overcrank"], path: "Samples/SloPoke"),
    .executableTarget(name: "SlowCamera", dependencies: ["Overcrank"], path: "Samples/SlowCamera"),
    .executableTarget(
      name: "LiveAnalysis", dependencies: ["Overcrank"], path: "Samples/LiveAnalysis"),
    .executableTarget(name: "PhotoBooth", dependencies: ["Overcrank"], path: "Samples/PhotoBooth"),
    .executableTarget(
      name: "TriggeredClip", dependencies: ["Overcrank"], path: "Samples/TriggeredClip"),
    .executableTarget(
      name: "LiveCube", dependencies: ["Overcrank", "OvercrankTextures"], path: "Samples/LiveCube"),
    .executableTarget(
      name: "AVCam", dependencies: ["Overcrank", "OvercrankDisplay"], path: "Samples/AVCam"),
    .executableTarget(
      name: "CodeCamera", dependencies: ["Overcrank", "OvercrankRecognition"],
      path: "Samples/CodeCamera"),
    .executableTarget(
      name: "FaceCamera", dependencies: ["Overcrank", "OvercrankRecognition"],
      path: "Samples/FaceCamera"),
    .executableTarget(
      name: "ZoomCamera", dependencies: ["Overcrank"], path: "Samples/ZoomCamera"),
    .executableTarget(
      name: "ThreeClips", dependencies: ["Overcrank"], path: "Samples/ThreeClips"),

    // Long takes of it, judged against that log; run by Tests/run.sh.
    .executableTarget(
      name: "LedgerSoak",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankFrameAccounting", "OvercrankCapture",
        "OvercrankDeviceDiscovery", "OvercrankV4L2", "OvercrankMediaCore", "TestSupport",
        "OvercrankRecording",
      ],
      path: "Tests/Tools/LedgerSoak"),
    // Counts requests for memory by thread, and shows that capturing makes none; run by
    // Tests/run.sh.
    .target(name: "AllocationCounter", path: "Tests/Tools/AllocationCounter"),
    .executableTarget(
      name: "AllocationCheck",
      dependencies: [
        "OvercrankLinuxSystem", "OvercrankFrameAccounting", "AllocationCounter",
        "OvercrankRecording", "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankV4L2",
        "OvercrankMediaCore", "OvercrankExport", "TestSupport", "OvercrankPreview",
      ],
      path: "Tests/Tools/AllocationCheck"),
    // Damaged files and wild plans, thousands of them; run by Tests/run.sh.
    .executableTarget(
      name: "FuzzSoak",
      dependencies: [
        "OvercrankMovieFormat", "OvercrankLinuxSystem", "OvercrankAnalysis", "OvercrankAssets",
        "OvercrankCapture", "OvercrankEditing", "OvercrankExport", "OvercrankLibAV",
        "OvercrankMediaCore", "OvercrankPlayback", "OvercrankRecognition", "OvercrankRetiming",
        "TestSupport", "OvercrankRaster",
      ],
      path: "Tests/Tools/FuzzSoak"),
  ]
} else {
  package.targets.first { $0.name == "slowmoTests" }?.exclude = ["SampleTests.swift"]
}

// OVERCRANK_TESTS=Capture,Recording keeps the tests of these modules alone; Tests/sanitize.sh sets it.
if let names = Context.environment["OVERCRANK_TESTS"] {
  let kept = Set(names.split(separator: ",").map { "\($0)Tests" })
  package.targets.removeAll { $0.type == .test && !kept.contains($0.name) }
}

for target in package.targets where target.type != .system {
  target.swiftSettings = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
  ]
}
