// Says in one line what the environment makes of the emulated GPUs, or what is wrong with it.
//   --list       prints every GPU that can be emulated as a JSON array, those of the file
//                HPO_EMULATED_GPUS first
//   --hold SIZE  is another process on the first GPU: it holds SIZE until its input ends
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "emulator/machine.h"
#include "emulator/sizes.h"

namespace {

using hpo::emulator::Card;
using hpo::emulator::Machine;
using hpo::emulator::Settings;

std::string Describe(const Settings& settings) {
  std::string text;
  for (size_t i = 0; i < settings.cards.size(); ++i) {
    const auto& card = settings.cards[i];
    text += (text.empty() ? "" : "; ") + ShownName(card) + ", capability " +
            std::to_string(card.capability / 10) + "." + std::to_string(card.capability % 10) +
            ", " + std::to_string(TotalBytes(settings, i)) + " bytes";
  }
  return text.empty() ? "no card" : text;
}

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

// One line a GPU. "kernels" is the capability whose kernels of torch's build run on it: 0 for none,
// null where this was built without torch.
std::string ToJson(const Card& card) {
  std::string aliases;
  for (const std::string& alias : hpo::emulator::AliasesOf(card.name)) {
    aliases += (aliases.empty() ? "" : ", ") + Quote(alias);
  }
  const bool knows_torch = !hpo::emulator::TorchCapabilities().empty();
  return "{\"name\": " + Quote(card.name) + ", \"product\": " + Quote(card.product) +
         ", \"aliases\": [" + aliases + "], \"capability\": " + std::to_string(card.capability) +
         ", \"kernels\": " + (knows_torch ? std::to_string(KernelCapability(card)) : "null") +
         ", \"multiprocessors\": " + std::to_string(card.num_multiprocessors) + ", \"threads\": " +
         std::to_string(card.num_multiprocessors * card.threads_per_multiprocessor) +
         ", \"total_bytes\": " + std::to_string(card.cuda_bytes) +
         ", \"nvml_mib\": " + std::to_string(card.nvml_mib) + "}";
}

int List() {
  const auto known = hpo::emulator::KnownCards();
  if (const auto* const complaint = std::get_if<std::string>(&known)) {
    hpo::emulator::EndWith(*complaint);
  }
  std::string text;
  for (const Card& card : std::get<0>(known)) text += (text.empty() ? "[" : ",\n ") + ToJson(card);
  std::printf("%s]\n", text.c_str());
  return 0;
}

// Says when it holds the bytes.
int Hold(const std::string& size) {
  size_t bytes = 0;
  if (!hpo::emulator::ParseBytes(size, bytes)) {
    hpo::emulator::EndWith("--hold: expected a size with its unit, as 4GiB, got '" + size + "'");
  }
  Machine& machine = Machine::Get();
  if (machine.num_devices() == 0 || machine.Allocate(0, bytes) == nullptr) {
    hpo::emulator::EndWith("--hold " + size + ": there is not as much free");
  }
  std::printf("holding %zu bytes\n", bytes);
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--hold") return Hold(argv[2]);
  if (argc == 2 && std::string(argv[1]) == "--list") return List();
  if (argc != 1) hpo::emulator::EndWith("usage: emulated_card [--list | --hold SIZE]");
  std::printf("%s\n", Describe(Machine::Get().settings()).c_str());
  return 0;
}
