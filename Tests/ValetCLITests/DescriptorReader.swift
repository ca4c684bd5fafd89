// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads what comes out of descriptors, with a deadline.
enum DescriptorReader {
    /// Everything that comes out of all of them; nil if one is still open at the deadline.
    ///
    /// Bytes that are not UTF-8 show as �.
    static func readToEnd(of descriptors: [Int32]) -> [String]? {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.deadlineSeconds)
        var data = descriptors.map { _ in Data() }
        var open = Set(descriptors.indices)
        while !open.isEmpty {
            let waiting = open.sorted()
            var requests = waiting.map { pollfd(fd: descriptors[$0], events: Int16(POLLIN), revents: 0) }
            guard wait(&requests, until: deadline) else { return nil }
            for (index, request) in zip(waiting, requests) where request.revents != 0 {
                if let chunk = read(descriptors[index]) { data[index] += chunk } else { open.remove(index) }
            }
        }
        return data.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The next bytes; nil at the end.
    ///
    /// A pseudo-terminal whose last user is gone answers an error, which is its end.
    static func read(_ descriptor: Int32) -> Data? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        // The pointer is used during the call only.
        let count = unsafe Foundation.read(descriptor, &chunk, chunk.count)
        return count > 0 ? Data(chunk[..<count]) : nil
    }

    /// False at the deadline.
    static func wait(_ requests: inout [pollfd], until deadline: Date) -> Bool {
        while true {
            let rest = deadline.timeIntervalSinceNow
            guard rest > 0 else { return false }
            // The pointer is used during the call only.
            let count = unsafe poll(&requests, nfds_t(requests.count), Int32(min(rest * 1000, 60_000)))
            if count > 0 { return true }
        }
    }
}
