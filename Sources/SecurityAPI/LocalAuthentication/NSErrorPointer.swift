// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Where a function that answers yes or no puts the reason for a no: `&error` of a variable of type `NSError?`, or nil.
///
/// Apple's Foundation has it; elsewhere Foundation does not.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
