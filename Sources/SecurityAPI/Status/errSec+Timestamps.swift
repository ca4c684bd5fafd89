// SPDX-License-Identifier: Apache-2.0

// Statuses of timestamps and of the rules for certificates.
//
// No function of this module returns them. They exist for code that lists or compares Apple's statuses (SecBase.h).

/// A required extension of the certificate is missing.
public let errSecMissingRequiredExtension: OSStatus = -67_880
/// The extended key usage is not marked as critical.
public let errSecExtendedKeyUsageNotCritical: OSStatus = -67_881
/// A timestamp was expected and is missing.
public let errSecTimestampMissing: OSStatus = -67_882
/// The timestamp is not valid.
public let errSecTimestampInvalid: OSStatus = -67_883
/// The timestamp is not trusted.
public let errSecTimestampNotTrusted: OSStatus = -67_884
/// The timestamp service is not available.
public let errSecTimestampServiceNotAvailable: OSStatus = -67_885
/// The timestamp service does not support the algorithm.
public let errSecTimestampBadAlg: OSStatus = -67_886
/// The timestamp service does not allow this request.
public let errSecTimestampBadRequest: OSStatus = -67_887
/// The data for the timestamp has the wrong format.
public let errSecTimestampBadDataFormat: OSStatus = -67_888
/// The time source of the timestamp service is not available.
public let errSecTimestampTimeNotAvailable: OSStatus = -67_889
/// The timestamp service does not support the requested policy.
public let errSecTimestampUnacceptedPolicy: OSStatus = -67_890
/// The timestamp service does not support the requested extension.
public let errSecTimestampUnacceptedExtension: OSStatus = -67_891
/// The additional information for the timestamp is not available.
public let errSecTimestampAddInfoNotAvailable: OSStatus = -67_892
/// The timestamp service had a system failure.
public let errSecTimestampSystemFailure: OSStatus = -67_893
/// A signing time was expected and is missing.
public let errSecSigningTimeMissing: OSStatus = -67_894
/// The timestamp service rejected the request.
public let errSecTimestampRejection: OSStatus = -67_895
/// The timestamp service has queued the request.
public let errSecTimestampWaiting: OSStatus = -67_896
/// The certificate of the timestamp service is about to be revoked.
public let errSecTimestampRevocationWarning: OSStatus = -67_897
/// The certificate of the timestamp service was revoked.
public let errSecTimestampRevocationNotification: OSStatus = -67_898
/// The policy of the certificate is not allowed.
public let errSecCertificatePolicyNotAllowed: OSStatus = -67_899
/// The name in the certificate is not allowed.
public let errSecCertificateNameNotAllowed: OSStatus = -67_900
/// The validity period of the certificate is too long.
public let errSecCertificateValidityPeriodTooLong: OSStatus = -67_901
/// The certificate belongs to a certificate authority, which is not allowed here.
public let errSecCertificateIsCA: OSStatus = -67_902
/// The certificate contains an extension twice.
public let errSecCertificateDuplicateExtension: OSStatus = -67_903
/// A required statement of the qualified certificate is missing.
public let errSecMissingQualifiedCertStatement: OSStatus = -67_904

/// The descriptions of the statuses above.
let timestampStatusMessages: [OSStatus: String] = [
    errSecMissingRequiredExtension: "A required extension of the certificate is missing.",
    errSecExtendedKeyUsageNotCritical: "The extended key usage is not marked as critical.",
    errSecTimestampMissing: "A timestamp was expected and is missing.",
    errSecTimestampInvalid: "The timestamp is not valid.",
    errSecTimestampNotTrusted: "The timestamp is not trusted.",
    errSecTimestampServiceNotAvailable: "The timestamp service is not available.",
    errSecTimestampBadAlg: "The timestamp service does not support the algorithm.",
    errSecTimestampBadRequest: "The timestamp service does not allow this request.",
    errSecTimestampBadDataFormat: "The data for the timestamp has the wrong format.",
    errSecTimestampTimeNotAvailable: "The time source of the timestamp service is not available.",
    errSecTimestampUnacceptedPolicy: "The timestamp service does not support the requested policy.",
    errSecTimestampUnacceptedExtension: "The timestamp service does not support the requested extension.",
    errSecTimestampAddInfoNotAvailable: "The additional information for the timestamp is not available.",
    errSecTimestampSystemFailure: "The timestamp service had a system failure.",
    errSecSigningTimeMissing: "A signing time was expected and is missing.",
    errSecTimestampRejection: "The timestamp service rejected the request.",
    errSecTimestampWaiting: "The timestamp service has queued the request.",
    errSecTimestampRevocationWarning: "The certificate of the timestamp service is about to be revoked.",
    errSecTimestampRevocationNotification: "The certificate of the timestamp service was revoked.",
    errSecCertificatePolicyNotAllowed: "The policy of the certificate is not allowed.",
    errSecCertificateNameNotAllowed: "The name in the certificate is not allowed.",
    errSecCertificateValidityPeriodTooLong: "The validity period of the certificate is too long.",
    errSecCertificateIsCA: "The certificate belongs to a certificate authority, which is not allowed here.",
    errSecCertificateDuplicateExtension: "The certificate contains an extension twice.",
    errSecMissingQualifiedCertStatement: "A required statement of the qualified certificate is missing.",
]
