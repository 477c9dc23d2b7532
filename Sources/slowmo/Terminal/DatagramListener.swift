// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

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
