// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
package import KeychainCore
internal import KeychainEngine
package import KeychainSystem

/// Serves a keychain as the Secret Service of a desktop.
///
/// One thread handles one message after the other. Threads of their own ask for a passcode, and read all items again after a change by
/// another program.
package final class SecretServiceBridge {
    package typealias ServedKeychain = Keychain & KeychainSessionProviding & ObservableKeychain

    /// The largest number of items for which changes of lists and locks are announced with a value for each.
    ///
    /// The signals `ItemCreated` and `ItemDeleted` do not have this limit.
    static let announcedItemLimit = 1_000

    /// The interfaces.
    enum Interface {
        static let service = "org.freedesktop.Secret.Service"
        static let collection = "org.freedesktop.Secret.Collection"
        static let item = "org.freedesktop.Secret.Item"
        static let session = "org.freedesktop.Secret.Session"
        static let prompt = "org.freedesktop.Secret.Prompt"
    }

    /// A change of a property, announced after the reply to the call that made it.
    struct PropertyChange: Hashable {
        let path: ObjectPath
        let interface: String
        let property: String
    }

    let bus: Bus
    let keychain: any ServedKeychain
    let collections: CollectionList
    var sessions = Sessions()
    let prompts: Prompts
    let consents: Consents<PendingCall>
    /// Nil if every program may use every item.
    private(set) var rights: AccessRights?
    private let access: any ProgramAccess
    /// Whether the keychain has changed since `access` was asked.
    private var isAccessUnknown = false
    var portal: SecretPortal
    let inbox: Inbox
    private var pendingChanges: [PropertyChange] = []
    private var isPending: Set<PropertyChange> = []
    /// The lock, as far as it was looked at for the present message.
    private var knownLock: Bool?
    /// The lock that programs know of.
    private var announcedLock: Bool
    /// The collections whose items a thread reads again.
    private var readCollections: Set<String> = []
    /// The collections that have changed since a thread began to read their items.
    private var changedCollections: Set<String> = []

    /// When this process last changed the keychain, and since when a change waits to be read; in nanoseconds of the monotonic clock.
    private var lastOwnWrite: UInt64 = 0
    private var unreadSince: UInt64?

    /// How many messages are handled before events and changes are.
    private static let largestMessageCount = 64

    /// How long the items of the keychain are not read again after a change by this process, which the keychain reports too; and how long at most.
    private static let quietNanoseconds: UInt64 = 500_000_000
    private static let longestDelayNanoseconds: UInt64 = 5_000_000_000

    /// Connects to the bus of the session.
    ///
    /// - Parameters:
    ///   - keychain: The keychain that is served.
    ///   - access: How programs share their items.
    ///   - prompter: Makes the program that asks a person, which stops when the descriptor can be read.
    /// - Throws: `.notAvailable` if the bus cannot be reached, and the errors of opening the keychain.
    package init(
        _ keychain: any ServedKeychain, _ access: any ProgramAccess,
        prompter: @escaping @Sendable (FileDescriptor) -> any PresencePrompter & ConsentPrompter
    ) throws(KeychainFailure) {
        bus = try Bus()
        inbox = try Inbox()
        self.keychain = keychain
        self.access = access
        collections = CollectionList(keychain)
        portal = SecretPortal(keychain)
        prompts = Prompts(Unlocker(session: keychain, inbox: inbox) { prompter($0) })
        consents = Consents(inbox) { prompter($0) }
        rights = try access.current().map { AccessRights($0, keychain) }
        announcedLock = try keychain.sessionStatus().state != .unlocked
    }

    /// Takes the name of the service, calls `onReady`, and serves it until `stop` is called.
    ///
    /// Throws if another program has the name, if the keychain cannot be observed, or if the bus is lost.
    package func run(onReady: () -> Void) throws(KeychainFailure) {
        let inbox = inbox
        let observation = try keychain.observeChanges { inbox.post(.changed) }
        defer { observation.cancel() }
        try serveObjects()
        try bus.takeName()
        takePortalName()
        onReady()
        while true {
            // Not without end: a program that calls without a pause keeps no prompt and no change from being announced.
            var messageCount = 0
            repeat {
                knownLock = nil
                updateRightsIfDue()
                messageCount += 1
            } while try bus.process() && messageCount < Self.largestMessageCount
            knownLock = nil
            for event in inbox.take() {
                if case .stop = event { return }
                handle(event)
            }
            readCollectionsIfDue()
            endExpiredCalls()
            announceChanges()
            // Handling an event may have queued messages.
            guard try !bus.process() else { continue }
            try bus.wait(for: inbox.descriptor, milliseconds: millisecondsUntilDue)
        }
    }

    /// Ends `run`, from any thread.
    package var stop: @Sendable () -> Void {
        let inbox = inbox
        return { inbox.post(.stop) }
    }

    // MARK: The lock

    /// Whether the keychain is locked.
    func isLocked() throws(BusError) -> Bool {
        if let knownLock { return knownLock }
        let isLocked = try BusError.converting { () throws(KeychainFailure) in try keychain.sessionStatus().state != .unlocked }
        knownLock = isLocked
        return isLocked
    }

    func isLocked(_ collection: Collection) throws(BusError) -> Bool { collection.isPersistent ? try isLocked() : false }

    /// Announces that the keychain was locked or unlocked, if it was.
    func announceLock() {
        knownLock = nil
        guard let isLocked = try? isLocked(), isLocked != announcedLock else { return }
        announcedLock = isLocked
        for collection in (try? collections.all()) ?? [] where collection.isPersistent {
            emitCollectionChanged(collection)
            noteChange(of: "Locked", at: .collection(collection.name), Interface.collection)
            guard collection.hasIndex, let numbers = try? collection.numbers(), numbers.count <= Self.announcedItemLimit else { continue }
            for number in numbers { noteChange(of: "Locked", at: .item(collection: collection.name, number), Interface.item) }
        }
        if !isLocked { for completion in prompts.endShown(isUnlocked: true) { complete(completion) } }
    }

    /// Follows keychaind, which may have taken the keychain over or given it back.
    private func updateRightsIfDue() {
        // Tried again with the next message, if keychaind does not answer: until then calls fail for the same reason.
        guard isAccessUnknown else { return }
        let present: SeparatedAccess?
        do throws(KeychainFailure) { present = try access.current() } catch { return }
        isAccessUnknown = false
        guard present?.identification !== rights?.access.identification || present?.mode != rights?.access.mode else { return }
        rights = present.map { AccessRights($0, keychain) }
    }

    // MARK: Events

    private func handle(_ event: Inbox.Event) {
        switch event {
        case .changed:
            announceLock()
            rights?.forgetGrants()
            isAccessUnknown = true
            unreadSince = unreadSince ?? MonotonicClock.nowNanoseconds()
        case .indexed(let name, let generation, let index):
            readCollections.remove(name)
            adopt(index, name, generation)
        case .asked(let isUnlocked):
            // First the change of the lock, so that a program that waits for the prompt finds it.
            announceLock()
            for completion in prompts.endAfterDialog(isUnlocked: isUnlocked) { complete(completion) }
        case .answered(let dialog, let isAllowed): continueCalls(afterDialog: dialog, isAllowed: isAllowed)
        case .delivered(let number, let isWritten): respond(isWritten ? .success : .other, to: number)
        case .stop: break
        }
    }

    func complete(_ completion: Prompts.Completion) {
        guard !completePortal(completion) else { return }
        bus.emit("Completed", from: completion.path, Interface.prompt, to: completion.owner) { message throws(BusError) in
            try message.append(completion.isDismissed)
            try message.appendContainer(BusType.variant, "ao") { () throws(BusError) in try message.append(paths: completion.paths) }
        }
    }

    /// Notes that this process has changed the keychain.
    func noteOwnWrite() { lastOwnWrite = MonotonicClock.nowNanoseconds() }

    /// When changes are read; nil if there are none.
    private var readTime: UInt64? {
        unreadSince.map { min(max($0, lastOwnWrite &+ Self.quietNanoseconds), $0 &+ Self.longestDelayNanoseconds) }
    }

    private var millisecondsUntilDue: Int64 {
        guard let due = [readTime, consents.nextEventNanoseconds].compactMap(\.self).min() else { return -1 }
        let now = MonotonicClock.nowNanoseconds()
        return due > now ? Int64((due - now) / 1_000_000) + 1 : 0
    }

    private func readCollectionsIfDue() {
        guard let readTime, readTime <= MonotonicClock.nowNanoseconds() else { return }
        unreadSince = nil
        readCollectionsAgain()
    }

    /// Reads what may have changed: nothing says what has.
    private func readCollectionsAgain() {
        // A keychain that cannot be read now is read at the next call, which fails with the reason.
        guard let change = try? collections.load() else { return }
        for name in change.added { emitService("CollectionCreated", .collection(name)) }
        for name in change.removed { emitService("CollectionDeleted", .collection(name)) }
        if !change.added.isEmpty || !change.removed.isEmpty { noteChange(of: "Collections", at: .service, Interface.service) }
        for collection in (try? collections.all()) ?? [] where collection.isPersistent && collection.hasIndex { readItemsAgain(collection) }
    }

    private func readItemsAgain(_ collection: Collection) {
        guard readCollections.insert(collection.name).inserted else {
            changedCollections.insert(collection.name)
            return
        }
        let (name, generation, storage, inbox) = (collection.name, collection.generation, collection.storage, inbox)
        let isStarted = BackgroundThread.start {
            let items = try? storage.descriptions()
            inbox.post(.indexed(collection: name, generation: generation, items.map { AttributeIndex($0) }))
        }
        if !isStarted { readCollections.remove(name) }
    }

    /// Replaces the index of a collection, and announces what other programs have changed.
    private func adopt(_ index: AttributeIndex?, _ name: String, _ generation: Int) {
        guard let collection = try? collections.collection(named: name), collection.hasIndex else { return }
        let isOutdated = changedCollections.remove(name) != nil || collection.generation != generation
        if collection.generation == generation, let index {
            let changes = collection.replaceIndex(with: index)
            for number in changes.added { emitItem("ItemCreated", collection, number) }
            for number in changes.removed { emitItem("ItemDeleted", collection, number) }
            for number in changes.changed { emitItem("ItemChanged", collection, number) }
            if !changes.added.isEmpty || !changes.removed.isEmpty { noteItems(of: collection) }
        }
        if isOutdated { unreadSince = unreadSince ?? MonotonicClock.nowNanoseconds() }
    }

    // MARK: Signals

    func noteChange(of property: String, at path: ObjectPath, _ interface: String) {
        note(PropertyChange(path: path, interface: interface, property: property))
    }

    private func note(_ change: PropertyChange) {
        if isPending.insert(change).inserted { pendingChanges.append(change) }
    }

    func noteItems(of collection: Collection) {
        guard let count = try? collection.count(), count <= Self.announcedItemLimit else { return }
        note(PropertyChange(path: .collection(collection.name), interface: Interface.collection, property: "Items"))
    }

    private func announceChanges() {
        for change in pendingChanges where !announceSeparately(change) {
            bus.emitChange(of: change.property, at: change.path, change.interface)
        }
        pendingChanges = []
        isPending = []
    }

    func emitService(_ member: String, _ path: ObjectPath) {
        bus.emit(member, from: .service, Interface.service) { message throws(BusError) in try message.append(path: path.text) }
    }

    func emitCollectionChanged(_ collection: Collection) { emitService("CollectionChanged", .collection(collection.name)) }

    func emitItem(_ member: String, _ collection: Collection, _ number: UInt64) {
        bus.emit(member, from: .collection(collection.name), Interface.collection) { message throws(BusError) in
            try message.append(path: ObjectPath.item(collection: collection.name, number).text)
        }
    }

    /// Ends what belongs to a connection that has left the bus.
    func removeAll(of owner: String) {
        sessions.closeAll(of: owner)
        portal.removeAll(of: owner)
        prompts.removeAll(of: owner)
        consents.removeAll(of: owner)
        rights?.removeAll(of: owner)
    }
}
#endif
