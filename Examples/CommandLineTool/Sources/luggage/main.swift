// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

do {
    let luggage = Luggage()
    if let combination = try luggage.combination() {
        print("The combination has \(combination.count) digits.")
    } else {
        print("New combination:")
        guard let line = readLine(), !line.isEmpty else { exit(2) }
        try luggage.setCombination(line)
    }
} catch {
    print(error.localizedDescription)
    exit(1)
}
