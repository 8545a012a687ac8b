// Which studies a worker serves (`hpo-worker --study`).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/models/task_kind.h"
#include "spdlog/spdlog.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

// Whether hpo-trainer can do nothing for the study: it names a program, or a task of the user's
// own.
inline bool NeedsProgram(const StudyData& study) {
  return !study.command.empty() || !ParseTaskKind(study.task).has_value();
}

// Leaves those of `studies` that still run and are named in `serves`; nullopt: all. Where nothing
// is named yet and there is one study, that one is named: a user's own trainer is written for one
// study, and may misread another one's parameters.
inline void KeepThoseServed(std::optional<std::vector<std::string>>& serves,
                            std::vector<StudyData>& studies) {
  std::erase_if(studies, [](const StudyData& study) { return study.end.has_value(); });
  if (!serves) return;
  if (serves->empty() && studies.size() == 1) {
    serves->push_back(studies.front().study);
    spdlog::info("serves study {}, the only one on the server; --study NAME chooses another",
                 serves->front());
  }
  std::erase_if(studies, [&serves](const StudyData& data) {
    return std::find(serves->begin(), serves->end(), data.study) == serves->end();
  });
}

}  // namespace hpo::agent
