#include "cli/client/advice.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

TEST(WithServer, CommandsThatAskAServerNameIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"paused; to go on: hpo study resume toy",
       "paused; to go on: hpo study resume toy --server unix:/a"},
      {"run: hpo-worker --gpu 0 (or: hpo-worker --device cpu)",
       "run: hpo-worker --gpu 0 --server unix:/a (or: hpo-worker --device cpu --server unix:/a)"},
      {"hpo best", "hpo best --server unix:/a"},
      {"hpo study stop a, hpo best --n 5\n",
       "hpo study stop a --server unix:/a, hpo best --n 5 --server unix:/a\n"},
      {"hpo-worker", "hpo-worker --server unix:/a"},
      // As it stands already, or asks no server.
      {"hpo-worker --server b:1 --gpu 0", "hpo-worker --server b:1 --gpu 0"},
      {"hpo admin restore BACKUP --db x", "hpo admin restore BACKUP --db x"},
      {"~/hpo/hpo-worker-2 of hpo studies", "~/hpo/hpo-worker-2 of hpo studies"},
      {"to go on: hpo study edit toy FILE, with more values in FILE",
       "to go on: hpo study edit toy FILE --server unix:/a, with more values in FILE"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(WithServer(text, "unix:/a"), expected);
    EXPECT_EQ(WithServer(text, "127.0.0.1:50051"), text);
  }
}

TEST(WithoutGoingOn, LeavesTheReason) {
  EXPECT_EQ(WithoutGoingOn("stopped; to go on: hpo study resume toy"), "stopped");
  EXPECT_EQ(WithoutGoingOn("all failed; to go on: hpo trial retry --failed"), "all failed");
  EXPECT_EQ(WithoutGoingOn("its budget is used up"), "its budget is used up");
}

}  // namespace
}  // namespace hpo::cli
