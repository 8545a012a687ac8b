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

}  // namespace
}  // namespace hpo::server
