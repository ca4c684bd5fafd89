// SPDX-License-Identifier: Apache-2.0

/// What a program can give an `LAContext` in place of a person's answer (Apple: LACredentialType).
public enum LACredentialType: Int, Sendable {
    /// The program's own password, for access control with `SecAccessControlCreateFlags.applicationPassword`.
    case applicationPassword = 0
    /// The PIN of a smart card.
    ///
    /// Not taken: there are no smart cards here.
    case smartCardPIN = -3
}
