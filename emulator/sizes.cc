#include "emulator/sizes.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace hpo::emulator {

bool ParseBytes(const std::string& text, size_t& bytes) {
  constexpr std::pair<std::string_view, int> kUnits[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}};
  for (const auto& [unit, shift] : kUnits) {
    if (!text.ends_with(unit)) continue;
    size_t count = 0;
    const char* const end = text.data() + text.size() - unit.size();
    const auto [stop, error] = std::from_chars(text.data(), end, count);
    if (error != std::errc{} || stop != end) return false;
    bytes = count << shift;
    return bytes >> shift == count;
  }
  return false;
}

}  // namespace hpo::emulator
