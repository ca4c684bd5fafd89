// SPDX-License-Identifier: Apache-2.0

// The keys of the attributes a password item can have (Apple: "Item attribute keys and values").

// MARK: Attributes of every class

/// When the item can be read: one of the `kSecAttrAccessible…` values.
public let kSecAttrAccessible: CFString = "pdmn"
/// The access control of the item: a `SecAccessControl`.
///
/// Excludes `kSecAttrAccessible`.
public let kSecAttrAccessControl: CFString = "accc"
/// The access group of the item: a string.
///
/// Part of the primary key.
public let kSecAttrAccessGroup: CFString = "agrp"
/// Whether the item is synchronizable with the user's other devices: a Boolean.
///
/// Part of the primary key. A synchronizable item whose accessibility ends in `ThisDeviceOnly` never leaves the device.
public let kSecAttrSynchronizable: CFString = "sync"
/// A value of `kSecAttrSynchronizable`: find the item whether it is synchronizable or not.
public let kSecAttrSynchronizableAny: CFString = "syna"
/// When the item was added: a date.
///
/// Set by the keychain.
public let kSecAttrCreationDate: CFString = "cdat"
/// When the item was last changed: a date.
///
/// Set by the keychain.
public let kSecAttrModificationDate: CFString = "mdat"
/// The name of the item that users see: a string.
public let kSecAttrLabel: CFString = "labl"
/// A hint for synchronization, which view the item belongs to: a string.
///
/// Part of the primary key.
public let kSecAttrSyncViewHint: CFString = "vwht"
/// The token that holds the item: a string.
///
/// Part of the primary key.
public let kSecAttrTokenID: CFString = "tkid"
/// The name of the persistent reference among the attributes.
///
/// Never accepted in a query.
public let kSecAttrPersistentReference: CFString = "persistref"
/// Apple's older, misspelled name of `kSecAttrPersistentReference`.
public let kSecAttrPersistantReference: CFString = kSecAttrPersistentReference
/// The legacy access list of a macOS keychain item.
///
/// No class has it here: `errSecNoSuchAttr`.
public let kSecAttrAccess: CFString = "acls"

// MARK: Attributes of passwords

/// The kind of the item, for people: a string.
public let kSecAttrDescription: CFString = "desc"
/// A comment for people: a string.
public let kSecAttrComment: CFString = "icmt"
/// The creator of the item: a number, by convention a four-letter code.
public let kSecAttrCreator: CFString = "crtr"
/// The type of the item: a number, by convention a four-letter code.
public let kSecAttrType: CFString = "type"
/// Whether programs should keep the item from view: a Boolean.
public let kSecAttrIsInvisible: CFString = "invi"
/// Whether the item is a placeholder for a password that the user enters each time: a Boolean.
public let kSecAttrIsNegative: CFString = "nega"
/// The account the password belongs to: a string.
///
/// Part of the primary key.
public let kSecAttrAccount: CFString = "acct"

// MARK: Attributes of generic passwords

/// The service the password belongs to: a string.
///
/// Part of the primary key.
public let kSecAttrService: CFString = "svce"
/// Data of the program's own, kept with the item.
///
/// Not part of the primary key.
public let kSecAttrGeneric: CFString = "gena"

// MARK: Attributes of internet passwords

/// The security domain (realm) of the account: a string.
///
/// Part of the primary key.
public let kSecAttrSecurityDomain: CFString = "sdmn"
/// The host name or address of the server: a string.
///
/// Part of the primary key.
public let kSecAttrServer: CFString = "srvr"
/// The protocol: one of the `kSecAttrProtocol…` values.
///
/// Part of the primary key.
public let kSecAttrProtocol: CFString = "ptcl"
/// The authentication type: one of the `kSecAttrAuthenticationType…` values.
///
/// Part of the primary key.
public let kSecAttrAuthenticationType: CFString = "atyp"
/// The port of the server: a number.
///
/// Part of the primary key.
public let kSecAttrPort: CFString = "port"
/// The path on the server: a string.
///
/// Part of the primary key.
public let kSecAttrPath: CFString = "path"

// The protection classes: when an item can be read (Apple: "Keychain item accessibility values").

/// Readable while the keychain is unlocked.
///
/// The default of passwords.
public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
/// Readable from the first unlock until the next restart.
public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
/// Readable at any time.
///
/// Deprecated by Apple: it protects nothing while locked.
public let kSecAttrAccessibleAlways: CFString = "dk"
/// Readable while the keychain is unlocked, and only on this device.
public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
/// Readable from the first unlock until the next restart, and only on this device.
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
/// Readable at any time, and only on this device.
///
/// Deprecated by Apple: it protects nothing while locked.
public let kSecAttrAccessibleAlwaysThisDeviceOnly: CFString = "dku"
/// Readable while unlocked, only on this device, and only as long as a passcode is set.
public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
