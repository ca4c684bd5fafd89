// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NoLeadingUnderscores
// The names are those of Apple and Swift.

public import Foundation

/// What the compiler casts with: `error as NSError`, and `nsError as? LAError` for one of ``LAErrorDomain``.
extension LAError: _ObjectiveCBridgeable {
    /// The error as Foundation knows it.
    ///
    /// - Returns: The error.
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    /// Takes an error of ``LAErrorDomain``, and leaves the result nil for any other.
    ///
    /// - Parameters:
    ///   - source: The error.
    ///   - result: Where it goes.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) {
        result = source.domain == LAErrorDomain ? LAError(_nsError: source) : nil
    }

    /// Takes an error of ``LAErrorDomain``.
    ///
    /// - Parameters:
    ///   - source: The error.
    ///   - result: Where it goes; nil for an error of another domain.
    /// - Returns: Whether it was taken.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) -> Bool {
        _forceBridgeFromObjectiveC(source, result: &result)
        return result != nil
    }

    /// Takes an error, whatever its domain.
    ///
    /// - Parameter source: The error; nil counts as `authenticationFailed`.
    /// - Returns: The error.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> LAError {
        source.map { LAError(_nsError: $0) } ?? LAError(.authenticationFailed)
    }
}
