// SPDX-License-Identifier: Apache-2.0

/// What is to take a row's place, sealed ahead of the write, and the row as it was then.
///
/// It counts only for a row that is still the same: the revision is another one after each write.
struct PreparedReplacement {
    let old: SealedRow
    let opened: OpenedRow
    let new: SealedRow

    func opening(of row: SealedRow) -> RowOpening? { isFor(row) ? .opened(opened) : nil }

    func replacement(of row: SealedRow) -> SealedRow? { isFor(row) ? new : nil }

    /// All of it is compared: the revision alone may have been put there by somebody who can write the file.
    private func isFor(_ row: SealedRow) -> Bool { row == old }
}
