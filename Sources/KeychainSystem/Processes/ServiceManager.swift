// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// What a service tells the program that has started it.
package enum ServiceManager {
    /// Reports that the service accepts requests; best effort, and a no-op if nothing waits for it.
    ///
    /// Source: sd_notify(3), `READY=1`.
    package static func notifyReady() {
        guard let name = ProcessEnvironment.variables["NOTIFY_SOCKET"], let first = name.first, first == "/" || first == "@" else { return }
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        defer { _ = Glibc.close(number) }
        let address: LocalSocket.Address = first == "@" ? .abstract(String(name.dropFirst())) : .path(name)
        let message = Array("READY=1".utf8)
        try? unsafe address.withSocketAddress { (address, byteCount) throws(Errno) in
            // The message outlives the call.
            _ = unsafe sendto(number, message, message.count, Int32(MSG_NOSIGNAL), address, byteCount)
        }
    }
}

/// A flag that ends the waiting of another thread, as a descriptor that can be read once the flag is set.
package struct WakeupDescriptor: ~Copyable, Sendable {
    package let descriptor: FileDescriptor

    package init() throws(Errno) {
        descriptor = FileDescriptor(rawValue: try Errno.check { keychain_event_create() })
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Sets the flag for good.
    package func set() { keychain_event_set(descriptor.rawValue) }
}
