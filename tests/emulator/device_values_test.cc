#include "emulator/device_values.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::emulator {
namespace {

using ::testing::Optional;

// Addresses are only compared: nothing is at them.
const char* At(size_t offset) { return reinterpret_cast<const char*>(0x7f0000000000 + offset); }

TEST(DeviceValues, AreReadBackWholeInPartsAndAcrossRanges) {
  DeviceValues values;
  EXPECT_EQ(values.Find(At(0), 4), std::nullopt);
  values.Remember(At(0), "abcd");
  values.Remember(At(4), "efgh");
  values.Remember(At(9), "jk");
  EXPECT_THAT(values.Find(At(0), 4), Optional(std::string("abcd")));
  EXPECT_THAT(values.Find(At(1), 2), Optional(std::string("bc")));
  EXPECT_THAT(values.Find(At(2), 5), Optional(std::string("cdefg")));
  EXPECT_THAT(values.Find(At(10), 1), Optional(std::string("k")));
  EXPECT_EQ(values.Find(At(4), 6), std::nullopt) << "the byte at 8 is not known";
  EXPECT_EQ(values.Find(At(10), 2), std::nullopt);
  EXPECT_THAT(values.Find(At(100), 0), Optional(std::string()));
}

TEST(DeviceValues, ALaterWriteTakesThePlaceOfItsRangeOnly) {
  DeviceValues values;
  values.Remember(At(0), "abcdefgh");
  values.Remember(At(2), "XY");
  EXPECT_THAT(values.Find(At(0), 8), Optional(std::string("abXYefgh")));
  values.Remember(At(0), "Z");
  values.Remember(At(7), "12");
  EXPECT_THAT(values.Find(At(0), 9), Optional(std::string("ZbXYefg12")));
}

TEST(DeviceValues, AForgottenRangeIsAHole) {
  DeviceValues values;
  values.Remember(At(0), "abcdefgh");
  values.Forget(At(3), 2);
  EXPECT_EQ(values.Find(At(0), 8), std::nullopt);
  EXPECT_THAT(values.Find(At(0), 3), Optional(std::string("abc")));
  EXPECT_THAT(values.Find(At(5), 3), Optional(std::string("fgh")));
  values.ForgetAll();
  EXPECT_EQ(values.Find(At(5), 3), std::nullopt);
}

TEST(DeviceValues, ACopyCarriesWhatIsKnownAndForgetsTheRest) {
  DeviceValues values;
  values.Remember(At(0), "abc");
  values.Remember(At(4), "efg");
  values.Remember(At(100), "01234567");
  values.Copy(At(100), At(0), 7);
  EXPECT_THAT(values.Find(At(100), 3), Optional(std::string("abc")));
  EXPECT_EQ(values.Find(At(103), 1), std::nullopt);
  EXPECT_THAT(values.Find(At(104), 4), Optional(std::string("efg7")));
  EXPECT_THAT(values.Find(At(0), 3), Optional(std::string("abc")));

  values.Remember(At(0), "abcdef");
  values.Copy(At(2), At(0), 6);  // ranges that overlap
  EXPECT_THAT(values.Find(At(0), 8), Optional(std::string("ababcdef")));
}

TEST(DeviceValues, WhatIsExpectedArrivesWhenItIsReadUnlessItIsWrittenBefore) {
  DeviceValues values;
  int num_arrived = 0;
  const auto arrive = [&]() -> std::optional<std::string> {
    ++num_arrived;
    return "abcd";
  };
  values.Expect(At(0), 4, arrive);
  values.Expect(At(8), 4, arrive);
  values.Expect(At(16), 4, arrive);
  values.Remember(At(6), "xyz");
  EXPECT_EQ(values.Find(At(10), 1), std::nullopt) << "a part of it was written";
  EXPECT_EQ(values.Find(At(4), 2), std::nullopt);
  EXPECT_EQ(num_arrived, 0);
  EXPECT_THAT(values.Find(At(1), 2), Optional(std::string("bc")));
  EXPECT_THAT(values.Find(At(0), 4), Optional(std::string("abcd")));
  EXPECT_EQ(num_arrived, 1);
  values.Copy(At(100), At(16), 2);
  EXPECT_THAT(values.Find(At(100), 2), Optional(std::string("ab")));
  EXPECT_EQ(num_arrived, 2);
  values.Expect(At(0), 4, arrive);
  values.ForgetAll();
  EXPECT_EQ(values.Find(At(0), 4), std::nullopt);
  EXPECT_EQ(num_arrived, 2);
}

TEST(DeviceValues, AreBounded) {
  DeviceValues values;
  const std::string longest(DeviceValues::kLongest, 'a');
  values.Remember(At(0), longest);
  EXPECT_THAT(values.Find(At(0), longest.size()), Optional(longest));
  values.Remember(At(0), longest + "a");
  EXPECT_EQ(values.Find(At(0), 1), std::nullopt) << "what is longer is forgotten, not kept";

  constexpr size_t kNumRanges = DeviceValues::kMost / DeviceValues::kLongest;
  for (size_t i = 0; i < kNumRanges; ++i) values.Remember(At(i << 20), longest);
  EXPECT_THAT(values.Find(At(0), 1), Optional(std::string("a")));
  values.Remember(At(kNumRanges << 20), "b");
  EXPECT_EQ(values.Find(At(0), 1), std::nullopt);
  EXPECT_THAT(values.Find(At(kNumRanges << 20), 1), Optional(std::string("b")));
}

TEST(DeviceValues, AreSharedByWhatTheProcessLoads) {
  hpoEmulatedRemember(At(0), "abcd", 4);
  EXPECT_THAT(KnownBytes(At(1), 3), Optional(std::string("bcd")));
  char out[4] = {};
  EXPECT_EQ(hpoEmulatedKnownBytes(At(0), out, 4), 1);
  EXPECT_EQ(std::string(out, 4), "abcd");
  Forget(At(3), 1);
  EXPECT_EQ(hpoEmulatedKnownBytes(At(0), out, 4), 0);
}

}  // namespace
}  // namespace hpo::emulator
