#include "server/http/metrics_endpoint.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/interop/mlflow/http_client.h"
#include "gmock/gmock.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1";

absl::StatusOr<HttpResponse> Scrape(const std::string& url) {
  const auto client = MakeHttpClient(HttpOptions{.timeout = absl::Seconds(10)});
  return client->Send(HttpRequest{.method = "GET", .url = url});
}

std::unique_ptr<MetricsEndpoint> StartSaying(const std::string& text) {
  auto started = MetricsEndpoint::Start({.host = kHost, .port = 0}, [text] { return text; });
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

TEST(MetricsEndpoint, AnswersAtItsPathAlone) {
  const auto endpoint = StartSaying("hpo_build_info 1\n");
  ASSERT_NE(endpoint, nullptr);
  const auto answer = Scrape(endpoint->url());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hpo_build_info 1\n");
  const auto elsewhere = Scrape(endpoint->url() + "/secret");
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(elsewhere->status, 404);
}

TEST(MetricsEndpoint, APortThatIsInUseIsRefused) {
  ListenAddress taken{.host = kHost, .port = 0};
  const absl::StatusOr<int> socket = BindAndListen(taken);
  ASSERT_TRUE(socket.ok()) << socket.status();
  const auto refused = MetricsEndpoint::Start(taken, [] { return std::string(); });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("is in use"));
  ::close(*socket);
}

TEST(MetricsEndpoint, EndsAtOnceHoweverShortItLived) {
  for (int i = 0; i < 20; ++i) ASSERT_NE(StartSaying(""), nullptr);
}

class CoordinatorMetricsTest : public CoordinatorFixture {};

TEST_F(CoordinatorMetricsTest, TellsOfTheServersStudies) {
  coordinator_.reset();
  CoordinatorOptions options = Options();
  options.metrics = ListenAddress{.host = kHost, .port = 0};
  Start(options);
  ASSERT_TRUE(Create(kPlainStudy).ok());
  ASSERT_TRUE(Acquire(Register(), "a1").has_assignment());
  const auto answer = Scrape(coordinator_->metrics_url());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->body, HasSubstr("\nhpo_trials{study=\"plain\",state=\"running\"} 1\n"));
  EXPECT_THAT(answer->body, HasSubstr("\nhpo_workers{study=\"plain\",state=\"busy\"} 1\n"));
}

}  // namespace
}  // namespace hpo::server
