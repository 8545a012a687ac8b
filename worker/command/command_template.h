// A shell command with placeholders for a trial's values: "python train.py --lr {train.lr}".
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/protocol/trainer_protocol.h"
#include "worker/command/shell_quotes.h"

namespace hpo::command {

// What is a placeholder: common/space/placeholders.h.
class CommandTemplate {
 public:
  explicit CommandTemplate(absl::string_view text);

  // Its text with a zero byte for each placeholder, so that what is around it is no word alone.
  std::string PlainText() const;

  bool HasPlaces() const { return !names_.empty(); }
  // `name` as it stands between the braces.
  bool Has(absl::string_view name) const;

  // Whether the shell takes each value as it is.
  //   InvalidArgument  a placeholder stands where a value could be run as a command (backticks,
  //                    here-documents); names it
  absl::Status CheckForShell() const;

  // The text with values for its placeholders. For /bin/sh each is one word, within quotes of the
  // text or without, and null is the word null. {flag:NAME} is the parameter as an option
  // (OptionText), and {args} are all parameters so, but for those that have an option of their own
  // in the text: {flag:NAME}, "--NAME={NAME}" or "--NAME {NAME}". {overrides} are all parameters as
  // Hydra takes them (OverrideText).
  //   InvalidArgument  a placeholder that neither `params` nor `values` has a value for
  absl::StatusOr<std::string> Fill(const ParamMap& params,
                                   const std::map<std::string, std::string>& values,
                                   bool for_shell) const;

 private:
  struct Piece {
    std::string text;
    bool is_place = false;
    ShellQuotes quotes = ShellQuotes::kNone;  // around a place
    std::string unsafe = {};                  // ShellQuoteReader's, of a place
  };
  // What a place stands for; `is_words`: words of the shell's, quoted where they have to be.
  struct Filling {
    std::string text;
    bool is_words = false;
  };
  absl::StatusOr<Filling> FillingOf(const std::string& place, const ParamMap& params,
                                    const std::map<std::string, std::string>& values) const;
  static std::string Quoted(const Filling& filling, ShellQuotes quotes);

  std::vector<Piece> pieces_;
  std::vector<std::string> names_;
  std::set<std::string> own_options_;  // parameters that {args} leaves out
};

// Words as a command for /bin/sh: each stays one word, whatever is in it, with its placeholders.
// Those of a text (TextOf in common/command_line/shell_word.h) are that text.
std::string ShellCommand(const std::vector<std::string>& words);

// The plan of each of `gpus` ranks, which share the effective batch: no micro-batch is larger than
// a rank's share.
MemoryPlan PlanOfRank(MemoryPlan plan, int64_t gpus);

// The values of TrialValueNames. `plan` is one rank's; {accumulation} is so that all ranks together
// take the effective batch. config, config:yaml and config:json are files in the output
// folder, which the caller writes (ConfigText).
std::map<std::string, std::string> JobValues(const TrainerJob& job, const MemoryPlan& plan);

}  // namespace hpo::command
