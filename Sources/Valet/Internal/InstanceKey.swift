// SPDX-License-Identifier: Apache-2.0

/// What valets of one type can be told apart by from outside.
struct InstanceKey: Hashable, Sendable {
    let sandbox: Sandbox
    private let identifier: ExactString

    init(_ sandbox: Sandbox, _ name: SandboxName) {
        self.sandbox = sandbox
        identifier = ExactString(name.identifier.description)
    }
}
