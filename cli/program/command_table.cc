// Tested by tests/cli/program/program_test.cc.
#include "cli/program/command_table.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands/exchange_groups.h"
#include "cli/commands/single_commands.h"
#include "cli/commands/study_group.h"
#include "cli/commands/trial_group.h"
#include "cli/commands/worker_group.h"
#include "cli/fleet/fleet_group.h"
#include "cli/memory/memory_group.h"
#include "cli/program/completion.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"

namespace hpo::cli {
namespace {

constexpr char kExamples[] = R"(
Examples:
  hpo run study.yaml --trainer "python train.py --lr {train.lr}"   run a study on this machine
  hpo status                              show progress, the best trial and waiting workers
  hpo open criteria                       open the page of a study in a browser
  hpo watch --until-finished              follow a study until it has finished
  hpo trial list --state pruned           list the trials that were pruned
  hpo trial show 12                       show parameters, result, attempts and memory
  hpo best --export ./model               copy the best model, for Hugging Face's transformers
  hpo enqueue train.lr=3e-5 train.batch_size=16   run your own configuration next
  hpo memory estimate model.name=bert-large-uncased train.batch_size=64
  hpo memory fit --model bert-large-uncased --card 8GiB,16GiB,24GiB
  hpo memory dry-run --gpu a100-40gb -- python3 train.py   run a program on an emulated GPU
  hpo study presets memory-safe > my.yaml   write a study file to start from
  hpo study extend criteria --add 50      add 50 trials to the budget
  hpo study pause criteria                start no more trials until hpo study resume
  hpo trial stop 12                       end a running trial
  hpo trial preempt 12                    free a trial's GPU; the trial continues later
  hpo worker list                         list workers, and what they run
  hpo fleet slurm --workers 32 --time 8h --submit   start workers on a cluster
  hpo export mlflow --to http://localhost:5000
  hpo import optuna study.db              import the trials of an Optuna study
  hpo admin backup hpo-backup.db          copy the server's database while it runs
  hpo --db ~/.local/state/hpo/hpo.db status   read a database without a server
  hpo completion bash                     print a script that completes commands in a shell

--server or HPO_SERVER gives the address of hpo-server. The default port is 50051.
--study or HPO_STUDY names a study. It is not needed if the server has only one study.

Exit status:
  0  The command succeeded.
  1  The command failed.
  2  The command line, a study file or a parameter is wrong.
  3  Something was not found, or does not fit in memory.
  4  The command conflicts with the state of the study or of the database.
  5  The server does not answer.
  6  The study has finished without a completed trial.
  7  Too many failed trials have ended the study.
  8  "hpo run" has ended because no trial can run. Its last lines say what to change.
)";

constexpr char kCompletionExamples[] = R"(
  hpo completion zsh > _hpo               write a script for a folder of $fpath
  hpo completion fish > hpo.fish          write a script for ~/.config/fish/completions
)";

Action DeclareCompletion(CLI::App& completion, std::string& /*study*/) {
  const auto shell = std::make_shared<std::string>();
  completion.add_option("shell", *shell, "Which shell")
      ->type_name("SHELL")
      ->required()
      ->check(OneOf({"bash", "zsh", "fish"}));
  return Plain([shell](Session& session) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const std::string script, CompletionScript(*shell));
    session.out << script;
    return absl::OkStatus();
  });
}

std::vector<Command> AllCommands() {
  return {RunCommand(),
          StatusCommand(),
          ConnectCommand(),
          OpenCommand(),
          DoctorCommand(),
          StudyGroup(),
          TrialGroup(),
          WorkerGroup(),
          BestCommand(),
          EnqueueCommand(),
          WatchCommand(),
          FleetGroup(),
          ExportGroup(),
          ImportGroup(),
          AdminGroup(),
          {.name = "completion",
           .help = "Print a script that completes command lines of hpo in a shell",
           .declare = DeclareCompletion,
           .output = Output::kVerbatim,
           .examples = kCompletionExamples},
          MemoryGroup()};
}

// "study list"
std::string WordsOf(const CLI::App& command) {
  std::string words = command.get_name();
  for (const CLI::App* above = command.get_parent(); above->get_parent() != nullptr;
       above = above->get_parent()) {
    words = absl::StrCat(above->get_name(), " ", words);
  }
  return words;
}

// Those lines of `examples` that begin with `command`, such as "hpo trial list".
std::string ExamplesOf(const std::string& command, const std::string& examples) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(examples, '\n')) {
    const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    const bool is_own = words == command || absl::StartsWith(words, absl::StrCat(command, " "));
    if (is_own) absl::StrAppend(&text, line, "\n");
  }
  return text.empty() ? "" : absl::StrCat("\nExamples:\n", text);
}

// `examples` are those of the commands above.
void Declare(CLI::App& parent, const Command& row, const std::string& examples, std::string& study,
             ChosenCommand& chosen) {
  CLI::App& command = *parent.add_subcommand(row.name, row.help);
  command.fallthrough();
  const std::string words = WordsOf(command);
  const std::string all_examples = absl::StrCat(examples, row.examples);
  command.footer(ExamplesOf(absl::StrCat("hpo ", words), all_examples));
  if (!row.declare) {
    command.require_subcommand(1);
    for (const Command& below : row.commands) Declare(command, below, all_examples, study, chosen);
    return;
  }
  command.callback([&chosen, own = ChosenCommand{row.declare(command, study), words, row.access,
                                                 row.output}] { chosen = own; });
}

}  // namespace

void DeclareCommands(CLI::App& app, std::string& study, ChosenCommand& chosen) {
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kExamples);
  for (const Command& row : AllCommands()) Declare(app, row, kExamples, study, chosen);
}

}  // namespace hpo::cli
