// SPDX-License-Identifier: Apache-2.0

/// Names one class key: a protection class has one of each generation.
package struct ClassKeyID: Hashable, Sendable {
    package let accessibility: Accessibility
    package let generation: UInt32

    package init(_ accessibility: Accessibility, generation: UInt32) {
        self.accessibility = accessibility
        self.generation = generation
    }
}
