// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import CSystemdShims
internal import KeychainCore

/// What a path names.
enum ServedObject {
    case service
    /// A path above objects.
    case folder(String)
    case collection(Collection)
    case item(Collection, UInt64)
    case session(UInt64)
    case prompt(UInt64)
    case portal
    case portalRequest(UInt64)

    /// Nil for a folder, which has none.
    var interface: String? {
        switch self {
        case .service: SecretServiceBridge.Interface.service
        case .folder: nil
        case .collection: SecretServiceBridge.Interface.collection
        case .item: SecretServiceBridge.Interface.item
        case .session: SecretServiceBridge.Interface.session
        case .prompt: SecretServiceBridge.Interface.prompt
        case .portal: SecretPortal.interface
        case .portalRequest: SecretPortal.requestInterface
        }
    }
}

/// The functions that sd-bus calls.
extension SecretServiceBridge {
    func serveObjects() throws(KeychainFailure) {
        // Neither is ever freed: the bus uses both as long as it exists, and a process has one bridge.
        let handlers = UnsafeMutablePointer<keychain_bus_handlers>.allocate(capacity: 1)
        unsafe handlers.initialize(to: Self.handlers)
        try unsafe bus.serve(handlers, Unmanaged.passRetained(self).toOpaque())
    }

    private static func bridge(_ context: UnsafeMutableRawPointer?) -> SecretServiceBridge? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<SecretServiceBridge>.fromOpaque(context).takeUnretainedValue()
    }

    /// Runs a handler, and turns what it throws into an error for the caller.
    private static func handle(
        _ context: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?,
        _ body: (SecretServiceBridge) throws(BusError) -> Int32
    ) -> Int32 {
        guard let bridge = unsafe bridge(context) else { return 0 }
        do throws(BusError) {
            return try body(bridge)
        } catch let failure {
            return unsafe sd_bus_error_set(error, failure.name, failure.text)
        }
    }

    /// All pointers are used during the calls only.
    private static var handlers: keychain_bus_handlers {
        unsafe keychain_bus_handlers(
            find: { path, interface, context, error in
                unsafe SecretServiceBridge.handle(context, error) { bridge throws(BusError) in
                    let (path, interface) = unsafe (BusMessage.text(path), BusMessage.text(interface))
                    return try bridge.object(at: path).interface == interface ? 1 : 0
                }
            },
            call: { message, context, error in
                unsafe SecretServiceBridge.handle(context, error) { bridge throws(BusError) in
                    guard let message = unsafe message else { return 0 }
                    return try bridge.perform(unsafe BusMessage(message), .until(nanoseconds: ConsentRequest.endNanoseconds)) ? 1 : 0
                }
            },
            get: { path, _, property, reply, context, error in
                unsafe SecretServiceBridge.handle(context, error) { bridge throws(BusError) in
                    guard let reply = unsafe reply else { return 0 }
                    let (path, property) = unsafe (BusMessage.text(path), BusMessage.text(property))
                    try bridge.appendProperty(property, of: try bridge.object(at: path), to: unsafe BusMessage(reply))
                    return 1
                }
            },
            set: { path, _, property, value, context, error in
                unsafe SecretServiceBridge.handle(context, error) { bridge throws(BusError) in
                    guard let value = unsafe value else { return 0 }
                    let (path, property) = unsafe (BusMessage.text(path), BusMessage.text(property))
                    try bridge.setProperty(property, of: try bridge.object(at: path), from: unsafe BusMessage(value))
                    return 1
                }
            },
            list: { path, context, paths in
                guard let bridge = unsafe SecretServiceBridge.bridge(context) else { return }
                for child in bridge.children(of: unsafe BusMessage.text(path)) { unsafe keychain_bus_add_path(paths, child.text) }
            },
            leave: { name, context in unsafe SecretServiceBridge.bridge(context)?.removeAll(of: BusMessage.text(name)) })
    }

    // MARK: Objects

    /// Returns what a path names; an alias is the collection that it stands for, and so are the items below it.
    func object(at path: String) throws(BusError) -> ServedObject {
        if let object = portal.object(at: path) { return object }
        guard let parsed = ObjectPath(path), let object = try object(parsed) else { throw .noObject(at: path) }
        return object
    }

    private func object(_ path: ObjectPath) throws(BusError) -> ServedObject? {
        try BusError.converting { () throws(KeychainFailure) in
            switch path {
            case .service: return .service
            case .folder(let name): return .folder(name)
            case .session(let number): return sessions.contains(number) ? .session(number) : nil
            case .prompt(let number): return prompts.contains(number) ? .prompt(number) : nil
            case .collection(let name): return try collections.collection(named: name).map { .collection($0) }
            case .alias(let alias): return try collections.collection(alias: alias).map { .collection($0) }
            case .item(let name, let number): return try item(number, in: try collections.collection(named: name))
            case .aliasedItem(let alias, let number): return try item(number, in: try collections.collection(alias: alias))
            }
        }
    }

    private func item(_ number: UInt64, in collection: Collection?) throws(KeychainFailure) -> ServedObject? {
        guard let collection, try collection.contains(number) else { return nil }
        return .item(collection, number)
    }

    /// The paths for the description of a path, in which a collection lists no more items than are announced.
    private func children(of path: String) -> [ObjectPath] {
        guard let object = try? object(at: path) else { return [] }
        switch object {
        case .service: return [.folder("collection"), .folder("aliases")]
        case .folder("collection"): return ((try? collections.all()) ?? []).map { .collection($0.name) }
        case .folder("aliases"): return [.alias(CollectionList.defaultAlias), .alias(CollectionList.login)]
        // Who asks is not known here.
        case .collection where rights != nil: return []
        case .collection(let collection):
            let numbers = (try? collection.numbers()) ?? []
            return numbers.prefix(Self.announcedItemLimit).map { .item(collection: collection.name, $0) }
        case .folder, .item, .session, .prompt, .portal, .portalRequest: return []
        }
    }

    /// Performs a method, or keeps it until a person has decided; returns false if the object has none of that name.
    func perform(_ message: BusMessage, _ patience: Patience) throws(BusError) -> Bool {
        let object = try object(at: message.path)
        guard object.interface == message.interface else { return false }
        if try hold(message, on: object, patience) { return true }
        switch object {
        case .service: return try performService(message)
        case .collection(let collection): return try perform(message, on: collection)
        case .item(let collection, let number): return try perform(message, on: collection, number)
        case .session(let number):
            guard message.member == "Close" else { return false }
            try sessions.close(number, by: message.sender)
            try message.reply()
            return true
        case .prompt(let number): return try performPrompt(message, number)
        case .portal: return try performPortal(message)
        case .portalRequest(let number): return try performPortalRequest(message, number)
        case .folder: return false
        }
    }

    private func performPrompt(_ message: BusMessage, _ number: UInt64) throws(BusError) -> Bool {
        switch message.member {
        case "Prompt":
            // The keychain may have been unlocked meanwhile, and needs no passcode then.
            let isUnlocked = try !isLocked()
            try prompts.show(number, to: message.sender)
            try message.reply()
            if isUnlocked { for completion in prompts.endShown(isUnlocked: true) { complete(completion) } }
        case "Dismiss":
            let completion = try prompts.dismiss(number, by: message.sender)
            try message.reply()
            complete(completion)
        default: return false
        }
        return true
    }
}
#endif
