// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Valet

@Suite("The registry of live instances")
struct InstanceRegistryTests {
    private final class Instance: Sendable {}

    @Test("An instance is made once per key as long as somebody holds it")
    func madeOnce() {
        let registry = InstanceRegistry<Int, Instance>()
        var made = 0
        let make = {
            made += 1
            return Instance()
        }
        let first = registry.instance(for: 1, make: make)
        let again = registry.instance(for: 1, make: make)
        let other = registry.instance(for: 2, make: make)
        #expect(first === again)
        #expect(first !== other)
        #expect(made == 2)
    }

    @Test("Released instances are made anew, and sweeping them away leaves the live ones")
    func sweeping() {
        let registry = InstanceRegistry<Int, Instance>()
        let kept = (0..<50).map { key in registry.instance(for: key) { Instance() } }
        for key in 50..<5_000 { _ = registry.instance(for: key) { Instance() } }
        for (key, instance) in kept.enumerated() { #expect(registry.instance(for: key) { Instance() } === instance) }
    }
}
