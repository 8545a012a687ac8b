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
  if (read.num_unfit > 0) {
    absl::StrAppend(&text, "; ", read.num_unfit,
                    " attributes are left out: not JSON, too long or too many");
  }
  return text;
}

// What is noted of the study already stays.
absl::Status AddAttributes(Session& session, const StudyStatus& study, Attributes attributes) {
  std::erase_if(attributes, [&study](const auto& entry) {
    return entry.first != kTagsKey && study.attributes.contains(entry.first);
  });
  if (attributes.empty()) return absl::OkStatus();
  return session.client.ChangeAttributes(study.spec.name, std::nullopt, Adding(attributes))
      .status();
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
  HPO_RETURN_IF_ERROR(Annotate(AddAttributes(session, study, read.attributes), options.path));
  if (session.json) {
    PrintJson(Json{{"study", result->study},
                   {"imported_from", options.path},
                   {"added", result->num_added},
                   {"known", result->num_known},
                   {"open", read.num_open},
                   {"incomplete", read.num_incomplete},
                   {"attributes_left_out", read.num_unfit}},
              session.out);
  } else {
    session.out << Summary(*result, read, options.count_against_budget) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo
