// What the emulated card is made of, without torch.
#include "emulator/machine.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "emulator/sizes.h"
#include "gtest/gtest.h"

namespace hpo::emulator {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = AddressSpace::kPage;

TEST(ParseBytes, WantsAUnit) {
  const std::pair<const char*, size_t> good[] = {{"85094170624B", 85094170624},
                                                 {"1KiB", 1024},
                                                 {"300MiB", 300 * kMiB},
                                                 {"12GiB", 12288 * kMiB}};
  for (const auto& [text, expected] : good) {
    size_t bytes = 0;
    EXPECT_TRUE(ParseBytes(text, bytes)) << text;
    EXPECT_EQ(bytes, expected) << text;
  }
  for (const char* text : {"", "12", "GiB", "-1GiB", "1.5GiB", "12 GiB", "99999999999GiB"}) {
    size_t bytes = 0;
    EXPECT_FALSE(ParseBytes(text, bytes)) << text;
  }
}

TEST(AddressSpace, RisesReusesOrShuffles) {
  AddressSpace rising(AddressOrder::kRising, 1024 * kMiB);
  char* const first = rising.Take(1);
  char* const second = rising.Take(3 * kMiB);
  EXPECT_EQ(second - first, static_cast<ptrdiff_t>(kPage));
  rising.Give(first);
  EXPECT_EQ(rising.Take(1) - second, static_cast<ptrdiff_t>(2 * kPage));

  AddressSpace reusing(AddressOrder::kReuse, 1024 * kMiB);
  char* const freed = reusing.Take(kPage);
  reusing.Take(kPage);
  reusing.Give(freed);
  EXPECT_GT(reusing.Take(2 * kPage), freed);  // too large for the gap
  EXPECT_EQ(reusing.Take(kPage), freed);

  AddressSpace shuffled(AddressOrder::kShuffled, 1024 * kMiB);
  AddressSpace again(AddressOrder::kShuffled, 1024 * kMiB);
  char* const anywhere = shuffled.Take(kPage);
  char* const anywhere_again = again.Take(kPage);
  EXPECT_EQ(shuffled.Take(kPage) - anywhere, again.Take(kPage) - anywhere_again);
}

// As a thousand out-of-memory errors with growing segments want it.
TEST(AddressSpace, RisingOnesBeginAgainAtTheEnd) {
  AddressSpace space(AddressOrder::kRising, 8 * kPage);
  char* const kept = space.Take(kPage);
  char* const second = space.Take(3 * kPage);
  space.Give(second);
  char* const third = space.Take(3 * kPage);
  EXPECT_EQ(third - second, static_cast<ptrdiff_t>(3 * kPage));
  char* const again = space.Take(3 * kPage);
  EXPECT_EQ(again, second);
  EXPECT_EQ(again - kept, static_cast<ptrdiff_t>(kPage));
  EXPECT_EQ(space.Take(kPage) - third, static_cast<ptrdiff_t>(3 * kPage));
}

TEST(AddressSpace, KnowsItsRanges) {
  AddressSpace space(AddressOrder::kRising, 1024 * kMiB);
  int here = 0;
  EXPECT_FALSE(space.Contains(&here));
  char* const start = space.Take(3 * kMiB);
  EXPECT_TRUE(space.Contains(start + 5));
  EXPECT_FALSE(space.Contains(&here));
  EXPECT_EQ(space.StartOf(start + 4 * kMiB - 1), start);
  EXPECT_EQ(space.StartOf(start + 4 * kMiB), nullptr);
}

// Takes `bytes` in a child process, which ends when `release` is closed here.
class Holder {
 public:
  Holder(const std::string& path, size_t bytes) {
    std::array<int, 2> ready{};
    std::array<int, 2> release{};
    if (pipe(ready.data()) != 0 || pipe(release.data()) != 0) abort();
    child_ = fork();
    if (child_ == 0) {
      close(release[1]);
      SharedState state(path);
      const char taken = state.Take(0, bytes, 100) ? 'y' : 'n';
      char end = 0;
      if (write(ready[1], &taken, 1) != 1 || read(release[0], &end, 1) != 0) _exit(1);
      _exit(0);
    }
    close(release[0]);
    close(ready[1]);
    if (read(ready[0], &taken_, 1) != 1) abort();
    close(ready[0]);
    release_ = release[1];
  }
  ~Holder() { End(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  bool taken() const { return taken_ == 'y'; }
  void End() {
    if (child_ == 0) return;
    close(release_);
    waitpid(std::exchange(child_, 0), nullptr, 0);
  }

 private:
  pid_t child_ = 0;
  int release_ = -1;
  char taken_ = 0;
};

TEST(SharedState, ProcessesShareACardAndGiveItBackWhenTheyEnd) {
  const std::string path = ::testing::TempDir() + "/hpo_shared_state_" + std::to_string(getpid());
  SharedState state(path);
  EXPECT_TRUE(state.Take(0, 40, 100));
  {
    Holder holder(path, 50);
    EXPECT_TRUE(holder.taken());
    EXPECT_EQ(state.Used(0), 90u);
    EXPECT_EQ(state.Used(1), 0u);
    EXPECT_FALSE(state.Take(0, 11, 100));
    EXPECT_TRUE(state.Take(0, 10, 100));
    EXPECT_FALSE(Holder(path, 1).taken());
    EXPECT_EQ(state.Holdings(0).size(), 2u);
    holder.End();
  }
  EXPECT_EQ(state.Used(0), 50u);
  state.Give(0, 50);
  EXPECT_TRUE(state.Take(1, 100, 100));
  EXPECT_TRUE(state.Holds(1));
  unlink(path.c_str());
}

TEST(Faults, AreOfKnownCalls) {
  EXPECT_TRUE(IsKnownCall("cudaMalloc"));
  EXPECT_TRUE(IsKnownCall("nvmlInit_v2"));
  EXPECT_TRUE(IsKnownCall("cufftXtMakePlanMany"));
  EXPECT_FALSE(IsKnownCall("cudaMaloc"));
}

TEST(Settings, NameWhatIsWrong) {
  setenv("HPO_EMULATED_OTHERS", "3x", 1);
  const auto read = ReadSettings();
  unsetenv("HPO_EMULATED_OTHERS");
  ASSERT_TRUE(std::holds_alternative<std::string>(read));
  EXPECT_EQ(std::get<std::string>(read),
            "others: expected a size as 4GiB, or that of each of several as 3x512MiB, got '3x'");
}

TEST(Settings, VersionsAreThoseOfTorchUnlessOthersAreGiven) {
  EXPECT_EQ(std::get<Settings>(ReadSettings()).versions.cuda, 13000);
  setenv("HPO_EMULATED_VERSIONS", "cuda=12010,nccl=22005", 1);
  const Versions given = std::get<Settings>(ReadSettings()).versions;
  EXPECT_EQ(given.cuda, 12010);
  EXPECT_EQ(given.cudnn, Versions().cudnn);
  EXPECT_EQ(given.nccl, 22005);
  setenv("HPO_EMULATED_VERSIONS", "cuda=12.1", 1);
  const auto wrong = ReadSettings();
  unsetenv("HPO_EMULATED_VERSIONS");
  EXPECT_EQ(std::get<std::string>(wrong),
            "versions: expected cuda=NUMBER, cudnn=NUMBER or nccl=NUMBER, got 'cuda=12.1'");
}

std::vector<int> CardsShown(const Settings& settings, const char* listed) {
  setenv("CUDA_VISIBLE_DEVICES", listed, 1);
  std::vector<int> cards = VisibleCards(settings);
  unsetenv("CUDA_VISIBLE_DEVICES");
  return cards;
}

TEST(VisibleCards, AreThoseOfTheVariable) {
  Settings settings;
  settings.cards.assign(3, *FindCard(Cards(), "a100"));
  EXPECT_EQ(VisibleCards(settings), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(CardsShown(settings, "2,0"), (std::vector<int>{2, 0}));
  EXPECT_EQ(CardsShown(settings, "GPU-68706f66"), std::vector<int>{1});
  EXPECT_EQ(CardsShown(settings, "1,7,0"), std::vector<int>{1});
  EXPECT_EQ(CardsShown(settings, "1,1"), std::vector<int>());
  EXPECT_EQ(CardsShown(settings, "MIG-68706f65"), std::vector<int>());
}

TEST(VisibleCards, AreOneMigDevice) {
  const char* const before = std::getenv("HPO_EMULATED_CARD");
  const std::string card = before == nullptr ? "" : before;
  setenv("HPO_EMULATED_CARD", "a100", 1);
  setenv("HPO_EMULATED_CARDS", "2", 1);
  setenv("HPO_EMULATED_MIG", "8", 1);
  EXPECT_EQ(std::get<std::string>(ReadSettings()), "mig: expected a number from 0 to 7, got '8'");
  setenv("HPO_EMULATED_MIG", "3", 1);
  const Settings settings = std::get<Settings>(ReadSettings());
  unsetenv("HPO_EMULATED_MIG");
  unsetenv("HPO_EMULATED_CARDS");
  before == nullptr ? unsetenv("HPO_EMULATED_CARD") : setenv("HPO_EMULATED_CARD", card.c_str(), 1);
  ASSERT_EQ(settings.cards.size(), 6u);
  EXPECT_EQ(settings.cards[0].num_multiprocessors, 36);
  EXPECT_EQ(TotalBytes(settings, 0) >> 20, 13446u);
  EXPECT_EQ(VisibleCards(settings), std::vector<int>{0});
  EXPECT_EQ(CardsShown(settings, "MIG-68706f69"), std::vector<int>{4});
  EXPECT_EQ(CardsShown(settings, "MIG-68706f66,MIG-68706f65"), std::vector<int>{1});
  EXPECT_EQ(CardsShown(settings, "1"), std::vector<int>{3}) << "the first of the second card";
}

}  // namespace
}  // namespace hpo::emulator
