#include "cli/memory/server_verdict.h"

#include "cli/render/json.h"
#include "cli/render/memory_text.h"
#include "cli/render/param_words.h"
#include "common/base/status.h"
#include "memory/offline/offline_card.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

absl::StatusOr<MemoryQuery> QueryOf(const StudyStatus& study, const MemoryOptions& options) {
  MemoryQuery query{.worker = options.worker};
  HPO_ASSIGN_OR_RETURN(query.params, ParseParamWords(options.params, study.spec.space));
  if (!options.limit.empty()) {
    HPO_ASSIGN_OR_RETURN(query.limit, memory::ParseSizeOption("--limit", options.limit));
  }
  return query;
}

}  // namespace

absl::StatusOr<bool> EstimateMemory(Session& session, const MemoryOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  HPO_ASSIGN_OR_RETURN(const MemoryQuery query, QueryOf(study, options));
  HPO_ASSIGN_OR_RETURN(const memory::MemoryAnswer verdict,
                       session.client.trials().EstimateMemory(study.spec.name, query));
  if (session.json) {
    PrintJson(MemoryJson(verdict), session.out);
  } else {
    session.out << MemoryText(verdict, session.terminal.columns);
  }
  return verdict.fits;
}

absl::StatusOr<bool> CompareMemory(Session& session, const MemoryOptions& options,
                                   const std::vector<std::string>& compare) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  HPO_ASSIGN_OR_RETURN(MemoryQuery query, QueryOf(study, options));
  HPO_ASSIGN_OR_RETURN(const ParamMap changed, ParseParamWords(compare, study.spec.space));
  TrialClient& trials = session.client.trials();
  HPO_ASSIGN_OR_RETURN(const memory::MemoryAnswer before,
                       trials.EstimateMemory(study.spec.name, query));
  for (const auto& [name, value] : changed) query.params[name] = value;
  HPO_ASSIGN_OR_RETURN(const memory::MemoryAnswer after,
                       trials.EstimateMemory(study.spec.name, query));
  if (session.json) {
    const nlohmann::ordered_json json = {{"before", MemoryJson(before)},
                                         {"after", MemoryJson(after)}};
    PrintJson(json, session.out);
  } else {
    session.out << CompareText(before, after, session.terminal.columns);
  }
  return after.fits;
}

}  // namespace hpo::cli
