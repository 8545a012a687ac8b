// The table of GPUs, their names, and those of a user's file.
#include "emulator/cards.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "emulator/card_file.h"
#include "emulator/settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::emulator {
namespace {

using ::testing::StartsWith;

constexpr size_t kMebibyte = size_t{1} << 20;

std::string NameOf(const Card* card) { return card == nullptr ? "none" : card->name; }

TEST(Cards, AreFoundByNameProductAndAlias) {
  const std::pair<const char*, const char*> cases[] = {
      {"a100", "a100-40gb"},
      {"A100-80GB", "a100-80gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"nvidia a100 80gb pcie", "a100-80gb-pcie"},
      {"rtx-3090", "rtx3090"},
      {"3090", "rtx3090"},
      {"NVIDIA GeForce RTX 3090 Ti", "rtx3090ti"},
      {"rtx 4060 ti", "rtx4060ti-8gb"},
      {"4060ti-16gb", "rtx4060ti-16gb"},
      {"Tesla T4", "t4"},
      {"v100", "v100-16gb"},
      {"RTX A6000", "a6000"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"h100-pcie", "h100-pcie"},
      {"rtx pro 6000", "rtxpro6000"},
      {"a1000", "none"},
      {"rtx", "none"},
      {"", "none"},
  };
  for (const auto& [name, expected] : cases) {
    EXPECT_EQ(NameOf(FindCard(Cards(), name)), expected) << name;
  }
}

TEST(Cards, EachIsFoundByItsNameAndAliases) {
  std::set<std::string> names;
  for (const Card& card : Cards()) {
    EXPECT_TRUE(names.insert(card.name).second) << card.name << " is there twice";
    EXPECT_EQ(FindCard(Cards(), card.name), &card) << card.name;
    for (const std::string& alias : AliasesOf(card.name)) {
      EXPECT_EQ(FindCard(Cards(), alias), &card) << alias;
    }
  }
}

TEST(Cards, TheDriversShareIsPartOfNvmlsTotal) {
  for (const Card& card : Cards()) {
    SCOPED_TRACE(card.name);
    EXPECT_GT(card.nvml_mib << 20, card.cuda_bytes);
    EXPECT_LT((card.nvml_mib << 20) - card.cuda_bytes, 1000 * kMebibyte);
    EXPECT_EQ(card.cuda_bytes % 65536, 0u) << "the driver counts in 64 KiB";
  }
}

TEST(Cards, AreWhole) {
  for (const Card& card : Cards()) {
    SCOPED_TRACE(card.name);
    EXPECT_GT(card.threads_per_multiprocessor, 0);
    EXPECT_LE(card.shared_kib_per_block + card.reserved_shared_kib,
              card.shared_kib_per_multiprocessor);
    EXPECT_GT(card.num_multiprocessors, 0);
    EXPECT_GT(card.l2_kib, 0);
    // Within reach of the memory's speed that data sheets give, 0.2 to 9 TB/s.
    const double bytes_per_second =
        2e6 * card.memory_clock_mhz * static_cast<double>(card.memory_bus_bits) / 8;
    EXPECT_GT(bytes_per_second, 0.2e12);
    EXPECT_LT(bytes_per_second, 9e12);
  }
}

TEST(Cards, NearestNamesComeFirst) {
  EXPECT_THAT(NearestNames(Cards(), "rtx4091"), StartsWith("rtx4090, "));
  EXPECT_THAT(NearestNames(Cards(), "H10"), StartsWith("a10, h100"));
  EXPECT_THAT(NearestNames(Cards(), "l40"), StartsWith("a40, l4"));
}

TEST(Cards, KernelsRunOnTheirMajorVersionOnly) {
  Card card;
  card.capability = 110;
  if (TorchCapabilities().empty()) GTEST_SKIP() << "built without torch";
  EXPECT_EQ(KernelCapability(*FindCard(Cards(), "rtx4090")) / 10, 8);
  for (const int capability : {50, 70}) {
    card.capability = capability;
    const auto& known = TorchCapabilities();
    const bool has = std::any_of(known.begin(), known.end(), [capability](int one) {
      return one / 10 == capability / 10 && one <= capability;
    });
    EXPECT_EQ(KernelCapability(card) > 0, has) << capability;
  }
}

// Sets an environment variable for a test.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

std::string Complaint(const std::string& names) {
  const Setting setting("HPO_EMULATED_CARD", names);
  const auto read = ReadSettings();
  const auto* const complaint = std::get_if<std::string>(&read);
  return complaint == nullptr ? "" : *complaint;
}

TEST(Settings, GiveAGpuAnotherSize) {
  const Setting setting("HPO_EMULATED_CARD", "a100:12GiB+T4");
  const auto read = ReadSettings();
  ASSERT_TRUE(std::holds_alternative<Settings>(read)) << std::get<std::string>(read);
  const Settings& settings = std::get<Settings>(read);
  ASSERT_EQ(settings.cards.size(), 2u);
  const Card& whole = *FindCard(Cards(), "a100");
  EXPECT_EQ(TotalBytes(settings, 0), 12288 * kMebibyte);
  EXPECT_NEAR(static_cast<double>(DriverBytes(settings, 0)),
              static_cast<double>((whole.nvml_mib << 20) - whole.cuda_bytes), 1.0 * kMebibyte);
  EXPECT_EQ(settings.cards[0].product, whole.product);
  EXPECT_EQ(TotalBytes(settings, 1), FindCard(Cards(), "t4")->cuda_bytes);
}

TEST(Settings, NameTheNearestGpus) {
  EXPECT_EQ(Complaint("t4+rtx4091"),
            "no GPU 'rtx4091'; nearest: " + NearestNames(Cards(), "rtx4091") +
                "; emulated_card --list lists all");
  for (const char* name : {"a100:12", "a100:", "a100:0GiB", "a100:12GiB:2GiB"}) {
    EXPECT_EQ(Complaint(name), "GPU '" + std::string(name) +
                                   "': expected NAME:SIZE with the size's unit, as "
                                   "a100-40gb:12GiB");
  }
}

class CardFile : public ::testing::Test {
 protected:
  CardFile() : path_(::testing::TempDir() + "/hpo_gpus_" + std::to_string(getpid())) {}
  ~CardFile() override { unlink(path_.c_str()); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }

  std::string ComplaintOf(const std::string& text) {
    Write(text);
    const auto read = ReadCardFile(path_);
    const auto* const complaint = std::get_if<std::string>(&read);
    if (complaint == nullptr) return "";
    EXPECT_THAT(*complaint, StartsWith(path_ + ":"));
    return complaint->substr(path_.size() + 1);
  }

  const std::string path_;
};

constexpr char kWorkstation[] =
    "# two GPUs of the lab\n"
    "name = lab-a5000\n"
    "product = NVIDIA RTX A5000   # as nvidia-smi shows it\n"
    "capability = 8.6\n"
    "multiprocessors = 64\n"
    "memory = 24247MiB\n"
    "nvidia_smi = 24564MiB\n"
    "l2 = 6MiB\n"
    "\n"
    "name = a100\n"
    "capability = 7.5\n"
    "multiprocessors = 16\n"
    "memory = 4000000000B\n";

TEST_F(CardFile, DescribesGpus) {
  Write(kWorkstation);
  const Setting file("HPO_EMULATED_GPUS", path_);
  const Setting names("HPO_EMULATED_CARD", "LAB-A5000+a100+a100-40gb");
  const auto read = ReadSettings();
  ASSERT_TRUE(std::holds_alternative<Settings>(read)) << std::get<std::string>(read);
  const std::vector<Card>& cards = std::get<Settings>(read).cards;
  ASSERT_EQ(cards.size(), 3u);
  EXPECT_EQ(cards[0].product, "NVIDIA RTX A5000");
  EXPECT_EQ(cards[0].cuda_bytes, 24247 * kMebibyte);
  EXPECT_EQ(cards[0].nvml_mib, 24564u);
  EXPECT_EQ(cards[0].l2_kib, 6144);
  EXPECT_EQ(cards[0].threads_per_multiprocessor, 1536);
  EXPECT_EQ(cards[1].product, "a100") << "a name of the file replaces an alias of the table";
  EXPECT_EQ(cards[1].nvml_mib, 3815u);
  EXPECT_GT(cards[1].memory_clock_mhz, 0) << "a program may divide by it";
  EXPECT_EQ(cards[2].name, "a100-40gb");
}

TEST_F(CardFile, NamesWhatIsWrongAndWhere) {
  const std::string start = "name = x\ncapability = 8.6\nmultiprocessors = 2\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", " no GPU; expected name = ..., which begins one"},
      {"\nmemory = 1GiB\n", "2: memory: expected name = ... first, which begins a GPU"},
      {"name x\n", "1: expected KEY = VALUE, got 'name x'"},
      {start + "memory =\n", "4: memory: expected a value, got none"},
      {start + "memory = 24\n",
       "4: memory: expected a size with its unit, as 24247MiB or 25438126080B, got '24'"},
      {start, "1: GPU 'x' has no memory; expected memory = 24247MiB"},
      {"name = x\nmemory = 1GiB\n\nname = y\n",
       "1: GPU 'x' has no capability; expected capability = 8.6"},
      {"name = x\ncapability = 8\n",
       "2: capability: expected a compute capability from 6.0 to 12.0, as 8.6, got '8'"},
      {"name = x\ncapability = 4.2\n",
       "2: capability: expected a compute capability from 6.0 to 12.0, as 8.6, got '4.2'"},
      {"name = x\nmultiprocessors = many\n",
       "2: multiprocessors: expected a whole number above 0, got 'many'"},
      {"name = x\nmemry = 1GiB\n",
       "2: memry: there is no such key; there are: name, product, capability, multiprocessors, "
       "memory, nvidia_smi, l2, clock, memory_clock, memory_bus"},
      {start + "memory = 2GiB\nnvidia_smi = 1GiB\n",
       "1: GPU 'x': nvidia_smi is less than memory, of which it counts all"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(ComplaintOf(text), expected) << text;
}

TEST(CardFiles, ThatAreNotThere) {
  const auto read = ReadCardFile("/nowhere/gpus");
  ASSERT_TRUE(std::holds_alternative<std::string>(read));
  EXPECT_EQ(std::get<std::string>(read),
            "/nowhere/gpus: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace hpo::emulator
