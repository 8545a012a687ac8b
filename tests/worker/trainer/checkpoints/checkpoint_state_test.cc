#include "worker/trainer/checkpoints/checkpoint_state.h"

#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/json_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/checkpoints/checkpoint_manifest.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

CheckpointState SomeCheckpoint() {
  CheckpointState state{.optimizer_steps = 75,
                        .identity = {{"seed", 7}, {"params", {{"lr", 0.1}}}}};
  state.loop.step = 75;
  state.loop.loss_sum = 0.1 + 0.2;
  state.loop.evaluation_rows = 8;
  state.loop.plan = {.effective_batch = 32, .micro_batch = 8};
  state.loop.measurements = {{.step = 50, .epoch = 1.5, .metrics = {{"f1", 2.0 / 3.0}}}};
  return state;
}

TEST(CheckpointState, ComesBackFromItsLine) {
  const std::string line = EncodeCheckpointState(SomeCheckpoint());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto again = DecodeCheckpointState(line);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->optimizer_steps, 75);
  EXPECT_EQ(again->loop, SomeCheckpoint().loop);
  EXPECT_EQ(again->identity, SomeCheckpoint().identity);
}

TEST(CheckpointState, WhatIsWrongIsNamed) {
  const std::string good = EncodeCheckpointState(SomeCheckpoint());
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"\"optimizer_steps\":75", "\"optimizer_steps\":-1"},
       "optimizer_steps: expected at least 0"},
      {{"\"optimizer_steps\":75", "\"optimizer_steps\":\"x\""}, "state.json.optimizer_steps"},
      {{"\"identity\":{", "\"identity\":3,\"x\":{"}, "state.json.identity: expected an object"},
      {{"\"evaluation_rows\":8", "\"evaluation_rows\":0"}, "evaluation_rows"},
      {{"\"f1\":0.6", "\"f1\":\"0.6\",\"x\":0.6"}, "[0]: metrics.f1: expected a number"},
      {{"\"version\":1", "\"version\":2"}, "expected version 1, found 2"},
      {{"{\"identity\"", "\"identity\""}, "expected JSON"}};
  for (const auto& [change, message] : cases) {
    const std::string text = absl::StrReplaceAll(good, {{change.first, change.second}});
    SCOPED_TRACE(text);
    ASSERT_NE(text, good);
    const auto state = DecodeCheckpointState(text);
    EXPECT_THAT(std::string(state.status().message()), HasSubstr(message));
  }
}

TEST(CheckpointState, AnotherConfigurationIsToldByItsFirstDifference) {
  const nlohmann::json expected = SomeCheckpoint().identity;
  EXPECT_TRUE(CheckIdentity(expected, expected).ok());
  nlohmann::json more = expected;
  more["of a newer version"] = true;
  EXPECT_TRUE(CheckIdentity(more, expected).ok());
  nlohmann::json other = expected;
  other["seed"] = 8;
  EXPECT_THAT(std::string(CheckIdentity(other, expected).message()),
              HasSubstr("another configuration: seed: expected 7, found 8"));
  other.erase("seed");
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckIdentity(other, expected)));
  EXPECT_FALSE(CheckIdentity(nlohmann::json::array(), expected).ok());
}

TEST(CheckpointManifest, ComesBackFromItsLine) {
  const CheckpointManifest manifest = {{"state.json", {.size = 3, .crc32 = 0xffffffff}},
                                       {"best/model.safetensors", {.size = int64_t{1} << 40}},
                                       {"a..b/..c", {}}};
  const auto again = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, manifest);
  EXPECT_TRUE(DecodeManifest(EncodeManifest({}))->empty());
}

TEST(CheckpointManifest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected JSON"},
      {"[1]", "expected an object"},
      {R"({"version":1})", "files: missing"},
      {R"({"version":3,"files":{}})", "version: expected 1, got 3"},
      {R"({"version":1,"files":[]})", "files: expected an object, got an array"},
      {R"({"version":1,"files":{"a":7}})", "a: expected an object"},
      {R"({"version":1,"files":{"a":{"size":1}}})", "a: crc32: missing"},
      {R"({"version":1,"files":{"a":{"size":-1,"crc32":0}}})", "expected a size >= 0"},
      {R"({"version":1,"files":{"a":{"size":1,"crc32":4294967296}}})",
       "of 32 bits, got 1 and 4294"},
      {R"({"version":1,"files":{"/etc/x":{"size":1,"crc32":0}}})",
       "within the folder, got '/etc/x'"},
      {R"({"version":1,"files":{"a/../../x":{"size":1,"crc32":0}}})", "got 'a/../../x'"},
      {R"({"version":1,"files":{"..":{"size":1,"crc32":0}}})", "got '..'"},
      {R"({"version":1,"files":{"":{"size":1,"crc32":0}}})", "got ''"}};
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const auto manifest = DecodeManifest(text);
    EXPECT_TRUE(absl::IsInvalidArgument(manifest.status()));
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace hpo::trainer
