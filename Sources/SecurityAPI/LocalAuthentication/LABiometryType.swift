// SPDX-License-Identifier: Apache-2.0

/// The kind of biometry a device has (Apple: LABiometryType).
public enum LABiometryType: Int, Sendable {
    /// None: the only value there is here.
    case none = 0
    /// A fingerprint sensor of Apple's.
    case touchID = 1
    /// Face recognition of Apple's.
    case faceID = 2
    /// Iris recognition of Apple's.
    case opticID = 4
}
