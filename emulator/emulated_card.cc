// Says in one line what the environment makes of the emulated cards, or what is wrong with it. With
// `--hold SIZE` it is another process on the first card: it holds SIZE until its input ends.
#include <cstdio>
#include <string>

#include "emulator/machine.h"

namespace {

using hpo::emulator::Machine;
using hpo::emulator::Settings;

std::string Describe(const Settings& settings) {
  std::string text;
  for (size_t i = 0; i < settings.cards.size(); ++i) {
    const auto& card = *settings.cards[i];
    text += (text.empty() ? "" : "; ") + ShownName(card) + ", capability " +
            std::to_string(card.capability / 10) + "." + std::to_string(card.capability % 10) +
            ", " + std::to_string(TotalBytes(settings, i)) + " bytes";
  }
  return text.empty() ? "no card" : text;
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
  if (argc != 1) hpo::emulator::EndWith("usage: emulated_card [--hold SIZE]");
  std::printf("%s\n", Describe(Machine::Get().settings()).c_str());
  return 0;
}
