// SPDX-License-Identifier: Apache-2.0

/// The version of the project, as `valet --version` and `valet_version()` report it.
package let projectVersion: StaticString = "0.1.0"
