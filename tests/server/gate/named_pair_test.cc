#include "server/gate/named_pair.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "common/base/ids.h"

namespace hpo::server {
namespace {

TEST(NamedPair, TheSecondEndKnowsTheNameOfTheFirst) {
  const std::string name = "hpo-test-" + RandomId();
  const auto ends = NamedPair(name);
  ASSERT_TRUE(ends.ok()) << ends.status();
  sockaddr_un peer{};
  socklen_t size = sizeof(peer);
  ASSERT_EQ(getpeername(ends->second, reinterpret_cast<sockaddr*>(&peer), &size), 0);
  EXPECT_EQ(std::string(peer.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1), name);
  // As a program would that took the name before.
  EXPECT_EQ(NamedPair(name).status().code(), absl::StatusCode::kAlreadyExists);
  close(ends->first);
  close(ends->second);
}

TEST(PairOfFreeName, AsksForAnotherNameWhereSomebodyHasOne) {
  const std::string taken = "hpo-test-" + RandomId();
  const auto others = NamedPair(taken);
  ASSERT_TRUE(others.ok()) << others.status();
  int asked = 0;
  const auto ends = PairOfFreeName([&]() -> absl::StatusOr<std::string> {
    return ++asked < 4 ? taken : "hpo-test-" + RandomId();
  });
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_EQ(asked, 4);

  asked = 0;
  const auto always = [&]() -> absl::StatusOr<std::string> {
    ++asked;
    return taken;
  };
  EXPECT_EQ(PairOfFreeName(always).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(asked, 4);
  const auto refused = []() -> absl::StatusOr<std::string> {
    return absl::ResourceExhaustedError("too many");
  };
  EXPECT_EQ(PairOfFreeName(refused).status().code(), absl::StatusCode::kResourceExhausted);
  for (const int one : {others->first, others->second, ends->first, ends->second}) close(one);
}

}  // namespace
}  // namespace hpo::server
