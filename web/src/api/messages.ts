// Written by web/messages.py from proto/hpo/v1. Do not edit.
// A field with its default value is left out of the JSON.

// 64-bit integers are strings in answers; requests may have numbers.
export type Int64 = string | number;
export type Double = number | "NaN" | "Infinity" | "-Infinity";

export type AccessRole =
  | "ACCESS_ROLE_UNSPECIFIED"
  | "ACCESS_ROLE_READ"
  | "ACCESS_ROLE_WORK"
  | "ACCESS_ROLE_WRITE"
  | "ACCESS_ROLE_ADMIN";

export interface AccessToken {
  name?: string;
  role?: AccessRole;
  created?: string;
  expires?: string;
  revoked?: string;
  previous_until?: string;
}

export interface ListTokensRequest {
}

export interface ListTokensResponse {
  tokens?: AccessToken[];
}

export interface CreateTokenRequest {
  name?: string;
  role?: AccessRole;
  lifetime?: string;
}

export interface CreateTokenResponse {
  token?: AccessToken;
  join?: string;
}

export interface RotateTokenRequest {
  name?: string;
  grace?: string;
  lifetime?: string;
}

export interface RotateTokenResponse {
  token?: AccessToken;
  join?: string;
}

export interface RevokeTokenRequest {
  name?: string;
}

export interface RevokeTokenResponse {
}

export interface GetServerRequest {
}

export interface GetServerResponse {
  version?: string;
  database?: string;
  epoch?: Int64;
  trouble?: string;
  damage?: string[];
  page?: string;
}

export interface BackUpDatabaseRequest {
}

export interface BackUpDatabaseResponse {
  data?: string;
  end?: BackUpEnd;
}

export interface BackUpEnd {
  size_bytes?: Int64;
  sha256?: string;
}

export type TrialState =
  | "TRIAL_STATE_UNSPECIFIED"
  | "TRIAL_STATE_QUEUED"
  | "TRIAL_STATE_RUNNING"
  | "TRIAL_STATE_COMPLETED"
  | "TRIAL_STATE_PRUNED"
  | "TRIAL_STATE_FAILED"
  | "TRIAL_STATE_CANCELLED";

export type PruneReason =
  | "PRUNE_REASON_UNSPECIFIED"
  | "PRUNE_REASON_OUT_OF_MEMORY"
  | "PRUNE_REASON_PREDICTED_OUT_OF_MEMORY"
  | "PRUNE_REASON_HOST_OUT_OF_MEMORY"
  | "PRUNE_REASON_PRUNER";

export type Precision =
  | "PRECISION_UNSPECIFIED"
  | "PRECISION_FLOAT32"
  | "PRECISION_BFLOAT16"
  | "PRECISION_FLOAT16";

export type OomKind =
  | "OOM_KIND_UNSPECIFIED"
  | "OOM_KIND_CONFIGURATION"
  | "OOM_KIND_DIRTY_DEVICE"
  | "OOM_KIND_FRAGMENTATION"
  | "OOM_KIND_LATE_PEAK"
  | "OOM_KIND_HOST";

export type FailureClass =
  | "FAILURE_CLASS_UNSPECIFIED"
  | "FAILURE_CLASS_BAD_DATA"
  | "FAILURE_CLASS_BAD_MODEL"
  | "FAILURE_CLASS_BAD_CONFIGURATION"
  | "FAILURE_CLASS_DIVERGED"
  | "FAILURE_CLASS_TRAINER_CRASHED"
  | "FAILURE_CLASS_TRAINER_KILLED"
  | "FAILURE_CLASS_DEVICE_LOST"
  | "FAILURE_CLASS_PROTOCOL"
  | "FAILURE_CLASS_WORKER_LOST"
  | "FAILURE_CLASS_INTERNAL";

export type AttemptState =
  | "ATTEMPT_STATE_UNSPECIFIED"
  | "ATTEMPT_STATE_LEASED"
  | "ATTEMPT_STATE_SUSPECT"
  | "ATTEMPT_STATE_FINISHED"
  | "ATTEMPT_STATE_RELEASED"
  | "ATTEMPT_STATE_LOST"
  | "ATTEMPT_STATE_SUPERSEDED";

export interface Value {
  bool_value?: boolean;
  int_value?: Int64;
  double_value?: Double;
  string_value?: string;
  null_value?: null;
}

export interface MemoryPlan {
  effective_batch?: Int64;
  micro_batch?: Int64;
  checkpointing?: boolean;
  precision?: Precision;
}

export interface Completed {
  metrics?: Record<string, Double>;
  model_path?: string;
}

export interface StoppedByPruner {
  pruner?: string;
  step?: Int64;
  metrics?: Record<string, Double>;
}

export interface OutOfMemory {
  kind?: OomKind;
  predicted?: boolean;
  requested_bytes?: Int64;
  peak_bytes?: Int64;
  limit_bytes?: Int64;
  needed_bytes?: Int64;
  phase?: string;
  step?: Int64;
  plan?: MemoryPlan;
  error_message?: string;
  error_traceback?: string;
  oom_config?: Record<string, Value>;
}

export interface Failed {
  failure_class?: FailureClass;
  message?: string;
}

export interface Cancelled {
  reason?: string;
}

export interface Outcome {
  completed?: Completed;
  stopped_by_pruner?: StoppedByPruner;
  out_of_memory?: OutOfMemory;
  failed?: Failed;
  cancelled?: Cancelled;
}

export interface MemoryReport {
  baseline_bytes?: Int64;
  live_peak_bytes?: Int64;
  reserved_peak_bytes?: Int64;
  device_peak_bytes?: Int64;
  limit_bytes?: Int64;
  peak_phase?: string;
  num_ooms?: Int64;
  num_replans?: Int64;
  growth_bytes?: Int64;
  growth_stage?: string;
}

export interface MemoryRecord {
  sequence?: Int64;
  stage?: string;
  step?: Int64;
  allocated_bytes?: Int64;
  reserved_bytes?: Int64;
  free_bytes?: Int64;
  total_bytes?: Int64;
  peak_bytes?: Int64;
  predicted_bytes?: Int64;
  needed_bytes?: Int64;
  plan?: MemoryPlan;
  resident_bytes?: Int64;
  growth_bytes?: Int64;
  growth_stage?: string;
  predicted_reserved_bytes?: Int64;
}

export interface Measurement {
  step?: Int64;
  epoch?: Double;
  metrics?: Record<string, Double>;
}

export interface Attempt {
  number?: Int64;
  state?: AttemptState;
  worker?: string;
  capacity_bytes?: Int64;
  predicted_bytes?: Int64;
  plan?: MemoryPlan;
  final_plan?: MemoryPlan;
  memory?: MemoryReport;
  end_note?: string;
  started?: string;
  ended?: string;
  memory_records?: MemoryRecord[];
  log_tail?: string;
}

export interface Trial {
  study?: string;
  number?: Int64;
  state?: TrialState;
  prune_reason?: PruneReason;
  params?: Record<string, Value>;
  demonstration?: boolean;
  admission?: boolean;
  min_capacity_bytes?: Int64;
  outcome?: Outcome;
  attempts?: Attempt[];
  last_measurement?: Measurement;
  value?: Double;
  created?: string;
  started?: string;
  ended?: string;
  measurements?: Measurement[];
  sampler?: string;
  forced_micro_batch?: Int64;
  origin?: string;
  outside_budget?: boolean;
  violation?: Double;
  attributes?: Record<string, string>;
}

export interface ImportedTrial {
  origin?: string;
  params?: Record<string, Value>;
  outcome?: Outcome;
  measurements?: Measurement[];
  demonstration?: boolean;
  started?: string;
  ended?: string;
  attributes?: Record<string, string>;
}

export type ImportanceMethod =
  | "IMPORTANCE_METHOD_UNSPECIFIED"
  | "IMPORTANCE_METHOD_PED_ANOVA"
  | "IMPORTANCE_METHOD_FANOVA";

export interface GetImportanceRequest {
  study?: string;
  metric?: string;
  method?: ImportanceMethod;
}

export interface ParameterImportance {
  parameter?: string;
  share?: Double;
  low?: Double;
  high?: Double;
}

export interface GetImportanceResponse {
  parameters?: ParameterImportance[];
  trials?: Int64;
  metric?: string;
  resamples?: Int64;
  sequence?: Int64;
}

export interface GetCurvesRequest {
  study?: string;
  metric?: string;
  numbers?: number[];
  where?: string[];
  count?: number;
  points?: number;
}

export interface Curve {
  number?: number;
  state?: string;
  steps?: Int64[];
  values?: Double[];
}

export interface GetCurvesResponse {
  curves?: Curve[];
  metric?: string;
  metrics?: string[];
  sequence?: Int64;
}

export interface GetTimelineRequest {
  study?: string;
  count?: number;
}

export interface GetTimelineResponse {
  workers?: string[];
  worker_indexes?: number[];
  numbers?: number[];
  attempts?: number[];
  started?: Double[];
  ended?: Double[];
  uses?: string;
  left_off?: Int64;
}

export interface GetMemoryFrontierRequest {
  study?: string;
  x?: string;
  y?: string;
  params?: Record<string, Value>;
  capacities?: Int64[];
  worker?: string;
  points?: number;
}

export interface FrontierGpu {
  capacity_bytes?: Int64;
  usable_bytes?: Int64;
  micro_batches?: number[];
  verdicts?: string;
}

export interface GetMemoryFrontierResponse {
  x?: string;
  y?: string;
  x_values?: Value[];
  y_values?: Value[];
  needed_bytes?: Int64[];
  gpus?: FrontierGpu[];
  params?: Record<string, Value>;
  basis?: string;
}

export interface GetMemoryFitRequest {
  study?: string;
  capacities?: Int64[];
}

export interface MemoryCut {
  parameter?: string;
  description?: string;
  misfits_removed?: Int64;
  misfits_left?: Int64;
  fits_lost?: Int64;
}

export interface MemoryFitCount {
  fits?: Int64;
  does_not_fit?: Int64;
  cut?: MemoryCut;
  unknown?: Int64;
}

export interface MemoryFitGpu {
  capacity_bytes?: Int64;
  usable_bytes?: Int64;
  literal?: MemoryFitCount;
  planned?: MemoryFitCount;
}

export interface MemoryFitModel {
  name?: string;
  configurations?: Int64;
  known?: boolean;
  smallest_bytes?: Int64;
  smallest_planned_bytes?: Int64;
  largest_bytes?: Int64;
  literal_fits?: Int64[];
  planned_fits?: Int64[];
}

export interface GetMemoryFitResponse {
  configurations?: Int64;
  sampled?: boolean;
  unknown?: Int64;
  parameters?: string[];
  models?: MemoryFitModel[];
  gpus?: MemoryFitGpu[];
}

export type StudyState =
  | "STUDY_STATE_UNSPECIFIED"
  | "STUDY_STATE_ACTIVE"
  | "STUDY_STATE_FINISHED";

export type StudyOrder =
  | "STUDY_ORDER_UNSPECIFIED"
  | "STUDY_ORDER_RUN"
  | "STUDY_ORDER_PAUSE"
  | "STUDY_ORDER_STOP";

export type Direction =
  | "DIRECTION_UNSPECIFIED"
  | "DIRECTION_MINIMIZE"
  | "DIRECTION_MAXIMIZE";

export type TrialView =
  | "TRIAL_VIEW_UNSPECIFIED"
  | "TRIAL_VIEW_BASIC"
  | "TRIAL_VIEW_FULL";

export type ColumnKind =
  | "COLUMN_KIND_UNSPECIFIED"
  | "COLUMN_KIND_FIELD"
  | "COLUMN_KIND_PARAMETER"
  | "COLUMN_KIND_METRIC";

export interface Objective {
  metric?: string;
  direction?: Direction;
}

export interface MetricConstraint {
  metric?: string;
  at_least?: Double;
  at_most?: Double;
}

export interface Budget {
  trials?: Int64;
  wall_clock?: string;
  trial_wall_clock?: string;
  no_progress?: Int64;
  regret_gap?: Double;
  regret_auto?: boolean;
  failures_in_a_row?: Int64;
  failed_share?: Double;
  target?: Double;
}

export interface FloatDomain {
  low?: Double;
  high?: Double;
  step?: Double;
  log?: boolean;
}

export interface IntDomain {
  low?: Int64;
  high?: Int64;
  step?: Int64;
  log?: boolean;
}

export interface CategoricalDomain {
  choices?: Value[];
}

export interface Domain {
  float_domain?: FloatDomain;
  int_domain?: IntDomain;
  categorical_domain?: CategoricalDomain;
}

export interface Condition {
  name?: string;
  values?: Value[];
}

export interface Parameter {
  name?: string;
  domain?: Domain;
  when?: Condition[];
  modelled?: boolean;
  default_value?: Value;
}

export interface Narrowing {
  when?: Condition[];
  name?: string;
  domain?: Domain;
}

export interface SearchSpace {
  parameters?: Parameter[];
  narrowings?: Narrowing[];
}

export interface TrialCounts {
  queued?: Int64;
  running?: Int64;
  completed?: Int64;
  pruned?: Int64;
  failed?: Int64;
  cancelled?: Int64;
  oom_met?: Int64;
  oom_predicted?: Int64;
  oom_recovered?: Int64;
  demonstration?: Int64;
  imported?: Int64;
  infeasible?: Int64;
}

export interface Worker {
  name?: string;
  device?: string;
  capacity_bytes?: Int64;
  alive?: boolean;
  trial?: Int64;
  study?: string;
  last_heartbeat?: string;
  notice?: string;
  drained?: boolean;
  allocated_bytes?: Int64;
  reserved_bytes?: Int64;
  step?: Int64;
  stage?: string;
  trial_started?: string;
  idle_because?: string;
  gpus?: Int64;
}

export interface PriorStudy {
  study?: string;
  trials?: Int64;
  skipped?: Int64;
  why_skipped?: string;
}

export interface Study {
  name?: string;
  state?: StudyState;
  objectives?: Objective[];
  budget?: Budget;
  space?: SearchSpace;
  counts?: TrialCounts;
  best_trial?: Int64;
  best_value?: Double;
  wall_clock_used?: string;
  workers?: Worker[];
  waiting_for?: string;
  task?: string;
  train?: string;
  validation?: string;
  sampler?: string;
  pruner?: string;
  seed?: Int64;
  memory_policy?: string;
  created?: string;
  sequence?: Int64;
  warm_start?: PriorStudy[];
  last_proposal?: string;
  constraints?: MetricConstraint[];
  best_violation?: Double;
  order?: StudyOrder;
  failure?: string;
  unreadable?: string;
  command?: string[];
  workdir?: string;
  attributes?: Record<string, string>;
  blocked?: boolean;
  dry_runs?: DryRunCounts;
  runnable?: Int64;
  gpus?: Int64;
  time_by_use?: TimeByUse;
}

export interface TimeByUse {
  useful?: string;
  out_of_memory?: string;
  pruned?: string;
  failed?: string;
  cancelled?: string;
  preempted?: string;
  lost?: string;
}

export interface DryRunCounts {
  made?: Int64;
  refused?: Int64;
  uncertain?: Int64;
  failed?: Int64;
  took?: string;
  saved?: string;
  trouble?: string;
}

export interface CreateStudyRequest {
  yaml?: string;
  origin?: string;
  validate_only?: boolean;
  request_id?: string;
}

export interface CreateStudyResponse {
  study?: Study;
  created?: boolean;
}

export interface GetStudyRequest {
  name?: string;
}

export interface GetStudyResponse {
  study?: Study;
}

export interface ListStudiesRequest {
  page_size?: number;
  page_token?: string;
}

export interface ListStudiesResponse {
  studies?: Study[];
  next_page_token?: string;
}

export interface AddedChoices {
  parameter?: string;
  choices?: Value[];
}

export interface UpdateStudyRequest {
  name?: string;
  trials?: Int64;
  add_trials?: Int64;
  wall_clock?: string;
  added_choices?: AddedChoices[];
  request_id?: string;
  failures_in_a_row?: Int64;
  failed_share?: Double;
  target?: Double;
  remove_target?: boolean;
}

export interface UpdateStudyResponse {
  study?: Study;
}

export interface ParameterRange {
  parameter?: string;
  domain?: Domain;
}

export interface EditStudyRequest {
  name?: string;
  yaml?: string;
  origin?: string;
  ranges?: ParameterRange[];
  validate_only?: boolean;
}

export interface EditStudyResponse {
  study?: Study;
  before?: ParameterRange[];
  after?: ParameterRange[];
  outside?: Int64;
  cancelled?: Int64[];
}

export interface ArchiveStudyRequest {
  name?: string;
}

export interface ArchiveStudyResponse {
  data?: string;
  end?: ArchiveEnd;
}

export interface ArchiveEnd {
  size_bytes?: Int64;
  sha256?: string;
  trials?: Int64;
}

export interface RestoreStudyRequest {
  name?: string;
  data?: string;
}

export interface RestoreStudyResponse {
  study?: Study;
}

export interface DeleteStudyRequest {
  name?: string;
  archive_sha256?: string;
}

export interface DeleteStudyResponse {
  trials?: Int64;
}

export interface EnqueueTrialRequest {
  study?: string;
  params?: Record<string, Value>;
  demonstration?: boolean;
  skip_admission?: boolean;
  forced_micro_batch?: Int64;
  request_id?: string;
}

export interface EnqueueTrialResponse {
  trial?: Trial;
}

export interface AnnotateRequest {
  study?: string;
  number?: Int64;
  note?: string;
  add_tags?: string[];
  remove_tags?: string[];
  attributes?: Record<string, string>;
}

export interface AnnotateResponse {
  attributes?: Record<string, string>;
}

export interface RetryTrialsRequest {
  study?: string;
  numbers?: Int64[];
  all_failed?: boolean;
  request_id?: string;
}

export interface RetryTrialsResponse {
  trials?: Trial[];
  skipped?: RetryTrialsResponse_Skipped[];
}

export interface RetryTrialsResponse_Skipped {
  number?: Int64;
  why?: string;
}

export interface ImportTrialsRequest {
  study?: string;
  count_against_budget?: boolean;
  trials?: ImportedTrial[];
}

export interface ImportTrialsResponse {
  study?: string;
  added?: Int64;
  known?: Int64;
}

export interface PreemptTrialRequest {
  study?: string;
  number?: Int64;
}

export interface PreemptTrialResponse {
  trial?: Trial;
}

export interface StopTrialRequest {
  study?: string;
  number?: Int64;
  reason?: string;
}

export interface StopTrialResponse {
  trial?: Trial;
}

export interface CancelTrialRequest {
  study?: string;
  number?: Int64;
  reason?: string;
}

export interface CancelTrialResponse {
  trial?: Trial;
}

export interface OrderStudyRequest {
  name?: string;
  order?: StudyOrder;
  stop_running_trials?: boolean;
}

export interface OrderStudyResponse {
  study?: Study;
}

export interface ListTrialsRequest {
  study?: string;
  states?: TrialState[];
  prune_reasons?: PruneReason[];
  view?: TrialView;
  page_size?: number;
  page_token?: string;
  newest_first?: boolean;
}

export interface ListTrialsResponse {
  trials?: Trial[];
  next_page_token?: string;
  total?: Int64;
}

export interface QueryTrialsRequest {
  study?: string;
  where?: string[];
  sort?: string;
  columns?: string[];
  page_size?: number;
  page_token?: string;
  from_end?: boolean;
}

export interface TableColumn {
  name?: string;
  numbers?: Double[];
  texts?: string[];
  indexes?: number[];
  missing?: number[];
}

export interface ColumnInfo {
  name?: string;
  kind?: ColumnKind;
  numeric?: boolean;
  log?: boolean;
}

export interface QueryTrialsResponse {
  total?: Int64;
  matching?: Int64;
  position?: Int64;
  sequence?: Int64;
  numbers?: number[];
  columns?: TableColumn[];
  all_columns?: ColumnInfo[];
  next_page_token?: string;
  previous_page_token?: string;
}

export interface GetHistoryRequest {
  study?: string;
  points?: number;
}

export interface HistorySeries {
  metric?: string;
  values?: Double[];
}

export interface GetHistoryResponse {
  sequence?: Int64;
  total?: Int64;
  numbers?: number[];
  states?: string;
  series?: HistorySeries[];
  best_numbers?: number[];
  best_values?: Double[];
}

export interface GetTrialRequest {
  study?: string;
  number?: Int64;
}

export interface GetTrialResponse {
  trial?: Trial;
}

export interface ListBestTrialsRequest {
  study?: string;
  count?: number;
}

export interface ListBestTrialsResponse {
  trials?: Trial[];
}

export interface MemoryEstimate {
  weights_bytes?: Int64;
  gradients_bytes?: Int64;
  optimizer_bytes?: Int64;
  activations_bytes?: Int64;
  head_bytes?: Int64;
  workspaces_bytes?: Int64;
  base_bytes?: Int64;
  live_peak_bytes?: Int64;
  reserved_peak_bytes?: Int64;
  needed_limit_bytes?: Int64;
  peak_phase?: string;
  expected_live_peak_bytes?: Int64;
  expected_reserved_peak_bytes?: Int64;
}

export interface EstimateMemoryRequest {
  study?: string;
  params?: Record<string, Value>;
  worker?: string;
  limit_bytes?: Int64;
}

export interface EstimateMemoryResponse {
  estimate?: MemoryEstimate;
  plan?: MemoryPlan;
  fits?: boolean;
  usable_bytes?: Int64;
  explanation?: string;
}

export interface WatchStudyRequest {
  study?: string;
  after_sequence?: Int64;
}

export interface TrialChange {
  sequence?: Int64;
  kind?: string;
  trial?: Trial;
}

export interface WatchStudyResponse {
  snapshot?: Study;
  change?: TrialChange;
  bookmark?: Int64;
}

export interface ListWorkersRequest {
}

export interface ListWorkersResponse {
  workers?: Worker[];
}

export interface DrainWorkersRequest {
  names?: string[];
  all?: boolean;
  now?: boolean;
}

export interface DrainWorkersResponse {
  names?: string[];
}

export interface ResumeWorkersRequest {
  names?: string[];
  all?: boolean;
}

export interface ResumeWorkersResponse {
  names?: string[];
}

// Request and answer of each call.
export interface Methods {
  "AdminService/GetServer": [GetServerRequest, GetServerResponse];
  "AdminService/ListTokens": [ListTokensRequest, ListTokensResponse];
  "AdminService/CreateToken": [CreateTokenRequest, CreateTokenResponse];
  "AdminService/RotateToken": [RotateTokenRequest, RotateTokenResponse];
  "AdminService/RevokeToken": [RevokeTokenRequest, RevokeTokenResponse];
  "AnalysisService/GetImportance": [GetImportanceRequest, GetImportanceResponse];
  "AnalysisService/GetCurves": [GetCurvesRequest, GetCurvesResponse];
  "AnalysisService/GetTimeline": [GetTimelineRequest, GetTimelineResponse];
  "AnalysisService/GetMemoryFrontier": [GetMemoryFrontierRequest, GetMemoryFrontierResponse];
  "AnalysisService/GetMemoryFit": [GetMemoryFitRequest, GetMemoryFitResponse];
  "StudyService/CreateStudy": [CreateStudyRequest, CreateStudyResponse];
  "StudyService/GetStudy": [GetStudyRequest, GetStudyResponse];
  "StudyService/ListStudies": [ListStudiesRequest, ListStudiesResponse];
  "StudyService/UpdateStudy": [UpdateStudyRequest, UpdateStudyResponse];
  "StudyService/EditStudy": [EditStudyRequest, EditStudyResponse];
  "StudyService/DeleteStudy": [DeleteStudyRequest, DeleteStudyResponse];
  "StudyService/EnqueueTrial": [EnqueueTrialRequest, EnqueueTrialResponse];
  "StudyService/PreemptTrial": [PreemptTrialRequest, PreemptTrialResponse];
  "StudyService/StopTrial": [StopTrialRequest, StopTrialResponse];
  "StudyService/CancelTrial": [CancelTrialRequest, CancelTrialResponse];
  "StudyService/OrderStudy": [OrderStudyRequest, OrderStudyResponse];
  "StudyService/Annotate": [AnnotateRequest, AnnotateResponse];
  "StudyService/RetryTrials": [RetryTrialsRequest, RetryTrialsResponse];
  "StudyService/ListTrials": [ListTrialsRequest, ListTrialsResponse];
  "StudyService/GetTrial": [GetTrialRequest, GetTrialResponse];
  "StudyService/QueryTrials": [QueryTrialsRequest, QueryTrialsResponse];
  "StudyService/GetHistory": [GetHistoryRequest, GetHistoryResponse];
  "StudyService/ListBestTrials": [ListBestTrialsRequest, ListBestTrialsResponse];
  "StudyService/EstimateMemory": [EstimateMemoryRequest, EstimateMemoryResponse];
  "FleetService/ListWorkers": [ListWorkersRequest, ListWorkersResponse];
  "FleetService/DrainWorkers": [DrainWorkersRequest, DrainWorkersResponse];
  "FleetService/ResumeWorkers": [ResumeWorkersRequest, ResumeWorkersResponse];
}
