#include "emulator/cards.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

namespace hpo::emulator {
namespace {

struct Row {
  const char* name;
  const char* product;
  int capability;
  int num_multiprocessors;
  int l2_kib;
  size_t cuda_bytes;
  size_t nvml_mib;
  int clock_mhz;
  int memory_clock_mhz;
  int memory_bus_bits;
};

// CUDA's total: outputs of the CUDA sample deviceQuery and of torch.cuda.get_device_properties that
// users published, at drivers 535 to 580 where there are several. A driver of another version
// reports some 10 MiB more or less. "MiB" marks a total that was published in whole MiB.
//   P100         17,071,734,784 bytes (deviceQuery, CUDA 10.2 and 11.4)
//   V100 16 GB   16,945,512,448 (deviceQuery, CUDA 10.2); 32 GB 34,089,926,656 (CUDA 11.6, 13.0)
//   T4           15,828,320,256 (with ECC); others report up to 15,843,721,216
//   RTX 2080 Ti  11,546,394,624 (deviceQuery); 11,337,531,392 at driver 595
//   A100 40 GB   42,298,834,944; PCIe and SXM4 agree
//                (github.com/bottlerocket-os/bottlerocket/pull/3873)
//   A100 80 GB   85,100,068,864 (SXM4, deviceQuery, CUDA 12.5); 84,974,239,744 (PCIe, CUDA 12.4)
//   RTX 3060     12,629,508,096 (deviceQuery, CUDA 12.2)
//   RTX 3080     10,472,390,656 (deviceQuery, CUDA 12.0)
//   RTX 3090     25,438,126,080 (torch 2.5); RTX 3090 Ti 24,114 MiB (torch)
//   A10          23,696,375,808 (deviceQuery, CUDA 12.8); A10G 22,587 MiB (torch 2.15 development)
//   RTX A6000    51,041,271,808 (torch); A40 47,608,692,736 (deviceQuery, CUDA 12.4)
//   L4           23,580,639,232 (vLLM's usage statistics); L40S 47,677,177,856 (torch)
//   RTX 4060 Ti  16 GB: 16,722,821,120 (deviceQuery, CUDA 13.1). 8 GB: unknown; used is 7,805 MiB,
//                of an RTX 4060 with as much by nvidia-smi
//                (github.com/ggml-org/llama.cpp/pull/20184)
//   RTX 4070     11,874 MiB; RTX 4080 16,049 MiB (torch)
//   RTX 4090     25,386,352,640 (deviceQuery, CUDA 12.4)
//   RTX 6000 Ada 48,622 MiB (torch)
//   H100         SXM 85,028,896,768 (podman's container-device sample); PCIe 81,008 MiB (torch)
//   GH200 480GB  102,005,473,280 (deviceQuery, CUDA 12.2)
//   H200         150,109,880,320
//   B200         191,503,007,744 (torch 2.7); bus and L2: github.com/pytorch/ao/pull/4002
//   RTX 5090     33,680,457,728 (github.com/NVIDIA/nccl/issues/1637)
//   RTX PRO 6000 101,973,491,712 (torch 2.10)
// NVML's total: nvidia-smi, as Modal published it for its machines
// (github.com/modal-labs/modal-client/pull/2797), else users' listings.
// Multiprocessors, L2, clocks and bus: deviceQuery too, else NVIDIA's data sheets.
// The P100 and V100 are here for torch's builds for CUDA 12; those for 13 have no kernels for them.
constexpr size_t kMiB = size_t{1} << 20;
constexpr Row kRows[] = {
    {"p100", "Tesla P100-PCIE-16GB", 60, 56, 4096, 17071734784, 16384, 1329, 715, 4096},
    {"v100-16gb", "Tesla V100-SXM2-16GB", 70, 80, 6144, 16945512448, 16384, 1530, 877, 4096},
    {"v100-32gb", "Tesla V100-SXM2-32GB", 70, 80, 6144, 34089926656, 32768, 1530, 877, 4096},
    {"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 75, 68, 5632, 11546394624, 11264, 1545, 7000, 352},
    {"t4", "Tesla T4", 75, 40, 4096, 15828320256, 15360, 1590, 5001, 256},
    {"a100-40gb", "NVIDIA A100-PCIE-40GB", 80, 108, 40960, 42298834944, 40960, 1410, 1215, 5120},
    {"a100-80gb-pcie", "NVIDIA A100 80GB PCIe", 80, 108, 40960, 84974239744, 81920, 1410, 1512,
     5120},
    {"a100-80gb", "NVIDIA A100-SXM4-80GB", 80, 108, 40960, 85100068864, 81920, 1410, 1593, 5120},
    {"rtx3080", "NVIDIA GeForce RTX 3080", 86, 68, 5120, 10472390656, 10240, 1710, 9501, 320},
    {"rtx3060", "NVIDIA GeForce RTX 3060", 86, 28, 2304, 12629508096, 12288, 1792, 7501, 192},
    {"a10g", "NVIDIA A10G", 86, 80, 6144, 22587 * kMiB, 23028, 1710, 6251, 384},
    {"a10", "NVIDIA A10", 86, 72, 6144, 23696375808, 23028, 1695, 6251, 384},
    {"rtx3090ti", "NVIDIA GeForce RTX 3090 Ti", 86, 84, 6144, 24114 * kMiB, 24564, 1860, 10501,
     384},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 6144, 25438126080, 24576, 1695, 9751, 384},
    {"a40", "NVIDIA A40", 86, 84, 6144, 47608692736, 46068, 1740, 7251, 384},
    {"a6000", "NVIDIA RTX A6000", 86, 84, 6144, 51041271808, 49140, 1800, 8001, 384},
    {"rtx4060ti-8gb", "NVIDIA GeForce RTX 4060 Ti", 89, 34, 32768, 7805 * kMiB, 8188, 2550, 9001,
     128},
    {"rtx4070", "NVIDIA GeForce RTX 4070", 89, 46, 36864, 11874 * kMiB, 12282, 2475, 10501, 192},
    {"rtx4060ti-16gb", "NVIDIA GeForce RTX 4060 Ti", 89, 34, 32768, 16722821120, 16380, 2550, 9001,
     128},
    {"rtx4080", "NVIDIA GeForce RTX 4080", 89, 76, 65536, 16049 * kMiB, 16376, 2505, 11201, 256},
    {"l4", "NVIDIA L4", 89, 58, 49152, 23580639232, 23034, 2040, 6251, 192},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 73728, 25386352640, 24564, 2520, 10501, 384},
    {"l40s", "NVIDIA L40S", 89, 142, 98304, 47677177856, 46068, 2520, 9001, 384},
    {"rtx6000-ada", "NVIDIA RTX 6000 Ada Generation", 89, 142, 98304, 48622 * kMiB, 49140, 2505,
     10001, 384},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 51200, 81008 * kMiB, 81559, 1755, 1593, 5120},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 51200, 85028896768, 81559, 1980, 2619, 5120},
    {"gh200", "NVIDIA GH200 480GB", 90, 132, 61440, 102005473280, 97871, 1980, 2619, 6144},
    {"h200", "NVIDIA H200", 90, 132, 61440, 150109880320, 143771, 1980, 3201, 6144},
    {"b200", "NVIDIA B200", 100, 148, 129536, 191503007744, 183359, 1965, 3996, 7680},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 98304, 33680457728, 32607, 2550, 14001, 512},
    {"rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120, 188, 131072,
     101973491712, 97887, 2617, 14001, 512},
};

// As a person may say it. Where a name has two sizes of memory, it is the smaller one.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"p100-16gb", "p100"},           {"v100", "v100-16gb"},
    {"v100-sxm2-16gb", "v100-16gb"}, {"v100-sxm2-32gb", "v100-32gb"},
    {"v100-pcie-16gb", "v100-16gb"}, {"v100-pcie-32gb", "v100-32gb"},
    {"a100", "a100-40gb"},           {"a100-pcie-40gb", "a100-40gb"},
    {"a100-sxm4-40gb", "a100-40gb"}, {"a100-pcie-80gb", "a100-80gb-pcie"},
    {"a100-sxm4-80gb", "a100-80gb"}, {"rtx3060-12gb", "rtx3060"},
    {"rtx3080-10gb", "rtx3080"},     {"rtx4060ti", "rtx4060ti-8gb"},
    {"h100-80gb", "h100"},           {"h100-sxm", "h100"},
    {"h100-sxm5", "h100"},           {"h100-80gb-hbm3", "h100"},
    {"h100-pcie-80gb", "h100-pcie"}, {"gh200-96gb", "gh200"},
    {"h200-141gb", "h200"},          {"b200-180gb", "b200"},
    {"rtx-pro-6000", "rtxpro6000"},  {"rtxpro6000-blackwell", "rtxpro6000"},
};

// CUDA C++ Programming Guide, technical specifications and arithmetic throughput by compute
// capability.
struct Limits {
  int capability;
  int threads;
  int cores;  // 32-bit floating-point additions in a clock cycle
  int shared_kib;
  int shared_kib_per_block;
};
constexpr Limits kLimits[] = {
    {60, 2048, 64, 64, 48},     {61, 2048, 128, 96, 48},   {70, 2048, 64, 96, 96},
    {75, 1024, 64, 64, 64},     {80, 2048, 64, 164, 163},  {86, 1536, 128, 100, 99},
    {89, 1536, 128, 100, 99},   {90, 2048, 128, 228, 227}, {100, 2048, 128, 228, 227},
    {103, 2048, 128, 228, 227}, {120, 1536, 128, 100, 99},
};

// Written by make_libraries.py from the compiler flags that torch reports of itself.
constexpr int kTorchCapabilities[] = {
#include "torch_capabilities.inc"
    0};

std::vector<Card> MakeTable() {
  std::vector<Card> cards;
  for (const Row& row : kRows) {
    Card& card = cards.emplace_back();
    card.name = row.name;
    card.product = row.product;
    card.capability = row.capability;
    card.num_multiprocessors = row.num_multiprocessors;
    card.l2_kib = row.l2_kib;
    card.cuda_bytes = row.cuda_bytes;
    card.nvml_mib = row.nvml_mib;
    card.clock_mhz = row.clock_mhz;
    card.memory_clock_mhz = row.memory_clock_mhz;
    card.memory_bus_bits = row.memory_bus_bits;
    SetLimits(card);
  }
  return cards;
}

// Without what makes no difference: "NVIDIA GeForce RTX 3090" and "rtx-3090" are "3090".
std::string Simplify(std::string_view name) {
  std::string simple;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) simple += static_cast<char>(std::tolower(letter));
  }
  for (const std::string_view word : {"nvidia", "geforce", "tesla", "rtx"}) {
    if (simple.starts_with(word)) simple.erase(0, word.size());
  }
  return simple;
}

// How many letters are to be added, taken out or changed.
size_t Distance(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j < row.size(); ++j) {
      const size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

const std::vector<Card>& Cards() {
  static const auto* const cards = new std::vector<Card>(MakeTable());
  return *cards;
}

bool SetLimits(Card& card) {
  const auto* const found =
      std::find_if(std::begin(kLimits), std::end(kLimits),
                   [&card](const Limits& limits) { return limits.capability == card.capability; });
  if (found == std::end(kLimits)) return false;
  card.threads_per_multiprocessor = found->threads;
  card.cores_per_multiprocessor = found->cores;
  card.shared_kib_per_multiprocessor = found->shared_kib;
  card.shared_kib_per_block = found->shared_kib_per_block;
  card.reserved_shared_kib = card.capability >= 80 ? 1 : 0;
  return true;
}

const Card* FindCard(const std::vector<Card>& cards, std::string_view name) {
  const std::string simple = Simplify(name);
  if (simple.empty()) return nullptr;
  for (const Card& card : cards) {
    if (simple == Simplify(card.name) || simple == Simplify(card.product)) return &card;
  }
  for (const auto& [alias, meant] : kAliases) {
    if (simple == Simplify(alias)) return FindCard(cards, meant);
  }
  return nullptr;
}

std::string NearestNames(const std::vector<Card>& cards, std::string_view name) {
  constexpr size_t kNumNames = 3;
  const std::string simple = Simplify(name);
  std::vector<std::pair<size_t, std::string>> names;
  for (const Card& card : cards) {
    size_t distance = Distance(simple, Simplify(card.name));
    for (const std::string& alias : AliasesOf(card.name)) {
      distance = std::min(distance, Distance(simple, Simplify(alias)));
    }
    names.emplace_back(distance, card.name);
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < std::min(kNumNames, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i].second;
  }
  return text;
}

std::vector<std::string> AliasesOf(std::string_view name) {
  std::vector<std::string> aliases;
  for (const auto& [alias, meant] : kAliases) {
    if (meant == name) aliases.emplace_back(alias);
  }
  return aliases;
}

std::string ShownName(const Card& card) { return card.product + " (emulated)"; }

const std::vector<int>& TorchCapabilities() {
  static const auto* const capabilities = [] {
    const char* const given = std::getenv("HPO_EMULATED_CAPABILITIES");
    if (given == nullptr) {
      return new std::vector<int>(std::begin(kTorchCapabilities), std::end(kTorchCapabilities) - 1);
    }
    auto* const numbers = new std::vector<int>;
    std::istringstream text(given);
    for (std::string part; std::getline(text, part, ',');)
      numbers->push_back(std::atoi(part.c_str()));
    return numbers;
  }();
  return *capabilities;
}

int KernelCapability(const Card& card) {
  int newest = 0;
  for (const int capability : TorchCapabilities()) {
    const bool runs = capability / 10 == card.capability / 10 && capability <= card.capability;
    if (runs) newest = std::max(newest, capability);
  }
  return newest;
}

}  // namespace hpo::emulator
