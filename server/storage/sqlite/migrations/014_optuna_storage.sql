-- Studies of Optuna's clients (server/optuna), as they gave them. No id is used twice: clients keep
-- by it what they have read.
CREATE TABLE optuna_study (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  directions TEXT NOT NULL,          -- of each objective: "MINIMIZE,MAXIMIZE"
  next_number INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE optuna_study_attribute (
  study_id INTEGER NOT NULL REFERENCES optuna_study (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,           -- 1: a sampler's, 0: the user's
  key TEXT NOT NULL,
  value TEXT NOT NULL,               -- JSON, as Python writes it
  PRIMARY KEY (study_id, system, key)
) WITHOUT ROWID;

-- What trials of the study drew a parameter from; the first one says which others may follow.
CREATE TABLE optuna_distribution (
  id INTEGER PRIMARY KEY,
  study_id INTEGER NOT NULL REFERENCES optuna_study (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  json TEXT NOT NULL,
  UNIQUE (study_id, name, json)
);

CREATE TABLE optuna_trial (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  study_id INTEGER NOT NULL REFERENCES optuna_study (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  started TEXT NOT NULL,             -- local time as Optuna writes it; empty: not yet
  completed TEXT NOT NULL,
  UNIQUE (study_id, number)
);
CREATE INDEX optuna_trial_by_study ON optuna_trial (study_id);

CREATE TABLE optuna_param (
  trial_id INTEGER NOT NULL REFERENCES optuna_trial (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value REAL NOT NULL,               -- of a choice its index
  distribution_id INTEGER NOT NULL,
  PRIMARY KEY (trial_id, name)
) WITHOUT ROWID;

CREATE TABLE optuna_value (
  trial_id INTEGER NOT NULL REFERENCES optuna_trial (id) ON DELETE CASCADE,
  objective INTEGER NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial_id, objective)
) WITHOUT ROWID;

CREATE TABLE optuna_intermediate_value (
  trial_id INTEGER NOT NULL REFERENCES optuna_trial (id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  value REAL,                        -- NULL: not a number
  PRIMARY KEY (trial_id, step)
) WITHOUT ROWID;

CREATE TABLE optuna_trial_attribute (
  trial_id INTEGER NOT NULL REFERENCES optuna_trial (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (trial_id, system, key)
) WITHOUT ROWID;
