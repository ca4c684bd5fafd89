// SPDX-License-Identifier: Apache-2.0
import Foundation

guard let command = PowerCutCommand(CommandLine.arguments.dropFirst()) else {
    print("usage: PowerCut [--seed N] [--images M] [--runs R] [--size small|medium|large] [--log FILE]")
    exit(64)
}
exit(await command.run() == 0 ? 0 : 1)
