#include "emulator/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>

#include "emulator/card_file.h"
#include "emulator/sizes.h"

namespace hpo::emulator {
namespace {

constexpr int kMaxCards = 8;
constexpr int kMaxMig = 7;  // of one GPU

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
  return card.name + " has compute capability " + Capability(card.capability) +
         "; torch's build has kernels for" + known + " only";
}

// A GPU by its name, or NAME:SIZE: that GPU with another total. The driver's share stays as it is.
Error ReadCard(const std::vector<Card>& known, const std::string& text, Card& card) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const Card* const found = FindCard(known, name);
  if (found == nullptr) {
    return "no GPU '" + name + "'; nearest: " + NearestNames(known, name) +
           "; emulated_card --list lists all";
  }
  card = *found;
  if (Error error = CheckKernels(card)) return error;
  if (colon == std::string::npos) return std::nullopt;
  const size_t driver_bytes = (card.nvml_mib << 20) - card.cuda_bytes;
  const std::string size = text.substr(colon + 1);
  if (!ParseBytes(size, card.cuda_bytes) || card.cuda_bytes == 0) {
    return "GPU '" + text + "': expected NAME:SIZE with the size's unit, as " + card.name +
           ":12GiB";
  }
  card.nvml_mib = (card.cuda_bytes + driver_bytes) >> 20;
  return std::nullopt;
}

Error ReadCards(Settings& settings) {
  const std::variant<std::vector<Card>, std::string> known = KnownCards();
  if (const auto* const complaint = std::get_if<std::string>(&known)) return *complaint;
  const std::string names = Variable("HPO_EMULATED_CARD");
  for (const std::string& name : Split(names.empty() ? "a100" : names, '+')) {
    Card& card = settings.cards.emplace_back();
    if (Error error = ReadCard(std::get<0>(known), name, card)) return error;
  }
  const std::string count = Variable("HPO_EMULATED_CARDS");
  if (!count.empty()) {
    int number = 0;
    if (!ParseInteger(count, number) || number < 0 || number > kMaxCards) {
      return "cards: expected a number from 0 to " + std::to_string(kMaxCards) + ", got '" + count +
             "'";
    }
    if (settings.cards.size() > 1) return "cards: give either several cards or a number, not both";
    const Card first = settings.cards.front();
    settings.cards.assign(static_cast<size_t>(number), first);
  }
  if (settings.cards.size() > kMaxCards) return "at most " + std::to_string(kMaxCards) + " cards";
  return std::nullopt;
}

// Each card gives way to its MIG devices, which share its memory and multiprocessors.
Error ReadMig(Settings& settings) {
  const std::string text = Variable("HPO_EMULATED_MIG");
  if (text.empty()) return std::nullopt;
  if (!ParseInteger(text, settings.mig) || settings.mig < 0 || settings.mig > kMaxMig) {
    return "mig: expected a number from 0 to " + std::to_string(kMaxMig) + ", got '" + text + "'";
  }
  if (settings.mig == 0) return std::nullopt;
  std::vector<Card> devices;
  for (Card card : settings.cards) {
    const auto share = static_cast<size_t>(settings.mig);
    const size_t driver_mib = card.nvml_mib - (card.cuda_bytes >> 20);
    card.cuda_bytes = (card.cuda_bytes / share) >> 20 << 20;
    card.nvml_mib = (card.cuda_bytes >> 20) + driver_mib / share;
    card.num_multiprocessors /= settings.mig;
    card.product += " MIG 1 of " + text;
    devices.insert(devices.end(), share, card);
  }
  settings.cards = std::move(devices);
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

Error ReadVersions(Versions& versions) {
  const std::string text = Variable("HPO_EMULATED_VERSIONS");
  if (text.empty()) return std::nullopt;
  const std::map<std::string_view, int64_t*> numbers = {
      {"cuda", &versions.cuda}, {"cudnn", &versions.cudnn}, {"nccl", &versions.nccl}};
  for (const std::string& part : Split(text, ',')) {
    const std::vector<std::string> words = Split(part, '=');
    const auto number = numbers.find(words[0]);
    if (words.size() != 2 || number == numbers.end() || !ParseInteger(words[1], *number->second)) {
      return "versions: expected cuda=NUMBER, cudnn=NUMBER or nccl=NUMBER, got '" + part + "'";
    }
  }
  return std::nullopt;
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

std::variant<std::vector<Card>, std::string> KnownCards() {
  const std::string path = Variable("HPO_EMULATED_GPUS");
  if (path.empty()) return Cards();
  auto known = ReadCardFile(path);
  if (auto* const cards = std::get_if<std::vector<Card>>(&known)) {
    cards->insert(cards->end(), Cards().begin(), Cards().end());
  }
  return known;
}

std::variant<Settings, std::string> ReadSettings() {
  Settings settings;
  settings.state_file = Variable("HPO_EMULATED_STATE");
  settings.log_file = Variable("HPO_EMULATED_LOG");
  if (Error error = ReadCards(settings)) return *error;
  if (Error error = ReadMig(settings)) return *error;
  if (Error error = ReadBytes("HPO_EMULATED_MEMORY", "memory", settings.memory)) return *error;
  if (Error error = ReadBytes("HPO_EMULATED_CONTEXT", "context", settings.context)) return *error;
  if (Error error = ReadOthers(settings)) return *error;
  if (Error error = ReadVersions(settings.versions)) return *error;
  if (Error error = ReadAddresses(settings)) return *error;
  if (Error error = ReadFaults(settings)) return *error;
  if (Error error = ReadWait(settings)) return *error;
  return settings;
}

size_t TotalBytes(const Settings& settings, size_t index) {
  return settings.memory > 0 ? settings.memory : settings.cards[index].cuda_bytes;
}

size_t DriverBytes(const Settings& settings, size_t index) {
  const Card& card = settings.cards[index];
  return (card.nvml_mib << 20) - card.cuda_bytes;
}

bool IsKnownCall(const std::string& call) {
  return std::find(std::begin(kKnownCalls), std::end(kKnownCalls), call) != std::end(kKnownCalls);
}

}  // namespace hpo::emulator
