// SPDX-License-Identifier: Apache-2.0

/// Names one class key: a protection class has one of each generation.
package struct ClassKeyID: Hashable, Sendable {
    package let accessibility: Accessibility
    package let generation: UInt32

    package init(_ accessibility: Accessibility, generation: UInt32) {
        self.accessibility = accessibility
        self.generation = generation
    }

    /// By the class's number: its raw value is text, and every read looks keys up.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(accessibility.code) << 32 | UInt64(generation))
    }
}
