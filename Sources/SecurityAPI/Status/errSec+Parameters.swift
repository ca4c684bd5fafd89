// SPDX-License-Identifier: Apache-2.0

// Statuses of the parameters of cryptographic operations.
//
// No function of this module returns them. They exist for code that lists or compares Apple's statuses (SecBase.h).

/// The context is not valid.
public let errSecInvalidContext: OSStatus = -67_746
/// The algorithm is not valid.
public let errSecInvalidAlgorithm: OSStatus = -67_747
/// The key is not valid.
public let errSecInvalidAttributeKey: OSStatus = -67_748
/// The key is missing.
public let errSecMissingAttributeKey: OSStatus = -67_749
/// The initialization vector is not valid.
public let errSecInvalidAttributeInitVector: OSStatus = -67_750
/// The initialization vector is missing.
public let errSecMissingAttributeInitVector: OSStatus = -67_751
/// The salt is not valid.
public let errSecInvalidAttributeSalt: OSStatus = -67_752
/// The salt is missing.
public let errSecMissingAttributeSalt: OSStatus = -67_753
/// The padding is not valid.
public let errSecInvalidAttributePadding: OSStatus = -67_754
/// The padding is missing.
public let errSecMissingAttributePadding: OSStatus = -67_755
/// The random number is not valid.
public let errSecInvalidAttributeRandom: OSStatus = -67_756
/// The random number is missing.
public let errSecMissingAttributeRandom: OSStatus = -67_757
/// The seed is not valid.
public let errSecInvalidAttributeSeed: OSStatus = -67_758
/// The seed is missing.
public let errSecMissingAttributeSeed: OSStatus = -67_759
/// The passphrase is not valid.
public let errSecInvalidAttributePassphrase: OSStatus = -67_760
/// The passphrase is missing.
public let errSecMissingAttributePassphrase: OSStatus = -67_761
/// The key length is not valid.
public let errSecInvalidAttributeKeyLength: OSStatus = -67_762
/// The key length is missing.
public let errSecMissingAttributeKeyLength: OSStatus = -67_763
/// The block size is not valid.
public let errSecInvalidAttributeBlockSize: OSStatus = -67_764
/// The block size is missing.
public let errSecMissingAttributeBlockSize: OSStatus = -67_765
/// The output size is not valid.
public let errSecInvalidAttributeOutputSize: OSStatus = -67_766
/// The output size is missing.
public let errSecMissingAttributeOutputSize: OSStatus = -67_767
/// The number of rounds is not valid.
public let errSecInvalidAttributeRounds: OSStatus = -67_768
/// The number of rounds is missing.
public let errSecMissingAttributeRounds: OSStatus = -67_769
/// The set of algorithm parameters is not valid.
public let errSecInvalidAlgorithmParms: OSStatus = -67_770
/// The set of algorithm parameters is missing.
public let errSecMissingAlgorithmParms: OSStatus = -67_771
/// The label is not valid.
public let errSecInvalidAttributeLabel: OSStatus = -67_772
/// The label is missing.
public let errSecMissingAttributeLabel: OSStatus = -67_773
/// The key type is not valid.
public let errSecInvalidAttributeKeyType: OSStatus = -67_774
/// The key type is missing.
public let errSecMissingAttributeKeyType: OSStatus = -67_775
/// The mode is not valid.
public let errSecInvalidAttributeMode: OSStatus = -67_776
/// The mode is missing.
public let errSecMissingAttributeMode: OSStatus = -67_777
/// The number of effective bits is not valid.
public let errSecInvalidAttributeEffectiveBits: OSStatus = -67_778
/// The number of effective bits is missing.
public let errSecMissingAttributeEffectiveBits: OSStatus = -67_779
/// The start date is not valid.
public let errSecInvalidAttributeStartDate: OSStatus = -67_780
/// The start date is missing.
public let errSecMissingAttributeStartDate: OSStatus = -67_781
/// The end date is not valid.
public let errSecInvalidAttributeEndDate: OSStatus = -67_782
/// The end date is missing.
public let errSecMissingAttributeEndDate: OSStatus = -67_783
/// The version is not valid.
public let errSecInvalidAttributeVersion: OSStatus = -67_784
/// The version is missing.
public let errSecMissingAttributeVersion: OSStatus = -67_785
/// The prime is not valid.
public let errSecInvalidAttributePrime: OSStatus = -67_786
/// The prime is missing.
public let errSecMissingAttributePrime: OSStatus = -67_787
/// The base is not valid.
public let errSecInvalidAttributeBase: OSStatus = -67_788
/// The base is missing.
public let errSecMissingAttributeBase: OSStatus = -67_789
/// The subprime is not valid.
public let errSecInvalidAttributeSubprime: OSStatus = -67_790
/// The subprime is missing.
public let errSecMissingAttributeSubprime: OSStatus = -67_791
/// The iteration count is not valid.
public let errSecInvalidAttributeIterationCount: OSStatus = -67_792
/// The iteration count is missing.
public let errSecMissingAttributeIterationCount: OSStatus = -67_793
/// The database handle is not valid.
public let errSecInvalidAttributeDLDBHandle: OSStatus = -67_794
/// The database handle is missing.
public let errSecMissingAttributeDLDBHandle: OSStatus = -67_795
/// The access credentials attribute is not valid.
public let errSecInvalidAttributeAccessCredentials: OSStatus = -67_796
/// The access credentials attribute is missing.
public let errSecMissingAttributeAccessCredentials: OSStatus = -67_797
/// The public key format is not valid.
public let errSecInvalidAttributePublicKeyFormat: OSStatus = -67_798
/// The public key format is missing.
public let errSecMissingAttributePublicKeyFormat: OSStatus = -67_799
/// The private key format is not valid.
public let errSecInvalidAttributePrivateKeyFormat: OSStatus = -67_800
/// The private key format is missing.
public let errSecMissingAttributePrivateKeyFormat: OSStatus = -67_801
/// The symmetric key format is not valid.
public let errSecInvalidAttributeSymmetricKeyFormat: OSStatus = -67_802
/// The symmetric key format is missing.
public let errSecMissingAttributeSymmetricKeyFormat: OSStatus = -67_803
/// The wrapped key format is not valid.
public let errSecInvalidAttributeWrappedKeyFormat: OSStatus = -67_804
/// The wrapped key format is missing.
public let errSecMissingAttributeWrappedKeyFormat: OSStatus = -67_805

/// The descriptions of the statuses above.
let parameterStatusMessages: [OSStatus: String] = [
    errSecInvalidContext: "The context is not valid.",
    errSecInvalidAlgorithm: "The algorithm is not valid.",
    errSecInvalidAttributeKey: "The key is not valid.",
    errSecMissingAttributeKey: "The key is missing.",
    errSecInvalidAttributeInitVector: "The initialization vector is not valid.",
    errSecMissingAttributeInitVector: "The initialization vector is missing.",
    errSecInvalidAttributeSalt: "The salt is not valid.",
    errSecMissingAttributeSalt: "The salt is missing.",
    errSecInvalidAttributePadding: "The padding is not valid.",
    errSecMissingAttributePadding: "The padding is missing.",
    errSecInvalidAttributeRandom: "The random number is not valid.",
    errSecMissingAttributeRandom: "The random number is missing.",
    errSecInvalidAttributeSeed: "The seed is not valid.",
    errSecMissingAttributeSeed: "The seed is missing.",
    errSecInvalidAttributePassphrase: "The passphrase is not valid.",
    errSecMissingAttributePassphrase: "The passphrase is missing.",
    errSecInvalidAttributeKeyLength: "The key length is not valid.",
    errSecMissingAttributeKeyLength: "The key length is missing.",
    errSecInvalidAttributeBlockSize: "The block size is not valid.",
    errSecMissingAttributeBlockSize: "The block size is missing.",
    errSecInvalidAttributeOutputSize: "The output size is not valid.",
    errSecMissingAttributeOutputSize: "The output size is missing.",
    errSecInvalidAttributeRounds: "The number of rounds is not valid.",
    errSecMissingAttributeRounds: "The number of rounds is missing.",
    errSecInvalidAlgorithmParms: "The set of algorithm parameters is not valid.",
    errSecMissingAlgorithmParms: "The set of algorithm parameters is missing.",
    errSecInvalidAttributeLabel: "The label is not valid.",
    errSecMissingAttributeLabel: "The label is missing.",
    errSecInvalidAttributeKeyType: "The key type is not valid.",
    errSecMissingAttributeKeyType: "The key type is missing.",
    errSecInvalidAttributeMode: "The mode is not valid.",
    errSecMissingAttributeMode: "The mode is missing.",
    errSecInvalidAttributeEffectiveBits: "The number of effective bits is not valid.",
    errSecMissingAttributeEffectiveBits: "The number of effective bits is missing.",
    errSecInvalidAttributeStartDate: "The start date is not valid.",
    errSecMissingAttributeStartDate: "The start date is missing.",
    errSecInvalidAttributeEndDate: "The end date is not valid.",
    errSecMissingAttributeEndDate: "The end date is missing.",
    errSecInvalidAttributeVersion: "The version is not valid.",
    errSecMissingAttributeVersion: "The version is missing.",
    errSecInvalidAttributePrime: "The prime is not valid.",
    errSecMissingAttributePrime: "The prime is missing.",
    errSecInvalidAttributeBase: "The base is not valid.",
    errSecMissingAttributeBase: "The base is missing.",
    errSecInvalidAttributeSubprime: "The subprime is not valid.",
    errSecMissingAttributeSubprime: "The subprime is missing.",
    errSecInvalidAttributeIterationCount: "The iteration count is not valid.",
    errSecMissingAttributeIterationCount: "The iteration count is missing.",
    errSecInvalidAttributeDLDBHandle: "The database handle is not valid.",
    errSecMissingAttributeDLDBHandle: "The database handle is missing.",
    errSecInvalidAttributeAccessCredentials: "The access credentials attribute is not valid.",
    errSecMissingAttributeAccessCredentials: "The access credentials attribute is missing.",
    errSecInvalidAttributePublicKeyFormat: "The public key format is not valid.",
    errSecMissingAttributePublicKeyFormat: "The public key format is missing.",
    errSecInvalidAttributePrivateKeyFormat: "The private key format is not valid.",
    errSecMissingAttributePrivateKeyFormat: "The private key format is missing.",
    errSecInvalidAttributeSymmetricKeyFormat: "The symmetric key format is not valid.",
    errSecMissingAttributeSymmetricKeyFormat: "The symmetric key format is missing.",
    errSecInvalidAttributeWrappedKeyFormat: "The wrapped key format is not valid.",
    errSecMissingAttributeWrappedKeyFormat: "The wrapped key format is missing.",
]
