#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a short report of a test run while it runs.

    Scripts/test-report.py EVENTS       reads the event stream of `swift test --event-stream-version 0 --event-stream-output-path EVENTS`
    Scripts/test-report.py --self-test  checks the report of a recorded sample with failures, Scripts/test-report.jsonl

The report has one line per test target, printed when the last test of the target has ended; each failure in full, as soon as it is
recorded; the suites that ended last; and the closing line of the test runner. The exit code is 1 if the stream contains a failure, ends
early, or contains no test, so that a report without failures never stands for a run that was not completed.

The report has no durations of single tests, because the runner does not measure them: it starts all tests at once, and the time between
the start and the end of a test is mostly the time for which other tests had the threads.
"""
import collections
import io
import json
import os
import sys


class Report:
    def __init__(self, output):
        self.output = output
        self.names = {}                           # Display names of tests and suites, by ID.
        self.functions = set()                    # IDs of test functions.
        self.remaining = collections.Counter()    # Test functions that have not ended, by target.
        self.ended, self.skipped, self.failed = collections.Counter(), collections.Counter(), collections.Counter()
        self.start = 0
        self.suite_ends = []
        self.closing_line = None

    def line(self, text):
        print(text, file=self.output, flush=True)

    def full_name(self, test):
        """Returns the target, the suites, and the name of a test, whose ID is TARGET.SUITE/SUITE/FUNCTION/FILE:LINE:COLUMN."""
        names, suite = [], test.rsplit("/", 2)[0]
        while suite in self.names:
            names.insert(0, self.names[suite])
            suite = suite.rpartition("/")[0]
        return " > ".join([test.split(".")[0]] + names + [self.names.get(test, test)])

    def read(self, record):
        payload = record["payload"]
        if record["kind"] == "test":
            self.names[payload["id"]] = payload.get("displayName", payload["name"])
            if payload["kind"] == "function":
                self.functions.add(payload["id"])
                self.remaining[payload["id"].split(".")[0]] += 1
            return
        test, now = payload.get("testID", ""), payload["instant"]["absolute"]
        if payload["kind"] == "runStarted":
            self.start = now
        elif payload["kind"] == "issueRecorded":
            self.record_issue(test, payload)
        elif payload["kind"] in ("testEnded", "testSkipped"):
            is_skipped = any(message["symbol"] == "skip" for message in payload["messages"])
            if test in self.functions:
                self.end(test, is_skipped, now - self.start)
            elif not is_skipped:
                self.suite_ends.append((now - self.start, test))
        elif payload["kind"] == "runEnded":
            self.closing_line = " ".join(message["text"] for message in payload["messages"])

    def record_issue(self, test, payload):
        issue = payload["issue"]
        if issue.get("isKnown") or issue.get("isFailure") is False: return
        self.failed[test.split(".")[0]] += 1
        case = payload.get("_testCase", {}).get("displayName")
        self.line("✘ " + (self.full_name(test) if test else "outside of a test") + (f" [{case}]" if case else ""))
        place = issue.get("sourceLocation")
        if place: self.line(f"  {place.get('_filePath', place.get('fileID'))}:{place['line']}")
        for message in payload["messages"]:
            for text in message["text"].splitlines(): self.line("  " + text)

    def end(self, test, is_skipped, seconds):
        target = test.split(".")[0]
        self.ended[target] += 1
        self.skipped[target] += is_skipped
        self.remaining[target] -= 1
        if self.remaining[target] > 0: return
        skipped = f", {self.skipped[target]} skipped" if self.skipped[target] else ""
        failed = f", {self.failed[target]} ISSUES" if self.failed[target] else ""
        self.line(f"{'✘' if failed else '✔'} {target:<24}{self.ended[target]:>5} tests, ended after {seconds:>5.1f} s{skipped}{failed}")

    def close(self):
        """Prints the end of the report and returns the exit code."""
        if self.closing_line is None or not self.ended:
            self.line("✘ The test run was not completed.")
            return 1
        self.line("The suites that ended last:")
        for seconds, suite in sorted(self.suite_ends, reverse=True)[:5]:
            self.line(f"  {seconds:>6.1f} s  {suite.split('.')[0]} > {self.names.get(suite, suite)}")
        self.line(("✘ " if self.failed else "✔ ") + self.closing_line)
        return 1 if self.failed else 0


def report(lines, output):
    result = Report(output)
    for line in lines:
        if line.strip(): result.read(json.loads(line))
    return result.close()


def self_test():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "test-report.jsonl")
    with open(path, encoding="utf-8") as file: sample = file.read().splitlines()
    output = io.StringIO()
    code = report(sample, output)
    text = output.getvalue()
    expected = [
        "✘ AlphaTests > Numbers > Each is small [30]\n  /project/Tests/AlphaTests/A.swift:4\n  Expectation failed: (n → 30) < 10\n"
        "  the number is too large\n  for this test\n",
        "✘ AlphaTests > Numbers > Throws\n", "  Caught error: E()\n", "✘ AlphaTests                  7 tests, ended after", ", 3 skipped, 2 ISSUES\n",
        "✔ BetaTests                   2 tests, ended after", ", 1 skipped\n", "  AlphaTests > Numbers\n",
    ]
    problems = [f"missing: {words}" for words in expected if words not in text]
    if "1 == 2" in text: problems.append("a known issue is reported as a failure")
    if not text.splitlines()[-1].startswith("✘ Test run with "): problems.append("the closing line of the runner is not the last line")
    if code != 1: problems.append("the exit code of a run with failures is not 1")
    passing = [line for line in sample if '"issueRecorded"' not in line]
    for lines, code, run in [(passing, 0, "without failures"), (passing[:-1], 1, "that ended early"), ([], 1, "without tests")]:
        if report(lines, io.StringIO()) != code: problems.append(f"the exit code of a run {run} is not {code}")
    print("\n".join(problems + [text]) if problems else "The test report shows the failures of the recorded sample.")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2: sys.exit(__doc__)
    if sys.argv[1] == "--self-test": sys.exit(self_test())
    with open(sys.argv[1], encoding="utf-8") as events: sys.exit(report(events, sys.stdout))
