// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Valet

/// What a call answers: success, or the status of what `body` threw.
func statusAnswer(_ body: () throws -> Void) -> valet_status {
    do {
        try body()
        return valet_status(valet_success)
    } catch let failure as CallFailure {
        return failure.status
    } catch let error as KeychainError {
        return valet_status(valet_error_could_not_access_keychain + error.rawValue)
    } catch let error as MigrationError {
        return valet_status(valet_error_invalid_query + error.rawValue)
    } catch {
        // Valet throws nothing else. Should it, nothing is known but that it was not done.
        return valet_status(valet_error_could_not_access_keychain)
    }
}
