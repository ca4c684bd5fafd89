// SPDX-License-Identifier: Apache-2.0
#if canImport(Darwin)
public import Foundation

/// Performs a request.
///
/// It is called with the dictionary of the request and where to put the result, and returns a status of Keychain Services. A type can give
/// one of its own, to watch requests or to answer them without a keychain. What it puts into the result it must not change any more.
public typealias PerformRequestClosureType = (_ requestReference: CFDictionary, _ result: inout AnyObject?) -> OSStatus

/// Performs a request that changes an item.
///
/// It is called with what finds the item and with what to set, and returns a status of Keychain Services.
public typealias PerformUpdateRequestClosureType = (_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus
#else
/// Performs a request.
///
/// It is called with the dictionary of the request and where to put the result, and returns a status of Keychain Services. A type can give
/// one of its own, to watch requests or to answer them without a keychain. What it puts into the result it must not change any more.
///
/// The types are those that `CFDictionary` and `OSStatus` of the module KeychainServices stand for.
public typealias PerformRequestClosureType = (_ requestReference: [String: Any], _ result: inout AnyObject?) -> Int32

/// Performs a request that changes an item.
///
/// It is called with what finds the item and with what to set, and returns a status of Keychain Services.
///
/// The types are those that `CFDictionary` and `OSStatus` of the module KeychainServices stand for.
public typealias PerformUpdateRequestClosureType = (_ query: [String: Any], _ attributesToUpdate: [String: Any]) -> Int32
#endif
