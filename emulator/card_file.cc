#include "emulator/card_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "emulator/sizes.h"

namespace hpo::emulator {
namespace {

using Error = std::optional<std::string>;

constexpr int kDefaultL2Kib = 4096;
// Nothing depends on these; a program may divide by them.
constexpr int kDefaultClockMhz = 1000;
constexpr int kDefaultBusBits = 256;
constexpr char kKeys[] =
    "name, product, capability, multiprocessors, memory, nvidia_smi, l2, clock, memory_clock, "
    "memory_bus";

std::string Trim(const std::string& text) {
  constexpr char kBlanks[] = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

Error SetNumber(const std::string& text, int& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc{} && stop == end && number > 0) return std::nullopt;
  return "expected a whole number above 0, got '" + text + "'";
}

Error SetSize(const std::string& text, size_t& bytes) {
  if (ParseBytes(text, bytes) && bytes > 0) return std::nullopt;
  return "expected a size with its unit, as 24247MiB or 25438126080B, got '" + text + "'";
}

Error SetCapability(const std::string& text, Card& card) {
  const size_t dot = text.find('.');
  int major = 0;
  int minor = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool read = dot != std::string::npos && dot + 2 == text.size() && digit(text.back()) &&
                    !SetNumber(text.substr(0, dot), major);
  if (read) minor = text.back() - '0';
  card.capability = 10 * major + minor;
  if (read && SetLimits(card)) return std::nullopt;
  return "expected a compute capability from 6.0 to 12.0, as 8.6, got '" + text + "'";
}

Error Set(const std::string& key, const std::string& value, Card& card) {
  size_t bytes = 0;
  if (key == "product") {
    card.product = value;
    return std::nullopt;
  }
  if (key == "capability") return SetCapability(value, card);
  if (key == "multiprocessors") return SetNumber(value, card.num_multiprocessors);
  if (key == "memory") return SetSize(value, card.cuda_bytes);
  if (key == "clock") return SetNumber(value, card.clock_mhz);
  if (key == "memory_clock") return SetNumber(value, card.memory_clock_mhz);
  if (key == "memory_bus") return SetNumber(value, card.memory_bus_bits);
  if (key != "nvidia_smi" && key != "l2") {
    return std::string("there is no such key; there are: ") + kKeys;
  }
  if (Error error = SetSize(value, bytes)) return error;
  if (key == "nvidia_smi") card.nvml_mib = bytes >> 20;
  if (key == "l2") card.l2_kib = static_cast<int>(bytes >> 10);
  return std::nullopt;
}

// Says what a GPU lacks, and sets what may be left out.
Error Complete(Card& card) {
  const auto lacks = [&card](const char* key, const char* example) {
    return "GPU '" + card.name + "' has no " + key + "; expected " + key + " = " + example;
  };
  if (card.capability == 0) return lacks("capability", "8.6");
  if (card.num_multiprocessors == 0) return lacks("multiprocessors", "82");
  if (card.cuda_bytes == 0) return lacks("memory", "24247MiB");
  if (card.product.empty()) card.product = card.name;
  if (card.l2_kib == 0) card.l2_kib = kDefaultL2Kib;
  if (card.clock_mhz == 0) card.clock_mhz = kDefaultClockMhz;
  if (card.memory_clock_mhz == 0) card.memory_clock_mhz = kDefaultClockMhz;
  if (card.memory_bus_bits == 0) card.memory_bus_bits = kDefaultBusBits;
  constexpr size_t kMiB = size_t{1} << 20;
  if (card.nvml_mib == 0) card.nvml_mib = (card.cuda_bytes + kMiB - 1) / kMiB;
  if (card.nvml_mib * kMiB < card.cuda_bytes) {
    return "GPU '" + card.name + "': nvidia_smi is less than memory, of which it counts all";
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::vector<Card>, std::string> ReadCardFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return path + ": cannot be read: " + std::strerror(errno);
  std::vector<Card> cards;
  std::string line;
  int number = 0;
  int start = 0;  // line of the last GPU's name
  const auto at = [&path](int line_number, const std::string& complaint) {
    return path + ":" + std::to_string(line_number) + ": " + complaint;
  };
  while (std::getline(file, line)) {
    ++number;
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos) return at(number, "expected KEY = VALUE, got '" + line + "'");
    const std::string key = Trim(line.substr(0, equals));
    const std::string value = Trim(line.substr(equals + 1));
    if (value.empty()) return at(number, key + ": expected a value, got none");
    if (key == "name") {
      if (!cards.empty()) {
        if (Error error = Complete(cards.back())) return at(start, *error);
      }
      cards.emplace_back().name = value;
      start = number;
      continue;
    }
    if (cards.empty()) return at(number, key + ": expected name = ... first, which begins a GPU");
    if (Error error = Set(key, value, cards.back())) return at(number, key + ": " + *error);
  }
  if (cards.empty()) return path + ": no GPU; expected name = ..., which begins one";
  if (Error error = Complete(cards.back())) return at(start, *error);
  return cards;
}

}  // namespace hpo::emulator
