/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

#ifdef __APPLE__
#import <Security/Security.h>
#define CLASS (__bridge NSString *)kSecClass
#define GENERIC_PASSWORD (__bridge NSString *)kSecClassGenericPassword
#define SERVICE (__bridge NSString *)kSecAttrService
#define ACCOUNT (__bridge NSString *)kSecAttrAccount
#else
#include <valet.h>
#define CLASS @valet_attribute_class
#define GENERIC_PASSWORD @valet_class_generic_password
#define SERVICE @valet_attribute_service
#define ACCOUNT @valet_attribute_account
#endif

/// The items of a service.
static NSDictionary *itemsOf(NSString *service) {
    return [NSDictionary dictionaryWithObjectsAndKeys:GENERIC_PASSWORD, CLASS, service, SERVICE, nil];
}

static NSDictionary *with(NSDictionary *query, id value, NSString *name) {
    NSMutableDictionary *changed = [NSMutableDictionary dictionaryWithDictionary:query];
    [changed setObject:value forKey:name];
    return changed;
}

/// A valet whose items have the identifier as service, and two values.
static VALValet *source(void) {
    VALValet *source = [VALValet valetWithExplicitlySetIdentifier:@"Source" accessibility:VALAccessibilityWhenUnlocked];
    CHECK([source setString:@"12345" forKey:@"Skroob" error:NULL]);
    CHECK([source setString:@"Schwartz" forKey:@"Yogurt" error:NULL]);
    return source;
}

void checkMigrations(void) {
    VALValet *destination = emptyValet(@"Destination");
    NSSet *both = [NSSet setWithObjects:@"Skroob", @"Yogurt", nil];
    VALValet *from = source();
    CHECK_DONE([destination migrateObjectsMatching:itemsOf(@"Source") removeOnCompletion:NO error:failure]);
    CHECK([[destination stringForKey:@"Skroob" error:NULL] isEqual:@"12345"]);
    CHECK([[destination allKeysWithError:NULL] isEqual:both] && [[from allKeysWithError:NULL] isEqual:both]);
    CHECK_ERROR([destination migrateObjectsFrom:from removeOnCompletion:NO error:failure], VALMigrationResultDomain,
                VALMigrationResultKeyToMigrateAlreadyExistsInValet);
    CHECK([destination removeAllObjectsAndReturnError:NULL]);
    CHECK_DONE([destination migrateObjectsFrom:from removeOnCompletion:YES error:failure]);
    CHECK([[destination allKeysWithError:NULL] isEqual:both] && [[from allKeysWithError:NULL] count] == 0);

    // A single item by text. The canary item does not count.
    CHECK([destination removeAllObjectsAndReturnError:NULL]);
    CHECK([source() canAccessKeychain]);
    NSDictionary *one = with(itemsOf(@"Source"), @"Yogurt", ACCOUNT);
    CHECK_DONE([destination migrateObjectsMatching:one removeOnCompletion:YES error:failure]);
    CHECK([[destination allKeysWithError:NULL] isEqual:[NSSet setWithObject:@"Yogurt"]]);
    CHECK([[from allKeysWithError:NULL] isEqual:[NSSet setWithObject:@"Skroob"]]);

    // No match, and invalid queries.
    CHECK_ERROR([destination migrateObjectsMatching:itemsOf(@"Nowhere") removeOnCompletion:NO error:failure], VALKeychainErrorDomain,
                VALKeychainErrorItemNotFound);
    CHECK_ERROR([destination migrateObjectsFrom:emptyValet(@"Nothing") removeOnCompletion:NO error:failure], VALKeychainErrorDomain,
                VALKeychainErrorItemNotFound);
    NSDictionary *noQuery = nil;
    NSArray *refused = [NSArray
        arrayWithObjects:[NSDictionary dictionary], [NSDictionary dictionaryWithObject:@"Source" forKey:SERVICE],
                         with(itemsOf(@"Source"), @"inet", CLASS), with(itemsOf(@"Source"), [NSNumber numberWithBool:YES], @"r_Data"),
                         with(itemsOf(@"Source"), [NSNumber numberWithInt:1], @"m_Limit"), with(itemsOf(@"Source"), [NSNull null], @"labl"),
                         with(itemsOf(@"Source"), [NSNumber numberWithDouble:0.5], @"type"),
                         with(itemsOf(@"Source"), [NSNumber numberWithUnsignedLongLong:UINT64_MAX], @"type"),
                         with(itemsOf(@"Source"), @"x", @""), with(itemsOf(@"Source"), @"x", [NSString stringWithFormat:@"labl%C", (unichar)0]),
                         [NSDictionary dictionaryWithObject:@"x" forKey:[NSNumber numberWithInt:1]], nil];
    for (NSDictionary *query in refused) {
        CHECK_ERROR([destination migrateObjectsMatching:query removeOnCompletion:NO error:failure], VALMigrationResultDomain,
                    VALMigrationResultInvalidQuery);
    }
    CHECK_ERROR([destination migrateObjectsMatching:noQuery removeOnCompletion:NO error:failure], VALMigrationResultDomain,
                VALMigrationResultInvalidQuery);
    VALValet *noValet = nil;
    CHECK_ERROR([destination migrateObjectsFrom:noValet removeOnCompletion:NO error:failure], VALValetErrorDomain, VALValetErrorNilArgument);
    CHECK_DONE([destination migrateObjectsFromPreCatalinaAndReturnError:failure]);
}

void checkBlocks(void) {
    VALValet *destination = emptyValet(@"Blocks");
    VALValet *from = source();
    // Transformed, and one omitted. The block reads and sets captured variables.
    NSString *prefix = @"President ";
    __block int callCount = 0;
    CHECK_DONE([destination migrateObjectsFrom:from
                                    compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                        callCount++;
                                        if (![[input key] isEqual:@"Skroob"]) return nil;
                                        CHECK([[input value] isEqual:bytes("12345")]);
                                        NSString *key = [prefix stringByAppendingString:[input key]];
                                        return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:key value:[input value]] autorelease];
                                    }
                                         error:failure]);
    CHECK(callCount == 2);
    CHECK([[destination allKeysWithError:NULL] isEqual:[NSSet setWithObject:@"President Skroob"]]);
    CHECK([[destination stringForKey:@"President Skroob" error:NULL] isEqual:@"12345"]);
    CHECK([[from allKeysWithError:NULL] count] == 2);

    // String values. A block may use valets, including those of the call.
    CHECK([destination removeAllObjectsAndReturnError:NULL]);
    CHECK_DONE([destination migrateObjectsMatching:itemsOf(@"Source")
                                        compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                            NSString *value = [[from stringForKey:[input key] error:NULL] stringByAppendingString:@"!"];
                                            CHECK(![destination containsObjectForKey:[input key]]);
                                            return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:[input key]
                                                                                             stringValue:value] autorelease];
                                        }
                                             error:failure]);
    CHECK([[destination stringForKey:@"Yogurt" error:NULL] isEqual:@"Schwartz!"]);

    // Each of these ends the migration, and nothing is written.
    CHECK([destination removeAllObjectsAndReturnError:NULL]);
    CHECK_ERROR([destination migrateObjectsFrom:from
                                     compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                         if ([[input key] isEqual:@"Yogurt"]) return [VALMigratableKeyValuePairOutput preventMigration];
                                         return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:[input key]
                                                                                                value:[input value]] autorelease];
                                     }
                                          error:failure],
                VALValetErrorDomain, VALValetErrorMigrationPrevented);
    CHECK_ERROR([destination migrateObjectsFrom:from
                                     compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                         return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:@"same"
                                                                                                value:[input value]] autorelease];
                                     }
                                          error:failure],
                VALMigrationResultDomain, VALMigrationResultDuplicateKeyToMigrate);
    CHECK_ERROR([destination migrateObjectsFrom:from
                                     compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                         return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:@""
                                                                                                value:[input value]] autorelease];
                                     }
                                          error:failure],
                VALMigrationResultDomain, VALMigrationResultKeyToMigrateInvalid);
    CHECK_ERROR([destination migrateObjectsFrom:from
                                     compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                         return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:[input key]
                                                                                          stringValue:@""] autorelease];
                                     }
                                          error:failure],
                VALMigrationResultDomain, VALMigrationResultDataToMigrateInvalid);
    NSException *seen = nil;
    @try {
        [destination migrateObjectsFrom:from
                             compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                 [NSException raise:@"Plaid" format:@"%@", [input key]];
                                 return nil;
                             }
                                  error:NULL];
    } @catch (NSException *exception) {
        seen = exception;
    }
    CHECK([[seen name] isEqual:@"Plaid"] && [[seen reason] length] > 0);
    VALMigratableKeyValuePairCompactMap noBlock = nil;
    CHECK_ERROR([destination migrateObjectsFrom:from compactMap:noBlock error:failure], VALValetErrorDomain, VALValetErrorNilArgument);
    CHECK([[destination allKeysWithError:NULL] count] == 0);
    CHECK([[from allKeysWithError:NULL] count] == 2);
    // If all are omitted, there is nothing to do.
    CHECK_DONE([destination migrateObjectsFrom:from
                                    compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                        CHECK(input != nil);
                                        return nil;
                                    }
                                         error:failure]);
}

/// The items that `SwiftPeer foreign` added.
void checkForeignItems(void) {
    VALValet *legacy = [VALValet valetWithIdentifier:@"Legacy" accessibility:VALAccessibilityWhenUnlocked];
    CHECK_DONE([legacy migrateObjectsFromAlwaysAccessibleValetWithRemoveOnCompletion:YES error:failure]);
    CHECK([[legacy allKeysWithError:NULL] isEqual:[NSSet setWithObject:@"Skroob"]]);
    CHECK_ERROR([legacy migrateObjectsFromAlwaysAccessibleValetWithRemoveOnCompletion:YES error:failure], VALKeychainErrorDomain,
                VALKeychainErrorItemNotFound);
    CHECK_DONE([legacy migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValetWithRemoveOnCompletion:NO error:failure]);
    CHECK([[legacy stringForKey:@"Helmet" error:NULL] isEqual:@"12345"]);

    // A key of bytes must be converted to text.
    VALValet *destination = emptyValet(@"Foreign");
    CHECK_ERROR([destination migrateObjectsMatching:itemsOf(@"Key of bytes") removeOnCompletion:NO error:failure],
                VALMigrationResultDomain, VALMigrationResultKeyToMigrateInvalid);
    CHECK_DONE([destination migrateObjectsMatching:itemsOf(@"Key of bytes")
                                        compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *input) {
                                            CHECK([[input key] isEqual:[NSData dataWithBytes:"\xFF\0A" length:3]]);
                                            return [[[VALMigratableKeyValuePairOutput alloc] initWithKey:@"text"
                                                                                                   value:[input value]] autorelease];
                                        }
                                             error:failure]);
    CHECK([[destination stringForKey:@"text" error:NULL] isEqual:@"12345"]);

    // Text, numbers, booleans, and data in a query find exactly the items with these values.
    NSDictionary *labelled = with(itemsOf(@"Labelled"), @"Mercenary", @"labl");
    NSDictionary *typed = with(labelled, [NSNumber numberWithInt:7], @"type");
    CHECK_ERROR([destination migrateObjectsMatching:with(typed, [NSNumber numberWithInt:8], @"type") removeOnCompletion:NO error:failure],
                VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([destination migrateObjectsMatching:with(typed, [NSNumber numberWithBool:NO], @"invi") removeOnCompletion:NO error:failure],
                VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([destination migrateObjectsMatching:with(typed, bytes("generic"), @"gena") removeOnCompletion:NO error:failure],
                VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_ERROR([destination migrateObjectsMatching:with(typed, [NSDate dateWithTimeIntervalSince1970:0], @"cdat")
                                 removeOnCompletion:NO
                                              error:failure],
                VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
    CHECK_DONE([destination migrateObjectsMatching:with(typed, [NSNumber numberWithBool:YES], @"invi")
                                removeOnCompletion:NO
                                             error:failure]);
    CHECK([destination containsObjectForKey:@"Lone Starr"]);
}
