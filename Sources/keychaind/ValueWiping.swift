// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainIPC

extension Request {
    /// Overwrites the value that an item gets, once the request was performed.
    func wipeValue() {
        switch call {
        case .add(let request): request.secret?.wipeShared()
        case .update(let request): request.secret?.wipeShared()
        default: break
        }
    }
}

extension Response {
    /// Overwrites the values of items, once the response was sent.
    func wipeValues() {
        guard case .items(let items) = reply else { return }
        for item in items { item.secret?.wipeShared() }
    }
}
