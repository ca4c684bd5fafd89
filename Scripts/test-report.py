#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a short report of a test run while it runs.

    Scripts/test-report.py EVENTS      reads the event stream of `swift test --event-stream-version 0 --event-stream-output-path EVENTS`
    Scripts/test-report.py --self-test checks the report of the recorded sample Scripts/test-report.jsonl, which contains failures

The report has one line per test target, printed when the last test of the target has ended; each failure in full, as soon as it is
recorded; the five suites with the most work (an estimate, see below); and the closing line of the test runner. The exit code is 1 if the stream contains no test,
ends early, or contains a failure, so that a report without failures never stands for a run that was not completed.
"""
import collections
import io
import json
import os
import sys


class Report:
    def __init__(self, output, worker_count):
        self.output = output
        self.names = {}                           # Display names of tests and suites, by ID.
        self.functions = set()                    # IDs of test functions.
        self.parameterized = set()
        self.remaining = collections.Counter()    # Test functions of each target that have not ended.
        self.total, self.skipped, self.failed = collections.Counter(), collections.Counter(), collections.Counter()
        self.seconds = collections.Counter()      # Work, by suite.
        self.failed_tests = set()
        # The runner announces all tests at once, and reports no time at which a test without arguments really begins or ends. Tests begin
        # in the order of their announcement, so a test case that begins shows that all tests announced before it have begun. Thread time
        # that no test case explains is divided among the tests that began last: the work of a suite is an estimate.
        self.worker_count = worker_count
        self.case_starts = {}
        self.announced = collections.deque()
        self.latest = []
        self.unexplained, self.last = 0, None
        self.closing_line = None

    def line(self, text=""):
        print(text, file=self.output, flush=True)

    def suite(self, test):
        return test.rsplit("/", 2)[0] if "/" in test else test

    def path_of_names(self, test):
        suite, names = self.suite(test), []
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
                if payload["isParameterized"]: self.parameterized.add(payload["id"])
                self.remaining[payload["id"].split(".")[0]] += 1
            return
        getattr(self, "on_" + payload["kind"], lambda *_: None)(payload.get("testID", ""), payload, payload["instant"]["absolute"])

    def advance(self, now):
        self.unexplained += max(0, self.worker_count - len(self.case_starts)) * (now - (self.last or now))
        self.last = now

    def explain(self, begun):
        """Charges unexplained time to the tests in `begun`, or to those before them if there are none."""
        self.latest = [test for test in begun if test not in self.parameterized] or self.latest
        for test in self.latest: self.seconds[self.suite(test)] += self.unexplained / len(self.latest)
        if self.latest: self.unexplained = 0

    def on_runStarted(self, test, payload, now):
        self.last = now

    def on_testStarted(self, test, payload, now):
        if test in self.functions: self.announced.append(test)

    def on_testCaseStarted(self, test, payload, now):
        self.advance(now)
        self.explain([self.announced.popleft() for _ in range(self.announced.index(test) + 1)] if test in self.announced else [])
        self.case_starts[test, payload["_testCase"]["id"]] = now

    def on_testCaseEnded(self, test, payload, now):
        self.advance(now)
        self.seconds[self.suite(test)] += now - self.case_starts.pop((test, payload["_testCase"]["id"]), now)

    def on_testSkipped(self, test, payload, now):
        if test in self.functions:
            self.skipped[test.split(".")[0]] += 1
            self.finish(test)

    def on_issueRecorded(self, test, payload, now):
        if payload["issue"].get("isKnown") or payload["issue"].get("isFailure") is False: return
        self.failed_tests.add(test)
        self.failed[test.split(".")[0]] += 1
        case = payload.get("_testCase", {}).get("displayName")
        self.line("✘ " + (self.path_of_names(test) if test else "outside of a test") + (f" [{case}]" if case else ""))
        place = payload["issue"].get("sourceLocation")
        if place: self.line(f"  {place.get('_filePath', place.get('fileID'))}:{place['line']}")
        for message in payload["messages"]:
            for text in message["text"].splitlines(): self.line("  " + text)

    def on_testEnded(self, test, payload, now):
        if test not in self.functions: return
        if test in self.announced:
            self.advance(now)
            self.explain([self.announced.popleft() for _ in range(self.announced.index(test) + 1)])
        if any(message["symbol"] == "skip" for message in payload["messages"]): self.skipped[test.split(".")[0]] += 1
        self.total[test.split(".")[0]] += 1
        self.finish(test)

    def finish(self, test):
        target = test.split(".")[0]
        self.remaining[target] -= 1
        if self.remaining[target] > 0 or self.total[target] == 0: return
        seconds = sum(value for suite, value in self.seconds.items() if suite.split(".")[0] == target)
        skipped = f", {self.skipped[target]} skipped" if self.skipped[target] else ""
        failed = f", {self.failed[target]} ISSUES" if self.failed[target] else ""
        mark = "✘" if self.failed[target] else "✔"
        self.line(f"{mark} {target:<24}{self.total[target]:>5} tests about {seconds:>5.1f} s of work{skipped}{failed}")

    def on_runEnded(self, test, payload, now):
        self.advance(now)
        self.explain(self.announced)
        self.closing_line = " ".join(message["text"] for message in payload["messages"])

    def close(self):
        """Prints the end of the report and returns the exit code."""
        if self.closing_line is None or not self.total:
            self.line("✘ The test run was not completed: its output is in the log.")
            return 1
        slowest = [(suite, seconds) for suite, seconds in self.seconds.most_common(5) if seconds >= 0.05]
        if slowest: self.line("Slowest suites (estimated work):")
        for suite, seconds in slowest:
            self.line(f"  {seconds:>6.1f} s  {suite.split('.')[0]}: {self.names.get(suite, suite.partition('.')[2])}")
        self.line(("✘ " if self.failed_tests else "✔ ") + self.closing_line)
        return 1 if self.failed_tests else 0


def report(lines, output, worker_count):
    result = Report(output, worker_count)
    for line in lines:
        if line.strip(): result.read(json.loads(line))
    return result.close()


def self_test():
    sample = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "test-report.jsonl"), encoding="utf-8").read().splitlines()
    passing = [line for line in sample if '"issueRecorded"' not in line]
    output = io.StringIO()
    expected = [
        "✘ AlphaTests > Numbers > Each is small [30]", "  /project/Tests/AlphaTests/A.swift:4", "  Expectation failed: (n → 30) < 10",
        "  the number is too large", "  for this test", "✘ AlphaTests > Numbers > Throws", "  Caught error: E()", "2 ISSUES",
        "✔ BetaTests ", "    2 tests", "1 skipped", "Slowest suites", "s  AlphaTests: Numbers",
    ]
    code = report(sample, output, 2)
    text = output.getvalue()
    problems = [f"missing from the report: {words}" for words in expected if words not in text]
    if "1 == 2" in text: problems.append("a known issue is reported as a failure")
    if not text.splitlines()[-1].startswith("✘ Test run with "): problems.append("the closing line of the runner is not the last line")
    if code != 1: problems.append("the exit code of a run with failures is not 1")
    if report(passing, io.StringIO(), 2) != 0: problems.append("the exit code of a run without failures is not 0")
    if report(sample[:-1], io.StringIO(), 2) != 1: problems.append("the exit code of a run that ended early is not 1")
    if report([], io.StringIO(), 2) != 1: problems.append("the exit code of a run without tests is not 1")
    print("\n".join(problems + ([text] if problems else [])) or "The test report shows the failures of the recorded sample.")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    with open(sys.argv[1], encoding="utf-8") as events:
        sys.exit(report(events, sys.stdout, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
