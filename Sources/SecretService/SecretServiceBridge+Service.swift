// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
internal import KeychainCore

/// The interface `org.freedesktop.Secret.Service`.
extension SecretServiceBridge {
    func performService(_ message: BusMessage) throws(BusError) -> Bool {
        switch message.member {
        case "OpenSession": try openSession(message)
        case "CreateCollection": try createCollection(message)
        case "SearchItems": try searchItems(message)
        case "Unlock": try unlock(message)
        case "Lock": try lock(message)
        case "GetSecrets": try secrets(message)
        case "ReadAlias":
            let alias = ObjectPath.encode(try message.readText())
            let collection = try BusError.converting { () throws(KeychainFailure) in try collections.collection(alias: alias) }
            try message.reply { reply throws(BusError) in
                try reply.append(path: collection.map { ObjectPath.collection($0.name).text } ?? ObjectPath.none)
            }
        case "SetAlias": try setAlias(message)
        default: return false
        }
        return true
    }

    private func openSession(_ message: BusMessage) throws(BusError) {
        let algorithm = try message.readText()
        var publicKey: Data?
        switch algorithm {
        case "plain": break
        case Sessions.agreementName:
            guard try message.variantType() == "ay" else { throw .invalidArguments("a public key is an array of bytes") }
            try message.readContainer(BusType.variant, "ay") { () throws(BusError) in publicKey = try message.readBytes() }
        default: throw .notSupported("the algorithm \"\(algorithm)\" is not supported")
        }
        let opened = try sessions.open(owner: message.sender, publicKey: publicKey)
        try message.reply { reply throws(BusError) in
            try reply.appendContainer(BusType.variant, opened.publicKey == nil ? "s" : "ay") { () throws(BusError) in
                if let publicKey = opened.publicKey { try reply.append(publicKey) } else { try reply.append("") }
            }
            try reply.append(path: opened.path)
        }
    }

    private func createCollection(_ message: BusMessage) throws(BusError) {
        var label = ""
        try message.readProperties { name, type throws(BusError) in
            guard name == "\(Interface.collection).Label" else { return false }
            guard type == "s" else { throw .invalidArguments("a label is a string") }
            label = try message.readText()
            return true
        }
        let alias = ObjectPath.encode(try message.readText())
        let made = try BusError.converting { () throws(KeychainFailure) in try collections.make(label: label, alias: alias) }
        noteOwnWrite()
        if made.isNew {
            emitService("CollectionCreated", .collection(made.0.name))
            noteChange(of: "Collections", at: .service, Interface.service)
        }
        try message.reply { reply throws(BusError) in
            try reply.append(path: ObjectPath.collection(made.0.name).text)
            try reply.append(path: ObjectPath.none)
        }
    }

    private func searchItems(_ message: BusMessage) throws(BusError) {
        let lookup = try message.readAttributes()
        var found: [(collection: Collection, number: UInt64, rank: Int)] = []
        for collection in try BusError.converting({ () throws(KeychainFailure) in try collections.all() }) {
            let numbers = try BusError.converting { () throws(KeychainFailure) in try collection.search(lookup) }
            found += try visible(numbers, in: collection, to: message.sender, searching: lookup).map {
                (collection, $0.number, $0.rank.rawValue)
            }
        }
        // Numbers ascend with the time of the creation.
        found.sort { ($0.rank, $0.number) < ($1.rank, $1.number) }
        var unlocked: [String] = []
        var locked: [String] = []
        for item in found {
            let path = ObjectPath.item(collection: item.collection.name, item.number).text
            if try isLocked(item.collection) { locked.append(path) } else { unlocked.append(path) }
        }
        try message.reply { reply throws(BusError) in
            try reply.append(paths: unlocked)
            try reply.append(paths: locked)
        }
    }

    /// The collection of an object that can be locked; nil for other paths, and for those of no object.
    private func lockable(_ path: String) throws(BusError) -> Collection? {
        do throws(BusError) {
            switch try object(at: path) {
            case .collection(let collection), .item(let collection, _): return collection
            case .service, .folder, .session, .prompt, .portal, .portalRequest: return nil
            }
        } catch {
            guard error == .noObject(at: path) else { throw error }
            return nil
        }
    }

    private func unlock(_ message: BusMessage) throws(BusError) {
        var unlocked: [String] = []
        var locked: [String] = []
        for path in try message.readPaths() {
            guard let collection = try lockable(path) else { continue }
            if try isLocked(collection) { locked.append(path) } else { unlocked.append(path) }
        }
        let prompt = locked.isEmpty ? ObjectPath.none : try prompts.make(owner: message.sender, paths: unlocked + locked).text
        try message.reply { reply throws(BusError) in
            try reply.append(paths: unlocked)
            try reply.append(path: prompt)
        }
    }

    private func lock(_ message: BusMessage) throws(BusError) {
        var locked: [String] = []
        var locksKeychain = false
        for path in try message.readPaths() {
            guard let collection = try lockable(path) else { continue }
            locked.append(path)
            if collection.isPersistent { locksKeychain = true }
        }
        if locksKeychain { try lockKeychain() }
        announceLock()
        try message.reply { reply throws(BusError) in
            try reply.append(paths: locked)
            try reply.append(path: ObjectPath.none)
        }
    }

    /// Locks the keychain; without a passcode it stays unlocked, as the collection `session` does.
    private func lockKeychain() throws(BusError) {
        try BusError.converting { () throws(KeychainFailure) in
            do throws(KeychainFailure) {
                try keychain.lock(.whenUnlocked)
            } catch {
                guard error.refusal == .passcodeNotSet else { throw error }
            }
        }
    }

    private func secrets(_ message: BusMessage) throws(BusError) {
        let paths = try message.readPaths()
        let session = try message.readPath()
        try sessions.require(session, of: message.sender)
        var found: [(path: String, secret: TransferredSecret)] = []
        for path in paths {
            do throws(BusError) {
                guard case .item(let collection, let number) = try object(at: path) else { continue }
                try requireMayUse(number, in: collection, message.sender)
                found.append((path, try secret(of: number, in: collection, session, message.sender)))
            } catch {
                // Any other failure is that of the whole call: a caller must not take the item for one without a secret.
                guard error == .isLocked || error == .isForeign || error.isNoObject else { throw error }
            }
        }
        try message.reply { reply throws(BusError) in
            try reply.appendContainer(BusType.array, "{o(oayays)}") { () throws(BusError) in
                for item in found {
                    try reply.appendContainer(BusType.entry, "o(oayays)") { () throws(BusError) in
                        try reply.append(path: item.path)
                        try reply.append(item.secret)
                    }
                }
            }
        }
    }

    private func setAlias(_ message: BusMessage) throws(BusError) {
        let alias = ObjectPath.encode(try message.readText())
        let path = try message.readPath()
        var name: String?
        if path != ObjectPath.none {
            guard let collection = try lockable(path), case .collection = try object(at: path) else {
                throw .noSuchObject("there is no collection at \"\(path)\"")
            }
            guard collection.isPersistent else { throw .notSupported("the collection \"\(collection.name)\" cannot have an alias") }
            name = collection.name
        }
        guard !alias.isEmpty, alias.utf8.count <= ObjectPath.largestNameByteCount else {
            throw .invalidArguments("an alias is empty, or longer than \(ObjectPath.largestNameByteCount) bytes as a part of a path")
        }
        try BusError.converting { () throws(KeychainFailure) in try collections.setAlias(alias, to: name) }
        noteOwnWrite()
        try message.reply()
    }
}
#endif
