#include "server/gate/address_group.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hpo::server {
namespace {

TEST(AddressGroup, IsAHostOrANetworkOfIPv6) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.0.1:5", "10.0.0.1"},
      {"10.0.0.2:5", "10.0.0.2"},
      {"[2001:db8:1:2:3:4:5:6]:5", "2001:db8:1:2::/64"},
      {"[2001:db8:1:2::9]:70", "2001:db8:1:2::/64"},
      {"[2001:db8:1:3::9]:70", "2001:db8:1:3::/64"},
      {"[::ffff:10.0.0.1]:5", "10.0.0.1"},
      {"[::1]:5", "::/64"},
      {"gone", "gone"},
      {"unix", "unix"},
  };
  for (const auto& [address, group] : cases) EXPECT_EQ(AddressGroupOf(address), group) << address;
}

}  // namespace
}  // namespace hpo::server
