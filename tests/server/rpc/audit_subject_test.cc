#include "server/rpc/audit_subject.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "hpo/v1/fleet.pb.h"
#include "hpo/v1/study.pb.h"

namespace hpo::server {
namespace {

TEST(AuditSubject, NamesTheWorkersThatAreDrained) {
  v1::DrainWorkersRequest request;
  request.add_names("a");
  request.add_names("b c");
  EXPECT_EQ(SubjectOf(request), "names=a,\"b c\"");
  request.clear_names();
  request.set_all(true);
  EXPECT_EQ(SubjectOf(request), "all=true");
  request.clear_all();
  for (int i = 0; i < 25; ++i) request.add_names(absl::StrCat(i));
  EXPECT_NE(SubjectOf(request).find("19,and 5 more"), std::string::npos) << SubjectOf(request);
}

TEST(AuditSubject, HasANumberOnlyWhereTheRequestHasOne) {
  v1::AnnotateRequest request;
  request.set_study("toy");
  EXPECT_EQ(SubjectOf(request), "study=toy");
  request.set_number(0);
  EXPECT_EQ(SubjectOf(request), "study=toy number=0");
}

TEST(AuditSubject, AValueCannotPassForAField) {
  v1::DeleteStudyRequest request;
  request.set_name("a result=OK number=3\n\"x");
  EXPECT_EQ(SubjectOf(request), "name=\"a result=OK number=3\\n\\\"x\"");
}

TEST(AuditSubject, OfAnAnswerItIsTheStudysNameAlone) {
  v1::RestoreStudyResponse answer;
  answer.mutable_study()->set_name("toy");
  EXPECT_EQ(SubjectOfAnswer(answer), "name=toy");
  EXPECT_EQ(SubjectOfAnswer(v1::RestoreStudyResponse()), "");
  EXPECT_EQ(SubjectOfAnswer(v1::AnnotateResponse()), "");
}

}  // namespace
}  // namespace hpo::server
