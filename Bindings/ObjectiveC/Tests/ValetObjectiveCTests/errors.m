/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

void checkErrors(void) {
    VALValet *valet = emptyValet(@"Errors");
    NSString *noString = nil;
    NSData *noData = nil;
    CHECK_ERROR([valet stringForKey:@"absent" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([valet objectForKey:@"absent" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([valet setString:@"value" forKey:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([valet setString:@"value" forKey:noString error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([valet objectForKey:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([valet removeObjectForKey:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([valet setString:@"" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK_ERROR([valet setString:noString forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK_ERROR([valet setObject:[NSData data] forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK_ERROR([valet setObject:noData forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK([valet setObject:bytes("\xFF") forKey:@"not text" error:NULL]);
    CHECK_ERROR([valet stringForKey:@"not text" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);

    VALValet *unlisted = [VALValet sharedGroupValetWithAppIDPrefix:@"AppID12345"
                                             sharedGroupIdentifier:@"Vespa"
                                                     accessibility:VALAccessibilityWhenUnlocked];
    CHECK_ERROR([unlisted setString:@"value" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorMissingEntitlement);
    CHECK_ERROR([unlisted stringForKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorMissingEntitlement);
    CHECK_ERROR([unlisted allKeysWithError:failure], VALKeychainErrorDomain, VALKeychainErrorMissingEntitlement);
    CHECK(![unlisted containsObjectForKey:@"key"] && ![unlisted canAccessKeychain]);

    // Names and numbers that compiled programs contain.
    CHECK([VALKeychainErrorDomain isEqual:@"Valet.KeychainError"] && [VALMigrationResultDomain isEqual:@"Valet.MigrationError"]);
    CHECK(VALKeychainErrorCouldNotAccessKeychain == 0 && VALKeychainErrorEmptyValue == 5 && VALMigrationResultRemovalFailed == 5);
    // The error pointer may be NULL.
    CHECK([valet stringForKey:@"absent" error:NULL] == nil);
    CHECK(![valet setString:@"" forKey:@"key" error:NULL]);
}

void checkLocked(void) {
    VALValet *valet = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    CHECK_ERROR([valet stringForKey:@"Swift" error:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
    NSError *reason = nil;
    CHECK([valet stringForKey:@"Swift" error:&reason] == nil && [[reason localizedFailureReason] length] > 0);
    CHECK_ERROR([valet objectForKey:@"Swift" error:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
    CHECK_ERROR([valet setString:@"value" forKey:@"Swift" error:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
    CHECK_ERROR([valet allKeysWithError:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
    CHECK(![valet canAccessKeychain]);
}
