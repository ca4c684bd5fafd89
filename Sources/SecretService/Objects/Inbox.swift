// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// What other threads report to the thread of the bus.
final class Inbox: Sendable {
    enum Event: Sendable {
        /// The keychain has changed, or was locked or unlocked.
        case changed
        /// The items of a collection, read after it had this generation; nil: they could not be read.
        case indexed(collection: String, generation: Int, AttributeIndex?)
        /// A person has unlocked the keychain, or has not.
        case asked(isUnlocked: Bool)
        /// A person has allowed a program to use items, or has refused; nil: there is no answer.
        case answered(dialog: Int, isAllowed: Bool?)
        /// A secret was written for a request of the portal, or could not be.
        case delivered(request: UInt64, isWritten: Bool)
        case stop
    }

    private let events = Mutex<[Event]>([])
    private let wakeup: WakeupDescriptor

    init() throws(KeychainFailure) {
        do throws(Errno) {
            wakeup = try WakeupDescriptor()
        } catch {
            throw KeychainFailure(.allocate, "there is no descriptor for events: \(error)", cause: .system(errno: error.rawValue))
        }
    }

    var descriptor: FileDescriptor { wakeup.descriptor }

    func post(_ event: Event) {
        events.withLock { $0.append(event) }
        wakeup.set()
    }

    func take() -> [Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
#endif
