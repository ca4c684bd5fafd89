// SPDX-License-Identifier: Apache-2.0

extension Valet {
    /// What Keychain Services is given to find this valet's items: for the command line, which shows more of them than a valet does.
    package var itemQuery: [String: Any] { keychain.items.entries }
}
