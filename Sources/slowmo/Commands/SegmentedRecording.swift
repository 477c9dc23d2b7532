// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The files of `record --segment` and `record --reconnect`: their names, progress reports and user
/// commands.
struct SegmentedRecording {
  let output: String
  let options: SegmentOptions
  /// The user's command to run for each file; nil for none.
  let exec: String?
  let overwrites: Bool
  let progress: ProgressReporter

  /// Records files until the capture ends.
  func record(
    _ movie: MovieFileOutput, update: (MovieFileOutput.Progress) -> Void
  ) throws -> SegmentedReport {
    let names = try ClipNames(output, overwrites: overwrites)
    let commands = exec.map(ClipCommands.init)
    let segments = SegmentSettings(
      duration: options.segment, reconnectTimeout: options.reconnect
    ) { _ in names.next() }
    progress.start(file: output)
    var report = try movie.record(in: segments) { event in
      switch event {
      case .didStart: break
      case .progress(let state): update(state)
      case .didFinish(let file):
        progress.file(file.path)
        // If another program replaced the output file, the path now leads to a foreign file. The
        // user's `--exec` command must not receive it.
        if file.problem?.code != .outputReplaced { commands?.run(for: file.path) }
      case .didFail(let path, let error):
        progress.warning("\(path) was not written: \(error.message)")
      case .waitingForDevice:
        progress.note("the camera is disconnected; waiting for it")
      }
    }
    report.take.path = output
    report.take.warnings += commands?.wait() ?? []
    for warning in report.take.warnings { progress.warning(warning) }
    progress.end(file: nil)
    return report
  }
}
