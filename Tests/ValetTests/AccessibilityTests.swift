// SPDX-License-Identifier: Apache-2.0
import KeychainServices
import Testing
import Valet

@Suite("Accessibilities")
struct AccessibilityTests {
    @Test("Raw values and kSecAttrAccessible values are those of other Valet versions")
    func values() {
        #expect(Accessibility.allCases.map(\.rawValue) == [1, 2, 4, 5, 6])
        #expect(
            Accessibility.allCases.map(\.secAccessibilityAttribute) == [
                kSecAttrAccessibleWhenUnlocked as String,
                kSecAttrAccessibleAfterFirstUnlock as String,
                kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String,
                kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String,
                kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String,
            ])
        #expect(
            Accessibility.allCases == [
                .whenUnlocked, .afterFirstUnlock, .whenPasscodeSetThisDeviceOnly, .whenUnlockedThisDeviceOnly,
                .afterFirstUnlockThisDeviceOnly,
            ])
    }

    @Test("Values that go to other devices have the two accessibilities that may leave this one")
    func cloudValues() {
        #expect(CloudAccessibility.allCases.map(\.rawValue) == [1, 2])
        #expect(CloudAccessibility.allCases.map(\.accessibility) == [.whenUnlocked, .afterFirstUnlock])
        for accessibility in CloudAccessibility.allCases {
            #expect(accessibility.secAccessibilityAttribute == accessibility.accessibility.secAccessibilityAttribute)
            #expect(accessibility.description == accessibility.accessibility.description)
        }
    }
}
