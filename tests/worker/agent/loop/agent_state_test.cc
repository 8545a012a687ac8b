#include "worker/agent/loop/agent_state.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/protocol/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

// ---- How a row of the table names states and actions ----

std::string Text(const AgentState& state) {
  std::vector<std::string> parts;
  if (state.database) parts.push_back(absl::StrCat("serves ", *state.database));
  if (state.lease != LeaseRef{}) parts.push_back(absl::StrCat("#", state.lease.trial.number.value));
  if (state.asked) parts.emplace_back("asked");
  if (state.away) parts.emplace_back("away");
  if (!state.work_remains) parts.emplace_back("no work");
  if (!state.waiting_for.empty()) parts.push_back(absl::StrCat("waits for ", state.waiting_for));
  if (state.num_failures > 0) parts.push_back(absl::StrCat("failures ", state.num_failures));
  if (state.num_finished > 0) parts.push_back(absl::StrCat("finished ", state.num_finished));
  return absl::StrJoin(parts, ", ");
}

struct ActionText {
  std::string operator()(const RegisterAnew&) const { return "register"; }
  std::string operator()(const RenewSession&) const { return "renew"; }
  std::string operator()(const DeliverResults&) const { return "deliver"; }
  std::string operator()(const LookAtMachine&) const { return "look"; }
  std::string operator()(const AskForTrial& ask) const {
    return absl::StrCat("ask ", absl::FormatDuration(ask.wait));
  }
  std::string operator()(const RunTrial&) const { return "run"; }
  std::string operator()(const KeepResult& kept) const {
    return kept.crowded ? "keep (crowded)" : "keep";
  }
  std::string operator()(const DiscardTrial& discarded) const {
    return discarded.lease_lost ? "drop" : "discard";
  }
  std::string operator()(const TrialRelease& release) const {
    return absl::StrCat("give #", release.lease.trial.number.value, " back ", Name(release.reason));
  }
  std::string operator()(const TakePause& pause) const {
    const std::string kinds[] = {"pause", "long pause", "short pause"};
    return absl::StrCat(kinds[static_cast<int>(pause.kind)], pause.away.ok() ? "" : " (away)");
  }
  std::string operator()(const WriteLog& log) const { return absl::StrCat("log ", log.text); }
  std::string operator()(const StudiesEnded&) const { return "studies ended"; }
  std::string operator()(const AgentResult& end) const {
    return absl::StrCat("end ", static_cast<int>(end.code));
  }
};

std::string Text(const AgentActions& actions) {
  return absl::StrJoin(actions, "; ", [](std::string* out, const AgentAction& action) {
    absl::StrAppend(out, std::visit(ActionText(), action));
  });
}

struct LoopRow {
  std::string what;
  AgentState before;
  AgentEvent event;
  AgentView view;
  std::string after;
  std::string actions;
};

AgentOptions LoopOptions() {
  AgentOptions options;
  options.server = "here";
  return options;
}

void ExpectLoopRows(const std::vector<LoopRow>& rows, const AgentOptions& options = LoopOptions()) {
  for (const LoopRow& row : rows) {
    SCOPED_TRACE(row.what);
    const AgentStep step = Next(row.before, row.event, row.view, options);
    EXPECT_EQ(Text(step.state), row.after);
    EXPECT_EQ(Text(step.actions), row.actions);
  }
}

// ---- States, views and events ----

LeaseRef LeaseOf(int64_t trial) { return {.trial = {"s", {trial}}, .attempt = {1}, .token = "t"}; }

AgentState Serving(AgentState state = {}) {
  state.database = "db";
  return state;
}
AgentState Holding(int num_failures = 0) {
  return Serving({.lease = LeaseOf(4), .num_failures = num_failures});
}

const AgentView kSignal{.stop = StopLevel::kDrain};
const AgentView kTwoSignals{.stop = StopLevel::kNow};
const AgentView kOwing{.owes = true};
const absl::Status kAway = absl::UnavailableError("away");

ActionFailed CallFailed(Rpc rpc, absl::Status status) { return {std::move(status), rpc}; }

TrialAnswer Answered(AcquireResult answer = {}) {
  return {.answer = std::move(answer), .registration = {.database = "db"}, .free = MiB(100)};
}
TrialAnswer Assigned(Bytes required = MiB(100)) {
  Assignment assignment;
  assignment.lease = LeaseOf(4);
  assignment.required = required;
  return Answered({.assignment = assignment});
}

AttemptEnd ResultOfTrial(TrialOutcome outcome) {
  return AttemptResult{{.lease = LeaseOf(4), .outcome = std::move(outcome)}};
}

// ---- The table ----

TEST(AgentState, RegistersFirstAndThenDeliversBeforeEachAsk) {
  ExpectLoopRows({
      {"the start", {}, NothingCame{}, {}, "", "register"},
      {"a turn", Serving(), NothingCame{}, {}, "serves db", "deliver"},
      {"registered", {}, AgentRegistered{"db"}, {}, "serves db", ""},
      {"registered without data",
       {},
       AgentRegistered{"db", absl::NotFoundError("")},
       {},
       "serves db",
       "end 8"},
      {"again, with another database", Serving(), AgentRegistered{"other"}, {}, "serves db", ""},
      {"again, without data",
       Serving(),
       AgentRegistered{"db", absl::NotFoundError("")},
       {},
       "serves db",
       ""},
      {"delivered", Serving(), ResultsDelivered{}, {}, "serves db", "look"},
      {"the server is away", Serving(), ResultsDelivered{kAway}, kOwing, "serves db", "pause"},
      {"the first ask", Serving(), MachineSeen{.may_take = true}, {}, "serves db, asked", "ask 0"},
      {"a later one",
       Serving({.asked = true}),
       MachineSeen{.may_take = true},
       {},
       "serves db, asked",
       "ask 30s"},
      {"with a result that is owed", Serving({.asked = true}), MachineSeen{.may_take = true},
       kOwing, "serves db, asked", "ask 2s"},
      {"with data to be read again",
       Serving({.asked = true}),
       MachineSeen{.may_take = true},
       {.reads_again = true},
       "serves db, asked",
       "ask 2s"},
      {"data may be readable",
       Serving({.asked = true}),
       MachineSeen{true, true},
       {},
       "serves db",
       "register"},
      {"a full disk", Serving(), MachineSeen{false, true}, {}, "serves db", "pause"},
  });
  AgentOptions stays = LoopOptions();
  stays.stay = true;
  ExpectLoopRows({{"stays without data",
                   {},
                   AgentRegistered{"db", absl::NotFoundError("")},
                   {},
                   "serves db",
                   ""}},
                 stays);
}

TEST(AgentState, OnlyAWrongConfigurationOrTimeEndsItWhereCallsFail) {
  const absl::Status denied = absl::PermissionDeniedError("");
  const absl::Status taken =
      WithRefusal(absl::AlreadyExistsError(""), {RefusalReason::kNameTaken, ""});
  const absl::Status unknown = absl::NotFoundError("unknown session");
  const AgentView late{.running = absl::Minutes(5)};
  const AgentView late_and_told{.stop = StopLevel::kDrain, .running = absl::Minutes(5)};
  ExpectLoopRows({
      {"no server yet", {}, CallFailed(Rpc::kListStudies, kAway), {}, "", "pause (away)"},
      {"none for too long", {}, CallFailed(Rpc::kListStudies, kAway), late, "", "end 75"},
      {"a signal meanwhile", {}, CallFailed(Rpc::kListStudies, kAway), late_and_told, "", "end 75"},
      {"two signals", {}, CallFailed(Rpc::kListStudies, kAway), kTwoSignals, "", "end 130"},
      {"no token", {}, CallFailed(Rpc::kListStudies, denied), kSignal, "", "end 78"},
      {"a configuration",
       {},
       CallFailed(Rpc::kRegisterWorker, absl::InvalidArgumentError("")),
       {},
       "",
       "end 78"},
      {"a name that is taken", {}, CallFailed(Rpc::kRegisterWorker, taken), {}, "", "end 79"},
      {"a silent card", {}, ActionFailed{denied, std::nullopt}, {}, "", "pause (away)"},
      {"away later", Serving(), CallFailed(Rpc::kListStudies, kAway), late, "serves db",
       "pause (away)"},
      {"a signal later", Serving(), CallFailed(Rpc::kAcquireTrial, absl::CancelledError("")),
       kSignal, "serves db", ""},
      {"an unknown session",
       Serving(),
       CallFailed(Rpc::kAcquireTrial, unknown),
       {},
       "serves db",
       "renew"},
      {"still unknown",
       Serving(),
       CallFailed(Rpc::kRegisterWorker, unknown),
       {},
       "serves db",
       "pause (away)"},
      {"a wrong token later",
       Serving(),
       CallFailed(Rpc::kAcquireTrial, denied),
       {},
       "serves db",
       "end 78"},
      {"a refusal of another database",
       Serving(),
       CallFailed(Rpc::kRegisterWorker, WithRefusal(absl::FailedPreconditionError(""),
                                                    {RefusalReason::kConfiguration, "other"})),
       {},
       "serves db",
       "pause (away)"},
  });
}

TEST(AgentState, AfterDeliveringItEndsWhereItIsToldTo) {
  const std::string asks = "log stopped on request; work remains: run this worker again; end 75";
  ExpectLoopRows({
      {"a signal", Serving(), ResultsDelivered{}, kSignal, "serves db", asks},
      {"no work", Serving({.work_remains = false}), ResultsDelivered{}, kSignal,
       "serves db, no work", "log stopped on request; end 0"},
      {"a result is owed",
       Serving({.work_remains = false}),
       ResultsDelivered{kAway},
       {.stop = StopLevel::kDrain, .owes = true},
       "serves db, no work",
       asks},
      {"two signals", Serving(), ResultsDelivered{}, kTwoSignals, "serves db", "end 130"},
      {"the server does not let it in any more",
       Serving(),
       ResultsDelivered{kAway},
       {.stop = StopLevel::kDrain, .refused = true},
       "serves db",
       "log stopped, as the server does not let this worker in any more; work remains: run it "
       "again with a new join string; end 78"},
  });
  AgentOptions two = LoopOptions();
  two.max_trials = 2;
  ExpectLoopRows({{"one of two",
                   Serving({.num_finished = 1}),
                   ResultsDelivered{},
                   {},
                   "serves db, finished 1",
                   "look"},
                  {"two of two",
                   Serving({.num_finished = 2}),
                   ResultsDelivered{},
                   {},
                   "serves db, finished 2",
                   "end 0"},
                  {"not told", Serving({.num_finished = 2}), ResultsDelivered{kAway}, kOwing,
                   "serves db, finished 2", "end 75"}},
                 two);
}

TEST(AgentState, WithoutATrialItWaitsRegistersAnewOrEnds) {
  const AcquireResult over{.all_studies_finished = true};
  TrialAnswer elsewhere = Answered(over);
  elsewhere.registration.database = "other";
  const std::string waits = "log waiting: no study has trials left to run; pause";
  const std::string waiting = "serves db, no work, waits for no study has trials left to run";
  ExpectLoopRows({
      {"nothing yet",
       Serving(),
       Answered({.waiting_for = "memory"}),
       {},
       "serves db, waits for memory",
       "log waiting: memory"},
      {"the same",
       Serving({.waiting_for = "memory"}),
       Answered({.waiting_for = "memory"}),
       {},
       "serves db, waits for memory",
       ""},
      {"nothing to say", Serving({.waiting_for = "memory"}), Answered(), {}, "serves db", ""},
      {"draining while waiting", Serving(), Answered({.draining = true}), {}, "serves db", "pause"},
      {"new studies",
       Serving({.asked = true}),
       Answered({.studies_version = 2}),
       {},
       "serves db",
       "register"},
      {"all over", Serving(), Answered(over), {}, "serves db, no work", "studies ended"},
      {"all over, but a result is owed", Serving(), Answered(over), kOwing, waiting, waits},
      {"all over in another database", Serving(), elsewhere, {}, waiting, waits},
      {"work again", Serving({.work_remains = false}), Answered(), {}, "serves db", ""},
  });
  AgentOptions stays = LoopOptions();
  stays.stay = true;
  ExpectLoopRows({{"stays", Serving(), Answered(over), {}, waiting, waits}}, stays);
}

TEST(AgentState, ATrialIsStartedOrGivenBack) {
  TrialAnswer wrong = Assigned();
  wrong.command = absl::InvalidArgumentError("{lr}: there is no such parameter");
  TrialAnswer demonstration = Assigned(GiB(1));
  demonstration.answer.assignment->task.admission = false;
  TrialAnswer unmanaged = Assigned(GiB(1));
  unmanaged.answer.assignment->task.memory.policy = MemoryPolicy::kOff;
  const AgentState waiting = Serving({.asked = true, .waiting_for = "memory"});
  ExpectLoopRows({
      {"it fits", waiting, Assigned(), {}, "serves db, #4", "run"},
      {"a signal came first", waiting, wrong, kSignal, "serves db, #4", "give #4 back PREEMPTED"},
      {"a command that cannot run",
       waiting,
       wrong,
       {},
       "serves db, #4",
       "give #4 back PREEMPTED; end 78"},
      {"too large",
       waiting,
       Assigned(MiB(101)),
       {},
       "serves db, #4",
       "give #4 back REJECTED; short pause"},
      {"too large, not admitted", waiting, demonstration, {}, "serves db, #4", "run"},
      {"too large, not managed", waiting, unmanaged, {}, "serves db, #4", "run"},
  });
  const AgentStep step = Next(waiting, Assigned(MiB(101)), {}, LoopOptions());
  const auto& release = std::get<TrialRelease>(step.actions.front());
  EXPECT_EQ(release.needed, MiB(101));
  EXPECT_EQ(release.note, "needs 101.00 MiB, 100.00 MiB are free now");
  const AgentStep wrong_step = Next(waiting, wrong, {}, LoopOptions());
  const auto& end = std::get<AgentResult>(wrong_step.actions.back());
  EXPECT_THAT(std::string(end.status.message()),
              HasSubstr("trial #4 of study s is given back, as its command cannot run: {lr}"));
}

TEST(AgentState, ATrainerThatIsNotReadyCostsTheTrialNoRetryAndTheThirdEndsTheWorker) {
  const TrainerNotReady crash{absl::FailedPreconditionError("exited")};
  const std::string back = "give #4 back UNHEALTHY; log exited; ";
  ExpectLoopRows({
      {"told to stop", Holding(), TrainerNotReady{absl::CancelledError("stop")}, kSignal,
       "serves db, #4", "give #4 back PREEMPTED"},
      {"a full disk",
       Holding(2),
       TrainerNotReady{absl::UnavailableError("full")},
       {},
       "serves db, #4, failures 2",
       "give #4 back PREEMPTED; log waiting for this machine: full; long pause"},
      {"the first failure", Holding(), crash, {}, "serves db, #4, failures 1", back + "pause"},
      {"the third", Holding(2), crash, {}, "serves db, #4, failures 3", back + "end 77"},
  });
}

TEST(AgentState, TheEndOfATrialIsKeptReturnedOrDropped) {
  ExpectLoopRows({
      {"a result", Holding(2), ResultOfTrial(Completed{}), {}, "serves db, #4, finished 1", "keep"},
      {"a result that comes after a signal", Holding(), ResultOfTrial(Completed{}), kSignal,
       "serves db, #4, finished 1", "keep"},
      {"out of memory",
       Holding(),
       ResultOfTrial(OutOfMemory{}),
       {},
       "serves db, #4, finished 1",
       "keep"},
      {"others have filled the device",
       Holding(),
       ResultOfTrial(OutOfMemory{.kind = OomKind::kDirtyDevice}),
       {},
       "serves db, #4, finished 1",
       "keep (crowded); deliver; long pause"},
      {"given back", Holding(), AttemptEnd(ReturnedTrial{"the worker stops"}), kSignal,
       "serves db, #4", "discard; give #4 back PREEMPTED"},
      {"a program that cannot start",
       Holding(),
       AttemptEnd(UnstartableProgram{"not found"}),
       {},
       "serves db, #4",
       "discard; give #4 back PREEMPTED; end 78"},
      {"a lost lease",
       Holding(),
       AttemptEnd(LostLease{}),
       {},
       "serves db, #4",
       "log trial #4: its lease is lost; the result is dropped; drop"},
      {"a lease lost while draining", Holding(), AttemptEnd(LostLease{}), kSignal, "serves db, #4",
       "log trial #4: its lease is lost; the result is dropped; drop"},
  });
}

TEST(CheckCommand, NamesWhatTrialsOfTheStudyDoNotHave) {
  Assignment assignment;
  assignment.lease = LeaseOf(1);
  assignment.task.params = {{"lr", 0.1}};
  const std::vector<StudyData> studies = {{.study = "s", .parameters = {"lr", "depth"}},
                                          {.study = "t", .parameters = {"width"}}};
  struct {
    TrialCommand command;
    std::string message;
  } const rows[] = {
      {{"--trainer", "train {lr} {depth}", "{output_dir}/m.json"}, ""},
      {{"--trainer", "train {width}", ""}, "--trainer: expected placeholders"},
      {{"trainer.command", "train `echo {lr}`", ""}, "trainer.command: expected placeholders"},
      {{"--trainer", "train {lr}", "{width}.json"}, "--metrics-file: expected placeholders"},
  };
  for (const auto& [command, message] : rows) {
    const absl::Status checked = CheckCommand(command, assignment, studies);
    EXPECT_EQ(checked.ok(), message.empty()) << checked;
    EXPECT_THAT(std::string(checked.message()), HasSubstr(message));
  }
}

// ---- The end of a worker that is not needed any more ----

AgentOptions MaxIdle(absl::Duration time) {
  AgentOptions options = LoopOptions();
  options.max_idle = time;
  return options;
}

TEST(AgentState, EndsWhereItHasHadNoTrialForTooLong) {
  const AgentView early{.idle = absl::Seconds(50)};
  const AgentView late{.idle = absl::Minutes(1)};
  const AgentView owing{.idle = absl::Minutes(1), .owes = true};
  const std::string idle = "log no trial for 1m (--max-idle)";
  ExpectLoopRows(
      {
          {"not yet", Serving({.asked = true}), MachineSeen{.may_take = true}, early,
           "serves db, asked", "ask 10s"},
          {"now", Serving({.asked = true}), MachineSeen{.may_take = true}, late, "serves db, asked",
           idle + "; end 0"},
          {"a result is owed", Serving(), MachineSeen{.may_take = true}, owing, "serves db",
           idle + "; work may remain; end 75"},
          {"the GPU does not answer", Serving(), MachineSeen{}, late, "serves db",
           idle + "; work may remain; end 75"},
          {"the server does not answer", Serving({.away = true}), MachineSeen{.may_take = true},
           late, "serves db, away", idle + "; work may remain; end 75"},
      },
      MaxIdle(absl::Minutes(1)));
}

TEST(AgentState, RemembersWhetherTheServerAnswers) {
  ExpectLoopRows({
      {"it does not",
       Serving(),
       CallFailed(Rpc::kAcquireTrial, kAway),
       {},
       "serves db, away",
       "pause (away)"},
      {"it does again", Serving({.away = true}), Answered(), {}, "serves db", ""},
  });
}

TEST(AgentState, TakesNoTrialThatCouldNotStartInTheTimeLeft) {
  const AgentView enough{.left = absl::Seconds(20), .start = absl::Seconds(20)};
  const AgentView too_little{.left = absl::Seconds(19), .start = absl::Seconds(20)};
  ExpectLoopRows({
      {"enough", Serving(), MachineSeen{.may_take = true}, enough, "serves db, asked", "ask 0"},
      {"too little", Serving(), MachineSeen{.may_take = true}, too_little, "serves db",
       "log the time limit is near: no trial could start and save any more; end 75"},
  });
}

TEST(AgentState, GivesATrialBackThatCanNeitherEndNorSaveInTheTimeLeft) {
  const AgentView view{.left = absl::Minutes(20)};
  const auto answer = [](absl::Duration longest, bool saves) {
    TrialAnswer assigned = Assigned();
    assigned.answer.assignment->longest_time = longest;
    assigned.saves = saves;
    return assigned;
  };
  ExpectLoopRows({
      {"it ends in time", Serving(), answer(absl::Minutes(20), false), view, "serves db, #4",
       "run"},
      {"it can save", Serving(), answer(absl::Minutes(21), true), view, "serves db, #4", "run"},
      {"no limit", Serving(), answer(absl::Hours(90), false), {}, "serves db, #4", "run"},
      {"neither", Serving(), answer(absl::Minutes(21), false), view, "serves db, #4",
       "give #4 back PREEMPTED; log trials of study s take up to 21m, 20m are left to this worker, "
       "and its program saves no checkpoints; end 75"},
  });
}

TEST(AgentState, KnowsWhetherAProgramSaves) {
  AgentOptions options = LoopOptions();
  const Hello stops{.capabilities = {"stop"}};
  EXPECT_FALSE(SavesTrials(options, stops)) << "there is no folder";
  options.checkpoints.root = "/checkpoints";
  EXPECT_TRUE(SavesTrials(options, stops));
  EXPECT_FALSE(SavesTrials(options, Hello{}));
  options.command.text = "train.py --lr {lr}";
  EXPECT_FALSE(SavesTrials(options, stops)) << "what runs it speaks for itself";
  options.command.text = "train.py --lr {lr} --resume {checkpoint_dir}";
  EXPECT_TRUE(SavesTrials(options, stops));
}

TEST(AgentState, EndsWhereItIsDrained) {
  AgentOptions options = LoopOptions();
  options.worker = "w";
  const std::string drained = "log drained: w gets no trials until hpo worker resume w; ";
  const TrialAnswer answer = Answered({.draining = true, .drained = true});
  ExpectLoopRows(
      {{"with nothing left", Serving(), answer, {}, "serves db", drained + "end 0"},
       {"with a result that is owed", Serving(), answer, kOwing, "serves db", drained + "end 75"}},
      options);
}

}  // namespace
}  // namespace hpo::agent
