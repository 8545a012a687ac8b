// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/trial_group.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/shared_options.h"
#include "cli/commands/studies/annotate_command.h"
#include "cli/commands/trials/trial_commands.h"
#include "cli/commands/trials/trial_log_command.h"
#include "common/command_line/bounds.h"

namespace hpo::cli {
namespace {

constexpr char kTrialExamples[] = R"(
  hpo trial logs 12                       whole on its worker's machine; else its end
  hpo trial annotate 12 --tag good --set reviewed=true
  hpo trial list --tag good
  hpo trial retry 12 15
  hpo trial retry --failed
  hpo trial list --sort train.lr --where state=completed --where 'train.lr>1e-5'
  hpo trial cancel 12                     remove a queued trial
)";

Action DeclareTrialList(CLI::App& list, std::string& /*study*/) {
  const auto options = std::make_shared<TrialListOptions>();
  const auto descending = std::make_shared<bool>(false);
  list.add_option("--state", options->states,
                  "Only trials in this state: queued, running, completed, pruned, failed or "
                  "cancelled (repeatable)")
      ->type_name("STATE");
  list.add_option("--limit", options->limit, "Number of trials per page, at most 1000")
      ->type_name("N")
      ->check(Between(1, 1000))
      ->capture_default_str();
  list.add_option("--page", options->page, "Number of the page to show")
      ->type_name("N")
      ->check(AtLeast(1))
      ->capture_default_str();
  list.add_flag("--newest-first", options->newest_first, "List the newest trials first");
  CLI::Option* const sort = list.add_option("--sort", options->sort,
                                            "Sort by a parameter, by a metric, or by a column of "
                                            "the page's table, such as value, time (in seconds), "
                                            "started, peak_bytes or worker")
                                ->type_name("NAME")
                                ->excludes("--newest-first");
  list.add_flag("--descending", *descending, "Sort the largest values first")->needs(sort);
  list.add_option("--where", options->where,
                  "Only trials for which NAME=VALUE holds; the operator can also be !=, <, <=, > "
                  "or >=. NAME is one that --sort takes, also state and why (repeatable); times "
                  "are written as 2026-11-29 or 2026-11-29T15:04:05Z")
      ->type_name("CONDITION");
  AddTagFilter(list, options->tags);
  return Plain([options, descending](Session& session) {
    TrialListOptions chosen = *options;
    if (*descending) chosen.sort.insert(0, "-");
    return ListTrials(session, chosen);
  });
}

Action DeclareTrialAnnotate(CLI::App& annotate, std::string& /*study*/) {
  struct Values {
    AnnotateOptions options;
    int64_t number = 0;
  };
  const auto values = std::make_shared<Values>();
  AddTrialNumber(annotate, values->number);
  AddAnnotations(annotate, values->options);
  return Plain([values](Session& session) {
    AnnotateOptions chosen = values->options;
    chosen.trial = TrialNumber{values->number};
    return ChangeAttributes(session, chosen);
  });
}

Action DeclareRetry(CLI::App& retry, std::string& /*study*/) {
  struct Values {
    std::vector<int64_t> numbers;
    bool failed = false;
  };
  const auto values = std::make_shared<Values>();
  retry
      .add_option("numbers", values->numbers, "Number of a trial that failed or ran out of memory")
      ->type_name("N")
      ->check(AtLeast(0));
  retry.add_flag("--failed", values->failed, "Retry every trial that failed or ran out of memory");
  return Plain([values](Session& session) -> absl::Status {
    if (values->numbers.empty() != values->failed) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected the trials' numbers or --failed, got ", values->failed ? "both" : "neither"));
    }
    return RetryTrials(session, values->numbers);
  });
}

Action DeclareLogs(CLI::App& logs, std::string& /*study*/) {
  struct Values {
    int64_t number = 0;
    std::optional<int64_t> attempt;
    std::string state_dir;
  };
  const auto values = std::make_shared<Values>();
  AddTrialNumber(logs, values->number);
  logs.add_option("--attempt", values->attempt, "Number of the attempt [default: the last one]")
      ->type_name("K")
      ->check(AtLeast(1));
  logs.add_option("--state-dir", values->state_dir,
                  "State folder of the worker, if it was started with --state-dir")
      ->type_name("DIR");
  return Plain([values](Session& session) {
    return ShowTrialLog(session, {.number = TrialNumber{values->number},
                                  .attempt = values->attempt,
                                  .state_dir = values->state_dir});
  });
}

// A command on the one trial that its argument names.
Declaration OnTrial(absl::Status (*run)(Session&, TrialNumber)) {
  return [run](CLI::App& command, std::string& /*study*/) {
    const auto number = std::make_shared<int64_t>();
    AddTrialNumber(command, *number);
    return Plain([number, run](Session& session) { return run(session, TrialNumber{*number}); });
  };
}

}  // namespace

Command TrialGroup() {
  using enum Access;
  return {.name = "trial",
          .help = "List, show, stop and retry trials",
          .examples = kTrialExamples,
          .commands = {
              {"list", "List the trials, one per line", kReads, DeclareTrialList},
              {"show", "Show a trial: its parameters, result, attempts and memory", kReads,
               OnTrial(ShowTrial)},
              {"annotate", "Change the note, tags and attributes of a trial", kChanges,
               DeclareTrialAnnotate},
              {"retry", "Queue the configurations of failed trials again, as new trials", kChanges,
               DeclareRetry},
              {"logs", "Print the output of a trial; only its end on other machines", kReads,
               DeclareLogs, Output::kVerbatim},
              {"preempt", "Checkpoint a running trial, free its GPU and requeue the trial",
               kChanges, OnTrial(PreemptTrial)},
              {"stop", "End a running trial; its state becomes CANCELLED", kChanges,
               OnTrial(StopTrial)},
              {"cancel", "Remove a trial from the queue; its state becomes CANCELLED", kChanges,
               OnTrial(CancelTrial)},
          }};
}

}  // namespace hpo::cli
