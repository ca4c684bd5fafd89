// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite("The architecture")
struct ArchitectureTests {
    @Test("The repository keeps the rule", arguments: Rule.all)
    func repositoryKeeps(_ rule: Rule) throws {
        let violations = rule.violations(try Repository.swiftFiles())
        #expect(violations.isEmpty, "\(rule.name), because \(rule.reason)\n\(violations.map(\.description).joined(separator: "\n"))")
    }

    @Test("A planted violation is caught", arguments: Rule.all)
    func catches(_ rule: Rule) {
        #expect(!rule.caught.isEmpty, "A rule without a sample proves nothing")
        for sample in rule.caught {
            #expect(!rule.violations(sample).isEmpty, "\(rule.name): should be caught: \(sample)")
        }
    }

    @Test("What only looks like a violation passes", arguments: Rule.all)
    func passes(_ rule: Rule) {
        for sample in rule.passed {
            #expect(rule.violations(sample).isEmpty, "\(rule.name): should pass: \(sample)")
        }
    }

    @Test("There is a repository to look at")
    func repositoryIsFound() throws {
        let files = try Repository.swiftFiles()
        #expect(files.contains { $0.target == "Valet" })
        #expect(files.contains { $0.target == "ArchitectureTests" })
    }
}
