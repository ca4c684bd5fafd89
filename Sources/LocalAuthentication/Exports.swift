// SPDX-License-Identifier: Apache-2.0

// The name of Apple's framework, for sources that import it and are compiled on Linux without changes. Apple's framework exports Foundation
// too, so such sources may not import it themselves.
@_exported public import Foundation
@_exported public import KeychainServices
