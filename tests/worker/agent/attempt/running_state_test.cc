#include "worker/agent/attempt/running_state.h"

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

constexpr absl::Duration kNow = absl::Seconds(100);
constexpr absl::Duration kNever = absl::InfiniteDuration();

// ---- States, and how a row of the table names them ----

RunningState Stopping(StopCause cause, const std::string& pruner = "") {
  RunningState state;
  state.end.stop_cause = cause;
  state.end.pruner = pruner;
  return state;
}

RunningState AskedAt(absl::Duration at, absl::Duration stop_time = {},
                     absl::Duration said_at = {}) {
  RunningState state = Stopping(StopCause::kDrain);
  state.asked_at = at;
  state.stop_time = stop_time;
  state.said_at = said_at;
  return state;
}

RunningState Broken(const std::string& how) {
  RunningState state;
  state.end.protocol_error = how;
  state.kill_at = absl::ZeroDuration();
  return state;
}

RunningState Closed(absl::Duration kill_at, RunningState state = {}) {
  state.closed = true;
  state.kill_at = kill_at;
  return state;
}

RunningState After(RunningState state, const AttemptEvent& event) {
  return Next(std::move(state), event, kNow, {}).state;
}

const ProcessExit kSegv{.code = std::nullopt, .signal = SIGSEGV};
const ProcessExit kKilled{.code = std::nullopt, .signal = SIGKILL};
const OutcomeMessage kResult{.outcome = Completed{.metrics = {{"macro_f1", 0.5}}}};

std::string Text(const RunningState& state) {
  std::vector<std::string> parts;
  const TrainerEnd& end = state.end;
  if (end.stop_cause != StopCause::kNone) parts.emplace_back(StopReason(end.stop_cause));
  if (!end.pruner.empty()) parts.push_back(absl::StrCat("by ", end.pruner));
  if (state.asked_at)
    parts.push_back(absl::StrCat("asked ", absl::FormatDuration(*state.asked_at)));
  if (state.stop_time > absl::ZeroDuration()) {
    parts.push_back(absl::StrCat("takes ", absl::FormatDuration(state.stop_time), " said ",
                                 absl::FormatDuration(state.said_at)));
  }
  if (state.closed) parts.emplace_back("closed");
  if (!end.protocol_error.empty()) parts.push_back(absl::StrCat("broke: ", end.protocol_error));
  if (state.kill_at) parts.push_back(absl::StrCat("kill ", absl::FormatDuration(*state.kill_at)));
  if (end.killed_by_agent) parts.emplace_back("killed");
  if (end.undying) parts.push_back(absl::StrCat("undying ", *end.undying));
  if (end.exit.signal) parts.push_back(absl::StrCat("signal ", *end.exit.signal));
  if (end.outcome) parts.emplace_back("outcome");
  return absl::StrJoin(parts, ", ");
}

struct AttemptRow {
  std::string what;
  RunningState before;
  AttemptEvent event;
  std::string after;
  AttemptAction action = AttemptAction::kNone;
};

void ExpectAttemptRows(const std::vector<AttemptRow>& rows) {
  for (const AttemptRow& row : rows) {
    SCOPED_TRACE(row.what);
    const AttemptStep step = Next(row.before, row.event, kNow, {});
    EXPECT_EQ(Text(step.state), row.after);
    EXPECT_EQ(step.action, row.action);
  }
}

// ---- The table ----

TEST(RunningState, AnOrderAsksTheTrainerOnceAndTheGravestCauseCounts) {
  ExpectAttemptRows({
      {"no order", {}, StopOrder{}, ""},
      {"preempted", {}, StopOrder{StopCause::kPreempted}, "preempted", AttemptAction::kAskToStop},
      {"pruned",
       {},
       StopOrder{StopCause::kPruned, "median"},
       "pruned, by median",
       AttemptAction::kAskToStop},
      {"no signal", {}, StopLevel::kRun, ""},
      {"a signal", {}, StopLevel::kDrain, "drain", AttemptAction::kAskToStop},
      {"the signal, seen again", Stopping(StopCause::kDrain), StopLevel::kDrain, "drain"},
      {"two signals at once", {}, StopLevel::kNow, "drain, kill 0", AttemptAction::kAskToStop},
      {"a second signal", AskedAt(absl::Seconds(90)), StopLevel::kNow,
       "drain, asked 1m30s, kill 0"},
      {"pruned while drained", Stopping(StopCause::kDrain), StopOrder{StopCause::kPruned, "median"},
       "pruned, by median"},
      {"drained while pruned", Stopping(StopCause::kPruned, "median"), StopLevel::kDrain,
       "pruned, by median"},
      {"preempted while drained", Stopping(StopCause::kDrain), StopOrder{StopCause::kPreempted},
       "drain"},
      {"the name of the pruner comes late", Stopping(StopCause::kPruned),
       StopOrder{StopCause::kPruned, "median"}, "pruned, by median"},
      {"time limit while pruned", Stopping(StopCause::kPruned, "median"),
       StopOrder{StopCause::kTimeLimit, "time limit"}, "pruned, by median"},
      {"pruned by a heartbeat after its time", Stopping(StopCause::kTimeLimit, "time limit"),
       StopOrder{StopCause::kPruned}, "pruned, by time limit"},
      {"lease lost while stopping", AskedAt(absl::Seconds(90)), StopOrder{StopCause::kLeaseLost},
       "lease lost, asked 1m30s"},
      {"cancelled after the lease was lost", Stopping(StopCause::kLeaseLost),
       StopOrder{StopCause::kCancelled}, "lease lost"},
      {"an order after the end", After({}, kSegv), StopOrder{StopCause::kCancelled},
       "cancelled, signal 11", AttemptAction::kAskToStop},
  });
}

TEST(RunningState, AskedItHasItsGraceAndUnaskedNone) {
  ExpectAttemptRows({
      {"told", Stopping(StopCause::kDrain), AskedToStop{true}, "drain, asked 1m40s"},
      {"cannot be told", Stopping(StopCause::kDrain), AskedToStop{false}, "drain, kill 0"},
      {"progress", {}, ProgressMessage{.step = 1}, ""},
      {"says how long it takes",
       {},
       ProgressMessage{.stop_time = absl::Seconds(60)},
       "takes 1m said 1m40s",
       AttemptAction::kTellEndingTime},
      {"says so while it stops", AskedAt(absl::Seconds(90), absl::Seconds(20), absl::Seconds(80)),
       ProgressMessage{.stop_time = absl::Seconds(60)}, "drain, asked 1m30s, takes 1m said 1m40s",
       AttemptAction::kTellEndingTime},
  });
}

TEST(RunningState, WhatBreaksTheProtocolDoomsTheTrainer) {
  ExpectAttemptRows({
      {"nonsense", {}, ProtocolBroken{"nonsense"}, "broke: nonsense, kill 0"},
      {"more of it", Broken("nonsense"), ProtocolBroken{"more"}, "broke: nonsense, kill 0"},
      {"while it stops", AskedAt(absl::Seconds(90)), ProtocolBroken{"nonsense"},
       "drain, asked 1m30s, broke: nonsense, kill 0"},
      {"closed", {}, ChannelClosed{}, "closed, kill 1m50s"},
      {"closed after nonsense", Broken("nonsense"), ChannelClosed{},
       "closed, broke: nonsense, kill 0"},
      {"closed while it stops", AskedAt(absl::Seconds(90)), ChannelClosed{},
       "drain, asked 1m30s, closed, kill 1m50s"},
  });
}

TEST(RunningState, TimeKillsWhatIsOverdueAndNotOver) {
  ExpectAttemptRows({
      {"running", {}, TimePassed{}, ""},
      {"doomed", Broken("nonsense"), TimePassed{}, "broke: nonsense, kill 0", AttemptAction::kKill},
      {"closed just now", Closed(absl::Seconds(110)), TimePassed{}, "closed, kill 1m50s"},
      {"closed for long", Closed(kNow), TimePassed{}, "closed, kill 1m40s", AttemptAction::kKill},
      {"asked just now", AskedAt(absl::Seconds(71)), TimePassed{}, "drain, asked 1m11s"},
      {"asked for long", AskedAt(absl::Seconds(70)), TimePassed{}, "drain, asked 1m10s",
       AttemptAction::kKill},
      {"it takes longer", AskedAt(absl::Seconds(10), absl::Seconds(60), absl::Seconds(41)),
       TimePassed{}, "drain, asked 10s, takes 1m said 41s"},
      {"over by its outcome", After(Closed(kNow), kResult), TimePassed{},
       "closed, kill 1m40s, outcome"},
      {"over by its exit", After(Closed(kNow), kSegv), TimePassed{},
       "closed, kill 1m40s, signal 11"},
      {"not ended by the first kill", After(Closed(kNow), TrainerKilled{std::nullopt, 7}),
       TimePassed{}, "closed, kill 1m40s, killed, undying 7"},
  });
}

TEST(RunningState, TheEndIsAnOutcomeAnExitOrAKill) {
  ExpectAttemptRows({
      {"an outcome", {}, kResult, "outcome"},
      {"a result that crosses the stop", AskedAt(absl::Seconds(90)), kResult,
       "drain, asked 1m30s, outcome"},
      {"an outcome among the last lines of what has ended", After({}, kSegv), kResult,
       "signal 11, outcome"},
      {"an exit", {}, kSegv, "signal 11"},
      {"a trainer that dies while it stops", AskedAt(absl::Seconds(90)), kSegv,
       "drain, asked 1m30s, signal 11"},
      {"killed while it stops", AskedAt(absl::Seconds(70)), TrainerKilled{kKilled, 7},
       "drain, asked 1m10s, killed, signal 9"},
      {"killed as it closed the channel and ran on", Closed(kNow), TrainerKilled{kKilled, 7},
       "closed, broke: the trainer closed file descriptor 3 and ran on: expected an outcome line "
       "first, kill 1m40s, killed, signal 9"},
      {"the same, told to stop", Closed(kNow, Stopping(StopCause::kDrain)),
       TrainerKilled{kKilled, 7}, "drain, closed, kill 1m40s, killed, signal 9"},
      {"the same, after nonsense", Closed(absl::ZeroDuration(), Broken("nonsense")),
       TrainerKilled{kKilled, 7}, "closed, broke: nonsense, kill 0, killed, signal 9"},
      {"what a kill does not end", Closed(kNow), TrainerKilled{std::nullopt, 7},
       "closed, kill 1m40s, killed, undying 7"},
  });
  for (const AttemptEvent& event :
       {AttemptEvent(kResult), AttemptEvent(kSegv), AttemptEvent(TrainerKilled{std::nullopt, 7})}) {
    EXPECT_TRUE(After({}, event).Over());
  }
  EXPECT_FALSE(Closed(kNow, AskedAt(kNow)).Over());
}

TEST(RunningState, ItsTimeToEndIsTheSmallestThatHolds) {
  struct {
    RunningState state;
    absl::Duration kill_at;
  } const rows[] = {
      {{}, kNever},
      {Stopping(StopCause::kDrain), kNever},
      {AskedAt(kNow), absl::Seconds(130)},
      {AskedAt(kNow, absl::Seconds(5)), absl::Seconds(130)},
      {AskedAt(kNow, absl::Seconds(60)), absl::Seconds(160)},
      {AskedAt(kNow, absl::Seconds(60), absl::Seconds(150)), absl::Seconds(210)},
      {AskedAt(kNow, absl::Hours(9)), kNow + absl::Hours(1)},
      {AskedAt(kNow, absl::Seconds(60), absl::Hours(2)), kNow + absl::Hours(1)},
      {Closed(absl::Seconds(110), AskedAt(kNow)), absl::Seconds(110)},
      {Closed(absl::Seconds(140), AskedAt(kNow)), absl::Seconds(130)},
  };
  for (const auto& [state, kill_at] : rows) {
    SCOPED_TRACE(Text(state));
    EXPECT_EQ(KillAt(state, {}).value_or(kNever), kill_at);
  }
}

TEST(StopOrder, IsTheGraverOfVerdictAndDirective) {
  using Verdict = ReportAnswer::Verdict;
  struct {
    ReportAnswer answer;
    StopCause cause;
    std::string pruner;
  } const rows[] = {
      {{}, StopCause::kNone, ""},
      {{.directive = Directive::kStopPruned}, StopCause::kPruned, ""},
      {{.directive = Directive::kLeaseLost}, StopCause::kLeaseLost, ""},
      {{.directive = Directive::kCancelled}, StopCause::kCancelled, ""},
      {{.directive = Directive::kPreempted}, StopCause::kPreempted, ""},
      {{.directive = Directive::kTimeLimit}, StopCause::kTimeLimit, "time limit"},
      {{.verdict = Verdict::kLeaseLost}, StopCause::kLeaseLost, ""},
      {{.verdict = Verdict::kStop, .pruner = "median"}, StopCause::kPruned, "median"},
      {{.verdict = Verdict::kStop, .pruner = "time limit"}, StopCause::kTimeLimit, "time limit"},
      {{.verdict = Verdict::kStop, .pruner = "median", .directive = Directive::kPreempted},
       StopCause::kPruned,
       "median"},
      {{.verdict = Verdict::kStop, .pruner = "median", .directive = Directive::kCancelled},
       StopCause::kCancelled,
       ""},
  };
  for (const auto& [answer, cause, pruner] : rows) {
    SCOPED_TRACE(StopReason(cause));
    EXPECT_EQ(OrderOf(answer).cause, cause);
    EXPECT_EQ(OrderOf(answer).pruner, pruner);
  }
}

}  // namespace
}  // namespace hpo::agent
