/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

/// Bytes and strings are read as they were stored, and replace each other.
static void checkStoring(VALValet *valet) {
    unsigned char all[256];
    for (int index = 0; index < 256; index++) all[index] = (unsigned char)index;
    NSData *data = [NSData dataWithBytes:all length:sizeof all];
    CHECK_DONE([valet setObject:data forKey:@"bytes" error:failure]);
    CHECK([[valet objectForKey:@"bytes" error:NULL] isEqual:data]);
    CHECK_DONE([valet setString:@"12345" forKey:@"Skroob" error:failure]);
    CHECK_DONE([valet setString:@"54321" forKey:@"Skroob" error:failure]);
    CHECK([[valet stringForKey:@"Skroob" error:NULL] isEqual:@"54321"]);
    CHECK([[valet objectForKey:@"Skroob" error:NULL] isEqual:bytes("54321")]);
    CHECK([valet containsObjectForKey:@"Skroob"] && ![valet containsObjectForKey:@"skroob"] && ![valet containsObjectForKey:@""]);
    NSMutableData *large = [NSMutableData dataWithLength:1 << 20];
    CHECK_DONE([valet setObject:large forKey:@"large" error:failure]);
    CHECK([[valet objectForKey:@"large" error:NULL] isEqual:large]);
}

static void checkKeys(VALValet *valet) {
    NSSet *expected = [NSSet setWithObjects:@"bytes", @"Skroob", @"large", nil];
    CHECK([[valet allKeysWithError:NULL] isEqual:expected]);
    CHECK([valet canAccessKeychain]);
    // The item for this check is not listed.
    CHECK([[valet allKeysWithError:NULL] isEqual:expected]);
    CHECK_DONE([emptyValet(@"No keys") allKeysWithError:failure]);
    CHECK([[emptyValet(@"No keys") allKeysWithError:NULL] count] == 0);
}

/// Removing a missing value succeeds.
static void checkRemoving(VALValet *valet) {
    CHECK_DONE([valet removeObjectForKey:@"Skroob" error:failure]);
    CHECK_DONE([valet removeObjectForKey:@"Skroob" error:failure]);
    CHECK(![valet containsObjectForKey:@"Skroob"] && [valet containsObjectForKey:@"bytes"]);
    CHECK_DONE([valet removeAllObjectsAndReturnError:failure]);
    CHECK_DONE([valet removeAllObjectsAndReturnError:failure]);
    CHECK([[valet allKeysWithError:NULL] count] == 0);
}

void checkValues(void) {
    VALValet *valet = emptyValet(@"Values");
    checkStoring(valet);
    checkKeys(valet);
    checkRemoving(valet);
}
