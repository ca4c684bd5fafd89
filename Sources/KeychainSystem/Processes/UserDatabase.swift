// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// The users and groups of the machine.
package enum UserDatabase {
    /// A group by its number.
    ///
    /// Returns nil if there is none, and throws if the database cannot be read.
    package static func group(_ id: UInt32) throws(Errno) -> (name: String, hasMembers: Bool)? {
        // Longer than every name that groupadd accepts.
        var name = [CChar](repeating: 0, count: 256)
        var hasMembers = false
        // The array has as many elements as the call may write.
        switch unsafe keychain_group_find(id, &name, name.count, &hasMembers) {
        case 1: break
        case 0: return nil
        default: throw .current
        }
        guard let text = String(validating: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) else {
            throw .invalidArgument
        }
        return (text, hasMembers)
    }

    /// The number of a user by name.
    ///
    /// Returns nil if there is no such user, and throws if the database cannot be read.
    package static func user(named name: String) throws(Errno) -> UInt32? {
        var user: UInt32 = 0
        // The name lives until the call returns, and `user` is a local variable.
        switch unsafe keychain_user_find_number(name, &user) {
        case 1: return user
        case 0: return nil
        default: throw .current
        }
    }

    /// The name of a user by number.
    ///
    /// Returns nil if there is no such user, and throws if the database cannot be read.
    package static func name(ofUser id: UInt32) throws(Errno) -> String? {
        var name = [CChar](repeating: 0, count: 256)
        // The array has as many elements as the call may write.
        switch unsafe keychain_user_find_name(id, &name, name.count) {
        case 1: break
        case 0: return nil
        default: throw .current
        }
        return String(validating: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The primary group of a user.
    ///
    /// Returns nil if there is no such user, and throws if the database cannot be read.
    package static func primaryGroup(ofUser id: UInt32) throws(Errno) -> UInt32? {
        var group: UInt32 = 0
        // `group` is a local variable.
        switch unsafe keychain_user_find_primary_group(id, &group) {
        case 1: return group
        case 0: return nil
        default: throw .current
        }
    }
}
