/* SPDX-License-Identifier: Apache-2.0 */

/// Valet for Objective-C, on Apple platforms and with GNUstep.
///
/// Import this header, or the module: `@import ValetObjectiveC;`. Each class may be used from any thread. Reading and writing go to disk.
/// No method raises an exception, except that one a block raised goes on after the call. Strings that cannot be written as UTF-8, since they hold
/// half of a surrogate pair, are refused; two strings are the same key only if their UTF-8 is the same.
#import <ValetObjectiveC/VALAccessibility.h>
#import <ValetObjectiveC/VALCloudAccessibility.h>
#import <ValetObjectiveC/VALKeychainError.h>
#import <ValetObjectiveC/VALMigratableKeyValuePair.h>
#import <ValetObjectiveC/VALMigrationResult.h>
#import <ValetObjectiveC/VALPlatform.h>
#import <ValetObjectiveC/VALSecureEnclaveAccessControl.h>
#import <ValetObjectiveC/VALSecureEnclaveValet.h>
#import <ValetObjectiveC/VALSinglePromptSecureEnclaveValet.h>
#import <ValetObjectiveC/VALValet.h>
#import <ValetObjectiveC/VALValetError.h>
