#include "proto/convert/grpc_status.h"

#include <gtest/gtest.h>

#include "common/protocol/refusal.h"

namespace hpo {
namespace {

TEST(GrpcStatus, CodesAndMessagesSurviveBothWays) {
  for (int code = 1; code <= 16; ++code) {
    SCOPED_TRACE(code);
    const absl::Status status(static_cast<absl::StatusCode>(code), "expected a, got b");
    const grpc::Status wire = ToGrpc(status);
    EXPECT_EQ(static_cast<int>(wire.error_code()), code);
    EXPECT_EQ(wire.error_message(), "expected a, got b");
    EXPECT_EQ(FromGrpc(wire), status);
  }
}

TEST(GrpcStatus, ARefusalSurvivesBothWays) {
  for (const RefusalReason reason :
       {RefusalReason::kSuperseded, RefusalReason::kUnknownTrial, RefusalReason::kAnotherDatabase,
        RefusalReason::kConfiguration}) {
    const Refusal refusal{reason, "0123abcd"};
    EXPECT_EQ(RefusalOf(FromGrpc(ToGrpc(WithRefusal(absl::AbortedError("x"), refusal)))), refusal);
  }
  EXPECT_EQ(RefusalOf(FromGrpc(ToGrpc(absl::AbortedError("x")))), std::nullopt);
}

TEST(GrpcStatus, DetailsOfAnotherProgramAreNoRefusal) {
  for (const char* details : {"garbage", "\x08\x0a", "\x1a\x02\x0a\x00"}) {
    const absl::Status status =
        FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "no such study", details));
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(RefusalOf(status), std::nullopt);
  }
}

TEST(GrpcStatus, OkStaysOk) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(GrpcStatus, NamesMeanTheSame) {
  EXPECT_EQ(ToGrpc(absl::AbortedError("x")).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ToGrpc(absl::NotFoundError("x")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ToGrpc(absl::UnavailableError("x")).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace hpo
