// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainStore

/// The keychain of this process's user, in a file: opened at the first call, made at the first write.
package final class LocalKeychain: Keychain {
    package let configuration: KeychainConfiguration
    package let entitlements: Entitlements
    let access: KeychainAccess<SQLiteItemStore>

    package init(configuration: KeychainConfiguration, entitlements: Entitlements) {
        self.configuration = configuration
        self.entitlements = entitlements
        access = KeychainAccess(
            passcodeRules: { () throws(KeychainFailure) in try configuration.passcodeRules() },
            prompting: configuration.prompting(requester: Self.pathOfThisProgram),
            opening: { creating throws(KeychainFailure) in
                try KeychainOpening(configuration: configuration, entitlements: entitlements).run(creating: creating)
            },
            closing: { $0.store.close() })
    }

    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        // A call that would be refused anyway makes no store.
        let control = try entitlements.admit(request).control
        let needsPasscode = control.accessibility == .whenPasscodeSetThisDeviceOnly || control.constraint?.needsPresence == true
        guard needsPasscode else { return try add(request, creating: true) }
        do throws(KeychainFailure) {
            return try add(request, creating: false)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            throw KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet", refusal: .passcodeNotSet)
        }
    }

    private func add(_ request: AddRequest, creating: Bool) throws(KeychainFailure) -> KeychainItem {
        try perform(creating: creating, .add, request) { keychain, request throws(KeychainFailure) in
            try keychain.add(request)
        }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try requireAccess(.read, to: request.query)
        return try perform(creating: false, .read, request) { keychain, request throws(KeychainFailure) in
            try keychain.copyMatching(request)
        }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.require(newGroup, access: .write) }
        try perform(creating: false, .change, request) { keychain, request throws(KeychainFailure) in
            try keychain.update(request)
        }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        try perform(creating: false, .delete, request) { keychain, request throws(KeychainFailure) in
            try keychain.delete(request)
        }
    }

    /// A group that the program may not use is refused also where no store exists yet.
    private func requireAccess(_ kind: Entitlements.Access, to query: ItemQuery) throws(KeychainFailure) {
        guard !access.isOpen else { return }
        _ = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: kind)
    }

    private func perform<Request: AuthenticatedRequest, Result>(
        creating: Bool, _ action: AuthenticatedAction, _ request: Request,
        _ body: (SealedKeychain, Request) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try naming { () throws(KeychainFailure) in
            try access.perform(creating: creating, action, request) { opened, request throws(KeychainFailure) in
                try body(opened.keychain, request)
            }
        }
    }

    /// The open keychain.
    ///
    /// Throws `.itemNotFound` where there is none and none may be made: then nothing was ever stored.
    func open(creating: Bool) throws(KeychainFailure) -> OpenedKeychain<SQLiteItemStore> {
        try naming { () throws(KeychainFailure) in try access.current(creating: creating) }
    }

    /// SQLite and the keybag do not know which file it is that they cannot use; whoever reads the failure wants to.
    ///
    /// `otherPlace`: what is about that is not about the keychain.
    func naming<Result>(
        unlessAbout otherPlace: String? = nil, _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            // The status decides first: "not found" is an everyday answer and must not cost a search through text.
            switch error.status {
            case .notAvailable, .readOnly, .inputOutput:
                let ownPlaces = [PrivateFile.directory(of: configuration.storePath), configuration.keyDirectory, configuration.policyPath]
                let places = ownPlaces + (otherPlace.map { [$0] } ?? [])
                throw places.contains(where: error.reason.contains) ? error : error.naming(configuration.storePath)
            default:
                throw error
            }
        }
    }
}
