/* SPDX-License-Identifier: Apache-2.0 */

/// A program for Apple platforms, which is compiled but not run.
@import ValetObjectiveC;

NSString *combination(void) {
    VALValet *const vault = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [vault setString:@"12345" forKey:@"Skroob" error:nil];
    NSError *error = nil;
    NSString *const combination = [vault stringForKey:@"Skroob" error:&error];
#ifdef PLANTED_FAULT
    [vault release];
#endif
    if (combination == nil && [[error domain] isEqual:VALKeychainErrorDomain] && [error code] == VALKeychainErrorItemNotFound) return @"none";
    return combination;
}
