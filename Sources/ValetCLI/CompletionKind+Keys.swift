// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

extension CompletionKind {
    /// The keys of the valet that is meant without options.
    static var keys: CompletionKind { .shellCommand("valet list 2>/dev/null") }
}
