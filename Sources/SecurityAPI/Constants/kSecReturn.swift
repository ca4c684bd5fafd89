// SPDX-License-Identifier: Apache-2.0

// What a call shall deliver, and what an item is made of
// (Apple: "Item return result keys" and "Item type value keys").

// MARK: Results

/// Deliver the secret of the item: a Boolean.
public let kSecReturnData: CFString = "r_Data"
/// Deliver a dictionary of the item's attributes: a Boolean.
public let kSecReturnAttributes: CFString = "r_Attributes"
/// Deliver a reference to the item: a Boolean.
///
/// Passwords have none: the result is nil.
public let kSecReturnRef: CFString = "r_Ref"
/// Deliver a reference that can be stored and survives updates of the item: a Boolean.
public let kSecReturnPersistentRef: CFString = "r_PersistentRef"

// MARK: Values

/// The secret of the item: data.
public let kSecValueData: CFString = "v_Data"
/// A reference to an item.
///
/// Passwords have none: `errSecParam`.
public let kSecValueRef: CFString = "v_Ref"
/// A persistent reference to an item, from `kSecReturnPersistentRef`: data.
public let kSecValuePersistentRef: CFString = "v_PersistentRef"
