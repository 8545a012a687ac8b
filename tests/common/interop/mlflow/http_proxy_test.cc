#include "common/interop/mlflow/http_proxy.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<std::optional<HttpProxy>> Proxy(const std::string& scheme, const std::string& host,
                                               const Variables& variables) {
  return ProxyFor(scheme, host, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

TEST(HttpProxy, IsTheOneOfTheRequestsScheme) {
  const HttpProxy a{.host = "a", .port = 3128};
  const HttpProxy b{.host = "b", .port = 8080};
  struct {
    std::string scheme;
    Variables variables;
    std::optional<HttpProxy> expected;
  } const cases[] = {
      {"http", {}, std::nullopt},
      {"http", {{"http_proxy", "http://a:3128"}, {"https_proxy", "b:8080"}}, a},
      {"https", {{"http_proxy", "http://a:3128"}, {"https_proxy", "b:8080"}}, b},
      {"https", {{"HTTPS_PROXY", "http://b:8080/"}}, b},
      {"http", {{"HTTP_PROXY", "http://a:3128"}}, std::nullopt},
      {"http", {{"https_proxy", "http://a:3128"}}, std::nullopt},
      {"http", {{"ALL_PROXY", "a:3128"}}, a},
      {"https", {{"all_proxy", "a:3128"}, {"https_proxy", "b:8080"}}, b},
      {"http", {{"http_proxy", "a"}}, HttpProxy{.host = "a", .port = 1080}},
      {"http",
       {{"http_proxy", "http://me:se:c@ret@a:3128"}},
       HttpProxy{.host = "a", .port = 3128, .user = "me", .password = "se:c@ret"}},
  };
  for (const auto& [scheme, variables, expected] : cases) {
    SCOPED_TRACE(variables.empty() ? "" : variables.begin()->first);
    const auto proxy = Proxy(scheme, "mlflow.example.org", variables);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    EXPECT_EQ(*proxy, expected);
  }
}

TEST(HttpProxy, IsNotAskedForWhatNoProxyLists) {
  const std::pair<std::string, bool> cases[] = {
      {"mlflow.example.org", false}, {"localhost,.example.org", false}, {"example.org", false},
      {"EXAMPLE.ORG", false},        {"a, example.org", false},         {"*", false},
      {"ample.org", true},           {"flow.example.org", true},        {"", true}};
  for (const auto& [exceptions, expected] : cases) {
    const auto proxy =
        Proxy("http", "mlflow.example.org", {{"http_proxy", "a:1"}, {"NO_PROXY", exceptions}});
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    EXPECT_EQ(proxy->has_value(), expected) << exceptions;
  }
}

TEST(HttpProxy, AValueThatIsNoneIsNamedWithoutItsPassword) {
  for (const char* bad : {"socks5://a:1", "http://", "a:0", "a:70000", "a:x", "http://a/b"}) {
    const absl::Status status = Proxy("http", "h", {{"http_proxy", bad}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("http_proxy: expected http://"));
  }
  const absl::Status status = Proxy("http", "h", {{"http_proxy", "me:secret@a:x"}}).status();
  EXPECT_EQ(status.message().find("secret"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace hpo
