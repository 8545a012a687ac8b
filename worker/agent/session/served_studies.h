// Which studies a worker serves (`hpo-worker --study`).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "spdlog/spdlog.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo {

// Leaves those of `studies` that are named in `serves`; nullopt: all. Where nothing is named yet
// and there is one study, that one is named: a user's own trainer is written for one study, and may
// misread another one's parameters.
inline void KeepThoseServed(std::optional<std::vector<std::string>>& serves,
                            std::vector<StudyData>& studies) {
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

}  // namespace hpo
