/* SPDX-License-Identifier: Apache-2.0 */

/// Valet for Objective-C, on Apple platforms and with GNUstep.
///
/// Import this header, or the module: `@import ValetObjectiveC;`. Each class may be used from any thread. Reading and writing access the disk.
/// No method raises an exception, except that an exception of a block is raised again. Strings with half of a surrogate pair cannot be encoded as
/// UTF-8 and are refused; two strings are the same key only if their UTF-8 is the same.
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
