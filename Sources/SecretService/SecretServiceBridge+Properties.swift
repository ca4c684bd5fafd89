// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// The properties of the objects.
extension SecretServiceBridge {
    func appendProperty(_ name: String, of object: ServedObject, to reply: BusMessage) throws(BusError) {
        switch object {
        case .service:
            let all = try BusError.converting { () throws(KeychainFailure) in try collections.all() }
            try reply.append(paths: all.map { ObjectPath.collection($0.name).text })
        case .collection(let collection): try appendProperty(name, of: collection, to: reply)
        case .item(let collection, let number): try appendProperty(name, of: number, in: collection, to: reply)
        case .portal: try reply.append(number: SecretPortal.version)
        case .folder, .session, .prompt, .portalRequest: break
        }
    }

    private func appendProperty(_ name: String, of collection: Collection, to reply: BusMessage) throws(BusError) {
        switch name {
        case "Items":
            let all = try BusError.converting { () throws(KeychainFailure) in try collection.numbers() }
            let numbers = try visible(all, in: collection, to: reply.destination).map(\.number).sorted()
            try reply.append(paths: numbers.map { ObjectPath.item(collection: collection.name, $0).text })
        case "Label": try reply.append(collection.label)
        case "Locked": try reply.append(try isLocked(collection))
        case "Created": try reply.append(seconds: collection.dates.created)
        case "Modified": try reply.append(seconds: collection.dates.modified)
        default: break
        }
    }

    private func appendProperty(_ name: String, of number: UInt64, in collection: Collection, to reply: BusMessage) throws(BusError) {
        try requireVisible(number, in: collection, to: reply.destination)
        // An item is never locked while its collection is unlocked: programs unlock the collection, and expect that to be enough.
        if name == "Locked" { return try reply.append(try isLocked(collection)) }
        let (item, dates) = try BusError.converting { () throws(KeychainFailure) in try collection.storage.description(of: number) }
        switch name {
        case "Attributes": try reply.append(item.lookup.attributes)
        case "Label": try reply.append(item.label)
        case "Type": try reply.append(item.lookup[ItemAttribute.schema] ?? ItemAttribute.genericSchema)
        case "Created": try reply.append(seconds: dates.created)
        case "Modified": try reply.append(seconds: dates.modified)
        default: break
        }
    }

    func setProperty(_ name: String, of object: ServedObject, from value: BusMessage) throws(BusError) {
        switch object {
        case .collection(let collection) where name == "Label":
            let label = try value.readText()
            try requireUnlocked(collection)
            try BusError.converting { () throws(KeychainFailure) in try collections.setLabel(label, of: collection) }
            noteOwnWrite()
            emitCollectionChanged(collection)
            noteChange(of: "Label", at: .collection(collection.name), Interface.collection)
        case .item(let collection, let number):
            let change = try itemChange(name, from: value)
            try requireUnlocked(collection)
            try requireMayUse(number, in: collection, value.sender)
            try BusError.converting { () throws(KeychainFailure) in try collection.change(number, change) }
            noteItemChanged(collection, number, name, "Modified")
            if name == "Attributes" { noteChange(of: "Type", at: .item(collection: collection.name, number), Interface.item) }
            if name == "Type" { noteChange(of: "Attributes", at: .item(collection: collection.name, number), Interface.item) }
        default: throw .invalidArguments("the property \(name) cannot be set")
        }
    }

    private func itemChange(_ name: String, from value: BusMessage) throws(BusError) -> (inout ItemDescription) -> Void {
        switch name {
        case "Label":
            let label = try value.readText()
            return { $0.label = label }
        case "Attributes":
            let lookup = try value.readAttributes()
            return { $0.lookup = lookup }
        default:
            let type = try value.readText()
            return { $0.lookup[ItemAttribute.schema] = type }
        }
    }
}
#endif
