// SPDX-License-Identifier: Apache-2.0

// Statuses of certificates, revocation, signed code, and trust.
//
// No function of this module returns them. They exist for code that lists or compares Apple's statuses (SecBase.h).

/// The client identifier is not correct.
public let errSecInsufficientClientID: OSStatus = -67_586
/// The device was reset.
public let errSecDeviceReset: OSStatus = -67_587
/// The device failed.
public let errSecDeviceFailed: OSStatus = -67_588
/// An application could not be added to the access list.
public let errSecAppleAddAppACLSubject: OSStatus = -67_589
/// The public key is incomplete.
public let errSecApplePublicKeyIncomplete: OSStatus = -67_590
/// The signature does not match.
public let errSecAppleSignatureMismatch: OSStatus = -67_591
/// The start date of the key is not valid.
public let errSecAppleInvalidKeyStartDate: OSStatus = -67_592
/// The end date of the key is not valid.
public let errSecAppleInvalidKeyEndDate: OSStatus = -67_593
/// A value could not be converted.
public let errSecConversionError: OSStatus = -67_594
/// The connection was forced to an older version of SSL.
public let errSecAppleSSLv2Rollback: OSStatus = -67_595
/// The file is too large.
public let errSecFileTooBig: OSStatus = -67_597
/// The data of the database is not valid.
public let errSecInvalidDatabaseBlob: OSStatus = -67_598
/// The data of the key is not valid.
public let errSecInvalidKeyBlob: OSStatus = -67_599
/// The data of the database is not compatible.
public let errSecIncompatibleDatabaseBlob: OSStatus = -67_600
/// The data of the key is not compatible.
public let errSecIncompatibleKeyBlob: OSStatus = -67_601
/// The certificate is for another host.
public let errSecHostNameMismatch: OSStatus = -67_602
/// A critical extension of the certificate is not known.
public let errSecUnknownCriticalExtensionFlag: OSStatus = -67_603
/// The certificate has no basic constraints.
public let errSecNoBasicConstraints: OSStatus = -67_604
/// The basic constraints do not say whether the certificate belongs to a certificate authority.
public let errSecNoBasicConstraintsCA: OSStatus = -67_605
/// The authority key identifier is not valid.
public let errSecInvalidAuthorityKeyID: OSStatus = -67_606
/// The subject key identifier is not valid.
public let errSecInvalidSubjectKeyID: OSStatus = -67_607
/// The policy does not allow this use of the key.
public let errSecInvalidKeyUsageForPolicy: OSStatus = -67_608
/// The extended key usage is not valid.
public let errSecInvalidExtendedKeyUsage: OSStatus = -67_609
/// The identifiers of the certificates do not link to each other.
public let errSecInvalidIDLinkage: OSStatus = -67_610
/// The chain of certificates is longer than a certificate in it allows.
public let errSecPathLengthConstraintExceeded: OSStatus = -67_611
/// The root certificate is not valid.
public let errSecInvalidRoot: OSStatus = -67_612
/// The certificate revocation list has expired.
public let errSecCRLExpired: OSStatus = -67_613
/// The certificate revocation list is not valid yet.
public let errSecCRLNotValidYet: OSStatus = -67_614
/// The certificate revocation list was not found.
public let errSecCRLNotFound: OSStatus = -67_615
/// The server of the certificate revocation list does not answer.
public let errSecCRLServerDown: OSStatus = -67_616
/// The URI of the certificate revocation list is not valid.
public let errSecCRLBadURI: OSStatus = -67_617
/// An extension of the certificate is not known.
public let errSecUnknownCertExtension: OSStatus = -67_618
/// An extension of the certificate revocation list is not known.
public let errSecUnknownCRLExtension: OSStatus = -67_619
/// The certificate revocation list is not trusted.
public let errSecCRLNotTrusted: OSStatus = -67_620
/// The certificate revocation list does not satisfy the policy.
public let errSecCRLPolicyFailed: OSStatus = -67_621
/// The issuing distribution point could not be used.
public let errSecIDPFailure: OSStatus = -67_622
/// No email address of the certificate matches the sender.
public let errSecSMIMEEmailAddressesNotFound: OSStatus = -67_623
/// The extended key usage does not allow S/MIME.
public let errSecSMIMEBadExtendedKeyUsage: OSStatus = -67_624
/// The key usage does not allow S/MIME.
public let errSecSMIMEBadKeyUsage: OSStatus = -67_625
/// The key usage is not marked as critical, as S/MIME requires.
public let errSecSMIMEKeyUsageNotCritical: OSStatus = -67_626
/// The certificate has no email address.
public let errSecSMIMENoEmailAddress: OSStatus = -67_627
/// The subject alternative name is not marked as critical, as S/MIME requires.
public let errSecSMIMESubjAltNameNotCritical: OSStatus = -67_628
/// The extended key usage does not allow SSL.
public let errSecSSLBadExtendedKeyUsage: OSStatus = -67_629
/// The OCSP response is not valid or cannot be parsed.
public let errSecOCSPBadResponse: OSStatus = -67_630
/// The OCSP request is not valid or cannot be parsed.
public let errSecOCSPBadRequest: OSStatus = -67_631
/// The OCSP service is not available.
public let errSecOCSPUnavailable: OSStatus = -67_632
/// The OCSP server does not know the certificate.
public let errSecOCSPStatusUnrecognized: OSStatus = -67_633
/// The end of the data was reached.
public let errSecEndOfData: OSStatus = -67_634
/// The revocation of the certificate could not be checked completely.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67_635
/// The network failed.
public let errSecNetworkFailure: OSStatus = -67_636
/// The OCSP response is not trusted up to a root certificate.
public let errSecOCSPNotTrustedToAnchor: OSStatus = -67_637
/// The record was changed by another operation.
public let errSecRecordModified: OSStatus = -67_638
/// The signature of the OCSP response is not valid.
public let errSecOCSPSignatureError: OSStatus = -67_639
/// The OCSP response has no signer.
public let errSecOCSPNoSigner: OSStatus = -67_640
/// The OCSP server received a malformed request.
public let errSecOCSPResponderMalformedReq: OSStatus = -67_641
/// The OCSP server had an internal error.
public let errSecOCSPResponderInternalError: OSStatus = -67_642
/// The OCSP server is busy: try again later.
public let errSecOCSPResponderTryLater: OSStatus = -67_643
/// The OCSP server requires a signed request.
public let errSecOCSPResponderSignatureRequired: OSStatus = -67_644
/// The OCSP server refused the request as unauthorized.
public let errSecOCSPResponderUnauthorized: OSStatus = -67_645
/// The nonce of the OCSP response is not the one of the request.
public let errSecOCSPResponseNonceMismatch: OSStatus = -67_646
/// The chain of certificates for code signing has the wrong length.
public let errSecCodeSigningBadCertChainLength: OSStatus = -67_647
/// A certificate for code signing has no basic constraints.
public let errSecCodeSigningNoBasicConstraints: OSStatus = -67_648
/// A certificate for code signing has the wrong path length constraint.
public let errSecCodeSigningBadPathLengthConstraint: OSStatus = -67_649
/// The certificate for code signing has no extended key usage.
public let errSecCodeSigningNoExtendedKeyUsage: OSStatus = -67_650
/// The certificate is for the development of code only.
public let errSecCodeSigningDevelopment: OSStatus = -67_651
/// The chain of certificates for resource signing has the wrong length.
public let errSecResourceSignBadCertChainLength: OSStatus = -67_652
/// The extended key usage does not allow resource signing.
public let errSecResourceSignBadExtKeyUsage: OSStatus = -67_653
/// The trust settings deny the certificate.
public let errSecTrustSettingDeny: OSStatus = -67_654
/// The subject name is not valid.
public let errSecInvalidSubjectName: OSStatus = -67_655
/// A statement of the qualified certificate is not known.
public let errSecUnknownQualifiedCertStatement: OSStatus = -67_656
/// The MobileMe request waits to be sent.
public let errSecMobileMeRequestQueued: OSStatus = -67_657
/// The MobileMe request was redirected.
public let errSecMobileMeRequestRedirected: OSStatus = -67_658
/// The MobileMe server had an error.
public let errSecMobileMeServerError: OSStatus = -67_659
/// The MobileMe server is not available.
public let errSecMobileMeServerNotAvailable: OSStatus = -67_660
/// The MobileMe server reports that the item exists already.
public let errSecMobileMeServerAlreadyExists: OSStatus = -67_661
/// The MobileMe service had an error.
public let errSecMobileMeServerServiceErr: OSStatus = -67_662
/// A MobileMe request is already pending.
public let errSecMobileMeRequestAlreadyPending: OSStatus = -67_663
/// No MobileMe request is pending.
public let errSecMobileMeNoRequestPending: OSStatus = -67_664
/// The MobileMe server could not verify the certificate signing request.
public let errSecMobileMeCSRVerifyFailure: OSStatus = -67_665
/// MobileMe found an inconsistency.
public let errSecMobileMeFailedConsistencyCheck: OSStatus = -67_666

/// The descriptions of the statuses above.
let certificateStatusMessages: [OSStatus: String] = [
    errSecInsufficientClientID: "The client identifier is not correct.",
    errSecDeviceReset: "The device was reset.",
    errSecDeviceFailed: "The device failed.",
    errSecAppleAddAppACLSubject: "An application could not be added to the access list.",
    errSecApplePublicKeyIncomplete: "The public key is incomplete.",
    errSecAppleSignatureMismatch: "The signature does not match.",
    errSecAppleInvalidKeyStartDate: "The start date of the key is not valid.",
    errSecAppleInvalidKeyEndDate: "The end date of the key is not valid.",
    errSecConversionError: "A value could not be converted.",
    errSecAppleSSLv2Rollback: "The connection was forced to an older version of SSL.",
    errSecFileTooBig: "The file is too large.",
    errSecInvalidDatabaseBlob: "The data of the database is not valid.",
    errSecInvalidKeyBlob: "The data of the key is not valid.",
    errSecIncompatibleDatabaseBlob: "The data of the database is not compatible.",
    errSecIncompatibleKeyBlob: "The data of the key is not compatible.",
    errSecHostNameMismatch: "The certificate is for another host.",
    errSecUnknownCriticalExtensionFlag: "A critical extension of the certificate is not known.",
    errSecNoBasicConstraints: "The certificate has no basic constraints.",
    errSecNoBasicConstraintsCA: "The basic constraints do not say whether the certificate belongs to a certificate authority.",
    errSecInvalidAuthorityKeyID: "The authority key identifier is not valid.",
    errSecInvalidSubjectKeyID: "The subject key identifier is not valid.",
    errSecInvalidKeyUsageForPolicy: "The policy does not allow this use of the key.",
    errSecInvalidExtendedKeyUsage: "The extended key usage is not valid.",
    errSecInvalidIDLinkage: "The identifiers of the certificates do not link to each other.",
    errSecPathLengthConstraintExceeded: "The chain of certificates is longer than a certificate in it allows.",
    errSecInvalidRoot: "The root certificate is not valid.",
    errSecCRLExpired: "The certificate revocation list has expired.",
    errSecCRLNotValidYet: "The certificate revocation list is not valid yet.",
    errSecCRLNotFound: "The certificate revocation list was not found.",
    errSecCRLServerDown: "The server of the certificate revocation list does not answer.",
    errSecCRLBadURI: "The URI of the certificate revocation list is not valid.",
    errSecUnknownCertExtension: "An extension of the certificate is not known.",
    errSecUnknownCRLExtension: "An extension of the certificate revocation list is not known.",
    errSecCRLNotTrusted: "The certificate revocation list is not trusted.",
    errSecCRLPolicyFailed: "The certificate revocation list does not satisfy the policy.",
    errSecIDPFailure: "The issuing distribution point could not be used.",
    errSecSMIMEEmailAddressesNotFound: "No email address of the certificate matches the sender.",
    errSecSMIMEBadExtendedKeyUsage: "The extended key usage does not allow S/MIME.",
    errSecSMIMEBadKeyUsage: "The key usage does not allow S/MIME.",
    errSecSMIMEKeyUsageNotCritical: "The key usage is not marked as critical, as S/MIME requires.",
    errSecSMIMENoEmailAddress: "The certificate has no email address.",
    errSecSMIMESubjAltNameNotCritical: "The subject alternative name is not marked as critical, as S/MIME requires.",
    errSecSSLBadExtendedKeyUsage: "The extended key usage does not allow SSL.",
    errSecOCSPBadResponse: "The OCSP response is not valid or cannot be parsed.",
    errSecOCSPBadRequest: "The OCSP request is not valid or cannot be parsed.",
    errSecOCSPUnavailable: "The OCSP service is not available.",
    errSecOCSPStatusUnrecognized: "The OCSP server does not know the certificate.",
    errSecEndOfData: "The end of the data was reached.",
    errSecIncompleteCertRevocationCheck: "The revocation of the certificate could not be checked completely.",
    errSecNetworkFailure: "The network failed.",
    errSecOCSPNotTrustedToAnchor: "The OCSP response is not trusted up to a root certificate.",
    errSecRecordModified: "The record was changed by another operation.",
    errSecOCSPSignatureError: "The signature of the OCSP response is not valid.",
    errSecOCSPNoSigner: "The OCSP response has no signer.",
    errSecOCSPResponderMalformedReq: "The OCSP server received a malformed request.",
    errSecOCSPResponderInternalError: "The OCSP server had an internal error.",
    errSecOCSPResponderTryLater: "The OCSP server is busy: try again later.",
    errSecOCSPResponderSignatureRequired: "The OCSP server requires a signed request.",
    errSecOCSPResponderUnauthorized: "The OCSP server refused the request as unauthorized.",
    errSecOCSPResponseNonceMismatch: "The nonce of the OCSP response is not the one of the request.",
    errSecCodeSigningBadCertChainLength: "The chain of certificates for code signing has the wrong length.",
    errSecCodeSigningNoBasicConstraints: "A certificate for code signing has no basic constraints.",
    errSecCodeSigningBadPathLengthConstraint: "A certificate for code signing has the wrong path length constraint.",
    errSecCodeSigningNoExtendedKeyUsage: "The certificate for code signing has no extended key usage.",
    errSecCodeSigningDevelopment: "The certificate is for the development of code only.",
    errSecResourceSignBadCertChainLength: "The chain of certificates for resource signing has the wrong length.",
    errSecResourceSignBadExtKeyUsage: "The extended key usage does not allow resource signing.",
    errSecTrustSettingDeny: "The trust settings deny the certificate.",
    errSecInvalidSubjectName: "The subject name is not valid.",
    errSecUnknownQualifiedCertStatement: "A statement of the qualified certificate is not known.",
    errSecMobileMeRequestQueued: "The MobileMe request waits to be sent.",
    errSecMobileMeRequestRedirected: "The MobileMe request was redirected.",
    errSecMobileMeServerError: "The MobileMe server had an error.",
    errSecMobileMeServerNotAvailable: "The MobileMe server is not available.",
    errSecMobileMeServerAlreadyExists: "The MobileMe server reports that the item exists already.",
    errSecMobileMeServerServiceErr: "The MobileMe service had an error.",
    errSecMobileMeRequestAlreadyPending: "A MobileMe request is already pending.",
    errSecMobileMeNoRequestPending: "No MobileMe request is pending.",
    errSecMobileMeCSRVerifyFailure: "The MobileMe server could not verify the certificate signing request.",
    errSecMobileMeFailedConsistencyCheck: "MobileMe found an inconsistency.",
]
