// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What a holder gave for one slot, found valid: lends its keys, and is let go of at the end of the call.
final class HeldKeys: Sendable {
    private let held: HeldSecret
    private let ids: [ClassKeyID]

    var autoLock: AutoLock { held.timeoutSeconds.map(AutoLock.after) ?? .never }

    init(_ held: consuming HeldSecret, ids: [ClassKeyID]) {
        self.held = held
        self.ids = ids
    }

    func withClassKey<Result>(
        _ id: ClassKeyID, _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let index = ids.firstIndex(of: id) else { throw KeychainFailure(.internal, "a class key is not in its slot") }
        let secret = try HolderPayload.key(at: index, in: held.secret)
        return try body(ClassKey(accessibility: id.accessibility, generation: id.generation, secret: secret))
    }
}
