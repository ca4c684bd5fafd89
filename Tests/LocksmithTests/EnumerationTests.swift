// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import Locksmith
import Testing

@Suite("Enumerations")
struct EnumerationTests {
    @Test("Every accessibility has the value of the keychain")
    func accessible() {
        #expect(LocksmithAccessibleOption.allCases.map(\.rawValue) == ["ck", "cku", "dk", "dku", "akpu", "ak", "aku"])
        #expect(LocksmithAccessibleOption.whenUnlocked.rawValue == kSecAttrAccessibleWhenUnlocked as String)
    }

    @Test("Every authentication type has the value of the keychain")
    func authenticationType() {
        #expect(
            LocksmithInternetAuthenticationType.allCases.map(\.rawValue) == [
                "dflt", "dpaa", "form", "http", "httd", "msna", "ntlm", "rpaa",
            ])
    }

    @Test("Every protocol has the value of the keychain")
    func internetProtocol() {
        #expect(
            LocksmithInternetProtocol.allCases.map(\.rawValue) == [
                "afp ", "atlk", "daap", "eppc", "ftp ", "ftpa", "ftpx", "ftps", "http", "htpx", "htps", "htsx", "imap", "imps", "ipp ",
                "irc ", "ircs", "ldap", "ldps", "nntp", "ntps", "pop3", "pops", "rtsp", "rtsx", "smb ", "smtp", "sox ", "ssh ", "teln",
                "tels",
            ])
    }

    @Test("Every class has the value of the keychain")
    func securityClass() {
        #expect(LocksmithSecurityClass.allCases.map(\.rawValue) == ["genp", "inet", "cert", "keys", "idnt"])
    }

    @Test("A raw value leads back to its case, any other to none")
    func inverse() {
        #expect(LocksmithAccessibleOption.allCases.allSatisfy { LocksmithAccessibleOption(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithInternetProtocol.allCases.allSatisfy { LocksmithInternetProtocol(rawValue: $0.rawValue) == $0 })
        #expect(
            LocksmithInternetAuthenticationType.allCases.allSatisfy { LocksmithInternetAuthenticationType(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithSecurityClass.allCases.allSatisfy { LocksmithSecurityClass(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithAccessibleOption(rawValue: "WhenUnlocked") == nil)
        #expect(LocksmithInternetProtocol(rawValue: "https") == nil)
    }

    @Test("The spellings of Swift 2 are the same cases")
    func aliases() {
        let accessible: [LocksmithAccessibleOption] = [
            .AfterFirstUnlock, .AfterFirstUnlockThisDeviceOnly, .Always, .AlwaysThisDeviceOnly, .WhenPasscodeSetThisDeviceOnly,
            .WhenUnlocked, .WhenUnlockedThisDeviceOnly,
        ]
        #expect(accessible == LocksmithAccessibleOption.allCases)
        let types: [LocksmithInternetAuthenticationType] = [.Default, .DPA, .HTMLForm, .HTTPBasic, .HTTPDigest, .MSN, .NTLM, .RPA]
        #expect(types == LocksmithInternetAuthenticationType.allCases)
        let protocols: [LocksmithInternetProtocol] = [
            .AFP, .AppleTalk, .DAAP, .EPPC, .FTP, .FTPAccount, .FTPProxy, .FTPS, .HTTP, .HTTPProxy, .HTTPS, .HTTPSProxy, .IMAP, .IMAPS,
            .IPP, .IRC, .IRCS, .LDAP, .LDAPS, .NNTP, .NNTPS, .POP3, .POP3S, .RTSP, .RTSPProxy, .SMB, .SMTP, .SOCKS, .SSH, .Telnet, .TelnetS,
        ]
        #expect(protocols == LocksmithInternetProtocol.allCases)
        let classes: [LocksmithSecurityClass] = [.GenericPassword, .InternetPassword, .Certificate, .Key, .Identity]
        #expect(classes == LocksmithSecurityClass.allCases)
        let errors: [LocksmithError] = [
            .Allocate, .AuthFailed, .Decode, .Duplicate, .InteractionNotAllowed, .NoError, .NotAvailable, .NotFound, .Param, .RequestNotSet,
            .TypeNotFound, .UnableToClear, .Undefined, .Unimplemented,
        ]
        #expect(errors + [.unarchivable] == LocksmithError.allCases)
    }
}
