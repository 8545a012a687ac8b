#include "proto/convert/request_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "google/protobuf/dynamic_message.h"
#include "hpo/v1/analysis.pb.h"
#include "hpo/v1/fleet.pb.h"
#include "hpo/v1/study.pb.h"
#include "hpo/v1/worker.pb.h"

namespace hpo {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;

// Goes down every field of every request and calls `visit` with a request, the message in it that
// has the field, and the field.
using Visit = std::function<void(const Message& request, Message& holder, const FieldDescriptor&)>;

void Walk(Message& request, Message& holder, std::set<const Descriptor*>& above,
          const Visit& visit) {
  const Descriptor& type = *holder.GetDescriptor();
  if (!above.insert(&type).second) return;
  const auto& in = *holder.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    visit(request, holder, field);
    in.ClearField(&holder, &field);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Message& inner = field.is_repeated() ? *in.AddMessage(&holder, &field)
                                           : *in.MutableMessage(&holder, &field);
      Walk(request, inner, above, visit);
    }
    in.ClearField(&holder, &field);
  }
  above.erase(&type);
}

int WalkAllRequests(const Visit& visit) {
  int num_requests = 0;
  for (const auto* file : {v1::CreateStudyRequest::descriptor()->file(),
                           v1::RegisterWorkerRequest::descriptor()->file(),
                           v1::DrainWorkersRequest::descriptor()->file(),
                           v1::GetImportanceRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const Descriptor* type = service->method(i)->input_type();
      std::unique_ptr<Message> request(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
      std::set<const Descriptor*> above;
      Walk(*request, *request, above, visit);
      ++num_requests;
    }
  }
  return num_requests;
}

void ExpectRefused(const Message& request, const FieldDescriptor& field) {
  const absl::Status status = CheckRequest(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field.full_name();
  if (!absl::EndsWith(field.containing_type()->name(), "Entry")) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(field.name()));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(", got "));
}

// What says how an attempt or a dry run ended is shortened where it is converted.
bool IsShortened(const FieldDescriptor& field) {
  const std::set<std::string> shortened = {"hpo.v1.OutOfMemory.error_message",
                                           "hpo.v1.OutOfMemory.error_traceback",
                                           "hpo.v1.OutOfMemory.phase",
                                           "hpo.v1.Failed.message",
                                           "hpo.v1.Cancelled.reason",
                                           "hpo.v1.StoppedByPruner.pruner",
                                           "hpo.v1.ReleaseTrialRequest.note",
                                           "hpo.v1.HeartbeatRequest.notice",
                                           "hpo.v1.HeartbeatRequest.Lease.log_tail",
                                           "hpo.v1.FinishTrialRequest.log_tail",
                                           "hpo.v1.ReleaseTrialRequest.log_tail",
                                           "hpo.v1.ReportPreflightRequest.message"};
  return shortened.contains(std::string(field.full_name()));
}

TEST(RequestCheck, NoFieldOfAnyRequestTakesWhatIsBeyondItsLimit) {
  int num_fields = 0;
  const int num_requests =
      WalkAllRequests([&](const Message& request, Message& holder, const FieldDescriptor& field) {
        const auto& in = *holder.GetReflection();
        const bool many = field.is_repeated();
        const std::string text((1 << 20) + 1, 'x');
        switch (field.cpp_type()) {
          case FieldDescriptor::CPPTYPE_INT64:
            if (field.full_name() == "hpo.v1.Value.int_value") return;
            for (const int64_t value : {int64_t{std::numeric_limits<int64_t>::min()},
                                        std::numeric_limits<int64_t>::max()}) {
              in.ClearField(&holder, &field);
              many ? in.AddInt64(&holder, &field, value) : in.SetInt64(&holder, &field, value);
              ExpectRefused(request, field);
            }
            break;
          case FieldDescriptor::CPPTYPE_INT32:
            many ? in.AddInt32(&holder, &field, -1) : in.SetInt32(&holder, &field, -1);
            ExpectRefused(request, field);
            break;
          case FieldDescriptor::CPPTYPE_ENUM:
            many ? in.AddEnumValue(&holder, &field, 999) : in.SetEnumValue(&holder, &field, 999);
            ExpectRefused(request, field);
            break;
          case FieldDescriptor::CPPTYPE_STRING:
            if (IsShortened(field)) return;
            many ? in.AddString(&holder, &field, text) : in.SetString(&holder, &field, text);
            ExpectRefused(request, field);
            break;
          case FieldDescriptor::CPPTYPE_DOUBLE:
            if (field.containing_type()->name() == "MetricsEntry") return;
            in.SetDouble(&holder, &field, std::numeric_limits<double>::quiet_NaN());
            ExpectRefused(request, field);
            break;
          default:
            return;
        }
        ++num_fields;
      });
  EXPECT_GE(num_requests, 18);
  EXPECT_GT(num_fields, 200);
}

TEST(RequestCheck, NoListOfAnyRequestIsWithoutALimit) {
  WalkAllRequests([&](const Message& request, Message& holder, const FieldDescriptor& field) {
    if (!field.is_repeated() || field.is_map()) return;
    const auto& in = *holder.GetReflection();
    for (int i = 0; i <= kImportLimit.most; ++i) {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        in.AddMessage(&holder, &field);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        in.AddEnumValue(&holder, &field, 1);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        in.AddInt64(&holder, &field, 1);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
        in.AddInt32(&holder, &field, 1);
      } else {
        in.AddString(&holder, &field, "x");
      }
    }
    ExpectRefused(request, field);
  });
}

TEST(RequestCheck, WhatIsAtItsLimitIsTaken) {
  v1::FinishTrialRequest finish;
  finish.mutable_memory()->set_live_peak_bytes(kNumberLimit.most);
  finish.mutable_outcome()->mutable_failed()->set_message(
      std::string(5 * kErrorTextLimit.most, 'x'));  // shortened
  (*finish.add_measurements()->mutable_metrics())["loss"] =
      std::numeric_limits<double>::quiet_NaN();
  finish.set_session(std::string(kNameLimit.most, 'x'));
  EXPECT_TRUE(CheckRequest(finish).ok());
  v1::WatchStudyRequest watch;
  watch.set_after_sequence(-1);
  EXPECT_TRUE(CheckRequest(watch).ok());
  v1::EnqueueTrialRequest enqueue;
  (*enqueue.mutable_params())["shift"].set_int_value(std::numeric_limits<int64_t>::min());
  (*enqueue.mutable_params())["most"].set_int_value(std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(CheckRequest(enqueue).ok());
}

TEST(RequestCheck, ErrorsNameTheFieldWhatWasExpectedAndWhatCame) {
  v1::RegisterWorkerRequest worker;
  worker.mutable_device()->set_base_bytes(-2);
  v1::ReportMeasurementsRequest report;
  report.add_measurements();
  report.add_measurements()->set_step(-5);
  v1::AcquireTrialRequest acquire;
  acquire.mutable_wait()->set_seconds(-1);
  v1::FinishTrialRequest metric;
  (*metric.mutable_outcome()->mutable_completed()->mutable_metrics())[std::string(300, 'm')] = 0.5;
  v1::HeartbeatRequest beat;
  for (int i = 0; i < 1001; ++i) beat.add_leases();
  v1::ListTrialsRequest list;
  list.set_view(static_cast<v1::TrialView>(7));
  const auto message = [](const Message& request) {
    return std::string(CheckRequest(request).message());
  };
  EXPECT_EQ(message(worker), "device.base_bytes: expected 0 to 9007199254740992, got -2");
  EXPECT_EQ(message(report), "measurements[1].step: expected 0 to 9007199254740992, got -5");
  EXPECT_EQ(message(acquire), "wait.seconds: expected 0 to 315576000000, got -1");
  EXPECT_EQ(message(metric), "outcome.completed.metrics['" + std::string(60, 'm') +
                                 "...'].key: expected at most 200 bytes, got 300: '" +
                                 std::string(60, 'm') + "...'");
  EXPECT_EQ(message(beat), "leases: expected at most 1000 of them, got 1001");
  EXPECT_EQ(message(list), "view: expected one of TrialView, got 7");
}

TEST(RequestCheck, ARangeOfIntegersMayBeNegative) {
  v1::EditStudyRequest edit;
  v1::IntDomain& range = *edit.add_ranges()->mutable_domain()->mutable_int_domain();
  range.set_low(-30);
  range.set_high(-5);
  EXPECT_TRUE(CheckRequest(edit).ok()) << CheckRequest(edit);
  range.set_low(-kNumberLimit.most - 1);
  EXPECT_THAT(std::string(CheckRequest(edit).message()),
              HasSubstr("low: expected -9007199254740992 to 9007199254740992"));
}

}  // namespace
}  // namespace hpo
