-- Times are microseconds since 1970 (UTC), durations microseconds, sizes bytes.

CREATE TABLE server (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,            -- grows by one with each start
  studies_version INTEGER NOT NULL   -- grows with each change of any study
);
INSERT INTO server VALUES (1, 0, 0);

CREATE TABLE study (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  spec TEXT NOT NULL,                -- canonical JSON
  stated TEXT NOT NULL,              -- the same, as the study's file last stated it
  created INTEGER NOT NULL,
  next_number INTEGER NOT NULL DEFAULT 0,
  num_budgeted INTEGER NOT NULL DEFAULT 0,  -- trials that are not demonstrations
  last_sequence INTEGER NOT NULL DEFAULT 0,
  wall_clock INTEGER NOT NULL DEFAULT 0
);

-- The data sets that the study was begun with.
CREATE TABLE study_data (
  study_id INTEGER NOT NULL REFERENCES study (id),
  file TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (study_id, file)
) WITHOUT ROWID;

CREATE TABLE trial (
  study_id INTEGER NOT NULL REFERENCES study (id),
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  prune_reason TEXT,
  params TEXT NOT NULL,
  demonstration INTEGER NOT NULL,
  admission INTEGER NOT NULL,
  forced_micro_batch INTEGER NOT NULL,
  min_capacity INTEGER NOT NULL,
  outcome TEXT,
  value REAL,                        -- first objective
  current_attempt INTEGER NOT NULL,  -- the newest; 0: none
  result_attempt INTEGER NOT NULL,   -- whose outcome was taken; 0: none
  preemptions INTEGER NOT NULL,
  worker_losses INTEGER NOT NULL,
  transient_failures INTEGER NOT NULL,
  device_ooms INTEGER NOT NULL,      -- kinds B and C
  host_ooms INTEGER NOT NULL,
  oom_met INTEGER NOT NULL,
  last_oom TEXT,                     -- the outcome that a requeue for a larger card put off
  created INTEGER NOT NULL,
  started INTEGER,
  ended INTEGER,
  last_sequence INTEGER NOT NULL,
  PRIMARY KEY (study_id, number)
);
CREATE INDEX trial_by_state ON trial (study_id, state, prune_reason, number);
CREATE INDEX trial_by_value ON trial (study_id, value) WHERE state = 'COMPLETED';

CREATE TABLE attempt (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  worker TEXT NOT NULL,
  instance_key TEXT NOT NULL,
  token TEXT NOT NULL,
  capacity INTEGER NOT NULL,
  usable INTEGER NOT NULL,           -- the trial's limit
  predicted INTEGER NOT NULL,
  plan TEXT NOT NULL,
  final_plan TEXT,
  memory TEXT,
  outcome TEXT,                      -- also of attempts whose outcome was not taken
  end_note TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER,
  PRIMARY KEY (study_id, number, attempt),
  FOREIGN KEY (study_id, number) REFERENCES trial (study_id, number)
);
CREATE INDEX attempt_open ON attempt (state) WHERE state IN ('LEASED', 'SUSPECT');

CREATE TABLE measurement (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  epoch REAL NOT NULL,
  metrics TEXT NOT NULL,
  PRIMARY KEY (study_id, number, attempt, step),
  FOREIGN KEY (study_id, number, attempt) REFERENCES attempt (study_id, number, attempt)
) WITHOUT ROWID;

-- The one change log. `sequence` counts within the study.
CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  study_id INTEGER NOT NULL REFERENCES study (id),
  sequence INTEGER NOT NULL,
  number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  time INTEGER NOT NULL,
  UNIQUE (study_id, sequence)
);

CREATE TABLE idempotency (
  request_id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  body_hash INTEGER NOT NULL,
  response TEXT NOT NULL,
  time INTEGER NOT NULL
) WITHOUT ROWID;

-- What memory taught, one row per attempt that used or missed memory.
CREATE TABLE memory_observation (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,                -- PEAK: what was used; CENSORED: more than `bytes` is needed
  bytes INTEGER NOT NULL,
  usable INTEGER NOT NULL,
  predicted INTEGER NOT NULL,
  plan TEXT NOT NULL,
  device TEXT NOT NULL,
  time INTEGER NOT NULL,
  PRIMARY KEY (study_id, number, attempt),
  FOREIGN KEY (study_id, number, attempt) REFERENCES attempt (study_id, number, attempt)
) WITHOUT ROWID;

CREATE TABLE worker (
  name TEXT PRIMARY KEY,
  instance_key TEXT NOT NULL,
  version TEXT NOT NULL,
  torch_build TEXT NOT NULL,
  trainer TEXT NOT NULL,
  device TEXT NOT NULL,
  capacity INTEGER NOT NULL,
  registered INTEGER NOT NULL
) WITHOUT ROWID;

-- Everything a suggestion depended on, so that it can be replayed.
CREATE TABLE suggestion (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  calibration_version INTEGER NOT NULL,
  history_sequence INTEGER NOT NULL,
  sampler TEXT NOT NULL,
  score REAL,
  PRIMARY KEY (study_id, number),
  FOREIGN KEY (study_id, number) REFERENCES trial (study_id, number)
) WITHOUT ROWID;
