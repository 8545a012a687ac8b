#include "cli/commands/open_command.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

TEST(PageAddress, NamesAreEncodedAndTokensCome) {
  constexpr char kPage[] = "http://127.0.0.1:8080/";
  EXPECT_EQ(PageAddress(kPage, "", ""), kPage);
  EXPECT_EQ(PageAddress(kPage, "criteria-2_a.b", ""),
            "http://127.0.0.1:8080/studies/criteria-2_a.b");
  EXPECT_EQ(PageAddress(kPage, "a b/c?d#e%é", ""),
            "http://127.0.0.1:8080/studies/a%20b%2fc%3fd%23e%25%c3%a9");
  EXPECT_EQ(PageAddress("https://gpu1:8443/", "s", "secret_-1"),
            "https://gpu1:8443/studies/s?token=secret_-1");
  EXPECT_EQ(PageAddress("https://gpu1:8443/", "", "secret"), "https://gpu1:8443/?token=secret");
}

class OpenTest : public server::CoordinatorFixture {
 protected:
  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.begin(), "open");
    words.insert(words.end(), {"--print", "--server", coordinator_->address()});
    return RunProgram(std::move(words));
  }
};

TEST_F(OpenTest, PrintsWhereThePageIs) {
  coordinator_.reset();
  server::CoordinatorOptions options = Options();
  options.http = ListenAddress{.host = "127.0.0.1", .port = 0};
  Start(options);
  ASSERT_TRUE(Create(server::kPlainStudy).ok());
  const std::string page = coordinator_->page_url();
  EXPECT_EQ(Run({"plain"}).out, page + "studies/plain\n");
  const ProgramResult absent = Run({"absent"});
  EXPECT_EQ(absent.status, 3);
  EXPECT_EQ(absent.out, "");
}

TEST_F(OpenTest, AServerWithoutAPageSaysHowToGetOne) {
  const ProgramResult none = Run({});
  EXPECT_EQ(none.status, 4);
  EXPECT_THAT(none.err, HasSubstr("hpo-server --http 127.0.0.1:8080"));
}

}  // namespace
}  // namespace hpo::cli
