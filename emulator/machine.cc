#include "emulator/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "emulator/device_values.h"
#include "emulator/streams/streams.h"

namespace hpo::emulator {
namespace {

std::mutex g_mutex;
Machine* g_machine = nullptr;
thread_local int t_device = 0;

Settings SettingsOrEnd() {
  auto read = ReadSettings();
  if (const auto* const complaint = std::get_if<std::string>(&read)) EndWith(*complaint);
  return std::get<Settings>(std::move(read));
}

// The card that a word of CUDA_VISIBLE_DEVICES names: by a number, or the beginning of a UUID. That
// of a GPU which MIG divides stands for its first device. -1: none.
int NamedCard(const Settings& settings, const std::string& word) {
  const int num_cards = static_cast<int>(settings.cards.size());
  const int step = std::max(1, settings.mig);
  for (int card = 0; card < num_cards; ++card) {
    if (word.starts_with("MIG-") && ShownUuid(settings, card).starts_with(word)) return card;
    if (card % step != 0) continue;
    const std::string gpu =
        settings.mig > 0 ? DividedUuid(settings, card) : ShownUuid(settings, card);
    const bool by_uuid = word.starts_with("GPU-") && gpu.starts_with(word);
    if (by_uuid || word == std::to_string(card / step)) return card;
  }
  return -1;
}

}  // namespace

std::vector<int> VisibleCards(const Settings& settings) {
  const int num_cards = static_cast<int>(settings.cards.size());
  std::vector<int> visible;
  const char* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) {
    for (int card = 0; card < num_cards; ++card) visible.push_back(card);
    if (settings.mig > 0 && num_cards > 0) visible.resize(1);
    return visible;
  }
  std::string rest = listed;
  while (!rest.empty()) {
    const std::string word = rest.substr(0, rest.find(','));
    rest.erase(0, word.size() + 1);
    const int named = NamedCard(settings, word);
    if (named < 0) break;
    if (std::find(visible.begin(), visible.end(), named) != visible.end()) return {};
    visible.push_back(named);
  }
  if (settings.mig > 0 && visible.size() > 1) visible.resize(1);
  return visible;
}

Machine& Machine::Get() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_machine == nullptr) g_machine = new Machine(SettingsOrEnd());
  return *g_machine;
}

void Machine::Reread() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_machine == nullptr) return;
  for (int device = 0; device < g_machine->num_devices(); ++device) {
    if (g_machine->state_.Holds(g_machine->CardOf(device))) return;
  }
  delete std::exchange(g_machine, nullptr);
}

Machine::Machine(Settings settings)
    : settings_(std::move(settings)),
      log_(settings_.log_file),
      state_(settings_.state_file),
      visible_(VisibleCards(settings_)),
      addresses_(settings_.addresses) {}

const Card& Machine::card(int device) const {
  return settings_.cards[static_cast<size_t>(CardOf(device))];
}

int Machine::CountCall(const char* call) {
  if (settings_.faults.empty()) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t number = ++num_calls_[call];
  for (const Fault& fault : settings_.faults) {
    const bool due = fault.span == FaultSpan::kAlways ? number >= fault.nth : number == fault.nth;
    if (!due || fault.call != call) continue;
    if (fault.span == FaultSpan::kSticky) sticky_ = fault.code;
    log_.Write("fault " + fault.call + " " + std::to_string(number) + " code " +
               std::to_string(fault.code));
    return fault.code;
  }
  return 0;
}

size_t Machine::Limit(int card) const {
  const size_t total = emulator::TotalBytes(settings_, static_cast<size_t>(card));
  const size_t others = settings_.others * static_cast<size_t>(settings_.num_others);
  return others >= total ? 0 : total - others;
}

size_t Machine::TotalBytes(int device) const {
  return emulator::TotalBytes(settings_, static_cast<size_t>(CardOf(device)));
}

size_t Machine::FreeBytes(int device) {
  const int card = CardOf(device);
  const size_t used = state_.Used(card);
  const size_t limit = Limit(card);
  return used >= limit ? 0 : limit - used;
}

bool Machine::UseDevice(int device) {
  const int card = CardOf(device);
  const std::lock_guard<std::mutex> lock(context_mutex_);
  return state_.Holds(card) || state_.Take(card, settings_.context, Limit(card));
}

bool Machine::Take(int device, size_t bytes) {
  return UseDevice(device) && state_.Take(CardOf(device), bytes, Limit(CardOf(device)));
}

char* Machine::Allocate(int device, size_t bytes) {
  bytes = RoundUpToPage(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!Take(device, bytes)) return nullptr;
  char* const address = addresses_.Take(bytes);
  allocations_[address] = {.device = device, .bytes = bytes};
  return address;
}

bool Machine::Free(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  state_.Give(CardOf(found->second.device), found->second.bytes);
  Values().Forget(address, found->second.bytes);
  addresses_.Give(address);
  allocations_.erase(found);
  return true;
}

bool Machine::IsDeviceAddress(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return addresses_.Contains(address);
}

int Machine::DeviceOf(const void* address, int otherwise) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(addresses_.StartOf(address));
  return found == allocations_.end() ? otherwise : found->second.device;
}

uint64_t Machine::CreatePages(int device, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!Take(device, bytes)) return 0;
  pages_[++last_pages_] = {.device = device, .bytes = bytes};
  return last_pages_;
}

void Machine::ReleasePages(uint64_t pages) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pages_.find(pages);
  if (found == pages_.end()) return;
  state_.Give(CardOf(found->second.device), found->second.bytes);
  pages_.erase(found);
}

char* Machine::ReserveAddresses(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return addresses_.Take(bytes);
}

void Machine::ReleaseAddresses(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  addresses_.Give(address);
}

int CurrentDevice() { return t_device; }

void SetCurrentDevice(int device) { t_device = device; }

Uuid CardUuid(const Settings& settings, int card) {
  // A worker's default name has the first four bytes: no two cards share them.
  Uuid uuid = {'h', 'p', 'o', static_cast<unsigned char>('e' + card)};
  const Card& described = settings.cards[static_cast<size_t>(card)];
  auto kind = static_cast<unsigned>(described.nvml_mib);
  for (const char c : described.name) kind = 31 * kind + static_cast<unsigned char>(c);
  uuid[6] = static_cast<unsigned char>(kind >> 8);
  uuid[7] = static_cast<unsigned char>(kind);
  uuid[15] = static_cast<unsigned char>(card);
  return uuid;
}

namespace {

std::string FormatUuid(const char* kind, const Uuid& uuid) {
  std::string text = kind;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hexadecimal[3];
    std::snprintf(hexadecimal, sizeof hexadecimal, "%02x", static_cast<unsigned>(uuid[i]));
    text += hexadecimal;
  }
  return text;
}

}  // namespace

std::string ShownUuid(const Settings& settings, int card) {
  return FormatUuid(settings.mig > 0 ? "MIG" : "GPU", CardUuid(settings, card));
}

std::string DividedUuid(const Settings& settings, int card) {
  Uuid uuid = CardUuid(settings, card);
  uuid[14] = 1;
  return FormatUuid("GPU", uuid);
}

}  // namespace hpo::emulator

void hpoEmulatedMissing(const char* call) {
  std::fprintf(stderr, "emulated card: %s is not emulated\n", call);
  std::abort();
}

int hpoEmulatedSilent(const char* call) {
  hpo::emulator::Machine& machine = hpo::emulator::Machine::Get();
  if (machine.sticky() != 0) return hpo::emulator::kLibraryExecutionFailed;
  if (machine.log().is_on()) machine.log().Write(call);
  return machine.CountCall(call);
}

int hpoEmulatedCompute(const char* call) {
  hpo::emulator::Values().ForgetAll();
  hpo::emulator::Streams::Get().NoteLibraryWork();
  return hpoEmulatedSilent(call);
}
