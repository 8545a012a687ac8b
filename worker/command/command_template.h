// A shell command with placeholders for a trial's values: "python train.py --lr {train.lr}".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/protocol/trainer_protocol.h"

namespace hpo {

// A placeholder is a name in braces: a letter, then letters, digits, "_", "-" and ".". Braces
// around anything else are the shell's, as are those after a "$"; "{{name}}" stands for "{name}".
class CommandTemplate {
 public:
  explicit CommandTemplate(std::string text);

  bool HasPlaces() const { return !names_.empty(); }
  bool Has(absl::string_view name) const;

  // The text with values for its placeholders: for /bin/sh each is one word, quoted where it has to
  // be, and null is the word null; {args} is "--NAME=VALUE" for every parameter that is not null.
  //   InvalidArgument  a placeholder that neither `params` nor `values` has a value for
  absl::StatusOr<std::string> Fill(const ParamMap& params,
                                   const std::map<std::string, std::string>& values,
                                   bool for_shell) const;

 private:
  struct Piece {
    std::string text;
    bool is_place = false;
  };
  std::vector<Piece> pieces_;
  std::vector<std::string> names_;
};

// Words as a command for /bin/sh: each stays one word, whatever is in it, with its placeholders.
std::string ShellCommand(const std::vector<std::string>& words);

// What a placeholder may name besides the trial's parameters, which come first: trial, attempt,
// study, seed, device, epochs, train_path, validation_path, model_name, model_path, output_dir,
// checkpoint_dir, limit_bytes, micro_batch, accumulation, effective_batch.
std::map<std::string, std::string> JobValues(const TrainerJob& job, const MemoryPlan& plan);

}  // namespace hpo
