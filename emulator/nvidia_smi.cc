// A stand-in for nvidia-smi over the emulated cards: of it, what scripts ask for.
//   nvidia-smi --query-gpu=FIELD[,FIELD...] --format=csv,noheader[,nounits]
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/machine.h"

namespace {

using hpo::emulator::Machine;

constexpr std::string_view kQuery = "--query-gpu=";

std::string MiB(size_t bytes) { return std::to_string(bytes >> 20); }

std::optional<std::string> Field(std::string_view name, int card) {
  Machine& machine = Machine::Get();
  const auto& settings = machine.settings();
  const auto index = static_cast<size_t>(card);
  const size_t usable = TotalBytes(settings, index);
  const size_t driver = DriverBytes(settings, index);
  const size_t others = settings.others * static_cast<size_t>(settings.num_others);
  const size_t used = std::min(usable, others + machine.state().Used(card));
  if (name == "count") return std::to_string(settings.cards.size());
  if (name == "index") return std::to_string(card);
  if (name == "name") return ShownName(settings.cards[index]);
  if (name == "uuid") return ShownUuid(settings, card);
  if (name == "driver_version") return hpo::emulator::kDriverVersion;
  if (name == "memory.total") return MiB(usable + driver);
  if (name == "memory.reserved") return MiB(driver);
  if (name == "memory.used") return MiB(used);
  if (name == "memory.free") return MiB(usable - used);
  return std::nullopt;
}

// A line of the fields in `names`, which commas separate.
std::string Row(std::string_view names, int card, bool has_units) {
  std::string row;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const std::optional<std::string> value = Field(name, card);
    if (!value.has_value()) {
      hpo::emulator::EndWith("nvidia-smi: no field '" + std::string(name) + "'");
    }
    row += (row.empty() ? "" : ", ") + *value;
    if (has_units && name.starts_with("memory.")) row += " MiB";
  }
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view query = argc == 3 ? argv[1] : "";
  const std::string_view format = argc == 3 ? argv[2] : "";
  const bool has_units = format == "--format=csv,noheader";
  if (!query.starts_with(kQuery) || (!has_units && format != "--format=csv,noheader,nounits")) {
    hpo::emulator::EndWith(
        "nvidia-smi: expected --query-gpu=FIELDS --format=csv,noheader[,nounits]");
  }
  const int num_cards = static_cast<int>(Machine::Get().settings().cards.size());
  if (num_cards == 0) hpo::emulator::EndWith("nvidia-smi: the machine has no card");
  for (int card = 0; card < num_cards; ++card) {
    std::printf("%s\n", Row(query.substr(kQuery.size()), card, has_units).c_str());
  }
  return 0;
}
