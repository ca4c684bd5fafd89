// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Reads a store's count of locks, as it is now.
package typealias LockEpochSource = @Sendable () throws(KeychainFailure) -> LockEpoch
