#include "cli/render/memory_text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client/terminal.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"

namespace hpo::cli {
namespace {

// The estimate by class, then its sums.
std::vector<std::pair<const char*, Bytes>> MemoryLines(const memory::MemoryAnswer& verdict) {
  const memory::MemoryEstimate& estimate = verdict.estimate;
  return {{"weights", estimate.weights},
          {"gradients", estimate.gradients},
          {"optimizer", estimate.optimizer},
          {"activations", estimate.activations},
          {"head", estimate.head},
          {"workspaces", estimate.workspaces},
          {"base", estimate.base},
          {"live peak", estimate.live_peak},
          {"reserved peak", estimate.reserved_peak},
          {"needed limit", estimate.needed_limit},
          {"usable", verdict.usable}};
}

// By what trials used: no class of it is known.
bool IsLearned(const memory::MemoryAnswer& verdict) { return verdict.estimate.weights == Bytes{}; }

std::string VerdictText(const memory::MemoryAnswer& verdict) {
  const std::string text = IsLearned(verdict)
                               ? ""
                               : absl::StrCat(verdict.fits ? "fits" : "does not fit", ", peak in ",
                                              Printable(verdict.estimate.peak_phase), ", batch ",
                                              DescribePlan(verdict.plan), "\n");
  if (verdict.explanation.empty()) return text;
  return absl::StrCat(text, Printable(verdict.explanation), "\n");
}

}  // namespace

std::string MemoryText(const memory::MemoryAnswer& verdict, int width) {
  if (IsLearned(verdict)) return VerdictText(verdict);
  Table table({{"CLASS"}, {"BYTES", Align::kRight}});
  for (const auto& [name, size] : MemoryLines(verdict)) table.AddRow({name, FormatBytes(size)});
  return absl::StrCat(table.Render(width), "\n", VerdictText(verdict));
}

std::string CompareText(const memory::MemoryAnswer& before, const memory::MemoryAnswer& after,
                        int width) {
  Table table(
      {{"CLASS"}, {"BEFORE", Align::kRight}, {"AFTER", Align::kRight}, {"CHANGE", Align::kRight}});
  const auto first = MemoryLines(before);
  const auto second = MemoryLines(after);
  for (size_t i = 0; i < first.size(); ++i) {
    const Bytes change = second[i].second - first[i].second;
    table.AddRow({first[i].first, FormatBytes(first[i].second), FormatBytes(second[i].second),
                  ChangeText(change)});
  }
  return absl::StrCat(table.Render(width), "\nbefore: ", VerdictText(before),
                      "after: ", VerdictText(after));
}

}  // namespace hpo::cli
