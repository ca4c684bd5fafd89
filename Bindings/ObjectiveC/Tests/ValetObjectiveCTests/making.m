/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

/// Whether a valet was created, is usable, and has values separate from those of all earlier valets.
static void checkSandbox(VALValet *valet, const char *selector) {
    static NSMutableArray *others = nil;
    if (others == nil) others = [[NSMutableArray alloc] init];
    int before = failedCheckCount;
    CHECK(valet != nil);
    CHECK([valet canAccessKeychain]);
    CHECK([valet removeAllObjectsAndReturnError:NULL]);
    CHECK(![valet containsObjectForKey:@"key"]);
    CHECK([valet setString:@"value" forKey:@"key" error:NULL]);
    CHECK([[valet stringForKey:@"key" error:NULL] isEqual:@"value"]);
    for (VALValet *other in others) {
        CHECK(![valet isEqual:other]);
        CHECK([valet hash] != [other hash]);
    }
    if (valet != nil) [others addObject:valet];
    if (failedCheckCount != before) printf("  these were of %s\n", selector);
}

#define MADE(...) checkSandbox([VALValet __VA_ARGS__], #__VA_ARGS__)

/// Each factory method creates a valet with its own sandbox. The key is read before it is stored, so a value of another valet would be found.
static void checkEachWay(void) {
    MADE(valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked);
    MADE(valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityAfterFirstUnlock);
    MADE(valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlockedThisDeviceOnly);
    MADE(valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityAfterFirstUnlockThisDeviceOnly);
    MADE(iCloudValetWithIdentifier:@"Druidia" accessibility:VALCloudAccessibilityWhenUnlocked);
    MADE(iCloudValetWithIdentifier:@"Druidia" accessibility:VALCloudAccessibilityAfterFirstUnlock);
    MADE(sharedGroupValetWithAppIDPrefix:@"AppID12345" sharedGroupIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked);
    MADE(sharedGroupValetWithGroupPrefix:@"group" sharedGroupIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked);
    MADE(iCloudValetWithAppIDPrefix:@"AppID12345" sharedGroupIdentifier:@"Druidia" accessibility:VALCloudAccessibilityWhenUnlocked);
    MADE(iCloudValetWithGroupPrefix:@"group" sharedGroupIdentifier:@"Druidia" accessibility:VALCloudAccessibilityWhenUnlocked);
    MADE(valetWithExplicitlySetIdentifier:@"Explicit" accessibility:VALAccessibilityWhenUnlocked);
    MADE(iCloudValetWithExplicitlySetIdentifier:@"Explicit" accessibility:VALCloudAccessibilityWhenUnlocked);
    MADE(valetWithAppIDPrefix:@"AppID12345" explicitlySetSharedGroupIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked);
    MADE(iCloudValetWithAppIDPrefix:@"AppID12345"
        explicitlySetSharedGroupIdentifier:@"Druidia"
                             accessibility:VALCloudAccessibilityWhenUnlocked);
}

/// An empty identifier, group, or prefix, an unknown prefix, and an invalid constant return nil.
static void checkNone(void) {
    NSString *none = nil;
    VALAccessibility unlocked = VALAccessibilityWhenUnlocked;
    VALCloudAccessibility cloud = VALCloudAccessibilityWhenUnlocked;
    VALSecureEnclaveAccessControl presence = VALSecureEnclaveAccessControlUserPresence;
    for (NSString *empty in [NSArray arrayWithObjects:@"", [NSNull null], nil]) {
        if (![empty isKindOfClass:[NSString class]]) empty = none;
        CHECK([VALValet valetWithIdentifier:empty accessibility:unlocked] == nil);
        CHECK([VALValet iCloudValetWithIdentifier:empty accessibility:cloud] == nil);
        CHECK([VALValet sharedGroupValetWithAppIDPrefix:@"AppID12345" sharedGroupIdentifier:empty accessibility:unlocked] == nil);
        CHECK([VALValet sharedGroupValetWithAppIDPrefix:empty sharedGroupIdentifier:@"Druidia" accessibility:unlocked] == nil);
        CHECK([VALValet sharedGroupValetWithGroupPrefix:@"group" sharedGroupIdentifier:empty accessibility:unlocked] == nil);
        CHECK([VALValet sharedGroupValetWithGroupPrefix:empty sharedGroupIdentifier:@"Druidia" accessibility:unlocked] == nil);
        CHECK([VALValet iCloudValetWithAppIDPrefix:@"AppID12345" sharedGroupIdentifier:empty accessibility:cloud] == nil);
        CHECK([VALValet iCloudValetWithGroupPrefix:@"group" sharedGroupIdentifier:empty accessibility:cloud] == nil);
        CHECK([VALValet valetWithExplicitlySetIdentifier:empty accessibility:unlocked] == nil);
        CHECK([VALValet iCloudValetWithExplicitlySetIdentifier:empty accessibility:cloud] == nil);
        CHECK([VALValet valetWithAppIDPrefix:@"AppID12345" explicitlySetSharedGroupIdentifier:empty accessibility:unlocked] == nil);
        CHECK([VALValet iCloudValetWithAppIDPrefix:@"AppID12345" explicitlySetSharedGroupIdentifier:empty accessibility:cloud] == nil);
        CHECK([VALSecureEnclaveValet valetWithIdentifier:empty accessControl:presence] == nil);
        CHECK([VALSecureEnclaveValet sharedGroupValetWithAppIDPrefix:@"A" sharedGroupIdentifier:empty accessControl:presence] == nil);
        CHECK([VALSecureEnclaveValet sharedGroupValetWithGroupPrefix:@"group" sharedGroupIdentifier:empty accessControl:presence] == nil);
        CHECK([VALSinglePromptSecureEnclaveValet valetWithIdentifier:empty accessControl:presence] == nil);
        CHECK([VALSinglePromptSecureEnclaveValet sharedGroupValetWithAppIDPrefix:@"A"
                                                           sharedGroupIdentifier:empty
                                                                   accessControl:presence] == nil);
        CHECK([VALSinglePromptSecureEnclaveValet sharedGroupValetWithGroupPrefix:@"group"
                                                           sharedGroupIdentifier:empty
                                                                   accessControl:presence] == nil);
    }
#ifndef __APPLE__
    CHECK([VALValet sharedGroupValetWithGroupPrefix:@"AppID12345" sharedGroupIdentifier:@"Druidia" accessibility:unlocked] == nil);
#endif
    CHECK([VALValet valetWithIdentifier:@"Druidia" accessibility:(VALAccessibility)3] == nil);
    CHECK([VALValet iCloudValetWithIdentifier:@"Druidia" accessibility:(VALCloudAccessibility)4] == nil);
    CHECK([VALValet valetWithIdentifier:@"Druidia" accessibility:(VALAccessibility)(1L << 32 | 1)] == nil);
    CHECK([VALSecureEnclaveValet valetWithIdentifier:@"Druidia" accessControl:(VALSecureEnclaveAccessControl)0] == nil);
}

/// Valets with the same configuration are equal and have the same values.
static void checkEquality(void) {
    VALValet *first = [VALValet valetWithIdentifier:@"Equal" accessibility:VALAccessibilityAfterFirstUnlock];
    VALValet *second = [VALValet valetWithIdentifier:@"Equal" accessibility:VALAccessibilityAfterFirstUnlock];
    CHECK([first isEqual:first] && [first isEqual:second] && [first hash] == [second hash]);
    CHECK(![first isEqual:nil] && ![first isEqual:@"Equal"]);
    CHECK([[[NSSet setWithObject:first] setByAddingObject:second] count] == 1);
    CHECK([first setString:@"one" forKey:@"key" error:NULL]);
    CHECK([[second stringForKey:@"key" error:NULL] isEqual:@"one"]);
    CHECK([first accessibility] == VALAccessibilityAfterFirstUnlock);

    VALSecureEnclaveValet *enclave =
        [VALSecureEnclaveValet valetWithIdentifier:@"Equal" accessControl:VALSecureEnclaveAccessControlDevicePasscode];
    VALSinglePromptSecureEnclaveValet *single =
        [VALSinglePromptSecureEnclaveValet valetWithIdentifier:@"Equal" accessControl:VALAccessControlDevicePasscode];
    CHECK([enclave accessControl] == VALAccessControlDevicePasscode && [single accessControl] == VALAccessControlDevicePasscode);
    CHECK(![enclave isEqual:first] && ![first isEqual:enclave] && ![enclave isEqual:single] && ![single isEqual:enclave]);
    CHECK([enclave isEqual:[VALSecureEnclaveValet valetWithIdentifier:@"Equal" accessControl:VALAccessControlDevicePasscode]]);
    CHECK(![enclave isEqual:[VALSecureEnclaveValet valetWithIdentifier:@"Equal" accessControl:VALAccessControlUserPresence]]);
}

/// The description contains the identifier, the accessibility, and the kind.
static void checkDescriptions(void) {
    NSArray *described = [NSArray
        arrayWithObjects:[[VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked] description], @"(Valet)",
                         [[VALValet iCloudValetWithIdentifier:@"Druidia" accessibility:VALCloudAccessibilityWhenUnlocked] description],
                         @"(iCloud)",
                         [[VALSecureEnclaveValet valetWithIdentifier:@"Druidia" accessControl:VALAccessControlUserPresence] description],
                         @"(Secure Enclave)",
                         [[VALSinglePromptSecureEnclaveValet valetWithIdentifier:@"Druidia"
                                                                   accessControl:VALAccessControlUserPresence] description],
                         @"(Single Prompt)", nil];
    for (NSUInteger index = 0; index < [described count]; index += 2) {
        NSString *description = [described objectAtIndex:index];
        CHECK([description hasPrefix:@"Druidia "]);
        CHECK([description rangeOfString:[described objectAtIndex:index + 1]].location != NSNotFound);
    }
}

void checkMaking(void) {
    checkEachWay();
    checkNone();
    checkEquality();
    checkDescriptions();
    // Unavailable initializers return nil.
    Class forbidden = [VALValet class];
    CHECK([[[forbidden alloc] performSelector:@selector(init)] description] == nil);
}
