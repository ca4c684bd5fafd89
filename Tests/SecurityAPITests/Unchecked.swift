// SPDX-License-Identifier: Apache-2.0

/// Lets any value be an argument of a test.
struct Unchecked: @unchecked Sendable {
    // Unchecked, because Any is not Sendable: the values are made for one test and only read.
    let any: Any
}
