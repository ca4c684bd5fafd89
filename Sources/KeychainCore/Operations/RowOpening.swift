// SPDX-License-Identifier: Apache-2.0

/// What came of opening a row.
///
/// Damage, "not yet" and "not by this version" are told apart, because only the first may be written over.
enum RowOpening {
    case opened(OpenedRow)
    case damaged(KeychainFailure)
    /// Written by a newer version, or under a class key this keybag does not have. Never written over.
    case unsupported(KeychainFailure)
    case locked(KeychainFailure)
    /// It has access control, and what that asks for is not at hand: the failure says what it needs.
    case guarded(KeychainFailure)
}

extension SealedKeychain {
    /// Opens a row for reading, and keeps the attributes that are wanted.
    ///
    /// Throws what says nothing about the row: no memory, a holder or a library that failed.
    func open(
        _ row: SealedRow, includingSecret: Bool, keeping attributes: AttributeSelection = .all
    ) throws(KeychainFailure) -> RowOpening {
        try opening(row) { key throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, keeping: attributes, with: constraintKeys, under: key)
        }
    }

    /// Opens a row's secret and leaves its attributes sealed.
    ///
    /// Throws as `open`.
    func openSecret(of row: SealedRow) throws(KeychainFailure) -> RowOpening {
        try opening(row) { key throws(KeychainFailure) in
            OpenedRow(attributes: ItemAttributes(), secret: try cipher.openSecret(of: row, with: constraintKeys, under: key))
        }
    }

    private func opening(
        _ row: SealedRow, _ open: (borrowing ClassKey) throws(KeychainFailure) -> OpenedRow
    ) throws(KeychainFailure) -> RowOpening {
        let header = row.header
        guard header.formatVersion <= RowHeader.currentFormatVersion else {
            return .unsupported(KeychainFailure(.decode, "an item was written by a newer version of this library"))
        }
        var constraint: AccessControl.Constraint?
        if let constraints = header.constraints {
            guard let record = ConstraintRecord(encoded: constraints) else {
                return .unsupported(KeychainFailure(.decode, "an item has access control that this version does not know"))
            }
            constraint = record.constraint
        }
        guard keys.availability(of: header.accessibility, generation: header.classKeyGeneration) != .missing else {
            return .unsupported(KeychainFailure(.decode, "an item was written under a class key that this keybag does not have"))
        }
        do throws(KeychainFailure) {
            let provider = provider(for: header.accessibility, header.classKeyGeneration, constraint)
            return .opened(try provider.withClassKey(for: header.accessibility, generation: header.classKeyGeneration, open))
        } catch {
            return try Self.classify(error, header, constraint)
        }
    }

    /// A passcode that was given for an item releases its class key too, while the keychain itself stays locked.
    func provider(
        for accessibility: Accessibility, _ generation: UInt32, _ constraint: AccessControl.Constraint?
    ) -> any KeyProvider {
        guard constraint?.needsPresence == true, let released = constraintKeys.presence?.classKeys,
            keys.availability(of: accessibility, generation: generation) == .locked,
            released.availability(of: accessibility, generation: generation) == .available
        else { return keys }
        return released
    }

    private static func classify(
        _ failure: KeychainFailure, _ header: RowHeader, _ constraint: AccessControl.Constraint?
    ) throws(KeychainFailure) -> RowOpening {
        let needsClassKey = AuthenticationNeeds(passcodeFor: [header.accessibility])
        if var needs = failure.needs {
            if needs.passcodeClasses != nil { needs.formUnion(needsClassKey) }
            return .guarded(.needing(needs))
        }
        switch failure.status {
        // The passcode that the item needs anyhow would release the class key as well.
        case .interactionNotAllowed where constraint?.needsPresence == true: return .guarded(.needing(needsClassKey))
        case .interactionNotAllowed: return .locked(failure)
        case .decode: return .damaged(failure)
        // Nobody here could open it: no damage, and nothing to wait for.
        case .authFailed: return .guarded(failure)
        default: throw failure
        }
    }

    /// Opens a row that may be written over.
    ///
    /// The row must have been read with its secret: the row tag covers it.
    ///
    /// A row whose tag is wrong is damaged, whatever its columns claim about version and generation.
    func openForWriting(_ row: SealedRow) throws(KeychainFailure) -> RowOpening {
        // Before a password is derived from at a cost that somebody else may have written there.
        if row.header.constraints != nil, row.header.formatVersion <= RowHeader.currentFormatVersion, try !cipher.isIntact(row) {
            return .damaged(KeychainFailure(.decode, "an item is damaged"))
        }
        let opening = try open(row, includingSecret: true)
        switch opening {
        case .unsupported, .locked, .guarded:
            guard row.header.formatVersion <= RowHeader.currentFormatVersion, try !cipher.isIntact(row) else { return opening }
            return .damaged(KeychainFailure(.decode, "an item is damaged"))
        case .opened, .damaged:
            return opening
        }
    }
}

extension RowHeader {
    /// What protects the row, as far as this version understands it.
    var accessControl: AccessControl {
        AccessControl(accessibility, constraint: constraints.flatMap { ConstraintRecord(encoded: $0) }?.constraint)
    }
}
