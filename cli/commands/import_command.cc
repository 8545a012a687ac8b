#include "cli/commands/import_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_study.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::ordered_json;

std::string Summary(const ImportResult& result, const OptunaStudy& read, bool counted) {
  std::string text = absl::StrCat(result.num_added, " trials of ", read.name, " imported into ",
                                  result.study, counted ? "" : ", outside its budget");
  if (result.num_known > 0) absl::StrAppend(&text, "; ", result.num_known, " were there already");
  if (read.num_open > 0) absl::StrAppend(&text, "; ", read.num_open, " have not ended");
  if (read.num_incomplete > 0) {
    absl::StrAppend(&text, "; ", read.num_incomplete, " failed before they had all parameters");
  }
  return text;
}

}  // namespace

absl::Status ImportOptuna(Session& session, const ImportOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.GetStudy(session.study));
  HPO_ASSIGN_OR_RETURN(OptunaStudy read, ReadOptunaStudy(options.path, options.study, study.spec));
  const absl::StatusOr<ImportResult> result =
      session.client.ImportTrials({.study = study.spec.name,
                                   .count_against_budget = options.count_against_budget,
                                   .trials = std::move(read.trials)});
  if (!result.ok()) return Annotate(result.status(), options.path);
  if (session.json) {
    PrintJson(Json{{"study", result->study},
                   {"imported_from", options.path},
                   {"added", result->num_added},
                   {"known", result->num_known},
                   {"open", read.num_open},
                   {"incomplete", read.num_incomplete}},
              session.out);
  } else {
    session.out << Summary(*result, read, options.count_against_budget) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo
