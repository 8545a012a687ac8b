// Tested by tests/server/http/page_server_test.cc.
#include "server/json/json_gateway.h"

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/access/access_control.h"

namespace hpo::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::ServiceDescriptor;

constexpr absl::string_view kOurPackage = "hpo.v1.";

std::unique_ptr<Message> NewMessage(const Descriptor* type) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
}

// protobuf says "INVALID_ARGUMENT:(name): ..." in a text of its own.
absl::Status BadRequest(const Descriptor* type, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("body: expected JSON of ", std::string(type->name()), ", got: ", why));
}

absl::StatusOr<grpc::ByteBuffer> ReadRequest(const Descriptor* type, absl::string_view json) {
  const std::unique_ptr<Message> message = NewMessage(type);
  const absl::string_view text = json.empty() ? "{}" : json;
  const auto read = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), message.get());
  if (!read.ok()) {
    return BadRequest(type, absl::string_view(read.message().data(), read.message().size()));
  }
  const grpc::Slice slice(message->SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> ReadRequests(const JsonMethod& method,
                                                           absl::string_view body) {
  const Descriptor* const type = method.descriptor->input_type();
  std::vector<grpc::ByteBuffer> requests;
  if (!method.takes_stream) {
    HPO_ASSIGN_OR_RETURN(requests.emplace_back(),
                         ReadRequest(type, absl::StripAsciiWhitespace(body)));
    return requests;
  }
  for (const absl::string_view line : absl::StrSplit(body, '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty()) continue;
    HPO_ASSIGN_OR_RETURN(requests.emplace_back(), ReadRequest(type, text));
  }
  return requests;
}

absl::StatusOr<std::string> WriteAnswer(const Descriptor* type, grpc::ByteBuffer& answer) {
  const std::unique_ptr<Message> message = NewMessage(type);
  grpc::ProtoBufferReader reader(&answer);
  if (!message->ParseFromZeroCopyStream(&reader)) {
    return absl::InternalError("an answer of the server cannot be read");
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(*message, &json, options);
  if (!written.ok())
    return absl::InternalError("an answer of the server cannot be written as JSON");
  return json;
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

// The calls under way: whoever makes them waits for their end.
class JsonGateway::Calls {
 public:
  // False: no call is made any more.
  bool Add(grpc::ClientContext* call) {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return false;
    calls_.insert(call);
    return true;
  }
  void Remove(grpc::ClientContext* call) {
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
    for (grpc::ClientContext* const call : calls_) call->TryCancel();
    mutex_.Await(absl::Condition(
        +[](std::set<grpc::ClientContext*>* calls) { return calls->empty(); }, &calls_));
  }

 private:
  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

namespace {

// One call. It owns itself, from Begin to OnDone.
template <typename Calls>
class JsonCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  JsonCall(JsonMethod method, std::vector<grpc::ByteBuffer> requests,
           std::unique_ptr<JsonSink> sink, std::shared_ptr<Calls> calls)
      : method_(std::move(method)),
        requests_(std::move(requests)),
        sink_(std::move(sink)),
        calls_(std::move(calls)) {}

  void Begin(const std::shared_ptr<grpc::Channel>& channel, const std::string& peer,
             absl::Duration limit) {
    if (!calls_->Add(&context_)) {
      sink_->End(absl::UnavailableError("hpo-server is shutting down; try again soon"));
      delete this;
      return;
    }
    context_.AddMetadata(kPeerKey, peer);
    if (!method_.answers_stream) {
      context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit));
    }
    grpc::GenericStub stub(channel);
    stub.PrepareBidiStreamingCall(&context_, method_.path, {}, this);
    AddHold();  // until there is no answer left to read
    WriteNext();
    StartRead(&answer_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      RemoveHold();
      return;
    }
    absl::StatusOr<std::string> json = WriteAnswer(method_.descriptor->output_type(), answer_);
    if (!json.ok()) {
      failure_ = json.status();
      return Next(false);
    }
    sink_->Take(*std::move(json), [this](bool more) { Next(more); });
  }

  void OnDone(const grpc::Status& status) override {
    calls_->Remove(&context_);
    sink_->End(failure_.ok() ? FromGrpcStatus(status) : failure_);
    delete this;
  }

 private:
  void WriteNext() {
    if (next_ == requests_.size()) return;
    const grpc::ByteBuffer& request = requests_[next_++];
    if (next_ == requests_.size()) {
      StartWriteLast(&request, {});
    } else {
      StartWrite(&request);
    }
  }

  void Next(bool more) {
    if (!more) context_.TryCancel();
    answer_.Clear();
    StartRead(&answer_);
  }

  const JsonMethod method_;
  const std::vector<grpc::ByteBuffer> requests_;
  const std::unique_ptr<JsonSink> sink_;
  const std::shared_ptr<Calls> calls_;
  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  size_t next_ = 0;
  absl::Status failure_;
};

}  // namespace

JsonGateway::JsonGateway(std::shared_ptr<grpc::Channel> channel)
    : channel_(std::move(channel)), calls_(std::make_shared<Calls>()) {}

JsonGateway::~JsonGateway() { calls_->Close(); }

absl::StatusOr<JsonMethod> JsonGateway::Find(absl::string_view service, absl::string_view method) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const std::string name(service);
  const ServiceDescriptor* found = pool.FindServiceByName(std::string(kOurPackage) + name);
  if (found == nullptr) found = pool.FindServiceByName(name);
  if (found == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "expected /api/StudyService/..., AnalysisService, FleetService, WorkerService, "
        "AdminService or optuna.StorageService, got the service '",
        service, "'"));
  }
  const auto* const descriptor = found->FindMethodByName(std::string(method));
  if (descriptor == nullptr) {
    std::vector<std::string> methods;
    for (int i = 0; i < found->method_count(); ++i) methods.push_back(found->method(i)->name());
    return absl::UnimplementedError(absl::StrCat("expected a method of ", found->name(), " (",
                                                 absl::StrJoin(methods, ", "), "), got '", method,
                                                 "'"));
  }
  return JsonMethod{.descriptor = descriptor,
                    .path = absl::StrCat("/", found->full_name(), "/", descriptor->name()),
                    .takes_stream = descriptor->client_streaming(),
                    .answers_stream = descriptor->server_streaming()};
}

void JsonGateway::Call(const JsonMethod& method, absl::string_view body, const std::string& peer,
                       absl::Duration limit, std::unique_ptr<JsonSink> sink) {
  absl::StatusOr<std::vector<grpc::ByteBuffer>> requests = ReadRequests(method, body);
  if (requests.ok() && requests->empty()) {
    requests = absl::InvalidArgumentError("body: expected a message a line, got none");
  }
  if (!requests.ok()) {
    sink->End(requests.status());
    return;
  }
  // It owns itself.
  auto* const call = new JsonCall<Calls>(method, *std::move(requests), std::move(sink), calls_);
  call->Begin(channel_, peer, limit);
}

}  // namespace hpo::server
