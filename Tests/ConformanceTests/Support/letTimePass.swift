// SPDX-License-Identifier: Apache-2.0
import KeychainTesting

/// From now on items get another date.
///
/// The clock of an in-memory keychain stands still otherwise.
func letTimePass() {
    #if !canImport(Darwin)
    InMemoryKeychain.current?.clock.advance(by: .seconds(1))
    #endif
}
