#include "server/http/page_server.h"

#include "absl/strings/str_replace.h"
#include "common/interop/mlflow/http_client.h"
#include "gmock/gmock.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What the whole server does is in tests/integration/page/test_page_api.py.
class PageServerTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    coordinator_.reset();
    CoordinatorOptions options = Options();
    options.http = ListenAddress{.host = "127.0.0.1", .port = 0};
    auto started = Coordinator::Start(options, clock_);
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
  }

  hpo::HttpResponse Ask(const std::string& method, const std::string& path,
                        const std::string& body = "") {
    const auto client = MakeHttpClient(hpo::HttpOptions{.timeout = absl::Seconds(20)});
    auto answer = client->Send(
        hpo::HttpRequest{.method = method, .url = coordinator_->page_url() + path, .body = body});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : hpo::HttpResponse{};
  }
  hpo::HttpResponse Call(const std::string& method, const std::string& body) {
    return Ask("POST", "api/" + method, body);
  }

  SystemClock clock_;
};

TEST_F(PageServerTest, CallsAnyServiceByItsName) {
  EXPECT_EQ(Call("StudyService/ListStudies", "{}").body, "{}\n");
  EXPECT_THAT(Call("AdminService/GetServer", "").body, HasSubstr(coordinator_->page_url()));
  EXPECT_EQ(Call("optuna.StorageService/GetAllStudies", "{}").status, 200);
  const hpo::HttpResponse none = Call("StudyService/GetStudio", "{}");
  EXPECT_EQ(none.status, 501);
  EXPECT_THAT(none.body, AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("GetStudy")));
}

TEST_F(PageServerTest, AStudyGoesInAndOut) {
  const hpo::HttpResponse bad =
      Call("StudyService/CreateStudy", R"({"yaml":"name: [","origin":"a.yaml"})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(bad.body, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("a.yaml")));
  const std::string yaml = absl::StrReplaceAll(kPlainStudy, {{"\n", "\\n"}});
  EXPECT_EQ(
      Call("StudyService/CreateStudy", "{\"yaml\":\"" + yaml + "\",\"request_id\":\"a\"}").status,
      200);
  EXPECT_THAT(Call("StudyService/GetStudy", R"({"name":"plain"})").body,
              HasSubstr("\"train.batch_size\""));
}

TEST_F(PageServerTest, TheNameOfACallerIsWorthNothingFromOutside) {
  const auto channel =
      grpc::CreateChannel(coordinator_->address(), grpc::InsecureChannelCredentials());
  const auto stub = v1::StudyService::NewStub(channel);
  hpo::server::Call call;
  call.AddMetadata(kPeerKey, "unix-abstract:hpo-page-0-1");
  v1::ListStudiesResponse response;
  EXPECT_TRUE(stub->ListStudies(&call, v1::ListStudiesRequest(), &response).ok());
}

TEST_F(PageServerTest, OtherMachinesNeedTls) {
  coordinator_.reset();
  CoordinatorOptions options = Options();
  options.http = ListenAddress{.host = "0.0.0.0", .port = 0};
  const auto started = Coordinator::Start(options, clock_);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("add --tls"));
}

}  // namespace
}  // namespace hpo::server
