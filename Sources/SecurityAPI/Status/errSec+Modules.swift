// SPDX-License-Identifier: Apache-2.0

// Statuses of cryptographic modules (CDSA): handles, keys, access lists, and devices.
//
// No function of this module returns them. They exist for code that lists or compares Apple's statuses (SecBase.h).

/// The function was called before its module was initialized.
public let errSecNotInitialized: OSStatus = -67_667
/// The handle cannot be used in this way.
public let errSecInvalidHandleUsage: OSStatus = -67_668
/// The caller of the function was not found.
public let errSecPVCReferentNotFound: OSStatus = -67_669
/// The integrity of the function could not be verified.
public let errSecFunctionIntegrityFail: OSStatus = -67_670
/// The module had an internal error.
public let errSecInternalError: OSStatus = -67_671
/// The module had a memory error.
public let errSecMemoryError: OSStatus = -67_672
/// The data is not valid.
public let errSecInvalidData: OSStatus = -67_673
/// The module directory service had an error.
public let errSecMDSError: OSStatus = -67_674
/// The pointer is not valid.
public let errSecInvalidPointer: OSStatus = -67_675
/// The self-check of the module failed.
public let errSecSelfCheckFailed: OSStatus = -67_676
/// The function failed.
public let errSecFunctionFailed: OSStatus = -67_677
/// The manifest of the module could not be verified.
public let errSecModuleManifestVerifyFailed: OSStatus = -67_678
/// The GUID is not valid.
public let errSecInvalidGUID: OSStatus = -67_679
/// The handle is not valid.
public let errSecInvalidHandle: OSStatus = -67_680
/// The list of databases is not valid.
public let errSecInvalidDBList: OSStatus = -67_681
/// The identifier of the module's own function is not valid.
public let errSecInvalidPassthroughID: OSStatus = -67_682
/// The network address is not valid.
public let errSecInvalidNetworkAddress: OSStatus = -67_683
/// The certificate revocation list is already signed.
public let errSecCRLAlreadySigned: OSStatus = -67_684
/// The number of fields is not valid.
public let errSecInvalidNumberOfFields: OSStatus = -67_685
/// The verification failed.
public let errSecVerificationFailure: OSStatus = -67_686
/// The tag is not known.
public let errSecUnknownTag: OSStatus = -67_687
/// The signature is not valid.
public let errSecInvalidSignature: OSStatus = -67_688
/// The name is not valid.
public let errSecInvalidName: OSStatus = -67_689
/// The reference to a certificate is not valid.
public let errSecInvalidCertificateRef: OSStatus = -67_690
/// The group of certificates is not valid.
public let errSecInvalidCertificateGroup: OSStatus = -67_691
/// The tag was not found.
public let errSecTagNotFound: OSStatus = -67_692
/// The query is not valid.
public let errSecInvalidQuery: OSStatus = -67_693
/// The value is not valid.
public let errSecInvalidValue: OSStatus = -67_694
/// The callback failed.
public let errSecCallbackFailed: OSStatus = -67_695
/// An entry of the access list could not be deleted.
public let errSecACLDeleteFailed: OSStatus = -67_696
/// An entry of the access list could not be replaced.
public let errSecACLReplaceFailed: OSStatus = -67_697
/// An entry could not be added to the access list.
public let errSecACLAddFailed: OSStatus = -67_698
/// The access list could not be changed.
public let errSecACLChangeFailed: OSStatus = -67_699
/// The access credentials are not valid.
public let errSecInvalidAccessCredentials: OSStatus = -67_700
/// The record is not valid.
public let errSecInvalidRecord: OSStatus = -67_701
/// The access list is not valid.
public let errSecInvalidACL: OSStatus = -67_702
/// The sample for the access list is not valid.
public let errSecInvalidSampleValue: OSStatus = -67_703
/// The version is not compatible.
public let errSecIncompatibleVersion: OSStatus = -67_704
/// The privilege was not granted.
public let errSecPrivilegeNotGranted: OSStatus = -67_705
/// The scope is not valid.
public let errSecInvalidScope: OSStatus = -67_706
/// The validation of callers is already configured.
public let errSecPVCAlreadyConfigured: OSStatus = -67_707
/// The option for the validation of callers is not valid.
public let errSecInvalidPVC: OSStatus = -67_708
/// The elective module manager could not be loaded.
public let errSecEMMLoadFailed: OSStatus = -67_709
/// The elective module manager could not be unloaded.
public let errSecEMMUnloadFailed: OSStatus = -67_710
/// The add-in could not be loaded.
public let errSecAddinLoadFailed: OSStatus = -67_711
/// The reference to a key is not valid.
public let errSecInvalidKeyRef: OSStatus = -67_712
/// The hierarchy of keys is not valid.
public let errSecInvalidKeyHierarchy: OSStatus = -67_713
/// The add-in could not be unloaded.
public let errSecAddinUnloadFailed: OSStatus = -67_714
/// The reference to a library was not found.
public let errSecLibraryReferenceNotFound: OSStatus = -67_715
/// The function table of the add-in is not valid.
public let errSecInvalidAddinFunctionTable: OSStatus = -67_716
/// The service mask is not valid.
public let errSecInvalidServiceMask: OSStatus = -67_717
/// The module is not loaded.
public let errSecModuleNotLoaded: OSStatus = -67_718
/// The identifier of the subservice is not valid.
public let errSecInvalidSubServiceID: OSStatus = -67_719
/// The context does not contain the attribute.
public let errSecAttributeNotInContext: OSStatus = -67_720
/// The module manager could not be initialized.
public let errSecModuleManagerInitializeFailed: OSStatus = -67_721
/// The module manager was not found.
public let errSecModuleManagerNotFound: OSStatus = -67_722
/// The callback for events was not found.
public let errSecEventNotificationCallbackNotFound: OSStatus = -67_723
/// The input has the wrong length.
public let errSecInputLengthError: OSStatus = -67_724
/// The output has the wrong length.
public let errSecOutputLengthError: OSStatus = -67_725
/// The privilege is not supported.
public let errSecPrivilegeNotSupported: OSStatus = -67_726
/// The device had an error.
public let errSecDeviceError: OSStatus = -67_727
/// The handle of the module is in use.
public let errSecAttachHandleBusy: OSStatus = -67_728
/// No user is logged in to the device.
public let errSecNotLoggedIn: OSStatus = -67_729
/// The algorithm does not fit the key.
public let errSecAlgorithmMismatch: OSStatus = -67_730
/// The key may not be used for this.
public let errSecKeyUsageIncorrect: OSStatus = -67_731
/// The type of the key data is not correct.
public let errSecKeyBlobTypeIncorrect: OSStatus = -67_732
/// The header of the key is inconsistent.
public let errSecKeyHeaderInconsistent: OSStatus = -67_733
/// The key format is not supported.
public let errSecUnsupportedKeyFormat: OSStatus = -67_734
/// The key size is not supported.
public let errSecUnsupportedKeySize: OSStatus = -67_735
/// The mask of key uses is not valid.
public let errSecInvalidKeyUsageMask: OSStatus = -67_736
/// The mask of key uses is not supported.
public let errSecUnsupportedKeyUsageMask: OSStatus = -67_737
/// The mask of key attributes is not valid.
public let errSecInvalidKeyAttributeMask: OSStatus = -67_738
/// The mask of key attributes is not supported.
public let errSecUnsupportedKeyAttributeMask: OSStatus = -67_739
/// The key label is not valid.
public let errSecInvalidKeyLabel: OSStatus = -67_740
/// The key label is not supported.
public let errSecUnsupportedKeyLabel: OSStatus = -67_741
/// The key format is not valid.
public let errSecInvalidKeyFormat: OSStatus = -67_742
/// Several buffers at once are not supported.
public let errSecUnsupportedVectorOfBuffers: OSStatus = -67_743
/// The input buffers are not valid.
public let errSecInvalidInputVector: OSStatus = -67_744
/// The output buffers are not valid.
public let errSecInvalidOutputVector: OSStatus = -67_745

/// The descriptions of the statuses above.
let moduleStatusMessages: [OSStatus: String] = [
    errSecNotInitialized: "The function was called before its module was initialized.",
    errSecInvalidHandleUsage: "The handle cannot be used in this way.",
    errSecPVCReferentNotFound: "The caller of the function was not found.",
    errSecFunctionIntegrityFail: "The integrity of the function could not be verified.",
    errSecInternalError: "The module had an internal error.",
    errSecMemoryError: "The module had a memory error.",
    errSecInvalidData: "The data is not valid.",
    errSecMDSError: "The module directory service had an error.",
    errSecInvalidPointer: "The pointer is not valid.",
    errSecSelfCheckFailed: "The self-check of the module failed.",
    errSecFunctionFailed: "The function failed.",
    errSecModuleManifestVerifyFailed: "The manifest of the module could not be verified.",
    errSecInvalidGUID: "The GUID is not valid.",
    errSecInvalidHandle: "The handle is not valid.",
    errSecInvalidDBList: "The list of databases is not valid.",
    errSecInvalidPassthroughID: "The identifier of the module's own function is not valid.",
    errSecInvalidNetworkAddress: "The network address is not valid.",
    errSecCRLAlreadySigned: "The certificate revocation list is already signed.",
    errSecInvalidNumberOfFields: "The number of fields is not valid.",
    errSecVerificationFailure: "The verification failed.",
    errSecUnknownTag: "The tag is not known.",
    errSecInvalidSignature: "The signature is not valid.",
    errSecInvalidName: "The name is not valid.",
    errSecInvalidCertificateRef: "The reference to a certificate is not valid.",
    errSecInvalidCertificateGroup: "The group of certificates is not valid.",
    errSecTagNotFound: "The tag was not found.",
    errSecInvalidQuery: "The query is not valid.",
    errSecInvalidValue: "The value is not valid.",
    errSecCallbackFailed: "The callback failed.",
    errSecACLDeleteFailed: "An entry of the access list could not be deleted.",
    errSecACLReplaceFailed: "An entry of the access list could not be replaced.",
    errSecACLAddFailed: "An entry could not be added to the access list.",
    errSecACLChangeFailed: "The access list could not be changed.",
    errSecInvalidAccessCredentials: "The access credentials are not valid.",
    errSecInvalidRecord: "The record is not valid.",
    errSecInvalidACL: "The access list is not valid.",
    errSecInvalidSampleValue: "The sample for the access list is not valid.",
    errSecIncompatibleVersion: "The version is not compatible.",
    errSecPrivilegeNotGranted: "The privilege was not granted.",
    errSecInvalidScope: "The scope is not valid.",
    errSecPVCAlreadyConfigured: "The validation of callers is already configured.",
    errSecInvalidPVC: "The option for the validation of callers is not valid.",
    errSecEMMLoadFailed: "The elective module manager could not be loaded.",
    errSecEMMUnloadFailed: "The elective module manager could not be unloaded.",
    errSecAddinLoadFailed: "The add-in could not be loaded.",
    errSecInvalidKeyRef: "The reference to a key is not valid.",
    errSecInvalidKeyHierarchy: "The hierarchy of keys is not valid.",
    errSecAddinUnloadFailed: "The add-in could not be unloaded.",
    errSecLibraryReferenceNotFound: "The reference to a library was not found.",
    errSecInvalidAddinFunctionTable: "The function table of the add-in is not valid.",
    errSecInvalidServiceMask: "The service mask is not valid.",
    errSecModuleNotLoaded: "The module is not loaded.",
    errSecInvalidSubServiceID: "The identifier of the subservice is not valid.",
    errSecAttributeNotInContext: "The context does not contain the attribute.",
    errSecModuleManagerInitializeFailed: "The module manager could not be initialized.",
    errSecModuleManagerNotFound: "The module manager was not found.",
    errSecEventNotificationCallbackNotFound: "The callback for events was not found.",
    errSecInputLengthError: "The input has the wrong length.",
    errSecOutputLengthError: "The output has the wrong length.",
    errSecPrivilegeNotSupported: "The privilege is not supported.",
    errSecDeviceError: "The device had an error.",
    errSecAttachHandleBusy: "The handle of the module is in use.",
    errSecNotLoggedIn: "No user is logged in to the device.",
    errSecAlgorithmMismatch: "The algorithm does not fit the key.",
    errSecKeyUsageIncorrect: "The key may not be used for this.",
    errSecKeyBlobTypeIncorrect: "The type of the key data is not correct.",
    errSecKeyHeaderInconsistent: "The header of the key is inconsistent.",
    errSecUnsupportedKeyFormat: "The key format is not supported.",
    errSecUnsupportedKeySize: "The key size is not supported.",
    errSecInvalidKeyUsageMask: "The mask of key uses is not valid.",
    errSecUnsupportedKeyUsageMask: "The mask of key uses is not supported.",
    errSecInvalidKeyAttributeMask: "The mask of key attributes is not valid.",
    errSecUnsupportedKeyAttributeMask: "The mask of key attributes is not supported.",
    errSecInvalidKeyLabel: "The key label is not valid.",
    errSecUnsupportedKeyLabel: "The key label is not supported.",
    errSecInvalidKeyFormat: "The key format is not valid.",
    errSecUnsupportedVectorOfBuffers: "Several buffers at once are not supported.",
    errSecInvalidInputVector: "The input buffers are not valid.",
    errSecInvalidOutputVector: "The output buffers are not valid.",
]
