#include "server/http/origin_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/request_target.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

RequestHead From(const std::map<std::string, std::string>& headers, bool has_tls = false) {
  RequestHead head;
  head.method = "GET";
  head.path = "/api/session";
  head.headers = headers;
  head.has_tls = has_tls;
  return head;
}

TEST(OriginCheck, KnowsTheNamesOfThisServer) {
  const std::vector<std::string> names = {"node7.lab"};
  const std::pair<const char*, absl::StatusCode> cases[] = {
      {"localhost", absl::StatusCode::kOk},
      {"LOCALHOST:8080", absl::StatusCode::kOk},
      {"127.0.0.1:1", absl::StatusCode::kOk},
      {"[::1]:8080", absl::StatusCode::kOk},
      {"Node7.lab:65535", absl::StatusCode::kOk},
      {"node7.lab.evil.example", absl::StatusCode::kPermissionDenied},
      {"localhost.evil.example:8080", absl::StatusCode::kPermissionDenied},
      {"127.0.0.1.nip.io", absl::StatusCode::kPermissionDenied},
      {"", absl::StatusCode::kInvalidArgument},
      {"localhost:0", absl::StatusCode::kInvalidArgument},
      {"localhost:99999", absl::StatusCode::kInvalidArgument},
      {"a b", absl::StatusCode::kInvalidArgument},
      {"localhost@evil.example", absl::StatusCode::kInvalidArgument},
      {"[::1", absl::StatusCode::kInvalidArgument}};
  for (const auto& [host, code] : cases) {
    EXPECT_EQ(CheckOrigin(From({{"host", host}}), names).code(), code) << host;
  }
}

TEST(OriginCheck, TakesThePageItselfAlone) {
  EXPECT_TRUE(
      CheckOrigin(From({{"host", "localhost:80"}, {"origin", "http://localhost:80"}}), {}).ok());
  EXPECT_TRUE(
      CheckOrigin(From({{"host", "10.0.0.1"}, {"origin", "https://10.0.0.1"}}, true), {}).ok());
  for (const char* origin :
       {"http://localhost", "https://localhost:80", "null", "http://evil.example"}) {
    const absl::Status refused =
        CheckOrigin(From({{"host", "localhost:80"}, {"origin", origin}}), {});
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << origin;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("http://localhost:80"));
  }
}

TEST(RequestTarget, DecodesPathAndQuery) {
  RequestHead head;
  ASSERT_TRUE(ReadTarget("/studies/a%20b%2Fc?token=x%2By&where=lr%3E1+2&flag", head));
  EXPECT_EQ(head.path, "/studies/a b/c");
  EXPECT_EQ(head.Query("token"), "x+y");
  EXPECT_EQ(head.Query("where"), "lr>1 2");
  EXPECT_EQ(head.Query("flag"), "");
  EXPECT_EQ(head.Query("none"), std::nullopt);
}

TEST(RequestTarget, NoPathLeadsOutOfWhereItBegins) {
  for (const char* target :
       {"", "*", "http://evil.example/", "/..", "/a/../b", "/%2e%2e/x", "/a/%2E./b", "/a\\..\\b",
        "/a%5c..%5cb", "/%00", "/a%0d%0ab", "/%", "/%1", "/%gg", "/x?a=%", "/./x"}) {
    RequestHead head;
    EXPECT_FALSE(ReadTarget(target, head)) << target;
  }
}

TEST(RequestTarget, EncodesWhatItReads) {
  const std::string text = "a b/\xC3\xA9?&=%";
  RequestHead head;
  ASSERT_TRUE(ReadTarget("/" + PercentEncoded(text), head));
  EXPECT_EQ(head.path, "/" + text);
}

}  // namespace
}  // namespace hpo::server
