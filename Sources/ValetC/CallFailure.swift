// SPDX-License-Identifier: Apache-2.0
internal import CValet

/// Ends a call with a status that no error of Valet's stands for.
struct CallFailure: Error {
    let status: valet_status

    init(status: valet_status) {
        self.status = status
    }

    /// A constant of the header: C's constants without a type come as Int.
    init(_ constant: Int) {
        status = valet_status(constant)
    }
}
