-- What the estimate said and what the attempt used: the evidence of calibration, one row per attempt
-- at most. `version` orders the rows; the calibration after a row has its version.
CREATE TABLE memory_residual (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  plan TEXT NOT NULL,                -- that the prediction is for
  predicted INTEGER NOT NULL,        -- needed limit
  predicted_live INTEGER NOT NULL,
  predicted_reserved INTEGER NOT NULL,
  fragile INTEGER NOT NULL,
  live INTEGER NOT NULL,             -- 0: not reported
  reserved INTEGER NOT NULL,
  device_used INTEGER NOT NULL,
  usable INTEGER NOT NULL,           -- the trial's limit
  score REAL NOT NULL,               -- see memory/need/calibration.h
  censored INTEGER NOT NULL,         -- the score is a lower bound
  device_kind TEXT NOT NULL,
  device TEXT NOT NULL,
  driver TEXT NOT NULL,
  torch_build TEXT NOT NULL,
  time INTEGER NOT NULL,
  UNIQUE (study_id, number, attempt),
  FOREIGN KEY (study_id, number, attempt) REFERENCES attempt (study_id, number, attempt)
);

-- Nothing read it; its facts are the attempt's.
DROP TABLE memory_observation;

-- What must be free for the attempt to start: the prediction with its margin.
ALTER TABLE attempt ADD COLUMN required INTEGER NOT NULL DEFAULT 0;
