#include "server/access/session_owners.h"

#include <gtest/gtest.h>

#include <string>

namespace hpo::server {
namespace {

class SessionOwnersTest : public testing::Test {
 protected:
  static Caller Of(const std::string& name, int64_t token) {
    return {.token = token, .name = name, .role = Role::kWork, .from = "10.0.0.1:5"};
  }
  absl::StatusCode CodeOf(const Caller& caller, const std::string& session) const {
    return owners_.Check(caller, session).code();
  }

  const Caller first_ = Of("work", 1);
  const Caller rotated_ = Of("work", 7);
  const Caller other_ = Of("other", 2);
  const Caller local_{.name = "local"};
  SessionOwners owners_;
};

TEST_F(SessionOwnersTest, ASessionIsOfItsTokenWhateverTheSecret) {
  owners_.Register(first_, {.worker = "a", .instance_key = "a-1"}, "s1");
  EXPECT_EQ(CodeOf(first_, "s1"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(rotated_, "s1"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(local_, "s1"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(other_, "s1"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(other_, "unknown"), absl::StatusCode::kOk);
}

TEST_F(SessionOwnersTest, AProcessOfAnotherTokenCannotBePosedAs) {
  owners_.Register(first_, {.worker = "a", .instance_key = "a-1"}, "s1");
  RegisteringProcess same{.worker = "a", .instance_key = "a-1"};
  EXPECT_EQ(owners_.CheckRegister(other_, same).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(owners_.CheckRegister(rotated_, same).ok());
  EXPECT_TRUE(owners_.CheckRegister(local_, same).ok());
}

TEST_F(SessionOwnersTest, NobodySucceedsAProcessOfAnotherToken) {
  owners_.Register(first_, {.worker = "a", .instance_key = "a-1"}, "s1");
  RegisteringProcess next{.worker = "a", .instance_key = "a-2", .predecessor = "a-1"};
  EXPECT_TRUE(owners_.CheckRegister(first_, next).ok());
  EXPECT_EQ(next.predecessor, "a-1");
  EXPECT_TRUE(owners_.CheckRegister(other_, next).ok());
  EXPECT_EQ(next.predecessor, "");
}

TEST_F(SessionOwnersTest, ANameThatWasTakenOverIsOfTheNewToken) {
  owners_.Register(first_, {.worker = "a", .instance_key = "a-1"}, "s1");
  owners_.Register(other_, {.worker = "a", .instance_key = "a-2"}, "s2");
  EXPECT_EQ(CodeOf(first_, "s2"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(other_, "s2"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(other_, "s1"), absl::StatusCode::kOk);  // unknown by now
}

TEST_F(SessionOwnersTest, ASessionOfThisMachineIsNoToken) {
  owners_.Register(local_, {.worker = "a", .instance_key = "a-1"}, "s1");
  EXPECT_EQ(CodeOf(other_, "s1"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(Of("local", 3), "s1"), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace hpo::server
