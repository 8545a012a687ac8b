#include "emulator/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

namespace hpo::emulator {
namespace {

constexpr int kMaxCards = 8;

// Written by make_libraries.py: every call that is written here or does nothing.
constexpr std::string_view kKnownCalls[] = {
#include "known_calls.inc"
};

using Error = std::optional<std::string>;

std::string Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

template <typename Integer>
bool ParseInteger(const std::string& text, Integer& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

std::string Capability(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

Error CheckKernels(const Card& card) {
  if (TorchCapabilities().empty() || KernelCapability(card) > 0) return std::nullopt;
  std::string known;
  for (const int capability : TorchCapabilities()) known += " " + Capability(capability);
  return std::string(card.name) + " has compute capability " + Capability(card.capability) +
         "; torch's build has kernels for" + known + " only";
}

Error ReadCards(Settings& settings) {
  const std::string names = Variable("HPO_EMULATED_CARD");
  for (const std::string& name : Split(names.empty() ? "a100" : names, '+')) {
    const Card* const card = FindCard(name);
    if (card == nullptr) return "no card '" + name + "'; there are: " + CardNames();
    if (Error error = CheckKernels(*card)) return error;
    settings.cards.push_back(card);
  }
  const std::string count = Variable("HPO_EMULATED_CARDS");
  if (!count.empty()) {
    int number = 0;
    if (!ParseInteger(count, number) || number < 0 || number > kMaxCards) {
      return "cards: expected a number from 0 to " + std::to_string(kMaxCards) + ", got '" + count +
             "'";
    }
    if (settings.cards.size() > 1) return "cards: give either several cards or a number, not both";
    settings.cards.resize(static_cast<size_t>(number), settings.cards.front());
  }
  if (settings.cards.size() > kMaxCards) return "at most " + std::to_string(kMaxCards) + " cards";
  return std::nullopt;
}

Error ReadBytes(const char* variable, const char* option, size_t& bytes) {
  const std::string text = Variable(variable);
  if (text.empty() || ParseBytes(text, bytes)) return std::nullopt;
  return std::string(option) + ": expected a size with its unit, as 300MiB or 12GiB, got '" + text +
         "'";
}

Error ReadOthers(Settings& settings) {
  const std::string text = Variable("HPO_EMULATED_OTHERS");
  if (text.empty()) return std::nullopt;
  const size_t times = text.find('x');
  settings.num_others = 1;
  const bool counted =
      times == std::string::npos || (ParseInteger(text.substr(0, times), settings.num_others) &&
                                     settings.num_others >= 0 && settings.num_others <= 1000);
  const std::string size = times == std::string::npos ? text : text.substr(times + 1);
  if (counted && ParseBytes(size, settings.others)) return std::nullopt;
  return "others: expected a size as 4GiB, or that of each of several as 3x512MiB, got '" + text +
         "'";
}

Error ReadAddresses(Settings& settings) {
  const std::string text = Variable("HPO_EMULATED_ADDRESSES");
  if (text == "reuse") {
    settings.addresses = AddressOrder::kReuse;
  } else if (text == "shuffled") {
    settings.addresses = AddressOrder::kShuffled;
  } else if (!text.empty() && text != "rising") {
    return "addresses: expected rising, reuse or shuffled, got '" + text + "'";
  }
  return std::nullopt;
}

Error ReadFault(const std::string& text, Fault& fault) {
  const std::vector<std::string> parts = Split(text, ':');
  const bool spanned = parts.size() == 4 && (parts[3] == "sticky" || parts[3] == "always");
  if ((parts.size() != 3 && !spanned) || !ParseInteger(parts[1], fault.nth) || fault.nth < 1 ||
      !ParseInteger(parts[2], fault.code) || fault.code == 0) {
    return "faults: expected CALL:N:CODE, CALL:N:CODE:sticky or CALL:N:CODE:always, got '" + text +
           "'";
  }
  fault.call = parts[0];
  if (spanned) fault.span = parts[3] == "sticky" ? FaultSpan::kSticky : FaultSpan::kAlways;
  if (!IsKnownCall(fault.call)) return "faults: no emulated call '" + fault.call + "'";
  return std::nullopt;
}

Error ReadFaults(Settings& settings) {
  const std::string text = Variable("HPO_EMULATED_FAULTS");
  if (text.empty()) return std::nullopt;
  for (const std::string& part : Split(text, ',')) {
    if (Error error = ReadFault(part, settings.faults.emplace_back())) return error;
  }
  return std::nullopt;
}

Error ReadWait(Settings& settings) {
  const std::string text = Variable("HPO_EMULATED_WAIT");
  const bool is_good =
      text.empty() || (ParseInteger(text, settings.wait_seconds) && settings.wait_seconds > 0);
  if (is_good) return std::nullopt;
  return "wait: expected a number of seconds, got '" + text + "'";
}

}  // namespace

std::variant<Settings, std::string> ReadSettings() {
  Settings settings;
  settings.state_file = Variable("HPO_EMULATED_STATE");
  settings.log_file = Variable("HPO_EMULATED_LOG");
  if (Error error = ReadCards(settings)) return *error;
  if (Error error = ReadBytes("HPO_EMULATED_MEMORY", "memory", settings.memory)) return *error;
  if (Error error = ReadBytes("HPO_EMULATED_CONTEXT", "context", settings.context)) return *error;
  if (Error error = ReadOthers(settings)) return *error;
  if (Error error = ReadAddresses(settings)) return *error;
  if (Error error = ReadFaults(settings)) return *error;
  if (Error error = ReadWait(settings)) return *error;
  return settings;
}

size_t TotalBytes(const Settings& settings, size_t index) {
  return settings.memory > 0 ? settings.memory : settings.cards[index]->cuda_bytes;
}

size_t DriverBytes(const Settings& settings, size_t index) {
  const Card& card = *settings.cards[index];
  return (card.nvml_mib << 20) - card.cuda_bytes;
}

bool ParseBytes(const std::string& text, size_t& bytes) {
  constexpr std::pair<std::string_view, int> kUnits[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}};
  for (const auto& [unit, shift] : kUnits) {
    if (!text.ends_with(unit)) continue;
    size_t count = 0;
    if (!ParseInteger(text.substr(0, text.size() - unit.size()), count)) return false;
    bytes = count << shift;
    return bytes >> shift == count;
  }
  return false;
}

bool IsKnownCall(const std::string& call) {
  return std::find(std::begin(kKnownCalls), std::end(kKnownCalls), call) != std::end(kKnownCalls);
}

}  // namespace hpo::emulator
