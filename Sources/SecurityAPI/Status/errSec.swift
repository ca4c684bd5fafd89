// SPDX-License-Identifier: Apache-2.0

// The status codes of Keychain Services (Apple: "Security Framework Result Codes", SecBase.h). Files named errSec+… have the statuses of
// other parts of Apple's framework.

/// No error: the same as `errSecSuccess`, which many programs compare with by this older name.
public let noErr: OSStatus = 0

/// Success.
public let errSecSuccess: OSStatus = 0

/// The keychain has no such function, or not for this item class.
public let errSecUnimplemented: OSStatus = -4

/// The disk is full.
public let errSecDiskFull: OSStatus = -34

/// The disk could not be read or written.
public let errSecIO: OSStatus = -36

/// The file is already open for writing.
public let errSecOpWr: OSStatus = -49

/// A key, a value or a combination of them in the dictionary is not valid.
public let errSecParam: OSStatus = -50

/// The file may not be written.
public let errSecWrPerm: OSStatus = -61

/// There is not enough memory.
public let errSecAllocate: OSStatus = -108

/// The user canceled the prompt.
public let errSecUserCanceled: OSStatus = -128

/// The request is not valid in this place or at this time.
public let errSecBadReq: OSStatus = -909

/// Internal error.
public let errSecInternalComponent: OSStatus = -2070

/// The failure has no better code.
public let errSecCoreFoundationUnknown: OSStatus = -4960

/// The program has no entitlement for this access group or attribute.
public let errSecMissingEntitlement: OSStatus = -34_018

/// The program is not allowed to do this.
public let errSecRestrictedAPI: OSStatus = -34_020

/// The access list is not in its simple form.
public let errSecACLNotSimple: OSStatus = -25_240

/// There is no such policy.
public let errSecPolicyNotFound: OSStatus = -25_241

/// The trust setting is not valid.
public let errSecInvalidTrustSetting: OSStatus = -25_242

/// The item has no access control.
public let errSecNoAccessForItem: OSStatus = -25_243

/// The owner of the item cannot be changed this way.
public let errSecInvalidOwnerEdit: OSStatus = -25_244

/// There are no trust results.
public let errSecTrustNotAvailable: OSStatus = -25_245

/// The format is not supported.
public let errSecUnsupportedFormat: OSStatus = -25_256

/// The format is not known.
public let errSecUnknownFormat: OSStatus = -25_257

/// The key may leave the keychain only in encrypted form.
public let errSecKeyIsSensitive: OSStatus = -25_258

/// There is more than one private key where one is expected.
public let errSecMultiplePrivKeys: OSStatus = -25_259

/// A passphrase is needed to import or export.
public let errSecPassphraseRequired: OSStatus = -25_260

/// The reference to a password is not valid.
public let errSecInvalidPasswordRef: OSStatus = -25_261

/// The trust settings are damaged.
public let errSecInvalidTrustSettings: OSStatus = -25_262

/// There are no trust settings.
public let errSecNoTrustSettings: OSStatus = -25_263

/// The PKCS #12 file could not be verified: the passphrase may be wrong.
public let errSecPkcs12VerifyFailure: OSStatus = -25_264

/// The certificate did not sign this.
public let errSecNotSigner: OSStatus = -26_267

/// The item is damaged, or cannot be decoded.
public let errSecDecode: OSStatus = -26_275

/// The keychain cannot be used: it could not be opened, or its keys are missing.
public let errSecNotAvailable: OSStatus = -25_291

/// The keychain can only be read.
public let errSecReadOnly: OSStatus = -25_292

/// Authentication failed.
public let errSecAuthFailed: OSStatus = -25_293

/// There is no such keychain.
public let errSecNoSuchKeychain: OSStatus = -25_294

/// This is not a keychain.
public let errSecInvalidKeychain: OSStatus = -25_295

/// There is already a keychain of this name.
public let errSecDuplicateKeychain: OSStatus = -25_296

/// The callback is already registered.
public let errSecDuplicateCallback: OSStatus = -25_297

/// The callback is not valid.
public let errSecInvalidCallback: OSStatus = -25_298

/// There is already an item with this primary key.
public let errSecDuplicateItem: OSStatus = -25_299

/// There is no such item.
public let errSecItemNotFound: OSStatus = -25_300

/// The buffer is too small.
public let errSecBufferTooSmall: OSStatus = -25_301

/// The value is too large.
public let errSecDataTooLarge: OSStatus = -25_302

/// This item class has no such attribute.
public let errSecNoSuchAttr: OSStatus = -25_303

/// The reference to the item is not valid.
public let errSecInvalidItemRef: OSStatus = -25_304

/// The search is not valid.
public let errSecInvalidSearchRef: OSStatus = -25_305

/// There is no such item class, or it is not the class of the persistent reference.
public let errSecNoSuchClass: OSStatus = -25_306

/// There is no default keychain.
public let errSecNoDefaultKeychain: OSStatus = -25_307

/// The item is locked, or a required prompt is forbidden or cannot be shown.
public let errSecInteractionNotAllowed: OSStatus = -25_308

/// The attribute can only be read.
public let errSecReadOnlyAttr: OSStatus = -25_309

/// The keychain has a format this version does not know.
public let errSecWrongSecVersion: OSStatus = -25_310

/// Keys of this size are not allowed.
public let errSecKeySizeNotAllowed: OSStatus = -25_311

/// There is no storage module.
public let errSecNoStorageModule: OSStatus = -25_312

/// There is no certificate module.
public let errSecNoCertificateModule: OSStatus = -25_313

/// There is no policy module.
public let errSecNoPolicyModule: OSStatus = -25_314

/// A prompt is required.
public let errSecInteractionRequired: OSStatus = -25_315

/// The data of the item is not available.
public let errSecDataNotAvailable: OSStatus = -25_316

/// The data of the item cannot be changed.
public let errSecDataNotModifiable: OSStatus = -25_317

/// No chain of certificates leads to a root.
public let errSecCreateChainFailed: OSStatus = -25_318

/// The preference domain is not valid.
public let errSecInvalidPrefsDomain: OSStatus = -25_319

/// The device is in a dark wake, so no prompt can be shown.
public let errSecInDarkWake: OSStatus = -25_320

/// The service the keychain needs is not available.
public let errSecServiceNotAvailable: OSStatus = -67_585

/// The quota is used up.
public let errSecQuotaExceeded: OSStatus = -67_596
