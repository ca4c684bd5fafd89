// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The message that answers a request, or the identification of a program.
package struct Response: Sendable {
    package let reply: Reply
    /// The application password of the call's context after the call; nil without a context.
    package let password: ContextPassword?

    /// The application password of a context, as keychaind has it.
    package enum ContextPassword: UInt8, Sendable {
        /// There is none, or it was wrong.
        case none = 1
        case given = 2
        /// A person has entered it.
        case entered = 3
    }

    package init(_ reply: Reply, password: ContextPassword? = nil) {
        self.reply = reply
        self.password = password
    }

    package var message: Message {
        var writer = MessageWriter()
        if case .items(let items) = reply { writer.makeRoom(items.reduce(64) { $0 + 384 + ($1.secret?.count ?? 0) }) }
        writer.write(password?.rawValue ?? 0)
        writer.write(reply)
        return Message(.reply, body: writer.bytes)
    }

    package init(parsing message: Message) throws(MalformedMessage) {
        guard message.kind == .reply, message.operation == 0 else { throw MalformedMessage() }
        var reader = MessageReader(message.body)
        let code = try reader.readByte()
        let password = code == 0 ? nil : try reader.required(ContextPassword(rawValue: code))
        let reply = try reader.readReply()
        try reader.finish()
        self.init(reply, password: password)
    }
}

/// The result of a call.
package enum Reply: Sendable {
    /// The call succeeded and has no result.
    case done
    case items([KeychainItem])
    case sessionStatus(SessionStatus)
    case passcodeRemoval(PasscodeRemoval)
    /// The greeting was accepted, and the program was identified.
    ///
    /// For another process: how sure keychaind is, and the access group that it derives from the identity.
    case identified(AssuranceLevel, accessGroups: [String])
    /// `storeID` is nil without a complete keychain.
    case keptKeychain(KeptKeychain, storeID: StoreID?)
    case keychainKeys(KeychainKeys)
    /// Some of the rows of a keychain that is handed over; another reply follows unless they are the last ones.
    case rows([HandedOverRow], isLast: Bool)
    /// The directory in which a keychain was set aside.
    case path(String)
    /// What an agent is to ask the person.
    case question(PresenceQuestion)
    case grants([AccessGrant])
    case survey(ItemSurvey)
    case places([ItemPlace])
    case biometryStatus(BiometryStatus)
    /// What the program that verifies fingers is to do.
    case fingerprintTask(FingerprintTask)
    case failure(KeychainFailure)
}

/// How sure keychaind is which program it serves.
package enum AssuranceLevel: UInt8, Sendable {
    /// Any program of the user.
    case none = 0
    /// A program file that only root can change.
    case verifiedFile = 1
    /// A sandboxed application.
    case sandbox = 2
    /// A program with credentials that the kernel gives to it alone.
    case credential = 3
}

extension MessageWriter {
    fileprivate mutating func write(_ reply: Reply) {
        switch reply {
        case .done: write(0 as UInt8)
        case .items(let items):
            write(1 as UInt8)
            write(UInt32(items.count))
            for item in items { write(item) }
        case .sessionStatus(let status):
            write(2 as UInt8)
            write(status)
        case .passcodeRemoval(let removal):
            write(3 as UInt8)
            write(removal)
        case .identified(let level, let groups):
            write(4 as UInt8)
            write(level.rawValue)
            write(UInt32(groups.count))
            for group in groups { write(group) }
        case .keptKeychain(let kept, let storeID):
            write(5 as UInt8)
            write(kept.rawValue)
            write(ifPresent: storeID) { writer, storeID in writer.write(storeID) }
        case .keychainKeys(let keys):
            write(6 as UInt8)
            write(keys)
        case .rows(let rows, let isLast):
            write(7 as UInt8)
            write(rows)
            write(isLast)
        case .path(let path):
            write(8 as UInt8)
            write(path)
        case .question(let question):
            write(9 as UInt8)
            write(question)
        case .grants(let grants):
            write(10 as UInt8)
            write(grants)
        case .survey(let survey):
            write(11 as UInt8)
            write(survey)
        case .places(let places):
            write(12 as UInt8)
            write(UInt32(places.count))
            for place in places { write(place) }
        case .biometryStatus(let status):
            write(14 as UInt8)
            write(status.hasReader)
            write(ifPresent: status.domainState) { writer, state in writer.write(state) }
            write(status.isExact)
        case .fingerprintTask(let task):
            write(15 as UInt8)
            write(task)
        case .failure(let failure):
            write(255 as UInt8)
            write(failure)
        }
    }

    fileprivate mutating func write(_ status: SessionStatus) {
        switch status.state {
        case .neverUnlocked: write(0 as UInt8)
        case .locked: write(1 as UInt8)
        case .unlocked: write(2 as UInt8)
        }
        write(status.isPasscodeSet)
        write(ifPresent: status.autoLock) { writer, autoLock in
            writer.write(ifPresent: autoLock.seconds) { writer, seconds in writer.write(seconds) }
        }
    }

    package mutating func write(_ removal: PasscodeRemoval) {
        write(UInt32(removal.items.count))
        for item in removal.items {
            write(item.id)
            write(ifPresent: item.name) { writer, name in
                writer.write(name.service)
                writer.write(name.account)
            }
        }
    }
}

extension MessageReader {
    fileprivate mutating func readReply() throws(MalformedMessage) -> Reply {
        switch try readByte() {
        case 0: return .done
        case 1: return .items(try readList { reader throws(MalformedMessage) in try reader.readItem() })
        case 2: return .sessionStatus(try readSessionStatus())
        case 3: return .passcodeRemoval(try readRemoval())
        case 4:
            return .identified(
                try required(AssuranceLevel(rawValue: try readByte())),
                accessGroups: try readList { reader throws(MalformedMessage) in try reader.readText() })
        case 5:
            return .keptKeychain(
                try required(KeptKeychain(rawValue: try readByte())),
                storeID: try readIfPresent { reader throws(MalformedMessage) in try reader.readIdentifier() })
        case 6: return .keychainKeys(try readKeys())
        case 7: return .rows(try readHandedOverRows(), isLast: try readFlag())
        case 8: return .path(try readText())
        case 9: return .question(try readQuestion())
        case 10: return .grants(try readGrants())
        case 11: return .survey(try readSurvey())
        case 12: return .places(try readList { reader throws(MalformedMessage) in try reader.readPlace() })
        case 14:
            return .biometryStatus(
                BiometryStatus(
                    hasReader: try readFlag(),
                    domainState: try readIfPresent { reader throws(MalformedMessage) in Array(try reader.readBytes()) },
                    isExact: try readFlag()))
        case 15: return .fingerprintTask(try readFingerprintTask())
        case 255: return .failure(try readFailure())
        default: throw MalformedMessage()
        }
    }

    fileprivate mutating func readSessionStatus() throws(MalformedMessage) -> SessionStatus {
        let state: LockState
        switch try readByte() {
        case 0: state = .neverUnlocked
        case 1: state = .locked
        case 2: state = .unlocked
        default: throw MalformedMessage()
        }
        let isPasscodeSet = try readFlag()
        let autoLock = try readIfPresent { reader throws(MalformedMessage) -> AutoLock in
            guard let seconds = try reader.readIfPresent({ reader throws(MalformedMessage) in try reader.readUInt32() }) else {
                return .never
            }
            return .after(seconds: seconds)
        }
        return SessionStatus(state: state, isPasscodeSet: isPasscodeSet, holder: .keychaind, autoLock: autoLock)
    }

    package mutating func readRemoval() throws(MalformedMessage) -> PasscodeRemoval {
        PasscodeRemoval(
            items: try readList { reader throws(MalformedMessage) in
                let id = try reader.readIdentifier()
                let name = try reader.readIfPresent { reader throws(MalformedMessage) in
                    PasscodeRemoval.Name(service: try reader.readText(), account: try reader.readText())
                }
                return PasscodeRemoval.Item(id: id, name: name)
            })
    }
}
