/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

#include <stdlib.h>

/// A file in the folder of the pinentry script.
static NSString *personFile(NSString *name) {
    return [[NSString stringWithUTF8String:getenv("PERSON")] stringByAppendingPathComponent:name];
}

/// Sets how the simulated person answers: "agree", "cancel", or "wrong".
static void personWill(NSString *answer) {
    CHECK([answer writeToFile:personFile(@"answer") atomically:YES encoding:NSUTF8StringEncoding error:NULL]);
    [[NSFileManager defaultManager] removeItemAtPath:personFile(@"questions") error:NULL];
}

/// The prompts since then.
static NSString *questions(void) {
    NSString *questions = [NSString stringWithContentsOfFile:personFile(@"questions") encoding:NSUTF8StringEncoding error:NULL];
    return questions == nil ? @"" : questions;
}

static NSUInteger questionCount(void) {
    return [[questions() componentsSeparatedByString:@"GETPIN"] count] - 1;
}

static BOOL wasTold(NSString *words) {
    return [questions() rangeOfString:words].location != NSNotFound;
}

void checkWithoutPasscode(void) {
    VALSecureEnclaveValet *enclave = [VALSecureEnclaveValet valetWithIdentifier:@"Druidia" accessControl:VALAccessControlUserPresence];
    CHECK(![enclave canAccessKeychain]);
    CHECK_ERROR([enclave setString:@"12345" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
    CHECK(![enclave containsObjectForKey:@"key"]);
}

/// The methods of both classes that show no prompt.
static void checkQuietly(VALSecureEnclaveValet *enclave) {
    personWill(@"agree");
    CHECK([enclave canAccessKeychain]);
    CHECK_DONE([enclave removeAllObjectsAndReturnError:failure]);
    CHECK_DONE([enclave setString:@"1" forKey:@"Skroob" error:failure]);
    CHECK_DONE([enclave setString:@"12345" forKey:@"Skroob" error:failure]);
    CHECK_DONE([enclave setObject:bytes("\xFF") forKey:@"bytes" error:failure]);
    CHECK([enclave containsObjectForKey:@"Skroob"] && ![enclave containsObjectForKey:@"absent"]);
    CHECK_DONE([enclave setString:@"removed" forKey:@"removed" error:failure]);
    CHECK_DONE([enclave removeObjectForKey:@"removed" error:failure]);
    CHECK_DONE([enclave removeObjectForKey:@"removed" error:failure]);
    CHECK(![enclave containsObjectForKey:@"removed"]);
    CHECK_ERROR([enclave setString:@"" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK_ERROR([enclave setString:@"value" forKey:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([enclave stringForKey:@"" withPrompt:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyKey);
    CHECK_ERROR([enclave stringForKey:@"absent" withPrompt:@"" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);

    VALValet *source = [VALValet valetWithExplicitlySetIdentifier:@"For the enclave" accessibility:VALAccessibilityWhenUnlocked];
    CHECK([source setString:@"Schwartz" forKey:@"Yogurt" error:NULL]);
    CHECK_DONE([enclave migrateObjectsFrom:source removeOnCompletion:NO error:failure]);
    CHECK([enclave containsObjectForKey:@"Yogurt"]);
    CHECK_ERROR([enclave migrateObjectsFrom:source removeOnCompletion:NO error:failure], VALMigrationResultDomain,
                VALMigrationResultKeyToMigrateAlreadyExistsInValet);
    CHECK_DONE([enclave removeObjectForKey:@"Yogurt" error:failure]);
    NSDictionary *query = [NSDictionary dictionaryWithObjectsAndKeys:@"genp", @"class", @"For the enclave", @"svce", nil];
    CHECK_DONE([enclave migrateObjectsMatching:query removeOnCompletion:YES error:failure]);
    CHECK_ERROR([enclave migrateObjectsMatching:query removeOnCompletion:YES error:failure], VALKeychainErrorDomain,
                VALKeychainErrorItemNotFound);
    CHECK([enclave containsObjectForKey:@"Yogurt"] && ![source containsObjectForKey:@"Yogurt"]);
    CHECK(questionCount() == 0);
}

void checkEnclaves(void) {
    VALSecureEnclaveValet *enclave = [VALSecureEnclaveValet valetWithIdentifier:@"Asking" accessControl:VALAccessControlUserPresence];
    checkQuietly(enclave);
    personWill(@"agree");
    CHECK([[enclave stringForKey:@"Skroob" withPrompt:@"Open the luggage" error:NULL] isEqual:@"12345"]);
    CHECK(questionCount() == 1 && wasTold(@"Open the luggage"));
    CHECK([[enclave objectForKey:@"bytes" withPrompt:@"Open the shield" error:NULL] isEqual:bytes("\xFF")]);
    CHECK(questionCount() == 2 && wasTold(@"Open the shield"));
    personWill(@"agree");
    CHECK([[enclave stringForKey:@"Skroob" error:NULL] isEqual:@"12345"]);
    CHECK([[enclave objectForKey:@"Skroob" error:NULL] isEqual:bytes("12345")]);
    CHECK(questionCount() == 2 && !wasTold(@"Open"));
    CHECK_ERROR([enclave stringForKey:@"bytes" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);

    personWill(@"cancel");
    CHECK_ERROR([enclave stringForKey:@"Skroob" withPrompt:@"Open" error:failure], VALKeychainErrorDomain, VALKeychainErrorUserCancelled);
    CHECK(questionCount() == 1);
    personWill(@"wrong");
    CHECK_ERROR([enclave objectForKey:@"Skroob" error:failure], VALKeychainErrorDomain, VALKeychainErrorUserCancelled);
    CHECK(questionCount() == 3);

    // There is no biometric authentication on this platform.
#ifndef __APPLE__
    VALSecureEnclaveValet *finger = [VALSecureEnclaveValet valetWithIdentifier:@"Asking" accessControl:VALAccessControlBiometricAny];
    CHECK_ERROR([finger setString:@"12345" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorCouldNotAccessKeychain);
#endif

    VALSecureEnclaveValet *shared = [VALSecureEnclaveValet sharedGroupValetWithAppIDPrefix:@"AppID12345"
                                                                     sharedGroupIdentifier:@"Druidia"
                                                                             accessControl:VALAccessControlDevicePasscode];
    personWill(@"agree");
    CHECK_DONE([shared setString:@"shared" forKey:@"key" error:failure]);
    CHECK([[shared stringForKey:@"key" error:NULL] isEqual:@"shared"] && questionCount() == 1);
    VALSecureEnclaveValet *application = [VALSecureEnclaveValet sharedGroupValetWithGroupPrefix:@"group"
                                                                          sharedGroupIdentifier:@"Druidia"
                                                                                  accessControl:VALAccessControlDevicePasscode];
    CHECK(![application containsObjectForKey:@"key"] && [application canAccessKeychain]);
    VALSecureEnclaveValet *unlisted = [VALSecureEnclaveValet sharedGroupValetWithGroupPrefix:@"group"
                                                                       sharedGroupIdentifier:@"Vespa"
                                                                               accessControl:VALAccessControlDevicePasscode];
    CHECK_ERROR([unlisted setString:@"1" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorMissingEntitlement);
}

void checkSinglePrompts(void) {
    VALSinglePromptSecureEnclaveValet *single =
        [VALSinglePromptSecureEnclaveValet valetWithIdentifier:@"Asking once" accessControl:VALAccessControlUserPresence];
    // It has every method that is called in this test.
    checkQuietly((VALSecureEnclaveValet *)(id)single);
    personWill(@"agree");
    CHECK([[single stringForKey:@"Skroob" withPrompt:@"Open the luggage" error:NULL] isEqual:@"12345"]);
    CHECK([[single objectForKey:@"Skroob" withPrompt:@"Open it again" error:NULL] isEqual:bytes("12345")]);
    NSSet *keys = [NSSet setWithObjects:@"Skroob", @"bytes", @"Yogurt", nil];
    CHECK([[single allKeysWithUserPrompt:@"List it" error:NULL] isEqual:keys]);
    CHECK(questionCount() == 1 && wasTold(@"Open the luggage") && !wasTold(@"Open it again"));

    [single requirePromptOnNextAccess];
    CHECK([[single allKeysWithUserPrompt:@"List the luggage" error:NULL] isEqual:keys]);
    CHECK(questionCount() == 2 && wasTold(@"List the luggage"));
    [single requirePromptOnNextAccess];
    personWill(@"cancel");
    CHECK_ERROR([single stringForKey:@"Skroob" withPrompt:@"Open" error:failure], VALKeychainErrorDomain, VALKeychainErrorUserCancelled);
    CHECK_ERROR([single allKeysWithUserPrompt:@"Open" error:failure], VALKeychainErrorDomain, VALKeychainErrorUserCancelled);
    CHECK(questionCount() == 2);

    personWill(@"agree");
    VALSecureEnclaveValet *enclave = [VALSecureEnclaveValet valetWithIdentifier:@"Asking once" accessControl:VALAccessControlUserPresence];
    CHECK_DONE([enclave migrateObjectsFromSinglePromptSecureEnclaveValetWithRemoveOnCompletion:YES error:failure]);
    CHECK([enclave containsObjectForKey:@"Skroob"] && ![single containsObjectForKey:@"Skroob"]);
    CHECK(questionCount() == 1);
    CHECK([[single allKeysWithUserPrompt:@"" error:NULL] count] == 0);

    VALSinglePromptSecureEnclaveValet *shared =
        [VALSinglePromptSecureEnclaveValet sharedGroupValetWithGroupPrefix:@"group"
                                                     sharedGroupIdentifier:@"Druidia"
                                                             accessControl:VALAccessControlUserPresence];
    CHECK_DONE([shared setString:@"shared" forKey:@"key" error:failure]);
    CHECK([[shared stringForKey:@"key" withPrompt:@"" error:NULL] isEqual:@"shared"]);
    shared = [VALSinglePromptSecureEnclaveValet sharedGroupValetWithAppIDPrefix:@"AppID12345"
                                                          sharedGroupIdentifier:@"Druidia"
                                                                  accessControl:VALAccessControlUserPresence];
    CHECK(![shared containsObjectForKey:@"key"] && [shared canAccessKeychain]);
}
