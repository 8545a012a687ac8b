#include "memory/replay/recorded_events.h"

#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RecordedEvent::Kind;

constexpr char kStart[] =
    "hpo-allocation-events 1\nsettings\ndevice 0\npool 0 shared\n";  // 4 lines

std::string MessageOf(const std::string& text) {
  const auto read = ReadRecordedEvents(text);
  const auto* const complaint = std::get_if<std::string>(&read);
  return complaint == nullptr ? "taken" : *complaint;
}

TEST(RecordedEvents, AreReadAsTheyAreWritten) {
  const auto read = ReadRecordedEvents(
      "hpo-allocation-events 1\n"
      "settings expandable_segments:True\n"
      "lost 3 allocations of GPU 1 are not in torch's history\n"
      "device 0\n"
      "gpu 80 108 2048 0\n"
      "fraction 0.5\n"
      "pool 0 shared\n"
      "pool 1 private\n"
      "w\n"
      "a 4000 0\n"
      "m first step\n"
      "s 64 24 128\n"
      "a 0 1 7\n"
      "f 0\n"
      "o 99999999999999999 0\n"
      "e\n"
      "r 1\n"
      "device 3\n"
      "pool 0 shared\n"
      "a 1 0\n"
      "site 7 train.py:12 <module>\n"
      "end 21\n");
  const auto* const devices = std::get_if<std::vector<RecordedDevice>>(&read);
  ASSERT_NE(devices, nullptr) << std::get<std::string>(read);
  ASSERT_EQ(devices->size(), 2u);
  const RecordedDevice& first = devices->front();
  EXPECT_EQ(first.memory_fraction, 0.5);
  EXPECT_EQ(first.gpu, (GpuShape{80, 108, 2048}));
  EXPECT_THAT(first.workspaces, ElementsAre(0u));
  EXPECT_THAT(first.shared_sums, ElementsAre(SharedSum{1, 64, 24, 128}));
  EXPECT_THAT(first.private_pools, ElementsAre(false, true));
  EXPECT_EQ(first.num_allocations, 2u);
  EXPECT_THAT(first.events,
              ElementsAre(RecordedEvent{Kind::kAllocate, 0, 4000},
                          RecordedEvent{Kind::kAllocate, 1, 0}, RecordedEvent{Kind::kFree, 0, 0},
                          // No GPU has so much, and no sum of sizes overflows.
                          RecordedEvent{Kind::kOutOfMemory, 0, int64_t{1} << 50},
                          RecordedEvent{Kind::kEmptyCache, 0, 0},
                          RecordedEvent{Kind::kEmptyPrivate, 1, 0}));
  EXPECT_EQ(devices->back(), (RecordedDevice{.number = 3,
                                             .private_pools = {false},
                                             .events = {{Kind::kAllocate, 0, 1}},
                                             .num_allocations = 1}));
}

TEST(RecordedEvents, ThatAreCutOffAreRejected) {
  const std::string start = kStart;
  EXPECT_EQ(MessageOf(start + "a 1 0\nend 5\n"), "taken");
  EXPECT_EQ(
      MessageOf(start + "a 1 0\n"),
      "line 5: expected 'end NUMBER' at the end of the recording, which is cut off, got 'a 1 0'");
  EXPECT_EQ(MessageOf(start + "end 5\n"), "line 5: expected 'end 4', got 'end 5'");
  EXPECT_THAT(MessageOf(""), HasSubstr("line 1: expected 'hpo-allocation-events 1', got ''"));
  EXPECT_THAT(MessageOf("hpo-allocation-events 2\n"), HasSubstr("got 'hpo-allocation-events 2'"));
}

TEST(RecordedEvents, ThatAreNotAsDescribedAreRejectedWithTheLine) {
  const char* const cases[] = {
      "a 1 1",   // no such pool
      "a -1 0",  //
      "a 1",     //
      "a 99999999999999999999 0",
      "a 2000000000000000 0",
      "f 0",            // nothing is allocated
      "r 5",            //
      "x",              //
      "pool 2 shared",  // not the next one
      "pool 1 of a graph",
      "device",         //
      "fraction much",  //
      "fraction -1",
      "gpu 80 108",
      "gpu 80 99999999999 2048 0",
      "s 0 1 1",
      "s 1 1 99999999999",
      "s 1 1",
  };
  for (const char* const line : cases) {
    SCOPED_TRACE(line);
    EXPECT_THAT(MessageOf(std::string(kStart) + line + "\nend 5\n"),
                HasSubstr("line 5: expected "));
  }
  EXPECT_THAT(MessageOf(std::string(kStart) + "a 1 0\nf 0\nf 0\nend 7\n"),
              HasSubstr("line 7: expected an event of a known pool or block, got 'f 0'"));
  EXPECT_THAT(MessageOf("hpo-allocation-events 1\na 1 0\nend 2\n"),
              HasSubstr("line 2: expected 'device NUMBER' before the first event"));
}

}  // namespace
}  // namespace hpo::memory
