#include "server/access/method_roles.h"

#include <algorithm>

namespace hpo::server {
namespace {

constexpr bool kChange = true;
constexpr bool kNoChange = false;

constexpr MethodRule kRules[] = {
    {"/hpo.v1.StudyService/CreateStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/GetStudy", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/ListStudies", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/UpdateStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/EditStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/ArchiveStudy", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/RestoreStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/DeleteStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/EnqueueTrial", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/PreemptTrial", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/StopTrial", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/CancelTrial", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/OrderStudy", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/ImportTrials", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/Annotate", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/RetryTrials", Role::kWrite, kChange},
    {"/hpo.v1.StudyService/ListTrials", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/GetTrial", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/QueryTrials", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/GetHistory", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/ListBestTrials", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/EstimateMemory", Role::kRead, kNoChange},
    {"/hpo.v1.StudyService/WatchStudy", Role::kRead, kNoChange},
    {"/hpo.v1.WorkerService/RegisterWorker", Role::kWork, kChange},
    {"/hpo.v1.WorkerService/ListServedStudies", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/AcquireTrial", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/Heartbeat", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/Attend", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/ReportMeasurements", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/FinishTrial", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/ReleaseTrial", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/AcquirePreflight", Role::kWork, kNoChange},
    {"/hpo.v1.WorkerService/ReportPreflight", Role::kWork, kNoChange},
    {"/hpo.v1.AdminService/GetServer", Role::kRead, kNoChange},
    {"/hpo.v1.AdminService/BackUpDatabase", Role::kAdmin, kChange},
    {"/hpo.v1.AdminService/ListTokens", Role::kAdmin, kNoChange},
    {"/hpo.v1.AdminService/CreateToken", Role::kAdmin, kChange},
    {"/hpo.v1.AdminService/RotateToken", Role::kAdmin, kChange},
    {"/hpo.v1.AdminService/RevokeToken", Role::kAdmin, kChange},
    {"/hpo.v1.FleetService/ListWorkers", Role::kRead, kNoChange},
    {"/hpo.v1.FleetService/DrainWorkers", Role::kWrite, kChange},
    {"/hpo.v1.FleetService/ResumeWorkers", Role::kWrite, kChange},
    {"/hpo.v1.AnalysisService/GetImportance", Role::kRead, kNoChange},
    {"/hpo.v1.AnalysisService/GetCurves", Role::kRead, kNoChange},
    {"/hpo.v1.AnalysisService/GetTimeline", Role::kRead, kNoChange},
    {"/hpo.v1.AnalysisService/GetMemoryFrontier", Role::kRead, kNoChange},
    {"/hpo.v1.AnalysisService/GetMemoryFit", Role::kRead, kNoChange},
    {"/optuna.StorageService/CreateNewStudy", Role::kWrite, kChange},
    {"/optuna.StorageService/DeleteStudy", Role::kWrite, kChange},
    {"/optuna.StorageService/SetStudyUserAttribute", Role::kWrite, kChange},
    {"/optuna.StorageService/SetStudySystemAttribute", Role::kWrite, kChange},
    {"/optuna.StorageService/GetStudyIdFromName", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetStudyNameFromId", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetStudyDirections", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetStudyUserAttributes", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetStudySystemAttributes", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetAllStudies", Role::kRead, kNoChange},
    {"/optuna.StorageService/CreateNewTrial", Role::kWrite, kChange},
    {"/optuna.StorageService/SetTrialParameter", Role::kWrite, kChange},
    {"/optuna.StorageService/GetTrialIdFromStudyIdTrialNumber", Role::kRead, kNoChange},
    {"/optuna.StorageService/SetTrialStateValues", Role::kWrite, kChange},
    {"/optuna.StorageService/SetTrialIntermediateValue", Role::kWrite, kChange},
    {"/optuna.StorageService/SetTrialUserAttribute", Role::kWrite, kChange},
    {"/optuna.StorageService/SetTrialSystemAttribute", Role::kWrite, kChange},
    {"/optuna.StorageService/GetTrial", Role::kRead, kNoChange},
    {"/optuna.StorageService/GetTrials", Role::kRead, kNoChange},
    // gRPC's own services.
    {"/grpc.health.v1.Health/Check", Role::kRead, kNoChange},
    {"/grpc.health.v1.Health/Watch", Role::kRead, kNoChange},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kRead, kNoChange},
};

}  // namespace

std::optional<MethodRule> RuleOf(absl::string_view method) {
  const auto* const rule =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [method](const MethodRule& one) { return one.method == method; });
  return rule == std::end(kRules) ? std::nullopt : std::optional(*rule);
}

std::vector<MethodRule> AllMethodRules() { return {std::begin(kRules), std::end(kRules)}; }

bool Includes(Role role, Role needed) {
  switch (role) {
    case Role::kAdmin:
      return true;
    case Role::kWrite:
      return needed != Role::kAdmin;
    default:
      return role == needed;
  }
}

}  // namespace hpo::server
