/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

#ifdef __APPLE__
#include <malloc/malloc.h>
static size_t bytesInUse(void) {
    malloc_statistics_t statistics;
    malloc_zone_statistics(NULL, &statistics);
    return statistics.size_in_use;
}
#else
#include <malloc.h>
static size_t bytesInUse(void) {
    return mallinfo2().uordblks;
}
#endif

/// Creates, uses, and frees one object of each class.
static void oneRound(long number, BOOL isLeaking) {
    // Repeated names and new names; neither may leak.
    NSString *name = [NSString stringWithFormat:@"Growth %ld", number];
    VALValet *valet = [VALValet valetWithIdentifier:@"Growth" accessibility:VALAccessibilityWhenUnlocked];
    VALValet *fresh = [VALValet valetWithIdentifier:name accessibility:VALAccessibilityWhenUnlocked];
    VALSecureEnclaveValet *enclave = [VALSecureEnclaveValet valetWithIdentifier:name accessControl:VALAccessControlUserPresence];
    VALSinglePromptSecureEnclaveValet *single =
        [VALSinglePromptSecureEnclaveValet valetWithIdentifier:name accessControl:VALAccessControlUserPresence];
    CHECK([[valet objectForKey:@"key" error:NULL] length] == 5);
    CHECK([[valet stringForKey:@"key" error:NULL] isEqual:@"12345"]);
    CHECK(![fresh containsObjectForKey:@"key"] && ![fresh isEqual:valet] && [[fresh description] length] > 0);
    CHECK(![enclave containsObjectForKey:@"key"] && ![single containsObjectForKey:@"key"]);
    CHECK_ERROR([fresh stringForKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([valet setString:@"" forKey:@"key" error:failure], VALKeychainErrorDomain, VALKeychainErrorEmptyValue);
    CHECK([[valet allKeysWithError:NULL] count] >= 1);
    NSDictionary *query = [NSDictionary dictionaryWithObjectsAndKeys:@"genp", @"class", name, @"svce", nil];
    CHECK_ERROR([valet migrateObjectsMatching:query removeOnCompletion:NO error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    VALMigratableKeyValuePairCompactMap compactMap = ^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
        if (number % 2 == 0) return [VALMigratableKeyValuePairOutput preventMigration];
        return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:@"" value:[input value]] autorelease];
    };
    CHECK(![fresh migrateObjectsFrom:valet compactMap:compactMap error:NULL]);
    // Operations that flush the disk run less often.
    if (number % 50 == 0) {
        CHECK([valet setString:name forKey:@"other" error:NULL]);
        CHECK([fresh migrateObjectsFrom:valet removeOnCompletion:NO error:NULL]);
        CHECK([fresh removeAllObjectsAndReturnError:NULL]);
        @try {
            [fresh migrateObjectsFrom:valet
                           compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                               [NSException raise:@"Plaid" format:@"%@", [input key]];
                               return nil;
                           }
                                error:NULL];
        } @catch (NSException *exception) {
            CHECK([[exception name] isEqual:@"Plaid"]);
        }
    }
    if (isLeaking) [fresh retain];
}

void checkGrowth(long rounds, BOOL isLeaking) {
    VALValet *valet = emptyValet(@"Growth");
    CHECK([valet setString:@"12345" forKey:@"key" error:NULL]);
    // Caches fill first.
    long warmUp = rounds / 5 + 1;
    size_t before = 0;
    for (long round = 0; round < warmUp + rounds; round++) {
        if (round == warmUp) before = bytesInUse();
        @autoreleasepool {
            oneRound(round, isLeaking);
        }
    }
    size_t after = bytesInUse();
    printf("  %ld rounds: %zu bytes in use before, %zu after\n", rounds, before, after);
    // After 10,000 rounds a leak exceeds the limit, and the variation of caches does not.
    CHECK(after < before + 64 * 1024);
    CHECK([valet removeAllObjectsAndReturnError:NULL]);
}
