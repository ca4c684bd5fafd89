// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Credentials: readers that any number of machines can be.
extension EngineStep {
    /// Admits the reader that a credential stands for, with a note that all members can read.
    mutating func admit(_ publicKeys: DevicePublicKeys, _ note: CredentialNote) throws(KeychainFailure) {
        try requireOwner()
        guard let (id, key) = try sealingKey(.afterFirstUnlock) else {
            throw KeychainFailure(.interactionNotAllowed, "the keychain was not unlocked since the machine was started")
        }
        let device = DeviceID(of: publicKeys, role: .reader, cipher: cipher)
        let header = CredentialNote.header(circle: circle, device: device, laneKey: id)
        let sealed = CredentialNote.Sealed(laneKey: id, content: try cipher.seal(note.encoded, header: header, under: key))
        try admit(publicKeys, .reader, note: sealed)
        try noteCredentials()
    }

    /// Remembers the notes about the credentials of members, for people.
    ///
    /// A note that cannot be opened yet is tried again in the next round.
    mutating func noteCredentials() throws(KeychainFailure) {
        let roster = roster
        let admissions = engine.memory.statements.values.filter { statement in
            guard case .admit(let admission) = statement.body, admission.note != nil else { return false }
            return roster.members[admission.device] != nil && roster.counted.contains(statement.hash)
        }
        guard !admissions.isEmpty else { return }
        let before = try DeviceNotes(in: ledger)
        var notes = before
        // Of two admissions by owners who did not know of each other, all devices take the same note.
        for statement in admissions.sorted(by: { $0.hash < $1.hash }) {
            guard case .admit(let admission) = statement.body, let sealed = admission.note, notes[admission.device]?.expiration == nil,
                let key = try laneKey(sealed.laneKey)
            else { continue }
            let header = CredentialNote.header(circle: circle, device: admission.device, laneKey: sealed.laneKey)
            guard let plaintext = try opened(sealed.content, header, key),
                let note = parsed(by: statement.author, { () throws(FormatError) in try CredentialNote(plaintext) })
            else { continue }
            notes.note(note, of: admission.device)
        }
        if notes != before { try ledger.set(.deviceNotes, to: notes.encoded) }
    }
}
