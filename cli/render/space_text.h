// Which part of a search space fits, for people and as JSON. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "memory/plan/space_cut.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

// "71.4 %"; of nothing, 0.
std::string Percent(int64_t part, int64_t whole);

// "batch <= 64: 10 misfits less, 2 that fit lost"; "-" for none.
std::string CutText(const std::optional<memory::SpaceCut>& cut);
nlohmann::ordered_json CutJson(const std::optional<memory::SpaceCut>& cut);

}  // namespace hpo::cli
