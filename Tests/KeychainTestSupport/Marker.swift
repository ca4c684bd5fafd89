// SPDX-License-Identifier: Apache-2.0

/// Texts that a child stores and that must be found nowhere on the disk.
package enum Marker: String, CaseIterable {
    case key = "marked-key-a7Q2xv9LmTz4"
    case removedKey = "marked-removed-key-Kd83HsWq0b"
    case value = "marked-value-pW7rZ1nYc5Ue"
    case overwrittenValue = "marked-overwritten-value-Bq6TgX2jMo"
    case removedValue = "marked-removed-value-Vy9cRf4LsDh"
    case damagedValue = "marked-damaged-value-Ne3wKz8PuQa"
    case passcode = "marked-passcode-Hs5vPn8CtUk"
    case wrongPasscode = "marked-wrong-passcode-Qe2jZf6AoLw"
    case valetIdentifier = "marked-identifier-Xt5mGb1ZkJr"
    case service = "marked-service-Jf2nQp7WvCs"
    case account = "marked-account-Lh6yTb9XdEg"
    case group = "marked-group-Ru4kMw0SzNa"
    case label = "marked-label-Gc8pVj3HqYt"
    case comment = "marked-comment-Oi1xDl5BfKe"
    case generic = "marked-generic-Zs7uWn2RmPy"
    case server = "marked-server-Ta9gEk6CjLv.example"
    case path = "/marked/path/Fw3zQh8XoIb"
    case securityDomain = "marked-domain-Mb5rYd1UvGn"
}
