// SPDX-License-Identifier: Apache-2.0

// The name of Apple's framework, for sources that import it and are compiled on Linux without changes.
@_exported public import KeychainServices
