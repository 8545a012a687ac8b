#include "common/command_line/server_address.h"

#include <gtest/gtest.h>

namespace hpo {
namespace {

TEST(ServerAddress, AHostWithoutAPortGetsTheDefaultOne) {
  const std::pair<const char*, const char*> cases[] = {{"localhost", "localhost:50051"},
                                                       {"10.0.0.7", "10.0.0.7:50051"},
                                                       {"::1", "[::1]:50051"},
                                                       {"[::1]", "[::1]:50051"},
                                                       {"localhost:7", "localhost:7"},
                                                       {"[::1]:7", "[::1]:7"},
                                                       {"unix:/run/hpo", "unix:/run/hpo"},
                                                       {"dns:///host:7", "dns:///host:7"},
                                                       {"", ""}};
  for (const auto& [given, address] : cases) EXPECT_EQ(WithDefaultPort(given), address);
}

}  // namespace
}  // namespace hpo
