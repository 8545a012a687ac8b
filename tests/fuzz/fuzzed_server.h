// A server over a real database file that a fuzzer calls: each input is a series of calls, made of
// its bytes. Now and then everything that is stored is read, and the server restarted on its file.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/api/study_api.h"
#include "server/api/worker_api.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/study_service.h"
#include "server/rpc/worker_service.h"
#include "server/scheduler/trial_scheduler.h"
#include "tests/fakes/random_message.h"
#include "tests/fakes/simulated_clock.h"

namespace hpo {

inline constexpr char kFuzzedStudies[][600] = {
    "name: plain\nobjective: {metric: score, direction: maximize}\n"
    "trainer: {task: custom, epochs: 1}\nbudget: {trials: 100000}\nmemory: {policy: off}\n"
    "sampler: {type: random, seed: 1}\npruner: {type: median}\n"
    "parameters: {x: {int: [1, 64]}, y: {choices: [a, b]}}\n",
    "name: bert\nobjective: {metric: macro_f1, direction: maximize}\n"
    "trainer: {task: text-classification, train: t, validation: v, epochs: 1, init: random}\n"
    "budget: {trials: 100000}\nsampler: {type: random, seed: 1}\nparameters:\n"
    "  model.name: {choices: [tiny]}\n  train.batch_size: {choices: [8, 16]}\n"
    "  train.grad_accum: {choices: [1, 2]}\n  tok.max_length: {int: [32, 64]}\n"
    "  train.lr: {float: [1.0e-6, 1.0e-4], log: true}\n"};

class FuzzedServer {
 public:
  FuzzedServer() { NewDatabase(); }
  ~FuzzedServer() { std::filesystem::remove_all(folder_); }

  // To be called after each input.
  void InputDone() {
    ++num_inputs_;
    clock_.Advance(absl::Seconds(1));
    if (num_inputs_ % 50 == 0) HPO_CHECK(scheduler_->sweeper().Tick().ok());
    if (num_inputs_ % 400 != 0) return;
    ReadAll();
    scheduler_.reset();
    Start();
    ReadAll();
    if (num_inputs_ % 2000 == 0) NewDatabase();
  }

  // Anything else would be a bug of the server, not the fault of a request.
  static void CheckAnswer(const grpc::Status& status) {
    // The one that asks again gets the name, or is refused.
    const bool name_is_held = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                              absl::StrContains(status.error_message(), "has this name");
    if (name_is_held) return;
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
      case grpc::StatusCode::INVALID_ARGUMENT:
      case grpc::StatusCode::NOT_FOUND:
      case grpc::StatusCode::ALREADY_EXISTS:
      case grpc::StatusCode::FAILED_PRECONDITION:
      case grpc::StatusCode::ABORTED:
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
      case grpc::StatusCode::UNIMPLEMENTED:
        return;
      default:
        std::fprintf(stderr, "code %d: %s\n", status.error_code(), status.error_message().c_str());
        HPO_CHECK(false && "a request was answered with a code that is no request's fault");
    }
  }

  server::StudyServiceImpl& studies() { return *study_service_; }
  server::WorkerServiceImpl& workers() { return *worker_service_; }
  server::AdminServiceImpl& admin() { return *admin_service_; }
  server::StudyApi& study_api() { return *studies_; }
  server::AdminApi& admin_api() { return *admin_; }
  const std::filesystem::path& folder() const { return folder_; }  // of the database

  // The worker of the last RegisterWorker, so that calls of others find one.
  std::string Register() {
    grpc::ServerContext context;
    v1::RegisterWorkerRequest request;
    request.set_worker("w");
    request.set_instance_key("k");
    request.set_trainer("hpo-trainer");
    request.set_plans(true);
    request.set_capacity_bytes(int64_t{8} << 30);
    request.mutable_device()->set_kind("cpu");
    v1::Model& model = *request.add_models();
    model.set_name("tiny");
    v1::ModelShape& shape = *model.mutable_shape();
    shape.set_family("bert");
    shape.set_vocab_size(1000);
    shape.set_hidden_size(64);
    shape.set_num_layers(2);
    shape.set_num_heads(4);
    shape.set_intermediate_size(128);
    shape.set_max_positions(512);
    shape.set_type_vocab_size(2);
    for (const char* name : {"t", "v"}) {
      v1::DataSet& data = *request.add_data_sets();
      data.set_name(name);
      data.set_digest(name);
      data.set_rows(10);
      data.add_labels("no");
      data.add_labels("yes");
    }
    v1::RegisterWorkerResponse response;
    CheckAnswer(workers().RegisterWorker(&context, &request, &response));
    return response.session();
  }

 private:
  void NewDatabase() {
    scheduler_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    std::string name = (std::filesystem::temp_directory_path() / "fuzzed_XXXXXX").string();
    HPO_CHECK(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    Start();
    for (const char* yaml : kFuzzedStudies) {
      grpc::ServerContext context;
      v1::CreateStudyRequest request;
      request.set_yaml(yaml);
      v1::CreateStudyResponse response;
      const grpc::Status status = studies().CreateStudy(&context, &request, &response);
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.error_message().c_str());
      HPO_CHECK(status.ok());
    }
  }

  void Start() {
    auto store = server::Store::Open((folder_ / "hpo.db").string());
    if (!store.ok()) std::fprintf(stderr, "%s\n", std::string(store.status().message()).c_str());
    HPO_CHECK(store.ok());
    server::SchedulerOptions options;
    options.tick_interval = absl::ZeroDuration();
    auto scheduler = server::TrialScheduler::Create(*std::move(store), clock_, options);
    if (!scheduler.ok()) {
      std::fprintf(stderr, "%s\n", std::string(scheduler.status().message()).c_str());
    }
    HPO_CHECK(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    studies_ = std::make_unique<server::StudyApi>(*scheduler_);
    workers_ = std::make_unique<server::WorkerApi>(*scheduler_);
    admin_ = std::make_unique<server::AdminApi>(*scheduler_);
    study_service_ = std::make_unique<server::StudyServiceImpl>(*studies_, access_);
    worker_service_ =
        std::make_unique<server::WorkerServiceImpl>(*workers_, studies_->queries(), access_);
    admin_service_ = std::make_unique<server::AdminServiceImpl>(*admin_, access_);
  }

  // What was taken can be read.
  void ReadAll() {
    for (const std::string& study : scheduler_->state().studies.Names()) {
      HPO_CHECK(studies_->queries().GetStudy(study).ok());
      TrialQuery query{.page_size = 1000};
      do {
        auto page = studies_->queries().ListTrials(study, query);
        if (!page.ok()) {
          std::fprintf(stderr, "%s\n", std::string(page.status().message()).c_str());
        }
        HPO_CHECK(page.ok());
        for (const Trial& trial : page->trials) {
          HPO_CHECK(studies_->queries().GetTrial(study, trial.id.number).ok());
        }
        query.page_token = page->next_token;
      } while (!query.page_token.empty());
    }
  }

  std::filesystem::path folder_;
  SimulatedClock clock_;
  server::AuditLog audit_{"", clock_};
  server::AccessControl access_{audit_, clock_};
  std::unique_ptr<server::TrialScheduler> scheduler_;
  std::unique_ptr<server::StudyApi> studies_;
  std::unique_ptr<server::WorkerApi> workers_;
  std::unique_ptr<server::AdminApi> admin_;
  std::unique_ptr<server::StudyServiceImpl> study_service_;
  std::unique_ptr<server::WorkerServiceImpl> worker_service_;
  std::unique_ptr<server::AdminServiceImpl> admin_service_;
  int64_t num_inputs_ = 0;
};

// Numbers out of a fuzzer's bytes; zeros when they are used up.
class FuzzBytes {
 public:
  FuzzBytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return used_ >= size_; }

  uint64_t Below(uint64_t n) {
    if (n <= 1 || empty()) return 0;
    uint64_t number = data_[used_++];
    if (n > 256 && !empty()) number = number << 8 | data_[used_++];
    return number % n;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace hpo
