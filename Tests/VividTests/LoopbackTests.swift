// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
import OvercrankMediaCore
import TestSupport
import Testing

extension VividTests {
  /// The microphones of the emulated machine.
  @Suite(.enabled(if: Loopback.card != nil, Loopback.whyNot))
  struct Audio {
    private let rate = 48_000

    @Test func `Lists the same microphones as arecord`() async throws {
      let theirs = try await run("arecord", ["-l"]).output.matches(
        of: /card (\d+): .*, device (\d+):/
      ).map { "hw:\($0.1),\($0.2)" }
      let document = try await run(slowmoPath, ["devices", "--json"]).document()
      let ours = try #require(document["devices"] as? [[String: Any]]).filter {
        $0["media"] as? [String] == ["audio"]
      }
      print("loopback: \(ours.count) microphones by slowmo, \(theirs.count) by arecord")
      #expect(ours.compactMap { $0["path"] as? String } == theirs && theirs.count >= 2)
      let ids = ours.compactMap { $0["id"] as? String }
      #expect(Set(ids).count == theirs.count, "\(ids)")
      #expect(ours.allSatisfy { $0["kind"] as? String == "alsa" && $0["problem"] is NSNull })
      // A loopback card must not be the default microphone.
      let first = CaptureDevice.defaultDevice(for: .audio)?.id ?? "none"
      print("loopback: ids \(ids), default \(first)")
    }

    @Test func `The device list says if the user lacks the group audio`() async throws {
      let forbidden = try await run(
        "setpriv",
        ["--reuid=nobody", "--regid=nogroup", "--clear-groups", slowmoPath, "devices", "--json"])
      #expect(forbidden.status == 0)
      let devices = try #require(try forbidden.document()["devices"] as? [[String: Any]])
      let microphones = devices.filter { $0["media"] as? [String] == ["audio"] }
      let mine = CaptureDevice.discover().devices.filter { $0.media == [.audio] }
      #expect(forbidden.errors.contains("group audio"))
      #expect(microphones.compactMap { $0["id"] as? String } == mine.map(\.id))
      #expect(microphones.compactMap { $0["name"] as? String } == mine.map(\.name))
      #expect(microphones.compactMap { $0["driver"] as? String } == mine.map(\.driver))
      #expect(microphones.allSatisfy { ($0["problem"] as? String)?.contains("denied") == true })
    }

    @Test(arguments: [997.0, 440.0])
    func `A tone played at -12 dBFS is recorded at the same level`(hertz: Double) async throws {
      let file = "\(NSTemporaryDirectory())/tone.raw"
      try Loopback.writeTone(file, dBFS: -12, hertz: hertz, seconds: 8)
      let microphone = try CaptureDevice.named(Loopback.capture)
      let format = AudioFormat(.s16, sampleRate: rate, channelCount: 2)
      #expect(try microphone.audioFormats().contains(format))
      let input = try MicrophoneInput(device: microphone, format: format)
      let session = CaptureSession(input)
      let output = AudioDataOutput()
      try await session.addOutput(output)
      try await session.startRunning()
      async let playing: Void = Loopback.play(file)
      // The tone lasts for eight seconds from its first loud sample.
      var audible: Int64?
      var first: AudioSampleBuffer?
      var last: AudioSampleBuffer?
      var begun: (samples: Int64, nanoseconds: Int64)?
      for await block in output.blocks {
        if let last, block.gapBefore == nil {
          #expect(block.position == last.position + Int64(last.sampleCount))
        }
        if let last { #expect(block.presentationTimeStamp > last.presentationTimeStamp) }
        if first == nil { (first, begun) = (block, try Loopback.recorded()) }
        last = block
        if audible == nil, block.samples(ofChannel: 0).contains(where: { abs($0) > 0.1 }) {
          audible = block.position
        }
        if let audible, block.position > audible + Int64(6 * rate) { break }
      }
      let (levels, ended) = (output.levels, try Loopback.recorded())
      await session.stopRunning()
      try await playing
      for level in levels {
        #expect(abs(level.peakDBFS + 12) <= 0.1, "\(level)")
        #expect(abs(level.averageDBFS + 15) <= 0.1, "\(level)")
      }
      #expect(levels.count == 2)
      let (start, stop) = (try #require(first), try #require(last))
      let stopNanoseconds = try stop.presentationTimeStamp.nanoseconds(.halfAwayFromZero)
      let span = stopNanoseconds - (try start.presentationTimeStamp.nanoseconds(.halfAwayFromZero))
      let samples = stop.position - start.position
      let measured = Double(samples) / (Double(span) / 1e9)
      // The status of the kernel gives the card's true sample rate by the clock of this machine,
      // and so the time of the first sample in the last block. The status is updated every 4 ms.
      let begin = try #require(begun)
      let theirs =
        Double(ended.samples - begin.samples)
        / (Double(ended.nanoseconds - begin.nanoseconds) / 1e9)
      let recordedAt =
        Double(ended.nanoseconds) - Double(ended.samples - stop.position) * 1e9 / theirs
      let late = Double(stopNanoseconds) - recordedAt
      print(
        "loopback: \(hertz) Hz: "
          + levels.map { "peak \($0.peakDBFS) average \($0.averageDBFS)" }.joined(separator: ", ")
          + "; \(samples) samples in \(span) ns, \(measured) a second, \(theirs) by the kernel, "
          + "\(input.overrunCount) overruns, last block stamped \(late / 1e6) ms late, "
          + "\(output.ledger)")
      #expect(abs(measured / theirs - 1) < 0.002)
      #expect(abs(late) < 20e6)
      let ledger = output.ledger
      #expect(ledger.isBalanced && ledger.dropped.isEmpty)
    }

    @Test func `A process stopped by SIGSTOP reports the exact audio gap`() async throws {
      let format = AudioFormat(.s16, sampleRate: rate, channelCount: 2)
      let input = try MicrophoneInput(
        device: try CaptureDevice.named(Loopback.capture), format: format)
      let session = CaptureSession(input)
      let output = AudioDataOutput()
      try await session.addOutput(output)
      try await session.startRunning()
      var blocks = output.blocks.makeAsyncIterator()
      var last = try #require(await blocks.next())
      for _ in 0..<50 { last = try #require(await blocks.next()) }
      // The card buffers half a second of audio, and this process is stopped for longer.
      let process = ProcessInfo.processInfo.processIdentifier
      let times = "\(NSTemporaryDirectory())/stopped"
      async let stopped = run("sh", ["-c", Loopback.pause(process: "\(process)", into: times)])
      var gap: AudioGap?
      while gap == nil {
        let block = try #require(await blocks.next())
        gap = block.gapBefore
        let missing = gap?.sampleCount ?? 0
        #expect(block.position == last.position + Int64(last.sampleCount) + missing)
        if gap != nil {
          let apart = block.presentationTimeStamp - last.presentationTimeStamp
          let expected = Double(missing + Int64(last.sampleCount)) / Double(rate)
          #expect(abs(apart.doubleValue - expected) < 0.02)
        }
        last = block
      }
      for _ in 0..<50 { last = try #require(await blocks.next()) }
      await session.stopRunning()
      #expect(try await stopped.status == 0)
      let found = try #require(gap)
      let minimum = try Loopback.minimumLost(times)
      print(
        "loopback: stopped, \(minimum) samples lost at least: \(found), \(input.overrunCount) overruns, "
          + "\(input.lostSampleCount) samples lost")
      #expect(found.cause == .overrun && input.overrunCount >= 1)
      #expect(found.sampleCount >= minimum)
      #expect(output.ledger.isBalanced)
    }

    @Test func `A session resumes when its audio card is connected again`() async throws {
      let driver = "/sys/bus/platform/drivers/snd_aloop"
      @Sendable func write(_ file: String) async throws {
        let done = try await run("sh", ["-c", "echo snd_aloop.0 >\(driver)/\(file)"])
        #expect(done.status == 0, "\(done.errors)")
      }
      let session = CaptureSession(
        try MicrophoneInput(device: try CaptureDevice.named(Loopback.capture)))
      let output = AudioDataOutput()
      try await session.addOutput(output)
      let events = session.events
      try await session.startRunning()
      var blocks = output.blocks.makeAsyncIterator()
      for _ in 0..<20 { _ = try #require(await blocks.next()) }
      // The kernel waits until no process has the card open.
      try await write("unbind")
      for await event in events where event == .didStopRunning { break }
      #expect(session.isInterrupted && !session.isRunning)
      let gone = #expect(throws: MediaError.self) { try CaptureDevice.named(Loopback.capture) }
      #expect(gone?.code == .deviceNotFound)
      let offered = output.ledger.offered
      try await write("bind")
      for await case .interruptionEnded(_, .deviceGone) in events { break }
      while output.ledger.delivered < offered + 20 { _ = try #require(await blocks.next()) }
      #expect(session.isRunning && !session.isInterrupted)
      await session.stopRunning()
      #expect(output.ledger.isBalanced)
      print("loopback: pulled out and put back: \(offered) blocks before; \(output.ledger)")
    }

    @Test func `Camera and microphone in one session share a clock`() async throws {
      let microphone = try CaptureDevice.named(Loopback.capture)
      let input = try MicrophoneInput(device: microphone)
      print("loopback: preferred format \(input.format.id)")
      let camera = try CaptureDevice.named(Vivid.node ?? "")
      let session = CaptureSession()
      session.beginConfiguration()
      try await session.addInput(
        try DeviceInput(device: camera, format: try camera.fastestFormat()))
      try await session.addInput(input)
      let (images, audio) = (VideoDataOutput(), AudioDataOutput())
      try await session.addOutput(images)
      try await session.addOutput(audio)
      try await session.commitConfiguration()
      #expect(session.connections.map(\.mediaType).count == 2)
      let started = MediaTime(microseconds: MonotonicClock.microseconds())
      try await session.startRunning()
      var frames = images.frames.makeAsyncIterator()
      var blocks = audio.blocks.makeAsyncIterator()
      for _ in 0..<20 {
        let frame = try #require(await frames.next())
        let block = try #require(await blocks.next())
        // Both timestamps use this machine's clock. vivid stamps frames with their due time, which
        // may be slightly in the future.
        let now = MediaTime(microseconds: MonotonicClock.microseconds() + 20_000)
        for time in [frame.presentationTimeStamp, block.presentationTimeStamp] {
          #expect(time > started && time < now)
        }
      }
      await session.stopRunning()
      #expect(images.ledger.isBalanced && audio.ledger.isBalanced)
    }

    /// Records vivid and the loopback card, while a tone is played into the card.
    private func record(
      _ file: String, seconds: Int, meanwhile script: String = ""
    ) async throws -> [String: Any] {
      let tone = "\(NSTemporaryDirectory())/take.raw"
      try Loopback.writeTone(tone, dBFS: -12, hertz: 997, seconds: seconds + 20)
      // The take begins when the tone plays. The last line of output is the JSON document.
      let finished = try await run(
        "sh",
        [
          "-c",
          """
          aplay -q -D "$1" -t raw -f S16_LE -r 48000 -c 2 "$2" & playing=$!
          until grep -qs RUNNING /proc/asound/Loopback/pcm0p/sub0/status; do sleep 0.1; done
          # What an emulated machine stores in time: nothing is encoded.
          "$3" record "$4" -o "$5" -y --audio "$6" -t "$7" --json --progress json \\
            --mode 320x180@30/yuyv --codec raw --audio-codec pcm 2>"$5.log" & pid=$!
          \(script)
          wait $pid; status=$?
          kill $playing 2>/dev/null
          exit $status
          """, "sh", Loopback.playback, tone, slowmoPath, Vivid.node ?? "", file, Loopback.capture,
          "\(seconds)",
        ])
      #expect(finished.status == 0, "\(finished.errors)")
      let document = try finished.document()
      let audio = try #require(document["audio"] as? [String: Any])
      let peaks = try String(contentsOfFile: file + ".log", encoding: .utf8)
        .matches(of: /"peak_dbfs":\[([^\]]*)\]/).map { String($0.1) }
      print("loopback: \(audio); peaks \(peaks.suffix(3)); ledger \(document["ledger"] ?? "")")
      #expect(document["playable"] as? Bool == true && audio["device"] as? String != nil)
      #expect(peaks.contains { $0.contains("-12") })
      let (rate, samples) = (audio["sample_rate"] as? Int ?? 0, audio["samples"] as? Int ?? 0)
      let duration = document["duration_ns"] as? Int ?? 0
      #expect(rate == 48_000 && abs(samples - duration * 6 / 125_000) <= 1)
      let info = try await run(slowmoPath, ["info", file, "--json"]).document()
      #expect((info["audio"] as? [String: Any])?["sample_count"] as? Int == samples)
      return audio
    }

    /// Checks the start offset and the gap in one take, since a take costs most of a minute on the
    /// emulated machine.
    @Test func `A SIGSTOP during a take is reported as a gap in the audio`() async throws {
      let audio = try await record(
        "/tmp/stopped.mov", seconds: 6,
        meanwhile: """
          until grep -qs '"progress"' "$5.log" || ! kill -0 $pid; do sleep 0.1; done
          sleep 2
          \(Loopback.pause(process: "$pid", into: "/tmp/take-stopped"))
          """)
      let offset = try #require(audio["start_offset_ns"] as? Int)
      #expect(offset >= 0 && offset < 500_000_000)
      let gaps = try #require(audio["gaps"] as? [[String: Any]])
      let overruns = gaps.filter { $0["cause"] as? String == "overrun" }
      let longest = overruns.compactMap { $0["samples"] as? Int }.max() ?? 0
      #expect(Int64(longest) >= (try Loopback.minimumLost("/tmp/take-stopped")), "\(gaps)")
    }

    /// vivid restores a disconnected device only while no process has it open.
    @Test func `A session reconnects its camera while its microphone runs`() async throws {
      let camera = try CaptureDevice.named(Vivid.node ?? "")
      let session = CaptureSession(
        try await DeviceInput(device: camera, format: try camera.fastestFormat()))
      try await session.addInput(
        try MicrophoneInput(device: try CaptureDevice.named(Loopback.capture)))
      let (images, audio) = (VideoDataOutput(), AudioDataOutput())
      try await session.addOutput(images)
      try await session.addOutput(audio)
      let events = session.events
      try await session.startRunning()
      // An unread frame would keep the disconnected device open.
      let consumer = Task {
        for await _ in images.frames {}
      }
      var blocks = audio.blocks.makeAsyncIterator()
      while images.ledger.delivered < 10 { _ = try #require(await blocks.next()) }
      try await Vivid.set("disconnect", to: 1)
      var seen: [SessionEvent] = []
      for await event in events {
        seen.append(event)
        if case .interruptionEnded = event { break }
      }
      #expect(
        seen == [
          .didStartRunning, .wasInterrupted(camera, .deviceGone),
          .interruptionEnded(session.inputs[0].device, .deviceGone),
        ])
      let (offered, audible) = (images.ledger.offered, audio.ledger.delivered)
      while images.ledger.offered < offered + 10 { _ = try #require(await blocks.next()) }
      #expect(session.isRunning && !session.isInterrupted)
      await session.stopRunning()
      consumer.cancel()
      await consumer.value
      #expect(
        images.ledger.isBalanced && audio.ledger.isBalanced && audio.ledger.delivered > audible)
      print("vivid: gone and back: frames \(images.ledger), blocks \(audio.ledger)")
    }
  }
}
