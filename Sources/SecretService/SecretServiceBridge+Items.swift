// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// The interfaces `org.freedesktop.Secret.Collection` and `org.freedesktop.Secret.Item`.
extension SecretServiceBridge {
    func perform(_ message: BusMessage, on collection: Collection) throws(BusError) -> Bool {
        switch message.member {
        case "Delete":
            try delete(collection, for: message.sender)
            try message.reply { reply throws(BusError) in try reply.append(path: ObjectPath.none) }
        case "SearchItems":
            let lookup = try message.readAttributes()
            let found = try BusError.converting { () throws(KeychainFailure) in try collection.search(lookup) }
            let numbers = try visible(found, in: collection, to: message.sender, searching: lookup).map(\.number)
            try message.reply { reply throws(BusError) in
                try reply.append(paths: numbers.map { ObjectPath.item(collection: collection.name, $0).text })
            }
        case "CreateItem": try createItem(message, in: collection)
        default: return false
        }
        return true
    }

    private func delete(_ collection: Collection, for connection: String) throws(BusError) {
        guard collection.isPersistent else { throw .notSupported("the collection \"\(collection.name)\" cannot be deleted") }
        try requireUnlocked(collection)
        try requireMayUseAll(in: collection, connection)
        let numbers = try BusError.converting { () throws(KeychainFailure) in
            let numbers = try collection.numbers()
            try collections.remove(collection)
            return numbers
        }
        noteOwnWrite()
        if collection.name == CollectionList.login {
            for number in numbers { emitItem("ItemDeleted", collection, number) }
            noteItems(of: collection)
        } else {
            emitService("CollectionDeleted", .collection(collection.name))
            noteChange(of: "Collections", at: .service, Interface.service)
        }
    }

    func requireUnlocked(_ collection: Collection) throws(BusError) {
        if try isLocked(collection) { throw .isLocked }
    }

    /// Creates an item at once, without a prompt: clients take the path of the item from the reply.
    private func createItem(_ message: BusMessage, in collection: Collection) throws(BusError) {
        var label = ""
        var lookup = ItemLookup([])
        var type: String?
        try message.readProperties { name, valueType throws(BusError) in
            func require(_ expected: String) throws(BusError) {
                guard valueType == expected else { throw .invalidArguments("the property \(name) has the type \(expected)") }
            }
            switch name {
            case "\(Interface.item).Label":
                try require("s")
                label = try message.readText()
            case "\(Interface.item).Attributes":
                try require("a{ss}")
                lookup = try message.readAttributes()
            case "\(Interface.item).Type":
                try require("s")
                type = try message.readText()
            default: return false
            }
            return true
        }
        if let type, lookup[ItemAttribute.schema] == nil { lookup[ItemAttribute.schema] = type }
        let secret = try sessions.decrypt(try message.readSecret(), of: message.sender)
        let replaces = try message.readBoolean()
        try requireUnlocked(collection)
        let owner = try owner(of: lookup, message.sender)
        let stored = try BusError.converting { () throws(KeychainFailure) in
            try collection.store(lookup, label: label, secret, replaces: replaces, owner: owner)
        }
        noteOwnWrite()
        emitItem(stored.isNew ? "ItemCreated" : "ItemChanged", collection, stored.number)
        if stored.isNew {
            noteItems(of: collection)
        } else {
            for property in ["Label", "Modified"] {
                noteChange(of: property, at: .item(collection: collection.name, stored.number), Interface.item)
            }
        }
        try message.reply { reply throws(BusError) in
            try reply.append(path: ObjectPath.item(collection: collection.name, stored.number).text)
            try reply.append(path: ObjectPath.none)
        }
    }

    // MARK: Items

    func perform(_ message: BusMessage, on collection: Collection, _ number: UInt64) throws(BusError) -> Bool {
        switch message.member {
        case "Delete":
            try requireUnlocked(collection)
            try BusError.converting { () throws(KeychainFailure) in try collection.remove(number) }
            noteOwnWrite()
            emitItem("ItemDeleted", collection, number)
            noteItems(of: collection)
            try message.reply { reply throws(BusError) in try reply.append(path: ObjectPath.none) }
        case "GetSecret":
            let secret = try secret(of: number, in: collection, try message.readPath(), message.sender)
            try message.reply { reply throws(BusError) in try reply.append(secret) }
        case "SetSecret":
            let secret = try sessions.decrypt(try message.readSecret(), of: message.sender)
            try requireUnlocked(collection)
            try BusError.converting { () throws(KeychainFailure) in try collection.set(secret, of: number) }
            noteItemChanged(collection, number, "Modified")
            try message.reply()
        default: return false
        }
        return true
    }

    /// Returns the secret of an item for a session of the caller.
    ///
    /// An item without the access to its secret is an error, and never an empty secret: some programs would store that in its place.
    func secret(of number: UInt64, in collection: Collection, _ session: String, _ caller: String) throws(BusError) -> TransferredSecret {
        try sessions.require(session, of: caller)
        try requireUnlocked(collection)
        let secret: ItemSecret
        do throws(KeychainFailure) {
            secret = try collection.storage.secret(of: number)
        } catch {
            guard error.status == .itemNotFound else { throw BusError(error) }
            // The item may be gone, which the index does not know yet; otherwise it has lost its secret.
            do throws(KeychainFailure) {
                _ = try collection.storage.description(of: number)
            } catch {
                throw error.status == .itemNotFound
                    ? .noObject(at: ObjectPath.item(collection: collection.name, number).text) : BusError(error)
            }
            throw .failed("the item has no secret")
        }
        return try sessions.encrypt(secret, in: session, of: caller)
    }

    func noteItemChanged(_ collection: Collection, _ number: UInt64, _ properties: String...) {
        noteOwnWrite()
        emitItem("ItemChanged", collection, number)
        for property in properties { noteChange(of: property, at: .item(collection: collection.name, number), Interface.item) }
    }
}
#endif
