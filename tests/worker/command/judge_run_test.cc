#include "worker/command/judge_run.h"

#include <csignal>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo::command {
namespace {

using Lines = std::vector<std::string>;

const RunExit kWell;
const RunExit kBadly{.code = 3};
const RunExit kKilled{.signal = SIGKILL};

MetricReader Printed(const Lines& lines) {
  MetricReader reader("acc", {*ParseMetricPattern("loss=([0-9.]+)")});
  for (const std::string& line : lines) reader.Take(line);
  reader.Finish();
  return reader;
}

RunFacts Facts(const RunExit& exit) {
  return {.exit = exit,
          .peak = MiB(70),
          .limit = MiB(60),
          .plan = {.effective_batch = 8, .micro_batch = 4},
          .objective = "acc",
          .command_text = "train.py --lr"};
}

RunFacts Stopped(const char* reason, const RunExit& exit) {
  RunFacts facts = Facts(exit);
  facts.stop_reason = reason;
  return facts;
}

RunFacts OverLimit(std::optional<std::string> stop_reason) {
  RunFacts facts = Facts(kKilled);
  facts.over_limit = true;
  facts.stop_reason = std::move(stop_reason);
  return facts;
}

RunFacts WithFile(absl::StatusOr<std::string> text) {
  RunFacts facts = Facts(kWell);
  facts.metrics_file = "m.json";
  facts.metrics_text = std::move(text);
  return facts;
}

const Lines kMeasured = {"{'acc': 0.5, 'step': 7}"};
const Lines kUnread = {"{'acc': 0.5, 'step': 7}", "{'acc': 'high'}"};
const Lines kNull = {"{'acc': 0.5, 'step': 7}", "{'acc': None}"};
const Lines kOutOfMemory = {"{'acc': 0.5, 'step': 7}", "CUDA out of memory."};
const Lines kMisread = {"{'acc': 0.5, 'step': 7}", "loss=1e-5"};

const std::optional<TrialOutcome> kWithoutOutcome;
const TrialOutcome kCompleted = Completed{.metrics = {{"acc", 0.5}}};
const TrialOutcome kPruned = StoppedByPruner{.step = 7, .metrics = {{"acc", 0.5}}};
const TrialOutcome kPrunedAtOnce = StoppedByPruner{};

// Of a failure and an out-of-memory error `message` is a part of the text.
struct Row {
  const char* what;
  RunFacts facts;
  Lines lines;
  std::optional<TrialOutcome> expected;
  const char* message = "";
};

Failed Failure(FailureClass failure_class) { return {.failure_class = failure_class}; }

OutOfMemory Oom(OomKind kind, int64_t step) {
  return {.kind = kind,
          .peak = MiB(70),
          .limit = MiB(60),
          .step = step,
          .plan = {.effective_batch = 8, .micro_batch = 4}};
}

const Row kRows[] = {
    {"a result", Facts(kWell), kMeasured, kCompleted},
    {"a result, though stopped", Stopped("drain", kWell), kMeasured, kCompleted},
    {"a result, though memory ran out before",
     Facts(kWell),
     {"CUDA out of memory.", "{'acc': 0.5}"},
     kCompleted},
    {"a result of the file", WithFile("{\"acc\": 0.5}"), kNull, kCompleted},
    {"no result",
     Facts(kWell),
     {"hello"},
     Failure(FailureClass::kBadConfiguration),
     "without the metric acc: expected a line such as {\"acc\": 0.5}, or one that "
     "--metric-pattern finds; its last output:\nhello"},
    {"nothing printed",
     Facts(kWell),
     {},
     Failure(FailureClass::kBadConfiguration),
     "finds; it printed nothing"},
    {"other metrics",
     Facts(kWell),
     {"{'f1': 0.5, 'loss': 2}"},
     Failure(FailureClass::kBadConfiguration),
     "; got f1, loss"},
    {"a file that was not written", WithFile(absl::NotFoundError("which it has not written")),
     kMeasured, Failure(FailureClass::kBadConfiguration),
     "expected {\"acc\": 0.5} in m.json, which it has not written"},
    {"a file that is no dict", WithFile("0.5"), kMeasured, Failure(FailureClass::kBadConfiguration),
     "in m.json, got the string \"0.5\""},
    {"a file without the objective", WithFile("{\"f1\": 0.5}"), kMeasured,
     Failure(FailureClass::kBadConfiguration), "in m.json; got f1"},
    {"an earlier value only", Facts(kWell), kUnread, Failure(FailureClass::kBadConfiguration),
     "; the value before it, 0.5, is not taken as the result; let the program print"},
    {"a null at the end", Facts(kWell), kNull, Failure(FailureClass::kDiverged),
     "expected a finite number as the metric acc, got None, in the line"},
    {"an earlier value only, stopped", Stopped("pruned", kWell), kUnread, kPruned},
    {"a pattern misreads", Facts(kWell), kMisread, Failure(FailureClass::kBadConfiguration)},
    {"a pattern misreads, stopped", Stopped("pruned", kBadly), kMisread,
     Failure(FailureClass::kBadConfiguration)},
    {"over the limit", OverLimit(std::nullopt), kMeasured, Oom(OomKind::kConfiguration, 7),
     "held 70.00 MiB of host memory; the trial's limit is 60.00 MiB"},
    {"over the limit, stopped",
     OverLimit("pruned"),
     {},
     Oom(OomKind::kConfiguration, 0),
     "the trial's limit is 60.00 MiB"},
    {"over the limit, misread", OverLimit(std::nullopt), kMisread, Oom(OomKind::kConfiguration, 7),
     "the trial's limit is 60.00 MiB"},
    {"out of memory", Facts(kBadly), kOutOfMemory, Oom(OomKind::kConfiguration, 7),
     "CUDA out of memory."},
    {"out of memory before the first step",
     Facts(kBadly),
     {"CUDA out of memory."},
     Oom(OomKind::kConfiguration, 0),
     "CUDA out of memory."},
    {"out of memory in a rank",
     Facts(kBadly),
     {"[rank1]: torch.OutOfMemoryError: CUDA out of memory."},
     Oom(OomKind::kConfiguration, 0),
     "rank 1: torch.OutOfMemoryError: CUDA out of memory."},
    {"out of the host's memory in a rank",
     Facts(kBadly),
     {"[rank0]: MemoryError"},
     Oom(OomKind::kHost, 0),
     "rank 0: MemoryError"},
    {"out of the host's memory",
     Facts(kBadly),
     {"MemoryError"},
     Oom(OomKind::kHost, 0),
     "MemoryError"},
    {"out of memory with status 0",
     Facts(kWell),
     {"CUDA out of memory."},
     Oom(OomKind::kConfiguration, 0),
     "CUDA out of memory."},
    {"out of memory while it was stopped", Stopped("time limit", kBadly), kOutOfMemory, kPruned},
    {"pruned", Stopped("pruned", kKilled), kMeasured, kPruned},
    {"out of time", Stopped("time limit", kBadly), kMeasured, kPruned},
    {"pruned before it measured", Stopped("pruned", kKilled), {}, kPrunedAtOnce},
    {"pruned, status 0, no result", Stopped("pruned", kWell), {}, kPrunedAtOnce},
    {"drained", Stopped("drain", kKilled), kMeasured, kWithoutOutcome},
    {"cancelled", Stopped("cancelled", kBadly), kMeasured, kWithoutOutcome},
    {"drained, status 0, no result", Stopped("drain", kWell), {}, kWithoutOutcome},
    {"a failure of its own", Facts(kBadly), kMeasured, Failure(FailureClass::kInternal),
     "the program exited with status 3; its last output:\n{'acc': 0.5, 'step': 7}"},
    {"killed by somebody",
     Facts(kKilled),
     {},
     Failure(FailureClass::kInternal),
     "the program was killed by SIGKILL; it printed nothing"},
};

// What is told of it, which is compared by itself.
std::string TakeMessage(std::optional<TrialOutcome>& outcome) {
  if (!outcome) return "";
  if (auto* const failed = std::get_if<Failed>(&*outcome))
    return std::exchange(failed->message, "");
  auto* const oom = std::get_if<OutOfMemory>(&*outcome);
  if (oom == nullptr) return "";
  oom->traceback.clear();
  return std::exchange(oom->message, "");
}

TEST(JudgeRun, EveryEndHasItsVerdict) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    RunVerdict verdict = JudgeRun(row.facts, Printed(row.lines));
    const std::string message = TakeMessage(verdict.outcome);
    EXPECT_TRUE(verdict.outcome == row.expected)
        << (verdict.outcome ? OutcomeToJson(*verdict.outcome).dump() : "none");
    EXPECT_NE(message.find(row.message), std::string::npos) << message;
    EXPECT_EQ(verdict.cannot_start, "");
  }
}

// Who killed it is for the worker to say; other signals are the program's own.
TEST(JudgeRun, GivesOnASigkillOfAnother) {
  EXPECT_EQ(JudgeRun(Facts(kKilled), Printed({})).signal, SIGKILL);
  EXPECT_EQ(JudgeRun(Facts({.signal = SIGSEGV}), Printed({})).signal, 0);
  EXPECT_EQ(JudgeRun(Facts(kBadly), Printed({})).signal, 0);
  EXPECT_EQ(JudgeRun(Facts(kKilled), Printed(kMisread)).signal, 0) << "ours";
  EXPECT_EQ(JudgeRun(OverLimit(std::nullopt), Printed({})).signal, 0) << "ours";
  EXPECT_EQ(JudgeRun(Stopped("drain", kKilled), Printed({})).signal, 0) << "ours";
  EXPECT_EQ(JudgeRun(Facts(kKilled), Printed(kOutOfMemory)).signal, 0) << "it told why";
}

// The launcher says so and ends with a status of its own.
TEST(JudgeRun, GivesOnASigkillOfARank) {
  const Lines killed = {"Root Cause (first observed failure):", "  rank      : 1 (local_rank: 1)",
                        "  exitcode  : -9 (pid: 7)"};
  EXPECT_EQ(JudgeRun(Facts(kBadly), Printed(killed)).signal, SIGKILL);
  EXPECT_EQ(JudgeRun(Facts(kBadly), Printed({"ValueError"})).signal, 0);
}

TEST(JudgeRun, AProgramThatIsNotThereCannotStart) {
  const std::string line = "/bin/sh: 1: train.py: not found";
  const RunFacts facts = Facts({.code = 127});
  EXPECT_EQ(JudgeRun(facts, Printed({line})).cannot_start, line);
  // It has run.
  EXPECT_EQ(JudgeRun(facts, Printed({"{'acc': 0.5}", line})).cannot_start, "");
}

}  // namespace
}  // namespace hpo::command
