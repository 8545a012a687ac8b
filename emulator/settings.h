// What is emulated, from the environment. scripts/with_emulated_card --help says it for people.
//   HPO_EMULATED_CARD       a name of `emulated_card --list`, or NAME:SIZE, that GPU with SIZE of
//                           memory, as a100:12GiB; several joined by +
//   HPO_EMULATED_GPUS       file that describes more GPUs (card_file.h)
//   HPO_EMULATED_CARDS      how many of it; default 1, 0 = a machine without a card
//   HPO_EMULATED_MIG        into how many equal MIG devices each card is divided; default 0: none
//   is HPO_EMULATED_MEMORY     another total for cudaMemGetInfo, as 12GiB or 85094170624B
//   HPO_EMULATED_OTHERS     what other processes hold on each card, as 4GiB or 3x512MiB
//   HPO_EMULATED_CONTEXT    what each process takes by using a card; default 300MiB
//   HPO_EMULATED_VERSIONS   cuda=12040,cudnn=90100,nccl=22105: what the libraries report, in the
//                           way of cudaRuntimeGetVersion and its like; default: torch 2.11's
//   HPO_EMULATED_CAPABILITIES
//                           75,80,86: the compute capabilities that torch's build has kernels for;
//                           default: those of the torch that this tree was built with
//   HPO_EMULATED_ADDRESSES  rising, reuse or shuffled: which addresses an allocation gets
//   HPO_EMULATED_FAULTS     CALL:N:CODE[:sticky|:always], several joined by commas
//   HPO_EMULATED_WAIT       how many seconds a rank of NCCL waits for others; default 600
//   HPO_EMULATED_STATE      file through which processes see each other's memory
//   HPO_EMULATED_LOG        file to which calls and kernels' names are added
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "emulator/cards.h"

namespace hpo::emulator {

enum class AddressOrder {
  kRising,    // none a second time before the end is reached
  kReuse,     // the lowest that is free
  kShuffled,  // anywhere, the same in every run
};

enum class FaultSpan {
  kOnce,
  kAlways,  // that call, from then on
  kSticky,  // every call of CUDA from then on, as after a broken context
};

// The `nth` call of `call` in a process returns `code`.
struct Fault {
  std::string call;
  int64_t nth = 1;
  int code = 0;
  FaultSpan span = FaultSpan::kOnce;
};

// Versions of the emulated libraries: torch refuses others than it was built with.
struct Versions {
  int64_t cuda = 13000;   // 1000 x major + 10 x minor
  int64_t cudnn = 91900;  // 10000 x major + 100 x minor + patch, so is NCCL's
  int64_t nccl = 22809;
};

struct Settings {
  std::vector<Card> cards;  // with MIG each device of a card, as if it were one
  int mig = 0;              // MIG devices of a card; 0: no card is divided
  size_t memory = 0;        // 0: the card's own
  size_t others = 0;        // bytes of each of the other processes
  int num_others = 0;
  size_t context = size_t{300} << 20;
  Versions versions;
  AddressOrder addresses = AddressOrder::kRising;
  std::vector<Fault> faults;
  int wait_seconds = 600;  // torch's own limit for NCCL
  std::string state_file;  // empty: this process alone
  std::string log_file;    // empty: no log
};

// The GPUs of the user's file, then those of the table; or one line that says what is wrong.
std::variant<std::vector<Card>, std::string> KnownCards();

// The settings, or one line that says what is wrong with them.
std::variant<Settings, std::string> ReadSettings();

// CUDA's total on card `index`, and what NVML adds to it for the driver.
size_t TotalBytes(const Settings& settings, size_t index);
size_t DriverBytes(const Settings& settings, size_t index);

// Whether a fault can be put on `call`: it is emulated, and can fail.
bool IsKnownCall(const std::string& call);

}  // namespace hpo::emulator
