#include "cli/render/space_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {

std::string Percent(int64_t part, int64_t whole) {
  return absl::StrFormat(
      "%.1f %%", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string CutText(const std::optional<memory::SpaceCut>& cut) {
  if (!cut.has_value()) return "-";
  return absl::StrCat(cut->description, ": ", cut->misfits_removed, " misfits less, ",
                      cut->fits_lost, " that fit lost");
}

nlohmann::ordered_json CutJson(const std::optional<memory::SpaceCut>& cut) {
  if (!cut.has_value()) return nullptr;
  return {{"parameter", cut->parameter},
          {"cut", cut->description},
          {"misfits_removed", cut->misfits_removed},
          {"misfits_left", cut->misfits_left},
          {"fits_lost", cut->fits_lost}};
}

}  // namespace hpo::cli
