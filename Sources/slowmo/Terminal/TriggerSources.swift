// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Overcrank

/// The external trigger sources of a capture.
///
/// The sources stop when this object is released.
final class TriggerSources {
  private var listeners: [DatagramListener] = []

  /// Starts listening for triggers, which start clips of a movie output.
  ///
  /// If `endsWithLines` is false, the capture does not end with standard input, because a window sends
  /// triggers too.
  ///
  /// - Throws: `CommandError` if a source cannot be opened.
  convenience init(
    _ kinds: [TriggerKind], of movie: MovieFileOutput, endsWithLines: Bool
  ) throws {
    try self.init(kinds) {
      movie.trigger($0)
    } atEnd: {
      if endsWithLines { movie.endTriggers(.signal) }
    }
  }

  /// Starts listening for triggers, which are passed to a closure.
  ///
  /// - Parameters:
  ///   - kinds: The sources. Audio and motion are ignored here, because outputs of the session
  ///     detect them.
  ///   - handler: Called with each trigger, on any thread.
  ///   - atEnd: Called when no more triggers can come.
  /// - Throws: `CommandError` if a source cannot be opened.
  init(
    _ kinds: [TriggerKind], handler: @escaping @Sendable (CaptureTrigger.Source) -> Void,
    atEnd: @escaping @Sendable () -> Void
  ) throws {
    // If standard input is the only trigger source, the capture ends at the end of the input,
    // because no further trigger can arrive.
    let endsWithLines = kinds.allSatisfy { $0 == .key }
    for kind in kinds {
      switch kind {
      case .signal: Interrupt.onUserSignal { handler(.signal) }
      case .key:
        LineInput.read {
          handler(.key)
        } atEnd: {
          if endsWithLines { atEnd() }
        }
      case .udp(let host, let port):
        listeners.append(try DatagramListener(host: host, port: port) { handler(.udp) })
      case .audio, .motion: break  // Outputs of the session detect these triggers.
      }
    }
  }

  deinit {
    Interrupt.onUserSignal {}
    for listener in listeners { listener.stop() }
  }
}

/// Receives UDP datagrams on a port.
///
/// The content of the datagrams is ignored.
final class DatagramListener {
  private let descriptor: Int32
  private let source: any DispatchSourceRead

  /// Binds a port and calls a closure for each datagram, on a private dispatch queue.
  ///
  /// - Throws: `CommandError` if the address does not belong to this machine or the port is in use.
  init(host: String, port: UInt16, _ body: @escaping @Sendable () -> Void) throws {
    descriptor = try Self.bound(host, port)
    let descriptor = descriptor
    source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "datagrams"))
    source.setEventHandler {
      var byte: UInt8 = 0
      while recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 { body() }
    }
    source.setCancelHandler { close(descriptor) }
    source.resume()
  }

  /// Stops receiving and closes the socket.
  func stop() { source.cancel() }

  private static func bound(_ host: String, _ port: UInt16) throws -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &list)
    guard status == 0, let address = list?.pointee else {
      throw CommandError.usage(
        "cannot listen on \(host): \(String(cString: gai_strerror(status)))",
        hint: "use udp:PORT, or udp:0.0.0.0:PORT for the whole network")
    }
    defer { freeaddrinfo(list) }
    let descriptor = socket(
      address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0, bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 else {
      let reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
      throw CommandError(
        .unavailable, code: "port_unavailable",
        "cannot listen on \(host) port \(port): \(reason)",
        hint: "choose another port, or close the program that uses it")
    }
    return descriptor
  }
}

/// Reads standard input by lines, typed by a user or written by a program.
enum LineInput {
  /// Calls `whenLineEnds` for each complete line, and `atEnd` at the end of the input.
  ///
  /// Both closures run on a private dispatch queue.
  static func read(
    _ whenLineEnds: @escaping @Sendable () -> Void, atEnd: @escaping @Sendable () -> Void
  ) {
    DispatchQueue(label: "lines").async {
      var bytes = [UInt8](repeating: 0, count: 4_096)
      while true {
        let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return atEnd() }
        for byte in bytes[..<count] where byte == UInt8(ascii: "\n") { whenLineEnds() }
      }
    }
  }
}
